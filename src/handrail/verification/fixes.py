"""Fixes by code: missing imports, the linter's own fixes, the formatter; as proposals, never applied here.

The tools get a file's text on standard input and print the new text. They run in the sandbox, where they can
write nothing.
"""

import json
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from anyio.to_thread import run_sync

from handrail.changes.forms.edit_forms import Whole
from handrail.changes.proposal import Proposal, ShownVersions, propose
from handrail.protocol.errors import PathProblem
from handrail.tools.files.diagnostics import find_ruff
from handrail.tools.files.syntax_check import python_problem
from handrail.tools.process import NO_STDERR, find_program, run_for_output
from handrail.tools.reports.issue import Issue
from handrail.tools.sandbox.protected_paths import SandboxSetup
from handrail.tools.sandbox.sandbox import Sandbox
from handrail.tools.secrets import without_secrets
from handrail.verification.base_tree import FileBefore
from handrail.verification.check import IN_FOLDER
from handrail.verification.consistency.javascript_module import is_javascript
from handrail.verification.consistency.source_tree import SourceTree
from handrail.verification.documents.changelog import is_changelog, restored_changelog
from handrail.verification.missing_imports import MissingImports
from handrail.workspace.files import Workspace

SECONDS = 30.0
"""For one tool on one file."""
MAX_FILES = 200
MAX_OUTPUT = 4_000_000
PYTHON = (".py", ".pyi")
PRETTIER = (
    ".js",
    ".jsx",
    ".mjs",
    ".cjs",
    ".ts",
    ".tsx",
    ".mts",
    ".cts",
    ".css",
    ".scss",
    ".vue",
    ".json",
    ".yml",
)
RUFF_FIX = (
    "check",
    "--fix-only",
    "--no-unsafe-fixes",
    "--no-cache",
    "--quiet",
    "--exit-zero",
    "--force-exclude",
)
RUFF_FORMAT = ("format", "--no-cache", "--quiet", "--force-exclude")
FORMATS_WITH_RUFF = ("ruff format", "ruff-format", "[tool.ruff.format]", "[format]")
SETTINGS = (
    *("pyproject.toml", "ruff.toml", ".ruff.toml", "Makefile", "justfile", "tox.ini", "noxfile.py"),
    *("package.json", ".pre-commit-config.yaml", "README.md", "CONTRIBUTING.md", "AGENTS.md", "setup.cfg"),
)


class FixTools(NamedTuple):
    """Paths of the project's own tools. An empty one is not used.

    eslint and prettier run code of the repository: name them only if the user trusts it.
    """

    ruff: str = ""
    ruff_formats: bool = False
    eslint: str = ""
    prettier: str = ""
    folder: str = ""
    """The part of the workspace in which these two run: eslint looks there for its settings."""


class Fixed(NamedTuple):
    """A file with its new text, and what changed it."""

    path: str
    sha256: str
    """Of the file as it is; empty: it does not exist."""
    text: str
    by: tuple[str, ...]


def find_ruff_tools(workspace: Workspace, ruff: str = "") -> FixTools:
    """ruff, if the project is set up for it, and whether it formats with it."""
    ruff = ruff or find_ruff(workspace, "any.py")
    tree = SourceTree(workspace.root)
    workflows = [path for path in tree.files if path.startswith(".github/workflows/")]
    texts = (tree.text(name) for name in (*SETTINGS, *workflows[:20])) if ruff else ()
    formats = any(word in text for text in texts for word in FORMATS_WITH_RUFF)
    return FixTools(ruff, ruff_formats=formats)


async def find_fixes(
    workspace: Workspace,
    sandbox: Sandbox,
    paths: Sequence[str],
    tools: FixTools,
    issues: Sequence[Issue] = (),
) -> tuple[Fixed, ...]:
    """The files that code can fix, with their new texts; nothing is written.

    `issues` are what the checks found: names that a type checker or linter reports as undefined are imported
    where exactly one file of the project has them.
    """
    imports = await run_sync(partial(MissingImports, SourceTree(workspace.root), tuple(issues)))
    found = []
    for path in paths[:MAX_FILES]:
        with suppress(PathProblem):  # it is gone, no text, or too large to be edited
            file = workspace.read(path)
            fixer = _Fixer(workspace, sandbox, tools, file.path)
            text, by = await fixer.fix(file.text, imports)
            if by and text != file.text:
                found.append(Fixed(file.path, file.sha256, text, by))
    return tuple(found)


