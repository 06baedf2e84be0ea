"""Read reports of Python's tools: ruff, mypy, pyright, unittest, and coverage.py's summary."""

import re
from collections.abc import Iterator

from handrail.tools.reports.issue import Issue, IssueKind, Severity
from handrail.tools.reports.junit import junit
from handrail.tools.reports.report import (
    Reading,
    Report,
    Unreadable,
    clean_text,
    dicts,
    expect,
    inner,
    json_lines,
    load_json,
    number,
    reading,
    test_reading,
)

RUFF_SYNTAX = "invalid-syntax"
RUFF_GRAVE = ("F821", "F822", "F823", "E9", "F7")
"""Undefined names and code that cannot run; everything else is style or a doubt."""
MYPY_TEXT = re.compile(
    r"^(?P<path>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)? error: (?P<message>.*)$", re.MULTILINE
)
MYPY_CODE = re.compile(r"\s+\[(?P<code>[\w-]+)\]$")
PYRIGHT_SEVERITIES: dict[str, Severity] = {"error": "high", "warning": "low"}


def ruff(report: Report, kind: IssueKind) -> Reading:
    """`ruff check --output-format json`."""
    items = expect(load_json(report.data), list, "the list of findings")

    def issues() -> Iterator[Issue]:
        for item in dicts(items):
            code = clean_text(item.get("code"))
            syntax = not code or code == RUFF_SYNTAX
            severity: Severity = "critical" if syntax else "high" if code.startswith(RUFF_GRAVE) else "medium"
            yield Issue(
                kind,
                severity,
                clean_text(item.get("message")),
                report.path(str(item.get("filename"))),
                number(inner(item, "location", "row")),
                number(inner(item, "location", "column")),
                "" if syntax else code,
                clean_text(inner(item, "fix", "message")),
            )

    return reading(issues())


def mypy(report: Report, kind: IssueKind) -> Reading:
    """`mypy --output json`; also its usual text, which syntax errors come in from some versions."""

    def issues() -> Iterator[Issue]:
        for item in json_lines(report):
            if item.get("severity", "error") == "error":
                code = clean_text(item.get("code"))
                yield Issue(
                    kind,
                    "critical" if code == "syntax" else "high",
                    clean_text(item.get("message")),
                    report.path(str(item.get("file"))),
                    number(item.get("line")),
                    number(item.get("column")) + 1,
                    code,
                    clean_text(item.get("hint")),
                )
        for found in MYPY_TEXT.finditer(report.text):
            code_at = MYPY_CODE.search(found["message"])
            code = code_at["code"] if code_at else ""
            yield Issue(
                kind,
                "critical" if code == "syntax" else "high",
                clean_text(found["message"][: code_at.start()] if code_at else found["message"]),
                report.path(found["path"]),
                number(found["line"]),
                number(found["column"]),
                code,
            )

    return reading(issues())


def pyright(report: Report, kind: IssueKind) -> Reading:
    """`pyright --outputjson`."""
    items = expect(inner(load_json(report.data), "generalDiagnostics"), list, "generalDiagnostics")

    def issues() -> Iterator[Issue]:
        for item in dicts(items):
            if severity := PYRIGHT_SEVERITIES.get(str(item.get("severity"))):
                start = inner(item, "range", "start")
                yield Issue(
                    kind,
                    severity,
                    clean_text(item.get("message")),
                    report.path(str(item.get("file") or item.get("uri"))),
                    number(inner(start, "line")) + 1 if start else 0,
                    number(inner(start, "character")) + 1 if start else 0,
                    clean_text(item.get("rule")),
                )

    return reading(issues())


UNITTEST_BLOCK = re.compile(r"^={70}\n", re.MULTILINE)
UNITTEST_HEAD = re.compile(r"(?P<what>FAIL|ERROR): (?P<test>[^\n]*)\n")
UNITTEST_RULE = re.compile(r"^-{70}\n", re.MULTILINE)
UNITTEST_RAN = re.compile(r"^Ran (?P<count>\d+) tests? in ", re.MULTILINE)
TRACEBACK_LINE = re.compile(r'^  File "(?P<path>[^"\n]+)", line (?P<line>\d+)', re.MULTILINE)


def unittest(report: Report, kind: IssueKind) -> Reading:
    """The text of `python -m unittest`."""
    text = report.text
    *_, ran = (None, *UNITTEST_RAN.finditer(text))  # tests may print such a line too
    if ran is None:
        raise Unreadable("the number of tests is missing")

    def issues() -> Iterator[Issue]:
        for block in UNITTEST_BLOCK.split(text)[1:]:
            found = UNITTEST_HEAD.match(block)
            parts = UNITTEST_RULE.split(block, maxsplit=2)
            if found is None or len(parts) == 1:
                continue
            # The name is followed by its class: `test_add (tests.test_sums.TestSums.test_add)`.
            name, _, rest = found["test"].partition(" (")
            where = rest.partition(")")[0]
            test = where if where.endswith(f".{name}") else f"{where}.{name}" if where else name
            path, line = last_place(report, parts[1])
            last = parts[1].rstrip().rpartition("\n")[2]
            yield Issue(kind, "high", clean_text(last or found["what"]), path, line, test=clean_text(test))

    count = number(ran["count"])
    return test_reading(issues(), count, ())


def last_place(report: Report, traceback: str) -> tuple[str, int]:
    """The last line of a traceback that is in the tree."""
    places = [
        (report.path(each["path"]), number(each["line"])) for each in TRACEBACK_LINE.finditer(traceback)
    ]
    return next((place for place in reversed(places) if place[0]), ("", 0))


COVERAGE_FILE = "coverage"
COVERAGE_MISSED = re.compile(
    r"^(?:FAIL|ERROR:?).*[Rr]equired test coverage of .*$|^Coverage failure: .*$", re.MULTILINE
)


def pytest(report: Report, kind: IssueKind) -> Reading:
    """The JUnit file that pytest writes, and the summary of pytest-cov where the project uses that."""
    found = junit(report, kind)
    missed = COVERAGE_MISSED.search(report.text)
    issues = found.issues
    if missed and report.code:
        issues = (*issues, Issue("coverage", "medium", clean_text(missed[0]), rule="fail_under"))
    data = report.files.get(COVERAGE_FILE)
    return found._replace(issues=issues, coverage=coverage_percent(data) if data else None)


def coverage_percent(data: bytes) -> float:
    """How much of the code tests run, by the summary that coverage.py writes as JSON; raises Unreadable."""
    percent = inner(load_json(data), "totals", "percent_covered")
    if not isinstance(percent, int | float):
        raise Unreadable("totals.percent_covered is missing")
    return float(percent)
