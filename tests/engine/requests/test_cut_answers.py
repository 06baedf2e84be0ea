"""A stream cut at any byte runs nothing; the whole of it runs each call exactly once."""

from pathlib import Path

import pytest

from handrail.protocol.commands import SendMessage
from handrail.protocol.events import Answered, Recorded, RequestFailed, ToolStarted, TurnFinished
from tests.engine.conversation import Conversation, conversation
from tests.models.fake_server import FakeServer, Reply, Said, body_for
from tests.models.fake_server import Recorded as Asked
from tests.models.wires import FORMATS, WireFormat

pytestmark = pytest.mark.anyio

CALL = Said(text=("I add it.",), calls=(("call_1", "run", '{"command": "sh add.sh"}'),))
DONE = Said(text=("done",))
RESULTS = (b'"tool_result"', b'"role":"tool"', b'"role": "tool"')


class Cutting:
    """Answers with the call, cut where it is told to; once there is a result, with a word."""

    def __init__(self) -> None:
        self.cut: int | None = 0

    def __call__(self, asked: Asked) -> Reply:
        if any(mark in asked.body for mark in RESULTS):
            return Reply(body_for(asked.path, DONE))
        return Reply(body_for(asked.path, CALL), cut=self.cut)


async def turn(talk: Conversation) -> list[Recorded]:
    """All events of one turn in a session of its own."""
    session = talk.app.new_session()
    await talk.app.send(session, SendMessage(text="add"))
    one = Conversation(talk.app, session, None, talk.held, after=0)
    await one.until(TurnFinished)
    await one.aclose()
    talk.app.detach(session)
    return one.seen


@pytest.mark.promise("ENG-22")
@pytest.mark.parametrize("wire", FORMATS, ids=lambda wire: wire.protocol)
async def test_call_of_a_cut_stream_never_runs_and_of_a_whole_one_runs_once(
    tmp_path: Path, wire: WireFormat
) -> None:
    (tmp_path / "add.sh").write_text("echo x >> made\n")
    made = tmp_path / "made"
    cutting = Cutting()
    body = wire.write(CALL)
    ends = body.index(b"finish_reason" if wire.protocol == "openai" else b"stop_reason")
    with FakeServer(cutting) as server:
        settings = f"""
[retries]
count = 0
[connections.mine]
protocol = "{wire.protocol}"
base_url = "{server.url}{wire.path}"
context_window = 32000
"""
        async with conversation(
            tmp_path, None, settings=settings, model="mine/test-model", mode="auto", allow=("sh",)
        ) as talk:
            for cut in range(len(body)):
                cutting.cut = cut
                before = made.read_text() if made.exists() else ""
                events = [one.event for one in await turn(talk)]
                ran = sum(isinstance(event, ToolStarted) for event in events)
                after = made.read_text() if made.exists() else ""
                assert len(after) - len(before) == 2 * ran
                if cut <= ends:
                    assert ran == 0
                if not ran:
                    assert isinstance(events[-1], TurnFinished)
                    assert events[-1].reason == "failed"
                    assert sum(isinstance(event, RequestFailed) for event in events) == 1
                    assert not any(isinstance(event, Answered) for event in events)
            cutting.cut = None
            made.unlink(missing_ok=True)
            events = [one.event for one in await turn(talk)]
            assert sum(isinstance(event, ToolStarted) for event in events) == 1
            assert made.read_text() == "x\n"


@pytest.mark.promise("MOD-3")
@pytest.mark.parametrize("wire", FORMATS, ids=lambda wire: wire.protocol)
async def test_calls_of_an_answer_with_an_unknown_finish_reason_do_not_run(
    tmp_path: Path, wire: WireFormat
) -> None:
    (tmp_path / "add.sh").write_text("echo x >> made\n")
    cut = Said(text=CALL.text, calls=CALL.calls, finish="paused_by_provider")
    with FakeServer([Reply(wire.write(cut))]) as server:
        settings = f"""
[connections.mine]
protocol = "{wire.protocol}"
base_url = "{server.url}{wire.path}"
context_window = 32000
"""
        async with conversation(
            tmp_path, None, settings=settings, model="mine/test-model", mode="auto", allow=("sh",)
        ) as talk:
            finished = await talk.turn("add")
    (answered,) = talk.all(Answered)
    assert (answered.end, answered.calls, answered.text) == ("cut", (), "I add it.")
    assert "reason that Handrail does not know" in finished.detail
    assert not talk.all(ToolStarted)
    assert not (tmp_path / "made").exists()
