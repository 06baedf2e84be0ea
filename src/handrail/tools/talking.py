"""The todos and ask_user tools."""

import re
from typing import Annotated

from pydantic import Field

from handrail.protocol.errors import ToolError, ToolRefused
from handrail.protocol.events import TodosChanged
from handrail.protocol.values import Todo, Value
from handrail.tools.base import About, Outcome, Question, Tool, Work
from handrail.tools.clip import counted

MOST_TODOS = 50
OWN_ID = re.compile(r"[\w.-]{1,20}")


class TodoItem(Value):
    text: Annotated[str, Field(min_length=1, max_length=500)]
    id: str = ""


class TodosArguments(Value):
    todos: Annotated[tuple[TodoItem, ...], Field(min_length=1)]


class AskArguments(Value):
    question: Annotated[str, Field(min_length=1)]
    options: tuple[str, ...] = ()


class Todos(Tool[TodosArguments]):
    name = "todos"
    description = (
        "Add todos or reword them by id. A todo is done when an edit, write or run that names it succeeds."
    )
    action = "note"
    arguments = TodosArguments

    def about(self, arguments: TodosArguments) -> About:
        return About()

    async def run(self, arguments: TodosArguments, work: Work) -> Outcome:
        todos = merged(work.session.state.todos, arguments.todos)
        if len(todos) > MOST_TODOS:
            message = f"That would be {len(todos)} todos; {MOST_TODOS} is the limit. Use fewer, larger steps."
            raise ToolRefused(ToolError(tool=self.name, reason="invalid_arguments", message=message))
        done = sum(todo.done for todo in todos)
        listed = "\n".join(f"{todo.id}: {todo.text}{' (done)' if todo.done else ''}" for todo in todos)
        summary = f"{counted(len(todos), 'todo')}, {done} done"
        return Outcome(summary, listed, events=(TodosChanged(todos=tuple(todos)),))


class AskUser(Tool[AskArguments]):
    name = "ask_user"
    description = "Ask the user when only they can decide."
    action = "ask"
    arguments = AskArguments

    def about(self, arguments: AskArguments) -> About:
        return About()

    def summary(self, arguments: AskArguments, work: Work) -> str:
        return " ".join(arguments.question.split())

    def question(self, arguments: AskArguments) -> Question:
        return Question(arguments.question, arguments.options)

    async def run(self, arguments: AskArguments, work: Work) -> Outcome:
        return Outcome("answered", work.answer)


def merged(todos: list[Todo], items: tuple[TodoItem, ...]) -> list[Todo]:
    """The list with new todos added and old ones reworded; none is dropped, and no state changes."""
    result = {todo.id: todo for todo in todos}
    for item in items:
        same_text = next((todo for todo in result.values() if todo.text == item.text), None)
        known = result.get(item.id) or same_text
        if known:
            result[known.id] = known.model_copy(update={"text": item.text})
        else:
            new = item.id if OWN_ID.fullmatch(item.id) else _free_id(result)
            result[new] = Todo(id=new, text=item.text)
    return list(result.values())


def _free_id(taken: dict[str, Todo]) -> str:
    number = len(taken) + 1
    while f"t{number}" in taken:
        number += 1
    return f"t{number}"
