"""The journal: change sets that were begun, of all sessions of the workspace, until their outcome is known.

A row is written in the transaction of its event, and goes with that of its outcome. What an applied set still
has to clean up beside the files stays in `leftovers`.
"""

import sqlite3
from collections.abc import Collection, Iterable
from typing import Literal, NamedTuple

Outcome = Literal["", "applied", "abandoned"]


class Begun(NamedTuple):
    """A change set in the journal."""

    change: str
    stream: str
    data: str
    outcome: Outcome = ""
    """What the files were found to be, by whoever looked; the session that began it has yet to be told."""
    why: str = ""


class Steps(NamedTuple):
    """What a commit does to the journal."""

    begun: tuple[tuple[str, str], ...] = ()
    """Change sets that begin: id and data."""
    applied: tuple[str, ...] = ()
    abandoned: tuple[str, ...] = ()
    noted: tuple[tuple[str, str], ...] = ()
    """Change sets that others had made already, of which something is still to be written: id and data."""


NO_STEPS = Steps()


def take_steps(db: sqlite3.Connection, stream: str, steps: Steps) -> None:
    """Within a transaction: begin and end change sets."""
    for change, data in steps.begun:
        db.execute("INSERT OR REPLACE INTO journal VALUES (?, ?, ?, '', '')", (change, stream, data))
    for change in steps.applied:
        db.execute(
            "INSERT OR REPLACE INTO leftovers SELECT change, data FROM journal WHERE change = ?", (change,)
        )
    db.executemany("INSERT OR REPLACE INTO leftovers VALUES (?, ?)", steps.noted)
    for change in (*steps.applied, *steps.abandoned):
        db.execute("DELETE FROM journal WHERE change = ?", (change,))


def begun(db: sqlite3.Connection) -> list[Begun]:
    """All change sets whose outcome their session does not know, oldest first."""
    rows = db.execute("SELECT change, stream, data, outcome, why FROM journal ORDER BY change")
    return [Begun(*row) for row in rows]


def settle(db: sqlite3.Connection, change: str, outcome: Outcome, why: str) -> None:
    """Note what the files were found to be, for the session to be told."""
    db.execute("UPDATE journal SET outcome = ?, why = ? WHERE change = ?", (outcome, why, change))


def leftovers(db: sqlite3.Connection) -> list[tuple[str, str]]:
    """Applied change sets beside whose files something may still lie: id and data."""
    return list(db.execute("SELECT change, data FROM leftovers ORDER BY change"))


def note_leftovers(db: sqlite3.Connection, left: "Leftovers") -> None:
    """Within a transaction: forget what is cleared away, and keep of the rest what is still to be done."""
    db.executemany("DELETE FROM leftovers WHERE change = ?", [(change,) for change in left.gone])
    rows = [(data, change) for change, data in left.traced.items()]
    db.executemany("UPDATE leftovers SET data = ? WHERE change = ?", rows)


class Leftovers:
    """Which of them this process has cleared away: forgotten once that would survive a power cut."""

    def __init__(self) -> None:
        self.gone: list[str] = []
        """To be forgotten by the next commit."""
        self.traced: dict[str, str] = {}
        """Those whose lines in the trace are written: what is to be kept of them by the next commit."""
        self._unsynced: dict[str, set[str]] = {}

    def noted(self) -> None:
        """A commit has taken up all that was to be noted."""
        self.gone.clear()
        self.traced.clear()

    def cleared(self, change: str, folders: Iterable[str]) -> None:
        """Nothing lies in these folders any more, as far as one can see."""
        self._unsynced[change] = set(folders)

    def synced(self, folders: Collection[str]) -> None:
        """What was seen of these folders is now on the disk."""
        for change in list(self._unsynced):
            self._unsynced[change].difference_update(folders)
            if not self._unsynced[change]:
                del self._unsynced[change]
                self.gone.append(change)

    @property
    def unsynced(self) -> set[str]:
        """Folders that wait for it."""
        return set().union(*self._unsynced.values()) if self._unsynced else set()

    def __len__(self) -> int:
        return len(self._unsynced)
