"""The result of all checks together, and who is told on the way to it."""

from collections.abc import Sequence
from typing import Literal, Protocol

from handrail.protocol.values import Value
from handrail.tools.reports.issue import CheckResult, Issue, IssueKind, Origin, sorted_issues

VerdictStatus = Literal["passed", "failed", "unverified"]
OWN_KINDS: tuple[IssueKind, ...] = ("consistency", "docs", "ghost")
"""Checks by Handrail itself. Without one by the project's own tools, these verify nothing."""
COUNTING: tuple[Origin, ...] = ("change", "unknown")
EXIT_STATUSES: dict[VerdictStatus, int] = {"passed": 0, "failed": 1, "unverified": 5}


class Verdict(Value):
    """The result of all checks together."""

    status: VerdictStatus
    checks: tuple[CheckResult, ...]
    base: str = ""
    """What it was compared with, such as `HEAD`; empty: with nothing."""
    notes: tuple[str, ...] = ()
    """What a reader must know: how it was confined, what was left out, why there is no base."""
    seconds: float = 0.0
    written: tuple[str, ...] = ()
    """Files of the tree that were changed or deleted while the checks of a proposal ran, and new files that
    tests or their runners could have loaded."""

    @property
    def exit_status(self) -> int:
        return EXIT_STATUSES[self.status]

    @property
    def issues(self) -> tuple[Issue, ...]:
        return sorted_issues([issue for check in self.checks for issue in check.issues])


class Progress(Protocol):
    """Told what happens, as it happens."""

    def planned(self, names: Sequence[str]) -> None: ...

    def started(self, name: str, doing: str) -> None:
        """A check begins; `doing` is its command, or why it runs once more."""

    def finished(self, result: CheckResult) -> None:
        """It has a result, perhaps another one than before."""


def verdict_of(results: Sequence[CheckResult]) -> VerdictStatus:
    """Failed if the change broke something; passed only if something was checked and nothing is unknown."""
    if any(result.status == "failed" and broken_by_change(result) for result in results):
        return "failed"
    if any(result.status == "unverified" for result in results):
        return "unverified"
    ran = any(result.status in ("passed", "failed") and result.kind not in OWN_KINDS for result in results)
    return "passed" if ran else "unverified"


def broken_by_change(result: CheckResult) -> bool:
    """Whether an issue counts: it was not there before, and is not flaky."""
    return any(issue.origin in COUNTING for issue in result.issues)
