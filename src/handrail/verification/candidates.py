"""Try candidates, one after the other, in one scratch copy: how many tests pass, and where to look next."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import anyio
from anyio.to_thread import run_sync

from handrail.protocol.errors import StorageProblem
from handrail.tools.reports.issue import Issue
from handrail.tools.sandbox.copy_mounts import no_copy_reason
from handrail.verification.behaviour.behaviour import TOOL, Behaviour, Function
from handrail.verification.check import Check, Tree
from handrail.verification.localise.localise import TOOLS
from handrail.verification.proposed import NoCopy
from handrail.verification.run_check import Checked, CheckRunner, judge
from handrail.verification.screening.screening import TOOL as SCREENING
from handrail.verification.screening.screening import Screened, Texts
from handrail.verification.workspace_checks import WorkspaceChecks
from handrail.workspace.scratch_copy.copy import ScratchCopy
from handrail.workspace.stat_index import snapshot

MOST_SUSPECTS = 20  # lines of one failing test
SLOW_SECONDS = 2.0  # a run of all tests that takes longer is worth a run of one of them first
TIMES_SLOWER, LEAST_SECONDS, LEAST_SCREENED = (
    4.0,
    3.0,
    1.0,
)  # how long the tests of a candidate may take: some never end
NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}


class Tested(NamedTuple):
    """What the tests say about a tree."""

    passed: bool
    passing: int
    total: int
    failing: tuple[Issue, ...] = ()
    """One for each failing test, or the one of a check that knows no tests."""
    output: str = ""
    seconds: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(issue.test or issue.message for issue in self.failing)


class Candidates:
    """Runs checks on a copy of the workspace that holds the files of a candidate."""

    def __init__(self, copy: ScratchCopy, runner: CheckRunner, checks: Sequence[Check]) -> None:
        self._copy = copy
        self._runner = runner
        self._checks = [each._replace(environ={**each.environ, **NO_BYTECODE}) for each in checks]
        self._before: dict[str, Tested] = {}
        self._screens = [check.tool for check in self._checks] == [SCREENING]
        self._others: frozenset[str] = frozenset()
        """Tests that failed before and may go on failing."""

    async def before(self, about: Collection[str] = ()) -> Tested:
        """What the tests say about the workspace as it is.

        `about` names the failing tests that a candidate has to correct; without any that fails, all of them.
        """
        tree = await run_sync(self._place, {})
        tested = [await self._run(check, tree) for check in self._checks]
        failing = {name for each in tested for name in each.names}
        if failing & set(about):
            self._others = frozenset(failing - set(about))
        for check, each in zip(self._checks, tested, strict=True):
            self._before[check.name] = self._without_others(each)
        return _together(list(self._before.values()))

    def _without_others(self, tested: Tested) -> Tested:
        """The result as far as it is about this task."""
        failing = tuple(each for each in tested.failing if (each.test or each.message) not in self._others)
        if len(failing) == len(tested.failing):
            return tested
        output = "\n".join(f"{each.path}:{each.line}: {each.test}\n{each.message}" for each in failing)
        return tested._replace(passed=not failing, failing=failing, output=output)

    async def test(self, files: Mapping[str, str]) -> Tested:
        """What they say with these files in place; checks that failed before run first."""
        tree = await run_sync(self._place, files)
        done: list[Tested] = []
        for check in sorted(self._checks, key=lambda each: self._before[each.name].passed):
            before = self._before[check.name]
            limit = max(LEAST_SECONDS, TIMES_SLOWER * before.seconds)
            quick = check._replace(seconds=min(check.seconds, limit))
            if failed := await self._first_test(quick, before, tree):
                return failed
            done.append(await self._run(quick, tree))
        return _together(done)

    @property
    def screens(self) -> bool:
        """Whether many texts of a file can be tried at once, as far as is known."""
        return self._screens

    async def screen(
        self, files: Mapping[str, str], path: str, texts: Sequence[str], failing: Sequence[Issue], most: float
    ) -> dict[int, Screened]:
        """How these tests, or all where none are given, do with each text; those that fit into the time.

        Empty where that cannot be known. A text with a result is not yet tested: see `test`.
        """
        check = self._checks[0]
        tree = await run_sync(self._place, {**files, path: texts[0]})
        each = max(LEAST_SCREENED, TIMES_SLOWER * self._before[check.name].seconds)
        found = await self._runner.screened(check, failing, Texts(path, texts, each, most), tree)
        self._screens = any(result.ran for result in found.values())
        if not failing:  # all tests: those that may fail count as passed
            may_fail = len(self._others)
            found = {
                number: each._replace(passed=min(each.ran, each.passed + may_fail))
                for number, each in found.items()
            }
        return found if self._screens else {}

    async def run(self, check: Check, files: Mapping[str, str]) -> Tested:
        """What one other check says."""
        return await self._run(check, await run_sync(self._place, files))

    async def suspects(self, files: Mapping[str, str], tested: Tested) -> tuple[Issue, ...]:
        """The failing tests with the lines that they run, the most suspicious first."""
        tree = await run_sync(self._place, files)
        found: list[Issue] = []
        for check in self._checks:
            mine = [each for each in tested.failing if each.test and each.kind == check.kind]
            if mine and check.tool in TOOLS:
                found += (await self._runner.localised(check, mine, tree, MOST_SUSPECTS)).issues
        return tuple(found) or tested.failing

    @property
    def shows_behaviour(self) -> bool:
        return any(check.tool == TOOL for check in self._checks)

    async def behaviour(self, files: Mapping[str, str], functions: Sequence[Function]) -> Behaviour:
        """What these functions do for inputs near those of the tests, with these files in place."""
        tree = await run_sync(self._place, files)
        found: dict[Function, str] = {}
        for check in self._checks:
            found |= await self._runner.behaviour(check, functions, tree)
        return found

    async def _first_test(self, check: Check, before: Tested, tree: Tree) -> Tested | None:
        """The result of the first failing test alone, if it still fails and all tests would take long."""
        issue = next(iter(before.failing), None)
        if before.seconds < SLOW_SECONDS or issue is None or check.alone is None:
            return None
        words = check.alone(issue)
        if not words:
            return None
        checked = await run_sync(judge, check, await self._runner.run(check, words, tree))
        return None if checked.result.status == "passed" else before._replace(output="")

    async def _run(self, check: Check, tree: Tree) -> Tested:
        ran = await self._runner.run(check, check.words, tree)
        checked: Checked = await run_sync(judge, check, ran)
        failing = {issue.test or issue.message: issue for issue in checked.result.issues}
        total = checked.reading.tests if checked.reading.tests is not None else 1
        passed = checked.result.status == "passed"
        passing = total if passed else max(0, total - max(1, len(failing)))
        known = checked.result.status in ("passed", "failed")
        tested = Tested(
            passed,
            passing if known else 0,
            total,
            tuple(failing.values()),
            ran.report.text or checked.result.reason,
            ran.ended.seconds,
        )
        return self._without_others(tested) if known else tested

    def _place(self, files: Mapping[str, str]) -> Tree:
        self._copy.refresh()
        for path, text in files.items():
            there = self._copy.root / path
            mode = there.stat().st_mode & 0o777 if there.is_file() else 0o644
            self._copy.write(path, text.encode(), mode=mode)
        return Tree(self._copy.root, self._copy.shown_at, self._copy.shown())


def _together(done: Sequence[Tested]) -> Tested:
    return Tested(
        all(each.passed for each in done),
        sum(each.passing for each in done),
        sum(each.total for each in done),
        tuple(issue for each in done for issue in each.failing),
        "\n".join(each.output for each in done if not each.passed),
        sum(each.seconds for each in done),
    )


@asynccontextmanager
async def open_candidates(checks: WorkspaceChecks, chosen: Sequence[Check]) -> AsyncIterator[Candidates]:
    """A copy to try candidates in; raises NoCopy where there can be none, UsageProblem without a sandbox."""
    await checks.confinement()
    if reason := no_copy_reason((await checks.machine.sandbox.protection()).name):
        raise NoCopy(reason)
    taken = checks.copies.take()
    try:
        copy = await run_sync(taken.__enter__)
    except StorageProblem as problem:
        raise NoCopy(f"there is no copy of the workspace: {problem}") from problem
    try:
        index = await run_sync(snapshot, checks.machine.workspace.root)
        yield Candidates(copy, CheckRunner(checks.machine, index), chosen)
    finally:
        with anyio.CancelScope(shield=True):
            await run_sync(taken.__exit__, None, None, None)
