"""What no edit may do to a text, in whatever form it comes."""

import re
from collections import Counter
from typing import NamedTuple

from handrail.changes.diff import differing, opcodes
from handrail.changes.elision import markers
from handrail.changes.escapes import escaped_break, escaped_entity
from handrail.changes.languages import is_prose
from handrail.protocol.errors import PathProblem

BIDIRECTIONAL = re.compile("[\u202a-\u202e\u2066-\u2069]")
SURROGATE = re.compile("[\ud800-\udfff]")
# Joiners belong to some scripts and to emoji, not beside a letter of ASCII.
INVISIBLE = re.compile(
    "[\u200b\u2060\ufeff\u180e]|(?<=[\\x21-\\x7e])[\u200c\u200d]|[\u200c\u200d](?=[\\x21-\\x7e])"
)
CONFLICT = re.compile(
    r"<{7}(?: .*)?|>{7}(?: .*)?|\|{7}(?: .*)?|[<>]{5,9} ?(?:SEARCH|REPLACE|ORIGINAL|UPDATED|HEAD)\b.*"
    r"|-{5,9} ?SEARCH|\+{5,9} ?REPLACE"
)
DIVIDER = "======="
FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
GUARDED_LINES = 20


class Loss(NamedTuple):
    """How many lines of a text go away without others in their place."""

    lost: int
    total: int

    @property
    def is_large(self) -> bool:
        return self.total >= GUARDED_LINES and self.lost * 2 > self.total


class Stretch(NamedTuple):
    """The part in which two texts differ, as lines, and the last line before it that is not blank."""

    old: list[str]
    new: list[str]
    above: str


def refuse(path: str, old: str | None, new: str) -> Loss:
    """Raises PathProblem where the new text must not be written; `old` is None where there is no file."""
    before = old or ""
    if old is not None and new == old:
        raise PathProblem(f"{path} already says exactly this.", "no_change", path)
    stretch = _stretch(before, new)
    _refuse_characters(path, "\n".join(stretch.old), "\n".join(stretch.new))
    if before.strip() and not new.strip():
        raise PathProblem(
            f"This would leave {path} empty. Say what it is to contain, or delete the file.", "emptied", path
        )
    if marker := _conflict(path, Stretch(_lines(before), _lines(new), "") if is_prose(path) else stretch):
        raise PathProblem(
            f"The new text of {path} has a line of a merge or of an edit block in it: {marker[:80]!r}."
            " Send the text alone, without such lines.",
            "conflict_markers",
            path,
        )
    if line := escaped_break(path, before, new):
        raise PathProblem(
            f"The new text of {path} has \\n as two characters where a line break is meant: {line!r}."
            " Send real line breaks, escaped once in JSON.",
            "escaped_breaks",
            path,
        )
    if line := escaped_entity(path, before, new):
        raise PathProblem(
            f"The new text of {path} has code that is escaped for HTML: {line!r}. Send it as it is to stand"
            " in the file.",
            "suspicious_text",
            path,
        )
    if line := _elision(path, stretch):
        raise PathProblem(
            f"{line!r} stands for lines that would be lost. Write out what {path} is to contain, or change"
            " only the lines that change.",
            "elision",
            path,
        )
    return _loss(before, stretch)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _stretch(old: str, new: str) -> Stretch:
    before, after = _lines(old), _lines(new)
    head, end_before, end_after = differing(before, after)
    above = next((line for line in reversed(after[:head]) if line.strip()), "")
    return Stretch(before[head:end_before], after[head:end_after], above.strip())


def _refuse_characters(path: str, old: str, new: str) -> None:
    if half := SURROGATE.search(new):
        raise _characters(path, f"half of a surrogate pair ({half[0]!a})")
    if not new.isascii():
        if len(BIDIRECTIONAL.findall(new)) > len(BIDIRECTIONAL.findall(old)):
            raise _characters(path, "characters that turn the direction of reading (U+202A to U+2069)")
        if len(INVISIBLE.findall(new)) > len(INVISIBLE.findall(old)):
            raise _characters(path, "characters that cannot be seen, such as a zero-width space")
    if "\0" in new:
        raise _characters(path, "NUL characters")


def _characters(path: str, what: str) -> PathProblem:
    return PathProblem(f"The new text of {path} has {what}. Leave them out.", "suspicious_text", path)


def _conflict(path: str, stretch: Stretch) -> str:
    """The first new line that belongs to a conflict or an edit block, and not to the file."""
    known = Counter(line.rstrip() for line in stretch.old)
    prose, fenced, above = is_prose(path), False, stretch.above
    for line in stretch.new:
        text = line.rstrip()
        fenced ^= prose and FENCE.match(text) is not None
        # Under a short title such a row underlines it.
        divides = text == DIVIDER and not prose and not 0 < len(above) <= len(DIVIDER)
        if (divides or CONFLICT.fullmatch(text)) and not fenced:
            if not known[text]:
                return text
            known[text] -= 1
        above = text
    return ""


def _elision(path: str, stretch: Stretch) -> str:
    """The first new line that stands for code; words in a document do only where text goes away."""
    found = markers(stretch.old, stretch.new, stretch.above)
    if not found:
        return ""
    if not is_prose(path):
        certain = next((marker.text for marker in found if marker.certain), "")
        if certain:
            return certain
    numbers = {marker.line for marker in found}
    rest = [line for number, line in enumerate(stretch.new) if number not in numbers]
    return found[0].text if _lost(stretch.old, rest) or _lost(*map(_written, (stretch.old, rest))) else ""


def _loss(old: str, stretch: Stretch) -> Loss:
    """Whichever is the larger part: of all lines, or of those that are not blank."""
    total = len(_lines(old))
    lost, written = _lost(stretch.old, stretch.new), _lost(_written(stretch.old), _written(stretch.new))
    if not written:
        return Loss(lost, total)
    of = len(_written(_lines(old)))
    return Loss(max(lost, -(-written * total // of)), total)


def _written(lines: list[str]) -> list[str]:
    return [line for line in lines if line.strip()]


def _lost(before: list[str], after: list[str]) -> int:
    """Lines that go away, neither moved nor with others in their place."""
    codes = [code for code in opcodes(before, after) if code[0] != "equal"]
    came = Counter(line.strip() for _, _, _, start, end in codes for line in after[start:end])
    lost = 0
    for _, old_start, old_end, start, end in codes:
        gone = 0
        for line in before[old_start:old_end]:
            if came[line.strip()]:
                came[line.strip()] -= 1
            else:
                gone += 1
        lost += max(0, gone - (end - start))
    return lost
