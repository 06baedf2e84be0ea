"""Applying a unified diff: each hunk where its old lines stand, with the bytes of what stays."""

from itertools import pairwise
from typing import NamedTuple

from handrail.changes.endings import Line, joined, split
from handrail.changes.matching import Shift, Window, windows
from handrail.changes.replacing import Text
from handrail.changes.unified import Hunk, Unified, malformed
from handrail.protocol.errors import PathProblem


class _Placed(NamedTuple):
    start: int
    """Lines `start` to `end` of the old file, counted from 0, the end not included."""
    end: int
    hunk: Hunk
    step: str = ""
    shift: Shift = Shift()


def created(path: str, diff: Unified) -> str:
    """The text of the new file that a diff from /dev/null describes."""
    if len(diff.hunks) != 1 or diff.hunks[0].old:
        raise malformed(path, "a diff of a new file has one hunk, in which all lines begin with +")
    (hunk,) = diff.hunks
    return "\n".join(hunk.new) + ("" if hunk.new_unended else "\n")


def check_deleted(path: str, text: str, diff: Unified) -> None:
    """Refuse unless a diff to /dev/null takes away exactly what the file holds."""
    (hunk, *others) = diff.hunks
    if others or hunk.new or hunk.old != [line.body for line in split(text)]:
        raise PathProblem(
            f"The diff deletes {path}, but its lines are not those of the file. Read it, then repeat.",
            "no_match",
            path,
        )


def patched(path: str, text: str, diff: Unified) -> Text:
    """The text after all hunks; raises PathProblem where one of them does not fit."""
    lines = split(text)
    placed = sorted(
        (_place(path, lines, hunk) for hunk in diff.hunks), key=lambda each: (each.start, each.end)
    )
    for before, after in pairwise(placed):
        if after.start < before.end:
            raise PathProblem(
                f"Two hunks of the diff of {path} are about line {after.start + 1}. Make one of them.",
                "overlap",
                path,
            )
    result: list[Line] = []
    at = 0
    for each in placed:
        result += lines[at : each.start]
        result += _changed(path, lines, each)
        at = each.end
    result += lines[at:]
    steps = tuple(dict.fromkeys(each.step for each in placed if each.step))
    return Text(joined(_ended(result, lines, placed)), steps)


def _span(placed: _Placed) -> tuple[int, int]:
    return placed.start, placed.end


def _place(path: str, lines: list[Line], hunk: Hunk) -> _Placed:
    old = [Line(body, "\n") for body in hunk.old]
    if not old:
        return _insertion(path, lines, hunk)
    if hunk.old_unended:
        old[-1] = Line(old[-1].body, "")
    step, found = windows(lines, old)
    if not found and _is_blank_at(lines, hunk):
        found = [Window((hunk.line or 1) - 1)]
    if hunk.old_unended:
        found = [each for each in found if each.first + len(old) == len(lines)]
    if not found:
        raise _absent(path, lines, hunk)
    window = _the_one(path, found, hunk)
    _refuse_repeated(path, lines, hunk, window)
    return _Placed(window.first, window.first + len(old), hunk, step, window.shift)


def _is_blank_at(lines: list[Line], hunk: Hunk) -> bool:
    """Whether a hunk around blank lines alone stands where its header says."""
    if hunk.line is None or any(body.strip() for body in hunk.old):
        return False
    return [line.body for line in lines[max(0, hunk.line - 1) :][: len(hunk.old)]] == hunk.old


def _the_one(path: str, found: list[Window], hunk: Hunk) -> Window:
    """The place that the header names, or the only one there is."""
    named = [window for window in found if window.first + 1 == hunk.line]
    if len(named or found) > 1:
        places = ", ".join(str(window.first + 1) for window in found[:5])
        raise PathProblem(
            f"The lines of a hunk stand at lines {places} of {path}, and its header names none of them."
            " Add lines around it, or correct the number.",
            "ambiguous_match",
            path,
        )
    return (named or found)[0]


def _insertion(path: str, lines: list[Line], hunk: Hunk) -> _Placed:
    """New lines with none around them go where the header says, which must be in the file."""
    if hunk.line is None or not (1 if lines else 0) <= hunk.line <= len(lines):
        raise PathProblem(
            f"A hunk adds lines to {path} and does not say where. Give it lines that stay, before or after.",
            "out_of_range",
            path,
        )
    return _Placed(hunk.line, hunk.line, hunk)


def _absent(path: str, lines: list[Line], hunk: Hunk) -> PathProblem:
    _, done = windows(lines, [Line(body, "\n") for body in hunk.new]) if hunk.new else ("", [])
    if done:
        return PathProblem(
            f"A hunk does not fit {path}, but its result stands there already, at line {done[0].first + 1}:"
            " it is done.",
            "already_applied",
            path,
        )
    bodies = {line.body for line in lines}
    for row in hunk.rows:
        if row.kind == "-" and row.body not in bodies and _glued(row.body, bodies):
            return malformed(path, f"an old and a new line are glued together: {'-' + row.body[:80]!r}")
    missing = next((body for body in hunk.old if body.strip() and body not in bodies), hunk.old[0])
    return PathProblem(
        f"The lines of a hunk do not stand in {path} like this, for instance: {missing[:200]!r}."
        " Read the file again, then write the diff anew.",
        "no_match",
        path,
    )


def _glued(body: str, bodies: set[str]) -> bool:
    return any(body[:at] in bodies for at, letter in enumerate(body) if letter == "+" and body[:at].strip())


def _refuse_repeated(path: str, lines: list[Line], hunk: Hunk, window: Window) -> None:
    """A hunk that only adds fits again after it was applied."""
    new = hunk.new
    if any(row.kind == "-" for row in hunk.rows):
        return
    # Where the old lines now stand is where they begin or end in the new ones.
    heads = [n for n in range(len(new) - len(hunk.old) + 1) if new[n : n + len(hunk.old)] == hunk.old]
    for head in heads:
        start = window.first - head
        if start >= 0 and [line.body for line in lines[start : start + len(new)]] == new:
            raise PathProblem(
                f"{path} has the result of a hunk already, at line {start + 1}: it is done.",
                "already_applied",
                path,
            )


def _changed(path: str, lines: list[Line], placed: _Placed) -> list[Line]:
    result: list[Line] = []
    at = placed.start
    usual = next((line.end for line in lines if line.end), "\n")
    for kind, body in placed.hunk.rows:
        if kind == "+":
            shifted = placed.shift.applied(body)
            if shifted is None:
                raise PathProblem(
                    f"A hunk stands less indented in {path} than it was written. Copy its lines as they are.",
                    "no_match",
                    path,
                )
            near = lines[at].end if at < len(lines) else lines[at - 1].end if lines else ""
            result.append(Line(shifted, near or usual))
        else:
            if kind == " ":
                result.append(lines[at])
            at += 1
    return result


def _ended(result: list[Line], lines: list[Line], placed: list[_Placed]) -> list[Line]:
    """Every line ended but the last: it ends as it did, unless the diff says otherwise."""
    usual = next((line.end for line in lines if line.end), "\n")
    ends = bool(not lines or lines[-1].end)
    last = placed[-1]
    if last.end == len(lines) and last.hunk.old_unended != last.hunk.new_unended:
        ends = last.hunk.old_unended
    ended = [Line(line.body, line.end or usual) for line in result]
    if ended and not ends:
        ended[-1] = Line(ended[-1].body, "")
    return ended
