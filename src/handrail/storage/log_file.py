"""The log in a file of SQLite: opened by any number of processes, its end checked by the first."""

import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from handrail.config.files import FileLock, is_locked, try_lock
from handrail.protocol.errors import StorageBusy
from handrail.storage.database import (
    BUSY_SECONDS,
    RESTART_HINT,
    connect,
    damage_mark,
    last_commit_in_wal,
    storage_errors,
    transaction,
    truncate_wal,
)


class LogFile:
    """A `LogDatabase` in `log.db`; beside it are the files that stand for locks."""

    own = ""
    repair = RESTART_HINT

    def __init__(self, folder: Path) -> None:
        self.path = folder / "log.db"
        self.place = str(self.path)
        self.notices: list[str] = []
        self._folder = folder
        self._lock = FileLock(folder / "log.lock")
        try:
            alone = self._lock.try_lock()
            expected = last_commit_in_wal(self._wal) if alone else 0
            self.connection = connect(self.path)
            if expected:
                self._compare_wal(expected)
            if not self._lock.wait(BUSY_SECONDS, shared=True):
                raise StorageBusy("Another process is repairing the log. Wait for it, then try again.")
        except BaseException:
            self._lock.release()
            raise

    def close(self) -> None:
        self.connection.close()
        self._lock.release()

    def another(self) -> "LogFile":
        return LogFile(self._folder)

    def rows(self, query: str, values: Sequence[Any] = (), /) -> list[Any]:
        with storage_errors(self.path):
            return self.connection.execute(query, values).fetchall()

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> int:
        return self.connection.execute(statement, values).rowcount

    def executemany(self, statement: str, values: Iterable[Sequence[Any]], /) -> None:
        self.connection.executemany(statement, values)

    @contextmanager
    def transaction(self, _stream: str = "", /) -> Iterator[None]:
        with transaction(self.connection, self.path):  # only one process at a time writes to the file
            yield

    def data_version(self) -> int:
        version: int = self.rows("PRAGMA data_version")[0][0]
        return version

    def try_hold(self, name: str, /) -> FileLock | None:
        place = self._lock_file(name)
        place.parent.mkdir(exist_ok=True, mode=0o700)
        return try_lock(place)

    def is_held(self, name: str, /) -> bool:
        return is_locked(self._lock_file(name), alone=True)

    def stored_bytes(self) -> int:
        return self.path.stat().st_size

    def used_bytes(self) -> int:
        """Bytes of the file that are in use."""
        pages, free, size = (
            self.rows(f"PRAGMA {name}")[0][0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def unsettled_elsewhere(self, _stream: str, /) -> list[tuple[str, str]]:
        return []

    def structural_problems(self) -> list[str]:
        return [f"{self.path}: {line}" for (line,) in self.rows("PRAGMA quick_check(5)") if line != "ok"]

    def mark_damaged(self) -> None:
        damage_mark(self._folder).touch()

    @property
    def _wal(self) -> Path:
        return self.path.with_name("log.db-wal")

    def _lock_file(self, name: str) -> Path:
        return self._folder / "locks" / f"{name.replace(':', '-')}.lock"

    def _compare_wal(self, expected: int) -> None:
        with storage_errors(self.path):
            accepted = self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
            if accepted >= expected:
                truncate_wal(self.connection)
                return
            kept = self._folder / f"damaged-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.db-wal"
            shutil.copyfile(self._wal, kept)
            report = (
                f"The end of the write-ahead log of {self.path} was damaged: {expected - accepted} of its"
                f" {expected} pages are lost, and with them the last events. A copy is kept in {kept}."
            )
            self.connection.execute(
                "INSERT INTO recoveries VALUES (?, ?)", (time.time_ns() // 1_000_000, report)
            )
        self.notices.append(report)
