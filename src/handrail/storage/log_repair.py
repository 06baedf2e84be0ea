"""Open the log; repair a damaged one from the longest valid prefix of each stream."""

import hashlib
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from handrail.config.files import FileLock, sync
from handrail.config.settings import DatabaseSettings
from handrail.protocol.errors import ConfigProblem, StorageBusy, StorageDamaged, StorageProblem
from handrail.storage.database import connect, damage_mark
from handrail.storage.event_log import Log, Row, checked_hash, first_hash
from handrail.storage.log_database import LogDatabase

STREAM_QUERY = (
    "SELECT stream, seq, epoch, at, version, type, data, hash FROM events WHERE stream = ? ORDER BY seq"
)
HEAD_QUERY = "SELECT head, epoch, touched, label FROM streams WHERE stream = ?"
COPIED_TABLES = (
    ("SELECT * FROM inbox", "INSERT OR IGNORE INTO inbox VALUES (?, ?, ?)"),
    ("SELECT * FROM partials", "INSERT OR IGNORE INTO partials VALUES (?, ?, ?, ?, ?)"),
    ("SELECT * FROM blobs", "INSERT OR IGNORE INTO blobs VALUES (?, ?, ?, ?)"),
    ("SELECT * FROM journal", "INSERT OR IGNORE INTO journal VALUES (?, ?, ?, ?, ?)"),
    ("SELECT * FROM leftovers", "INSERT OR IGNORE INTO leftovers VALUES (?, ?)"),
    ("SELECT * FROM recoveries", "INSERT INTO recoveries VALUES (?, ?)"),
)
"""The inbox, contents, the journal; a content is checked against its hash when it is read."""


NO_DATABASE = DatabaseSettings()
HERE = Path()


class SalvagedStream(NamedTuple):
    stream: str
    rows: int
    written: int | None
    """The number of rows according to the stream's head; None if the head is lost."""


def open_log(folder: Path, database: DatabaseSettings = NO_DATABASE, root: Path = HERE) -> Log:
    """The log, repaired first if its file is damaged; `log.notices` says what is missing.

    With a database, the log is there, and `folder` has what belongs to this machine and the workspace `root`.
    """
    if database.url:
        return Log(folder, open_database(database, root, folder))
    try:
        kept = _damaged_copy(folder)
        if kept and kept.sha256 != _sha256(folder / "log.db"):  # moved away or replaced, as by a backup
            damage_mark(folder).unlink()
        if not damage_mark(folder).exists():
            return Log(folder)
    except StorageDamaged:
        pass  # the mark is set now
    report = repair(folder)
    log = Log(folder)
    log.notices.append(report)
    return log


def open_database(settings: DatabaseSettings, root: Path, folder: Path) -> LogDatabase:
    """The database of the settings; raises ConfigProblem where its library is not installed."""
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        from handrail.config.extras import install_command

        raise ConfigProblem(
            "PostgreSQL needs the extra `distributed`. Install it, or unset database.url: "
            f"{install_command('distributed')}"
        ) from error
    from handrail.storage.postgres.database import PostgresDatabase, place_of

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return PostgresDatabase(place_of(settings, root.resolve(), folder))


def repair(folder: Path) -> str:
    """Rebuild the log from its valid parts; the report says what is missing and where the damaged file is."""
    lock = FileLock(folder / "log.lock")
    try:
        if not lock.try_lock():
            raise StorageBusy(
                f"The log in {folder} is damaged, and another process has it open."
                " Close every other Handrail in this workspace, then start again: it will be repaired."
            )
        return _rebuild(folder)
    except OSError as error:
        raise StorageProblem(
            f"The damaged log in {folder} could not be repaired: {error}. It was not changed. Free some disk"
            " space or correct the permissions, then start again."
        ) from error
    finally:
        lock.release()


