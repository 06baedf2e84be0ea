"""The log on a real PostgreSQL, when things break: nothing lost, nothing twice, and a clear error in time."""

import hashlib
import multiprocessing
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

import psycopg
import pytest
from msgspec.structs import replace

from handrail.config.settings import DatabaseSettings
from handrail.protocol.errors import (
    ConfigProblem,
    StorageBusy,
    StorageDamaged,
    StorageFull,
    StorageProblem,
    StorageUnreachable,
)
from handrail.storage.change_journal import JournalSteps
from handrail.storage.event_log import Log, NewRow
from handrail.storage.locks import is_held, try_hold_stream
from handrail.storage.log_repair import open_log, verify
from handrail.storage.postgres import connection as deadlines
from handrail.storage.postgres.database import PostgresDatabase
from tests.cut_connection import Moment, Proxy
from tests.postgres import Server
from tests.storage.backends import change

STREAM = "session:s_1"
DEADLINE = 60.0


def row(text: str = "x") -> NewRow:
    return NewRow("note", 1, f'{{"text":"{text}"}}')


def texts(log: Log, stream: str = STREAM) -> list[str]:
    return [one.data for one in log.read(stream)]


def eventually(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not done():
        assert time.monotonic() < deadline


@pytest.fixture
def settings(postgres: Server) -> DatabaseSettings:
    return postgres.workspace()


@pytest.fixture
def log(tmp_path: Path, settings: DatabaseSettings) -> Iterator[Log]:
    opened = open_log(tmp_path, settings, tmp_path)
    yield opened
    opened.close()


def backend(log: Log) -> int:
    """The server's process for a log."""
    assert isinstance(log.database, PostgresDatabase)
    return log.database._connection.backend_pid


def by_hand(settings: DatabaseSettings, statement: str) -> None:
    """Somebody else's statement."""
    with psycopg.connect(settings.url, autocommit=True) as connection:
        connection.execute(f'SET search_path TO "handrail_{settings.workspace}"')
        connection.execute(statement)


def kill(settings: DatabaseSettings, log: Log) -> None:
    """Cut a log's connection from the server's side."""
    by_hand(settings, f"SELECT pg_terminate_backend({backend(log)}, 10000)")


@pytest.fixture
def proxy(settings: DatabaseSettings) -> Iterator[Proxy]:
    opened = Proxy(int(settings.url.rpartition(":")[2].partition("/")[0]))
    yield opened
    opened.close()


@pytest.fixture
def log_by_proxy(tmp_path: Path, settings: DatabaseSettings, proxy: Proxy) -> Iterator[Log]:
    before, _, after = settings.url.rpartition(":")
    url = f"{before}:{proxy.port}/{after.partition('/')[2]}"
    opened = open_log(tmp_path, replace(settings, url=url), tmp_path)
    yield opened
    opened.close()


@pytest.mark.promise("PG-2")
@pytest.mark.parametrize("moment", ["before", "after"])
def test_append_whose_commit_was_cut_is_stored_once_or_said_not_to_be(
    log_by_proxy: Log, proxy: Proxy, moment: Moment
) -> None:
    log = log_by_proxy
    log.append(STREAM, [row("a")], expected=0)
    number = log.put(STREAM, "{}")
    proxy.cut(moment, b"COMMIT")
    if moment == "after":
        written = log.append(STREAM, [row("b")], expected=1, take=[number])
        assert [one.seq for one in written] == [2]
    else:
        with pytest.raises(StorageUnreachable, match="Nothing of this was stored"):
            log.append(STREAM, [row("b")], expected=1, take=[number])
        assert [one.id for one in log.waiting(STREAM)] == [number]
        log.append(STREAM, [row("b")], expected=1, take=[number])
    assert proxy.cuts == 1
    assert texts(log) == [row("a").data, row("b").data]
    assert log.waiting(STREAM) == []
    log.append(STREAM, [row("c")], expected=2)
    assert verify(log) == []


@pytest.mark.promise("PG-2")
def test_lost_connection_is_made_again_by_the_next_call(log: Log, settings: DatabaseSettings) -> None:
    log.append(STREAM, [row("a")])
    kill(settings, log)
    assert texts(log) == [row("a").data]
    kill(settings, log)
    log.append(STREAM, [row("b")], expected=1)
    kill(settings, log)
    number = log.put(STREAM, "{}")
    assert [one.id for one in log.waiting(STREAM)] == [number]
    assert texts(log) == [row("a").data, row("b").data]


def test_connection_cut_within_a_transaction_stores_nothing_of_it(
    log: Log, settings: DatabaseSettings
) -> None:
    log.append(STREAM, [row("a")])
    with pytest.raises(StorageUnreachable), log.database.transaction():
        log.database.execute("INSERT INTO inbox (stream, data) VALUES (?, ?)", (STREAM, "{}"))
        kill(settings, log)
        log.database.execute("INSERT INTO inbox (stream, data) VALUES (?, ?)", (STREAM, "{}"))
    assert log.waiting(STREAM) == []


@pytest.mark.promise("PG-2")
def test_log_goes_on_after_the_server_has_crashed_and_started_again(tmp_path: Path) -> None:
    server = Server()
    try:
        settings = server.workspace()
        log = open_log(tmp_path, settings, tmp_path)
        hold = try_hold_stream(log, STREAM)
        assert hold
        log.append(STREAM, [row("a")], epoch=hold.epoch)
        before = log.data_version()
        server.stop(signal.SIGQUIT)
        eventually(lambda: log.data_version() == before)  # a watcher outlives the server
        with pytest.raises(StorageUnreachable, match=r"cannot be reached|does not answer"):
            log.append(STREAM, [row("lost")], epoch=hold.epoch)
        server.start()
        eventually(lambda: log.data_version() != before)
        log.append(STREAM, [row("b")], epoch=hold.epoch, expected=1)
        assert texts(log) == [row("a").data, row("b").data]
        other = open_log(tmp_path / "other", settings, tmp_path)
        assert is_held(other, STREAM)
        assert try_hold_stream(other, STREAM) is None
        other.close()
        log.close()
    finally:
        server.remove()


def hold_until_killed(folder: Path, settings: DatabaseSettings, ready: "Pipe") -> None:
    log = open_log(folder, settings, folder)
    hold = try_hold_stream(log, STREAM)
    assert hold
    ready.send(hold.epoch)
    signal.pause()


@pytest.mark.promise("PG-3")
def test_a_killed_holder_is_followed_by_the_next_and_can_append_no_more(
    tmp_path: Path, log: Log, settings: DatabaseSettings
) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    holder = context.Process(target=hold_until_killed, args=(tmp_path / "theirs", settings, theirs))
    holder.start()
    assert ours.poll(DEADLINE)
    epoch = ours.recv()
    assert is_held(log, STREAM)
    assert try_hold_stream(log, STREAM) is None
    holder.kill()
    holder.join()
    eventually(lambda: not is_held(log, STREAM))
    with try_hold_stream(log, STREAM) or pytest.fail("nobody holds it") as hold:
        assert hold.epoch == epoch + 1
        assert try_hold_stream(log, STREAM) is None  # not even this process a second time
        with pytest.raises(StorageProblem, match="Another process has taken over"):
            log.append(STREAM, [row()], epoch=epoch)
    assert not is_held(log, STREAM)


@pytest.mark.promise("PG-3")
def test_hold_survives_a_cut_unless_another_process_was_quicker(
    tmp_path: Path, log: Log, settings: DatabaseSettings
) -> None:
    other = open_log(tmp_path / "other", settings, tmp_path)
    first = try_hold_stream(log, STREAM)
    assert first
    kill(settings, log)
    log.append(STREAM, [row("a")], epoch=first.epoch)
    assert try_hold_stream(other, STREAM) is None
    kill(settings, log)
    second = try_hold_stream(other, STREAM)
    assert second
    with pytest.raises(StorageProblem, match="Another process has taken over"):
        log.append(STREAM, [row("b")], epoch=first.epoch)
    other.append(STREAM, [row("c")], epoch=second.epoch)
    assert texts(log) == [row("a").data, row("c").data]
    other.close()


@pytest.mark.promise("PG-3")
def test_hold_survives_a_cut_that_the_server_has_not_noticed(
    tmp_path: Path, log_by_proxy: Log, settings: DatabaseSettings, proxy: Proxy
) -> None:
    other = open_log(tmp_path / "other", settings, tmp_path)
    hold = try_hold_stream(log_by_proxy, STREAM)
    assert hold
    gone = backend(log_by_proxy)
    proxy.cut("half", b"BEGIN")
    log_by_proxy.append(STREAM, [row("a")], epoch=hold.epoch)
    assert backend(log_by_proxy) != gone
    assert is_held(other, STREAM)
    hold.release()
    assert not is_held(other, STREAM)  # nor by what was left of the first connection
    other.close()


def store_and_prune(folder: Path, settings: DatabaseSettings, number: int) -> None:
    """Append with contents that others store too, each in its own order, while they are pruned as well."""
    log = open_log(folder, settings, folder)
    chance = random.Random(number)
    for turn in range(40):
        contents = [f"shared {turn} {each}".encode() * 50 for each in range(12)]
        chance.shuffle(contents)
        log.append(f"session:s_{number}", [row(str(turn))], expected=turn, blobs=contents)
        change(log, "UPDATE blobs SET at = 0 WHERE sha256 LIKE ?", f"{number}%")
        log.contents.prune(0, (), time.time())
        log.append(f"session:s_{number}_again", [row(str(turn))], blobs=contents)
        for content in contents:
            log.blob(hashlib.sha256(content).hexdigest())
    log.close()


def test_processes_that_store_and_prune_the_same_contents_do_not_lock_each_other_out(
    tmp_path: Path, log: Log, settings: DatabaseSettings
) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=store_and_prune, args=(tmp_path / str(number), settings, number))
        for number in range(4)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(DEADLINE)
        assert process.exitcode == 0
    assert verify(log) == []
    assert [head.seq for head in log.heads("session:")] == [40] * 8


