"""A process that changes files, in a loop until it is killed or as often as it is told.

python applying_child.py LOG ROOT SESSION TIMES      add one's own line to two files, so many times
"""

import sys
from collections.abc import Callable
from pathlib import Path

from handrail.changes.apply import apply
from handrail.changes.change_set import ChangeSet, FileEdit, Origin
from handrail.changes.crash_recovery import recover
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import SessionStarted
from handrail.sessions.session import Session
from handrail.storage.log_repair import open_log
from handrail.workspace.files import Workspace

FILES = ("a.txt", "b.txt", "deep/c.txt", "deep/d.txt")
MADE = "made/new.txt"
"""Made by every other set, and deleted by the next."""
RACED = ("one.txt", "two.txt")


def opened(folder: Path, root: Path, session_id: str) -> Session:
    session = Session(open_log(folder), session_id).load()
    assert session.try_hold()
    if not session.seq:
        session.append(SessionStarted(session_id=session_id, workspace=str(root), version="0"))
    if told := recover(session, Workspace(root)):
        session.append(*told)
    return session


def text_of(number: int, path: str) -> bytes:
    return f"{path} {number}\n".encode() * 50


def number_in(root: Path) -> int:
    return int((root / FILES[0]).read_text().split()[1])


def sets(session: Session, root: Path, say: Callable[[str], None]) -> None:
    """For ever: all files from one number to the next, together."""
    say("ready")
    while True:
        number = number_in(root)
        edits = [FileEdit(path, "update", text_of(number, path), text_of(number + 1, path)) for path in FILES]
        if number % 2:
            edits.append(FileEdit(MADE, "delete", text_of(number, MADE), None))
        else:
            edits.append(FileEdit(MADE, "create", None, text_of(number + 1, MADE)))
        apply(session, Workspace(root), ChangeSet(tuple(edits)))
        say(str(number + 1))


def race(session: Session, root: Path, times: int) -> None:
    """So many times a line to each file, on the version that was read; a loser is told, and tries again."""
    for number in range(times):
        while True:
            edits = []
            for path in RACED:
                old = (root / path).read_bytes()
                edits.append(FileEdit(path, "update", old, old + f"{session.id} {number}\n".encode()))
            try:
                apply(session, Workspace(root), ChangeSet(tuple(edits), Origin(turn_id=str(number))))
            except PathProblem as problem:
                say(problem.reason)
            else:
                say("applied")
                break


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def forked(words: list[str]) -> None:
    """Change files until it is killed."""
    folder, root, session_id = words
    sets(opened(Path(folder), Path(root), session_id), Path(root), say)


def main(folder: str, root: str, session_id: str, times: str) -> None:
    race(opened(Path(folder), Path(root), session_id), Path(root), int(times))


if __name__ == "__main__":
    main(*sys.argv[1:])
