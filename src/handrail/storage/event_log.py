"""The event log: hash-chained streams, inbox, partial text and snapshots in one database."""

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from handrail.config.files import FileLock
from handrail.protocol.errors import LostHold, StorageBusy, StorageDamaged, StorageProblem, WrongSequence
from handrail.storage.blobs import BlobStore, DamagedBlob, read_blob, store_blob
from handrail.storage.change_journal import (
    NO_STEPS,
    JournalSteps,
    Leftovers,
    OpenChange,
    Outcome,
    write_steps,
)
from handrail.storage.database import (
    BUSY_SECONDS,
    RESTART_HINT,
    connect,
    last_commit_in_wal,
    storage_errors,
    transaction,
    truncate_wal,
)
from handrail.storage.request_bytes import PieceChain, read_chain

RAW = "#raw"
"""The kind of partial text that has the bytes of an answer, one character a byte, under the request's id.

It is kept in a stream of its own, so that followers do not read past it; no session's id has a `#`.
"""
NOTHING_SHOWN: Mapping[tuple[str, str], int] = MappingProxyType({})


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


class StreamHead(NamedTuple):
    stream: str
    seq: int
    hash: bytes
    epoch: int
    touched: int
    label: str


class InboxCommand(NamedTuple):
    id: int
    data: str


