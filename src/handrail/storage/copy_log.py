"""Copy a whole log into an empty database, byte for byte; a copy that was killed is continued by the next."""

import time
from contextlib import ExitStack
from typing import NamedTuple

from handrail.protocol.errors import StorageBusy, StorageDamaged, UsageProblem
from handrail.storage.blobs import batched
from handrail.storage.event_log import Log, StreamHead
from handrail.storage.log_database import ExactText, exact_text

PAGE_EVENTS = 500
PAGE_CONTENTS = 50


class CopiedLog(NamedTuple):
    streams: int
    events: int
    """All that are there now, also those of an earlier copy that was killed."""
    contents: int


def copy_log(source: Log, target: Log) -> CopiedLog:
    """Copy everything; raises StorageBusy while a session runs, UsageProblem where the target has others."""
    with ExitStack() as held:
        for head in source.heads(""):
            if (lock := source.database.try_hold(head.stream)) is None:
                raise StorageBusy(f"{head.stream} is open in another Handrail. Close it, then try again.")
            held.callback(lock.release)
        heads = source.heads("")
        known = {head.stream: head for head in heads}
        for there in target.heads(""):
            _check_same_past(source, known.get(there.stream), there, target.database.place)
        contents = _copy_contents(source, target)
        for head in heads:
            _copy_stream(source, target, head)
        _copy_rest(source, target)
        for head in heads:
            if not (copied := target.read(head.stream)) or copied[-1].hash != head.hash:
                raise StorageDamaged(f"The copy of {head.stream} is not what was copied. Nothing was moved.")
        if source.heads("") != heads:
            raise StorageBusy("Another Handrail wrote to the log meanwhile. Close it, then try again.")
    return CopiedLog(len(heads), sum(head.seq for head in heads), contents)


def _check_same_past(source: Log, ours: StreamHead | None, there: StreamHead, place: str) -> None:
    if ours and there.seq <= ours.seq:
        [row] = source.read(ours.stream, after=there.seq - 1, limit=1)
        if row.hash == there.hash:
            return
    raise UsageProblem(
        f"{place} has events of its own ({there.stream}). Copy to a workspace that is empty: set "
        "database.workspace to another name."
    )


def _copy_contents(source: Log, target: Log) -> int:
    ours, theirs = source.contents.sizes(), target.contents.sizes()
    now = time.time_ns() // 1_000_000
    for names in batched(sorted(ours.keys() - theirs.keys()), PAGE_CONTENTS):
        marks = ", ".join("?" * len(names))
        found = source.database.rows(f"SELECT sha256, size, data FROM blobs WHERE sha256 IN ({marks})", names)
        with target.database.transaction():
            target.database.executemany(
                "INSERT INTO blobs VALUES (?, ?, ?, ?) ON CONFLICT (sha256) DO NOTHING",
                [(sha256, size, now, data) for sha256, size, data in found],
            )
    return len(ours)


def _copy_stream(source: Log, target: Log, head: StreamHead) -> None:
    there = target.head(head.stream)
    after = there.seq if there else 0
    while rows := source.read(head.stream, after=after, limit=PAGE_EVENTS):
        last = rows[-1]
        with target.database.transaction(head.stream):
            target.database.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            label = head.label if last.seq == head.seq else ""
            target.database.execute(
                "INSERT INTO streams VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (stream) DO UPDATE SET"
                " head = excluded.head, hash = excluded.hash, epoch = excluded.epoch,"
                " touched = excluded.touched, label = excluded.label",
                (head.stream, last.seq, last.hash, head.epoch, head.touched, label),
            )
        after = last.seq


def _copy_rest(source: Log, target: Log) -> None:
    """What is not in streams, in one transaction; it replaces what an earlier copy has written."""
    read, there = source.database.rows, target.database
    partials = [
        (*fields, ExactText(exact_text(text)))
        for *fields, text in read("SELECT stream, message, kind, start, text FROM partials")
    ]
    tables = {
        "inbox (stream, data)": read("SELECT stream, data FROM inbox ORDER BY id"),
        "partials (stream, message, kind, start, text)": partials,
        "journal (change, stream, data, outcome, why)": read(
            "SELECT change, stream, data, outcome, why FROM journal"
        ),
        "leftovers (change, data)": read("SELECT change, data FROM leftovers"),
        "recoveries (at, report)": read("SELECT at, report FROM recoveries ORDER BY at"),
    }
    with there.transaction():
        for columns, rows in tables.items():
            marks = ", ".join("?" * (columns.count(",") + 1))
            there.execute(f"DELETE FROM {columns.partition(' ')[0]}")
            there.executemany(f"INSERT INTO {columns} VALUES ({marks})", rows)
