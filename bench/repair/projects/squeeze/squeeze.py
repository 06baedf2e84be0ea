"""Squeezed text, as described in SQUEEZE.md."""

from itertools import groupby


def squeeze(text: str) -> str:
    """The text with long runs as number and character."""
    if any(character.isdigit() for character in text):
        raise ValueError("a digit in the text")
    parts = []
    for character, run in groupby(text):
        count = len(list(run))
        parts.append(f"{count}{character}" if count > 2 else character * count)
    return "".join(parts)


def unsqueeze(text: str) -> str:
    """The text as it was before `squeeze`."""
    made = number = ""
    for character in text:
        if character.isdigit():
            number += character
        else:
            made += character * int(number or 1)
            number = ""
    if number:
        raise ValueError("a number at the end")
    return made


def saved(text: str) -> int:
    """How many characters are saved."""
    return len(text) - len(squeeze(text))
