"""Read a unified diff of one file and apply it."""

import re
from itertools import pairwise
from typing import NamedTuple

from handrail.changes import text_matching as matching
from handrail.changes.forms.replace import EditedText
from handrail.changes.text_matching import Line, LineMatch, Shift
from handrail.protocol.errors import PathProblem

HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
FENCE = re.compile(r"\s*```[\w-]*\n(.*?)\n?```\s*", re.DOTALL)
STAMP = re.compile(r"\t.*|\s+\d{4}-\d\d-\d\d[ T]\d\d:\d\d.*")
EXTENDED = ("diff ", "index ", "new file mode ", "deleted file mode ")
UNSUPPORTED = ("rename ", "copy ", "similarity ", "dissimilarity ", "old mode ", "new mode ")
NOWHERE = "/dev/null"
NO_NEWLINE = "\\ No newline"


class Row(NamedTuple):
    kind: str  # ` ` stays, `-` goes, `+` comes
    body: str


class Hunk(NamedTuple):
    rows: tuple[Row, ...]
    line: int | None  # where the header says that the old lines begin, from 1; None where it says nothing
    old_unended: bool = False  # the old side is said to end the file without a line break
    new_unended: bool = False

    @property
    def old(self) -> list[str]:
        return [row.body for row in self.rows if row.kind != "+"]

    @property
    def new(self) -> list[str]:
        return [row.body for row in self.rows if row.kind != "-"]


class UnifiedDiff(NamedTuple):
    hunks: tuple[Hunk, ...]
    creates: bool = False
    deletes: bool = False


def read_diff(path: str, text: str) -> UnifiedDiff:
    """The hunks of a diff of this file; raises PathProblem for what is malformed or about another one."""
    fenced = FENCE.fullmatch(text)
    rows = matching.to_unix(fenced[1] if fenced else text).removesuffix("\n").split("\n")
    at, names = _header(path, rows)
    for side, name in names.items():
        plain = name.removeprefix("./")
        if name != NOWHERE and path not in (plain, plain.removeprefix("a/"), plain.removeprefix("b/")):
            raise malformed(path, f"its header {side} {name[:200]} names another file")
    hunks: list[Hunk] = []
    while at < len(rows):
        if not rows[at].startswith("@@"):
            raise malformed(path, _stray(rows[at]))
        end = next((n for n in range(at + 1, len(rows)) if _ends_hunk(rows, n)), len(rows))
        hunks.append(_hunk(path, rows[at], rows[at + 1 : end], last=end == len(rows)))
        at = end
    if not hunks:
        raise malformed(path, "it has no hunk (a part that begins with @@)")
    return UnifiedDiff(tuple(hunks), names.get("---") == NOWHERE, names.get("+++") == NOWHERE)


def malformed(path: str, why: str) -> PathProblem:
    message = f"The diff of {path} cannot be used: {why}. Write it again from the file as it is now."
    return PathProblem(message, "malformed_diff", path)


def _header(path: str, rows: list[str]) -> tuple[int, dict[str, str]]:
    """Where the first hunk begins, and the file names of the header."""
    names: dict[str, str] = {}
    for number, row in enumerate(rows):
        if row.startswith("@@"):
            return number, names
        if row.startswith(UNSUPPORTED):
            raise malformed(path, f"it changes more than lines ({row.strip()[:80]}); use `move` to rename")
        if row.startswith(("Binary files ", "GIT binary patch")):
            raise malformed(path, "it is for a binary file")
        if row.startswith(("--- ", "+++ ")):
            if row[:3] in names:
                raise malformed(path, "it has a file header twice, or no hunk after the first one")
            names[row[:3]] = STAMP.sub("", row[4:]).strip().strip('"')
        elif row.strip() and not row.startswith(EXTENDED):
            raise malformed(path, _stray(row))
    return len(rows), names


def _stray(row: str) -> str:
    return f"this is not a line of a diff: {row.strip()[:80]!r} (unchanged lines begin with a space)"