def verify(log: Log) -> list[str]:
    """Check every event of every stream; returns the problems, which the next start repairs."""
    problems = []
    for head in log.heads(""):
        try:
            log.read(head.stream)
        except StorageDamaged as error:
            problems.append(str(error))
    problems += log.database.structural_problems()
    if problems:
        log.database.mark_damaged()
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
                f"The log in {folder} is damaged and nothing in it can be read. It was not changed; a copy is"
                f" in {damaged}. Move log.db away to start with an empty log, or restore a backup."
            )
        for read, insert in COPIED_TABLES:
            for fields in _read_rows(source, read):
                with suppress(sqlite3.Error, UnicodeError):
                    target.execute(insert, fields)
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
    """The folder with the damaged files. An interrupted repair continues with its first copy."""
    digest = _sha256(folder / "log.db")
    kept = _damaged_copy(folder)
    if kept and kept.sha256 == digest:
        return folder / kept.folder
    damaged = Path(tempfile.mkdtemp(prefix=f"damaged-{time.strftime('%Y%m%dT%H%M%S')}-", dir=folder))
    for file in ("log.db", "log.db-wal"):
        if (folder / file).exists():
            shutil.copy2(folder / file, damaged / file)
            sync(damaged / file)
    sync(damaged)
    sync(folder)
    damage_mark(folder).write_text(f"{damaged.name} {digest}")
    return damaged


class DamagedCopy(NamedTuple):
    """What the mark of an earlier repair says: where the copy is, and the hash of its original."""

    folder: str
    sha256: str


def _damaged_copy(folder: Path) -> DamagedCopy | None:
    words = damage_mark(folder).read_text().split() if damage_mark(folder).exists() else []
    return DamagedCopy(*words) if len(words) == 2 and (folder / words[0]).is_dir() else None


def _sha256(file: Path) -> str:
    if not file.exists():
        return "missing"
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _replace(folder: Path, fresh: Path) -> None:
    for name in ("log.db-wal", "log.db-shm", "log.db.new-wal", "log.db.new-shm"):
        (folder / name).unlink(missing_ok=True)
    sync(fresh)
    fresh.replace(folder / "log.db")
    damage_mark(folder).unlink(missing_ok=True)
    sync(folder)


def _read_rows(source: sqlite3.Connection, query: str, *values: object) -> Iterator[tuple[object, ...]]:
    """Rows up to the first damage."""
    try:
        yield from source.execute(query, values)
    except (sqlite3.Error, UnicodeError):
        return


def _stream_names(source: sqlite3.Connection) -> list[str]:
    names = {str(name) for (name,) in _read_rows(source, "SELECT stream FROM streams")}
    after = ""
    while found := next(_read_rows(source, "SELECT min(stream) FROM events WHERE stream > ?", after), None):
        if not isinstance(found[0], str) or found[0] <= after:
            break
        after = found[0]
        names.add(after)
    return sorted(name for name in names if name == "workspace" or name.startswith("session:"))


def _salvage(source: sqlite3.Connection, target: sqlite3.Connection, stream: str) -> SalvagedStream:
    before, count, epoch = first_hash(stream), 0, 0
    for fields in _read_rows(source, STREAM_QUERY, stream):
        row = Row(*fields)  # type: ignore[arg-type]
        try:
            checked = checked_hash(row, stream, count + 1, before)
        except (UnicodeError, TypeError):
            break
        if checked is None:
            break
        before = checked
        target.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        count, epoch = count + 1, max(epoch, row.epoch)
    written, held, touched, label = None, 0, 0, ""
    match next(_read_rows(source, HEAD_QUERY, stream), None):
        case (int(head), int(head_epoch), int(at), str(text)):
            written, held, touched, label = head, head_epoch, at, text
    if count:
        shown = label if written == count else ""
        values = (stream, count, before, max(epoch, held), touched, shown)
        target.execute("INSERT INTO streams VALUES (?, ?, ?, ?, ?, ?)", values)
    return SalvagedStream(stream, count, written)


def _report(streams: list[SalvagedStream], damaged: Path) -> str:
    lines = [f"The log was damaged and has been repaired; the damaged file is kept in {damaged}."]
    for found in streams:
        if found.written is None:
            lines.append(f"{found.stream}: {found.rows} events kept; there may have been more.")
        elif found.written > found.rows:
            lines.append(f"{found.stream}: events {found.rows + 1} to {found.written} are lost.")
    if len(lines) == 1:
        lines.append("No event is missing.")
    return "\n".join(lines)
