"""Repair of a damaged database: the file is kept, the longest valid prefix of each stream lives on."""

import hashlib
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from handrail.protocol.errors import StorageBusy, StorageDamaged, StorageProblem
from handrail.storage.database import FileLock, connect, damage_mark
from handrail.storage.log import Log, Row, check_row, first_hash

EVENTS_OF = (
    "SELECT stream, seq, epoch, at, version, type, data, hash FROM events WHERE stream = ? ORDER BY seq"
)
WHOLE_TABLES = (
    ("SELECT * FROM inbox", "INSERT OR IGNORE INTO inbox VALUES (?, ?, ?)"),
    ("SELECT * FROM partials", "INSERT OR IGNORE INTO partials VALUES (?, ?, ?, ?, ?)"),
    ("SELECT * FROM blobs", "INSERT OR IGNORE INTO blobs VALUES (?, ?, ?, ?)"),
    ("SELECT * FROM journal", "INSERT OR IGNORE INTO journal VALUES (?, ?, ?, ?, ?)"),
    ("SELECT * FROM leftovers", "INSERT OR IGNORE INTO leftovers VALUES (?, ?)"),
    ("SELECT * FROM recoveries", "INSERT INTO recoveries VALUES (?, ?)"),
)
"""Commands nobody took, contents, the journal; a content is checked against its hash when it is read."""


class Salvaged(NamedTuple):
    """What could be read of one stream."""

    stream: str
    rows: int
    written: int | None
    """How many the stream's head says there were; None where the head is lost."""
    epoch: int
    head: bytes


def open_log(folder: Path) -> Log:
    """The log, repaired first where its file is damaged; `log.notices` says what is missing."""
    try:
        if _replaced_by_hand(folder):
            damage_mark(folder).unlink()
        if not damage_mark(folder).exists():
            return Log(folder)
    except StorageDamaged:
        pass  # the mark is set now
    report = repair(folder)
    log = Log(folder)
    log.notices.append(report)
    return log


def repair(folder: Path) -> str:
    """Rebuild the log from what is valid of it; the report says what is missing and where the file is."""
    lock = FileLock(folder / "log.lock")
    try:
        if not lock.try_alone():
            raise StorageBusy(
                f"The log in {folder} is damaged, and another process has it open."
                " Close every other Handrail in this workspace, then start again: it will be repaired."
            )
        return _rebuild(folder)
    except OSError as error:
        raise StorageProblem(
            f"The damaged log in {folder} could not be repaired: {error}. It is left as it is; free some disk"
            " space or mend the permissions, then start again."
        ) from error
    finally:
        lock.close()


def verify(log: Log) -> list[str]:
    """Every event of every stream read and checked; one line for each thing that is wrong.

    What is wrong is repaired at the next start.
    """
    problems = []
    for head in log.heads(""):
        try:
            log.read(head.stream)
        except StorageDamaged as error:
            problems.append(str(error))
    problems += log.structural_problems()
    if problems:
        damage_mark(log.folder).touch()
    return problems


