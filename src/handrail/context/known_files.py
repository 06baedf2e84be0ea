"""Two short tables for the model: the files it knows, and what was done to files of late."""

from collections.abc import Collection, Sequence

from handrail.protocol.values import SHOWN_DIGITS, FileSeen
from handrail.sessions.files_seen import FilesSeen, Operation, SeenFile
from handrail.sessions.state import State

MOST_FILES = 20
MOST_OPERATIONS = 10
FILES = "KNOWN FILES (hash, turn you saw it; * modified since you saw it: read it again before editing)"
OPERATIONS = "RECENT FILE OPERATIONS (newest first)"


def known_files(
    state: State, shown: Sequence[FileSeen], gone: Sequence[str] = (), stale: Collection[str] = ()
) -> str:
    """The tables as they are with a message that shows files; empty where they say nothing new.

    They stay in the conversation, so that they are said again only when something has happened to files.
    """
    before = state.files
    happened = bool(before.history) and before.history[-1].turn >= state.turns
    if not before.files or not (happened or shown or gone or stale):
        return ""
    now = FilesSeen(files=dict(before.files), history=list(before.history))
    now.saw(tuple(shown), state.turns + 1)
    now.gone(tuple(gone), state.turns + 1)
    return "\n".join([*_files(now.files, stale), *_operations(now.history)])


def _files(files: dict[str, SeenFile], stale: Collection[str]) -> list[str]:
    latest = list(reversed(files.items()))
    rows = [
        f"{path} {seen.sha256[:SHOWN_DIGITS]} {seen.turn}{' *' if path in stale else ''}"
        for path, seen in latest[:MOST_FILES]
    ]
    more = len(latest) - MOST_FILES
    return [FILES, *rows, *([f"({more} more, seen earlier)"] if more > 0 else [])] if rows else []


def _operations(history: list[Operation]) -> list[str]:
    if not history:
        return []
    rows = [_row(done) for done in reversed(history[-MOST_OPERATIONS:])]
    cut = ["(older ones left out)"] if len(history) > MOST_OPERATIONS else []
    return [OPERATIONS, *rows, *cut]


def _row(done: Operation) -> str:
    to = f" to {done.destination}" if done.destination else ""
    return f"turn {done.turn}: {done.op} {done.path}{to}{_versions(done)} by {done.by}"


def _versions(done: Operation) -> str:
    before, after = done.before[:SHOWN_DIGITS], done.after[:SHOWN_DIGITS]
    if before == after:
        return f" {after}"
    return f" {before or 'nothing'} -> {after or 'nothing'}"