def _ends_hunk(rows: list[str], number: int) -> bool:
    row = rows[number]
    # A removed line that begins with two dashes looks like a header, until the next row tells.
    header = row.startswith("--- ") and number + 1 < len(rows) and rows[number + 1].startswith("+++ ")
    return row.startswith(("@@", "diff --git ")) or header


def _hunk(path: str, head: str, body: list[str], *, last: bool) -> Hunk:
    numbers = HUNK.match(head)
    promised = (int(numbers[2] or 1), int(numbers[4] or 1)) if numbers else None
    rows: list[Row] = []
    unended = {" ": False, "-": False, "+": False}
    for row in body:
        if row.startswith(NO_NEWLINE) and rows:
            unended[rows[-1].kind] = True
        elif not row:
            rows.append(Row(" ", ""))  # the space of an empty line is easily lost
        elif row[0] in " -+":
            rows.append(Row(row[0], row[1:]))
        else:
            raise malformed(path, _stray(row))
    for row in reversed(body):
        # Empty rows at the end are unchanged lines only if the header counts them.
        if row or (promised and sum(each.kind != "+" for each in rows) <= promised[0]):
            break
        rows.pop()
    line = int(numbers[1]) if numbers else None
    hunk = Hunk(tuple(rows), line, unended["-"] or unended[" "], unended["+"] or unended[" "])
    if promised and last and (len(hunk.old) < promised[0] or len(hunk.new) < promised[1]):
        # What was cut must not become a deletion.
        raise malformed(path, f"{head[:60]} counts more lines than follow, so it may have been cut off")
    if hunk.old == hunk.new and hunk.old_unended == hunk.new_unended:
        raise PathProblem(f"The hunk {head[:60]} of the diff of {path} changes nothing.", "no_change", path)
    return hunk


class _Placed(NamedTuple):
    start: int  # lines `start` to `end` of the old file, counted from 0, the end not included
    end: int
    hunk: Hunk
    step: str = ""
    shift: Shift = Shift()


def patched_new_file(path: str, diff: UnifiedDiff) -> str:
    if len(diff.hunks) != 1 or diff.hunks[0].old:
        raise malformed(path, "a diff of a new file has one hunk, in which all lines begin with +")
    (hunk,) = diff.hunks
    return "\n".join(hunk.new) + ("" if hunk.new_unended else "\n")


def check_deleted(path: str, text: str, diff: UnifiedDiff) -> None:
    """Refuse unless a diff to /dev/null removes exactly what the file holds."""
    (hunk, *others) = diff.hunks
    if others or hunk.new or hunk.old != [line.body for line in matching.split_lines(text)]:
        message = f"The diff deletes {path}, but does not have the file's lines. Read it, then repeat."
        raise PathProblem(message, "no_match", path)


def apply_patch(path: str, text: str, diff: UnifiedDiff) -> EditedText:
    """The text after all hunks; raises PathProblem where one of them does not fit."""
    lines = matching.split_lines(text)
    placed = [_place(path, lines, hunk) for hunk in diff.hunks]
    placed.sort(key=lambda each: (each.start, each.end))
    for before, after in pairwise(placed):
        if after.start < before.end:
            message = f"Two hunks of the diff of {path} change line {after.start + 1}. Combine them into one."
            raise PathProblem(message, "overlap", path)
    result = list(lines)
    for each in reversed(placed):
        result[each.start : each.end] = _new_lines(path, lines, each)
    last = placed[-1]
    final_break = not lines or bool(lines[-1].end)
    if last.end == len(lines) and last.hunk.old_unended != last.hunk.new_unended:
        final_break = last.hunk.old_unended
    new = matching.join_lines(result, matching.first_ending(lines), final_break=final_break)
    return EditedText(new, tuple(dict.fromkeys(each.step for each in placed if each.step)))


