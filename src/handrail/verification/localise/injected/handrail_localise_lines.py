"""Records which lines of the project each test runs. Stands alone: it runs in the project's own Python.

Python 3.7 and later: with `sys.monitoring` where there is one, else with `sys.settrace`. One JSON file for
each process:

    {"tests": [{"name": ..., "failed": ..., "lines": [["a.py", [3, 4]], ...], "stack": [["a.py", 3], ...]}]}

The lines are in the order in which the test first ran them; a negative one is a lambda or a comprehension in
that line. The stack begins where the error was raised.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Line = tuple[str, int]

ROOT = os.environ["HANDRAIL_LOCALISE_ROOT"].rstrip("/") + "/"
FOLDER = os.environ["HANDRAIL_LOCALISE_FOLDER"]
SECONDS = float(os.environ.get("HANDRAIL_LOCALISE_SECONDS", "60"))
SKIPPED = ("/site-packages/", "/node_modules/", "/.venv/", "/venv/", "/.tox/", "/.nox/", "/dist-packages/")
WITHIN_A_LINE = ("<lambda>", "<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")
MOST_LINES = 20000  # of one test
MOST_TESTS, MOST_OF_ALL = 3000, 2000000  # tests, and lines of all of them


class Tracer:
    """The lines that run between `start` and `stop`, in order."""

    def __init__(self) -> None:
        self.order: list[Line] = []
        self._seen: set[Line] = set()
        self._names: dict[str, str] = {}
        self._before: Any = None

    def start(self) -> None:
        self.order, self._seen = [], set()
        self._begin()

    def stop(self) -> list[Line]:
        self._end()
        return self.order

    def name(self, filename: str) -> str:
        """The path of a file of the project, relative; empty for any other."""
        found = self._names.get(filename)
        if found is None:
            full = os.path.abspath(filename)
            own = full.startswith(ROOT) and not any(each in full for each in SKIPPED)
            own = own and not filename.startswith("<")  # code that is in no file
            found = self._names[filename] = full[len(ROOT) :] if own else ""
        return found

    def add(self, path: str, line: int) -> None:
        place = (path, line)
        if place not in self._seen and len(self.order) < MOST_LINES:
            self._seen.add(place)
            self.order.append(place)

    def _begin(self) -> None:
        self._before = sys.gettrace()
        threading.settrace(self._called)
        sys.settrace(self._called)

    def _end(self) -> None:
        sys.settrace(self._before)
        threading.settrace(self._before)

    def _called(self, frame: Any, event: str, argument: Any) -> Any:
        path = self.name(frame.f_code.co_filename)
        if not path:
            return None
        sign = sign_of(frame.f_code)
        self.add(path, sign * frame.f_lineno)

        def line(frame: Any, event: str, argument: Any) -> Any:
            if event == "line":
                self.add(path, sign * frame.f_lineno)
            return line

        return line


class Monitor(Tracer):
    """The same by `sys.monitoring`, which costs next to nothing for other files and for repeated lines."""

    TOOL = 4

    def __init__(self) -> None:
        super().__init__()
        self._monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        events = self._monitoring.events
        self._monitoring.use_tool_id(self.TOOL, "handrail")
        self._monitoring.register_callback(self.TOOL, events.PY_START, self._started)
        self._monitoring.register_callback(self.TOOL, events.LINE, self._ran)

    def _begin(self) -> None:
        self._monitoring.restart_events()
        self._monitoring.set_events(self.TOOL, self._monitoring.events.PY_START)

    def _end(self) -> None:
        self._monitoring.set_events(self.TOOL, 0)

    def _started(self, code: Any, offset: int) -> Any:
        path = self.name(code.co_filename)
        if path:
            self.add(path, sign_of(code) * code.co_firstlineno)
            self._monitoring.set_local_events(self.TOOL, code, self._monitoring.events.LINE)
        return self._monitoring.DISABLE

    def _ran(self, code: Any, line: int) -> Any:
        self.add(self.name(code.co_filename), sign_of(code) * line)
        return self._monitoring.DISABLE


def sign_of(code: Any) -> int:
    return -1 if code.co_name in WITHIN_A_LINE else 1


class Record:
    """The tests of this process, until there are enough."""

    def __init__(self) -> None:
        self.tracer = Monitor() if hasattr(sys, "monitoring") else Tracer()
        self._until = time.monotonic() + SECONDS
        self._tests: list[dict[str, Any]] = []
        self._lines = 0

    def add(self, name: str, lines: list[Line], stack: list[Line], failed: bool) -> None:
        test = {"name": name, "failed": failed, "lines": grouped(lines), "stack": stack[:200]}
        self._tests.append(test)
        self._lines += len(lines)

    def is_full(self) -> bool:
        full = len(self._tests) >= MOST_TESTS or self._lines >= MOST_OF_ALL
        return full or time.monotonic() > self._until

    def write(self) -> None:
        target = os.path.join(FOLDER, f"lines-{os.getpid()}.json")
        with open(target, "w", encoding="utf-8", errors="replace") as file:
            json.dump({"tests": self._tests}, file)


def grouped(lines: list[Line]) -> list[tuple[str, list[int]]]:
    """Runs of lines of the same file."""
    found: list[tuple[str, list[int]]] = []
    for path, line in lines:
        if not found or found[-1][0] != path:
            found.append((path, []))
        found[-1][1].append(line)
    return found
