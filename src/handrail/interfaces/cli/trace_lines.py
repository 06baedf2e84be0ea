"""The trace as it is shown: what is wrong with it, whose lines are, and the counts."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handrail.interfaces.cli.styles import Line, fit, line

if TYPE_CHECKING:
    from handrail.changes.trace.blame import BlamedLine
    from handrail.changes.trace.report import Count, Report
    from handrail.engine.tracing import Checked

NOBODY = "-"
WIDEST = 32
RIGHT = "as they were written"


def checked_lines(found: "Checked") -> list[Line]:
    """What verifying found, a line each, and what it comes to."""
    rows = []
    for finding in found.findings:
        where = (
            f"line {finding.line}: " if finding.line and finding.kind not in ("cut off", "removed") else ""
        )
        rows.append(line(f"{where}{finding.kind}: {finding.what}"))
    rows += [line(each) for each in found.elsewhere]
    if others := found.verified.others:
        some = f"{', '.join(others[:3])}{', ...' * (len(others) > 3)}"
        rows.append(
            line(
                f"{_many(len(others), 'writer')} not of this workspace's log ({some}):"
                " their chains are checked, but whether lines are missing at their ends is not known here."
            )
        )
    if found.completed:
        rows.append(line(f"{_many(found.completed, 'line')} that a crash kept from the file: written now."))
    if found.undecided:
        count = _many(found.undecided, "change set")
        rows.append(line(f"{count} begun and not settled: the next change sees to that, and to the lines."))
    if found.restored:
        rows.append(line(f"{_many(found.restored, 'line')} written again."))
    said = _many(len(found.findings), "problem") if found.findings else RIGHT
    rows.append(line(f"{_many(found.verified.lines, 'line')}, {said}."))
    return rows


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def checked_json(found: "Checked") -> dict[str, Any]:
    return {
        "lines": found.verified.lines,
        "known": found.verified.own,
        "other_writers": list(found.verified.others),
        "problems": [finding._asdict() for finding in found.findings],
        "elsewhere": list(found.elsewhere),
        "completed": found.completed,
        "restored": found.restored,
        "undecided": found.undecided,
    }


def blame_lines(lines: "Sequence[BlamedLine]") -> list[Line]:
    """Each line behind its number, intent, turn and model."""
    rows = [(*_author(each), each) for each in lines]
    widths = [min(WIDEST, max((len(row[at]) for row in rows), default=1)) for at in range(3)]
    digits = len(str(lines[-1].number)) if lines else 1
    return [
        line(
            f"{each.number:>{digits}}  "
            + "  ".join(
                f"{fit(text, width):<{width}}"
                for text, width in zip((intent, turn, model), widths, strict=True)
            )
            + f"  {each.text.decode(errors='replace')}".rstrip()
        )
        for intent, turn, model, each in rows
    ]


def _author(each: "BlamedLine") -> tuple[str, str, str]:
    author = each.author
    if author is None:
        return NOBODY, NOBODY, NOBODY
    turn = f"{author.session_id} turn {author.turn}" if author.turn else author.session_id
    model = author.model if author.by == "agent" else f"({author.by})"
    return author.intent_id or NOBODY, turn or NOBODY, model or NOBODY


def blamed_json(each: "BlamedLine") -> dict[str, Any]:
    author = each.author._asdict() if each.author else None
    return {"line": each.number, "text": each.text.decode(errors="replace"), "author": author}


def report_lines(found: "Report") -> list[Line]:
    """A table each for intents, classes and models; none where nothing was done."""
    if not found.total.changes:
        return []
    parts = (("intent", found.intents), ("class", found.classes), ("model", found.models))
    rows: list[Line] = []
    for name, counts in parts:
        rows += [*_table(name, counts), line("")]
    rows += _table("", {"all": found.total})[1:]
    if found.problems:
        count = _many(found.problems, "change")
        rows.append(line(f"{count} declared a refactor without being one, or without that being known."))
    return rows


def _table(name: str, counts: "Mapping[str, Count]") -> list[Line]:
    head = f"{name:<{WIDEST}} {'changes':>8} {'files':>6} {'lines':>8} {'rework':>8} {'taken back':>11}"
    return [
        line(head),
        *(
            line(
                f"{fit(key or NOBODY, WIDEST):<{WIDEST}} {len(each.changes):>8,} {len(each.files):>6,}"
                f" {each.lines:>8,} {each.rewritten:>8,} {each.taken_back:>11,}"
            )
            for key, each in sorted(counts.items(), key=lambda item: -item[1].lines)
        ),
    ]


def as_json(found: "Report") -> dict[str, Any]:
    """The same for programs."""
    return {
        "intents": {name: _count(each) for name, each in found.intents.items()},
        "classes": {name: _count(each) for name, each in found.classes.items()},
        "models": {name: _count(each) for name, each in found.models.items()},
        "mutation_problems": found.problems,
        "total": _count(found.total),
    }


def _count(each: "Count") -> dict[str, int]:
    return {
        "changes": len(each.changes),
        "files": len(each.files),
        "lines": each.lines,
        "rework": each.rewritten,
        "taken_back": each.taken_back,
    }
