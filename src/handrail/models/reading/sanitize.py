"""Checks and cleans text and JSON from a provider so that it can be stored and sent again."""

import json
from typing import Any

from handrail.protocol.values import is_deeper

MAX_DEPTH = 32
"""Far deeper than any tool's arguments, and far below the limits of JSON parsers."""

MAX_TOKENS = 10**9


def join_surrogates(text: str) -> str:
    """The text with surrogate pairs, which some servers send apart, joined into characters."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_name(value: Any) -> str:
    """A name or id; empty if none was sent. Raises TypeError for anything but a string."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError("a name or id that is no text")
    return join_surrogates(value)


def read_token_count(value: Any) -> int:
    """A token count; 0 if the value cannot be one, so that no limit is loosened."""
    return min(value, MAX_TOKENS) if isinstance(value, int) and value > 0 else 0


def why_unstorable(value: Any) -> str:
    """Why a JSON value cannot be stored and sent again; empty if it can."""
    if is_deeper(value, MAX_DEPTH):
        return f"more than {MAX_DEPTH} levels of nesting"
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return "half of a character (a lone surrogate)"
    except ValueError:
        return "a number that is too large"
    return ""


def returnable_block(block: Any) -> Any:
    """A block to send back to the provider, with surrogate pairs joined; None if it cannot be stored."""
    try:
        # Escaped halves that stand side by side are read as the character they make.
        whole = None if is_deeper(block, MAX_DEPTH) else json.loads(json.dumps(block, allow_nan=False))
    except ValueError:
        return None
    return None if why_unstorable(whole) else whole
