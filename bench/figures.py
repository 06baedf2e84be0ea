"""What was measured of an agent in a repository, and what is wanted of Handrail."""

import statistics
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Column(NamedTuple):
    """A figure: its unit, and where it is a time, the ratio to `python -c pass` that Handrail is to reach."""

    key: str
    title: str
    unit: str
    wanted: float | None = None


COLUMNS = (
    Column("version", "--version", "ms", 5.0),
    Column("first", "start to first request", "ms", 20.0),
    Column("gap", "answer to next request", "ms", 1.5),
    Column("write", "write to next request", "ms", 1.0),
    Column("first_write", "first write", "ms"),
    Column("command", "command to next request", "ms", 2.0),
    Column("first_command", "first command", "ms"),
    Column("whole", "one-edit task", "ms", 40.0),
    Column("cpu", "its CPU time", "ms"),
    Column("hi_chat", '"hi", fewest tools', "bytes", 4096),
    Column("hi_tools", '"hi", all tools', "bytes", 8192),
    Column("memory", "peak memory", "MB", 50.0),
)
GROWTH = 1.10
"""What a repository of 20,000 files may cost of what a small one costs."""


@dataclass
class Measured:
    """One agent in one repository; medians of what was seen, and why something was not."""

    agent: str
    files: int
    seen: dict[str, list[float]] = field(default_factory=dict)
    ratios: dict[str, list[float]] = field(default_factory=dict)
    """Of times: each to `python -c pass` in the same round, so that a busy moment weighs on both."""
    problems: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    """How long its rounds have taken."""

    def add(self, key: str, *values: float, python: float = 0.0) -> None:
        self.seen.setdefault(key, []).extend(values)
        if python:
            self.ratios.setdefault(key, []).extend(value / python for value in values)

    def value(self, key: str) -> float | None:
        return statistics.median(self.seen[key]) if self.seen.get(key) else None

    def ratio(self, key: str) -> float | None:
        return statistics.median(self.ratios[key]) if self.ratios.get(key) else None

    def is_reached(self, column: Column) -> bool:
        """True also where nothing was measured."""
        counts = self.ratio(column.key) if column.unit == "ms" else self.value(column.key)
        return counts is None or column.wanted is None or counts <= column.wanted

    def facts(self) -> dict[str, Any]:
        """For the JSON of results."""
        medians = {key: round(statistics.median(values), 3) for key, values in self.seen.items()}
        ratios = {key: round(statistics.median(values), 2) for key, values in self.ratios.items()}
        least = {key: round(min(values), 3) for key, values in self.seen.items()}
        counts = {key: len(values) for key, values in self.seen.items()}
        return {
            "agent": self.agent,
            "files": self.files,
            "median": medians,
            "ratio": ratios,
            "least": least,
            "runs": counts,
            "problems": self.problems,
        }


def table(rows: list[Measured]) -> str:
    """A Markdown table: each figure, and each time also as a multiple of `python -c pass`."""
    head = ["agent", "files", *(column.title for column in COLUMNS)]
    lines = [head, ["---"] * 2 + ["---:"] * len(COLUMNS)]
    for row in rows:
        cells = [_cell(row, column) for column in COLUMNS]
        lines.append([row.agent, f"{row.files:,}" if row.files else "", *cells])
    lines.append(["wanted of handrail", "", *(_wanted(column) for column in COLUMNS)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(row: Measured, column: Column) -> str:
    value = row.value(column.key)
    if value is None:
        return "failed" if column.key in row.problems else "-"
    if column.unit == "ms":
        return f"{value:,.0f} ms ({row.ratio(column.key):.1f}x)"
    return f"{value:,.0f} {column.unit}"


def _wanted(column: Column) -> str:
    if column.wanted is None:
        return "-"
    return f"{column.wanted:g}x" if column.unit == "ms" else f"{column.wanted:,.0f} {column.unit}"


def missed(rows: list[Measured]) -> list[str]:
    """What Handrail does not reach, one sentence each."""
    own = [row for row in rows if row.agent == "handrail"]
    found = [
        f"{column.title} with {row.files:,} files: {_cell(row, column)}, wanted {_wanted(column)}"
        for row in own
        for column in COLUMNS
        if not row.is_reached(column)
    ]
    if len(own) > 1:
        small, large = min(own, key=lambda row: row.files), max(own, key=lambda row: row.files)
        for column in COLUMNS:
            counts = Measured.ratio if column.unit == "ms" else Measured.value
            before, after = counts(small, column.key), counts(large, column.key)
            if before and after and after > before * GROWTH:
                found.append(f"{column.title} grows with the repository: {after / before:.2f} times")
    return found
