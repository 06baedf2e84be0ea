"""The checks of a workspace: found, confined, run on a copy, and compared with what was there before."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import NamedTuple

from anyio.to_thread import run_sync

from handrail.config.settings import Settings
from handrail.protocol.errors import StorageProblem, UsageProblem
from handrail.storage.event_log import Log
from handrail.tools.sandbox.copy_mounts import no_copy_reason
from handrail.verification.base_tree import Base, git_base, session_base, source_files
from handrail.verification.check import Check, Tree
from handrail.verification.detect.javascript import prettier
from handrail.verification.detect.part import Part
from handrail.verification.detect.project import find_checks, find_checks_in, find_parts
from handrail.verification.fixes import (
    Fixed,
    FixTools,
    find_fixes,
    find_ruff_tools,
    restore_changelogs,
)
from handrail.verification.own_checks import OwnCheck, own_checks
from handrail.verification.run_check import CheckRunner, Machine
from handrail.verification.trees import copied_tree
from handrail.verification.verdict import OWN_KINDS, Progress, Verdict
from handrail.verification.verify import Verification
from handrail.workspace.files import Workspace
from handrail.workspace.scratch_copy.copies import ScratchCopies
from handrail.workspace.stat_index import StatIndex, snapshot

NO_SANDBOX = (
    "Checks run the project's own code, and this machine has no sandbox that keeps it from your files and"
    " the network ({why}). Install bubblewrap, or set commands.without_sandbox in your settings if you trust"
    " the code."
)
COPIES_FOLDER = "copies"
UNCHANGED = "not compared with {base}: nothing has changed since"


class VerifyOptions(NamedTuple):
    changed: bool = False
    """Only what the changed files concern."""
    base: str = ""
    """A commit to compare with; empty: the start of the session, else the last commit."""
    only: tuple[str, ...] = ()
    """Names of checks; empty: all."""
    session_id: str = ""


ALL = VerifyOptions()


class WorkspaceChecks:
    """Finds and runs the checks of a workspace."""

    def __init__(self, machine: Machine, settings: Settings, log: Log) -> None:
        self.machine = machine
        self._root = machine.workspace.root
        self.settings = settings
        self._log = log
        self.copies = ScratchCopies(machine.workspace, machine.log_folder / COPIES_FOLDER)

    async def find(self, options: VerifyOptions = ALL) -> list[Check]:
        """The checks that would run, and those that cannot."""
        index = await self._index()
        checks = await run_sync(self._find, index, options)
        if not options.changed:
            return checks
        return concerned(checks, await self._base(options), index.files).checks

    async def verify(self, options: VerifyOptions, progress: Progress) -> Verdict:
        """Run them; raises UsageProblem where nothing confines them, or an option names nothing."""
        notes = [await self.confinement()]
        index, base = await self._index(), await self._base(options)
        checks = await run_sync(self._find, index, options)
        if options.changed:
            checks, left_out = concerned(checks, base, index.files)
            notes += [f"left out, because none of their files has changed: {left_out}"] if left_out else []
        async with self._tree(notes) as tree:
            verification = Verification(CheckRunner(self.machine, index), tree, checks)
            verification = verification._replace(
                own=self._own(base, index, options), localises=self.settings.checks.localise
            )
            if base and self._comparable(base, tree, notes):
                before = partial(copied_tree, self.copies, base)
                verification = verification._replace(base=base.name, base_tree=before)
            return await verification._replace(notes=tuple(notes)).run(progress)

    async def fixes(self, verdict: Verdict, options: VerifyOptions) -> tuple[Fixed, ...]:
        """What code can correct in the files that issues name, as new texts; nothing is written.

        What was there before the change is left as it is. Changelogs are restored only if the check `docs`
        was named: a person may have corrected one on purpose.
        """
        if "docs" in options.only and (base := await self._base(options)):
            restored = await run_sync(restore_changelogs, self.machine.workspace, base.files, verdict.issues)
            if restored or options.only == ("docs",):
                return restored
        tree, index, environ = Tree(self._root, self._root), await self._index(), self.machine.environ
        checks = await run_sync(find_checks, tree, index.files, self.settings.checks, environ)
        parts = await run_sync(find_parts, tree, index.files, environ)
        ruff = next((check.words[0] for check in checks if check.tool == "ruff" and check.words), "")
        issues = [issue for issue in verdict.issues if issue.origin in ("change", "unknown")]
        paths = list(dict.fromkeys(issue.path for issue in issues if issue.path))
        workspace = self.machine.workspace
        common = await run_sync(find_ruff_tools, workspace, ruff)
        by_tools: dict[FixTools, list[str]] = {}
        for path in paths:
            by_tools.setdefault(_tools_of(path, common, parts, checks), []).append(path)
        found: list[Fixed] = []
        for tools, its_paths in by_tools.items():
            found += await find_fixes(workspace, self.machine.sandbox, its_paths, tools, issues)
        return tuple(found)

    async def fix_tools(self, workspace: Workspace) -> FixTools:
        """The project's own tools that can correct files of this workspace, or of a copy of it."""
        checks = find_checks_in(self._root, self.settings.checks, self.machine.environ)
        programs = {check.tool: check.words[0] for check in reversed(checks) if check.words}
        tools = await run_sync(find_ruff_tools, workspace, programs.get("ruff", ""))
        return tools._replace(eslint=programs.get("eslint", ""))

    async def _index(self) -> StatIndex:
        return await run_sync(partial(snapshot, self._root))

    def _own(self, base: Base | None, index: StatIndex, options: VerifyOptions) -> list[OwnCheck]:
        found = own_checks(base, index) if base else []
        skipped = self.settings.checks.skip
        return [
            each for each in found if each.name not in skipped and each.name in (options.only or OWN_KINDS)
        ]

    def _find(self, index: StatIndex, options: VerifyOptions) -> list[Check]:
        tree = Tree(self._root, self._root)
        found = find_checks(tree, index.files, self.settings.checks, self.machine.environ)
        names = [*(check.name for check in found), *OWN_KINDS]
        if unknown := [name for name in options.only if name not in names]:
            listed = f"There are: {', '.join(names)}."
            raise UsageProblem(f"There is no check {', '.join(unknown)} here. {listed}")
        return [check for check in found if not options.only or check.name in options.only]

    async def _base(self, options: VerifyOptions) -> Base | None:
        session = options.session_id if not options.base else ""
        if session and (found := session_base(self._log, session)):
            return found
        return await git_base(self._root, options.base)

    async def confinement(self) -> str:
        """How the checks are confined, in words."""
        protection = await self.machine.sandbox.protection()
        if not protection.confines and not self.settings.commands.without_sandbox:
            lacks = protection.not_full if protection.active else (protection.why or "none is active",)
            raise UsageProblem(NO_SANDBOX.format(why=", ".join(lacks)))
        return protection.title()

    @asynccontextmanager
    async def _tree(self, notes: list[str]) -> AsyncIterator[Tree]:
        """A copy of the workspace; the workspace itself where there can be none, which is noted."""
        reason = no_copy_reason((await self.machine.sandbox.protection()).name)
        async with AsyncExitStack() as stack:
            tree = Tree(self._root, self._root)
            if not reason:
                try:
                    tree = await stack.enter_async_context(copied_tree(self.copies))
                except StorageProblem as problem:
                    reason = f"checked in the workspace itself, because there is no copy of it: {problem}"
            notes += [reason] if reason else []
            yield tree

    def _comparable(self, base: Base, tree: Tree, notes: list[str]) -> bool:
        """Whether the checks can run on the base too; if not, it is noted why."""
        if base.problem:
            notes.append(f"not compared with {base.name}: {base.problem}")
        elif not base.files:
            notes.append(UNCHANGED.format(base=base.name))
        elif tree.copy is None:
            notes.append(f"not compared with {base.name}, because that needs a copy")
        else:
            return True
        return False


