"""Find a text in a file, exactly or with fixed steps of tolerance; keep line endings.

The steps, in this order: exact, trailing white space, indentation shifted as one block; then the same three
ignoring line endings. The first step that finds anything decides. From the second step on whole lines are
compared. A match counts only if it is the only one, or the one that was named by its line.
"""

import difflib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import NamedTuple


class Line(NamedTuple):
    body: str
    end: str
    """`\\n`, `\\r\\n`, or nothing for a last line without a line break."""


def split_lines(text: str) -> list[Line]:
    """The lines of a text, as `read` counts them: form feeds and other separators are no line breaks."""
    *whole, last = text.split("\n")
    lines = [Line(body[:-1], "\r\n") if body.endswith("\r") else Line(body, "\n") for body in whole]
    return [*lines, Line(last, "")] if last else lines


def join_lines(lines: Sequence[Line], ending: str, *, final_break: bool) -> str:
    """The text of some lines, each with its own or this ending; the last one only with `final_break`."""
    text = "".join(body + (end or ending) for body, end in lines)
    return text if final_break or not lines else text.removesuffix(lines[-1].end or ending)


def first_ending(lines: Iterable[Line]) -> str:
    return next((line.end for line in lines if line.end), "\n")


def to_unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def only_ending(text: str) -> str:
    """The line ending that all lines have; empty if they differ. A text of one line has `\\n`."""
    if "\r" not in text:
        return "\n"
    if "\n" not in text:
        return "\r"
    both = text.count("\r\n")
    return "\r\n" if both == text.count("\n") == text.count("\r") else ""


def with_endings_of(matched: str, new: str, ending: str, after: str = "") -> str:
    """New text with the line endings of the text it replaces.

    `ending` is the file's only one, empty where they are mixed: then unchanged lines keep theirs, and new
    ones take that of the line they replace or follow. `after` is the ending of the line where `matched` ends.
    """
    new = to_unix(new)
    if ending:
        return new.replace("\n", ending)
    old, lines = split_lines(matched), split_lines(new)
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
    """How the line at a position ends; empty at the end of a text."""
    at = text.find("\n", position)
    if at < 0:
        return ""
    return "\r\n" if text[at - 1 : at] == "\r" else "\n"


TRAILING, INDENTATION, ENDINGS = "trailing white space", "indentation", "line endings"
BLANKS = " \t"
MAX_MATCHES = 1_000


class Shift(NamedTuple):
    """White space by which lines of a file are indented more, or less, than the text searched for."""

    deeper: str = ""
    less: str = ""

    def applied(self, text: str) -> str | None:
        """The text indented like its block; None where a line is not indented enough for it."""
        if not self.deeper and not self.less:
            return text
        moved = []
        for body, end in split_lines(text):
            if not body.strip(BLANKS):
                moved.append(body + end)
            elif body.startswith(self.less):
                moved.append(self.deeper + body[len(self.less) :] + end)
            else:
                return None
        return "".join(moved)


class Match(NamedTuple):
    start: int
    end: int
    step: str = ""
    shift: Shift = Shift()
    unended: bool = False
    """The search text ends with a line break where the file ends without one."""


class LineMatch(NamedTuple):
    first: int
    shift: Shift = Shift()
    unended: bool = False


def find_text(text: str, search: str, limit: int = MAX_MATCHES) -> list[Match]:
    """The first `limit` matches of the first step that has any.

    Nobody sees how lines end: places that differ only in that count as well, before any other tolerance.
    """
    foreign = "\r" in text or "\r" in search
    if exact := list(islice(_exact(text, search), limit)):
        return max(exact, _ignoring_endings(text, search, limit), key=len) if foreign else exact
    lines, parts = split_lines(text), split_lines(search)
    same = _by_lines(lines, parts, limit, endings=True)
    if not foreign:
        return same
    found = _ignoring_endings(text, search, limit) or _by_lines(lines, parts, limit, endings=False)
    return same if [match.start for match in same] == [match.start for match in found] else found


