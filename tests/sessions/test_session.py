"""A session's handle: facts first, state by folding, the same state however it is opened."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from handrail.config.settings import DatabaseSettings
from handrail.protocol.errors import LostHold, StorageProblem
from handrail.protocol.events import (
    Answered,
    Compacted,
    CompactionUndone,
    Event,
    ModeSet,
    Recorded,
    SessionStarted,
    TurnFinished,
    TurnStarted,
    UserMessage,
)
from handrail.protocol.upcast import load_event
from handrail.sessions.session import Session
from handrail.sessions.session_list import list_sessions
from handrail.sessions.session_state import SNAPSHOT_VERSION
from handrail.sessions.transcript import SHOWN_EVENTS, AssistantEntry, UserEntry, entry_for_event
from handrail.storage.event_log import Log, NewRow
from handrail.storage.log_repair import open_log
from tests.storage.backends import change


@pytest.fixture
def log(tmp_path: Path, database: DatabaseSettings) -> Iterator[Log]:
    opened = open_log(tmp_path, database, tmp_path)
    yield opened
    opened.close()


def started(log: Log, session_id: str = "s_1") -> Session:
    session = Session(log, session_id)
    assert session.try_hold()
    session.append(SessionStarted(session_id=session_id, workspace="/w", version="0"))
    return session


def turn(number: int) -> list[Event]:
    turn_id = f"t_{number}"
    return [
        UserMessage(message_id=f"u_{number}", turn_id=turn_id, text=f"question {number}"),
        TurnStarted(turn_id=turn_id, number=number, model="m", mode="ask"),
        Answered(
            turn_id=turn_id,
            request_id=f"r_{number}",
            message_id=f"a_{number}",
            model="m",
            text=f"answer {number}",
            end="stop",
            cost_usd=0.5,
        ),
        TurnFinished(turn_id=turn_id, reason="answered"),
    ]


def same(first: Session, second: Session) -> None:
    assert first.state == second.state
    assert first.transcript == second.transcript
    assert first.seq == second.seq


def test_opening_again_gives_the_same_state_with_and_without_a_snapshot(log: Log) -> None:
    session = started(log)
    for number in range(1, 60):
        session.append(*turn(number))
        session.save_snapshot()
    assert log.snapshot(session.stream, SNAPSHOT_VERSION)
    session.append(ModeSet(mode="auto"))
    same(Session(log, "s_1").load(), session)
    change(log, "DELETE FROM snapshots")
    same(Session(log, "s_1").load(), session)
    assert session.state.cost_usd == pytest.approx(29.5)


def test_compaction_changes_what_is_shown_and_undoing_brings_it_back(log: Log) -> None:
    session = started(log)
    for number in range(1, 5):
        session.append(*turn(number))
    whole = list(session.transcript)
    cut = next(entry.seq for entry in whole if isinstance(entry, AssistantEntry) and entry.text == "answer 2")
    compacted = Compacted(compaction_id="k", upto=cut, summary="two turns", tokens_before=9, tokens_after=3)
    session.append(compacted)
    assert [entry.text for entry in session.transcript if isinstance(entry, UserEntry)] == [
        "question 3",
        "question 4",
    ]
    same(Session(log, "s_1").load(), session)
    session.append(CompactionUndone(compaction_id="k"))
    assert session.transcript == whole
    same(Session(log, "s_1").load(), session)


@contextmanager
def reading(log: Log, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Where in the log is read from."""
    starts: list[int] = []
    rows = log.database.rows

    def noting(query: str, values: Sequence[Any] = (), /) -> list[Any]:
        if "FROM events WHERE stream = ? AND seq >= ?" in query:
            starts.append(values[1])
        return rows(query, values)

    monkeypatch.setattr(log.database, "rows", noting)
    yield starts
    monkeypatch.undo()


def test_opening_a_session_reads_what_came_after_its_snapshot(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = started(log)
    for number in range(1, 200):
        session.append(*turn(number))
    session.save_snapshot()
    saved = session.seq
    session.append(*turn(200))
    with reading(log, monkeypatch) as starts:
        opened = Session(log, "s_1").load()
    assert starts == [saved]
    same(opened, session)


def test_opening_a_compacted_session_reads_only_what_is_shown(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = started(log)
    for number in range(1, 200):
        session.append(*turn(number))
    cut = session.transcript[-3].seq
    session.append(Compacted(compaction_id="k", upto=cut, summary="s", tokens_before=9, tokens_after=3))
    session.save_snapshot()
    with reading(log, monkeypatch) as starts:
        same(Session(log, "s_1").load(), session)
    assert min(starts) == cut


def test_only_the_holder_appends(log: Log) -> None:
    session = started(log)
    other = Session(log, "s_1").load()
    assert not other.try_hold()
    with pytest.raises(LostHold):
        other.append(ModeSet(mode="auto"))
    session.release()
    assert other.try_hold()
    other.append(ModeSet(mode="auto"))
    with pytest.raises(LostHold):
        session.append(ModeSet(mode="edit"))


def test_failed_append_changes_no_state(log: Log) -> None:
    session = started(log)
    before = deepcopy(session.state)
    change(log, "UPDATE streams SET epoch = epoch + 1")
    with pytest.raises(LostHold):
        session.append(ModeSet(mode="auto"))
    assert session.state == before


def test_every_event_that_is_shown_to_the_model_is_listed_as_such() -> None:
    golden = Path(__file__).parents[1] / "protocol" / "golden" / "events-v1.jsonl"
    shown = set()
    for seq, line in enumerate(golden.read_text(encoding="utf-8").splitlines()):
        event = load_event(1, line)
        if entry_for_event(Recorded("s", seq, 0.0, event)):
            shown.add(event.type)
    assert shown | {"request_failed", "turn_finished"} == SHOWN_EVENTS


def test_a_list_is_right_after_every_commit_of_a_turn(log: Log) -> None:
    session = started(log)
    asked, begun, *rest = turn(1)
    for events in ([], [asked, begun], *([event] for event in rest)):
        session.append(*events)
        (listed,) = list_sessions(log)
        state = session.state
        assert (listed.title, listed.turns, listed.running) == (state.title, state.turns, bool(state.turn))
    assert (head := log.head(session.stream))
    assert '"turns":1' in head.label
    assert '"running":false' in head.label


def test_event_of_another_version_is_told_as_such(log: Log) -> None:
    session = started(log)
    strange = NewRow("mode_set", 1, '{"type":"mode_set","mode":"ask","mood":"good"}')
    log.append(session.stream, [strange])
    with pytest.raises(StorageProblem, match="another version of Handrail"):
        Session(log, session.id).load()
