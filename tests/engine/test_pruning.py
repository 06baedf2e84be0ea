"""What is pruned is named first, and the record says when it went."""

import os
import sqlite3
from pathlib import Path

import pytest

from handrail.protocol.events import AnswerReceived, PruneAnnounced, Pruned, RequestStarted
from handrail.sessions.audit import audit_session, raw_exchange
from handrail.sessions.storage_use import measure_storage
from tests.engine.conversation import Conversation, conversation, eventually

pytestmark = pytest.mark.anyio
SETTINGS = "[storage]\nmegabytes = 1\n"


def age(talk: Conversation) -> None:
    """Make everything stored so far look old."""
    with sqlite3.connect(talk.app.log.folder / "log.db") as db:
        db.execute("UPDATE blobs SET at = 1")
    db.close()


@pytest.mark.promise("STORE-41")
async def test_full_storage_is_announced_at_the_start_of_a_turn_and_pruned_at_its_end(tmp_path: Path) -> None:
    answers = [{"text": f"Answer {number}."} for number in range(4)]
    async with conversation(tmp_path, answers, settings=SETTINGS) as talk:
        await talk.turn("one")
        old = talk.all(RequestStarted)[0]
        for _ in range(12):
            talk.app.log.keep(os.urandom(100_000))
        age(talk)
        talk.app.log.requests._stored.clear()
        use = measure_storage(talk.app.log, 1_000_000)
        assert use.spare.requests.contents >= 12
        assert use.spare.answers.contents == 1
        await talk.turn("two")
        (announced,) = talk.all(PruneAnnounced)
        assert announced.requests + announced.answers > 0
        types = talk.types
        assert types.index("prune_announced") < types.index("request_started", types.index("prune_announced"))
        pruned = await talk.until(Pruned)
        assert pruned.size >= 300_000
        assert talk.app.log.contents.room().size <= 900_000
        first = audit_session(talk.app.log, talk.id)[0]
        assert first.body == old.body
        assert raw_exchange(talk.app.log, first).answer is None
        assert "answer" in first.pruned
        await talk.turn("three")
        await eventually(lambda: talk.app.state(talk.id).turn is None)
        assert len(talk.all(PruneAnnounced)) == 1
        last = audit_session(talk.app.log, talk.id)[-1]
        request, answer = raw_exchange(talk.app.log, last)
        assert request
        assert answer
        assert b"three" in request


@pytest.mark.promise("STORE-41")
async def test_nothing_is_announced_below_the_limit(tmp_path: Path) -> None:
    async with conversation(tmp_path, [{"text": "Answer."}], settings=SETTINGS) as talk:
        await talk.turn("one")
        assert talk.all(AnswerReceived)
        assert not talk.all(PruneAnnounced)
