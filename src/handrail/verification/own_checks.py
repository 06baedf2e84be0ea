"""Handrail's own checks of a change: consistency, documents, files that nobody planned.

They judge the difference between a tree and its base, so all that they find is the change's. Nothing of the
repository runs in them.
"""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from anyio.to_thread import run_sync
from msgspec.structs import replace

from handrail.tools.reports.issue import CheckResult, Issue, IssueKind
from handrail.verification.base_tree import Base
from handrail.verification.check import Tree
from handrail.verification.consistency.run import run_consistency
from handrail.verification.consistency.source_tree import TouchedFile
from handrail.verification.documents.changelog import is_changelog
from handrail.verification.documents.integrity import check_documents
from handrail.verification.ghost_files import TrackedUnknown, find_ghost_files
from handrail.workspace.stat_index import StatIndex


class OwnCheck(NamedTuple):
    name: IssueKind
    run: Callable[[Tree], Awaitable[CheckResult]]


def own_checks(base: Base, index: StatIndex) -> list[OwnCheck]:
    """Those that the change gives reason for; `index` is of the workspace."""
    touched = [
        TouchedFile(path, before.data if before else None, is_new=before is None)
        for path, before in sorted(base.files.items())
    ]
    found = [OwnCheck("consistency", partial(_consistency, touched=touched))] if touched else []
    if any(is_changelog(file.path) for file in touched):
        found.append(OwnCheck("docs", partial(_documents, touched=touched, by_agent=base.is_session)))
    if base.is_session:
        found.append(OwnCheck("ghost", partial(_ghosts, base=base, index=index)))
    return found


async def _consistency(tree: Tree, touched: list[TouchedFile]) -> CheckResult:
    return _blamed(await run_consistency(tree.root, touched))


async def _documents(tree: Tree, touched: list[TouchedFile], *, by_agent: bool) -> CheckResult:
    began = time.monotonic()
    issues = await run_sync(check_documents, tree.root, touched)
    if not by_agent:  # a person may correct what a changelog says
        issues = tuple(replace(issue, severity="low") for issue in issues)
    return _blamed(_result("docs", issues, began))


async def _ghosts(tree: Tree, base: Base, index: StatIndex) -> CheckResult:
    """Never fails: the user may have made such a file meanwhile."""
    began = time.monotonic()
    older = {path for path, found in index.files.items() if found.mtime_ns < base.since * 1e9}
    try:
        # Not in a copy, where commands may be writing.
        issues = await run_sync(find_ghost_files, tree.shown_at, older | set(base.files))
    except TrackedUnknown as problem:
        return CheckResult("ghost", "ghost", "unavailable", reason=str(problem))
    return _blamed(_result("ghost", tuple(replace(issue, severity="low") for issue in issues), began))


def _result(name: IssueKind, issues: tuple[Issue, ...], began: float) -> CheckResult:
    grave = any(issue.severity != "low" for issue in issues)
    seconds = round(time.monotonic() - began, 3)
    return CheckResult(name, name, "failed" if grave else "passed", issues, seconds=seconds)


def _blamed(result: CheckResult) -> CheckResult:
    issues = tuple(replace(issue, origin="change") for issue in result.issues)
    return replace(result, issues=issues, seconds=round(result.seconds, 3))
