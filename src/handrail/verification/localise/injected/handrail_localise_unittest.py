"""`python -m handrail_localise_unittest`: like `python -m unittest`, and records the lines of each test."""

from __future__ import annotations

import re
import sys
import unittest
from typing import Any

from handrail_localise_lines import Record  # type: ignore[import-not-found]

PLACE = re.compile(r'^ *File "(.+?)", line (\d+)', re.MULTILINE)


def main() -> None:
    record = Record()
    run_test = unittest.TestCase.run

    def run(self: unittest.TestCase, result: Any = None) -> Any:
        result = result or self.defaultTestResult()
        before = len(result.failures) + len(result.errors)
        record.tracer.start()
        try:
            return run_test(self, result)
        finally:
            lines = record.tracer.stop()
            found = [*result.failures, *result.errors]
            failed = len(found) > before
            told = next((text for test, text in found[::-1] if failed and test is self), "")
            places = [(record.tracer.name(path), int(line)) for path, line in PLACE.findall(told)]
            record.add(self.id(), lines, [place for place in places if place[0]][::-1], failed)
            if record.is_full():
                result.stop()

    unittest.TestCase.run = run  # type: ignore[method-assign]
    try:
        unittest.main(module=None, argv=["python -m unittest", *sys.argv[1:]])
    finally:
        record.write()


if __name__ == "__main__":
    main()
