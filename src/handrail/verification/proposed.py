"""Verify files that are only proposed: in a scratch copy, compared with the results from before the task."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path

from anyio.to_thread import run_sync
from msgspec.structs import replace

from handrail.protocol.errors import PathProblem, StorageProblem
from handrail.protocol.values import Value
from handrail.tools.reports.issue import CheckResult
from handrail.tools.sandbox.copy_mounts import no_copy_reason
from handrail.verification.base_tree import PLAIN, Base, FileBefore
from handrail.verification.baseline import compare
from handrail.verification.check import Check, Tree
from handrail.verification.detect.project import find_checks
from handrail.verification.fixes import find_fixes
from handrail.verification.own_checks import own_checks
from handrail.verification.run_check import CheckRunner
from handrail.verification.trees import taken_copy
from handrail.verification.verdict import OWN_KINDS, Progress, Verdict, verdict_of
from handrail.verification.verify import Verification
from handrail.verification.workspace_checks import WorkspaceChecks
from handrail.workspace.files import Workspace
from handrail.workspace.scratch_copy.copy import MountedLayer, ScratchCopy
from handrail.workspace.scratch_copy.layers import Layers
from handrail.workspace.stat_index import StatIndex, differences, snapshot

BEFORE = "before the task"
LOADED = (".py", ".ini", ".toml", ".cfg", ".pth", ".js", ".cjs", ".mjs", ".ts", ".json")
"""Endings of files that a test run could load although they were not there when it began."""


class ProposedFile(Value):
    """A file as a task would leave it."""

    path: str
    text: str | None
    """None: it is deleted."""
    base: str = ""
    """Hash of the content that it replaces; empty: there is no file yet."""


class NoCopy(Exception):
    """There can be no scratch copy here; the message says why."""


class Quiet:
    """Progress that nobody follows."""

    def planned(self, names: Sequence[str]) -> None:
        pass

    def started(self, name: str, doing: str) -> None:
        pass

    def finished(self, result: CheckResult) -> None:
        pass


class ProposalChecks:
    """Runs the checks of a workspace on copies of it that hold proposed files."""

    def __init__(self, checks: WorkspaceChecks) -> None:
        self._machine = checks.machine
        self._settings = checks.settings
        self._copies = checks.copies
        self._confinement = checks.confinement
        self._fix_tools = checks.fix_tools

    def layers(self, key: str) -> Layers:
        """The folders of packages that commands of a build have changed."""
        return Layers(self._machine.workspace.root, self._copies.folder, key)

    @asynccontextmanager
    async def tree(
        self, files: Sequence[ProposedFile], layers: Sequence[MountedLayer] = ()
    ) -> AsyncIterator[Tree]:
        """A copy of the workspace with these files; raises NoCopy, and PathProblem for a changed base."""
        async with self.copy(files) as copy:
            shown = await run_sync(copy.shown, layers)
            yield Tree(copy.root, copy.shown_at, shown)

    @asynccontextmanager
    async def copy(self, files: Sequence[ProposedFile]) -> AsyncIterator[ScratchCopy]:
        """The copy itself, for those who run commands that change it."""
        contents = {each.path: self._content(each) for each in files}
        try:
            async with taken_copy(self._copies, Base(BEFORE, contents)) as copy:
                for each in files:  # the copy was made from the workspace after the bases were compared
                    self._check_base(each)
                yield copy
        except StorageProblem as problem:
            raise NoCopy(f"there is no copy of the workspace: {problem}") from problem

    async def why_in_workspace(self) -> str:
        """Why proposed files are checked in the workspace itself, to be shown; empty: in a copy."""
        if self._settings.build.verify_in == "workspace":
            return "checked in the workspace itself, because build.verify_in says so."
        return no_copy_reason((await self._machine.sandbox.protection()).name)

    async def verify(
        self,
        files: Sequence[ProposedFile],
        before: Sequence[CheckResult],
        progress: Progress,
        layers: Sequence[MountedLayer] = (),
    ) -> Verdict:
        """What the checks say about the workspace with these files, in a copy.

        `before` are the results without them. A check that the files would remove runs all the same.
        """
        async with self.tree(files, layers) as tree:
            return await self._verify(tree, {each.path: self._old(each) for each in files}, before, progress)

    async def verify_workspace(
        self,
        touched: Mapping[str, FileBefore | None],
        before: Sequence[CheckResult],
        progress: Progress,
    ) -> Verdict:
        """What the checks say about the workspace as it is; `touched`: what these files were before."""
        root = self._machine.workspace.root
        return await self._verify(Tree(root, root), touched, before, progress)

    async def _verify(
        self,
        tree: Tree,
        touched: Mapping[str, FileBefore | None],
        before: Sequence[CheckResult],
        progress: Progress,
    ) -> Verdict:
        notes = (await self._confinement(),)
        index = await run_sync(partial(snapshot, self._machine.workspace.root))
        checks = await run_sync(partial(self._find, tree, index.files))
        own = own_checks(Base(BEFORE, dict(touched)), index) if touched else []
        own = [each for each in own if each.name not in self._settings.checks.skip]
        run = Verification(CheckRunner(self._machine, index), tree, checks, own, notes=notes)
        run = run._replace(localises=self._settings.checks.localise)
        root = self._machine.workspace.root
        begun = await run_sync(partial(snapshot, tree.root, rules_of=root))
        verdict = await run.run(progress)
        written = await run_sync(_written, tree, root, begun)
        known = {result.name: result for result in before}
        results = tuple(
            result if result.kind in OWN_KINDS else compare(result, known.get(result.name))
            for result in verdict.checks
        )
        base = BEFORE if before else ""
        return replace(verdict, status=verdict_of(results), checks=results, base=base, written=written)

    async def fixed(self, files: Sequence[ProposedFile], verdict: Verdict) -> tuple[ProposedFile, ...]:
        """The files after what code alone can correct in them; the same ones where that is nothing."""
        issues = [issue for issue in verdict.issues if issue.origin in ("change", "unknown")]
        paths = {issue.path for issue in issues}
        named = [each.path for each in files if each.path in paths and each.text is not None]
        if not named:
            return tuple(files)
        async with self.tree(files) as tree:
            copy = Workspace(tree.root)
            tools = await self._fix_tools(copy)
            found = await find_fixes(copy, self._machine.sandbox, named, tools, issues)
        texts = {each.path: each.text for each in found}
        return tuple(replace(each, text=texts.get(each.path, each.text)) for each in files)

    def _find(self, tree: Tree, files: Collection[str]) -> list[Check]:
        """The checks of the workspace, and those that the proposed files add."""
        settings, environ, root = self._settings.checks, self._machine.environ, self._machine.workspace.root
        old = find_checks(Tree(root, root), files, settings, environ)
        now = snapshot(tree.root, rules_of=root).files
        names = {check.name for check in old}
        new = find_checks(tree, now, settings, environ)
        return [*old, *(check for check in new if check.name not in names)]

    def _content(self, file: ProposedFile) -> FileBefore | None:
        self._check_base(file)
        if file.text is None:
            return None
        old = self._old(file)
        return FileBefore(file.text.encode(), old.mode if old else PLAIN)

    def _old(self, file: ProposedFile) -> FileBefore | None:
        if not file.base:
            return None
        place = self._machine.workspace.resolve(file.path)
        return FileBefore(read_base(self._machine.workspace, file.path), place.absolute.stat().st_mode)

    def _check_base(self, file: ProposedFile) -> None:
        check_base(self._machine.workspace, file)


def _written(tree: Tree, rules_of: Path, begun: StatIndex) -> tuple[str, ...]:
    """What was written in the tree since then, also if it has its old content and time again."""
    found = differences(begun, snapshot(tree.root, since=begun, rules_of=rules_of))
    loaded = [path for path in found.added if path.endswith(LOADED)]
    return (*found.changed, *found.removed, *loaded)


def check_base(workspace: Workspace, file: ProposedFile) -> None:
    """Raises PathProblem where the workspace no longer holds what the file is based on."""
    exists = workspace.exists(file.path)
    fresh = exists and sha256(read_base(workspace, file.path)).hexdigest() == file.base
    if fresh if file.base else not exists:
        return
    message = f"{file.path} was changed by somebody else meanwhile. Nothing was applied: start again."
    raise PathProblem(message, "stale_file", file.path)


def read_base(workspace: Workspace, path: str) -> bytes:
    return workspace.read(path).data
