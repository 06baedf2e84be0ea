"""The slash command about commands in the background."""

import time
from typing import TYPE_CHECKING

from handrail.interfaces.cli.figures import clock
from handrail.interfaces.cli.tool_lines import body, note
from handrail.protocol.commands import StopBackground
from handrail.protocol.errors import UsageProblem
from handrail.protocol.ids import session_stream
from handrail.sessions.live import BACKGROUND, stored_text

if TYPE_CHECKING:
    from handrail.interfaces.cli.conversation import Conversation

SHOWN = 5_000


async def background(talk: "Conversation", argument: str) -> None:
    """List them, show the latest output of one, or stop one."""
    words = argument.split()
    running = talk.app.state(talk.session_id).background.running if talk.session_id else {}
    if not words:
        for each in running.values():
            talk.tell(each.id, f"{clock(time.time() - each.since)}  {each.command}")
        talk.tell(
            "background" if not running else "",
            "/background ID shows what one writes, /background stop ID stops it"
            if running
            else "no command runs in the background",
        )
        return
    if len(words) > 2 or (len(words) == 2 and words[0] != "stop") or words == ["stop"]:
        raise UsageProblem("Say /background, /background ID, or /background stop ID.")
    if words[-1] not in running:
        raise UsageProblem(f"No command {words[-1]} runs in the background. {_ids(list(running))}")
    if len(words) == 2:
        await talk.send(StopBackground(background_id=words[-1]))
        return
    rows = body(latest(talk, words[-1]), talk.width)
    talk.say(rows or note(words[-1], "it has written nothing yet", talk.width))


def latest(talk: "Conversation", background_id: str) -> str:
    """The end of what a running one has written: as it is in this process, else as far as the log has it."""
    if found := talk.app.turns.background.find(talk.session_id, background_id):
        return found.latest(SHOWN)
    stream = session_stream(talk.session_id)
    return stored_text(talk.app.log, stream, background_id, BACKGROUND)[-SHOWN:]


def _ids(known: list[str]) -> str:
    return f"There are: {', '.join(known)}." if known else "There are none."
