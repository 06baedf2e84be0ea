"""Reading a unified diff of one file, as git or a model writes it."""

import re
from typing import NamedTuple

from handrail.protocol.errors import PathProblem

HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
FENCE = re.compile(r"\s*```[\w-]*\n(.*?)\n?```\s*", re.DOTALL)
STAMP = re.compile(r"\t.*|\s+\d{4}-\d\d-\d\d[ T]\d\d:\d\d.*")
EXTENDED = ("diff ", "index ", "new file mode ", "deleted file mode ")
OTHER_WORK = ("rename ", "copy ", "similarity ", "dissimilarity ", "old mode ", "new mode ")
NOWHERE = "/dev/null"
NO_BREAK = "\\ No newline"


class Row(NamedTuple):
    """A line of a hunk."""

    kind: str
    """` ` stays, `-` goes, `+` comes."""
    body: str


class Hunk(NamedTuple):
    rows: tuple[Row, ...]
    line: int | None
    """Where the header says that the old lines begin, from 1; None where it says nothing."""
    old_unended: bool = False
    """The old side is said to end the file without a line break."""
    new_unended: bool = False

    @property
    def old(self) -> list[str]:
        return [row.body for row in self.rows if row.kind != "+"]

    @property
    def new(self) -> list[str]:
        return [row.body for row in self.rows if row.kind != "-"]


class Unified(NamedTuple):
    hunks: tuple[Hunk, ...]
    creates: bool = False
    deletes: bool = False


def read_diff(path: str, text: str) -> Unified:
    """The hunks of a diff of this file; raises PathProblem for what is malformed or about another one."""
    rows = _unfenced(text).replace("\r\n", "\n").removesuffix("\n").split("\n")
    at, names = _head(path, rows)
    for side, name in names.items():
        if name != NOWHERE and not _is(path, name):
            raise malformed(path, f"its header {side} {name[:200]} is about another file")
    hunks: list[Hunk] = []
    while at < len(rows):
        if not rows[at].startswith("@@"):
            raise malformed(path, _stray(rows[at]))
        end = next((n for n in range(at + 1, len(rows)) if _ends_hunk(rows, n)), len(rows))
        hunks.append(_hunk(path, rows[at], rows[at + 1 : end], last=end == len(rows)))
        at = end
    if not hunks:
        raise malformed(path, "it has no hunk (a part that begins with @@)")
    return Unified(tuple(hunks), names.get("---") == NOWHERE, names.get("+++") == NOWHERE)


def malformed(path: str, why: str) -> PathProblem:
    message = f"The diff of {path} cannot be used: {why}. Write it anew from the file as it is now."
    return PathProblem(message, "malformed_diff", path)


def _unfenced(text: str) -> str:
    fenced = FENCE.fullmatch(text)
    return fenced[1] if fenced else text


def _head(path: str, rows: list[str]) -> tuple[int, dict[str, str]]:
    """Where the first hunk begins, and the file names of the header."""
    names: dict[str, str] = {}
    for number, row in enumerate(rows):
        if row.startswith("@@"):
            return number, names
        if row.startswith(OTHER_WORK):
            raise malformed(
                path, f"it wants more than other lines ({row.strip()[:80]}): use `move` for names"
            )
        if row.startswith(("Binary files ", "GIT binary patch")):
            raise malformed(path, "it is about a binary file")
        if row.startswith(("--- ", "+++ ")):
            if row[:3] in names:
                raise malformed(path, "it has the header of a file twice, or no hunk in between")
            names[row[:3]] = _name(row[4:])
        elif row.strip() and not row.startswith(EXTENDED):
            raise malformed(path, _stray(row))
    return len(rows), names


def _name(written: str) -> str:
    return STAMP.sub("", written).strip().strip('"')


def _is(path: str, name: str) -> bool:
    plain = name.removeprefix("./")
    return path in (plain, plain.removeprefix("a/"), plain.removeprefix("b/"))


def _stray(row: str) -> str:
    return f"this is no line of a diff: {row.strip()[:80]!r} (lines that stay begin with a space)"


def _ends_hunk(rows: list[str], number: int) -> bool:
    row = rows[number]
    # A removed line that begins with two dashes looks like a header, until the next row tells.
    header = row.startswith("--- ") and number + 1 < len(rows) and rows[number + 1].startswith("+++ ")
    return row.startswith(("@@", "diff --git ")) or header


def _hunk(path: str, head: str, body: list[str], *, last: bool) -> Hunk:
    numbers = HUNK.match(head)
    promised = (_count(numbers[2]), _count(numbers[4])) if numbers else None
    rows: list[Row] = []
    unended = {" ": False, "-": False, "+": False}
    for row in body:
        if row.startswith(NO_BREAK) and rows:
            unended[rows[-1].kind] = True
        elif not row:
            rows.append(Row(" ", ""))  # the space of an empty line is easily lost
        elif row[0] in " -+":
            rows.append(Row(row[0], row[1:]))
        else:
            raise malformed(path, _stray(row))
    for row in reversed(body):
        # Empty rows at the end are lines that stay only if the header counts them.
        if row or (promised and sum(each.kind != "+" for each in rows) <= promised[0]):
            break
        rows.pop()
    line = int(numbers[1]) if numbers else None
    stays = unended[" "]
    hunk = Hunk(tuple(rows), line, unended["-"] or stays, unended["+"] or stays)
    _check(path, head, hunk, promised, last=last)
    return hunk


def _count(number: str | None) -> int:
    return int(number) if number is not None else 1


def _check(path: str, head: str, hunk: Hunk, promised: tuple[int, int] | None, *, last: bool) -> None:
    if promised and last and (len(hunk.old) < promised[0] or len(hunk.new) < promised[1]):
        # What was cut must not become a deletion.
        raise malformed(path, f"{head[:60]} promises more lines than come, so it may have been cut")
    if hunk.old == hunk.new and hunk.old_unended == hunk.new_unended:
        raise PathProblem(f"The hunk {head[:60]} of the diff of {path} changes nothing.", "no_change", path)
