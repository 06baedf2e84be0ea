"""What the log says of a call that Handrail was killed in."""

from pathlib import Path
from typing import Any

import pytest

from handrail.engine.host.takeover import take_over
from handrail.protocol.commands import AnswerQuestion
from handrail.protocol.events import (
    Answered,
    QuestionAsked,
    Recorded,
    SessionStarted,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UserMessage,
)
from handrail.protocol.values import ToolCall
from handrail.sessions.session import Session, event_from_row
from handrail.workspace.files import Workspace
from tests.engine.conversation import conversation, words
from tests.tools.calls import open_session


@pytest.mark.promise("CMD-7")
@pytest.mark.parametrize(("tool", "unrecorded"), [("run", True), ("fetch", False)])
def test_an_interrupted_command_is_said_to_be_beyond_a_rewind(
    tmp_path: Path, tool: str, *, unrecorded: bool
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    session = open_session(tmp_path / "log", work, "auto", "x")
    call = ToolCall(id="call_1", name=tool, arguments={"command": "make"})
    session.append(
        Answered(
            turn_id="t_1",
            request_id="r_1",
            message_id="m_2",
            model="scripted/one",
            text="",
            calls=(call,),
            end="tool_calls",
        ),
        ToolStarted(
            turn_id="t_1",
            call_id="call_1",
            tool=tool,
            arguments=call.arguments,
            kind="destructive",
            summary="make",
        ),
    )
    take_over(session, Workspace(work))
    events = [event_from_row(row).event for row in session.log.read(session.stream)]
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert ("changed are not recorded" in finished.content) == unrecorded
    session.release()
    session.log.close()


@pytest.mark.anyio
async def test_a_turn_of_a_version_without_runs_goes_on(tmp_path: Path) -> None:
    call = ToolCall(id="call_1", name="ask_user", arguments={"question": "Which?"})
    said: dict[str, Any] = {"request_id": "r_1", "message_id": "m_2", "model": "scripted/test", "text": ""}
    async with conversation(tmp_path, [{"text": "not asked"}, {"text": "The first, then."}]) as talk:
        session = Session(talk.app.log, "s_old")
        session.try_hold()
        session.append(
            SessionStarted(session_id="s_old", workspace=str(tmp_path), version="0.0"),
            UserMessage(message_id="m_1", turn_id="t_1", text="do it"),
            TurnStarted(turn_id="t_1", number=1, model="scripted/test", mode="ask"),
            Answered(turn_id="t_1", calls=(call,), end="tool_calls", **said),
            QuestionAsked(turn_id="t_1", question_id="q_1", call_id="call_1", question="Which?"),
        )
        session.release()
        await talk.app.send("s_old", AnswerQuestion(question_id="q_1", answer="the first"))
        async for item in talk.app.follow("s_old"):
            if isinstance(item, Recorded) and isinstance(item.event, TurnFinished):
                assert item.event.reason == "answered"
                break
        assert "the first" in words(talk.requests[-1])
        assert talk.app.state("s_old").run is None