def _rebuild(folder: Path) -> str:
    damaged = _keep_damaged(folder)
    fresh = folder / "log.db.new"
    fresh.unlink(missing_ok=True)
    source = sqlite3.connect(f"file:{damaged / 'log.db'}", uri=True, isolation_level=None)
    source.text_factory = lambda data: data.decode(errors="surrogateescape")
    target = connect(fresh)
    try:
        target.execute("BEGIN")
        streams = [_salvage(source, target, stream) for stream in _stream_names(source)]
        if not any(found.rows for found in streams):
            raise StorageDamaged(
                f"The log in {folder} is damaged and nothing in it can be read. It was left as it is, with a"
                f" copy in {damaged}. Move log.db away to start afresh, or restore it from a backup."
            )
        _copy_whole_rows(source, target)
        report = _report(streams, damaged)
        target.execute("INSERT INTO recoveries VALUES (?, ?)", (time.time_ns() // 1_000_000, report))
        target.execute("COMMIT")
        target.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        target.close()
        source.close()
    _replace(folder, fresh)
    return report


def _keep_damaged(folder: Path) -> Path:
    """The folder with the damaged files. A repair that was itself interrupted goes on from its first copy."""
    digest = _sha256(folder / "log.db")
    kept = _kept(folder)
    if kept and kept.sha256 == digest:
        return folder / kept.folder
    damaged = Path(tempfile.mkdtemp(prefix=f"damaged-{time.strftime('%Y%m%dT%H%M%S')}-", dir=folder))
    for file in ("log.db", "log.db-wal"):
        if (folder / file).exists():
            shutil.copy2(folder / file, damaged / file)
            _force(damaged / file)
    _force(damaged)
    _force(folder)
    damage_mark(folder).write_text(f"{damaged.name} {digest}")
    return damaged


class Kept(NamedTuple):
    """What a mark says of an earlier repair: where the copy is, and the hash of the file it is a copy of."""

    folder: str
    sha256: str


def _kept(folder: Path) -> Kept | None:
    words = damage_mark(folder).read_text().split() if damage_mark(folder).exists() else []
    return Kept(*words) if len(words) == 2 and (folder / words[0]).is_dir() else None


def _replaced_by_hand(folder: Path) -> bool:
    """Whether the damaged file was moved away, or another one, such as a backup, stands in its place."""
    kept = _kept(folder)
    return kept is not None and kept.sha256 != _sha256(folder / "log.db")


def _sha256(file: Path) -> str:
    if not file.exists():
        return "missing"
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _replace(folder: Path, fresh: Path) -> None:
    for name in ("log.db-wal", "log.db-shm", "log.db.new-wal", "log.db.new-shm"):
        (folder / name).unlink(missing_ok=True)
    _force(fresh)
    fresh.replace(folder / "log.db")
    damage_mark(folder).unlink(missing_ok=True)
    _force(folder)


def _force(path: Path) -> None:
    """Have a file, or what a folder lists, on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(source: sqlite3.Connection, query: str, *values: object) -> Iterator[tuple[object, ...]]:
    """Rows until the damage, if there is any."""
    try:
        yield from source.execute(query, values)
    except (sqlite3.Error, UnicodeError):
        return


def _stream_names(source: sqlite3.Connection) -> list[str]:
    names = {str(name) for (name,) in _read(source, "SELECT stream FROM streams")}
    after = ""
    while found := next(_read(source, "SELECT min(stream) FROM events WHERE stream > ?", after), None):
        if not isinstance(found[0], str) or found[0] <= after:
            break
        after = found[0]
        names.add(after)
    return sorted(name for name in names if name == "workspace" or name.startswith("session:"))


def _salvage(source: sqlite3.Connection, target: sqlite3.Connection, stream: str) -> Salvaged:
    before, count, epoch = first_hash(stream), 0, 0
    for fields in _read(source, EVENTS_OF, stream):
        row = Row(*fields)  # type: ignore[arg-type]
        try:
            before = check_row(row, stream, count + 1, before, Path("log.db"))
        except (StorageDamaged, UnicodeError, TypeError):
            break
        target.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        count, epoch = count + 1, max(epoch, row.epoch)
    head = next(
        _read(source, "SELECT head, epoch, touched, label FROM streams WHERE stream = ?", stream), None
    )
    intact = (
        head is not None and all(isinstance(number, int) for number in head[:3]) and isinstance(head[3], str)
    )
    written, held, touched, label = head if head and intact else (None, 0, 0, "")
    if count:
        target.execute(
            "INSERT INTO streams VALUES (?, ?, ?, ?, ?, ?)",
            (stream, count, before, max(epoch, int(str(held))), touched, label if written == count else ""),
        )
    return Salvaged(stream, count, int(str(written)) if written is not None else None, epoch, before)


def _copy_whole_rows(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    for read, insert in WHOLE_TABLES:
        for fields in _read(source, read):
            with suppress(sqlite3.Error, UnicodeError):
                target.execute(insert, fields)


def _report(streams: list[Salvaged], damaged: Path) -> str:
    lines = [f"The log was damaged and has been repaired; the damaged file is kept in {damaged}."]
    for found in streams:
        if found.written is None:
            lines.append(f"{found.stream}: {found.rows} events kept; whether more were written is not known.")
        elif found.written > found.rows:
            lines.append(f"{found.stream}: events {found.rows + 1} to {found.written} are lost.")
    if len(lines) == 1:
        lines.append("No event is missing.")
    return "\n".join(lines)
