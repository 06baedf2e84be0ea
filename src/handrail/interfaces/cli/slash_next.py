"""The slash command that says one of the next steps of the last answer."""

from typing import TYPE_CHECKING

from handrail.interfaces.cli.styles import Line
from handrail.interfaces.cli.tool_lines import note
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import UsageProblem
from handrail.protocol.structured import CONTINUE

if TYPE_CHECKING:
    from handrail.interfaces.cli.conversation import Conversation


async def say_next(talk: "Conversation", argument: str) -> None:
    """Send the first, or the one of a number."""
    steps = talk.next_steps
    if not steps:
        raise UsageProblem("The last answer names no next step.")
    number = int(argument) if argument.isdecimal() and len(argument) <= 3 else 0
    if argument and not 0 < number <= len(steps):
        raise UsageProblem(f"Say /next, or /next and a number from 1 to {len(steps)}.")
    step = steps[number - 1] if number else steps[0]
    # What goes on goes on where it began; anything else goes where its words belong.
    route = talk.app.state(talk.session_id).routes.last if step.input == CONTINUE else ""
    await talk.send(SendMessage(text=step.input, route=route, suggested=True))


def offered(count: int, width: int) -> list[Line]:
    """That an answer has next steps, and how to say one."""
    up_to = f", up to /next {count}" if count > 2 else ""
    ways = "/next says it" if count == 1 else f"/next says the first, /next 2 the second{up_to}"
    return note("next", ways, width)
