"""The journal: change sets that have begun and whose outcome is not yet recorded.

A row is written in the transaction of its event, and deleted in that of its outcome. An applied set whose
temporary files are not yet removed for good stays in `leftovers`.
"""

from collections.abc import Collection, Iterable
from typing import Literal, NamedTuple

from handrail.storage.log_database import LogDatabase

Outcome = Literal["", "applied", "abandoned"]


class OpenChange(NamedTuple):
    change: str
    stream: str
    data: str
    outcome: Outcome = ""
    """How recovery settled it; the session that began it has not recorded that yet."""
    why: str = ""


class JournalSteps(NamedTuple):
    begun: tuple[tuple[str, str], ...] = ()
    """Change sets that begin: id and data."""
    applied: tuple[str, ...] = ()
    abandoned: tuple[str, ...] = ()
    noted: tuple[tuple[str, str], ...] = ()
    """Change sets that are already on disk, as after a command, but not yet traced: id and data."""


NO_STEPS = JournalSteps()


def write_steps(db: LogDatabase, stream: str, steps: JournalSteps) -> None:
    """Begin and end change sets; within a transaction."""
    for change, data in steps.begun:
        db.execute(
            "INSERT INTO journal VALUES (?, ?, ?, '', '') ON CONFLICT (change) DO UPDATE SET"
            " stream = excluded.stream, data = excluded.data, outcome = '', why = ''",
            (change, stream, data),
        )
    for change in steps.applied:  # what is left over lies where the files are
        db.execute(
            f"INSERT INTO leftovers SELECT change, data FROM {db.own}journal WHERE change = ?"
            " ON CONFLICT (change) DO UPDATE SET data = excluded.data",
            (change,),
        )
    db.executemany(
        "INSERT INTO leftovers VALUES (?, ?) ON CONFLICT (change) DO UPDATE SET data = excluded.data",
        steps.noted,
    )
    for change in (*steps.applied, *steps.abandoned):
        db.execute("DELETE FROM journal WHERE change = ?", (change,))


class Leftovers:
    """Leftovers that this process has removed; they are forgotten once that would survive a power cut."""

    def __init__(self) -> None:
        self.gone: list[str] = []
        """Change sets that the next commit forgets."""
        self.traced: dict[str, str] = {}
        """Change sets whose trace lines are written, with the data that the next commit keeps."""
        self._unsynced: dict[str, set[str]] = {}

    def write(self, db: LogDatabase) -> None:
        """Forget and update what is to be; within a transaction, after which `noted` is called."""
        if self.gone:
            db.executemany("DELETE FROM leftovers WHERE change = ?", [(change,) for change in self.gone])
        rows = [(data, change) for change, data in self.traced.items()]
        if rows:
            db.executemany("UPDATE leftovers SET data = ? WHERE change = ?", rows)

    def noted(self) -> None:
        self.gone.clear()
        self.traced.clear()

    def cleared(self, change: str, folders: Iterable[str]) -> None:
        """The leftovers of a change set in these folders are removed, but not yet synced."""
        self._unsynced[change] = set(folders)

    def synced(self, folders: Collection[str]) -> None:
        for change in list(self._unsynced):
            self._unsynced[change].difference_update(folders)
            if not self._unsynced[change]:
                del self._unsynced[change]
                self.gone.append(change)

    @property
    def unsynced(self) -> set[str]:
        return set().union(*self._unsynced.values()) if self._unsynced else set()

    def __len__(self) -> int:
        return len(self._unsynced)
