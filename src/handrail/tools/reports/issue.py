"""An issue that a check found, and the result of one check."""

from typing import Literal

from handrail.protocol.values import Value

IssueKind = Literal["types", "lint", "tests", "build", "coverage", "ghost", "docs", "consistency"]
Severity = Literal["critical", "high", "medium", "low"]
Origin = Literal["unknown", "change", "before", "flaky"]
"""Who is to blame for an issue: the change, or it was there before; `flaky`: a failing test that passed when
it ran once more alone; `unknown`: there was nothing to compare with."""
CheckStatus = Literal["passed", "failed", "unavailable", "unverified"]
"""`unavailable`: the tool is missing. `unverified`: it ran, but its result is unknown (time limit, crash,
output that cannot be read). Neither ever counts as passed."""
SEVERITIES: tuple[Severity, ...] = ("critical", "high", "medium", "low")


class Suspect(Value):
    """A line that failing tests run more often than passing ones."""

    path: str
    line: int
    score: float


class Issue(Value):
    kind: IssueKind
    severity: Severity
    message: str
    path: str = ""
    """Relative to the workspace; empty: the issue has no file."""
    line: int = 0
    column: int = 0
    rule: str = ""
    """The tool's own code for it, such as `F821`."""
    fix: str = ""
    """What to do about it, in words, where the tool says so."""
    test: str = ""
    """The failing test, named as its runner names it."""
    origin: Origin = "unknown"
    suspects: tuple[Suspect, ...] = ()


class CheckResult(Value):
    name: str
    """Unique in a project, such as `web/lint` in a repository with several parts."""
    kind: IssueKind
    status: CheckStatus
    issues: tuple[Issue, ...] = ()
    command: str = ""
    seconds: float = 0.0
    reason: str = ""
    """Why it is unavailable or unverified, and what to do about it."""
    detail: str = ""
    """What the tool says about a result that is no issue, such as `12 tests`."""
    replaced: tuple[str, ...] = ()
    """Functions of the test runner that were replaced while the tests ran, as some of its plugins do too."""
    passed: tuple[str, ...] = ()
    """The tests that passed, named as in issues; empty where the report does not name them."""


def sorted_issues(issues: "tuple[Issue, ...] | list[Issue]") -> tuple[Issue, ...]:
    """Each issue once, the gravest first, then by place."""
    unique = dict.fromkeys(issues)
    return tuple(
        sorted(unique, key=lambda each: (SEVERITIES.index(each.severity), each.path, each.line, each.column))
    )
