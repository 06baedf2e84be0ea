"""The slash command for where messages go."""

from typing import TYPE_CHECKING

from handrail.protocol.commands import SetRoute

if TYPE_CHECKING:
    from handrail.interfaces.cli.conversation import Conversation

WAYS = "auto finds out, agent works on files, chat answers, and the name of an agent runs that one"


async def route(talk: "Conversation", argument: str) -> None:
    """Show the session's route, or set it."""
    if not argument:
        chosen = talk.app.state(talk.session_id).routes.chosen if talk.session_id else ""
        talk.tell("route", f"{chosen or talk.app.turns.ways.usual}; {WAYS}")
        return
    await talk.send(SetRoute(route=argument.strip()))
