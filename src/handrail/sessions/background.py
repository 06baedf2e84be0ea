"""Which commands of a session run in the background, and which have ended since the model was last told."""

from handrail.protocol.events import BackgroundEnded, BackgroundStarted, Recorded, SessionCopied, TurnStarted
from handrail.sessions.fold import Fold

MOST_ENDED = 20


class InBackground(Fold):
    """A command that runs."""

    id: str
    command: str
    since: float
    """When it began, in seconds of the wall clock."""


class Background(Fold):
    running: dict[str, InBackground] = {}
    ended: list[BackgroundEnded] = []
    """Those that no message has told the model of; the latest are kept."""
    count: int = 0
    """How many there have been."""

    @property
    def next_id(self) -> str:
        return f"b{self.count + 1}"

    def apply(self, recorded: Recorded) -> None:
        """Fold one event in."""
        match recorded.event:
            case BackgroundStarted() as event:
                self.count += 1
                self.running[event.background_id] = InBackground(
                    event.background_id, event.command, recorded.at
                )
            case BackgroundEnded() as event:
                self.running.pop(event.background_id, None)
                self.ended = [*self.ended, event][-MOST_ENDED:]
            case TurnStarted():
                self.ended = []  # its message has told of them
            case SessionCopied():
                self.running, self.ended = {}, []  # they run, or ran, in the other one
