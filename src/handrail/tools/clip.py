"""Cutting text to what fits, and saying what was cut."""

import re

ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
CONTROLS = dict.fromkeys((*range(9), *range(11, 32), 127))


def head_and_tail(text: str, limit: int) -> str:
    """The text if it fits, else its start and its end with a word on what lies between."""
    if len(text) <= limit:
        return text
    half = limit // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n[… {left_out:,} characters left out …]\n{text[-half:]}"


def head(text: str, limit: int, hint: str) -> str:
    """The text if it fits, else its start, how much is missing and the hint what to do about it."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[{len(text) - limit:,} more characters left out. {hint}]"


def plain(text: str) -> str:
    """Output of a program without colours, cursor movements and other control characters."""
    return ESCAPES.sub("", text.replace("\r\n", "\n")).translate(CONTROLS)


def counted(number: int, noun: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
