"""Read reports of Go and Rust: `go build`, `go vet`, `go test -json`, and cargo's JSON messages."""

import re
from collections import defaultdict
from collections.abc import Iterator

from handrail.tools.reports.issue import Issue, IssueKind, Severity
from handrail.tools.reports.report import (
    Reading,
    Report,
    Unreadable,
    clean_text,
    dicts,
    inner,
    json_lines,
    number,
    reading,
    test_reading,
)

GO_PLACE = re.compile(
    r"^(?:vet: )?(?P<path>[^\s:][^:\n]*\.go):(?P<line>\d+)(?::(?P<column>\d+))?:? (?P<message>.*)$",
    re.MULTILINE,
)
GO_TEST_PLACE = re.compile(r"^\s+(?P<path>[\w./-]+\.go):(?P<line>\d+): (?P<message>.*)$", re.MULTILINE)
MISSING_MODULES = re.compile(rb"module lookup disabled by GOPROXY=off|missing go\.sum entry")
MAX_KEPT = 20_000  # characters of the output of one test
RUST_SEVERITIES: dict[str, Severity] = {"error": "high", "error: internal compiler error": "critical"}
RUST_TEST = re.compile(
    r"^test (?P<name>\S+)(?: - should panic)? \.\.\. (?P<result>ok|FAILED|ignored)", re.MULTILINE
)
RUST_PANIC = re.compile(
    r"^thread '(?P<name>[^'\n]+)'(?: \(\d+\))? panicked at (?P<path>[^:\n]+):(?P<line>\d+):(?P<column>\d+):\n"
    r"(?P<message>[^\n]*)",
    re.MULTILINE,
)


def go_text(report: Report, kind: IssueKind) -> Reading:
    """The text of `go build` and `go vet`."""
    _expect_modules(report)

    def issues() -> Iterator[Issue]:
        for found in GO_PLACE.finditer(report.text):
            yield Issue(
                kind,
                "high" if kind == "build" else "medium",
                clean_text(found["message"]),
                report.path(found["path"]),
                number(found["line"]),
                number(found["column"]),
            )

    return reading(issues())


def go_test(report: Report, kind: IssueKind) -> Reading:
    """`go test -json`: one event a line."""
    _expect_modules(report)
    output: dict[tuple[str, str], str] = defaultdict(str)
    failed: dict[tuple[str, str], None] = {}
    built: list[str] = []
    passed: list[str] = []
    count = 0
    for event in json_lines(report):
        action, package, test = (clean_text(event.get(name)) for name in ("Action", "Package", "Test"))
        if action in ("output", "build-output"):
            if action == "build-output":
                built.append(str(event.get("Output") or ""))
            elif len(output[package, test]) < MAX_KEPT:
                output[package, test] += str(event.get("Output") or "")
        elif action == "fail":
            failed[package, test] = None
        elif action == "pass" and test:
            passed.append(f"{package}.{test}")
        count += action in ("pass", "fail") and bool(test)
    # A test fails with its subtests, and a package with its tests: only the innermost is an issue.
    outer = {each for package, test in failed for each in _around(package, test)}
    inner_ones = [each for each in failed if each not in outer]

    def issues() -> Iterator[Issue]:
        whole = report._replace(output="".join(built).encode() or report.output)
        yield from go_text(whole, "build").issues
        for package, test in inner_ones:
            text = output[package, test]
            if not test:
                if not built and "[build failed]" not in text:
                    yield Issue(kind, "high", clean_text(text) or "failed", test=package)
                continue
            place = GO_TEST_PLACE.search(text)
            yield Issue(
                kind,
                "high",
                clean_text(place["message"]) if place else clean_text(text) or "failed",
                go_path(report, package, place["path"]) if place else "",
                number(place["line"]) if place else 0,
                test=f"{package}.{test}",
            )

    return test_reading(issues(), count, passed)


def _expect_modules(report: Report) -> None:
    """Raise Unreadable where modules are missing: nothing was checked, and there is no network here."""
    if report.code and MISSING_MODULES.search(report.output):
        raise Unreadable("modules that it needs are not on this machine: go mod download")


def _around(package: str, test: str) -> Iterator[tuple[str, str]]:
    """What fails with a test: the tests that it is a part of, and its package."""
    while test:
        test = test.rpartition("/")[0]
        yield package, test


def go_path(report: Report, package: str, name: str) -> str:
    """The file that a test names without its folder: below the module, by the package's last folders."""
    parts = package.split("/")
    candidates = [report.path("/".join([*parts[start:], name])) for start in range(len(parts) + 1)]
    return next((path for path in candidates if report.has_file(path)), report.path(name))


def cargo(report: Report, kind: IssueKind) -> Reading:
    """`cargo check|clippy|test --message-format=json`, and the text of the tests."""
    text = report.text
    panics = {found["name"]: found for found in RUST_PANIC.finditer(text)}
    results = {found["name"]: found["result"] for found in RUST_TEST.finditer(text)}

    def issues() -> Iterator[Issue]:
        for item in json_lines(report):
            if item.get("reason") == "compiler-message" and isinstance(message := item.get("message"), dict):
                yield from _compiler_message(report, kind, message)
        for name, result in results.items():
            if result == "FAILED":
                panic = panics.get(name)
                yield Issue(
                    kind,
                    "high",
                    clean_text(panic["message"]) if panic else "failed",
                    report.path(panic["path"]) if panic else "",
                    number(panic["line"]) if panic else 0,
                    number(panic["column"]) if panic else 0,
                    test=name,
                )

    if kind != "tests":
        return reading(issues())
    ran = sum(result != "ignored" for result in results.values())
    return test_reading(issues(), ran, (name for name, result in results.items() if result == "ok"))


def _compiler_message(report: Report, kind: IssueKind, message: dict[str, object]) -> Iterator[Issue]:
    level = str(message.get("level"))
    if level not in (*RUST_SEVERITIES, "warning") or (level == "warning" and kind != "lint"):
        return
    spans = [span for span in dicts(message.get("spans")) if span.get("is_primary")]
    if not spans:
        return  # `aborting due to 2 previous errors`
    children = (each for each in dicts(message.get("children")) if each.get("level") == "help")
    helps = [clean_text(each.get("message")) for each in children]
    yield Issue(
        "build" if level != "warning" and kind == "tests" else kind,
        RUST_SEVERITIES.get(level, "medium"),
        clean_text(message.get("message")),
        report.path(str(spans[0].get("file_name"))),
        number(spans[0].get("line_start")),
        number(spans[0].get("column_start")),
        clean_text(inner(message.get("code"), "code")),
        "; ".join(each for each in helps if each)[:500],
    )
