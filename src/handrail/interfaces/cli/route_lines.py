"""Where messages go, as lines."""

from handrail.interfaces.cli.styles import ACCENT, DIM, Line
from handrail.interfaces.cli.tool_lines import note
from handrail.protocol.events import Routed, RouteSet

NAME = "route"


def route_lines(event: Routed | RouteSet, width: int) -> list[Line]:
    """What a person is shown of it: nothing where their own words said it."""
    match event:
        case RouteSet():
            return note(NAME, event.route, width)
        case Routed(route=""):
            return _question(event, width)
        case Routed(by="model"):
            return note(NAME, f"{event.route} ({event.decision.confidence:.0%} sure)", width, DIM)
        case Routed(by="fallback"):
            told = f"{event.route}: the model did not say where this belongs; /route chooses"
            return note(NAME, told, width, DIM)
        case _:
            return []


def _question(event: Routed, width: int) -> list[Line]:
    rows = note("which?", event.decision.question, width, ACCENT)
    for number, option in enumerate(event.decision.options, start=1):
        rows += note("", f"{number}  {option.title}", width)
    return rows
