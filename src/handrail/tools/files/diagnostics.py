"""Syntax and linter problems an edit would introduce, found before it is applied.

They are found before the edit is applied, so that nothing waits between the change and its record; they never
stop it. Linters with plugins (eslint, mypy, pylint) are not used: they would run the repository's code.
"""

import os
import shutil
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import anyio

from handrail.config.open_file import read_file
from handrail.tools.files.syntax_check import GRAMMARS, MAX_PROBLEMS, Problem, data_problem, python_problem
from handrail.tools.process import StartProcess, open_process, run_for_output
from handrail.tools.sandbox.protected_paths import SandboxSetup
from handrail.tools.sandbox.sandbox import Sandbox
from handrail.tools.secrets import without_secrets
from handrail.workspace.files import Workspace

if TYPE_CHECKING:
    from handrail.changes.change_set import FileEdit

SECONDS = 3.0  # for all files of one change set together
MAX_BYTES = 256_000
MAX_FILES = 10
MAX_OUTPUT = 1_000_000
MAX_MESSAGE = 200
SOURCE_ROOT = Path(__file__).resolve().parents[3]
RUFF_ARGUMENTS = (
    *("check", "--no-cache", "--no-fix", "--quiet", "--exit-zero", "--force-exclude"),
    "--output-format=json",
)
PYPROJECT = "pyproject.toml"
RUFF_SETTINGS = ("ruff.toml", ".ruff.toml", PYPROJECT)
FindProblems = Callable[[str, bytes], Awaitable[list[Problem]]]


class Diagnostics:
    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def notes(
        self, workspace: Workspace, edits: Sequence["FileEdit"], *, linter: bool
    ) -> dict[str, str]:
        """A note for the model on each file with new problems, by its path after the edit."""
        notes: dict[str, str] = {}
        with anyio.move_on_after(SECONDS):
            for edit in edits[:MAX_FILES]:
                path = edit.destination or edit.path
                if edit.new is None or edit.new == edit.old or len(edit.new) > MAX_BYTES:
                    continue
                with suppress(OSError):  # a checker that cannot be started finds nothing
                    note = await self._note(workspace, path, edit.old, edit.new, linter=linter)
                    notes |= {path: note} if note else {}
        return notes

    async def _note(
        self, workspace: Workspace, path: str, old: bytes | None, new: bytes, *, linter: bool
    ) -> str:
        find: FindProblems = syntax_problems
        found = await find(path, new)
        use_ruff = not found and linter and path.endswith((".py", ".pyi"))
        if use_ruff and (program := find_ruff(workspace, path)):
            find = partial(self._ruff, program, workspace)
            found = await find(path, new)
        before = await find(path, old) if found and old is not None else []
        return new_problems_note(path, found, before)

    async def _ruff(self, program: str, workspace: Workspace, path: str, data: bytes) -> list[Problem]:
        from handrail.tools.reports.python_tools import ruff
        from handrail.tools.reports.report import Report, Unreadable

        environ = without_secrets(os.environ)
        places = (os.path.dirname(program), os.path.dirname(os.path.realpath(program)))
        setup = SandboxSetup(workspace.root, workspace.state_folders, environ, reads=True, readable=places)
        words = [program, *RUFF_ARGUMENTS, "--stdin-filename", path, "-"]
        async with self._sandbox.confine(words, setup) as confined:
            output = await _run_checker(
                confined.words, workspace.root, confined.environ, data, start=confined.start
            )
        try:
            found = ruff(Report(output.encode(), str(workspace.root)), "lint")
        except Unreadable:
            return []
        return [Problem(issue.line, f"{issue.rule} {issue.message}".strip()) for issue in found.issues]


async def syntax_problems(path: str, data: bytes) -> list[Problem]:
    """The syntax errors of a file in a language that is known here; none for other files."""
    name = PurePosixPath(path).name.lower()
    ending = os.path.splitext(name)[1]
    text = data.decode("utf-8-sig", errors="replace")
    if ending in (".py", ".pyi"):
        problem, maybe_newer = python_problem(text)
        if problem and maybe_newer and not await _grammar_problems(".py", data):
            return []  # syntax of a later Python than Handrail's
        return [problem] if problem else []
    if ending in GRAMMARS:
        return await _grammar_problems(ending, data)
    problem = data_problem(name, text)
    return [problem] if problem else []


async def _grammar_problems(ending: str, data: bytes) -> list[Problem]:
    environ = without_secrets(os.environ) | {"PYTHONPATH": str(SOURCE_ROOT)}
    words = [sys.executable, "-P", "-m", "handrail.tools.files.syntax_check", ending]
    found = []
    for line in (await _run_checker(words, SOURCE_ROOT, environ, data)).splitlines():
        number, _, message = line.partition(" ")
        if number.isdecimal():
            found.append(Problem(int(number), message))
    return found


async def _run_checker(
    words: Sequence[str],
    folder: Path,
    environ: Mapping[str, str],
    text: bytes,
    *,
    start: StartProcess = open_process,
) -> str:
    """What a program prints about a text; empty if it fails."""
    code, data = await run_for_output(
        words,
        folder=folder,
        environment=environ,
        timeout=SECONDS,
        limit=MAX_OUTPUT,
        stdin=text,
        start=start,
    )
    return data.decode(errors="replace") if code == 0 else ""


def find_ruff(workspace: Workspace, path: str) -> str:
    """ruff, if the project is set up for it; one in the workspace only if the user activated it."""
    folders = [workspace.root / parent for parent in PurePosixPath(path).parents]
    try:
        configured = [_configures_ruff(folder / name) for folder in folders for name in RUFF_SETTINGS]
    except OSError:
        return ""  # ruff would read this file too
    if not any(configured):
        return ""
    activated = os.environ.get("VIRTUAL_ENV", "")
    places = [
        place
        for place in os.environ.get("PATH", "").split(os.pathsep)
        if os.path.isabs(place)
        and (
            not Path(os.path.realpath(place)).is_relative_to(workspace.root)
            or (activated and Path(place) == Path(activated, "bin"))
        )
    ]
    return shutil.which("ruff", path=os.pathsep.join(places)) or "" if places else ""


def _configures_ruff(file: Path) -> bool:
    try:
        data = read_file(file, MAX_BYTES)
    except FileNotFoundError:
        return False
    return file.name != PYPROJECT or b"[tool.ruff" in data


def new_problems_note(path: str, found: Sequence[Problem], before: Sequence[Problem]) -> str:
    """The first few problems that are new with the edit; empty if there are none."""
    known = Counter(problem.text for problem in before)
    new = []
    for problem in found:
        known[problem.text] -= 1
        if known[problem.text] < 0:
            new.append(problem)
    if not new:
        return ""
    lines = [f"{path}:{line} {' '.join(text.split())[:MAX_MESSAGE]}" for line, text in new[:MAX_PROBLEMS]]
    rest = [f"{len(new) - MAX_PROBLEMS} more"] if len(new) > MAX_PROBLEMS else []
    return "\n".join(["diagnostics:", *lines, *rest])