def test_commits_are_noticed_without_asking_the_server(
    tmp_path: Path, log: Log, settings: DatabaseSettings
) -> None:
    other = open_log(tmp_path / "other", settings, tmp_path)
    before = log.data_version()
    other.append(STREAM, [row()])
    eventually(lambda: log.data_version() != before)
    seen = log.data_version()
    other.append(STREAM, [row()])
    eventually(lambda: log.data_version() != seen)
    seen = log.data_version()
    os.kill(backend(log), signal.SIGSTOP)  # whoever asked it would wait now
    try:
        assert {log.data_version() for _ in range(1000)} == {seen}
    finally:
        os.kill(backend(log), signal.SIGCONT)
    other.close()


@pytest.mark.promise("PG-4")
def test_server_that_hangs_is_given_up_in_time(
    log: Log, settings: DatabaseSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "ANSWER_SECONDS", 0.5)
    log.append(STREAM, [row("a")])
    stopped = backend(log)
    os.kill(stopped, signal.SIGSTOP)
    try:
        with pytest.raises(StorageUnreachable, match="no answer"):
            log.append(STREAM, [row("b")])
    finally:
        os.kill(stopped, signal.SIGCONT)
    monkeypatch.undo()
    log.append(STREAM, [row("c")])
    assert texts(log) == [row("a").data, row("c").data]


