"""Run as a script: like `python -m unittest`, and witnesses the run.

As a script, so that no file of the project can take the place of the standard library's unittest.
"""

from __future__ import annotations

import io
import os
import sys
import unittest
from typing import Any

from handrail_witness import Witness, ways_to_fail  # type: ignore[import-not-found]


class SeenResult(unittest.TextTestResult):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.passed: list[str] = []

    def addSuccess(self, test: Any) -> None:  # noqa: N802 - unittest's name
        super().addSuccess(test)
        self.passed.append(test.id())


def main() -> None:
    witness = Witness()
    sys.path[0] = os.getcwd()  # as `python -m` has it
    results: list[SeenResult] = []

    class SeenRunner(unittest.TextTestRunner):
        resultclass = SeenResult

        def run(self, test: Any) -> Any:
            results.append(super().run(test))  # type: ignore[arg-type]
            return results[-1]

    program = unittest.main(
        module=None, argv=["python -m unittest", *sys.argv[1:]], testRunner=SeenRunner, exit=False
    )
    failed = [test.id() for each in results for test, _ in (*each.failures, *each.errors)]
    passed = [name for each in results for name in each.passed if name not in set(failed)]
    witness.write(passed, failed, list(undetected()), witness.replaced())
    nothing_ran = 5 if sys.version_info >= (3, 12) else 0
    ran = any(each.testsRun or each.skipped for each in results)
    sys.exit(0 if ran and program.result.wasSuccessful() else 1 if ran else nothing_ran)


def undetected() -> Any:
    """The ways to fail that unittest does not report as failures."""
    for name, way in ways_to_fail(unittest.TestCase()).items():
        runner = unittest.TextTestRunner(stream=io.StringIO(), resultclass=SeenResult)
        if runner.run(unittest.FunctionTestCase(way)).wasSuccessful():
            yield name


if __name__ == "__main__":
    main()
