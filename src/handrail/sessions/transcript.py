"""The conversation as a model is to be shown it: a fold of the events after the last compaction."""

import re
from typing import Any

from handrail.protocol.events import (
    Answered,
    AttemptStarted,
    BatchFinished,
    BatchStep,
    HookSpoke,
    Nudged,
    Recorded,
    RequestFailed,
    StageStarted,
    ToolFinished,
    TurnFinished,
    UserMessage,
)
from handrail.protocol.record import Record
from handrail.protocol.values import AttachedImage, ToolCall

INTERRUPTED = "[This answer was cut off here: it was interrupted before its end.]"
CUT_LENGTH = "[This answer was cut off here: it reached the limit of its length.]"


class Said(Record):
    """Words of the user, or of Handrail itself in the user's place."""

    seq: int
    text: str
    by: str = "user"
    words: str = ""
    """What the user wrote, without what was attached to it."""
    steering: bool = False
    images: tuple[AttachedImage, ...] = ()
    doubted: bool = False
    """A request with these images was refused, because of an image it seems."""


class Replied(Record):
    """Words and calls of the model."""

    seq: int
    text: str
    model: str
    calls: tuple[ToolCall, ...] = ()
    opaque: tuple[dict[str, Any], ...] = ()
    withheld: bool = False
    """What comes of its calls is the user's own."""


class Resulted(Record):
    """What came of a call."""

    seq: int
    call_id: str
    tool: str
    content: str
    is_error: bool
    images: tuple[AttachedImage, ...] = ()
    doubted: bool = False


Entry = Said | Replied | Resulted


SHOWN = {
    "user_message",
    "nudged",
    "answered",
    "tool_finished",
    "attempt_started",
    "batch_finished",
    "batch_step",
    "request_failed",
    "turn_finished",
    "hook_spoke",
    "stage_started",
}
"""Types of the events that `show` makes something of."""
ABOUT_IMAGES = re.compile(r"image|picture|media", re.IGNORECASE)
HOOK_TOLD = "[A hook of the user's, {hook}, says: {text}]"
HOOK_DEMANDED = "[A hook of the user's, {hook}, does not let the turn end yet: {text}]"
HOOK_FAILED = "[A hook of the user's, {hook}, failed after this was done: {text}. Only the user can mend it.]"
WITHHELD = "[it {end}; what it wrote is not shown to you, as the user has set]"
BATCH_ENDED = "[Of {total} commands {number} were begun: {succeeded} succeeded, {failed} failed. {end}]"
BATCH_ENDS = {
    "completed": "All have run.",
    "stopped": "Stopped there: {why}",
    "limit": "Stopped there: {why}",
    "cancelled": "The user stopped it there.",
    "interrupted": "Handrail ended there.",
}
REFUSED = "[{names}: not shown, because the model's provider refused the request that it came with.]"


def show(entries: list[Entry], recorded: Recorded) -> None:
    """Bring a transcript up to date with one more event."""
    match recorded.event:
        case AttemptStarted(keep=keep):
            entries[:] = [entry for entry in entries if entry.seq <= keep]
        case RequestFailed(kind="fix_request", message=message) if ABOUT_IMAGES.search(message):
            _doubt(entries, doubted=True)
        case Answered(apart=False):
            _doubt(entries, doubted=False)
        case HookSpoke(on="after_tool"):
            _add_word(entries, recorded.event)
        case TurnFinished(reason="failed"):
            # Sent again, it would be refused again, and the session could not go on.
            entries[:] = [_without_doubted(entry) for entry in entries]
    if entry := entry_of(recorded):
        entries.append(_withheld(entries, entry))


def _add_word(entries: list[Entry], spoke: HookSpoke) -> None:
    """Put a hook's words behind the result of the call that they are about."""
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if isinstance(entry, Resulted) and entry.call_id == spoke.call_id:
            words = (HOOK_TOLD if spoke.did == "told" else HOOK_FAILED).format(
                hook=spoke.hook, text=spoke.text
            )
            entries[index] = entry.changed(content=f"{entry.content}\n{words}")
            return


def _withheld(entries: list[Entry], entry: Entry) -> Entry:
    """The entry without what a command has written, where the user keeps that to themselves."""
    last = entries[-1] if entries else None
    if not isinstance(entry, Resulted) or not isinstance(last, Replied) or not last.withheld:
        return entry
    end = "failed" if entry.is_error else "succeeded"
    return entry.changed(content=WITHHELD.format(end=end), images=())


def _doubt(entries: list[Entry], *, doubted: bool) -> None:
    """Mark the images that no answer has followed yet."""
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if isinstance(entry, Replied):
            return
        if entry.images and entry.doubted != doubted:
            entries[index] = entry.changed(doubted=doubted)


def _without_doubted(entry: Entry) -> Entry:
    if isinstance(entry, Replied) or not entry.doubted:
        return entry
    return without_images(entry, REFUSED)


def without_images(entry: Said | Resulted, why: str) -> Said | Resulted:
    """The entry with words in the place of its images."""
    names = ", ".join(image.name for image in entry.images)
    line = why.format(names=names)
    if isinstance(entry, Said):
        return entry.changed(text=f"{entry.text}\n\n{line}", images=(), doubted=False)
    return entry.changed(content=f"{entry.content}\n{line}", images=(), doubted=False)


def entry_of(recorded: Recorded) -> Entry | None:
    """What the model is shown of an event; None for the many it is not."""
    seq, event = recorded.seq, recorded.event
    match event:
        case UserMessage(run_id=run_id) if run_id:
            return None
        case Answered(apart=True) | ToolFinished(apart=True):
            return None
        case StageStarted(text=text) if text:
            return Said(seq, text, by="handrail")
        case UserMessage():
            text = f"{event.text}\n\n{event.attached}" if event.attached else event.text
            return Said(seq, text, words=event.text, steering=event.steering, images=event.images)
        case Nudged() | AttemptStarted():
            return Said(seq, event.text, by="handrail")
        case HookSpoke(did="demanded"):
            return Said(seq, HOOK_DEMANDED.format(hook=event.hook, text=event.text), by="handrail")
        case BatchStep():
            return Replied(seq, "", event.model, (event.call,), withheld=not event.told)
        case BatchFinished(total=total) if total > 1:
            told = {"end": BATCH_ENDS[event.end].format(why=event.why)}
            text = BATCH_ENDED.format_map(event.model_dump() | told)
            return Said(seq, text, by="handrail")
        case Answered():
            marks = {"interrupted": INTERRUPTED, "cancelled": INTERRUPTED, "length": CUT_LENGTH}
            mark = marks.get(event.end, "")
            text = f"{event.text}\n\n{mark}".strip() if mark else event.text
            if not text and not event.calls:
                return None
            return Replied(seq, text, event.model, event.calls, event.opaque if not mark else ())
        case ToolFinished():
            failed = event.status != "ok"
            return Resulted(seq, event.call_id, event.tool, event.content, failed, images=event.images)
        case _:
            return None
