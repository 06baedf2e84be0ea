"""A verdict as SARIF 2.1 and as JUnit XML, for CI systems."""

from typing import Any
from xml.sax.saxutils import escape, quoteattr

from handrail import __version__
from handrail.protocol.values import to_json
from handrail.tools.reports.issue import CheckResult, Issue, Severity
from handrail.verification.verdict import Verdict

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS: dict[Severity, str] = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}
BASELINES = {"before": "unchanged", "change": "new"}
NOT_XML = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 65534, 65535, *range(55296, 57344)), "�")


def sarif_document(verdict: Verdict) -> str:
    """One run, with a result for every issue and a notification for every check without a result."""
    rules: dict[str, None] = {}
    results = []
    for check in verdict.checks:
        for issue in check.issues:
            rule = issue.rule or issue.test or check.kind
            rules[rule] = None
            results.append(_sarif_result(issue, check, rule))
    unknown = [check for check in verdict.checks if check.status in ("unavailable", "unverified")]
    driver = {"name": "handrail verify", "version": __version__, "rules": [{"id": rule} for rule in rules]}
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "results": results,
        "invocations": [
            {
                "executionSuccessful": verdict.status != "unverified",
                "toolExecutionNotifications": [
                    {"level": "warning", "message": {"text": f"{check.name} {check.status}: {check.reason}"}}
                    for check in unknown
                ],
            }
        ],
    }
    return to_json({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]})


def _sarif_result(issue: Issue, check: CheckResult, rule: str) -> dict[str, Any]:
    test = f"{issue.test}: " if issue.test and issue.test != rule else ""
    fix = f" ({issue.fix})" if issue.fix else ""
    text = f"{test}{issue.message}{fix}".encode(errors="replace").decode()
    result: dict[str, Any] = {
        "ruleId": rule,
        "level": "note" if issue.origin == "flaky" else LEVELS[issue.severity],
        "message": {"text": text},
        "properties": {"check": check.name, "origin": issue.origin, "severity": issue.severity},
    }
    if baseline := BASELINES.get(issue.origin):
        result["baselineState"] = baseline
    if issue.path:
        from urllib.parse import quote

        place: dict[str, Any] = {
            "artifactLocation": {
                "uri": quote(issue.path.encode(errors="surrogateescape")),
                "uriBaseId": "%SRCROOT%",
            }
        }
        if issue.line:
            place["region"] = {"startLine": issue.line} | (
                {"startColumn": issue.column} if issue.column else {}
            )
        result["locations"] = [{"physicalLocation": place}]
    return result


def junit_document(verdict: Verdict) -> str:
    """A suite for each check, with a case for every issue that counts; unknown results are errors."""
    suites = [_junit_suite(check) for check in verdict.checks]
    head = f'<testsuites name="handrail verify" time="{verdict.seconds:.3f}">'
    return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', head, *suites, "</testsuites>", ""])


def _junit_suite(check: CheckResult) -> str:
    cases = []
    failures = errors = skipped = 0
    for issue in check.issues:
        place = f"{issue.path}:{issue.line}" if issue.line else issue.path
        name = _attribute(issue.test or " ".join(filter(None, (place, issue.rule))) or check.name)
        body = (
            f"<failure message={_attribute(issue.message)}>{_text(f'{place} {issue.fix}'.strip())}</failure>"
        )
        if issue.origin in ("before", "flaky"):
            why = "failed before the change too" if issue.origin == "before" else "flaky: passed alone"
            body = f"<skipped message={_attribute(f'{why}: {issue.message}')}/>"
            skipped += 1
        else:
            failures += 1
        cases.append(f"<testcase classname={_attribute(check.name)} name={name}>{body}</testcase>")
    if not check.issues:
        body = ""
        if check.status in ("unavailable", "unverified"):
            errors += 1
            body = f"<error message={_attribute(f'{check.status}: {check.reason}')}/>"
        command = _attribute(check.command or check.name)
        cases.append(f"<testcase classname={_attribute(check.name)} name={command}>{body}</testcase>")
    counts = f'tests="{len(cases)}" failures="{failures}" errors="{errors}" skipped="{skipped}"'
    head = f'<testsuite name={_attribute(check.name)} {counts} time="{check.seconds:.3f}">'
    return "\n".join([head, *cases, "</testsuite>"])


def _attribute(text: str) -> str:
    return quoteattr(text.translate(NOT_XML))


def _text(text: str) -> str:
    return escape(text.translate(NOT_XML))
