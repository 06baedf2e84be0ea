"""Lines with the way each of them ends, so that what an edit does not touch keeps its bytes."""

import difflib
from typing import NamedTuple

ANY_BREAK = ("\r\n", "\n")


class Line(NamedTuple):
    body: str
    end: str
    """`\\n`, `\\r\\n`, or nothing for a last line that is not ended."""


def split(text: str) -> list[Line]:
    """The lines of a text, as `read` counts them: form feeds and other separators are no line breaks."""
    *whole, last = text.split("\n")
    lines = [Line(body[:-1], "\r\n") if body.endswith("\r") else Line(body, "\n") for body in whole]
    return [*lines, Line(last, "")] if last else lines


def joined(lines: list[Line]) -> str:
    return "".join(body + end for body, end in lines)


def unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def only_ending(text: str) -> str:
    """The one way in which lines of a text end; empty where they are mixed. A text of one line has `\\n`."""
    if "\r" not in text:
        return "\n"
    if "\n" not in text:
        return "\r"
    both = text.count("\r\n")
    return "\r\n" if both == text.count("\n") == text.count("\r") else ""


def in_place_of(matched: str, new: str, ending: str, after: str = "") -> str:
    """New text with the line endings of what it takes the place of.

    `ending` is the file's only one, empty where they are mixed: then lines that stay keep theirs, and the
    others follow the line that they replace or follow. `after` is how the line ends in which `matched` ends.
    """
    new = unix(new)
    if ending:
        return new.replace("\n", ending)
    old, lines = split(matched), split(new)
    usual = next((line.end for line in reversed(old) if line.end), after or "\n")
    matcher = difflib.SequenceMatcher(
        isjunk=None, a=[line.body for line in old], b=[line.body for line in lines], autojunk=False
    )
    ends: list[str] = []
    for _, old_at, old_end, at, end in matcher.get_opcodes():
        for number in range(end - at):
            like = old[min(old_at + number, old_end - 1)].end if old_end > old_at else ""
            ends.append(like or (ends[-1] if ends else usual))
    return "".join(line.body + (own if line.end else "") for line, own in zip(lines, ends, strict=True))


def ending_after(text: str, position: int) -> str:
    """How the line ends in which a position stands; empty at the end of a text."""
    at = text.find("\n", position)
    if at < 0:
        return ""
    return "\r\n" if text[at - 1 : at] == "\r" else "\n"
