"""Facts are committed before their effect and before anybody is shown them."""

import sqlite3
from pathlib import Path

import pytest

from handrail.protocol.commands import AnswerApproval, SendMessage
from handrail.protocol.errors import StorageFull
from handrail.protocol.events import Answered, ApprovalAsked, ToolFinished, ToolStarted, TurnFinished
from handrail.storage.event_log import Log, NewRow
from tests.engine.conversation import conversation, eventually, run
from tests.storage.backends import sqlite_of

pytestmark = pytest.mark.anyio


@pytest.mark.promise("ENG-2")
async def test_start_of_a_call_is_in_the_log_when_its_effect_happens(tmp_path: Path) -> None:
    (tmp_path / "effect.sh").write_text("touch begun\nuntil [ -e seen ]; do sleep 0.02; done\n")
    answers = [run("sh effect.sh"), {"text": "seen"}]
    async with conversation(tmp_path, answers, mode="auto", allow=("sh effect.sh",)) as talk:
        await talk.say("have an effect")
        await eventually((tmp_path / "begun").exists)
        other = sqlite3.connect(f"file:{talk.app.log.folder / 'log.db'}?mode=ro", uri=True)
        committed = [kind for (kind,) in other.execute("SELECT type FROM events ORDER BY rowid")]
        other.close()
        (tmp_path / "seen").touch()
        await talk.until(TurnFinished)
    assert committed[-2:] == ["answered", "tool_started"]
    (finished,) = talk.all(ToolFinished)
    assert finished.status == "ok", finished


@pytest.mark.promise("ENG-2")
async def test_whatever_a_follower_is_shown_is_in_the_log_already(tmp_path: Path) -> None:
    answers = [run("echo one"), {"text": "done"}]
    async with conversation(tmp_path, answers, mode="auto", allow=("echo",)) as talk:
        other = sqlite3.connect(f"file:{talk.app.log.folder / 'log.db'}?mode=ro", uri=True)
        await talk.say("go")
        while not talk.all(TurnFinished):
            await talk.until(object)
            shown = [one.seq for one in talk.seen]
            (stored,) = other.execute("SELECT max(seq) FROM events").fetchone()
            assert max(shown) <= stored
            assert shown == list(range(1, len(shown) + 1))
        other.close()


def fill(log: Log) -> None:
    """Leave no room for an event, as on a full disk; commands still find some in the pages they have."""
    (pages,) = sqlite_of(log).execute("PRAGMA page_count").fetchone()
    sqlite_of(log).execute(f"PRAGMA max_page_count = {pages}")
    for size in (3000, 300, 30, 1):
        with pytest.raises(StorageFull):
            for _ in range(1000):
                log.append("filler", [NewRow("x", 1, "y" * size)])


@pytest.mark.promise("ENG-3")
async def test_full_disk_stops_the_action_before_it_begins(tmp_path: Path) -> None:
    answers = [run("touch made"), {"text": "done"}]
    target = tmp_path / "made"
    async with conversation(tmp_path, answers) as talk:
        await talk.say("make it")
        asked = await talk.until(ApprovalAsked)
        fill(talk.app.log)
        answer = AnswerApproval(approval_id=asked.approval_id, decision="once")
        await talk.send(answer)
        with pytest.raises(StorageFull, match="Free some disk space"):
            await talk.until(TurnFinished)
        assert not target.exists()

    async with conversation(tmp_path, answers, session=talk.id) as again:
        asked = await again.until(ApprovalAsked)
        await again.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
        assert (await again.until(TurnFinished)).reason == "answered"
    assert target.exists()
    assert len(again.all(ToolStarted)) == 1


@pytest.mark.promise("ENG-3")
async def test_full_disk_while_an_answer_streams_ends_in_an_error_and_the_session_goes_on(
    tmp_path: Path,
) -> None:
    answers = [{"text": "one two three"}, {"text": "later"}]
    async with conversation(tmp_path, answers) as talk:
        talk.held.hold(0, 2)
        await talk.say("talk")
        await talk.held.reached(0, 2)
        fill(talk.app.log)
        talk.held.let_go(0, 2)
        with pytest.raises(StorageFull):
            await talk.until(TurnFinished)
        assert not talk.app.is_holder(talk.id)

    async with conversation(tmp_path, answers, session=talk.id) as again:
        assert (await again.until(TurnFinished)).reason == "interrupted"
        assert again.all(Answered)[0].end == "interrupted"
        await again.send(SendMessage(text="again"))
        assert (await again.until(TurnFinished)).reason == "answered"
        await eventually(lambda: not again.app.log.waiting(f"session:{talk.id}"))
