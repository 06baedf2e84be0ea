"""What changes from turn to turn, said once with the user's message: all before it stays the same bytes."""

import time
from collections.abc import Sequence

from handrail.sessions.state import State

SHOWN_TODOS = 20
TODO_CAP = 100


def situation(state: State, now: float, *, dated: bool, done: Sequence[str] = ()) -> str:
    """A short block: date and mode when new and wanted, open todos, commands in the background.

    `done` is what was changed last for the active intent.
    """
    lines = []
    if state.turns == 0 and dated:
        lines.append(f"Date: {time.strftime('%Y-%m-%d', time.localtime(now))}. Mode: {state.mode}.")
    elif dated and state.mode_said != state.mode:
        lines.append(f"Mode is now: {state.mode}.")
    todos = [todo for todo in state.todos if not todo.done]
    if todos:
        listed = "; ".join(f"{todo.id}: {_short(todo.text)}" for todo in todos[:SHOWN_TODOS])
        more = f"; and {len(todos) - SHOWN_TODOS} more" if len(todos) > SHOWN_TODOS else ""
        lines.append(f"Open todos: {listed}{more}.")
    if done:
        lines.append(f"Changed last for {state.intent}: {'; '.join(done)}.")
    lines += [
        f"Background command {each.id} runs: {_short(each.command)}"
        for each in state.background.running.values()
    ]
    lines += [
        f"Background command {each.background_id} has ended, {each.summary}: {_short(each.command)}"
        for each in state.background.ended
    ]
    return "[" + "\n".join(lines) + "]" if lines else ""


def _short(text: str) -> str:
    return text if len(text) <= TODO_CAP else f"{text[: TODO_CAP - 1]}…"
