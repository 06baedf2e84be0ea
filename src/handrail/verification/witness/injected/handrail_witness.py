"""What a witness of a test run saw, for Handrail: imported before any code of the project.

Its key is a file that is gone before the project's code runs, so that code which writes a report of its own
and ends the process cannot write this one.
"""

from __future__ import annotations

import json
import os
from typing import Any, Callable

KEY, REPORT = "witness-key", "witness"


class Witness:
    def __init__(self) -> None:
        self._folder = os.environ.pop("HANDRAIL_WITNESS")
        path = os.path.join(self._folder, KEY)
        with open(path) as file:
            self._key = file.read()
        os.unlink(path)
        # Kept from before the project's code, which could replace them.
        self._open, self._dumps = open, json.dumps

    def write(self, passed: list[str], failed: list[str], undetected: list[str]) -> None:
        """`undetected` are ways to fail that were not reported as failures."""
        seen = {"key": self._key, "passed": passed, "failed": failed, "undetected": undetected}
        with self._open(os.path.join(self._folder, REPORT), "w") as file:
            file.write(self._dumps(seen))


def ways_to_fail(case: Any) -> dict[str, Callable[[], None]]:
    """Functions that must fail, as tests do; `case` is an instance of unittest.TestCase."""

    def wrong_assertion() -> None:
        one, two = 1, 2
        assert one == two

    def raised() -> None:
        raise AssertionError("as it must")

    def raised_other() -> None:
        raise ValueError("as it must")

    def not_raised() -> None:
        with case.assertRaises(ValueError):
            pass

    return {
        "assert": wrong_assertion,
        "AssertionError": raised,
        "an exception": raised_other,
        "assertEqual": lambda: case.assertEqual(1, 2),
        "assertTrue": lambda: case.assertTrue(False),
        "assertIn": lambda: case.assertIn(1, ()),
        "assertRaises": not_raised,
    }
