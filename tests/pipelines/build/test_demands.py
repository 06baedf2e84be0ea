"""What a build must show by the names of tests, and what new code may not do to look right."""

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from handrail.pipelines.build.demands import find_demands, wanted_tests, written_demands
from handrail.pipelines.build.evasions import find_evasions
from handrail.pipelines.build.verify import other_files
from handrail.tools.reports.issue import CheckResult, CheckStatus, Issue
from handrail.verification.proposed import ProposedFile
from handrail.workspace.files import Workspace
from tests.verification.projects import write

A, B, C = (f"tests/test_x.py::test_{name}" for name in "abc")


def result(passed: Sequence[str], *failed: str, status: CheckStatus | None = None) -> CheckResult:
    issues = tuple(Issue("tests", "high", "wrong", "tests/test_x.py", test=name) for name in failed)
    found: CheckStatus = status or ("failed" if failed else "passed")
    count = len(passed) + len(failed)
    return CheckResult("tests", "tests", found, issues, detail=f"{count:,} tests", passed=tuple(passed))


def demanded(before: CheckResult, after: CheckResult, task: str = "Fix it.", *opened: str) -> str:
    files = [ProposedFile(path, "", "0") for path in opened]
    return " ".join(find_demands(wanted_tests(task, [before], {}), [before], [after], files))


@pytest.mark.promise("BUILD-9")
def test_test_that_failed_before_must_be_among_those_that_pass() -> None:
    assert not demanded(result([A], B), result([A, B]))
    assert "still fails" in demanded(result([A], B), result([A], B))
    assert "skipped" in demanded(result([A], B), result([A]))
    assert "skipped" in demanded(result([A], B), result([A, C]))  # another test does not make up for it
    assert "skipped" in demanded(result([A], f"{B}[4-3]"), result([A, f"{B}[4-2]"]))
    flaky = CheckResult(
        "tests", "tests", "passed", (Issue("tests", "low", "x", test=B, origin="flaky"),), passed=(A,)
    )
    assert "still fails" in demanded(result([A], B), flaky)


@pytest.mark.promise("BUILD-9")
@pytest.mark.parametrize("parameters", ["", "[4-3]", "[1, 2 and 3]", "[31.0 KiB]", "[a::b]"])
def test_a_test_is_named_by_its_function_whatever_its_parameters_hold(parameters: str) -> None:
    before = result([A], f"{B}{parameters}", C)
    assert wanted_tests("Fix x (test_b).", [before], {}) == {f"{B}{parameters}"}


@pytest.mark.promise("BUILD-9")
def test_test_that_ran_before_must_still_run_unless_the_task_opened_its_file() -> None:
    task = "Add a thing."
    assert "test_b" in demanded(result([A, B]), result([A, C]), task)
    assert "test_b" in demanded(result([A], B), result([A]), task)
    assert not demanded(result([A, B]), result([A]), task, "tests/test_x.py")
    assert not demanded(result([A, f"{B}[1]"]), result([A, f"{B}[2]"]), task)
    assert "test_b" in demanded(result([f"{B}[1]", f"{B}[2]"]), result([f"{B}[1]"]), task)
    thousand = CheckResult("tests", "tests", "passed", detail="1,234 tests")
    assert "only 999" in demanded(thousand, CheckResult("tests", "tests", "passed", detail="999 tests"), task)


def test_tests_of_a_file_that_could_not_be_loaded_are_required_by_their_passing() -> None:
    unloaded = CheckResult(
        "tests", "tests", "failed", (Issue("tests", "critical", "cannot be loaded", test="tests.test_x"),)
    )
    assert not demanded(unloaded, result([A]))
    both = CheckResult("tests", "tests", "failed", unloaded.issues, passed=(A,))
    assert "skipped" in demanded(both, result([A]))


@pytest.mark.promise("BUILD-9")
@pytest.mark.parametrize("status", ["unavailable", "unverified"])
def test_check_that_falls_silent_is_for_the_task_to_correct(status: CheckStatus) -> None:
    assert "gives none now" in demanded(result([A]), result([], status=status), "Add a thing.")


def test_runner_that_was_changed_and_files_that_were_written_are_named() -> None:
    changed = CheckResult("tests", "tests", "passed", passed=(A,), replaced=("unittest.case.TestCase.run",))
    assert "TestCase.run" in demanded(result([A]), changed)
    assert not demanded(changed, changed)
    assert written_demands(["tests/test_x.py", "db"], ["db"])[0].startswith("tests/test_x.py: changed")
    assert not written_demands(["db"], ["db"])


HELPER = "def same(left, right):\n    assert left == right\n"
BLIND = "class Same(int):\n    def __eq__(self, other):\n        return True\n"
BLIND_LAMBDA = "class Same(int):\n    __eq__ = lambda self, other: 1 == 1\n"
HONEST = "class Same(int):\n    def __eq__(self, other):\n        return int(self) == other\n"


@pytest.mark.promise("BUILD-9")
@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("calc.py", "x = 1  # type: ignore\n", "not to look"),
        ("calc.py", "# mypy: ignore-errors\n", "not to look"),
        ("calc.py", "import os  # noqa: F401\n", "not to look"),
        ("web/a.ts", "// @ts-nocheck\n", "not to look"),
        ("web/a.js", "/* eslint-disable */\n", "not to look"),
        ("calc.py", BLIND, "does not look at"),
        ("calc.py", BLIND_LAMBDA, "does not look at"),
        ("helpers.py", HELPER.replace("left == right", "True"), "is gone from it"),
        ("calc.py", HONEST, ""),
        ("calc.py", "def double(number):\n    return 2 * number\n", ""),
        ("helpers.py", f"import os\n\n\n{HELPER}", ""),
    ],
)
def test_code_that_only_looks_right_is_named(tmp_path: Path, path: str, text: str, words: str) -> None:
    old = {"calc.py": "", "web/a.ts": "", "web/a.js": "", "helpers.py": HELPER}
    workspace = Workspace(write(tmp_path, {**old, "tests/test_x.py": "from helpers import same\n"}))
    files = [ProposedFile(path, text, sha256(old[path].encode()).hexdigest())]
    found = list(find_evasions(workspace, "Fix it; use `# fmt: off` if you must.", files, old))
    assert (words in " ".join(found)) if words else not found


def test_silencing_comment_that_was_there_or_is_asked_for_is_allowed(tmp_path: Path) -> None:
    workspace = Workspace(write(tmp_path, {"calc.py": "x = 1  # type: ignore\n"}))
    base = sha256(b"x = 1  # type: ignore\n").hexdigest()
    old, changed = {"calc.py": "x = 1  # type: ignore\n"}, "x = 2  # type: ignore\n"
    assert not list(find_evasions(workspace, "Fix it.", [ProposedFile("calc.py", changed, base)], old))
    asked = [ProposedFile("a.py", "import os  # noqa\n")]
    assert not list(find_evasions(workspace, "Add a.py with a noqa for os.", asked, {}))


@pytest.mark.promise("BUILD-3")
def test_edit_that_keeps_size_and_time_is_another_tree(tmp_path: Path) -> None:
    file = write(tmp_path, {"other.py": "x = 1\n"}) / "other.py"
    before, tree = file.stat(), other_files(tmp_path, ["calc.py"])
    file.write_text("x = 2\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert other_files(tmp_path, ["calc.py"]) != tree
