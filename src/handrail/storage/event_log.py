"""The event log: hash-chained streams, inbox, partial text and snapshots in one database."""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from handrail.protocol.errors import LostHold, StorageDamaged, StorageProblem, WrongSequence
from handrail.storage.blobs import BlobStore, DamagedBlob, read_blob, store_blobs
from handrail.storage.change_journal import (
    NO_STEPS,
    JournalSteps,
    Leftovers,
    OpenChange,
    Outcome,
    write_steps,
)
from handrail.storage.log_database import ExactText, LogDatabase, exact_text
from handrail.storage.log_file import LogFile
from handrail.storage.request_bytes import PieceChain, read_chain

RAW = "#raw"
"""The kind of partial text that has the bytes of an answer, one character a byte, under the request's id.

It is kept in a stream of its own, so that followers do not read past it; no session's id has a `#`.
"""
ALL = 2**62
PAGE_ROWS = 1000
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

    def __init__(self, folder: Path, database: LogDatabase | None = None) -> None:
        """`folder` has what belongs to this machine; without a `database`, the log is a file in it."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self.database: LogDatabase = database or LogFile(folder)
        self.notices = self.database.notices
        self.listeners: list[Callable[[], None]] = []
        self.leftover = Leftovers()
        self.requests = PieceChain()
        self.contents = BlobStore(self.database)

    def another(self) -> "Log":
        """The same log over a connection of its own, for another thread."""
        return Log(self.folder, self.database.another())

    def close(self) -> None:
        if self.leftover.traced:
            with suppress(StorageProblem), self.database.transaction():
                self.leftover.write(self.database)
        self.database.close()

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
        db = self.database
        with db.transaction(stream):
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
                db.execute(
                    "DELETE FROM partials WHERE stream IN (?, ?) AND message = ?",
                    (stream, stream + RAW, message),
                )
            store_blobs(db, blobs, now)
            write_steps(db, stream, steps)
            self.leftover.write(db)
        self.leftover.noted()
        self._tell()
        return written

    def read(self, stream: str, after: int = 0, limit: int = -1) -> list[Row]:
        """Rows after a sequence number, each checked against the one before it."""
        head = self._head(stream)  # first: the stream can only grow meanwhile
        found = self.database.rows(
            "SELECT stream, seq, epoch, at, version, type, data, hash FROM events"
            " WHERE stream = ? AND seq >= ? ORDER BY seq LIMIT ?",
            (stream, after, ALL if limit < 0 else limit + (after > 0)),
        )
        rows = [Row(*fields) for fields in found]
        before = first_hash(stream)
        if after:
            if not rows or rows[0].seq != after:
                raise self._damaged(f"Event {after} of {stream} is missing in {self.database.place}.")
            before = rows.pop(0).hash
        for number, row in enumerate(rows, start=after + 1):
            if (checked := checked_hash(row, stream, number, before)) is None:
                place = self.database.place
                raise self._damaged(f"Event {number} of {stream} in {place} is not as it was written.")
            before = checked
        reached = after + len(rows)
        if reached < head.seq and (limit < 0 or len(rows) < limit):
            place = self.database.place
            raise self._damaged(f"{stream} ends at {reached} of {head.seq} events in {place}.")
        return rows

    def head(self, stream: str) -> StreamHead | None:
        if not stream.isprintable():  # no stream has such a name, and a database may refuse to look for it
            return None
        head = self._head(stream)
        return head if head.seq else None

    def heads(self, prefix: str) -> list[StreamHead]:
        """All streams whose name has this prefix, last touched first."""
        found = self.database.rows(
            "SELECT stream, head, hash, epoch, touched, label FROM streams"
            " WHERE stream >= ? AND stream < ? AND head > 0 ORDER BY touched DESC, stream DESC",
            (prefix, prefix + "\U0010ffff"),
        )
        return [StreamHead(*fields) for fields in found]

    def raise_epoch(self, stream: str) -> int:
        """The epoch of a new holder: from now on, appends with an older one fail."""
        with self.database.transaction(stream):
            head = self._head(stream)
            self.database.execute(
                "INSERT INTO streams VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (stream) DO UPDATE SET"
                " epoch = excluded.epoch",
                (stream, head.seq, head.hash, head.epoch + 1, head.touched, head.label),
            )
        return head.epoch + 1

    def set_label(self, stream: str, label: str) -> None:
        with self.database.transaction():
            self.database.execute("UPDATE streams SET label = ? WHERE stream = ?", (label, stream))

    # Inbox

    def put(self, stream: str, data: str) -> int:
        """Put a command into the inbox of the stream's holder; returns its id."""
        with self.database.transaction():
            [(number,)] = self.database.rows(
                "INSERT INTO inbox (stream, data) VALUES (?, ?) RETURNING id", (stream, data)
            )
        self._tell()
        return int(number)

    def waiting(self, stream: str) -> list[InboxCommand]:
        """Commands in the inbox, oldest first."""
        found = self.database.rows("SELECT id, data FROM inbox WHERE stream = ? ORDER BY id", (stream,))
        return [InboxCommand(*fields) for fields in found]

    # Partial texts

    def add_partials(self, stream: str, partials: Iterable[PartialText]) -> None:
        """Keep streamed text until its event is written."""
        with self.database.transaction():
            self._keep_partials(stream, partials)

    def _keep_partials(self, stream: str, partials: Iterable[PartialText]) -> None:
        self.database.executemany(
            "INSERT INTO partials VALUES (?, ?, ?, ?, ?) ON CONFLICT (stream, message, kind, start)"
            " DO UPDATE SET text = excluded.text",
            [
                (stream + RAW if kind == RAW else stream, message, kind, start, ExactText(text))
                for message, kind, start, text in partials
            ],
        )

    def received(self, stream: str) -> dict[str, bytes]:
        """The bytes of answers that have not ended, as far as they are stored, by the id of the request."""
        found: dict[str, bytes] = {}
        for request, text in self.database.rows(
            "SELECT message, text FROM partials WHERE stream = ? ORDER BY message, start", (stream + RAW,)
        ):
            found[request] = found.get(request, b"") + exact_text(text).encode("latin-1")
        return found

    def partials(
        self, stream: str, shown: Mapping[tuple[str, str], int] = NOTHING_SHOWN
    ) -> list[PartialText]:
        """Streamed text that is not in an event yet, by message and offset.

        `shown` has the number of characters of a message and kind that the caller has: only the part with the
        last of them, and those after it, are read.
        """
        found: list[PartialText] = []
        for key in self._partial_keys(stream):
            rows = self.database.rows(
                "SELECT message, kind, start, text FROM partials"
                " WHERE stream = ? AND message = ? AND kind = ? AND start >= coalesce("
                "(SELECT max(start) FROM partials"
                " WHERE stream = ? AND message = ? AND kind = ? AND start < ?), 0) ORDER BY start",
                (stream, *key, stream, *key, shown.get(key, 0)),
            )
            found += (
                PartialText(message, kind, start, exact_text(text)) for message, kind, start, text in rows
            )
        return found

    def _partial_keys(self, stream: str) -> Iterator[tuple[str, str]]:
        key = ("", "")
        while rows := self.database.rows(
            "SELECT message, kind FROM partials WHERE stream = ? AND (message, kind) > (?, ?)"
            " ORDER BY message, kind LIMIT 1",
            (stream, *key),
        ):
            key = (rows[0][0], rows[0][1])
            yield key

    # Blobs

    def keep(self, blob: bytes) -> None:
        """Store bytes that a command will refer to."""
        with self.database.transaction():
            store_blobs(self.database, [blob], time.time_ns() // 1_000_000)

    def blob(self, sha256: str) -> bytes | None:
        try:
            return read_blob(self.database, sha256)
        except DamagedBlob as error:
            self.database.mark_damaged()
            message = f"A stored content in {self.database.place} is damaged ({sha256[:12]})."
            raise StorageDamaged(message) from error

    def request(self, body: str) -> bytes | None:
        """The bytes of a request by its `body`; None if a part of them is no longer stored."""
        return read_chain(self.blob, body)

    def of_types(self, types: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Stream and data of all events of some types, without checking hashes: for counting only."""
        return ((stream, data) for stream, _, data in self.dated(types))

    def dated(self, types: Sequence[str]) -> Iterator[tuple[str, float, str]]:
        """The same with the time of each, in seconds; in the order in which they were written."""
        marks, last = ", ".join("?" * len(types)), 0
        while rows := self.database.rows(
            f"SELECT rowid, stream, at, data FROM events WHERE rowid > ? AND type IN ({marks})"
            " ORDER BY rowid LIMIT ?",
            (last, *types, PAGE_ROWS),
        ):
            yield from ((stream, at / 1000, data) for _, stream, at, data in rows)
            last = rows[-1][0]

    # The journal of change sets

    def begun(self) -> list[OpenChange]:
        """Change sets in files of this machine whose session has not recorded the outcome, oldest first."""
        return self._journal(f"{self.database.own}journal")

    def begun_anywhere(self) -> list[OpenChange]:
        """The same with those of other machines that share the log."""
        return self._journal("journal")

    def _journal(self, table: str) -> list[OpenChange]:
        rows = self.database.rows(f"SELECT change, stream, data, outcome, why FROM {table} ORDER BY change")
        return [OpenChange(*row) for row in rows]

    def settle(self, change: str, outcome: Outcome, why: str) -> None:
        """Keep the outcome of a change set until its session records it."""
        with self.database.transaction():
            self.database.execute(
                "UPDATE journal SET outcome = ?, why = ? WHERE change = ?", (outcome, why, change)
            )

    def leftovers(self) -> list[tuple[str, str]]:
        """Applied change sets that may still have temporary files here: id and data."""
        return self.database.rows(f"SELECT change, data FROM {self.database.own}leftovers ORDER BY change")

    # Snapshots

    def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        digest = hashlib.sha256(snapshot.data.encode()).hexdigest()
        with self.database.transaction():
            self.database.execute(
                "INSERT INTO snapshots VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (stream) DO UPDATE SET"
                " version = excluded.version, seq = excluded.seq, hash = excluded.hash,"
                " data = excluded.data, sha256 = excluded.sha256",
                (stream, *snapshot, digest),
            )

    def snapshot(self, stream: str, version: int) -> Snapshot | None:
        """The stream's snapshot, if it is undamaged, of this version and fits the stream's events."""
        rows = self.database.rows(
            "SELECT s.version, s.seq, s.hash, s.data, s.sha256 FROM snapshots s JOIN events e"
            " ON e.stream = s.stream AND e.seq = s.seq AND e.hash = s.hash"
            " WHERE s.stream = ? AND s.version = ?",
            (stream, version),
        )
        if not rows or hashlib.sha256(rows[0][3].encode()).hexdigest() != rows[0][4]:
            return None
        return Snapshot(*rows[0][:4])

    # Notice of change

    def data_version(self) -> int:
        """A number that changes when another process has committed."""
        return self.database.data_version()

    def recoveries(self) -> list[tuple[int, str]]:
        """Every repair of this log: when (milliseconds), and its report."""
        return self.database.rows("SELECT at, report FROM recoveries ORDER BY at")

    # Inside

    def _tell(self) -> None:
        for listener in list(self.listeners):
            listener()

    def _head(self, stream: str) -> StreamHead:
        found = self.database.rows(
            "SELECT stream, head, hash, epoch, touched, label FROM streams WHERE stream = ?", (stream,)
        )
        return StreamHead(*found[0]) if found else StreamHead(stream, 0, first_hash(stream), 0, 0, "")

    def _damaged(self, what: str) -> StorageDamaged:
        self.database.mark_damaged()
        return StorageDamaged(f"{what} {self.database.repair}")


def checked_hash(row: Row, stream: str, number: int, before: bytes) -> bytes | None:
    """The row's hash; None if the row is not as it was written."""
    fits = row.stream == stream and row.seq == number and row.hash == row_hash(before, row)
    return row.hash if fits else None
