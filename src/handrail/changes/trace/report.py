"""The trace in numbers: changes, lines and rework, by intent, class and model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from handrail.changes.trace.blame import Author, TraceLine, lines_from
from handrail.changes.trace.known import Applied
from handrail.changes.trace.replay import Tally


@dataclass(slots=True)
class Count:
    """What was done under one name."""

    changes: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    lines: int = 0
    rewritten: int = 0
    """Lines that a later change wrote anew; of what others did elsewhere it is not known."""
    taken_back: int = 0


class Report(NamedTuple):
    intents: dict[str, Count]
    classes: dict[str, Count]
    models: dict[str, Count]
    problems: int
    """Changes that were said to keep behaviour and do not."""
    total: Count


class _Part(NamedTuple):
    """What one change did."""

    author: Author
    files: tuple[str, ...]
    lines: int
    rewritten: int = 0
    taken_back: int = 0


def report(changes: Sequence[Applied], tally: Tally, others: Sequence[TraceLine]) -> Report:
    """Counts of all that the log knows, and of what other writers left in the trace."""
    parts = [
        _Part(
            next(lines_from(applied)).author,
            tuple(file.destination or file.path for file in applied.change.files),
            tally.written[number],
            tally.rewritten[number],
            tally.taken_back[number],
        )
        for number, applied in enumerate(changes)
        if applied.change.files
    ]
    parts += [
        _Part(line.author, (line.to or line.file,), sum(each.end - each.start + 1 for each in line.ranges))
        for line in others
    ]
    total = Count()
    found = Report({}, {}, {}, _problems(changes), total)
    for part in parts:
        author = part.author
        for counts, name in (
            (found.intents, author.intent_id),
            (found.classes, author.mutation_class),
            (found.models, author.model if author.by == "agent" else f"({author.by})"),
        ):
            _add(counts.setdefault(name, Count()), part)
        _add(total, part)
    return found


def _add(count: Count, part: _Part) -> None:
    count.changes.add(part.author.change_id)
    count.files.update(part.files)
    count.lines += part.lines
    count.rewritten += part.rewritten
    count.taken_back += part.taken_back


def _problems(changes: Iterable[Applied]) -> int:
    return sum(bool(applied.change.mutation_problem) for applied in changes)
