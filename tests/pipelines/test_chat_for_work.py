"""Work for models that have no tools of their own: one answer with its changes, instead of the tool loop."""

import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from handrail.protocol.commands import SendMessage
from handrail.protocol.events import ChangeApplied, Routed, RunStarted, ToolFinished, TurnFinished
from tests.engine.conversation import Conversation, conversation
from tests.models.fake_server import FakeServer, Recorded, Reply, Said, body_for
from tests.pipelines.test_chat import CART, FIX, QUESTION, fixed

pytestmark = pytest.mark.anyio
CALL = {"name": "read", "arguments": {"path": "cart.py"}}


@pytest.fixture(autouse=True)
def routed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HANDRAIL_AUTO_ROUTE", "on")
    (tmp_path / "cart.py").write_text(CART)


def answer(request: Recorded) -> Reply:
    """What a model says that cannot call tools: a plan, an answer with changes, or a call as text."""
    told = str(request.json["messages"][-1]["content"])
    if "Output of look" in told:
        text = json.dumps({"patterns": ["cart.py"], "urls": [], "mentions": [], "todos": []})
    elif "Handrail looked for what this message needs" in told:
        text = json.dumps(fixed())
    else:
        read = "return sum(items)" in json.dumps(request.json["messages"])
        text = "It adds." if read else f"```json\n{json.dumps(CALL)}\n```"
    return Reply(body_for(request.path, Said(text=tuple(text))))


def talking(workspace: Path, server: FakeServer, mode: str) -> AbstractAsyncContextManager[Conversation]:
    settings = f'[connections.mine]\nbase_url = "{server.url}/v1"\nnative_tools = false\n'
    return conversation(workspace, None, settings=settings, model="mine/m", mode=mode)


@pytest.mark.promise("CHAT-8")
async def test_work_for_a_model_without_tools_is_one_answer_with_its_changes(tmp_path: Path) -> None:
    with FakeServer(answer) as server:
        async with talking(tmp_path, server, mode="edit") as talk:
            assert (await talk.turn(FIX)).reason == "answered"
            assert [event.route for event in talk.all(Routed)] == ["agent"]
            assert [event.pipeline for event in talk.all(RunStarted)] == ["chat"]
            assert len(talk.all(ChangeApplied)) == 1
    assert "* 1.2" in (tmp_path / "cart.py").read_text()


@pytest.mark.promise("CHAT-8")
async def test_its_questions_change_nothing(tmp_path: Path) -> None:
    with FakeServer(answer) as server:
        async with talking(tmp_path, server, mode="auto") as talk:
            assert (await talk.turn(QUESTION)).reason == "answered"
            assert [event.reads_only for event in talk.all(RunStarted)] == [True]
    assert (tmp_path / "cart.py").read_text() == CART


@pytest.mark.promise("CHAT-8")
@pytest.mark.parametrize("check", ["", "true"])
async def test_the_tool_loop_is_there_for_who_chooses_it_or_has_a_check(tmp_path: Path, check: str) -> None:
    with FakeServer(answer) as server:
        async with talking(tmp_path, server, mode="auto") as talk:
            await talk.send(SendMessage(text=FIX, check=check, attempts=1, route="" if check else "agent"))
            assert (await talk.until(TurnFinished)).reason == "answered"
            assert [event.pipeline for event in talk.all(RunStarted)] == ["agent"]
            assert [event.tool for event in talk.all(ToolFinished)] == ["read"]


async def test_a_check_is_refused_where_no_model_works_at_files(tmp_path: Path) -> None:
    async with conversation(tmp_path, [{"text": "Never asked."}]) as talk:
        await talk.send(SendMessage(text=FIX, check="true", route="chat"))
        done = await talk.until(TurnFinished)
        assert done.reason == "failed"
        assert "Send the message without `--check`, or to `agent`" in done.detail
        assert not talk.requests
