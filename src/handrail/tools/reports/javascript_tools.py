"""Read reports of JavaScript's tools: eslint, tsc, and vitest or jest."""

import re
from collections.abc import Iterator
from itertools import islice

from handrail.tools.reports.issue import Issue, IssueKind
from handrail.tools.reports.report import (
    Reading,
    Report,
    clean_text,
    dicts,
    expect,
    inner,
    load_json,
    number,
    reading,
    test_reading,
)

TSC_LINE = re.compile(
    r"^(?P<path>[^\s(][^(\n]*)\((?P<line>\d+),(?P<column>\d+)\): error (?P<code>TS\d+): (?P<message>.*)$",
    re.MULTILINE,
)
TSC_WITHOUT_PLACE = re.compile(r"^error (?P<code>TS\d+): (?P<message>.*)$", re.MULTILINE)
STACK_PLACE = re.compile(
    r"(?<![^\s(])\(?(?:file://)?(?P<path>/[^\s():]+|[\w.][^\s():]*):(?P<line>\d+):(?P<column>\d+)\)?"
)
SUITE_FAILED = "Test suite failed to run"
VALUES = re.compile(r"(?:Expected|Received)\b[^:]*:")
MAX_PLACES = 200  # of a stack trace
ESLINT_ERROR = 2


def eslint(report: Report, kind: IssueKind) -> Reading:
    """`eslint --format json`."""
    items = expect(load_json(report.data), list, "the list of files")

    def issues() -> Iterator[Issue]:
        for file in dicts(items):
            path = report.path(str(file.get("filePath")))
            for item in dicts(file.get("messages")):
                fatal, grave = bool(item.get("fatal")), item.get("severity") == ESLINT_ERROR
                fix = "eslint --fix corrects it" if item.get("fix") else ""
                suggestions = [clean_text(each.get("desc")) for each in dicts(item.get("suggestions"))]
                yield Issue(
                    kind,
                    "critical" if fatal else "medium" if grave else "low",
                    clean_text(item.get("message")),
                    path,
                    number(item.get("line")),
                    number(item.get("column")),
                    clean_text(item.get("ruleId")),
                    fix or "; ".join(suggestions),
                )

    return reading(issues())


def tsc(report: Report, kind: IssueKind) -> Reading:
    """The text of `tsc --pretty false`."""

    def issues() -> Iterator[Issue]:
        text = report.text
        for found in TSC_LINE.finditer(text):
            yield Issue(
                kind,
                "critical" if found["code"].startswith("TS1") and len(found["code"]) == 6 else "high",
                clean_text(found["message"]),
                report.path(found["path"]),
                number(found["line"]),
                number(found["column"]),
                found["code"],
            )
        for found in TSC_WITHOUT_PLACE.finditer(text):
            yield Issue(kind, "high", clean_text(found["message"]), rule=found["code"])

    return reading(issues())


def jest(report: Report, kind: IssueKind) -> Reading:
    """`jest --json` and `vitest --reporter=json`, which write the same."""
    document = load_json(report.data)
    files = expect(inner(document, "testResults"), list, "testResults")

    def issues() -> Iterator[Issue]:
        for file in dicts(files):
            path = report.path(str(file.get("name")))
            tests = list(dicts(file.get("assertionResults")))
            for test in tests:
                if test.get("status") == "failed":
                    yield _failed_test(report, kind, path, test)
            if file.get("status") == "failed" and not any(test.get("status") == "failed" for test in tests):
                # The file itself could not be loaded.
                text = clean_text(file.get("message")) or "the file cannot be loaded"
                yield Issue(kind, "critical", _told(text), path, test=path)

    tests = [test for file in dicts(files) for test in dicts(file.get("assertionResults"))]
    passed = [_test_name(test) for test in tests if test.get("status") == "passed"]
    failed = sum(test.get("status") == "failed" for test in tests)
    return test_reading(issues(), len(passed) + failed, passed)


def _test_name(test: dict[str, object]) -> str:
    return clean_text(test.get("fullName") or test.get("title"))


def _failed_test(report: Report, kind: IssueKind, path: str, test: dict[str, object]) -> Issue:
    messages = test.get("failureMessages")
    text = clean_text("\n".join(map(str, messages))) if isinstance(messages, list) else ""
    place, line, column = stack_place(report, text, path)
    if not line and isinstance(location := test.get("location"), dict):
        line, column = number(location.get("line")), number(location.get("column"))
    return Issue(kind, "high", _told(text) or "failed", place or path, line, column, test=_test_name(test))


def stack_place(report: Report, text: str, path: str) -> tuple[str, int, int]:
    """Where a stack trace is in this file, else where it first is in the tree's own code."""
    places = [
        (report.path(found["path"]), number(found["line"]), number(found["column"]))
        for found in islice(STACK_PLACE.finditer(text), MAX_PLACES)
    ]
    ours = [place for place in places if place[0] and "node_modules/" not in place[0]]
    return next((place for place in ours if place[0] == path), ours[0] if ours else ("", 0, 0))


def _told(text: str) -> str:
    """The first line of an error, and the values that jest writes below it."""
    lines = [each.strip() for each in text.strip().splitlines() if each.strip()]
    if lines and lines[0].endswith(SUITE_FAILED):
        del lines[0]
    values = [each for each in lines[1:] if VALUES.match(each)][:2]
    return "; ".join([*lines[:1], *values])
