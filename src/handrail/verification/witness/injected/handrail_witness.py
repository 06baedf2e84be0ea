"""What a witness of a test run saw, for Handrail: imported before any code of the project.

Its key is a file that is gone before the project's code runs, so that code which writes a report of its own
and ends the process cannot write this one.
"""
# ruff: noqa: S101, PT009, PT027, FBT003 - these are ways to fail, as tests have them

from __future__ import annotations

import builtins
import json
import os
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

KEY, REPORT = "witness-key", "witness"
RUNNERS = ("unittest", "_pytest", "pytest", "pluggy")


class Witness:
    def __init__(self) -> None:
        # A process that the first one starts to share the tests has neither folder nor key.
        self._folder = os.environ.pop("HANDRAIL_WITNESS", "")
        self._key = take_key(os.path.join(self._folder, KEY)) if self._folder else ""
        # Kept from before the project's code, which could replace them.
        self._open, self._dumps = open, json.dumps
        self._functions = functions()

    def replaced(self) -> list[str]:
        now = functions()
        return [name for name, each in self._functions.items() if now.get(name) is not each]

    def write(self, passed: list[str], failed: list[str], undetected: list[str], replaced: list[str]) -> None:
        """`undetected` are ways to fail that were not reported as failures."""
        seen = {"passed": passed, "failed": failed, "undetected": undetected, "replaced": replaced}
        with self._open(os.path.join(self._folder, REPORT), "w") as file:
            file.write(self._dumps({**seen, "key": self._key}))


def take_key(path: str) -> str:
    with open(path) as file:
        key = file.read()
    os.unlink(path)
    return key


def functions() -> dict[str, Any]:
    """What runs tests, by name: functions, and the code of methods, of the test runners that are loaded."""
    found = {f"builtins.{name}": each for name, each in vars(builtins).items() if name != "_"}
    for module in [each for name, each in sys.modules.items() if name.split(".")[0] in RUNNERS]:
        for name, each in list(vars(module).items()):
            if isinstance(each, types.FunctionType):
                found[f"{module.__name__}.{name}"] = each.__code__
            elif isinstance(each, type) and each.__module__ == module.__name__:
                for member, value in list(vars(each).items()):
                    function = getattr(value, "__func__", value)
                    if isinstance(function, types.FunctionType):
                        found[f"{module.__name__}.{name}.{member}"] = function.__code__
    return found


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