@pytest.mark.promise("PG-4")
def test_server_that_went_on_after_a_hang_is_found_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server()
    try:
        log = open_log(tmp_path, server.workspace(), tmp_path)
        log.append(STREAM, [row("a")])
        os.kill(server.pid, signal.SIGSTOP)  # as the whole machine: it takes connections, and says nothing
        os.kill(backend(log), signal.SIGKILL)
        monkeypatch.setattr(deadlines, "CONNECT_SECONDS", 7)

        def is_given_up() -> bool:
            log.data_version()
            assert isinstance(log.database, PostgresDatabase)
            return log.database._away

        eventually(is_given_up)
        with pytest.raises(StorageUnreachable, match="does not answer"):
            log.append(STREAM, [row("lost")])
        os.kill(server.pid, signal.SIGCONT)

        def is_stored() -> bool:
            with suppress(StorageUnreachable):
                return bool(log.append(STREAM, [row("b")]))
            return False

        eventually(is_stored)
        assert texts(log) == [row("a").data, row("b").data]
        log.close()
    finally:
        server.remove()


@pytest.mark.promise("PG-4")
def test_stream_that_another_machine_keeps_busy_is_given_up_in_time(
    tmp_path: Path, settings: DatabaseSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "STATEMENT_SECONDS", 1)
    log = open_log(tmp_path, settings, tmp_path)
    other = open_log(tmp_path / "other", settings, tmp_path)
    with other.database.transaction(STREAM):
        with pytest.raises(StorageBusy, match="Try again"):
            log.append(STREAM, [row()])
        log.append("session:s_2", [row()])
    log.append(STREAM, [row()])
    assert len(texts(log)) == 1
    log.close()
    other.close()


@pytest.mark.promise("PG-4")
@pytest.mark.parametrize(
    ("code", "error", "advice"),
    [
        ("53100", StorageFull, "has no room on its disk"),
        ("XX001", StorageDamaged, "restored from a backup"),
        ("25006", StorageProblem, "Use the primary server"),
        ("42501", StorageProblem, "Ask whoever administers it"),
    ],
)
def test_errors_of_the_server_leave_nothing_half_done_and_say_what_to_do(
    log: Log, settings: DatabaseSettings, code: str, error: type[StorageProblem], advice: str
) -> None:
    by_hand(
        settings,
        f"CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no' USING"
        f" ERRCODE = '{code}'; END $$",
    )
    by_hand(settings, "CREATE TRIGGER fails BEFORE INSERT ON blobs EXECUTE FUNCTION fail()")
    log.append(STREAM, [row("a")])
    with pytest.raises(error, match=advice) as caught:
        log.append(STREAM, [row("b")], blobs=[b"content"])
    assert type(caught.value) is error
    by_hand(settings, "DROP TRIGGER fails ON blobs")
    log.append(STREAM, [row("c")], blobs=[b"content"])
    assert texts(log) == [row("a").data, row("c").data]


