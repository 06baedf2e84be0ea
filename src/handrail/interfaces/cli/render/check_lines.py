"""Checks and their results as lines."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from handrail.interfaces.cli.render.styles import (
    INDENT,
    Line,
    count_of,
    fit,
    format_clock,
    format_duration,
    line,
    one_line,
    wrap,
)

if TYPE_CHECKING:
    from handrail.app.builds.verify import CheckResult, Issue, Verdict

STATUS_STYLES = {"passed": "good", "failed": "bad", "unavailable": "bold", "unverified": "bold"}
SEVERITY_STYLES = {"critical": "bad", "high": "bad", "medium": "bold", "low": "dim"}
ORIGINS = {"before": "was there before", "flaky": "flaky: passed when it ran alone"}
AS_BEFORE = "failed as before"
MAX_ISSUES = 30
NAME_WIDTH = 24
STATUS_WIDTH = 12


def name_column(names: Iterable[str]) -> int:
    return min(NAME_WIDTH, max(map(len, names), default=0))


def running_line(name: str, doing: str, seconds: float, column: int, width: int) -> Line:
    """`tests   running  12 s  .venv/bin/pytest`."""
    head = f"{INDENT}{fit(name, column):<{column}}  "
    clock = f"{'running':<{STATUS_WIDTH}}{format_clock(seconds):>9}  "
    return line(head, ("dim", clock + fit(one_line(doing), width - len(head) - len(clock))))


def waiting_line(name: str, column: int) -> Line:
    return line(f"{INDENT}{fit(name, column):<{column}}  ", ("dim", "waiting"))


def result_line(result: "CheckResult", column: int, width: int) -> Line:
    """`tests   failed       3.2 s  2 issues, 1 was there before; 12 tests`."""
    head = f"{INDENT}{fit(result.name, column):<{column}}  "
    clock = format_duration(result.seconds) if result.seconds else ""
    status = (STATUS_STYLES[result.status], f"{result.status:<{STATUS_WIDTH}}")
    told = one_line(result_text(result))
    used = len(head) + STATUS_WIDTH + 11
    return line(head, status, ("dim", f"{clock:>9}"), "  ", fit(told, max(10, width - used)))


def result_text(result: "CheckResult") -> str:
    parts = [result.detail, result.reason.partition("\n")[0]]
    if result.issues:
        parts.insert(0, _counted(result.issues))
    return "; ".join(filter(None, parts))


def _counted(issues: "Sequence[Issue]") -> str:
    before = sum(issue.origin == "before" for issue in issues)
    flaky = sum(issue.origin == "flaky" for issue in issues)
    change = sum(issue.origin == "change" for issue in issues)
    counts = {"by the change": change, "there before": before, "flaky": flaky}
    notes = [f"{count:,} {what}" for what, count in counts.items() if count]
    return ", ".join([count_of(len(issues), "issue"), *notes])


def issue_lines(result: "CheckResult", width: int, most: int = MAX_ISSUES) -> list[Line]:
    """The issues of a check below its name, the gravest first."""
    if not result.issues and "\n" not in result.reason:
        return []
    rows = [line(("bold", result.name))]
    for issue in result.issues[:most]:
        rows += wrap(_issue_line(issue), width, INDENT * 3)
    if len(result.issues) > most:
        rows.append(line(("dim", f"{INDENT}{len(result.issues) - most:,} more; --json has all of them")))
    rows += [line(("dim", f"{INDENT}{one_line(text)}")) for text in result.reason.splitlines()[1:]]
    return [*rows, ()]


def _issue_line(issue: "Issue") -> Line:
    place = f"{issue.path}:{issue.line}" if issue.line else issue.path
    words = [one_line(text) for text in (place, issue.test, issue.rule) if text]
    head = "  ".join(words)
    parts: list[str | tuple[str, str]] = [INDENT, (SEVERITY_STYLES[issue.severity], f"{issue.severity:<9}")]
    parts += [("accent", head), "  " if head else "", one_line(issue.message)]
    if issue.fix:
        parts.append(("dim", f"  fix: {one_line(issue.fix)}"))
    if told := ORIGINS.get(issue.origin):
        parts.append(("bold", f"  ({told})"))
    if issue.suspects:
        lines = ", ".join(f"{each.path}:{each.line}" for each in issue.suspects[:5])
        parts.append(("dim", f"  look at: {one_line(lines)}"))
    return line(*parts)


def verdict_lines(verdict: "Verdict", width: int) -> list[Line]:
    """All issues, then one line with the verdict and what it rests on."""
    rows = [row for result in verdict.checks for row in issue_lines(result, width)]
    for text in verdict.notes:
        rows += wrap(line(("dim", one_line(text))), width)
    style = STATUS_STYLES[verdict.status]
    return [*rows, *wrap(line((style, verdict.status), f": {verdict_text(verdict)}"), width)]


def _told_status(result: "CheckResult") -> str:
    old = result.status == "failed" and all(issue.origin in ORIGINS for issue in result.issues)
    return AS_BEFORE if old else result.status


def verdict_text(verdict: "Verdict") -> str:
    """Why the verdict is what it is, in one sentence."""
    if not verdict.checks:
        return "no check was found here; [[checks.commands]] in the settings adds one"
    counts = {
        status: [result.name for result in verdict.checks if _told_status(result) == status]
        for status in ("passed", "failed", AS_BEFORE, "unverified", "unavailable")
    }
    told = [f"{', '.join(names)} {status}" for status, names in counts.items() if names]
    before = sum(issue.origin == "before" for issue in verdict.issues)
    change = sum(issue.origin == "change" for issue in verdict.issues)
    if verdict.base:
        by_change = f"{count_of(change, 'issue')} by the change"
        told.append(f"compared with {verdict.base}: {by_change}, {before:,} there before")
    elif not any(counts[status] for status in ("passed", "failed", AS_BEFORE)):
        told.append("nothing could be checked")
    return "; ".join(told)
