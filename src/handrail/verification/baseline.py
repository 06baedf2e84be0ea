"""Tell what a change broke from what was broken before it."""

import re
from collections import Counter

from msgspec.structs import replace

from handrail.tools.reports.issue import CheckResult, Issue, Origin

NUMBERS = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?")


def compare(result: CheckResult, before: CheckResult | None) -> CheckResult:
    """The result with the origin of each issue, by the result of the same check on the base.

    Where the base gave no result, nobody knows: `unknown` counts like the change's.
    """
    if before is None or before.status not in ("passed", "failed"):
        return result
    known = Counter(_key(issue) for issue in before.issues)
    issues = []
    for issue in result.issues:
        if issue.origin == "flaky":
            issues.append(issue)
            continue
        key = _key(issue)
        known[key] -= 1
        origin: Origin = "before" if known[key] >= 0 else "change"
        issues.append(replace(issue, origin=origin))
    return replace(result, issues=tuple(issues))


def _key(issue: Issue) -> tuple[str, ...]:
    """What stays the same when lines move: a test by its name, anything else by rule, file and message."""
    if issue.test:
        return (issue.kind, issue.test)
    if issue.kind == "coverage":
        return (issue.kind,)
    return (issue.kind, issue.path, issue.rule, NUMBERS.sub("0", issue.message))
