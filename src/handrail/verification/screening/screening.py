"""Try many texts of one file in one run of pytest: which let a failing test pass, and which pass all tests.

The result is a hint and no evidence: code of the project runs in the same process. What is promising is
tested alone. Where the tests run with anything but pytest, nothing is known.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from handrail.tools.reports.issue import Issue
from handrail.verification.check import REPORT_FOLDER, Check

INJECTED = Path(__file__).parent / "injected"
PLUGIN, CANDIDATES, RESULTS = "handrail_screening", "candidates", "screened"
TOOL = "pytest"
QUICK = ("--assert=plain", "--tb=no", "-p", "no:cacheprovider", "-p", PLUGIN)
MOST_TESTS = 30
RESULT = re.compile(r"([0-9]{1,6}) ([0-9]{1,6}) ([0-9]{1,6})")


class Screened(NamedTuple):
    """How many tests ran with a text, and how many of them passed."""

    ran: int
    passed: int

    @property
    def all_passed(self) -> bool:
        return 0 < self.ran == self.passed


class Texts(NamedTuple):
    """Versions of a file."""

    path: str
    texts: Sequence[str]
    seconds_each: float
    seconds: float
    """For all: no further one is begun after that."""


def screening(check: Check, failing: Sequence[Issue], path: str) -> Check | None:
    """The check as it screens, with these tests or, without any, all; None where it cannot.

    `path` is the PYTHONPATH so far.
    """
    words = check.words
    if failing:
        alone = [check.alone(issue) for issue in failing[:MOST_TESTS]] if check.alone else []
        words = (*alone[0], *(each[-1] for each in alone[1:])) if alone and all(alone) else ()
    if check.tool != TOOL or not words:
        return None
    variables = {
        "HANDRAIL_SCREENING_FOLDER": REPORT_FOLDER,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(INJECTED), path))),
    }
    return check._replace(words=(*words, *QUICK), environ={**check.environ, **variables})


def write_texts(texts: Texts, root: Path) -> Mapping[str, bytes]:
    """The file that the plugin reads; `root` is where the tests see the tree."""
    told = {**texts._asdict(), "path": str(root / texts.path)}
    return {CANDIDATES: json.dumps(told).encode()}


def read_screened(files: Mapping[str, bytes], texts: int) -> dict[int, Screened]:
    """Results by the number of the text, of so many; one that did not end has none."""
    found = {}
    for line in files.get(RESULTS, b"").decode("ascii", errors="replace").splitlines():
        if (words := RESULT.fullmatch(line)) and int(words[1]) < texts:
            found[int(words[1])] = Screened(int(words[2]), int(words[3]))
    return found
