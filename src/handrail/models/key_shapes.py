"""Whose key it is, told by its shape: it is never sent to anybody to find out."""

import re

SHAPES: tuple[tuple[str, str], ...] = (
    (r"sk-ant-", "anthropic"),
    (r"sk-or-", "openrouter"),
    (r"sk-(proj|svcacct|admin|None)-", "openai"),
    (r"sk-\w+T3BlbkFJ", "openai"),
    (r"xai-", "xai"),
    (r"AIza|AQ\.", "gemini"),
)


def owner_of(key: str) -> str:
    """The connection that such a key belongs to; empty where its shape does not tell."""
    return next((owner for pattern, owner in SHAPES if re.match(pattern, key)), "")
