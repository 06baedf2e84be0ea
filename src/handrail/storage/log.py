"""The event log: streams of hash-chained rows in one SQLite database a workspace."""

import hashlib
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from handrail.protocol.errors import LostHold, StorageDamaged, StorageProblem, WrongSequence
from handrail.storage import blobs, journal
from handrail.storage.contents import Contents
from handrail.storage.database import (
    BUSY_SECONDS,
    NEXT_START,
    FileLock,
    begin_wal_anew,
    connect,
    last_commit_in_wal,
    storage_errors,
    transaction,
)
from handrail.storage.journal import NO_STEPS, Steps


class NewRow(NamedTuple):
    type: str
    version: int
    data: str


class Row(NamedTuple):
    stream: str
    seq: int
    epoch: int
    at: int
    version: int
    type: str
    data: str
    hash: bytes


class Head(NamedTuple):
    stream: str
    seq: int
    hash: bytes
    epoch: int
    touched: int
    label: str


class Waiting(NamedTuple):
    """A command in the inbox."""

    id: int
    data: str


class Partial(NamedTuple):
    message: str
    kind: str
    start: int
    text: str


class Snapshot(NamedTuple):
    version: int
    seq: int
    hash: bytes
    data: str


def first_hash(stream: str) -> bytes:
    """What the first event of a stream is chained to."""
    return hashlib.sha256(b"handrail\0" + stream.encode()).digest()


def row_hash(before: bytes, row: Row) -> bytes:
    """The hash of a row, over its content and the hash before it."""
    return hashlib.sha256(before + "\0".join(map(str, row[:-1])).encode(errors="surrogateescape")).digest()


