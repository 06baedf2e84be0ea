"""The bytes of an answer are on record before anything is concluded from them, whatever happens then."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.protocol.commands import SendMessage
from handrail.protocol.events import (
    Answered,
    AnswerReceived,
    Recorded,
    RequestStarted,
    ToolStarted,
    TurnFinished,
)
from handrail.protocol.ids import session_stream
from handrail.sessions.session import event_from_row
from tests.engine.commits import is_idle
from tests.engine.conversation import Conversation, conversation, eventually, write_settings
from tests.models.fake_server import FakeServer, Reply, Said, body_for
from tests.models.fake_server import Recorded as Asked
from tests.models.wires import FORMATS, WireFormat
from tests.project.source import ROOT

pytestmark = pytest.mark.anyio
SUMMARY = Said(text=('{"summary": "Hel', 'lo.", "commands": ["ls"]}'))
CALL = Said(text=("I write it.",), calls=(("call_1", "write", '{"path": "a.txt", "text": "a"}'),))


def settings(server: FakeServer, wire: WireFormat) -> str:
    return f"""
[connections.mine]
protocol = "{wire.protocol}"
base_url = "{server.url}{wire.path}"
context_window = 32000
"""


def killed(workspace: Path, route: str, when: str) -> None:
    """A process that sends a message there, and is killed as it receives the answer."""
    command = [sys.executable, "-m", "tests.engine.killed_reading", str(workspace), route, when]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == -signal.SIGKILL


def bodies_sent(server: FakeServer) -> list[bytes]:
    ends = ("/messages", "/chat/completions")
    return [asked.body for asked in server.requests if asked.path.endswith(ends)]


def events(talk: Conversation) -> list[Recorded]:
    return [event_from_row(row) for row in talk.app.log.read(session_stream(talk.id))]


async def resumed(workspace: Path) -> list[Recorded]:
    """The events of the last session, once the next process has nothing left to do in it."""
    async with conversation(workspace, None, model="mine/test-model", mode="edit") as other:
        session = next(info.id for info in other.app.sessions() if info.turns)
        other.app.attach(session)
        await eventually(lambda: is_idle(other.app, session))
        talk = Conversation(other.app, session, None, other.held, after=0)
        found = events(talk)
        await talk.aclose()
        for one in found:
            if isinstance(one.event, Answered):
                RAW[one.event.request_id] = other.app.log.blob(one.event.raw) or b""
        assert not other.app.log.received(session_stream(session))
    return found


RAW: dict[str, bytes] = {}


@pytest.mark.promise("ENG-40")
@pytest.mark.parametrize("wire", FORMATS, ids=lambda wire: wire.protocol)
async def test_answer_received_before_a_kill_is_read_and_not_asked_for_again(
    tmp_path: Path, wire: WireFormat
) -> None:
    with FakeServer([SUMMARY]) as server:
        write_settings(settings(server, wire))
        killed(tmp_path, "chat", "received")
        found = await resumed(tmp_path)
        assert len(bodies_sent(server)) == 1
    (answered,) = [one.event for one in found if isinstance(one.event, Answered)]
    (received,) = [one.event for one in found if isinstance(one.event, AnswerReceived)]
    assert answered.structured
    assert (answered.structured.summary, answered.structured.commands) == ("Hello.", ("ls",))
    assert (answered.end, answered.raw) == ("stop", received.raw)
    assert answered.usage.input_tokens == SUMMARY.input_tokens
    assert RAW[answered.request_id] == wire.write(SUMMARY)
    assert isinstance(found[-1].event, TurnFinished)
    assert found[-1].event.reason == "answered"


@pytest.mark.promise("ENG-40")
async def test_work_that_was_killed_as_its_answer_came_has_the_bytes_and_runs_nothing(tmp_path: Path) -> None:
    (wire, _) = FORMATS
    with FakeServer([CALL]) as server:
        write_settings(settings(server, wire))
        killed(tmp_path, "agent", "received")
        found = await resumed(tmp_path)
        assert len(bodies_sent(server)) == 1
    (answered,) = [one.event for one in found if isinstance(one.event, Answered)]
    assert (answered.end, answered.text, answered.calls) == ("interrupted", "I write it.", ())
    assert RAW[answered.request_id] == wire.write(CALL)
    assert not any(isinstance(one.event, ToolStarted) for one in found)
    assert not (tmp_path / "a.txt").exists()
    assert isinstance(found[-1].event, TurnFinished)
    assert found[-1].event.reason == "interrupted"


@pytest.mark.promise("ENG-41")
async def test_bytes_of_an_answer_that_was_still_streaming_at_a_kill_are_on_record(tmp_path: Path) -> None:
    (wire, _) = FORMATS
    whole = wire.write(Said(text=tuple(f"word {number} " for number in range(50))))
    with FakeServer([Reply(whole, silent_after=2000)]) as server:
        write_settings(settings(server, wire))
        killed(tmp_path, "agent", "2000")
        found = await resumed(tmp_path)
    (answered,) = [one.event for one in found if isinstance(one.event, Answered)]
    assert answered.end == "interrupted"
    assert RAW[answered.request_id] == whole[:2000]
    assert answered.text.startswith("word 0 word 1 ")


@pytest.mark.promise("ENG-40")
async def test_request_and_answer_are_committed_before_they_are_sent_and_used(tmp_path: Path) -> None:
    """The server looks at the log while it is asked; a follower of commits while the answer is read."""
    (wire, _) = FORMATS
    bodies: list[bytes | None] = []

    def look(asked: Asked) -> Reply:
        started = [one.event for one in events(talk) if isinstance(one.event, RequestStarted)]
        bodies.append(talk.app.log.request(started[-1].body))
        assert bodies[-1] == asked.body
        return Reply(body_for(asked.path, CALL if len(bodies) == 1 else Said(text=("Done.",))))

    with FakeServer(look) as server:
        async with conversation(
            tmp_path, None, settings=settings(server, wire), model="mine/test-model", mode="edit"
        ) as talk:
            await talk.send(SendMessage(text="write a.txt", route="agent"))
            await talk.until(TurnFinished)
            types = [one.event.type for one in events(talk)]
            assert bodies == bodies_sent(server)
            raws = [talk.app.log.blob(event.raw) for event in talk.all(AnswerReceived)]
    assert raws == [wire.write(CALL), wire.write(Said(text=("Done.",)))]
    assert types.index("answer_received") < types.index("answered") < types.index("tool_started")
