"""Refusals as a person is told of them: what happened, without what the model is told to do about it."""

import re

from handrail.protocol.errors import RefusalReason, ToolError

SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z`])")
FOR_THE_MODEL: frozenset[RefusalReason] = frozenset(
    (
        "missing_intent_id",
        "unknown_intent",
        "scope_violation",
        "invalid_arguments",
        "unknown_tool",
        "stale_file",
        "no_hash",
        "file_missing",
        "file_exists",
        "not_text",
        "too_large",
        "no_match",
        "ambiguous_match",
        "no_change",
        "already_applied",
        "overlap",
        "out_of_range",
        "malformed_diff",
        "emptied",
        "elision",
        "conflict_markers",
        "suspicious_text",
        "escaped_breaks",
        "truncated",
        "conflict",
        "other_refused",
    )
)
"""What the model can mend by itself: its message goes on with how."""


def in_short(error: ToolError) -> str:
    """The reason, and the message as far as it is about what happened."""
    text = " ".join(error.message.split())
    if error.reason in FOR_THE_MODEL:
        text = SENTENCE.split(text, maxsplit=1)[0]
    return f"{error.reason}: {text}"