def _tools_of(path: str, common: FixTools, parts: Sequence[Part], checks: Sequence[Check]) -> FixTools:
    """The tools for a file: eslint and prettier of the nearest part around it that has them."""
    around = [part for part in parts if not part.folder or path.startswith(f"{part.folder}/")]
    around.sort(key=lambda part: len(part.folder), reverse=True)
    eslint = {check.part: check.words[0] for check in checks if check.tool == "eslint" and check.words}
    formats = next(((part.folder, found) for part in around if (found := prettier(part))), ("", ""))
    lints = next(((part.folder, eslint[part.folder]) for part in around if part.folder in eslint), None)
    folder, program = lints or (formats[0], "")
    return common._replace(eslint=program, prettier=formats[1], folder=folder)


class Concerned(NamedTuple):
    checks: list[Check]
    left_out: str


def concerned(checks: Sequence[Check], base: Base | None, files: Collection[str]) -> Concerned:
    """The checks of parts with changed files; linters get only these files.

    Raises UsageProblem where nobody knows what has changed.
    """
    if base is None:
        raise UsageProblem("Nobody knows what has changed: there is no commit here. Leave out --changed.")
    changed = sorted(base.files)
    there = [path for path in changed if path in files]
    kept, left_out = [], []
    for check in checks:
        start = f"{check.part}/" if check.part else ""
        named = source_files(there, check.part, check.suffixes) if check.suffixes else ()
        if not any(path.startswith(start) for path in changed) or (check.suffixes and not named):
            left_out.append(check.name)
        else:
            kept.append(check.limited_to(named))
    return Concerned(kept, ", ".join(left_out))
