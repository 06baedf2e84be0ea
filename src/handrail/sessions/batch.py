"""What is known of commands that run from an answer: how far they are, and what is next."""

from typing import NamedTuple

from handrail.protocol.events import (
    BatchDecided,
    BatchFinished,
    BatchStarted,
    BatchStep,
    CallStatus,
    Event,
    ToolFinished,
)
from handrail.protocol.events.batches import BatchDecision, BatchEnd
from handrail.sessions.fold import Fold

SUCCEEDED: tuple[CallStatus, ...] = ("ok",)
FAILED: tuple[CallStatus, ...] = ("failed", "refused")


class Planned(Fold):
    """A command that is to run."""

    command: str
    network: bool = False
    by_user: bool = True
    """The user picked exactly this text."""


class Next(NamedTuple):
    """What runs next, and in which place."""

    number: int
    planned: Planned


class Batch(Fold):
    batch_id: str
    together: bool
    told: bool
    planned: list[Planned]
    number: int = 0
    """The command that was begun last."""
    call_id: str = ""
    ends: dict[int, CallStatus] = {}
    """How the commands ended, by their numbers."""
    corrections: int = 0
    """How often the command of this number was replaced."""
    decision: BatchDecision | None = None
    """What follows the command that has ended."""
    why: str = ""
    finished: bool = False
    rejected: bool = False
    """The user said no to the command that has ended."""

    @property
    def total(self) -> int:
        return len(self.planned)

    @property
    def succeeded(self) -> int:
        return sum(end in SUCCEEDED for end in self.ends.values())

    @property
    def failed(self) -> int:
        return sum(end in FAILED for end in self.ends.values())

    @property
    def remaining(self) -> int:
        return self.total - self.number

    @property
    def end(self) -> CallStatus | None:
        """How the command that was begun last has ended."""
        return self.ends.get(self.number)

    def next(self) -> Next | None:
        """The command to begin now; None where all have run."""
        number = self.number if self.decision == "replace" and self.end != "ok" else self.number + 1
        return Next(number, self.planned[number - 1]) if number <= self.total else None

    def closed(self, turn_id: str, end: BatchEnd, why: str) -> BatchFinished:
        """The event that ends the batch."""
        return BatchFinished(
            turn_id=turn_id,
            batch_id=self.batch_id,
            end=end,
            why=why,
            number=self.number,
            total=self.total,
            succeeded=self.succeeded,
            failed=self.failed,
            remaining=self.remaining,
        )

    def apply(self, event: Event) -> None:
        match event:
            case BatchStep():
                self.corrections = self.corrections + 1 if event.number == self.number else 0
                self.number, self.call_id, self.decision = event.number, event.call.id, None
                self.ends.pop(event.number, None)
            case ToolFinished() if event.call_id == self.call_id:
                self.ends[self.number] = event.status
                self.rejected = event.error is not None and event.error.reason == "user_rejected"
            case BatchDecided():
                self.decision, self.why = event.decision, event.why
                if event.decision == "replace":
                    self._replace(event)
            case BatchFinished():
                self.finished = True

    def _replace(self, event: BatchDecided) -> None:
        place = self.number if self.end != "ok" else self.number + 1
        corrected = Planned(command=event.command, network=event.network, by_user=False)
        self.planned = [*self.planned[: place - 1], corrected, *self.planned[place:]]


def begun(event: BatchStarted) -> Batch:
    """A batch of which nothing has run yet."""
    planned = [Planned(command=command, network=event.network) for command in event.commands]
    return Batch(batch_id=event.batch_id, together=event.together, told=event.told, planned=planned)
