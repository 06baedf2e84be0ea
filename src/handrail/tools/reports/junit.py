"""Read JUnit XML, as pytest, node and many other test runners write it."""

import re
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from handrail.tools.reports.issue import Issue, IssueKind
from handrail.tools.reports.javascript_tools import stack_place
from handrail.tools.reports.report import (
    MAX_DEPTH,
    MAX_ISSUES,
    REPORT_FILE,
    Reading,
    Report,
    Unreadable,
    clean_text,
    number,
    test_reading,
)

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

PYTEST_PLACE = re.compile(r"^(?P<path>[^\s:][^:\n]*):(?P<line>\d+): ", re.MULTILINE)
MAX_ELEMENTS = 1_000_000
MAX_PLACES = 200  # of a trace
CHUNK = 65_536
FAILURES = ("failure", "error")


def junit(report: Report, kind: IssueKind) -> Reading:
    """The failures and errors; raises Unreadable, also for XML that declares entities."""
    from xml.etree.ElementTree import ParseError, TreeBuilder, XMLParser

    data = report.files.get(REPORT_FILE, b"")
    if not data.strip():
        raise Unreadable("it is empty")
    count = elements = depth = 0
    found: list[Issue] = []
    passed: list[str] = []

    class Cases(TreeBuilder):
        """Takes each test case out of the tree as soon as it is complete."""

        def doctype(self, *_: object) -> None:
            raise Unreadable("it declares entities, which no test runner does")

        def start(self, *tag_and_attributes: Any) -> "Element":
            nonlocal elements, depth
            elements, depth = elements + 1, depth + 1
            if elements > MAX_ELEMENTS or depth > MAX_DEPTH:
                raise Unreadable(f"it has more than {MAX_ELEMENTS:,} elements, or is nested too deeply")
            return super().start(*tag_and_attributes)

        def end(self, tag: str) -> "Element":
            nonlocal count, depth
            element, depth = super().end(tag), depth - 1
            if tag == "testcase":
                count += element.find("skipped") is None
                if not any(element.find(what) is not None for what in (*FAILURES, "skipped")):
                    passed.append(test_name(element, report.path(element.get("file") or ""), report))
                elif len(found) <= MAX_ISSUES:
                    found.extend(_failures(report, kind, element))
                element.clear()
            return element

    try:
        parser = XMLParser(target=Cases())  # noqa: S314 - declarations are refused
        for start in range(0, len(data), CHUNK):  # a refusal ends it only between two of them
            parser.feed(data[start : start + CHUNK])
        parser.close()
    except ParseError as error:
        raise Unreadable(f"it is not XML: {error}") from error
    failed = {issue.test for issue in found}  # one that fails at its end is written twice
    return test_reading(iter(found), count, (name for name in passed if name not in failed))


def _failures(report: Report, kind: IssueKind, case: "Element") -> Iterator[Issue]:
    for failure in case:
        if failure.tag not in FAILURES:
            continue
        text = failure.text or ""
        path = report.path(case.get("file") or "")
        place, line = _place(report, text, path, number(case.get("line")))
        message = clean_text(failure.get("message")) or clean_text(text.strip().partition("\n")[0])
        yield Issue(
            kind,
            "critical" if failure.get("message") == "collection failure" else "high",
            _told(message, text) or failure.tag,
            place or path,
            line,
            test=test_name(case, path, report),
        )


def test_name(case: "Element", path: str, report: Report) -> str:
    """pytest's id where the case names its file, `tests/test_a.py::TestA::test_x`; else class and name."""
    name, owner, file = (clean_text(case.get(key)) for key in ("name", "classname", "file"))
    if file.endswith(".py") and path:
        module = file.removesuffix(".py").replace("/", ".")
        classes = owner.removeprefix(module).strip(".").split(".") if owner.startswith(module) else []
        return "::".join([file, *filter(None, classes), name])
    if not owner and not file.endswith(".py") and name.count("."):
        return name
    return f"{owner}.{name}" if owner and owner != "test" else name


def _place(report: Report, text: str, path: str, line: int) -> tuple[str, int]:
    """The line that failed: of the test's own file if the trace has one, else the last of the tree."""
    places = [
        (found_path, number(found["line"]))
        for found in deque(PYTEST_PLACE.finditer(text), maxlen=MAX_PLACES)
        if (found_path := report.path(found["path"]))
    ]
    if places:
        return next((place for place in reversed(places) if place[0] == path), places[-1])
    stack = stack_place(report, text, path)
    # pytest counts lines from 0 in this attribute.
    return (stack[0], stack[1]) if stack[1] else (path, line + 1 if path.endswith(".py") else line)


def _told(message: str, text: str) -> str:
    """The message; for a file that cannot be loaded, the error that its text ends with."""
    if message != "collection failure":
        return message.partition("\n")[0]
    told = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    return f"cannot be loaded: {clean_text(told[-1] if told else text.strip().rpartition(chr(10))[2])}"
