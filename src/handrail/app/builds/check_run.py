"""A verification that runs in the background: how far it is, and its verdict."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import anyio

from handrail.engine.host.event_stream import first_problem
from handrail.protocol.errors import HandrailError
from handrail.protocol.values import Value
from handrail.tools.reports.issue import CheckResult, CheckStatus, Issue
from handrail.verification.verdict import COUNTING, Verdict

if TYPE_CHECKING:
    from handrail.verification.workspace_checks import VerifyOptions, WorkspaceChecks

__all__ = ["COUNTING", "CheckResult", "CheckRow", "CheckRun", "CheckStatus", "Issue", "RunState", "Verdict"]

RunState = Literal["running", "done", "stopped", "failed"]
"""`failed`: there is no verdict, because it could not be run."""


class CheckRow(Value):
    """One check of a verification that has no verdict yet."""

    name: str
    running: bool
    doing: str
    """Its command while it runs, or why it runs once more."""
    seconds: float
    """Since it began to do that."""
    result: CheckResult | None
    """The latest; it may run once more."""


class CheckRun:
    """Told by the verification how far it is (`Progress`)."""

    def __init__(self, options: "VerifyOptions") -> None:
        self.options = options
        self.state: RunState = "running"
        self.began = time.time()
        self.verdict: Verdict | None = None
        self.problem = ""
        self.ended = anyio.Event()
        self._clock = time.monotonic()
        self._seconds = 0.0
        self._scope = anyio.CancelScope()
        self._results: dict[str, CheckResult | None] = {}
        self._running: dict[str, tuple[float, str]] = {}

    @property
    def seconds(self) -> float:
        return round(self._seconds or time.monotonic() - self._clock, 1)

    def planned(self, names: Sequence[str]) -> None:
        self._results = dict.fromkeys(names)

    def started(self, name: str, doing: str) -> None:
        self._running[name] = (time.monotonic(), doing)

    def finished(self, result: CheckResult) -> None:
        self._running.pop(result.name, None)
        self._results[result.name] = result

    def rows(self) -> tuple[CheckRow, ...]:
        """Every check with its clock or its result; empty once there is a verdict, which has the results."""
        return () if self.verdict else tuple(map(self._row, self._results))

    def _row(self, name: str) -> CheckRow:
        since, doing = self._running.get(name, (time.monotonic(), ""))
        seconds = round(time.monotonic() - since, 1)
        return CheckRow(name, name in self._running, doing, seconds, self._results[name])

    def stop(self) -> None:
        """Cancel it; its processes end."""
        self._scope.cancel()

    async def run(self, checks: "WorkspaceChecks") -> None:
        """Verify until there is a verdict, a problem, or somebody stops it."""
        try:
            with self._scope:
                self.verdict = await checks.verify(self.options, self)
        except HandrailError as problem:
            self.problem = str(problem)
        except ExceptionGroup as group:
            first = first_problem(group)
            if not isinstance(first, HandrailError):
                raise
            self.problem = str(first)
        finally:
            self.state = "done" if self.verdict else "stopped" if self._scope.cancelled_caught else "failed"
            self._seconds = self.seconds
            self._running.clear()
            self.ended.set()
