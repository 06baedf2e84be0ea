"""The conversation as a model is to be shown it: a fold of the events after the last compaction."""

from dataclasses import dataclass
from typing import Any

from handrail.protocol.events import Answered, AttemptStarted, Nudged, Recorded, ToolFinished, UserMessage
from handrail.protocol.values import ToolCall

INTERRUPTED = "[This answer was cut off here: it was interrupted before its end.]"
CUT_LENGTH = "[This answer was cut off here: it reached the limit of its length.]"


@dataclass(frozen=True, slots=True)
class Said:
    """Words of the user, or of Handrail itself in the user's place."""

    seq: int
    text: str
    by: str = "user"


@dataclass(frozen=True, slots=True)
class Replied:
    """Words and calls of the model."""

    seq: int
    text: str
    model: str
    calls: tuple[ToolCall, ...] = ()
    opaque: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Resulted:
    """What came of a call."""

    seq: int
    call_id: str
    tool: str
    content: str
    is_error: bool


Entry = Said | Replied | Resulted


SHOWN = {"user_message", "nudged", "answered", "tool_finished", "attempt_started"}
"""Types of the events that `entry_of` makes something of."""


def show(entries: list[Entry], recorded: Recorded) -> None:
    """Bring a transcript up to date with one more event."""
    if isinstance(recorded.event, AttemptStarted):
        keep = recorded.event.keep
        entries[:] = [entry for entry in entries if entry.seq <= keep]
    if entry := entry_of(recorded):
        entries.append(entry)


def entry_of(recorded: Recorded) -> Entry | None:
    """What the model is shown of an event; None for the many it is not."""
    seq, event = recorded.seq, recorded.event
    match event:
        case UserMessage():
            text = f"{event.text}\n\n{event.attached}" if event.attached else event.text
            return Said(seq, text)
        case Nudged() | AttemptStarted():
            return Said(seq, event.text, by="handrail")
        case Answered():
            marks = {"interrupted": INTERRUPTED, "cancelled": INTERRUPTED, "length": CUT_LENGTH}
            mark = marks.get(event.end, "")
            text = f"{event.text}\n\n{mark}".strip() if mark else event.text
            if not text and not event.calls:
                return None
            return Replied(seq, text, event.model, event.calls, event.opaque if not mark else ())
        case ToolFinished():
            return Resulted(seq, event.call_id, event.tool, event.content, event.status != "ok")
        case _:
            return None
