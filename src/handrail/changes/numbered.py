"""Edits by line numbers: all numbers are those of the file as it was, whatever order the edits come in."""

from itertools import pairwise
from typing import NamedTuple

from handrail.changes.endings import Line, joined, split, unix
from handrail.changes.forms import LineEdit
from handrail.changes.matching import BLANKS, TRAILING
from handrail.changes.replacing import Text
from handrail.protocol.errors import PathProblem


class _Span(NamedTuple):
    start: int
    """Lines `start` to `end`, counted from 0, the end not included."""
    end: int
    order: int
    edit: LineEdit


def renumbered(path: str, text: str, edits: tuple[LineEdit, ...]) -> Text:
    """The text after all edits; raises PathProblem for the first that does not fit."""
    lines = split(text)
    spans = sorted(_span(path, edit, len(lines), order) for order, edit in enumerate(edits))
    for before, after in pairwise(spans):
        if after.start < before.end:
            raise PathProblem(
                f"Two edits of {path} are about line {after.start + 1}. Make one edit of them.",
                "overlap",
                path,
            )
    steps = [_check_expected(path, lines, span) for span in spans]
    result: list[Line] = []
    at = 0
    usual = next((line.end for line in lines if line.end), "\n")
    for span in spans:
        result += lines[at : span.start]
        result += _new_lines(span, lines, usual)
        at = span.end
    result += lines[at:]
    return Text(joined(_ended(result, like=lines)), tuple(dict.fromkeys(step for step in steps if step)))


def _span(path: str, edit: LineEdit, count: int, order: int) -> _Span:
    if edit.op == "insert":
        if not 0 <= edit.start <= count:
            raise _out_of_range(path, count, f"There is no line {edit.start} to insert after")
        if not edit.lines:
            raise PathProblem(f"An insertion into {path} has no lines.", "invalid_arguments", path)
        return _Span(edit.start, edit.start, order, edit)
    if not 1 <= edit.start <= edit.end <= count:
        raise _out_of_range(path, count, f"There are no lines {edit.start} to {edit.end}")
    if edit.op == "delete" and edit.lines:
        message = f"A deletion in {path} has new lines. Say `replace` for lines that are to stand there."
        raise PathProblem(message, "invalid_arguments", path)
    return _Span(edit.start - 1, edit.end, order, edit)


def _out_of_range(path: str, count: int, what: str) -> PathProblem:
    has = f"{count} lines" if count != 1 else "1 line"
    return PathProblem(f"{what}: {path} has {has}. Read it, then repeat the change.", "out_of_range", path)


def _check_expected(path: str, lines: list[Line], span: _Span) -> str:
    """The step of tolerance under which the lines are the expected ones."""
    if not span.edit.expected:
        return ""
    expected = [unix(line).removesuffix("\n") for line in span.edit.expected]
    first = max(0, span.start - 1) if span.edit.op == "insert" else span.start
    found = [line.body for line in lines[first : max(span.end, first + 1)]]
    if found == expected:
        return ""
    if [body.rstrip(BLANKS) for body in found] == [body.rstrip(BLANKS) for body in expected]:
        return TRAILING
    shown = "\n".join(found[:5])[:400]
    raise PathProblem(
        f"Line {first + 1} of {path} does not say what was expected there. It says:\n{shown}\n"
        "Read the file again, then repeat the change.",
        "no_match",
        path,
    )


def _new_lines(span: _Span, lines: list[Line], usual: str) -> list[Line]:
    bodies = [body for each in span.edit.lines for body in unix(each).removesuffix("\n").split("\n")]
    old = lines[span.start : span.end] or lines[max(0, span.start - 1) : span.start]
    ends = [line.end or usual for line in old] or [usual]
    return [Line(body, ends[min(n, len(ends) - 1)]) for n, body in enumerate(bodies)]


def _ended(lines: list[Line], *, like: list[Line]) -> list[Line]:
    """The lines with every one ended but the last, which ends or not as it did before."""
    usual = next((line.end for line in reversed([*like, *lines]) if line.end), "\n")
    ended = [Line(line.body, line.end or usual) for line in lines]
    if like and not like[-1].end and ended:
        ended[-1] = Line(ended[-1].body, "")
    return ended
