"""Fork, export, import: the same past, whole or not at all."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.config.settings import DatabaseSettings
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    ChangePrepared,
    Compacted,
    ModeSet,
    RouteSet,
    SessionStarted,
    ToolFinished,
    TurnStarted,
    UserMessage,
)
from handrail.protocol.ids import session_stream
from handrail.protocol.upcast import dump_event
from handrail.protocol.values import FileChange, FileSeen
from handrail.sessions.export_import import export_lines, fork, import_lines
from handrail.sessions.session import Session
from handrail.storage.event_log import Log, Row, first_hash, row_hash
from handrail.storage.log_repair import open_log, verify
from tests.sessions.test_session import started, turn


@pytest.fixture
def log(tmp_path: Path, database: DatabaseSettings) -> Iterator[Log]:
    opened = open_log(tmp_path, database, tmp_path)
    yield opened
    opened.close()


def session_of(log: Log, turns: int) -> Session:
    session = started(log)
    for number in range(1, turns + 1):
        session.append(*turn(number))
    return session


@pytest.mark.promise("SESS-2")
def test_fork_has_the_past_up_to_its_turn_and_leaves_the_original_alone(log: Log) -> None:
    session = session_of(log, 3)
    head = log.head(session.stream)
    forked = Session(log, fork(log, "s_1", 2)).load()
    assert forked.state.turns == 2
    assert forked.state.forked_from == "s_1"
    assert forked.transcript == session.transcript[:4]
    assert log.head(session.stream) == head
    assert forked.try_hold()
    forked.append(*turn(3))
    assert verify(log) == []


def test_fork_at_a_turn_that_is_not_there_is_refused(log: Log) -> None:
    session_of(log, 2)
    with pytest.raises(UsageProblem, match="cannot be forked at turn 9"):
        fork(log, "s_1", 9)


@pytest.mark.promise("SESS-3")
def test_import_of_an_export_is_the_same_session_with_its_contents(log: Log, tmp_path: Path) -> None:
    import hashlib

    session = session_of(log, 2)
    output = b"much output" * 100
    sha256 = hashlib.sha256(output).hexdigest()
    finished = ToolFinished(turn_id="t_2", call_id="c", tool="run", status="ok", output=sha256)
    session.append(finished, blobs=[output])
    lines = list(export_lines(log, "s_1"))
    other = open_log(tmp_path / "other")
    assert import_lines(other, lines) == "s_1"
    copy = Session(other, "s_1").load()
    assert copy.transcript == session.transcript
    assert (copy.state.turns, copy.state.cost_usd) == (session.state.turns, session.state.cost_usd)
    assert other.blob(sha256) == output
    assert verify(other) == []
    second = import_lines(other, lines)
    assert second != "s_1"
    assert Session(other, second).load().transcript == session.transcript
    other.close()


@pytest.mark.promise("SESS-4")
def test_permissions_of_an_imported_session_do_not_count(log: Log, tmp_path: Path) -> None:
    session = session_of(log, 1)
    seen = FileSeen(path="a.py", sha256="0" * 64, how="agent")
    change = FileChange(path="../../x", op="update", old_sha256="1", new_sha256="2")
    asked = ApprovalAsked(
        turn_id="t", approval_id="a", call_id="c", tool="run", summary="rm -rf .", preview="", why="", key="k"
    )
    session.append(
        ModeSet(mode="auto"),
        RouteSet(route="deploy"),
        UserMessage(message_id="m", turn_id="t", text="x", files=(seen,)),
        TurnStarted(turn_id="t", number=2, model="m", mode="auto"),
        ChangePrepared(turn_id="t", change_id="c", call_id="c", files=(change,)),
        asked,
        ApprovalAnswered(approval_id="a", decision="always"),
    )
    assert session.state.always
    other = open_log(tmp_path / "other")
    state = Session(other, import_lines(other, export_lines(log, "s_1"))).load().state
    assert (state.mode, state.always, state.turn) == ("ask", [], None)
    assert state.routes.chosen == ""
    assert state.files.files == {}
    assert state.files.prepared == {}
    other.close()


def crafted(*rows: tuple[int, str, str]) -> list[str]:
    """An export with a right chain around whatever events: (version, type, data)."""
    stream, before = session_stream("s_1"), first_hash(session_stream("s_1"))
    lines = [json.dumps({"handrail_export": 1, "session": "s_1"})]
    for seq, (version, kind, data) in enumerate(rows, start=1):
        before = row_hash(before, Row(stream, seq, 1, 1, version, kind, data, b""))
        lines.append(json.dumps([seq, 1, 1, version, kind, data, before.hex()]))
    return [*lines, json.dumps({"end": len(rows), "blobs": 0})]


@pytest.mark.promise("SESS-3")
def test_events_that_would_not_open_again_are_not_imported(tmp_path: Path) -> None:
    start = (1, "session_started", dump_event(SessionStarted(session_id="s_1", workspace="/w", version="0")))
    far = Compacted(compaction_id="k", upto=999, summary="", tokens_before=1, tokens_after=1)
    answered = turn(1)[2]
    hostile = [
        crafted(start, (1, "compacted", dump_event(far))),
        crafted(start, (10**30, "mode_set", '{"type":"mode_set","mode":"auto"}')),
        crafted(start, (1, "mode_set", '{"type":"session_deleted"}')),
        crafted(start, (1, "answered", dump_event(answered).replace('"cost_usd":0.5', '"cost_usd":NaN'))),
        crafted((1, "mode_set", '{"type":"mode_set","mode":"auto"}')),
    ]
    log = open_log(tmp_path)
    for lines in hostile:
        with pytest.raises(UsageProblem, match="Nothing was imported"):
            import_lines(log, lines)
        assert log.heads("") == []
    assert import_lines(log, crafted(start)) == "s_1"
    assert not (tmp_path / "log.damaged").exists()
    log.close()


@pytest.mark.promise("SESS-4")
def test_a_fork_of_an_imported_session_gives_what_was_imported_no_more_weight(
    log: Log, tmp_path: Path
) -> None:
    session = session_of(log, 1)
    session.append(ModeSet(mode="auto"), *turn(2))
    other = open_log(tmp_path / "other")
    imported = Session(other, import_lines(other, export_lines(log, "s_1"))).load()
    for number in (1, 2, None):
        assert Session(other, fork(other, imported.id, number)).load().state.mode == "ask"
    assert imported.try_hold()
    imported.append(ModeSet(mode="edit"), *turn(3))
    assert Session(other, fork(other, imported.id, 3)).load().state.mode == "edit"
    assert Session(other, fork(other, imported.id, 2)).load().state.mode == "ask"
    other.close()


def test_broken_exports_import_nothing(log: Log, tmp_path: Path) -> None:
    session_of(log, 1)
    lines = list(export_lines(log, "s_1"))
    changed = json.loads(lines[2])
    changed[5] = changed[5].replace("question", "quesTion")
    broken = [
        [],
        ["not json"],
        lines[1:],
        lines[:-1],
        [*lines[:2], *lines[3:]],
        [*lines[:2], json.dumps(changed), *lines[3:]],
        [lines[0], '{"blob": "!"}', *lines[1:]],
        [lines[0], '["x"]', lines[-1]],
        [lines[0], "[]", "3"],
        [lines[0].replace("s_1", "../s_1"), *lines[1:]],
    ]
    other = open_log(tmp_path / "other")
    for case in broken:
        with pytest.raises(UsageProblem, match="Nothing was imported"):
            import_lines(other, case)
        assert other.heads("") == []
    other.close()
