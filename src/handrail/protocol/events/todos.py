"""Events of the session's todo list."""

from typing import Literal

from handrail.protocol.events.base import EventBase
from handrail.protocol.values import Todo


class TodosChanged(EventBase):
    """The whole list as it now is."""

    type: Literal["todos_changed"] = "todos_changed"
    todos: tuple[Todo, ...]


class TodoCompleted(EventBase):
    type: Literal["todo_completed"] = "todo_completed"
    todo_id: str
    by: Literal["user", "change", "command"]
