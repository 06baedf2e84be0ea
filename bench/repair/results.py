"""Results in a JSON Lines file, one run of a harness on a task a line, and the table made from them."""

import json
import math
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench.repair.events import WASTED

FILE = Path(__file__).parents[1] / "results" / "repair.jsonl"
CONFIDENCE = 1.96
"""Standard deviations of a 95 % interval."""
Record = dict[str, Any]


def load(file: Path) -> dict[tuple[str, str], Record]:
    """The last result for each harness and task; a line that a kill cut short is left out."""
    found: dict[tuple[str, str], Record] = {}
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        found[record["harness"], record["task"]] = record
    return found


def append(file: Path, record: Record) -> None:
    """Add a result, on a line of its own even where the last one was cut short."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+b") as stream:
        size = stream.tell()
        stream.seek(max(0, size - 1))
        begin = b"" if stream.read(1) in {b"", b"\n"} else b"\n"
        stream.write(begin + json.dumps(record).encode() + b"\n")


class Interval(NamedTuple):
    low: float
    high: float


def wilson(solved: int, total: int) -> Interval:
    """The 95 % interval of a rate, by Wilson's score."""
    if not total:
        return Interval(0.0, 1.0)
    rate, square = solved / total, CONFIDENCE**2
    middle = (rate + square / (2 * total)) / (1 + square / total)
    half = CONFIDENCE * math.sqrt(rate * (1 - rate) / total + square / (4 * total**2)) / (1 + square / total)
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


HEADS = (
    "harness",
    "tasks",
    "solved",
    "95 %",
    "bug",
    "complete",
    "write",
    "said done",
    "of it hidden tests fail",
    "of it visible tests fail",
    "tokens in",
    "of it read",
    "tokens out",
    "seconds",
    "stopped at the limit",
    "wasted attempts",
)


def table(records: list[Record]) -> str:
    """One row a harness, with tokens and seconds as medians of a task; then the versions and limits in it."""
    names = list(dict.fromkeys(record["harness"] for record in records))
    rows = [HEADS, tuple("---" if not number else "---:" for number in range(len(HEADS)))]
    rows += [_row(name, [record for record in records if record["harness"] == name]) for name in names]
    versions = Counter(record["version"] or "unknown" for record in records)
    limits = Counter(f"{record['limit']:g} s" for record in records)
    line = f"Results by version: {_counted(versions)}; by limit: {_counted(limits)}."
    return "\n".join([*(f"| {' | '.join(row)} |" for row in rows), "", line])


def _counted(counter: Counter[str]) -> str:
    """Such as `abc1234 (7), def5678 (1)`."""
    return ", ".join(f"{name} ({number})" for name, number in counter.most_common())


def _row(name: str, records: list[Record]) -> tuple[str, ...]:
    solved = [record for record in records if record["hidden"] and record["visible"]]
    interval = wilson(len(solved), len(records))
    done = [record for record in records if record["done"]]
    kinds = [
        f"{sum(each['kind'] == kind for each in solved)}/{sum(each['kind'] == kind for each in records)}"
        for kind in ("bug", "complete", "write")
    ]
    return (
        name,
        str(len(records)),
        f"{len(solved)} ({len(solved) / len(records):.0%})",
        f"{interval.low:.0%} to {interval.high:.0%}",
        *kinds,
        str(len(done)),
        str(sum(not record["hidden"] for record in done)),
        str(sum(not record["visible"] for record in done)),
        *(
            f"{median(record['tokens'][name] for record in records):,.0f}"
            for name in ("prompt", "fresh", "out")
        ),
        f"{median(record['seconds'] for record in records):,.0f}",
        str(sum(record.get("stopped", False) for record in records)),
        _wasted([record["attempts"] for record in records if record.get("attempts")]),
    )


def _wasted(counts: list[dict[str, int]]) -> str:
    """Such as `3 of 40 (unchanged 2, repeated 1)`; a dash where the harness does not tell."""
    total = sum(each["attempts"] for each in counts)
    if not total:
        return "-"
    by_kind = {kind: sum(each.get(kind, 0) for each in counts) for kind in WASTED}
    told = ", ".join(f"{kind} {number}" for kind, number in by_kind.items() if number)
    return f"{sum(by_kind.values())} of {total}{f' ({told})' if told else ''}"
