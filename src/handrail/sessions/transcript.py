"""The conversation as the model sees it: a fold of the events after the last compaction."""

import re
from typing import Any

from msgspec.structs import replace

from handrail.protocol.events.base import Recorded
from handrail.protocol.events.checks import AttemptStarted
from handrail.protocol.events.conversation import Nudged, TurnFinished, UserMessage
from handrail.protocol.events.requests import Answered, RequestFailed
from handrail.protocol.events.runs import StageStarted
from handrail.protocol.events.tools import BatchFinished, BatchStep, HookSpoke, ToolFinished
from handrail.protocol.values import AttachedImage, ToolCall, Value, to_dict

INTERRUPTED = "[This answer was interrupted here.]"
CUT_LENGTH = "[This answer was cut off here: it reached the maximum length.]"
CUT = "[This answer was cut off here, for an unknown reason.]"


class UserEntry(Value):
    """A message of the user, or of Handrail in the user's role."""

    seq: int
    text: str
    by: str = "user"
    words: str = ""
    """What the user wrote, without attachments."""
    steering: bool = False
    images: tuple[AttachedImage, ...] = ()
    doubted: bool = False
    """A request with these images was refused, probably because of an image."""


class AssistantEntry(Value):
    seq: int
    text: str
    model: str
    calls: tuple[ToolCall, ...] = ()
    opaque: tuple[dict[str, Any], ...] = ()
    withheld: bool = False
    """The user does not let the model see the output of its calls."""


class ToolResultEntry(Value):
    seq: int
    call_id: str
    tool: str
    content: str
    is_error: bool
    images: tuple[AttachedImage, ...] = ()
    doubted: bool = False


TranscriptEntry = UserEntry | AssistantEntry | ToolResultEntry


SHOWN_EVENTS = {
    *("user_message", "nudged", "answered", "tool_finished", "attempt_started", "batch_finished"),
    *("batch_step", "request_failed", "turn_finished", "hook_spoke", "stage_started"),
}
ABOUT_IMAGES = re.compile(r"image|picture|media", re.IGNORECASE)
HOOK_TOLD = "[The user's hook {hook} says: {text}]"
HOOK_DEMANDED = "[The user's hook {hook} does not let the turn end yet: {text}]"
HOOK_FAILED = "[The user's hook {hook} failed after this was done: {text}. Only the user can fix it.]"
OUTPUT_WITHHELD = "[It {end}. The user's settings do not let you see its output.]"
BATCH_ENDED = "[{number} of {total} commands were started: {succeeded} succeeded, {failed} failed. {end}]"
BATCH_ENDS = {
    "completed": "All have run.",
    "stopped": "The batch stopped: {why}",
    "limit": "The batch stopped: {why}",
    "cancelled": "The user stopped the batch.",
    "interrupted": "Handrail stopped during the batch.",
}
IMAGES_REFUSED = "[{names}: not shown, because the model's provider refused the request with it.]"


def update_transcript(entries: list[TranscriptEntry], recorded: Recorded) -> None:
    match recorded.event:
        case AttemptStarted(keep=keep) | UserMessage(keep=int() as keep):
            entries[:] = [entry for entry in entries if entry.seq <= keep]
        case RequestFailed(kind="fix_request", message=message) if ABOUT_IMAGES.search(message):
            _mark_doubted_images(entries, doubted=True)
        case Answered(apart=False):
            _mark_doubted_images(entries, doubted=False)
        case HookSpoke(on="after_tool"):
            _add_hook_text(entries, recorded.event)
        case TurnFinished(reason="failed"):
            # Sent again, they would be refused again, and the session could not continue.
            for index, each in enumerate(entries):
                if not isinstance(each, AssistantEntry) and each.doubted:
                    entries[index] = without_images(each, IMAGES_REFUSED)
    if entry := entry_for_event(recorded):
        entries.append(_without_output(entries, entry))


def _add_hook_text(entries: list[TranscriptEntry], spoke: HookSpoke) -> None:
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if isinstance(entry, ToolResultEntry) and entry.call_id == spoke.call_id:
            form = HOOK_TOLD if spoke.did == "told" else HOOK_FAILED
            line = form.format(hook=spoke.hook, text=spoke.text)
            entries[index] = replace(entry, content=f"{entry.content}\n{line}")
            return


def _without_output(entries: list[TranscriptEntry], entry: TranscriptEntry) -> TranscriptEntry:
    """The entry without a command's output, if the user withholds it from the model."""
    last = entries[-1] if entries else None
    if not isinstance(entry, ToolResultEntry) or not isinstance(last, AssistantEntry) or not last.withheld:
        return entry
    end = "failed" if entry.is_error else "succeeded"
    return replace(entry, content=OUTPUT_WITHHELD.format(end=end), images=())


def _mark_doubted_images(entries: list[TranscriptEntry], *, doubted: bool) -> None:
    """Mark the images after the last answer."""
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if isinstance(entry, AssistantEntry):
            return
        if entry.images and entry.doubted != doubted:
            entries[index] = replace(entry, doubted=doubted)


def without_images(entry: UserEntry | ToolResultEntry, why: str) -> UserEntry | ToolResultEntry:
    """The entry with a note in place of its images."""
    line = why.format(names=", ".join(image.name for image in entry.images))
    if isinstance(entry, UserEntry):
        return replace(entry, text=f"{entry.text}\n\n{line}", images=(), doubted=False)
    return replace(entry, content=f"{entry.content}\n{line}", images=(), doubted=False)


def entry_for_event(recorded: Recorded) -> TranscriptEntry | None:
    """What the model sees of an event; None if nothing."""
    seq, event = recorded.seq, recorded.event
    match event:
        case UserMessage(run_id=run_id, keep=keep) if run_id or keep is not None:
            return None
        case Answered(apart=True) | ToolFinished(apart=True):
            return None
        case StageStarted(text=text) if text:
            return UserEntry(seq, text, by="handrail")
        case UserMessage():
            text = f"{event.text}\n\n{event.attached}" if event.attached else event.text
            return UserEntry(seq, text, words=event.text, steering=event.steering, images=event.images)
        case Nudged() | AttemptStarted():
            return UserEntry(seq, event.text, by="handrail")
        case HookSpoke(did="demanded"):
            return UserEntry(seq, HOOK_DEMANDED.format(hook=event.hook, text=event.text), by="handrail")
        case BatchStep():
            return AssistantEntry(seq, "", event.model, (event.call,), withheld=not event.told)
        case BatchFinished(total=total) if total > 1:
            end = {"end": BATCH_ENDS[event.end].format(why=event.why)}
            text = BATCH_ENDED.format_map(to_dict(event) | end)
            return UserEntry(seq, text, by="handrail")
        case Answered():
            marks = {"interrupted": INTERRUPTED, "cancelled": INTERRUPTED, "length": CUT_LENGTH, "cut": CUT}
            mark = marks.get(event.end, "")
            text = f"{event.text}\n\n{mark}".strip() if mark else event.text
            if not text and not event.calls:
                return None
            return AssistantEntry(seq, text, event.model, event.calls, event.opaque if not mark else ())
        case ToolFinished():
            failed = event.status != "ok"
            return ToolResultEntry(seq, event.call_id, event.tool, event.content, failed, images=event.images)
        case _:
            return None
