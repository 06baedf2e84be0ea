"""Read SARIF 2.1, which many linters and type checkers can write."""

from collections.abc import Iterator
from urllib.parse import unquote

from handrail.tools.reports.issue import Issue, IssueKind, Severity
from handrail.tools.reports.report import (
    Reading,
    Report,
    clean_text,
    dicts,
    expect,
    inner,
    load_json,
    number,
    reading,
)

LEVELS: dict[str, Severity] = {"error": "high", "warning": "medium", "note": "low"}
NO_ISSUES = ("none",)


def sarif(report: Report, kind: IssueKind) -> Reading:
    """The results of all runs, without those that are suppressed."""
    runs = expect(inner(load_json(report.data), "runs"), list, "runs")

    def issues() -> Iterator[Issue]:
        for run in dicts(runs):
            for result in dicts(run.get("results")):
                level = str(result.get("level") or "warning")
                if level in NO_ISSUES or result.get("suppressions"):
                    continue
                place = inner(next(dicts(result.get("locations")), None), "physicalLocation")
                yield Issue(
                    kind,
                    LEVELS.get(level, "medium"),
                    clean_text(inner(result, "message", "text")),
                    report.path(unquote(str(inner(place, "artifactLocation", "uri") or ""))),
                    number(inner(place, "region", "startLine")),
                    number(inner(place, "region", "startColumn")),
                    clean_text(result.get("ruleId")),
                    clean_text(inner(next(dicts(result.get("fixes")), None), "description", "text")),
                )

    return reading(issues())
