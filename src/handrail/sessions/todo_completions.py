"""Which change set completed which todo: taking it back opens the todo again, redoing completes it."""

from collections.abc import Collection, Sequence

from handrail.protocol.events import ChangePrepared
from handrail.protocol.values import Todo
from handrail.sessions.fold import Fold

REMEMBERED_CHANGES = 200


class Completions(Fold):
    completed: dict[str, tuple[str, ...]] = {}
    """{change set: todos that it completed}, the latest last."""
    reopened: dict[str, tuple[str, ...]] = {}
    """{change set that took others back: todos that it opened again}"""

    def applied(self, change: ChangePrepared, todos: Sequence[Todo]) -> list[Todo]:
        """The list as it is after a change set was applied."""
        done = [*change.todos, *_of(self.reopened, change.takes_back)]
        undone = _of(self.completed, change.takes_back)
        done = [todo.id for todo in todos if todo.id in done and not todo.done]
        undone = [todo.id for todo in todos if todo.id in undone and todo.done]
        _remember(self.completed, change.change_id, done)
        _remember(self.reopened, change.change_id, undone)
        return [
            todo.model_copy(update={"done": todo.id in done}) if todo.id in (*done, *undone) else todo
            for todo in todos
        ]


def _of(known: dict[str, tuple[str, ...]], changes: Collection[str]) -> list[str]:
    return [todo for change in changes for todo in known.get(change, ())]


def _remember(known: dict[str, tuple[str, ...]], change: str, todos: list[str]) -> None:
    if todos:
        known[change] = tuple(todos)
    while len(known) > REMEMBERED_CHANGES:
        del known[next(iter(known))]