def restore_changelogs(
    workspace: Workspace, before: Mapping[str, FileBefore | None], issues: Sequence[Issue]
) -> tuple[Fixed, ...]:
    """Changelogs that lost something, with it and with what was added; `before` has the files of the base."""
    found = []
    for path in dict.fromkeys(issue.path for issue in issues if issue.kind == "docs"):
        if (old := before.get(path)) is None or not is_changelog(path):
            continue
        try:
            file = workspace.read(path)
            text, sha256 = restored_changelog(path, old.data, file.text.encode()), file.sha256
        except PathProblem as problem:
            if problem.reason != "file_missing":
                continue
            text, sha256 = old.data, ""
        with suppress(UnicodeDecodeError):
            found.append(Fixed(path, sha256, text.decode(), ("restored",)))
    return tuple(found)


def propose_fixes(workspace: Workspace, fixes: Sequence[Fixed]) -> Proposal:
    """The fixes as a proposal: edits with their diffs; raises PathProblem if a file has changed since."""
    forms = [Whole(each.path, each.text, base_hash=each.sha256, only="rewrite") for each in fixes]
    return propose(workspace, ShownVersions(seen=None), forms)


class _Fixer:
    def __init__(self, workspace: Workspace, sandbox: Sandbox, tools: FixTools, path: str) -> None:
        self._workspace = workspace
        self._sandbox = sandbox
        self._tools = tools
        self._path = path

    async def fix(self, text: str, imports: MissingImports) -> tuple[str, tuple[str, ...]]:
        by: list[str] = []
        imported, added = await run_sync(imports.add, self._path, text)
        if added and self._is_sound(imported):
            text = imported
            by += [f"import: {each}" for each in added]
        for name, run in self._steps():
            new = await run(text)
            if new and new != text and self._is_sound(new):
                text = new
                by.append(name)
        return text, tuple(by)

    def _steps(self) -> Iterator[tuple[str, Callable[[str], Awaitable[str]]]]:
        tools, path = self._tools, self._path
        if path.endswith(PYTHON) and tools.ruff:
            yield "ruff check", partial(self._printed, [tools.ruff, *RUFF_FIX, "--stdin-filename", path, "-"])
            if tools.ruff_formats:
                yield (
                    "ruff format",
                    partial(self._printed, [tools.ruff, *RUFF_FORMAT, "--stdin-filename", path, "-"]),
                )
        if is_javascript(path) and tools.eslint:
            yield "eslint", self._eslint
        if path.endswith(PRETTIER) and tools.prettier:
            yield "prettier", partial(self._printed, self._in_part(tools.prettier, "--stdin-filepath"))

    def _in_part(self, program: str, option: str) -> list[str]:
        """Words that run a tool for this file in the folder of its part."""
        folder = self._tools.folder
        words = [program, option, os.path.relpath(self._path, folder) if folder else self._path]
        # The sandbox starts commands at the root.
        return [find_program("bash") or "bash", "-c", IN_FOLDER, folder, *words] if folder else words

    async def _eslint(self, text: str) -> str:
        named = self._in_part(self._tools.eslint, "--stdin-filename")
        words = [*named, "--fix-dry-run", "--stdin", "--format", "json"]
        # 1: problems are left that it cannot fix
        output = await self._run(words, text, codes=(0, 1))
        try:
            results = json.loads(output)
            return str(results[0].get("output", "")) if results else ""
        except (ValueError, LookupError, AttributeError, TypeError, RecursionError):
            return ""

    async def _printed(self, words: Sequence[str], text: str) -> str:
        return await self._run(words, text, codes=(0,))

    async def _run(self, words: Sequence[str], text: str, codes: tuple[int, ...]) -> str:
        """What a tool prints for a text; empty if it fails, or prints no text."""
        workspace = self._workspace
        programs = [word for word in (words[0], self._tools.eslint, self._tools.prettier) if word in words]
        places = tuple(
            os.path.dirname(place) for each in programs for place in (each, os.path.realpath(each))
        )
        environ = without_secrets(os.environ)
        setup = SandboxSetup(workspace.root, workspace.state_folders, environ, reads=True, readable=places)
        try:
            async with self._sandbox.confine(words, setup) as confined:
                code, output = await run_for_output(
                    confined.words,
                    folder=workspace.root,
                    environment=confined.environ,
                    timeout=SECONDS,
                    limit=MAX_OUTPUT,
                    stdin=text.encode(),
                    stderr=NO_STDERR,
                    start=confined.start,
                )
            return output.decode() if code in codes else ""
        except (OSError, UnicodeDecodeError):
            return ""

    def _is_sound(self, text: str) -> bool:
        """Whether a new text can replace the old one: not empty, and a module without a syntax error."""
        if not text.strip():
            return False
        problem, maybe_newer = python_problem(text) if self._path.endswith(PYTHON) else (None, False)
        return problem is None or maybe_newer
