"""The log: all or nothing, in order, by one holder, checked when it is read."""

import hashlib
import multiprocessing
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.config.settings import DatabaseSettings
from handrail.protocol.errors import LostHold, StorageDamaged, StorageFull, StorageProblem, WrongSequence
from handrail.storage.event_log import RAW, Log, NewRow, PartialText, Snapshot
from handrail.storage.locks import try_hold_stream
from handrail.storage.log_repair import open_log, verify
from tests.storage.backends import change, sqlite_of

STREAM = "session:s_1"


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def row(text: str = "x") -> NewRow:
    return NewRow("note", 1, f'{{"text":"{text}"}}')


@pytest.fixture
def log(tmp_path: Path, database: DatabaseSettings) -> Iterator[Log]:
    opened = open_log(tmp_path, database, tmp_path)
    yield opened
    opened.close()


def test_rows_come_back_in_the_order_they_were_appended(log: Log) -> None:
    log.append(STREAM, [row("a"), row("b")])
    log.append(STREAM, [row("c")])
    assert [one.data for one in log.read(STREAM)] == [row(text).data for text in "abc"]
    assert [one.seq for one in log.read(STREAM, after=1)] == [2, 3]
    assert [one.seq for one in log.read(STREAM, after=1, limit=1)] == [2]


@pytest.mark.promise("STORE-3")
@pytest.mark.parametrize("name", ["session:\0", "session:\udcff", "session:'", "session:" + "x" * 9_000])
def test_stream_of_an_impossible_name_is_not_there(log: Log, name: str) -> None:
    assert log.head(name) is None


def test_a_command_leaves_the_inbox_only_with_its_event(log: Log) -> None:
    number = log.put(STREAM, "{}")
    hold = try_hold_stream(log, STREAM)
    assert hold
    with pytest.raises(LostHold):
        log.append(STREAM, [row()], epoch=hold.epoch + 1, take=[number])
    assert [one.id for one in log.waiting(STREAM)] == [number]
    assert log.head(STREAM) is None
    log.append(STREAM, [row()], epoch=hold.epoch, take=[number])
    assert log.waiting(STREAM) == []


def test_append_at_another_place_than_expected_writes_nothing(log: Log) -> None:
    log.append(STREAM, [row()], expected=0)
    with pytest.raises(WrongSequence):
        log.append(STREAM, [row()], expected=0)
    assert len(log.read(STREAM)) == 1


@pytest.mark.promise("STORE-4")
def test_a_holder_that_was_replaced_can_append_no_more(log: Log, tmp_path: Path) -> None:
    first = try_hold_stream(log, STREAM)
    assert first
    assert try_hold_stream(log, STREAM) is None
    first.release()
    second = try_hold_stream(log, STREAM)
    assert second
    with pytest.raises(LostHold):
        log.append(STREAM, [row()], epoch=first.epoch)
    log.append(STREAM, [row()], epoch=second.epoch)


def test_full_disk_is_said_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(STREAM, [row()])
    pages = sqlite_of(log).execute("PRAGMA page_count").fetchone()[0]
    sqlite_of(log).execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageFull, match="Free some disk space"):
        log.append(STREAM, [row("y" * 200_000)], blobs=[b"z"])
    assert len(log.read(STREAM)) == 1
    sqlite_of(log).execute("PRAGMA max_page_count = 1000000")
    log.append(STREAM, [row()])
    assert len(log.read(STREAM)) == 2
    log.close()


def test_changed_row_is_never_read(log: Log) -> None:
    log.append(STREAM, [row("a"), row("b"), row("c")])
    change(log, "UPDATE events SET data = ? WHERE seq = 2", row("B").data)
    with pytest.raises(StorageDamaged, match="Event 2"):
        log.read(STREAM)
    assert any("Event 2" in problem for problem in verify(log))


def test_missing_end_is_noticed(log: Log) -> None:
    log.append(STREAM, [row("a"), row("b")])
    change(log, "DELETE FROM events WHERE seq = 2")
    with pytest.raises(StorageDamaged, match="1 of 2"):
        log.read(STREAM)


def test_partial_text_is_kept_until_its_event_and_dropped_with_it(log: Log) -> None:
    log.add_partials(STREAM, [PartialText("m1", "text", 0, "hel"), PartialText("m1", "text", 3, "lo")])
    log.add_partials(STREAM, [PartialText("m2", "text", 0, "other")])
    assert [one.text for one in log.partials(STREAM)] == ["hel", "lo", "other"]
    log.append(STREAM, [row()], settle=["m1"])
    assert [one.text for one in log.partials(STREAM)] == ["other"]


def test_text_that_a_follower_knows_is_not_read_again(log: Log) -> None:
    parts = [PartialText("m1", "text", 4 * number, f"{number:03} ") for number in range(100)]
    log.add_partials(
        STREAM, [*parts, PartialText("m2", "text", 0, "other"), PartialText("m1", "output", 0, "x")]
    )
    found = log.partials(STREAM, {("m1", "text"): 390, ("m1", "output"): 1, ("m3", "text"): 9})
    assert [one.text for one in found] == ["x", "097 ", "098 ", "099 ", "other"]
    assert [one.text for one in log.partials(STREAM, {("m1", "text"): 400})] == ["x", "099 ", "other"]
    assert len(log.partials(STREAM)) == 102


