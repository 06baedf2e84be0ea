"""Which route a session's messages take, and what it asked to find that out."""

from handrail.protocol.events import Recorded, Routed, RouteSet, RunStarted, SessionCopied, UserMessage
from handrail.sessions.fold import Fold


class Routes(Fold):
    chosen: str = ""
    """By the user; empty: the usual one."""
    last: str = ""
    """Where the last message went."""
    asked: Routed | None = None
    """The question that the user's next message answers."""
    asked_at: int = 0
    """Where it stands in the log."""

    def question_for(self, seen: int | None) -> Routed | None:
        """What a message answers whose sender was shown the events up to this one."""
        return self.asked if seen is None or seen >= self.asked_at else None

    def apply(self, recorded: Recorded) -> None:
        match recorded.event:
            case RouteSet() as event:
                self.chosen = event.route
            case RunStarted() as event:
                self.last = event.pipeline
            case UserMessage(steering=False):
                self.asked = None
            case Routed(route="") as event:
                self.asked, self.asked_at = event, recorded.seq
            case SessionCopied(how="import"):
                self.chosen, self.asked = "", None  # somebody else's word
