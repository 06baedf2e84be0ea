"""The slash command for intents: which one is active, and selecting another."""

from typing import TYPE_CHECKING

from handrail.protocol.commands import SelectIntent
from handrail.protocol.errors import UsageProblem

if TYPE_CHECKING:
    from handrail.interfaces.cli.conversation import Conversation

NONE = "none"


async def intent(talk: "Conversation", argument: str) -> None:
    """Show the intents and which is active, or select one."""
    active = talk.app.state(talk.session_id).intent if talk.session_id else ""
    if argument:
        if argument == NONE and not active:
            raise UsageProblem("No intent is active.")
        await talk.send(SelectIntent(intent_id="" if argument == NONE else argument))
        return
    if not active and not talk.app.intents.bound:
        talk.tell("intent", "intents are not in use here; `handrail intents init` turns them on")
        return
    from handrail.interfaces.cli.intent_lines import listed

    talk.tell("intent", f"{active or 'none is active'}; /intent ID selects one")
    for text in listed(talk.app.intents.now()):
        talk.tell("", text)
