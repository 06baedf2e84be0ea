"""What the end of a check means, whatever its report claims."""

from pathlib import Path

import pytest

from handrail.config.settings import CheckCommand, CheckSettings
from handrail.tools.process import ProcessResult
from handrail.tools.reports.compiled_tools import go_test, go_text
from handrail.tools.reports.issue import CheckResult, Issue
from handrail.tools.reports.python_tools import pytest as read_pytest
from handrail.tools.reports.report import REPORT_FILE, Reading, Report
from handrail.verification.check import Check
from handrail.verification.run_check import Checked, Ran, judge
from handrail.verification.verdict import verdict_of
from handrail.verification.verify import _results
from tests.verification.projects import PYTHON, python_project, statuses, verify, write

PASSING = "<testsuite><testcase name='a'/></testsuite>"
FAILING = "<testsuite><testcase name='a'><failure message='wrong'/></testcase></testsuite>"
HIDING = """\
import pytest


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    session.exitstatus = 0
"""


def status(code: int, report: str) -> str:
    ended = ProcessResult(code, timed_out=False, left_running=False, seconds=0.1)
    ran = Ran(ended, Report(b"", "/shop", files={REPORT_FILE: report.encode()}, code=code))
    return judge(Check("tests", "pytest", reader=read_pytest), ran).result.status


@pytest.mark.promise("VERIFY-9")
def test_only_a_report_and_an_exit_status_that_agree_are_a_pass() -> None:
    assert status(0, PASSING) == "passed"
    assert status(0, FAILING) == "failed"
    assert status(1, PASSING) == "failed"
    assert status(3, PASSING) == "unverified"
    assert status(0, "") == "unverified"


@pytest.mark.anyio
@pytest.mark.promise("VERIFY-9")
async def test_conftest_that_hides_the_exit_status_hides_no_failure(tmp_path: Path) -> None:
    failing = "def test_wrong() -> None:\n    assert 1 == 2\n"
    files = {**PYTHON, "tests/conftest.py": HIDING, "tests/test_wrong.py": failing}
    root = python_project(tmp_path / "shop", files)
    verdict = await verify(root, only=("tests",))
    assert (verdict.status, statuses(verdict)) == ("failed", {"tests": "failed"})
    assert [(issue.test, issue.origin) for issue in verdict.issues] == [
        ("tests/test_wrong.py::test_wrong", "unknown")
    ]


@pytest.mark.anyio
async def test_command_of_the_settings_whose_report_has_errors_fails_with_exit_status_0(
    tmp_path: Path,
) -> None:
    sarif = '{"runs": [{"results": [{"level": "error", "message": {"text": "leak"}}]}]}'
    command = CheckCommand(name="scan", run=f"echo '{sarif}'", kind="lint", format="sarif")
    verdict = await verify(write(tmp_path / "shop", {"a.txt": ""}), CheckSettings(commands=(command,)))
    assert (verdict.status, [issue.message for issue in verdict.issues]) == ("failed", ["leak"])


@pytest.mark.anyio
async def test_threshold_that_is_no_number_does_not_stop_verify(tmp_path: Path) -> None:
    options = "[pytest]\naddopts = --cov=shop\n"
    files = {"pytest.ini": options, ".coveragerc": "[report]\nfail_under = 1.2.3\n"}
    verdict = await verify(write(tmp_path / "shop", files), environ={"PATH": ""})
    assert statuses(verdict) == {"tests": "unavailable"}


def test_low_coverage_is_reported_once() -> None:
    check = Check("tests", "pytest", name="tests", threshold=90)
    missed = Issue(
        "coverage", "medium", "FAIL Required test coverage of 90.0% not reached.", rule="fail_under"
    )
    found = CheckResult("tests", "tests", "failed", (missed,))
    results = _results(check, Checked(found, Reading(coverage=38.5)))
    assert [(each.name, each.status, len(each.issues)) for each in results] == [
        ("tests", "passed", 0),
        ("coverage", "failed", 1),
    ]
    assert verdict_of(results) == "failed"


# What go 1.19 printed.
GO_VET = """\
# example.com/sums/inner
inner/one.go:5:18: fmt.Printf format %d has arg "x" of wrong type string
"""
GO_SUM = """\
inner/one.go:3:8: missing go.sum entry for module providing package github.com/pkg/errors (imported by \
example.com/sums/inner); to add:
\tgo get example.com/sums/inner
"""
GO_BUILD_FAILED = """\
# example.com/sums/inner [example.com/sums/inner.test]
inner/one.go:3:25: cannot use "2" (untyped string constant) as int value in return statement
{"Time":"2026-11-18T03:57:37.07Z","Action":"skip","Package":"example.com/sums","Elapsed":0}
FAIL\texample.com/sums/inner [build failed]
"""


@pytest.mark.parametrize(
    ("reader", "text", "status", "place"),
    [
        (go_text, GO_VET, "failed", "inner/one.go:5"),
        (go_text, GO_SUM, "unverified", ""),
        (go_test, GO_BUILD_FAILED, "failed", "inner/one.go:3"),
        (go_test, GO_SUM, "unverified", ""),
    ],
)
def test_go_exits_with_2_for_what_it_finds(reader: object, text: str, status: str, place: str) -> None:
    ended = ProcessResult(2, timed_out=False, left_running=False, seconds=0.1)
    check = Check("lint", "go", reader=reader, found_codes=frozenset({1, 2}))  # type: ignore[arg-type]
    result = judge(check, Ran(ended, Report(text.encode(), "/sums", code=2))).result
    assert result.status == status
    assert [f"{issue.path}:{issue.line}" for issue in result.issues] == ([place] if place else [])