def test_blob_comes_back_whole_or_not_at_all(log: Log) -> None:
    data = b"\x00content\xff" * 1000
    sha256 = sha256_of(data)
    log.append(STREAM, [row()], blobs=[data])
    assert log.blob(sha256) == data
    assert log.blob("0" * 64) is None
    change(log, "UPDATE blobs SET data = ? WHERE sha256 = ?", b"\0", sha256)
    with pytest.raises(StorageDamaged):
        log.blob(sha256)


def test_snapshot_of_another_past_or_version_is_not_used(log: Log) -> None:
    rows = log.append(STREAM, [row()])
    log.save_snapshot(STREAM, Snapshot(1, 1, rows[0].hash, "{}"))
    assert log.snapshot(STREAM, version=1)
    assert log.snapshot(STREAM, version=2) is None
    log.save_snapshot(STREAM, Snapshot(1, 1, b"other", "{}"))
    assert log.snapshot(STREAM, version=1) is None


def test_file_of_a_newer_handrail_is_refused(tmp_path: Path) -> None:
    open_log(tmp_path).close()
    with sqlite3.connect(tmp_path / "log.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StorageProblem, match="newer Handrail"):
        open_log(tmp_path)


@pytest.mark.promise("STORE-5")
def test_a_reader_beside_a_writer_never_takes_the_log_for_damaged(
    tmp_path: Path, database: DatabaseSettings
) -> None:
    context = multiprocessing.get_context("spawn")
    writer = context.Process(target=append_many, args=(tmp_path, database, 1, 400))
    log = open_log(tmp_path, database, tmp_path)
    writer.start()
    seen = 0
    while seen < 400 and (writer.is_alive() or seen == 0 or log.head("workspace")):
        rows = log.read("workspace", after=seen)
        seen += len(rows)
    writer.join(timeout=60)
    assert (writer.exitcode, seen) == (0, 400)
    assert not (tmp_path / "log.damaged").exists()
    log.close()


def append_many(folder: Path, database: DatabaseSettings, writer: int, count: int) -> None:
    log = open_log(folder, database, folder)
    done = 0
    while done < count:
        head = log.head("workspace")
        try:
            log.append("workspace", [row(f"{writer}-{done}")], expected=head.seq if head else 0)
            done += 1
        except WrongSequence:
            continue
    log.close()


@pytest.mark.promise("STORE-5")
def test_many_processes_append_to_one_stream_and_nothing_is_lost(
    tmp_path: Path, database: DatabaseSettings
) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [
        context.Process(target=append_many, args=(tmp_path, database, number, 50)) for number in range(4)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=60)
        assert writer.exitcode == 0
    log = open_log(tmp_path, database, tmp_path)
    texts = {one.data for one in log.read("workspace")}
    assert texts == {row(f"{writer}-{number}").data for writer in range(4) for number in range(50)}
    assert verify(log) == []
    log.close()


def test_what_another_process_committed_changes_the_data_version(log: Log) -> None:
    before = log.data_version()
    log.append(STREAM, [row()])
    assert log.data_version() == before
    other = log.another()
    other.append(STREAM, [row()])
    other.close()
    deadline = time.monotonic() + 60
    while log.data_version() == before:
        assert time.monotonic() < deadline


def test_raw_answers_and_text_of_any_characters_come_back_exactly(log: Log) -> None:
    raw = "".join(map(chr, range(256)))
    log.add_partials(STREAM, [PartialText("q1", RAW, 0, raw), PartialText("m1", "text", 0, "a\0b\U0001f600")])
    assert log.received(STREAM) == {"q1": bytes(range(256))}
    assert log.partials(STREAM) == [PartialText("m1", "text", 0, "a\0b\U0001f600")]


def test_events_of_some_types_come_in_the_order_in_which_they_were_written(log: Log) -> None:
    for number in range(3):
        for stream in ("session:a", "session:b"):
            rows = [NewRow(f"kind{each % 2}", 1, f"{stream} {number} {each}") for each in range(400)]
            log.append(stream, rows)
    found = [data for _, _, data in log.dated(["kind1", "other"])]
    expected = [
        f"{stream} {number} {each}"
        for number in range(3)
        for stream in ("session:a", "session:b")
        for each in range(1, 400, 2)
    ]
    assert found == expected
    assert [data for _, data in log.of_types(["kind1"])] == expected


def test_streams_of_a_prefix_are_listed_by_their_characters_not_by_a_language(log: Log) -> None:
    names = ["session:A", "session:_", "session:a", "session:\u00e4", "session:\U0001f600"]
    for name in (*names, "sessions", "sessio", "workspace"):
        log.append(name, [row()])
    assert sorted(head.stream for head in log.heads("session:")) == sorted(names)


def test_looking_for_commits_takes_no_answer_from_another_thread(log: Log) -> None:
    sha256 = sha256_of(b"content")
    log.append(STREAM, [row()], blobs=[b"content"])
    found: list[bytes | None] = []
    reader = threading.Thread(target=lambda: found.extend(log.blob(sha256) for _ in range(2_000)))
    reader.start()
    while reader.is_alive():
        log.data_version()
    assert found == [b"content"] * 2_000
