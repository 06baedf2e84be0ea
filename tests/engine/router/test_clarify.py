"""A question what is wanted is answered only by who was shown it."""

import json
from pathlib import Path

import pytest

from handrail.protocol.commands import SendMessage
from handrail.protocol.events import Routed, TurnFinished
from tests.engine.conversation import conversation
from tests.engine.router.test_router import TWO

pytestmark = pytest.mark.anyio
UNSURE = {"when": "The user's message:", "text": json.dumps({"decision": "clarify", "confidence": 0.9})}


@pytest.mark.promise("RUN-10")
@pytest.mark.parametrize(("shown", "by"), [(False, "model"), (True, "answer")])
async def test_a_number_answers_only_the_question_that_its_sender_was_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, shown: bool, by: str
) -> None:
    monkeypatch.setenv("HANDRAIL_AUTO_ROUTE", "on")
    async with conversation(tmp_path, [UNSURE, {"text": "Done."}], catalogue=TWO) as talk:
        await talk.turn("the cart, perhaps")
        asked = next(one.seq for one in talk.seen if isinstance(one.event, Routed))
        await talk.send(SendMessage(text="1", seen=asked if shown else asked - 1))
        await talk.until(TurnFinished)
        assert [routed.by for routed in talk.all(Routed)] == ["model", by]
