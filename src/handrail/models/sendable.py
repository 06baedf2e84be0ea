"""What a provider sent, made fit to be stored and sent again, or found not to be."""

import json
from typing import Any

MAX_DEPTH = 32
"""Far deeper than any tool's arguments, and far from what parsers of JSON refuse."""

MAX_TOKENS = 10**9


def joined(text: str) -> str:
    """Text whose surrogate halves, which some servers send apart, are characters again."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def word(value: Any) -> str:
    """A name or an id. Raises TypeError where something else was sent; nothing sent is the empty word."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError("a name or id that is no text")
    return joined(value)


def tokens(value: Any) -> int:
    """A count of tokens; what cannot be one is zero, so that no limit is loosened by it."""
    return min(value, MAX_TOKENS) if isinstance(value, int) and value > 0 else 0


def fault(value: Any) -> str:
    """What keeps a JSON value from being stored and sent again; empty when nothing does."""
    if _is_deeper(value, MAX_DEPTH):
        return f"more than {MAX_DEPTH} levels of nesting"
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return "half of a character (a lone surrogate)"
    except ValueError:
        return "a number that is too large"
    return ""


def _is_deeper(value: Any, levels: int) -> bool:
    level = [value]
    for _ in range(levels + 1):
        level = [each for each in level if isinstance(each, dict | list)]
        if not level:
            return False
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return True


def given_back(block: Any) -> Any:
    """A block that the provider wants back, characters sent in halves whole again; None when unfit."""
    try:
        # Escaped halves that stand side by side are read as the character they make.
        whole = None if _is_deeper(block, MAX_DEPTH) else json.loads(json.dumps(block, allow_nan=False))
    except ValueError:
        return None
    return None if fault(whole) else whole
