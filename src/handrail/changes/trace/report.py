"""The trace in numbers: changes, lines and rework, by intent, class and model."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct, field

from handrail.changes.trace.blame import Author, TraceLine, author_of
from handrail.changes.trace.logged_changes import AppliedChange
from handrail.changes.trace.replay import Tally


class Count(Struct):
    changes: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    lines: int = 0
    rewritten: int = 0  # lines that a later change rewrote; not known for other writers
    taken_back: int = 0


class Report(NamedTuple):
    intents: dict[str, Count]
    classes: dict[str, Count]
    models: dict[str, Count]
    problems: int  # changes declared as refactors that were not confirmed
    total: Count


def report(changes: Sequence[AppliedChange], tally: Tally, others: Sequence[TraceLine]) -> Report:
    """Counts for the changes in the log, and for the trace lines of other writers."""
    problems = sum(bool(applied.change.mutation_problem) for applied in changes)
    found = Report({}, {}, {}, problems, Count())

    def add(author: Author, files: list[str], lines: int, rewritten: int = 0, taken_back: int = 0) -> None:
        model = author.model if author.by == "agent" else f"({author.by})"
        names = (author.intent_id, author.mutation_class, model)
        groups = zip((found.intents, found.classes, found.models), names, strict=True)
        for count in (found.total, *(counts.setdefault(name, Count()) for counts, name in groups)):
            count.changes.add(author.change_id)
            count.files.update(files)
            count.lines += lines
            count.rewritten += rewritten
            count.taken_back += taken_back

    for number, applied in enumerate(changes):
        if files := [file.destination or file.path for file in applied.change.files]:
            add(author_of(applied), files, *(counter[number] for counter in tally))
    for line in others:
        add(line.author, [line.to or line.file], sum(each.end - each.start + 1 for each in line.ranges))
    return found
