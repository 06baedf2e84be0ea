"""The slash commands for sessions: /sessions, /status, /label and /archive."""

import time
from typing import TYPE_CHECKING

from handrail.app.history.sessions import change_labels, named_status, send_and_wait, set_status
from handrail.interfaces.cli.commands.sessions import session_lines
from handrail.interfaces.cli.conversation.slash_changes import require_idle_session, require_session_id
from handrail.interfaces.cli.render.tool_calls import note
from handrail.protocol.commands import SetStatus

if TYPE_CHECKING:
    from handrail.interfaces.cli.conversation.conversation import Conversation

MAX_LISTED = 15


async def sessions(talk: "Conversation", argument: str) -> None:
    status = named_status(argument)
    label = "" if status or argument == "all" else argument.removeprefix("#")
    infos = talk.app.sessions(status=status, label=label, deleted=argument == "all")
    none = f"none with the status or label {argument}" if argument else "none yet"
    talk.say(session_lines(infos[:MAX_LISTED], time.time(), talk.width) or note("sessions", none, talk.width))


async def status(talk: "Conversation", argument: str) -> None:
    now = talk.app.state(require_session_id(talk)).status
    if argument:
        await talk.send(set_status(argument))
    else:
        talk.tell("session", f"{now.replace('_', ' ')}; /status sets it: open, in progress, done or archived")


async def label(talk: "Conversation", argument: str) -> None:
    state, words = talk.app.state(require_session_id(talk)), argument.split()
    if not words:
        talk.tell(
            "labels", f"{', '.join(state.labels) or 'none'}; /label NAME adds one, /label -NAME removes it"
        )
        return
    removed = [word[1:] for word in words if word.startswith("-")]
    added = [word.removeprefix("#") for word in words if not word.startswith("-")]
    await talk.send(change_labels(state, added, removed))


async def archive(talk: "Conversation", _argument: str) -> None:
    left = require_idle_session(talk)
    await send_and_wait(talk.app, left, SetStatus("archived"))
    talk.close()
    talk.tell("archived", f"your next message starts a new session; /resume {left} goes back to this one")
