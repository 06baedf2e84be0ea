"""What hooks said, as lines."""

import json

from handrail.interfaces.cli.styles import BAD, BOLD, Line
from handrail.interfaces.cli.tool_lines import note
from handrail.protocol.events import HookSpoke, SessionHooked

ARGUMENTS = 300
NAME = "hook"


def hook_lines(event: HookSpoke | SessionHooked, width: int) -> list[Line]:
    """What a person is shown of it; where a call was denied, the line of the call says so."""
    match event:
        case SessionHooked():
            return note(NAME, f"the model was told: {event.text}", width) if event.text else []
        case HookSpoke(did="changed"):
            arguments = json.dumps(event.arguments, ensure_ascii=False)
            shown = arguments if len(arguments) <= ARGUMENTS else f"{arguments[:ARGUMENTS]}…"
            return note(NAME, f"{event.hook} changed the arguments of {event.tool} to {shown}", width, BOLD)
        case HookSpoke(did="told"):
            return note(NAME, f"{event.hook} told the model: {event.text}", width)
        case HookSpoke(did="demanded"):
            return note(NAME, f"{event.hook} does not let the turn end: {event.text}", width, BOLD)
        case HookSpoke(did="failed") if event.on != "before_tool":
            return note(NAME, f"{event.hook} failed: {event.text}", width, BAD)
        case _:
            return []