def test_server_that_is_not_there_is_said_at_once_and_the_password_is_not(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    settings = DatabaseSettings(f"postgresql://ada:hunter2@127.0.0.1:{port}/x")
    with pytest.raises(StorageUnreachable, match=r"Connection refused\. Start it") as caught:
        open_log(tmp_path, settings, tmp_path)
    assert "hunter2" not in str(caught.value)
    assert "postgresql://ada:***@127.0.0.1" in str(caught.value)


def test_login_that_the_server_refuses_is_said(tmp_path: Path, postgres: Server) -> None:
    url = postgres.url.replace("//handrail@", "//nobody:hunter2@")
    with pytest.raises(StorageProblem, match="refuses the connection") as caught:
        open_log(tmp_path, DatabaseSettings(url), tmp_path)
    assert not isinstance(caught.value, StorageUnreachable)
    assert "hunter2" not in str(caught.value)


def test_missing_library_is_said_with_the_command_that_installs_it(
    tmp_path: Path, settings: DatabaseSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigProblem, match=r"pip install .*distributed"):
        open_log(tmp_path, settings, tmp_path)


def test_log_of_a_newer_handrail_is_refused(tmp_path: Path, log: Log, settings: DatabaseSettings) -> None:
    by_hand(settings, "UPDATE handrail SET version = 99")
    with pytest.raises(StorageProblem, match="newer Handrail"):
        open_log(tmp_path, settings, tmp_path)


@pytest.mark.promise("PG-5")
def test_change_begun_on_one_machine_is_no_business_of_another(
    tmp_path: Path, log: Log, settings: DatabaseSettings
) -> None:
    log.append(STREAM, [row()], steps=JournalSteps(begun=(("c_1", "{}"), ("c_2", "{}"))))
    other = open_log(tmp_path / "other", settings, tmp_path)
    assert other.begun() == []
    assert [each.change for each in other.begun_anywhere()] == ["c_1", "c_2"]
    assert [change for change, _ in other.database.unsettled_elsewhere(STREAM)] == ["c_1", "c_2"]
    assert log.database.unsettled_elsewhere(STREAM) == []
    log.settle("c_1", "applied", "")
    [(change, place)] = other.database.unsettled_elsewhere(STREAM)
    assert change == "c_2"
    assert str(tmp_path) in place
    other.append(STREAM, [row()], steps=JournalSteps(applied=("c_1",)))
    assert [each.change for each in log.begun()] == ["c_2"]
    assert other.leftovers() == []  # they lie on the other machine
    log.append(STREAM, [row()], steps=JournalSteps(applied=("c_2",)))
    assert [change for change, _ in log.leftovers()] == ["c_2"]
    assert other.leftovers() == []
    other.close()


def test_two_folders_of_one_name_do_not_share_a_log_by_accident(tmp_path: Path, postgres: Server) -> None:
    name = postgres.workspace().workspace
    first, second = tmp_path / "a" / name, tmp_path / "b" / name
    unnamed = DatabaseSettings(postgres.url)
    open_log(tmp_path / "log-a", unnamed, first).close()
    open_log(tmp_path / "log-a", unnamed, first).close()
    with pytest.raises(StorageProblem, match=r"another folder of the same name\. Give this one a name"):
        open_log(tmp_path / "log-b", unnamed, second)
    open_log(tmp_path / "log-b", replace(unnamed, workspace=name), second).close()


@pytest.mark.parametrize(
    "name", ['quote"; DROP SCHEMA public; --', "\u00fcber uns", "public", "a.b", "'x'", "50%", "%s?"]
)
def test_workspace_of_any_name_has_a_schema_of_its_own(tmp_path: Path, postgres: Server, name: str) -> None:
    settings = DatabaseSettings(postgres.url, f"{postgres.workspace().workspace} {name}")
    log = open_log(tmp_path, settings, tmp_path)
    log.append(STREAM, [row()])
    again = log.another()
    assert len(texts(again)) == 1
    assert again.database.stored_bytes() > 0
    again.close()
    log.close()
