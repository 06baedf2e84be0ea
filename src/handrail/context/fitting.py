"""When even the newest part of a conversation is too long: its longest texts are cut, and say so."""

from collections.abc import Sequence

from handrail.context.budget import BYTES_PER_TOKEN, entry_tokens, text_tokens
from handrail.sessions.transcript import Entry, Replied, Said

SHORTEST = 120
"""Tokens that are left of a text in any case."""
CUT = "\n[… {left_out:,} characters left out: all of it does not fit your window …]\n"


def fitted(transcript: Sequence[Entry], tokens: int) -> Sequence[Entry]:
    """The transcript in so many tokens, as far as cutting the longest texts of users and tools can do it."""
    sizes = [entry_tokens(entry) for entry in transcript]
    if sum(sizes) <= tokens:
        return transcript
    most = _most(transcript, sizes, tokens)
    return [entry if isinstance(entry, Replied) else _cut(entry, most) for entry in transcript]


def _most(transcript: Sequence[Entry], sizes: Sequence[int], tokens: int) -> int:
    """How many tokens each text may have, so that all fit."""
    fixed = sum(size for entry, size in zip(transcript, sizes, strict=True) if isinstance(entry, Replied))
    texts = [size for entry, size in zip(transcript, sizes, strict=True) if not isinstance(entry, Replied)]
    left = tokens - fixed
    for number, size in enumerate(sorted(texts)):
        share = left // (len(texts) - number)
        if size > share:
            return max(SHORTEST, share)
        left -= size
    return max(texts, default=SHORTEST)


def _cut(entry: Entry, most: int) -> Entry:
    if isinstance(entry, Replied):
        return entry
    text = entry.text if isinstance(entry, Said) else entry.content
    over = entry_tokens(entry) - most
    if over <= 0 or text_tokens(text) <= SHORTEST:
        return entry
    room = max(SHORTEST, text_tokens(text) - over)
    # What is left out is measured in bytes, and a character has at least one.
    half = (
        int(len(text) * (room * BYTES_PER_TOKEN - len(CUT)) / max(1, len(text.encode(errors="replace")))) // 2
    )
    shorter = f"{text[:half]}{CUT.format(left_out=len(text) - 2 * half)}{text[len(text) - half :]}"
    return entry.changed(text=shorter) if isinstance(entry, Said) else entry.changed(content=shorter)