class PartialText(NamedTuple):
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
    """The hash that the first event of a stream is chained to."""
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
        self.leftover = Leftovers()
        self.requests = PieceChain()
        self._lock = FileLock(folder / "log.lock")
        try:
            alone = self._lock.try_lock()
            expected = last_commit_in_wal(self._wal) if alone else 0
            self._connection = connect(self.path)
            self.contents = BlobStore(self._connection, self.path)
            if expected:
                self._compare_wal(expected)
            if not self._lock.wait(BUSY_SECONDS, shared=True):
                raise StorageBusy("Another process is repairing the log. Wait for it, then try again.")
        except BaseException:
            self._lock.release()
            raise

    def close(self) -> None:
        if self.leftover.traced:
            with suppress(StorageProblem), transaction(self._connection, self.path) as db:
                self.leftover.write(db)
        self._connection.close()
        self._lock.release()

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
        partials: Iterable[PartialText] = (),
        steps: JournalSteps = NO_STEPS,
        label: str | None = None,
    ) -> list[Row]:
        """Commit rows at the end of a stream, all or none, and return them.

        In the same transaction `take` removes commands from the inbox, `blobs` are stored, the partial texts
        of the messages in `settle` are dropped, `partials` are kept, `steps` are taken in the journal, and
        lists show `label`.
        """
        now = time.time_ns() // 1_000_000
        with transaction(self._connection, self.path) as db:
            head = self._head(stream)
            if epoch is not None and epoch != head.epoch:
                raise LostHold(f"Another process has taken over {stream}. This one stops. Continue there.")
            if expected is not None and expected != head.seq:
                raise WrongSequence(f"{stream} is at {head.seq}, not at {expected}. Read it again.")
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
            self._keep_partials(stream, partials)
            for message in settle:
                for place in (stream, stream + RAW):
                    db.execute("DELETE FROM partials WHERE stream = ? AND message = ?", (place, message))
            for blob in blobs:
                store_blob(db, blob, now)
            write_steps(db, stream, steps)
            self.leftover.write(db)
        self.leftover.noted()
        self._tell()
        return written

    def read(self, stream: str, after: int = 0, limit: int = -1) -> list[Row]:
        """Rows after a sequence number, each checked against the one before it."""
        with storage_errors(self.path):
            head = self._head(stream)  # first: the stream can only grow meanwhile
            found = self._connection.execute(
                "SELECT stream, seq, epoch, at, version, type, data, hash FROM events"
                " WHERE stream = ? AND seq >= ? ORDER BY seq LIMIT ?",
                (stream, after, limit if limit < 0 else limit + (after > 0)),
            )
            rows = [Row(*fields) for fields in found]
            before = first_hash(stream)
            if after:
                if not rows or rows[0].seq != after:
                    missing = f"Event {after} of {stream} is missing in {self.path}."
                    raise StorageDamaged(f"{missing} {RESTART_HINT}")
                before = rows.pop(0).hash
            for number, row in enumerate(rows, start=after + 1):
                before = check_row(row, stream, number, before, self.path)
            reached = after + len(rows)
            if reached < head.seq and (limit < 0 or len(rows) < limit):
                raise StorageDamaged(
                    f"{stream} ends at {reached} of {head.seq} events in {self.path}. {RESTART_HINT}"
                )
        return rows

    def head(self, stream: str) -> StreamHead | None:
        with storage_errors(self.path):
            head = self._head(stream)
        return head if head.seq else None

    def heads(self, prefix: str) -> list[StreamHead]:
        """All streams whose name has this prefix, last touched first."""
        with storage_errors(self.path):
            return [
                StreamHead(*fields)
                for fields in self._connection.execute(
                    "SELECT stream, head, hash, epoch, touched, label FROM streams"
                    " WHERE stream >= ? AND stream < ? AND head > 0 ORDER BY touched DESC, stream DESC",
                    (prefix, prefix + "\U0010ffff"),
                )
            ]

    def raise_epoch(self, stream: str) -> int:
        """The epoch of a new holder: from now on, appends with an older one fail."""
        with transaction(self._connection, self.path) as db:
            head = self._head(stream)
            db.execute(
                "INSERT INTO streams VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (stream) DO UPDATE SET"
                " epoch = excluded.epoch",
                (stream, head.seq, head.hash, head.epoch + 1, head.touched, head.label),
            )
        return head.epoch + 1

    def set_label(self, stream: str, label: str) -> None:
        with transaction(self._connection, self.path) as db:
            db.execute("UPDATE streams SET label = ? WHERE stream = ?", (label, stream))

    # Inbox

    def put(self, stream: str, data: str) -> int:
        """Put a command into the inbox of the stream's holder; returns its id."""
        with transaction(self._connection, self.path) as db:
            number = db.execute("INSERT INTO inbox (stream, data) VALUES (?, ?)", (stream, data)).lastrowid
        self._tell()
        return number or 0

    def waiting(self, stream: str) -> list[InboxCommand]:
        """Commands in the inbox, oldest first."""
        with storage_errors(self.path):
            found = self._connection.execute(
                "SELECT id, data FROM inbox WHERE stream = ? ORDER BY id", (stream,)
            )
            return [InboxCommand(*fields) for fields in found]

    # Partial texts

    def add_partials(self, stream: str, partials: Iterable[PartialText]) -> None:
        """Keep streamed text until its event is written."""
        with transaction(self._connection, self.path):
            self._keep_partials(stream, partials)

    def _keep_partials(self, stream: str, partials: Iterable[PartialText]) -> None:
        self._connection.executemany(
            "INSERT OR REPLACE INTO partials VALUES (?, ?, ?, ?, ?)",
            [(stream + RAW if partial.kind == RAW else stream, *partial) for partial in partials],
        )

    def received(self, stream: str) -> dict[str, bytes]:
        """The bytes of answers that have not ended, as far as they are stored, by the id of the request."""
        found: dict[str, bytes] = {}
        with storage_errors(self.path):
            for request, text in self._connection.execute(
                "SELECT message, text FROM partials WHERE stream = ? ORDER BY message, start",
                (stream + RAW,),
            ):
                found[request] = found.get(request, b"") + text.encode("latin-1")
        return found

    def partials(
        self, stream: str, shown: Mapping[tuple[str, str], int] = NOTHING_SHOWN
    ) -> list[PartialText]:
        """Streamed text that is not in an event yet, by message and offset.

        `shown` has the number of characters of a message and kind that the caller has: only the part with the
        last of them, and those after it, are read.
        """
        found: list[PartialText] = []
        with storage_errors(self.path):
            for key in self._partial_keys(stream):
                rows = self._connection.execute(
                    "SELECT message, kind, start, text FROM partials"
                    " WHERE stream = ?1 AND message = ?2 AND kind = ?3 AND start >= coalesce("
                    "(SELECT max(start) FROM partials"
                    " WHERE stream = ?1 AND message = ?2 AND kind = ?3 AND start < ?4), 0) ORDER BY start",
                    (stream, *key, shown.get(key, 0)),
                )
                found += (PartialText(*fields) for fields in rows)
        return found

    def _partial_keys(self, stream: str) -> Iterator[tuple[str, str]]:
        key = ("", "")
        while row := self._connection.execute(
            "SELECT message, kind FROM partials WHERE stream = ? AND (message, kind) > (?, ?)"
            " ORDER BY message, kind LIMIT 1",
            (stream, *key),
        ).fetchone():
            key = (row[0], row[1])
            yield key

    # Blobs

    def keep(self, blob: bytes) -> None:
        """Store bytes that a command will refer to."""
        with transaction(self._connection, self.path) as db:
            store_blob(db, blob, time.time_ns() // 1_000_000)

    def blob(self, sha256: str) -> bytes | None:
        with storage_errors(self.path):
            try:
                return read_blob(self._connection, sha256)
            except DamagedBlob as error:
                message = f"A stored content in {self.path} is damaged ({sha256[:12]})."
                raise StorageDamaged(message) from error

    def request(self, body: str) -> bytes | None:
        """The bytes of a request by its `body`; None if a part of them is no longer stored."""
        return read_chain(self.blob, body)

    def of_types(self, types: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Stream and data of all events of some types, without checking hashes: for counting only."""
        with storage_errors(self.path):
            marks = ", ".join("?" * len(types))
            yield from self._connection.execute(
                f"SELECT stream, data FROM events WHERE type IN ({marks})", tuple(types)
            )

    def dated(self, types: Sequence[str]) -> Iterator[tuple[str, float, str]]:
        """The same with the time of each, in seconds; in the order in which they were written."""
        with storage_errors(self.path):
            marks = ", ".join("?" * len(types))
            yield from self._connection.execute(
                f"SELECT stream, at / 1000.0, data FROM events WHERE type IN ({marks}) ORDER BY rowid",
                tuple(types),
            )

    # The journal of change sets

    def begun(self) -> list[OpenChange]:
        """Change sets of all sessions whose outcome their session has not recorded, oldest first."""
        with storage_errors(self.path):
            rows = self._connection.execute(
                "SELECT change, stream, data, outcome, why FROM journal ORDER BY change"
            )
            return [OpenChange(*row) for row in rows]

    def settle(self, change: str, outcome: Outcome, why: str) -> None:
        """Keep the outcome of a change set until its session records it."""
        with transaction(self._connection, self.path) as db:
            db.execute("UPDATE journal SET outcome = ?, why = ? WHERE change = ?", (outcome, why, change))

    def leftovers(self) -> list[tuple[str, str]]:
        """Applied change sets that may still have temporary files: id and data."""
        with storage_errors(self.path):
            return list(self._connection.execute("SELECT change, data FROM leftovers ORDER BY change"))

    # Snapshots

    def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        with transaction(self._connection, self.path) as db:
            digest = hashlib.sha256(snapshot.data.encode()).hexdigest()
            db.execute(
                "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?)", (stream, *snapshot, digest)
            )

    def snapshot(self, stream: str, version: int) -> Snapshot | None:
        """The stream's snapshot, if it is undamaged, of this version and fits the stream's events."""
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
        """Every repair of this log: when (milliseconds), and its report."""
        with storage_errors(self.path):
            return list(self._connection.execute("SELECT at, report FROM recoveries ORDER BY at"))

    def structural_problems(self) -> list[str]:
        """What SQLite's own check finds; slow for a large file."""
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

    def _head(self, stream: str) -> StreamHead:
        found = self._connection.execute(
            "SELECT stream, head, hash, epoch, touched, label FROM streams WHERE stream = ?", (stream,)
        ).fetchone()
        return StreamHead(*found) if found else StreamHead(stream, 0, first_hash(stream), 0, 0, "")

    def _compare_wal(self, expected: int) -> None:
        with storage_errors(self.path):
            accepted = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
            if accepted >= expected:
                truncate_wal(self._connection)
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
    """The row's hash; raises StorageDamaged if the row is not as it was written."""
    if row.stream == stream and row.seq == number and row.hash == (expected := row_hash(before, row)):
        return expected
    raise StorageDamaged(f"Event {number} of {stream} in {path} is not as it was written. {RESTART_HINT}")
