"""Where a text stands in a file: exactly, or by one of a few fixed steps of tolerance.

The steps, in this order: as it is written, trailing white space, indentation shifted as one block; then the
same three without regard to line endings. The first step that finds anything decides. From the second step on
whole lines are compared. A place counts only if it is the only one, or the one that was named by its line.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, islice
from typing import NamedTuple

from handrail.changes.endings import Line, only_ending, split, unix

TRAILING, INDENTATION, ENDINGS = "trailing white space", "indentation", "line endings"
BLANKS = " \t"
MOST_PLACES = 1_000


class Shift(NamedTuple):
    """White space by which lines of a file stand deeper, or less deep, than they were written."""

    deeper: str = ""
    less: str = ""

    def applied(self, text: str) -> str | None:
        """The text moved along with its block; None where a line is not indented enough for it."""
        if not self.deeper and not self.less:
            return text
        moved = []
        for body, end in split(text):
            if not body.strip(BLANKS):
                moved.append(body + end)
            elif body.startswith(self.less):
                moved.append(self.deeper + body[len(self.less) :] + end)
            else:
                return None
        return "".join(moved)


class Found(NamedTuple):
    """A place in a text, and what had to be overlooked to find it."""

    start: int
    end: int
    step: str = ""
    shift: Shift = Shift()
    unended: bool = False
    """The wanted text ends with a line break where the file ends without one."""


class Window(NamedTuple):
    """Some lines of a file, by number from 0."""

    first: int
    shift: Shift = Shift()
    unended: bool = False


def find(text: str, wanted: str) -> list[Found]:
    """All places where the first step that finds any finds one.

    Nobody sees how lines end: where endings are mixed, places that differ in nothing else count as well.
    """
    mixed = not only_ending(text)
    if exact := [Found(at, at + len(wanted)) for at in islice(_exact(text, wanted), MOST_PLACES)]:
        return max(exact, _without_endings(text, wanted), key=len) if mixed else exact
    lines, parts = split(text), split(wanted)
    if found := _found(lines, parts, endings=True):
        return max(found, _found(lines, parts, endings=False), key=len) if mixed else found
    if "\r" not in text and "\r" not in wanted:
        return []
    return _without_endings(text, wanted) or _found(lines, parts, endings=False)


def windows(lines: Sequence[Line], wanted: Sequence[Line]) -> tuple[str, list[Window]]:
    """The step of tolerance, and the places in a file's lines, where whole lines stand; see the module."""
    for endings in (True, False):
        for step in ("", TRAILING, INDENTATION):
            if found := list(islice(_windows(lines, wanted, step, endings=endings), MOST_PLACES)):
                # As above: lines that differ in their endings alone are alike.
                alike = list(islice(_windows(lines, wanted, step, endings=False), MOST_PLACES))
                return _named(step, endings=endings), max(found, alike, key=len)
    return "", []


def _named(step: str, *, endings: bool) -> str:
    if endings:
        return step
    return f"{ENDINGS} and {step}" if step else ENDINGS


def _positions(text: str, wanted: str) -> Iterator[int]:
    start = text.find(wanted)
    while start >= 0:
        yield start
        start = text.find(wanted, start + 1)


def _exact(text: str, wanted: str) -> Iterator[int]:
    """Places that do not begin or end within a line break."""
    for at in _positions(text, wanted):
        end = at + len(wanted)
        if text[max(0, at - 1) : at + 1] != "\r\n" and text[end - 1 : end + 1] != "\r\n":
            yield at


def _without_endings(text: str, wanted: str) -> list[Found]:
    """Places that differ in nothing but how lines end; they may begin and end within a line."""
    plain = unix(text)
    starts = [0, *accumulate(len(line.body) + len(line.end) for line in split(text))]
    plain_starts = [0, *accumulate(len(line.body) + bool(line.end) for line in split(text))]

    def position(at: int) -> int:
        number = bisect_right(plain_starts, at) - 1
        return starts[number] + at - plain_starts[number]

    return [
        Found(position(at), position(at + len(unix(wanted))), ENDINGS)
        for at in islice(_positions(plain, unix(wanted)), MOST_PLACES)
    ]


def _found(lines: list[Line], wanted: list[Line], *, endings: bool) -> list[Found]:
    starts = [0, *accumulate(len(line.body) + len(line.end) for line in lines)]
    for step in (TRAILING, INDENTATION):
        found = []
        for window in islice(_windows(lines, wanted, step, endings=endings), MOST_PLACES):
            end = starts[window.first + len(wanted)]
            if not wanted[-1].end:
                end -= len(lines[window.first + len(wanted) - 1].end)
            name = _named(step, endings=endings)
            found.append(Found(starts[window.first], end, name, window.shift, window.unended))
        if found:
            return found
    return []


def _windows(lines: Sequence[Line], wanted: Sequence[Line], step: str, *, endings: bool) -> Iterator[Window]:
    """Where the wanted lines stand one after the other, as far as the step can tell."""
    marked = next((n for n, line in enumerate(wanted) if line.body.strip(BLANKS)), None)
    if marked is None:
        return  # blank lines alone are found exactly or not at all
    keys: dict[str, Callable[[str], str]] = {TRAILING: _without_trailing, INDENTATION: _without_blanks}
    key = keys.get(step, str)
    mark = key(wanted[marked].body)
    for number in range(len(lines) - len(wanted) + 1):
        if key(lines[number + marked].body) != mark:
            continue
        here = lines[number : number + len(wanted)]
        if any(key(line.body) != key(want.body) for line, want in zip(here, wanted, strict=True)):
            continue
        unended = bool(wanted[-1].end and not here[-1].end)
        if endings and not _same_endings(here, wanted):
            continue
        if unended and not step and endings:
            continue
        shift = _shift(here, wanted) if step == INDENTATION else Shift()
        if shift is not None:
            yield Window(number, shift, unended)


def _without_trailing(body: str) -> str:
    return body.rstrip(BLANKS)


def _without_blanks(body: str) -> str:
    return body.strip(BLANKS)


def _same_endings(here: Sequence[Line], wanted: Sequence[Line]) -> bool:
    pairs = zip(here, wanted, strict=True)
    # The end of the last line need not have been copied, and need not be there at the end of a file.
    return all(line.end == want.end or not line.end or not want.end for line, want in pairs)


def _shift(here: Sequence[Line], wanted: Sequence[Line]) -> Shift | None:
    """The one shift that explains how all lines are indented; None where there is none."""
    pairs = [
        (_indent(line.body), _indent(want.body))
        for line, want in zip(here, wanted, strict=True)
        if want.body.strip(BLANKS)
    ]
    found, written = pairs[0]
    if found.endswith(written):
        shift = Shift(deeper=found[: len(found) - len(written)])
    elif written.endswith(found):
        shift = Shift(less=written[: len(written) - len(found)])
    else:
        return None
    fits = all(
        want.startswith(shift.less) and line == shift.deeper + want[len(shift.less) :] for line, want in pairs
    )
    return shift if fits else None


def _indent(body: str) -> str:
    return body[: len(body) - len(body.lstrip(BLANKS))]
