"""What the log needs of a database, SQLite or PostgreSQL; its SQL is written once, for both."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class ExactText(str):
    """Text with characters that PostgreSQL's own text cannot hold: NUL, and halves of surrogate pairs."""

    __slots__ = ()


def exact_text(stored: str | bytes) -> str:
    """The text again, as it comes out of the database."""
    return stored.decode("utf-8", "surrogatepass") if isinstance(stored, bytes) else stored


class HeldName(Protocol):
    """A lock on a name in the log. It ends with its process at the latest."""

    def release(self) -> None: ...


class LogDatabase(Protocol):
    """Values are marked by `?`. Errors are those of storage; each call has a deadline."""

    place: str
    """Where it is, for messages: never with a password."""
    repair: str
    """What to do if an event is not as it was written."""
    own: str
    """What comes before `journal` and `leftovers` to name only the rows about the files of this machine."""
    notices: list[str]

    def rows(self, query: str, values: Sequence[Any] = (), /) -> list[Any]:
        """All rows that a query finds."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> int:
        """Run a statement within a transaction; returns the number of rows that it changed."""

    def executemany(self, statement: str, values: Iterable[Sequence[Any]], /) -> None: ...

    def transaction(self, stream: str = "", /) -> AbstractContextManager[None]:
        """All or nothing, durable when it ends. Nobody else appends to `stream` meanwhile."""

    def data_version(self) -> int:
        """A number that changes when another process has committed; it is cheap to ask, and never fails for
        a lost connection."""

    def try_hold(self, name: str, /) -> HeldName | None:
        """Lock a name; None while it is locked, by this process too."""

    def is_held(self, name: str, /) -> bool: ...

    def another(self) -> "LogDatabase":
        """The same database over a connection of its own, for another thread."""

    def stored_bytes(self) -> int:
        """What the whole log takes on the disk."""

    def used_bytes(self) -> int:
        """What has to stay below the limit for stored contents."""

    def unsettled_elsewhere(self, stream: str, /) -> list[tuple[str, str]]:
        """Change sets of a stream that only another machine can finish or revert: id, and where."""

    def structural_problems(self) -> list[str]:
        """What the database's own check finds; slow for a large one."""

    def mark_damaged(self) -> None:
        """Have the next start repair it, if it can be repaired."""

    def close(self) -> None: ...
