"""A log is copied into a database byte for byte, from a file that nobody writes to."""

import multiprocessing
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.config.settings import DatabaseSettings
from handrail.protocol.errors import StorageBusy, UsageProblem
from handrail.storage.change_journal import JournalSteps
from handrail.storage.copy_log import CopiedLog, copy_log
from handrail.storage.event_log import RAW, Log, NewRow, PartialText
from handrail.storage.locks import try_hold_stream
from handrail.storage.log_repair import open_log, verify
from tests.postgres import Server

STREAMS = ("session:s_1", "session:s_2", "workspace")
STATE = (
    "SELECT stream, head, hash, epoch, touched, label FROM streams ORDER BY stream",
    "SELECT stream, seq, epoch, at, version, type, data, hash FROM events ORDER BY stream, seq",
    "SELECT stream, data FROM inbox ORDER BY id",
    "SELECT sha256, size, data FROM blobs ORDER BY sha256",
    "SELECT change, stream, data, outcome, why FROM journal ORDER BY change",
    "SELECT change, data FROM leftovers ORDER BY change",
)


def row(text: str) -> NewRow:
    return NewRow("note", 1, f'{{"text":"{text}"}}')


def state(log: Log) -> list[object]:
    return [
        *(log.database.rows(query) for query in STATE),
        *(log.partials(stream) for stream in STREAMS),
        log.received("session:s_1"),
        log.recoveries(),
    ]


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Log]:
    log = open_log(tmp_path / "log")
    for stream in STREAMS:
        with try_hold_stream(log, stream) or pytest.fail("held") as hold:
            for number in range(40):
                log.append(
                    stream,
                    [row(f"{stream} {number} {each} \u00e4\u2028") for each in range(40)],
                    epoch=hold.epoch,
                    blobs=[f"{stream} {number} {each}".encode() * 9 for each in range(3)],
                    label=f"label of {stream}",
                )
        log.put(stream, f'"{stream}"')
    log.add_partials(
        "session:s_1", [PartialText("m", "text", 0, "a\0b"), PartialText("r", RAW, 0, "\x00\xff")]
    )
    log.append("session:s_1", [row("x")], steps=JournalSteps(begun=(("c_1", "{}"),), noted=(("c_2", "{}"),)))
    yield log
    log.close()


@pytest.mark.promise("PG-8")
def test_copied_log_is_the_same_to_the_byte_and_can_be_copied_again(
    tmp_path: Path, source: Log, postgres: Server
) -> None:
    database = postgres.workspace()
    target = open_log(tmp_path / "log", database, tmp_path)
    assert copy_log(source, target) == CopiedLog(3, 3 * 1600 + 1, 360)
    assert state(target) == state(source)
    assert verify(target) == []
    assert [each.change for each in target.begun()] == ["c_1"]  # this folder can recover it
    source.append("workspace", [row("later")])
    copy_log(source, target)
    assert state(target) == state(source)
    target.append("workspace", [row("there")])
    with pytest.raises(UsageProblem, match="events of its own"):
        copy_log(source, target)
    target.close()


def copy_until_killed(folder: Path, database: DatabaseSettings) -> None:
    source, target = open_log(folder), open_log(folder, database, folder)
    copy_log(source, target)
    target.close()
    source.close()


@pytest.mark.promise("PG-8")
@pytest.mark.parametrize("events", [1, 1000, 3000])
def test_copy_that_was_killed_is_continued_by_the_next(
    tmp_path: Path, source: Log, postgres: Server, events: int
) -> None:
    database = postgres.workspace()
    target = open_log(tmp_path / "log", database, tmp_path)
    copier = multiprocessing.get_context("spawn").Process(
        target=copy_until_killed, args=(tmp_path / "log", database)
    )
    copier.start()
    deadline = time.monotonic() + 60
    while copier.is_alive() and sum(head.seq for head in target.heads("")) < events:
        assert time.monotonic() < deadline
    copier.kill()
    copier.join()
    copy_log(source, target)
    assert state(target) == state(source)
    target.close()


def test_log_with_a_running_session_or_a_foreign_target_is_not_copied(
    tmp_path: Path, source: Log, postgres: Server
) -> None:
    target = open_log(tmp_path / "log", postgres.workspace(), tmp_path)
    other = open_log(tmp_path / "log")
    hold = try_hold_stream(other, "session:s_2")
    assert hold
    with pytest.raises(StorageBusy, match="session:s_2 is open"):
        copy_log(source, target)
    hold.release()
    other.close()
    assert target.heads("") == []
    target.append("session:s_1", [row("another past")])
    with pytest.raises(UsageProblem, match="events of its own"):
        copy_log(source, target)
    assert len(target.read("session:s_1")) == 1
    target.close()
