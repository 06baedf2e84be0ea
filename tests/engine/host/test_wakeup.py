"""Who waits is woken by what concerns them, and by nothing else."""

from pathlib import Path

import anyio
import pytest

from handrail.engine.host.wakeup import Wakeup
from handrail.protocol.events import Answered, Delta, TurnFinished
from tests.engine.conversation import DEADLINE, conversation

pytestmark = pytest.mark.anyio


async def test_a_notification_between_looking_and_waiting_is_not_missed() -> None:
    wakeup = Wakeup()
    seen = wakeup.version
    wakeup.notify()
    with anyio.fail_after(DEADLINE):
        await wakeup.wait(seen)


async def test_who_waits_for_commits_and_text_is_woken_by_both() -> None:
    updates = Wakeup()
    commits = Wakeup(also=updates)
    updates.notify()
    assert (commits.version, updates.version) == (0, 1)
    commits.notify()
    assert (commits.version, updates.version) == (1, 2)


async def test_streamed_text_reaches_followers_and_costs_no_look_into_the_inbox(tmp_path: Path) -> None:
    text = [f"word{number} " for number in range(200)]
    async with conversation(tmp_path, [{"text": text}]) as talk:
        talk.held.hold(0, 1)
        talk.held.hold(0, 199)
        await talk.say("Say much")
        await talk.held.reached(0, 1)
        before = talk.app.commits.version
        talk.held.let_go(0, 1)
        await talk.held.reached(0, 199)
        await talk.until(Delta, lambda delta: "word198" in delta.text)
        assert talk.app.commits.version == before
        talk.held.let_go(0, 199)
        await talk.until(TurnFinished)
    assert talk.all(Answered)[0].text == "".join(text)
