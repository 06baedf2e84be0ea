"""What changes from turn to turn, said once with the user's message: all before it stays the same bytes."""

import time

from handrail.sessions.state import State
from handrail.workspace.files import TOO_LARGE, Workspace

SHOWN_FILES = 20
SHOWN_TODOS = 20
TODO_CAP = 100


def situation(state: State, workspace: Workspace, now: float, *, dated: bool) -> str:
    """A short block: date and mode when new and wanted, files changed since it saw them, open todos."""
    lines = []
    if state.turns == 0 and dated:
        lines.append(f"Date: {time.strftime('%Y-%m-%d', time.localtime(now))}. Mode: {state.mode}.")
    elif dated and state.mode_said != state.mode:
        lines.append(f"Mode is now: {state.mode}.")
    changed = changed_files(state, workspace)
    if changed:
        more = f", and {len(changed) - SHOWN_FILES} more" if len(changed) > SHOWN_FILES else ""
        names = ", ".join(changed[:SHOWN_FILES])
        lines.append(
            f"Changed by somebody else since you saw them (read again before editing): {names}{more}."
        )
    todos = [todo for todo in state.todos if not todo.done]
    if todos:
        listed = "; ".join(f"{todo.id}: {_short(todo.text)}" for todo in todos[:SHOWN_TODOS])
        more = f"; and {len(todos) - SHOWN_TODOS} more" if len(todos) > SHOWN_TODOS else ""
        lines.append(f"Open todos: {listed}{more}.")
    return "[" + "\n".join(lines) + "]" if lines else ""


def _short(text: str) -> str:
    return text if len(text) <= TODO_CAP else f"{text[: TODO_CAP - 1]}…"


def changed_files(state: State, workspace: Workspace, most: int = 50) -> list[str]:
    """Files whose content is not what the model was shown last, among the latest it saw."""
    found = []
    for path, seen in list(state.files.files.items())[-most:]:
        current = workspace.sha256(path)
        if current == TOO_LARGE and not seen.whole:
            continue  # it was large when a part of it was read, and nothing can be edited in it
        if current != seen.sha256:
            found.append(path if current else f"{path} (deleted)")
    return found
