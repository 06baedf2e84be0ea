"""Verify a tree: run its checks in parallel, run failing tests once more alone, and compare with the base."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

import anyio
from anyio.to_thread import run_sync
from msgspec.structs import replace

from handrail.protocol.errors import PathProblem, StorageProblem
from handrail.tools.reports.issue import CheckResult, CheckStatus, Issue, sorted_issues
from handrail.verification.baseline import compare
from handrail.verification.check import Check, Tree
from handrail.verification.localise.localise import TOOLS
from handrail.verification.own_checks import OwnCheck
from handrail.verification.run_check import Checked, CheckRunner, judge
from handrail.verification.verdict import COUNTING, Progress, Verdict, verdict_of

MAX_ALONE = 10
"""Failing tests of one check that are run again; where more fail, chance is not the reason."""
MAX_LOCALISED = 60.0
"""Seconds that tests may have taken to be run once more for the lines that they run."""

BaseTree = Callable[[], AbstractAsyncContextManager[Tree]]
"""Opens the tree as it was before the change."""


class Verification(NamedTuple):
    """What is verified, and against what."""

    runner: CheckRunner
    tree: Tree
    checks: Sequence[Check]
    own: Sequence[OwnCheck] = ()
    base: str = ""
    base_tree: BaseTree | None = None
    localises: bool = True
    """Whether suspicious lines are looked for where tests fail."""
    notes: tuple[str, ...] = ()

    async def run(self, progress: Progress) -> Verdict:
        began = time.monotonic()
        progress.planned([*(check.name for check in self.checks), *(check.name for check in self.own)])
        own: dict[str, CheckResult] = {}
        async with anyio.create_task_group() as tasks:
            for each in self.own:
                tasks.start_soon(self._run_own, each, own, progress)
            checked = await self._run_all(self.checks, self.tree, progress, "")
        pairs = zip(self.checks, checked, strict=True)
        checked = [await self._without_flaky(check, each, progress) for check, each in pairs]
        results = _all_results(self.checks, checked)
        base, notes = "", self.notes
        if self.base_tree and any(result.status == "failed" for result in results):
            try:
                async with self.base_tree() as tree:
                    base, results = self.base, await self._compared(results, tree, progress)
            except (StorageProblem, PathProblem) as problem:
                notes = (*notes, f"not compared with {self.base}: {problem}")
        if self.localises:
            results = [await self._localised(result, progress) for result in results]
        results += [own[each.name] for each in self.own]
        seconds = round(time.monotonic() - began, 3)
        return Verdict(verdict_of(results), tuple(results), base, notes, seconds)

    async def _localised(self, result: CheckResult, progress: Progress) -> CheckResult:
        """The result of tests with suspicious lines for what counts; they run once more for that."""
        check = next((each for each in self.checks if each.name == result.name), None)
        issues = [issue for issue in result.issues if issue.test and issue.origin in COUNTING]
        if check is None or not issues or result.status != "failed" or check.tool not in TOOLS:
            return result
        if result.seconds > MAX_LOCALISED:
            return result
        progress.started(result.name, "once more, to find the lines that failing tests run")
        found = await self.runner.localised(check, issues, self.tree)
        known = dict(zip(issues, found.issues, strict=True))
        localised = replace(result, issues=tuple(known.get(issue, issue) for issue in result.issues))
        progress.finished(localised)
        return localised

    async def _run_own(self, check: OwnCheck, done: dict[str, CheckResult], progress: Progress) -> None:
        progress.started(check.name, "by Handrail itself")
        done[check.name] = await check.run(self.tree)
        progress.finished(done[check.name])

    async def _run_all(
        self, checks: Sequence[Check], tree: Tree, progress: Progress, doing: str
    ) -> list[Checked]:
        """Those that write run one by one, after the others."""
        done: dict[str, Checked] = {}
        limiter = anyio.CapacityLimiter(max(2, os.cpu_count() or 1))

        async def run(check: Check) -> None:
            async with limiter:
                progress.started(check.name, doing or check.command)
                done[check.name] = await self.runner.check(check, tree)
                if not doing:
                    progress.finished(done[check.name].result)

        async with anyio.create_task_group() as tasks:
            for check in checks:
                if not check.writes:
                    tasks.start_soon(run, check)
        for check in checks:
            if check.writes:
                await run(check)
        return [done[check.name] for check in checks]

    async def _without_flaky(self, check: Check, checked: Checked, progress: Progress) -> Checked:
        """The result after each failing test ran once more alone; those that pass then do not count.

        They must also pass when all tests run once more: one that fails there again is broken by other tests.
        """
        failing = [issue for issue in checked.result.issues if issue.test]
        if checked.result.status != "failed" or check.alone is None or not 0 < len(failing) <= MAX_ALONE:
            return checked
        progress.started(check.name, "failing tests once more, each alone")
        flaky = {issue for issue in failing if await self._passes_alone(check, issue)}
        if flaky:
            progress.started(check.name, "all tests once more, because some pass alone")
            passed = set((await self.runner.check(check, self.tree)).result.passed)
            flaky = {issue for issue in flaky if issue.test in passed}
        issues = [
            replace(issue, origin="flaky", severity="low") if issue in flaky else issue
            for issue in checked.result.issues
        ]
        counting = any(issue.origin != "flaky" for issue in issues)
        status: CheckStatus = checked.result.status if counting else "passed"
        result = replace(checked.result, issues=sorted_issues(issues), status=status)
        progress.finished(result)
        return checked._replace(result=result)

    async def _passes_alone(self, check: Check, issue: Issue) -> bool:
        words = check.alone(issue) if check.alone else ()
        if not words:
            return False
        ran = await self.runner.run(check, words, self.tree)
        # Judged by its report too: some runners succeed where no test has this name.
        return (await run_sync(judge, check, ran)).result.status == "passed"

    async def _compared(
        self, results: list[CheckResult], tree: Tree, progress: Progress
    ) -> list[CheckResult]:
        """The results with who is to blame for each issue: the failed checks run on the base too."""
        failed = {result.name for result in results if result.status == "failed"}
        again = [check for check in self.checks if failed & {check.name, coverage_name(check)}]
        before = await self._run_all(again, tree, progress, f"as it was before, at {self.base}")
        known = {result.name: result for result in _all_results(again, before)}
        compared = [compare(result, known.get(result.name)) for result in results]
        for result in compared:
            if result.name in known:
                progress.finished(result)
        return compared


def coverage_name(check: Check) -> str:
    return f"{check.part}/coverage" if check.part else "coverage"


def _all_results(checks: Sequence[Check], checked: Sequence[Checked]) -> list[CheckResult]:
    return [result for check, each in zip(checks, checked, strict=True) for result in _results(check, each)]


def _results(check: Check, checked: Checked) -> list[CheckResult]:
    """The result, and that of the coverage which it measured."""
    percent = checked.reading.coverage
    if check.threshold is None or percent is None:
        return [checked.result]
    low = not percent >= check.threshold  # also for NaN
    text = f"tests run {percent:.1f} % of the code; {check.threshold:g} % are needed"
    issues = (Issue("coverage", "medium", text),) if low else ()
    name = coverage_name(check)
    detail = f"{percent:.1f} % of {check.threshold:g} %"
    coverage = CheckResult(name, "coverage", "failed" if low else "passed", issues, detail=detail)
    return [_without_coverage(checked.result) if low else checked.result, coverage]


def _without_coverage(result: CheckResult) -> CheckResult:
    """The result of tests without what pytest-cov says about coverage, which has a result of its own."""
    issues = tuple(issue for issue in result.issues if issue.kind != "coverage")
    if issues == result.issues:
        return result
    return replace(result, issues=issues, status=result.status if issues else "passed")
