"""Whole projects with real tools: detection, baseline and verdict."""

import json
import os
import shutil
import socket
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from handrail.config.settings import CheckCommand, CheckSettings
from handrail.protocol.errors import UsageProblem
from handrail.tools.sandbox.sandbox import Protection
from handrail.verification.export import junit_document, sarif_document
from handrail.verification.workspace_checks import VerifyOptions
from tests.tools.sandbox.machine import working
from tests.verification.projects import (
    CART,
    ENVIRON,
    PYTHON,
    TEST_CART,
    Recorder,
    best_sandbox,
    checks_of,
    commit,
    contents,
    origins,
    python_project,
    statuses,
    verify,
    write,
)

pytestmark = pytest.mark.anyio
COPIES = best_sandbox().name == "bubblewrap"
"""Whether checks run on copies here, which a comparison with the base needs."""


def only(*commands: CheckCommand) -> CheckSettings:
    return CheckSettings(detect=False, commands=commands)


def by_base(origin: str) -> str:
    return origin if COPIES else "unknown"


@pytest.mark.promise("VERIFY-1")
@pytest.mark.promise("VERIFY-3")
async def test_python_project_passes_and_then_the_change_that_breaks_it_is_named(tmp_path: Path) -> None:
    root = python_project(tmp_path / "shop")
    before = contents(root)
    progress = Recorder()
    verdict = await verify(root, progress=progress)
    assert (verdict.status, verdict.exit_status) == ("passed", 0)
    assert statuses(verdict) == {"types": "passed", "lint": "passed", "tests": "passed"}
    assert verdict.checks[2].detail == "2 tests"
    assert "finished tests: passed" in progress.told
    if COPIES:
        assert contents(root) == before
    wrong = CART.replace("sum(prices)", "str(len(prices))")
    write(root, {"src/shop/cart.py": wrong, "src/new.py": "import os\n"})
    broken = await verify(root, CheckSettings())
    assert (broken.status, broken.exit_status) == ("failed", 1)
    failed = {"types": "failed", "lint": "failed", "tests": "failed"}
    assert statuses(broken) == {**failed, "consistency": "passed"}
    change = by_base("change")
    assert origins(broken) == {
        "return-value src/shop/cart.py:2": change,
        "F401 src/new.py:1": change,
        "tests/test_cart.py::test_total": change,
        "tests/test_cart.py::TestEmpty::test_nothing": change,
    }
    assert [issue.severity for issue in broken.issues][-1] == "medium"
    suspects = {each.path for issue in broken.issues if issue.test for each in issue.suspects[:1]}
    assert suspects == {"src/shop/cart.py"}


@pytest.mark.promise("VERIFY-3")
async def test_what_failed_before_does_not_count_against_the_change(tmp_path: Path) -> None:
    failing = TEST_CART.replace("== 3", "== 4")
    root = python_project(tmp_path / "shop", {**PYTHON, "tests/test_cart.py": failing})
    settings = CheckSettings(skip=("types", "lint"), localise=False)
    unchanged = await verify(root, settings)
    assert (unchanged.status, unchanged.base) == ("failed", "")  # there is nothing to compare with
    # Lines move, which does not make the failure new.
    write(root, {"tests/test_cart.py": f"# a comment\n\n{failing}", "README.md": "# Shop\n"})
    after = await verify(root, settings)
    assert origins(after) == {"tests/test_cart.py::test_total": by_base("before")}
    assert (after.status, after.base) == (("passed", "HEAD") if COPIES else ("failed", ""))
    write(root, {"src/shop/cart.py": CART.replace("sum(prices)", "len(prices) + 1")})
    worse = await verify(root, settings)
    assert worse.status == "failed"
    assert origins(worse) == {
        "tests/test_cart.py::test_total": by_base("before"),
        "tests/test_cart.py::TestEmpty::test_nothing": by_base("change"),
    }


@pytest.mark.promise("VERIFY-4")
async def test_flaky_test_is_reported_and_does_not_count(tmp_path: Path) -> None:
    flaky = """\
from pathlib import Path

def test_flaky():
    first = not Path("ran").exists()
    Path("ran").touch()
    assert not first

def test_ok():
    pass
"""
    root = python_project(tmp_path / "shop", {"pytest.ini": "[pytest]\n", "tests/test_flaky.py": flaky})
    verdict = await verify(root)
    assert (verdict.status, statuses(verdict)) == ("passed", {"tests": "passed"})
    assert origins(verdict) == {"tests/test_flaky.py::test_flaky": "flaky"}
    assert [issue.severity for issue in verdict.issues] == ["low"]


