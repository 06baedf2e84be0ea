"""What the log says of a call that Handrail was killed in."""

from pathlib import Path

import pytest

from handrail.engine.takeover import take_over
from handrail.protocol.events import Answered, ToolFinished, ToolStarted
from handrail.protocol.values import ToolCall
from handrail.sessions.handle import recorded
from handrail.workspace.files import Workspace
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
    events = [recorded(row).event for row in session.log.read(session.stream)]
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert ("changed is not recorded" in finished.content) == unrecorded
    session.release()
    session.log.close()
