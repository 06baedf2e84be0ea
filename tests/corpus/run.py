"""Runs acceptance cases: `run.py edits|paths FILE` prints one JSON line a case, then the totals."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.corpus.commands import run_command
from tests.corpus.edits import run_edit
from tests.corpus.paths import run_path

Case = dict[str, Any]
KINDS: dict[str, Callable[[Case], dict[str, Any]]] = {
    "commands": run_command,
    "edits": run_edit,
    "paths": run_path,
}


class Result(NamedTuple):
    case: Case
    got: dict[str, Any]
    right: bool


def results(kind: str, file: Path) -> Iterator[Result]:
    """What came of each case of a file."""
    # Not `splitlines`: a line of JSON may hold characters that end lines elsewhere.
    for line in file.read_text().split("\n"):
        if line.strip():
            case = json.loads(line)
            got = KINDS[kind](case)
            yield Result(case, got, is_right(case, got))


def is_right(case: Case, got: dict[str, Any]) -> bool:
    """Whether the verdict is the expected one, or one that is as good."""
    expect = case["expect"]
    if isinstance(expect, str):
        return bool(got["got"] == expect)
    if got["got"] == expect["result"]:
        return got["got"] == "refuse" or bool(got["as_expected"])
    also = case.get("also_ok", ())
    if got["got"] == "refuse":
        return "refuse" in also or "needs_confirmation" in also
    return any(each.startswith("apply") for each in also)


def say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[0] not in KINDS:
        sys.stderr.write(f"usage: run.py {'|'.join(KINDS)} FILE\n")
        return 2
    wrong: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for result in results(arguments[0], Path(arguments[1])):
        level = result.case.get("level", "must")
        total[level] += 1
        wrong[level] += not result.right
        shown = {key: value for key, value in result.got.items() if key != "as_expected"}
        say({"id": result.case["id"], **shown})
    say({"total": sum(total.values()), "cases": total, "wrong": wrong})
    return 1 if wrong["must"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