@pytest.mark.promise("VERIFY-2")
async def test_nothing_to_check_is_unverified_never_passed(tmp_path: Path) -> None:
    empty = await verify(write(tmp_path / "empty", {"notes.txt": "hello"}))
    assert (empty.status, empty.exit_status, empty.checks) == ("unverified", 5, ())
    files = {"go.mod": "module x\n", "Cargo.toml": "[package]\n"}
    missing = await verify(write(tmp_path / "go", files), environ={"PATH": str(tmp_path)})
    assert set(statuses(missing).values()) == {"unavailable"}
    assert (missing.status, missing.exit_status) == ("unverified", 5)
    assert all("is not installed" in result.reason for result in missing.checks)


@pytest.mark.promise("VERIFY-2")
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (CheckCommand("x", "sleep 600", seconds=0.3), "stopped after 0.3 s"),
        (CheckCommand("x", "kill -SEGV $$"), "ended by signal 11"),
        (CheckCommand("x", "echo '<oops' > $REPORT/report", format="junit"), "its report cannot be read"),
        (CheckCommand("x", "yes | head -c 300000000"), "it printed too much"),
        (CheckCommand("x", "truncate -s 70M $REPORT/report", format="junit"), "larger than 64 MB"),
        (CheckCommand("x", "ln -s /etc/passwd $REPORT/report", format="junit"), "it is empty"),
        (CheckCommand("x", "echo '<a/>' > $REPORT/report", format="junit"), "no test ran"),
    ],
)
async def test_unknown_result_is_unverified(tmp_path: Path, command: CheckCommand, reason: str) -> None:
    verdict = await verify(tmp_path, only(command))
    (result,) = verdict.checks
    assert (verdict.status, verdict.exit_status, result.status) == ("unverified", 5, "unverified")
    assert reason in result.reason


async def test_program_that_does_not_exist_is_unavailable(tmp_path: Path) -> None:
    (result,) = (await verify(tmp_path, only(CheckCommand("x", "no-such-program")))).checks
    assert (result.status, "no-such-program" in result.reason) == ("unavailable", True)


async def test_one_unknown_result_spoils_a_pass_but_not_a_failure(tmp_path: Path) -> None:
    good, hangs = CheckCommand("good", "true"), CheckCommand("hangs", "sleep 600", seconds=0.2)
    bad = CheckCommand("bad", "echo src/a.py:3: error: no >&2; exit 3", kind="build")
    write(tmp_path, {"src/a.py": ""})
    assert (await verify(tmp_path, only(good, hangs))).status == "unverified"
    failed = await verify(tmp_path, only(good, hangs, bad))
    assert failed.status == "failed"
    assert [(each.path, each.line, each.message) for each in failed.issues] == [("src/a.py", 3, "error: no")]
    quiet = await verify(tmp_path, only(CheckCommand("bad", "echo it is wrong; exit 1")))
    assert [issue.message for issue in quiet.issues] == ["it is wrong"]


@pytest.mark.promise("VERIFY-5")
@pytest.mark.parametrize("protection", working(), ids=lambda found: found.name)
async def test_checks_have_no_network_no_secrets_and_write_nothing_outside(
    tmp_path: Path, protection: Protection
) -> None:
    outside = tmp_path / "outside"
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = f"""\
import os, socket
from contextlib import suppress
with suppress(OSError):
    socket.create_connection(("127.0.0.1", {server.getsockname()[1]}), 5)
with suppress(OSError):
    open({str(outside)!r}, "w")
assert "SHOP_API_KEY" not in os.environ
"""
        root = write(tmp_path / "shop", {"check.py": script})
        environ = {**ENVIRON, "SHOP_API_KEY": "sk-1234567890abcdef"}
        command = CheckCommand("x", "python3 check.py")
        verdict = await verify(root, only(command), protection=protection, environ=environ)
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert verdict.status == "passed"
    assert not outside.exists()


