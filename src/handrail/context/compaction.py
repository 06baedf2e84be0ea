"""Compaction: when older entries give way to a digest, and which."""

from collections.abc import Sequence
from typing import NamedTuple

from handrail.context.budget import COMPACT_AT, KEEP_AFTER_COMPACTION, entry_tokens, text_tokens
from handrail.context.digest import collect, fit, words
from handrail.protocol.events import Compacted
from handrail.protocol.ids import new_id
from handrail.sessions.state import Cut, State
from handrail.sessions.transcript import Entry, Resulted

LEAST_TOKENS, MOST_TOKENS = 250, 8_000
"""Of a digest, whatever the window."""


class Size(NamedTuple):
    """Tokens of what comes with every request, and of the conversation."""

    fixed: int
    conversation: int

    @property
    def total(self) -> int:
        return self.fixed + self.conversation


class Notes(NamedTuple):
    """What a model wrote about older turns."""

    text: str = ""
    by: str = ""
    """The model; empty where none was asked."""
    problem: str = ""
    """Why nothing of what it wrote is used."""


class Cutting(NamedTuple):
    """Entries that give way, and those that stay."""

    older: Sequence[Entry]
    newer: Sequence[Entry]


NO_NOTES = Notes()


def size_of(fixed: int, cut: Cut, transcript: Sequence[Entry]) -> Size:
    summary = text_tokens(cut.summary) if cut.summary else 0
    return Size(fixed, summary + sum(entry_tokens(entry) for entry in transcript))


def limit_of(window: int, output: int) -> int:
    """How many tokens a request may have."""
    return int(min(window * COMPACT_AT, window - output))


def is_due(size: Size, window: int, output: int) -> bool:
    """Whether the next request would fill the window too far."""
    return size.total > limit_of(window, output)


def plan(transcript: Sequence[Entry], fixed: int, window: int) -> Cutting | None:
    """What a compaction would leave out; None when nothing older is left."""
    room = max(int(window * KEEP_AFTER_COMPACTION) - fixed, window // 8)
    keep = _first_kept(transcript, room)
    return Cutting(transcript[:keep], transcript[keep:]) if keep else None


def compacted(state: State, cutting: Cutting, size: Size, limit: int, notes: Notes = NO_NOTES) -> Compacted:
    """The event that shows the model a digest of the older entries."""
    newer = sum(entry_tokens(entry) for entry in cutting.newer)
    room = max(LEAST_TOKENS, min(MOST_TOKENS, limit // 5, (limit - size.fixed - newer) * 4 // 5))
    kept = collect(state, cutting.older, cutting.newer)
    if notes.text:
        kept = kept.model_copy(update={"notes": notes.text})
    kept = fit(kept, room)
    summary = words(kept)
    return Compacted(
        compaction_id=new_id("k"),
        upto=cutting.older[-1].seq,
        summary=summary,
        kept=kept,
        by=notes.by if notes.text else "",
        problem=notes.problem,
        tokens_before=size.total,
        tokens_after=size.fixed + text_tokens(summary) + newer,
    )


def without_model(state: State, transcript: Sequence[Entry]) -> Compacted | None:
    """The same where there is no model to say how much it takes; None when nothing older is left."""
    size = size_of(0, state.cut, transcript)
    cutting = plan(transcript, fixed=0, window=size.conversation)
    return compacted(state, cutting, size, MOST_TOKENS) if cutting else None


def _first_kept(transcript: Sequence[Entry], room: int) -> int:
    """Index of the first entry to keep: a call is never parted from its results."""
    kept, best = 0, len(transcript)
    for index in range(len(transcript) - 1, -1, -1):
        kept += entry_tokens(transcript[index])
        if kept > room and best < len(transcript):
            break
        if not isinstance(transcript[index], Resulted):
            best = index
    return best if best < len(transcript) else 0