def _place(path: str, lines: list[Line], hunk: Hunk) -> _Placed:
    old = [Line(body, "\n") for body in hunk.old]
    if not old:  # new lines without any around them go where the header says, which must be in the file
        if hunk.line is None or not (1 if lines else 0) <= hunk.line <= len(lines):
            message = f"A hunk adds lines to {path} without saying where. Add unchanged lines around them."
            raise PathProblem(message, "out_of_range", path)
        return _Placed(hunk.line, hunk.line, hunk)
    if hunk.old_unended:
        old[-1] = Line(old[-1].body, "")
    step, found = matching.find_lines(lines, old)
    if not found and _is_blank_at(lines, hunk):
        found = [LineMatch((hunk.line or 1) - 1)]
    if hunk.old_unended:
        found = [each for each in found if each.first + len(old) == len(lines)]
    if not found:
        raise _no_match(path, lines, hunk)
    found = [each for each in found if each.first + 1 == hunk.line] or found
    if len(found) > 1:
        places = ", ".join(str(each.first + 1) for each in found[:5])
        why = f"The lines of a hunk occur at lines {places} of {path}, and its header names none of them."
        raise PathProblem(f"{why} Add lines around it, or correct the number.", "ambiguous_match", path)
    _refuse_repeated(path, lines, hunk, found[0])
    return _Placed(found[0].first, found[0].first + len(old), hunk, step, found[0].shift)


def _is_blank_at(lines: list[Line], hunk: Hunk) -> bool:
    """Whether a hunk around blank lines alone stands where its header says."""
    if hunk.line is None or any(body.strip() for body in hunk.old):
        return False
    return [line.body for line in lines[max(0, hunk.line - 1) :][: len(hunk.old)]] == hunk.old


def _no_match(path: str, lines: list[Line], hunk: Hunk) -> PathProblem:
    _, done = matching.find_lines(lines, [Line(body, "\n") for body in hunk.new]) if hunk.new else ("", [])
    if done:
        where = f"its result is already there, at line {done[0].first + 1}: it is done."
        return PathProblem(f"A hunk does not fit {path}, but {where}", "already_applied", path)
    bodies = {line.body for line in lines}
    for row in hunk.rows:
        heads = (row.body[:at] for at, letter in enumerate(row.body) if letter == "+")
        unknown = row.kind == "-" and row.body not in bodies
        if unknown and any(head in bodies and head.strip() for head in heads):
            return malformed(path, f"an old and a new line are joined in one: {'-' + row.body[:80]!r}")
    missing = next((body for body in hunk.old if body.strip() and body not in bodies), hunk.old[0])
    why = f"The lines of a hunk are not in {path} like this, for instance: {missing[:200]!r}."
    return PathProblem(f"{why} Read the file again, then write the diff again.", "no_match", path)


def _refuse_repeated(path: str, lines: list[Line], hunk: Hunk, window: LineMatch) -> None:
    """A hunk that only adds fits again after it was applied."""
    new = hunk.new
    if any(row.kind == "-" for row in hunk.rows):
        return
    # Where the old lines now stand is where they begin or end in the new ones.
    heads = [n for n in range(len(new) - len(hunk.old) + 1) if new[n : n + len(hunk.old)] == hunk.old]
    for head in heads:
        start = window.first - head
        if start >= 0 and [line.body for line in lines[start : start + len(new)]] == new:
            message = f"{path} already has the result of a hunk, at line {start + 1}: it is done."
            raise PathProblem(message, "already_applied", path)


def _new_lines(path: str, lines: list[Line], placed: _Placed) -> list[Line]:
    result: list[Line] = []
    at = placed.start
    usual = matching.first_ending(lines)
    for kind, body in placed.hunk.rows:
        if kind == "+":
            shifted = placed.shift.applied(body)
            if shifted is None:
                message = f"{path} has the lines of a hunk with less indentation. Copy them as they are."
                raise PathProblem(message, "no_match", path)
            near = lines[at].end if at < len(lines) else lines[at - 1].end if lines else ""
            result.append(Line(shifted, near or usual))
        else:
            if kind == " ":
                result.append(lines[at])
            at += 1
    return result