class Log:
    """One workspace's log, opened by any number of processes."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self.path = folder / "log.db"
        self.notices: list[str] = []
        self.listeners: list[Callable[[], None]] = []
        self.stored_bytes = 0
        """What this process has added to the stored contents."""
        self.leftover = journal.Leftovers()
        self._lock = FileLock(folder / "log.lock")
        try:
            alone = self._lock.try_alone()
            expected = last_commit_in_wal(self._wal) if alone else 0
            self._connection = connect(self.path)
            self.contents = Contents(self._connection, self.path)
            if expected:
                self._compare_wal(expected)
            self._lock.share(time.monotonic() + BUSY_SECONDS)
        except BaseException:
            self._lock.close()
            raise

    def close(self) -> None:
        if self.leftover.traced:
            with suppress(StorageProblem), transaction(self._connection, self.path) as db:
                journal.note_leftovers(db, self.leftover)
        self._connection.close()
        self._lock.close()

    # Events

    def append(
        self,
        stream: str,
        rows: Sequence[NewRow],
        *,
        epoch: int | None = None,
        expected: int | None = None,
        take: Iterable[int] = (),
        blobs: Iterable[bytes] = (),
        settle: Iterable[str] = (),
        steps: Steps = NO_STEPS,
        label: str | None = None,
    ) -> list[Row]:
        """Commit rows at the end of a stream, all or none, and return them.

        In the same transaction `take` removes commands from the inbox, `blobs` are stored, the partial texts
        of the messages in `settle` are dropped, `steps` are taken in the journal, and lists show `label`.
        """
        now = time.time_ns() // 1_000_000
        with transaction(self._connection, self.path) as db:
            head = self._head(stream)
            if epoch is not None and epoch != head.epoch:
                raise LostHold(f"Another process has taken over {stream}. This one stops; follow it there.")
            if expected is not None and expected != head.seq:
                raise WrongSequence(f"{stream} is at {head.seq}, not at {expected}: read it again.")
            written: list[Row] = []
            before = head.hash
            for number, new in enumerate(rows, start=head.seq + 1):
                row = Row(stream, number, head.epoch, now, new.version, new.type, new.data, b"")
                before = row_hash(before, row)
                written.append(row._replace(hash=before))
            db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", written)
            shown = head.label if label is None else label
            db.execute(
                "INSERT INTO streams VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (stream) DO UPDATE SET"
                " head = excluded.head, hash = excluded.hash, touched = excluded.touched,"
                " label = excluded.label",
                (stream, head.seq + len(rows), before, head.epoch, now, shown),
            )
            for taken in take:
                db.execute("DELETE FROM inbox WHERE id = ?", (taken,))
            for message in settle:
                db.execute("DELETE FROM partials WHERE stream = ? AND message = ?", (stream, message))
            for blob in blobs:
                self._store_blob(db, blob, now)
            journal.take_steps(db, stream, steps)
            journal.note_leftovers(db, self.leftover)
        self.leftover.noted()
        self._tell()
        return written

    def read(self, stream: str, after: int = 0, limit: int = -1) -> list[Row]:
        """Rows after a sequence number, each checked against the one before it."""
        with storage_errors(self.path):
            head = self._head(stream)  # first: what is appended meanwhile is more than this, never less
            found = self._connection.execute(
                "SELECT stream, seq, epoch, at, version, type, data, hash FROM events"
                " WHERE stream = ? AND seq >= ? ORDER BY seq LIMIT ?",
                (stream, after, limit if limit < 0 else limit + (after > 0)),
            )
            rows = [Row(*fields) for fields in found]
            before = first_hash(stream)
            if after:
                if not rows or rows[0].seq != after:
                    raise StorageDamaged(f"Event {after} of {stream} is missing in {self.path}. {NEXT_START}")
                before = rows.pop(0).hash
            for number, row in enumerate(rows, start=after + 1):
                before = check_row(row, stream, number, before, self.path)
            reached = after + len(rows)
            if reached < head.seq and (limit < 0 or len(rows) < limit):
                raise StorageDamaged(
                    f"{stream} ends at {reached} of {head.seq} events in {self.path}. {NEXT_START}"
                )
        return rows

    def head(self, stream: str) -> Head | None:
        """Where a stream stands; None when nothing was ever appended to it."""
        with storage_errors(self.path):
            head = self._head(stream)
        return head if head.seq else None

    def heads(self, prefix: str) -> list[Head]:
        """All streams whose name starts so, last touched first."""
        with storage_errors(self.path):
            return [
                Head(*fields)
                for fields in self._connection.execute(
                    "SELECT stream, head, hash, epoch, touched, label FROM streams"
                    " WHERE stream >= ? AND stream < ? AND head > 0 ORDER BY touched DESC, stream DESC",
                    (prefix, prefix + "\U0010ffff"),
                )
            ]

    def raise_epoch(self, stream: str) -> int:
        """A new holder's epoch: from now on, appends under an older one fail."""
        with transaction(self._connection, self.path) as db:
            head = self._head(stream)
            db.execute(
                "INSERT INTO streams VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (stream) DO UPDATE SET"
                " epoch = excluded.epoch",
                (stream, head.seq, head.hash, head.epoch + 1, head.touched, head.label),
            )
        return head.epoch + 1

    def set_label(self, stream: str, label: str) -> None:
        """What lists show of a stream."""
        with transaction(self._connection, self.path) as db:
            db.execute("UPDATE streams SET label = ? WHERE stream = ?", (label, stream))

    # Inbox

    def put(self, stream: str, data: str) -> int:
        """Leave a command for the stream's holder."""
        with transaction(self._connection, self.path) as db:
            number = db.execute("INSERT INTO inbox (stream, data) VALUES (?, ?)", (stream, data)).lastrowid
        self._tell()
        return number or 0

    def waiting(self, stream: str) -> list[Waiting]:
        """Commands that nobody has taken yet, oldest first."""
        with storage_errors(self.path):
            found = self._connection.execute(
                "SELECT id, data FROM inbox WHERE stream = ? ORDER BY id", (stream,)
            )
            return [Waiting(*fields) for fields in found]

    # Partial texts

    def add_partials(self, stream: str, partials: Iterable[Partial]) -> None:
        """Keep streamed text until its event is written; never a fact."""
        with transaction(self._connection, self.path) as db:
            db.executemany(
                "INSERT OR REPLACE INTO partials VALUES (?, ?, ?, ?, ?)",
                [(stream, *partial) for partial in partials],
            )
        self._tell()

    def partials(self, stream: str) -> list[Partial]:
        """Streamed text that no event holds yet, in order of its offset within each message."""
        with storage_errors(self.path):
            found = self._connection.execute(
                "SELECT message, kind, start, text FROM partials WHERE stream = ?"
                " ORDER BY message, kind, start",
                (stream,),
            )
            return [Partial(*fields) for fields in found]

    # Blobs

    def keep(self, blob: bytes) -> None:
        """Store bytes that a command is going to speak of."""
        with transaction(self._connection, self.path) as db:
            self._store_blob(db, blob, time.time_ns() // 1_000_000)

    def blob(self, sha256: str) -> bytes | None:
        """The bytes with this hash; None when they are not kept (any more)."""
        with storage_errors(self.path):
            try:
                return blobs.read(self._connection, sha256)
            except blobs.Damaged as error:
                message = f"A stored content in {self.path} is damaged ({sha256[:12]})."
                raise StorageDamaged(message) from error

    def of_types(self, types: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Stream and data of all events of some types, unchecked: for counting, not for facts."""
        with storage_errors(self.path):
            marks = ", ".join("?" * len(types))
            yield from self._connection.execute(
                f"SELECT stream, data FROM events WHERE type IN ({marks})", tuple(types)
            )

    # The journal of change sets

    def begun(self) -> list[journal.Begun]:
        """Change sets of all sessions whose outcome is not known to them, oldest first."""
        with storage_errors(self.path):
            return journal.begun(self._connection)

    def settle(self, change: str, outcome: journal.Outcome, why: str) -> None:
        """Keep what the files of a change set were found to be until its session takes it up."""
        with transaction(self._connection, self.path) as db:
            journal.settle(db, change, outcome, why)

    def leftovers(self) -> list[tuple[str, str]]:
        """Applied change sets beside whose files something may still lie: id and data."""
        with storage_errors(self.path):
            return journal.leftovers(self._connection)

    # Snapshots

    def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        with transaction(self._connection, self.path) as db:
            digest = hashlib.sha256(snapshot.data.encode()).hexdigest()
            db.execute(
                "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?)", (stream, *snapshot, digest)
            )

    def snapshot(self, stream: str, version: int) -> Snapshot | None:
        """The stream's snapshot, if it is whole, of this version and of this stream's past."""
        with storage_errors(self.path):
            found = self._connection.execute(
                "SELECT s.version, s.seq, s.hash, s.data, s.sha256 FROM snapshots s JOIN events e"
                " ON e.stream = s.stream AND e.seq = s.seq AND e.hash = s.hash"
                " WHERE s.stream = ? AND s.version = ?",
                (stream, version),
            ).fetchone()
        if not found or hashlib.sha256(found[3].encode()).hexdigest() != found[4]:
            return None
        return Snapshot(*found[:4])

    # Notice of change

    def data_version(self) -> int:
        """A number that changes when another process has committed."""
        with storage_errors(self.path):
            version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return version

    def recoveries(self) -> list[tuple[int, str]]:
        """Every repair of this log: when (milliseconds), and what was said of it."""
        with storage_errors(self.path):
            return list(self._connection.execute("SELECT at, report FROM recoveries ORDER BY at"))

    def structural_problems(self) -> list[str]:
        """What SQLite itself finds wrong with the file; slow on a large one."""
        with storage_errors(self.path):
            found = self._connection.execute("PRAGMA quick_check(5)").fetchall()
        return [f"{self.path}: {line}" for (line,) in found if line != "ok"]

    # Inside

    @property
    def _wal(self) -> Path:
        return self.path.with_name("log.db-wal")

    def _tell(self) -> None:
        for listener in list(self.listeners):
            listener()

    def _head(self, stream: str) -> Head:
        found = self._connection.execute(
            "SELECT stream, head, hash, epoch, touched, label FROM streams WHERE stream = ?", (stream,)
        ).fetchone()
        return Head(*found) if found else Head(stream, 0, first_hash(stream), 0, 0, "")

    def _store_blob(self, db: sqlite3.Connection, data: bytes, now: int) -> None:
        self.stored_bytes += blobs.store(db, data, now)

    def _compare_wal(self, expected: int) -> None:
        with storage_errors(self.path):
            accepted = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
            if accepted >= expected:
                begin_wal_anew(self._connection)
                return
            kept = self.folder / f"damaged-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.db-wal"
            shutil.copyfile(self._wal, kept)
            report = (
                f"The end of the write-ahead log of {self.path} was damaged: {expected - accepted} of its"
                f" {expected} pages are lost, and with them the last events. A copy is kept in {kept}."
            )
            self._connection.execute(
                "INSERT INTO recoveries VALUES (?, ?)", (time.time_ns() // 1_000_000, report)
            )
        self.notices.append(report)


def check_row(row: Row, stream: str, number: int, before: bytes, path: Path) -> bytes:
    """The row's hash, if row and place are as they were written."""
    if row.stream == stream and row.seq == number and row.hash == (expected := row_hash(before, row)):
        return expected
    raise StorageDamaged(f"Event {number} of {stream} in {path} is not as it was written. {NEXT_START}")