def find_lines(lines: Sequence[Line], search: Sequence[Line]) -> tuple[str, list[LineMatch]]:
    """The first step of tolerance that matches whole lines, and its matches."""
    foreign = any("\r" in line.end for line in (*lines, *search))
    for step in ("", TRAILING, INDENTATION):
        for endings in (True, False) if foreign else (True,):
            if found := _windows(lines, search, step, endings=endings):
                # As above: lines that differ only in their endings are alike.
                alike = _windows(lines, search, step, endings=False)
                return _step_name(step, endings=endings), max(found, alike, key=len)
    return "", []


def _step_name(step: str, *, endings: bool) -> str:
    if endings:
        return step
    return f"{ENDINGS} and {step}" if step else ENDINGS


def _positions(text: str, search: str) -> Iterator[int]:
    start = text.find(search)
    while start >= 0:
        yield start
        start = text.find(search, start + 1)


def _exact(text: str, search: str) -> Iterator[Match]:
    """Places that do not begin or end within a line break."""
    for at in _positions(text, search):
        end = at + len(search)
        if text[max(0, at - 1) : at + 1] != "\r\n" and text[end - 1 : end + 1] != "\r\n":
            yield Match(at, end)


def _ignoring_endings(text: str, search: str, limit: int) -> list[Match]:
    """Places that differ only in how lines end; they may begin and end within a line."""
    starts = [0, *accumulate(len(line.body) + len(line.end) for line in split_lines(text))]
    unix_starts = [0, *accumulate(len(line.body) + bool(line.end) for line in split_lines(text))]

    def position(at: int) -> int:
        number = bisect_right(unix_starts, at) - 1
        return starts[number] + at - unix_starts[number]

    found = islice(_positions(to_unix(text), to_unix(search)), limit)
    return [Match(position(at), position(at + len(to_unix(search))), ENDINGS) for at in found]


def _by_lines(lines: list[Line], search: list[Line], limit: int, *, endings: bool) -> list[Match]:
    starts = [0, *accumulate(len(line.body) + len(line.end) for line in lines)]
    for step in (TRAILING, INDENTATION):
        found = []
        for window in _windows(lines, search, step, limit, endings=endings):
            last = window.first + len(search)
            end = starts[last] if search[-1].end else starts[last] - len(lines[last - 1].end)
            name = _step_name(step, endings=endings)
            found.append(Match(starts[window.first], end, name, window.shift, window.unended))
        if found:
            return found
    return []


def _windows(
    lines: Sequence[Line], search: Sequence[Line], step: str, limit: int = MAX_MATCHES, *, endings: bool
) -> list[LineMatch]:
    """Where the search lines stand one after the other, as far as the step can tell."""
    found: list[LineMatch] = []
    marked = next((n for n, line in enumerate(search) if line.body.strip(BLANKS)), None)
    if marked is None:
        return found  # blank lines alone are found exactly or not at all

    def key(body: str) -> str:
        return body.rstrip(BLANKS) if step == TRAILING else body.strip(BLANKS) if step else body

    keys = [key(line.body) for line in search]
    for number in range(len(lines) - len(search) + 1):
        if key(lines[number + marked].body) != keys[marked]:
            continue
        here = lines[number : number + len(search)]
        if any(key(line.body) != wanted for line, wanted in zip(here, keys, strict=True)):
            continue
        unended = bool(search[-1].end and not here[-1].end)
        pairs = zip(here, search, strict=True)
        # The end of the last line need not have been copied, and need not be there at the end of a file.
        same = all(line.end == want.end or not line.end or not want.end for line, want in pairs)
        if endings and (not same or (unended and not step)):
            continue
        shift = _shift(here, search) if step == INDENTATION else Shift()
        if shift is not None:
            found.append(LineMatch(number, shift, unended))
            if len(found) == limit:
                break
    return found


def _shift(here: Sequence[Line], search: Sequence[Line]) -> Shift | None:
    """The one shift that explains how all lines are indented; None where there is none."""
    pairs = [
        (_indent(line.body), _indent(want.body))
        for line, want in zip(here, search, strict=True)
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
