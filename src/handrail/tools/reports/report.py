"""What a tool wrote about a tree, and what readers of all formats share: paths, texts and limits."""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

from handrail.protocol.values import is_deeper
from handrail.tools.reports.issue import Issue, IssueKind
from handrail.tools.tool import strip_control_codes

MAX_ISSUES = 5_000  # of one tool; more are counted and not kept
MAX_MESSAGE = 2_000
MAX_DEPTH = 200
MAX_TRIES = 50  # lines of a text that could be the start of its JSON
MAX_VALUES = 2_000_000  # in one JSON document; each takes up to 200 bytes of memory
MAX_NUMBER = 2**31 - 1
MAX_PATH = 4_096
FILE_URL = "file://"
REPORT_FILE = "report"
NO_FILES: Mapping[str, bytes] = MappingProxyType({})


class Unreadable(ValueError):
    """A report is not what its format says; the message says why."""


class Report(NamedTuple):
    """The output of a tool that ran in a folder of a tree."""

    output: bytes
    """What it printed, errors included."""
    root: str
    """The tree, by the path at which the tool saw it."""
    folder: str = ""
    """The part of the tree in which it ran, relative to the root."""
    files: Mapping[str, bytes] = NO_FILES
    """What it wrote into the folder for reports, by name."""
    code: int | None = 0
    disk: str = ""
    """Where the tree is now, if that is another place."""

    @property
    def text(self) -> str:
        return self.output.decode(errors="replace")

    @property
    def data(self) -> bytes:
        """The report itself: the file of that name, else what was printed."""
        return self.files.get(REPORT_FILE) or self.output

    def path(self, named: str) -> str:
        """A path as the tool wrote it, relative to the tree; empty for a file outside of it."""
        named = named.removeprefix(FILE_URL)
        if len(named) > MAX_PATH:
            return ""
        whole = os.path.normpath(os.path.join(self.root, self.folder, named))
        inside = whole.startswith(self.root.rstrip("/") + "/")
        return os.path.relpath(whole, self.root) if named and inside else ""

    def has_file(self, path: str) -> bool:
        return bool(path) and os.path.isfile(os.path.join(self.disk or self.root, path))


class Reading(NamedTuple):
    """The issues in a report."""

    issues: tuple[Issue, ...] = ()
    detail: str = ""
    """What else is worth a word, such as `12 tests`."""
    tests: int | None = None
    """How many tests ran; None: the tool does not say."""
    coverage: float | None = None
    """Percent of the code that tests run; None: nobody measured it."""
    passed: tuple[str, ...] = ()
    """The tests that passed, named as in issues; empty where the report does not name them."""


Reader = Callable[[Report, IssueKind], Reading]
"""Reads a report; raises Unreadable."""


def reading(issues: Iterator[Issue], detail: str = "") -> Reading:
    """The first issues, as many as are kept."""
    kept: list[Issue] = []
    for issue in issues:
        if len(kept) == MAX_ISSUES:
            more = f"only the first {MAX_ISSUES:,} issues are listed"
            return Reading(tuple(kept), f"{detail}; {more}" if detail else more)
        kept.append(issue)
    return Reading(tuple(kept), detail)


def test_reading(issues: Iterator[Issue], ran: int, passed: Iterable[str]) -> Reading:
    """What tests say: the failures, how many ran, and the names of those that passed."""
    found = reading(issues, f"{ran:,} test{'s' * (ran != 1)}")
    return found._replace(tests=ran, passed=tuple(passed))


def clean_text(value: Any) -> str:
    """A tool's text without control codes, as long as a person reads it."""
    text = strip_control_codes(str(value or "")).strip()
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 1]}…"


def number(value: Any) -> int:
    """A line or column; 0 where there is none."""
    try:
        return min(max(0, int(value)), MAX_NUMBER)
    except (TypeError, ValueError, OverflowError):
        return 0


def load_json(data: bytes) -> Any:
    """One JSON document, also behind some lines of other text; raises Unreadable."""
    text = data.decode(errors="replace")
    if has_too_many_values(data):
        raise Unreadable(f"it has more than {MAX_VALUES:,} values")
    unread = 3 * len(text)  # characters that are read, all tries together
    # A warning printed before it may have brackets too, but not as the first character of a line.
    for start in islice(re.finditer(r"^[ \t]*[\[{]", text, re.MULTILINE), MAX_TRIES):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, start.end() - 1)
        except json.JSONDecodeError as error:
            unread -= error.pos - start.start()
            if unread < 0:
                break
            continue
        except (ValueError, RecursionError):
            continue
        if is_deeper(value, MAX_DEPTH):
            raise Unreadable("it is nested too deeply")
        return value
    raise Unreadable("it has no JSON")


def has_too_many_values(data: bytes) -> bool:
    """Whether a JSON text could take more memory than a report may."""
    return sum(data.count(mark) for mark in (b"[", b"{", b",")) > MAX_VALUES


def json_lines(report: Report) -> Iterator[dict[str, Any]]:
    """The JSON objects in an output with one on each line; other lines are left out."""
    for line in report.data.splitlines():
        if line.startswith(b"{") and not has_too_many_values(line):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue  # the last line of an output that was cut
            if isinstance(value, dict):
                yield value


def expect(value: Any, kind: type, what: str) -> Any:
    """The value, if it is of this type; raises Unreadable."""
    if not isinstance(value, kind):
        raise Unreadable(f"{what} is missing")
    return value


def dicts(value: Any) -> Iterator[dict[str, Any]]:
    """The objects in a list; nothing for anything else."""
    for each in value if isinstance(value, list) else ():
        if isinstance(each, dict):
            yield each


def inner(value: Any, *names: str) -> Any:
    """A value in nested objects; None where one is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