@pytest.mark.promise("VERIFY-5")
async def test_without_a_sandbox_nothing_runs(tmp_path: Path) -> None:
    command = CheckCommand("x", "touch ran")
    with pytest.raises(UsageProblem, match="no sandbox"):
        await verify(tmp_path, only(command), protection=Protection())
    assert not (tmp_path / "ran").exists()


@pytest.mark.promise("VERIFY-6")
async def test_without_copies_the_workspace_itself_is_checked_and_that_is_said(tmp_path: Path) -> None:
    landlock = [found for found in working() if found.name == "Landlock"]
    for protection in landlock:
        verdict = await verify(tmp_path, only(CheckCommand("x", "touch made")), protection=protection)
        assert any("checked in the workspace itself" in note for note in verdict.notes)
        assert (tmp_path / "made").exists()
    if COPIES:
        verdict = await verify(tmp_path, only(CheckCommand("x", "touch other")))
        assert (verdict.status, (tmp_path / "other").exists()) == ("passed", False)


async def test_monorepo_of_two_languages(tmp_path: Path) -> None:
    files = {f"api/{name}": text for name, text in PYTHON.items()}
    web = {".gitignore": ".venv\n", "web/package.json": "{}", "web/jest.config.js": "", "web/a.test.js": "x"}
    bad = {"api/tests/test_bad.py": "import os\n\n\ndef test() -> None:\n    assert 0\n"}
    root = python_project(tmp_path / "shop", {**files, **web, **bad})
    packages = next((root / ".venv").glob("lib/python*/site-packages/editable.pth"))
    packages.write_text(packages.read_text().replace(f"{root}/src", f"{root}/api/src"))
    verdict = await verify(root)
    assert statuses(verdict) == {
        "api/types": "passed",
        "api/lint": "failed",
        "api/tests": "failed",
        "web/tests": "unavailable",
    }
    assert {issue.path for issue in verdict.issues} == {"api/tests/test_bad.py"}
    # Only the part with a changed file is checked, and only that file is linted.
    write(root, {"api/src/shop/cart.py": CART + "\n\nimport os\n"})
    checks = await checks_of(root).find(VerifyOptions(changed=True))
    assert {check.name: check.command.split()[-1] for check in checks} == {
        "api/types": "src",
        "api/lint": "src/shop/cart.py",
        "api/tests": "'--junitxml=$REPORT/report'",
    }


async def test_verdict_as_sarif_and_junit(tmp_path: Path) -> None:
    write(tmp_path, {"a b.py": ""})
    bad = CheckCommand("bad", "printf 'a b.py:3:2: error: <no> \\a\\n'; exit 1", kind="lint")
    verdict = await verify(tmp_path, only(bad, CheckCommand("gone", "no-such-program")))
    log = json.loads(sarif_document(verdict))
    (result,) = log["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]) == (
        "a%20b.py",
        {"startLine": 3, "startColumn": 2},
    )
    (notice,) = log["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert notice["message"]["text"].startswith("gone unavailable")
    root = ET.fromstring(junit_document(verdict))  # noqa: S314
    assert [(suite.get("name"), suite.get("failures"), suite.get("errors")) for suite in root] == [
        ("bad", "1", "0"),
        ("gone", "0", "1"),
    ]


async def test_a_base_that_cannot_be_made_again_is_no_crash(tmp_path: Path) -> None:
    command = CheckCommand("x", "exit 1")
    root = commit(write(tmp_path / "shop", {"a": "a file\n", "-b.py": "x\n"}))
    (root / "a").unlink()
    write(root, {"a/b.py": "now in a folder\n", "-b.py": "y\n"})
    verdict = await verify(root, only(command))
    assert verdict.status == "failed"
    assert verdict.base == "HEAD" or any("not compared with HEAD" in note for note in verdict.notes)
    write(root, {"ruff.toml": ""})
    (check,) = await checks_of(root, environ=dict(os.environ)).find(VerifyOptions(changed=True))
    assert check.missing or set(check.words[-2:]) == {"./-b.py", "a/b.py"}


async def test_an_unknown_base_or_check_is_refused(tmp_path: Path) -> None:
    root = python_project(tmp_path / "shop")
    for options in ({"base": "nowhere"}, {"base": "--output=x"}, {"only": ("lnt",)}):
        with pytest.raises(UsageProblem):
            await verify(root, **options)
    shutil.rmtree(root / ".git")
    with pytest.raises(UsageProblem, match="--changed"):
        await verify(root, changed=True)
