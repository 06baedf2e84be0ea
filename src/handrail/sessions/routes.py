"""Which route a session's messages take, and what it asked to find that out."""

from handrail.protocol.events import Event, Routed, RouteSet, RunStarted, SessionCopied, UserMessage
from handrail.sessions.fold import Fold


class Routes(Fold):
    chosen: str = ""
    """By the user; empty: the usual one."""
    last: str = ""
    """Where the last message went."""
    asked: Routed | None = None
    """The question that the user's next message answers."""

    def apply(self, event: Event) -> None:
        match event:
            case RouteSet():
                self.chosen = event.route
            case RunStarted():
                self.last = event.pipeline
            case UserMessage(steering=False):
                self.asked = None
            case Routed(route=""):
                self.asked = event
            case SessionCopied(how="import"):
                self.chosen, self.asked = "", None  # somebody else's word
