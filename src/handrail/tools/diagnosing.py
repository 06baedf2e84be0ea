"""Diagnostics of a file as an edit is about to leave it: syntax, then the project's linter, in a short time.

They are made before the edit, from its text, so that nothing waits between the change and its record; and
they never stand in its way. Linters with plugins (eslint, mypy, pylint) would run code of the repository's:
they are not used. ruff has none.
"""

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

import anyio

from handrail.tools.environment import without_secrets
from handrail.tools.process import run_process
from handrail.tools.sandbox.places import Ground
from handrail.tools.sandbox.sandbox import Sandbox
from handrail.tools.syntax import GRAMMARS, MOST, Problem, data_problem, python_problem
from handrail.workspace.files import Workspace

if TYPE_CHECKING:
    from handrail.changes.change_set import FileEdit

SECONDS = 3.0
"""For all files of one change set together."""
LARGEST = 256_000
MOST_FILES = 10
MOST_OUTPUT = 1_000_000
LONGEST = 200
SOURCE = Path(__file__).resolve().parents[2]
RUFF = (
    "check",
    "--no-cache",
    "--no-fix",
    "--quiet",
    "--exit-zero",
    "--force-exclude",
    "--output-format=json",
)
RUFF_FILES = ("ruff.toml", ".ruff.toml")
Look = Callable[[str, bytes], Awaitable[list[Problem]]]


class Diagnosing:
    """Looks at the texts of edits."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def notes(
        self, workspace: Workspace, edits: Sequence["FileEdit"], *, linter: bool
    ) -> dict[str, str]:
        """What the model is told of each file that has new problems, by its path after the edit."""
        notes: dict[str, str] = {}
        with anyio.move_on_after(SECONDS):
            for edit in edits[:MOST_FILES]:
                path = edit.destination or edit.path
                if edit.new is None or edit.new == edit.old or len(edit.new) > LARGEST:
                    continue
                try:
                    told = await self._problems(workspace, path, edit.old, edit.new, linter=linter)
                except OSError:
                    continue  # a program that cannot be started says nothing
                if told:
                    notes[path] = told
        return notes

    async def _problems(
        self, workspace: Workspace, path: str, old: bytes | None, new: bytes, *, linter: bool
    ) -> str:
        look: Look = _syntax
        found = await look(path, new)
        if not found and linter and path.endswith((".py", ".pyi")) and (program := ruff_of(workspace, path)):
            look = partial(self._ruff, program, workspace)
            found = await look(path, new)
        before = await look(path, old) if found and old is not None else []
        return told(path, found, before)

    async def _ruff(self, program: str, workspace: Workspace, path: str, data: bytes) -> list[Problem]:
        ground = Ground(workspace.root, workspace.state_folders, without_secrets(os.environ))
        words = [program, *RUFF, "--stdin-filename", path, "-"]
        async with self._sandbox.confine(words, ground) as confined:
            output = await _run(confined.words, workspace.root, confined.environ, data)
        return read_ruff(output)


async def _syntax(path: str, data: bytes) -> list[Problem]:
    name = PurePosixPath(path).name.lower()
    ending = os.path.splitext(name)[1]
    text = data.decode("utf-8-sig", errors="replace")
    if ending in (".py", ".pyi"):
        problem, maybe_newer = python_problem(text)
        if problem and maybe_newer and not await _grammar(".py", data):
            return []  # the syntax of a later Python than the one that Handrail runs in
        return [problem] if problem else []
    if ending in GRAMMARS:
        return await _grammar(ending, data)
    problem = data_problem(name, text)
    return [problem] if problem else []


async def _grammar(ending: str, data: bytes) -> list[Problem]:
    environ = without_secrets(os.environ) | {"PYTHONPATH": str(SOURCE)}
    words = [sys.executable, "-P", "-m", "handrail.tools.syntax", ending]
    found = []
    for line in (await _run(words, SOURCE, environ, data)).splitlines():
        number, _, said = line.partition(" ")
        if number.isdecimal():
            found.append(Problem(int(number), said))
    return found


async def _run(words: Sequence[str], folder: Path, environ: Mapping[str, str], given: bytes) -> str:
    """What a program says of a text; nothing where it fails."""
    output = bytearray()

    def take(chunk: bytes) -> bool:
        output.extend(chunk)
        return len(output) < MOST_OUTPUT

    with TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        ended = await run_process(
            words, folder=folder, environment=environ, timeout=SECONDS, take=take, given=file.fileno()
        )
    return output.decode(errors="replace") if ended.code == 0 else ""


def ruff_of(workspace: Workspace, path: str) -> str:
    """The program, where the project is set up for it; one in the workspace only if the user activated it."""
    folders = [workspace.root / parent for parent in PurePosixPath(path).parents]
    if not any(_configured(folder) for folder in folders):
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


def _configured(folder: Path) -> bool:
    if any((folder / name).is_file() for name in RUFF_FILES):
        return True
    try:
        return "[tool.ruff" in (folder / "pyproject.toml").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def read_ruff(output: str) -> list[Problem]:
    """What ruff found, of its JSON; warnings may stand before it."""
    try:
        items = json.loads(output[output.index("[") :])
        return [Problem(item["location"]["row"], f"{item['code']} {item['message']}") for item in items]
    except (ValueError, KeyError, TypeError):
        return []


def told(path: str, found: Sequence[Problem], before: Sequence[Problem]) -> str:
    """The problems that came with the edit, the first few of them; empty where there are none."""
    known = Counter(problem.text for problem in before)
    new = []
    for problem in found:
        if known[problem.text]:
            known[problem.text] -= 1
        else:
            new.append(problem)
    if not new:
        return ""
    lines = [f"{path}:{line} {' '.join(text.split())[:LONGEST]}" for line, text in new[:MOST]]
    rest = [f"{len(new) - MOST} more"] if len(new) > MOST else []
    return "\n".join(["diagnostics:", *lines, *rest])
