"""Who is asked in a chat: a fast model plans, the main one answers and plans where there is no other."""

import json
from pathlib import Path

import pytest

from handrail.protocol.commands import SendMessage
from handrail.protocol.events import TurnFinished
from tests.engine.conversation import conversation
from tests.models.fake_server import FakeServer, Recorded, Reply, Said, body_for

pytestmark = pytest.mark.anyio


def answer(request: Recorded) -> Reply:
    told = request.json["messages"][-1]["content"]
    planned = {"patterns": ["cart.py"], "urls": [], "mentions": [], "todos": []}
    said = planned if "Output of look" in told else {"summary": "It adds."}
    return Reply(body_for(request.path, Said(text=(json.dumps(said),))))


@pytest.mark.promise("CHAT-1")
@pytest.mark.parametrize(
    ("fast", "asked"),
    [
        ("lab/quick", [("lab", "quick"), ("main", "m")]),
        ("", [("main", "m"), ("main", "m")]),
        ("gone/quick", [("main", "m"), ("main", "m")]),
    ],
)
async def test_the_plan_is_made_by_the_fast_model_and_the_answer_by_the_main_one(
    tmp_path: Path, fast: str, asked: list[tuple[str, str]]
) -> None:
    (tmp_path / "cart.py").write_text("def total(items):\n    return sum(items)\n")
    with FakeServer(answer) as server:
        settings = f'[models]\nfast = "{fast}"\n'
        for name in ("main", "lab"):
            settings += f'[connections.{name}]\nbase_url = "{server.url}/{name}/v1"\n'
        async with conversation(tmp_path, None, settings=settings, model="main/m") as talk:
            await talk.send(SendMessage(text="what does total() do?", route="chat"))
            assert (await talk.until(TurnFinished)).reason == "answered"
        sent = [each for each in server.requests if each.path.endswith("/chat/completions")]
    assert [(each.path.split("/")[1], each.json["model"]) for each in sent] == asked
    assert "Output of look" in json.dumps(sent[0].json)
    assert "return sum(items)" in json.dumps(sent[1].json)
