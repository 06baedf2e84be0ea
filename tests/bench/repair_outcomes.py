"""`python -m tests.bench.repair_outcomes FOLDER`: outcomes of the tests in each folder, in one process."""

import contextlib
import io
import json
import sys
from collections import Counter
from pathlib import Path

import pytest


class Outcomes:
    """Passed and failed tests by the folder that they are in."""

    def __init__(self) -> None:
        self.found: dict[str, Counter[str]] = {"tests": Counter(), "hidden": Counter()}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            self.found[report.nodeid.partition("/")[0]][report.outcome] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self.found[report.nodeid.partition("/")[0]]["failed"] += 1


def outcomes(folder: Path) -> dict[str, Counter[str]]:
    """Of the tests in this folder, with the modules of this folder."""
    seen = Outcomes()
    known = set(sys.modules)
    sys.path.insert(0, str(folder))
    options = ["--import-mode=importlib", "-q", "-p", "no:cacheprovider", f"--rootdir={folder}"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.chdir(folder):
        pytest.main([*options, "tests", "hidden"], plugins=[seen])
    sys.path.remove(str(folder))
    for name in set(sys.modules) - known:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    return seen.found


if __name__ == "__main__":
    folders = sorted(path for path in Path(sys.argv[1]).iterdir() if path.is_dir())
    sys.stdout.write(json.dumps({folder.name: outcomes(folder) for folder in folders}))
