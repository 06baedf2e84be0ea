"""Small projects with real tools, and what `verify` says about them."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from handrail.config.places import find_places, workspace_folder
from handrail.config.settings import CheckSettings, Settings
from handrail.storage.log_repair import open_log
from handrail.tools.reports.issue import CheckResult, Issue
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from handrail.verification.run_check import Machine
from handrail.verification.verdict import Verdict
from handrail.verification.workspace_checks import VerifyOptions, WorkspaceChecks
from handrail.workspace.files import Workspace
from tests.tools.sandbox.machine import working

PYPROJECT = """\
[project]
name = "shop"
version = "1"
[tool.ruff]
line-length = 100
[tool.mypy]
strict = true
[tool.pytest.ini_options]
testpaths = ["tests"]
"""
CART = """\
def total(prices: list[int]) -> int:
    return sum(prices)
"""
TEST_CART = """\
from shop.cart import total


def test_total() -> None:
    assert total([1, 2]) == 3


class TestEmpty:
    def test_nothing(self) -> None:
        assert total([]) == 0
"""
PYTHON = {
    "pyproject.toml": PYPROJECT,
    ".gitignore": ".venv\n__pycache__\n",
    "src/shop/__init__.py": "",
    "src/shop/cart.py": CART,
    "tests/test_cart.py": TEST_CART,
}
SITE_PACKAGES = next(path for path in sys.path if path.endswith("site-packages"))
ENVIRON = {"PATH": "/usr/bin:/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


class Recorder:
    """Progress that is only remembered."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def planned(self, names: Sequence[str]) -> None:
        self.told += [f"planned {name}" for name in names]

    def started(self, name: str, doing: str) -> None:
        self.told.append(f"started {name}: {doing}")

    def finished(self, result: CheckResult) -> None:
        self.told.append(f"finished {result.name}: {result.status}")


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def python_project(root: Path, files: Mapping[str, str] = PYTHON) -> Path:
    """A project with an environment of its own, into which it is installed so that edits count."""
    write(root, files)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root / ".venv"], check=True)
    packages = next((root / ".venv").glob("lib/python*/site-packages"))
    (packages / "editable.pth").write_text(f"{SITE_PACKAGES}\n{root / 'src'}\n")
    for name, words in {
        "pytest": 'exec "${0%/*}/python" -m pytest',
        "mypy": 'exec "${0%/*}/python" -m mypy',
        "ruff": f'exec "{Path(sys.executable).parent}/ruff"',
    }.items():
        program = root / ".venv/bin" / name
        program.write_text(f'#!/bin/sh\n{words} "$@"\n')
        program.chmod(0o755)
    return commit(root)


def commit(root: Path) -> Path:
    """All of it as a commit."""
    git = ["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@example.com"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    return root


def best_sandbox() -> Protection:
    return working()[0]


def checks_of(
    root: Path,
    settings: CheckSettings | None = None,
    *,
    protection: Protection | None = None,
    environ: Mapping[str, str] = ENVIRON,
) -> WorkspaceChecks:
    places = find_places(os.environ)
    workspace = Workspace(root, state_folders=(places.data, places.settings.parent))
    log = open_log(workspace_folder(places, workspace.root))
    machine = Machine(workspace, Sandbox(found=protection or best_sandbox()), log.folder, environ)
    return WorkspaceChecks(machine, Settings(checks=settings or CheckSettings(localise=False)), log)


async def verify(
    root: Path,
    settings: CheckSettings | None = None,
    *,
    protection: Protection | None = None,
    progress: Recorder | None = None,
    environ: Mapping[str, str] = ENVIRON,
    **options: Any,
) -> Verdict:
    checks = checks_of(root, settings, protection=protection, environ=environ)
    return await checks.verify(VerifyOptions(**options), progress or Recorder())


def statuses(verdict: Verdict) -> dict[str, str]:
    return {result.name: result.status for result in verdict.checks}


def origins(verdict: Verdict) -> dict[str, str]:
    """{test, or rule and place: origin}"""

    def name(issue: Issue) -> str:
        return issue.test or f"{issue.rule} {issue.path}:{issue.line}"

    return {name(issue): issue.origin for issue in verdict.issues}


def contents(root: Path) -> dict[str, str]:
    """Every file with its hash, to show that nothing was touched."""
    files = [path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
