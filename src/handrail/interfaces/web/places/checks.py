"""The project's checks: which there are, how far they are, and what they have found."""

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse, Response

from handrail.app.builds.check_run import COUNTING, CheckResult, CheckRow, CheckRun, Issue, Verdict
from handrail.interfaces.cli.render.check_lines import result_text, verdict_text
from handrail.interfaces.cli.render.styles import clean, count_of, format_age, format_clock, format_duration
from handrail.interfaces.web.conversation.blocks import button, dot
from handrail.interfaces.web.frame import place
from handrail.interfaces.web.html import Html, h, join
from handrail.interfaces.web.page_call import PageCall, part
from handrail.protocol.errors import HandrailError

if TYPE_CHECKING:
    from handrail.app.builds.verify import Check

MAX_ISSUES = 200
"""Issues shown in one group; the API has all of them."""
SIGNS = {"passed": "ok", "failed": "bad", "unavailable": "off", "unverified": "off"}
SEVERITIES = {"critical": "bad", "high": "bad", "medium": "wait", "low": "off"}
LEAD = (
    "Types, lint, tests and build by the project's own tools, on a copy in the sandbox. No model is involved."
)
NONE_RUN = "Nothing has run yet. Run the checks to see what is broken, and what of it was broken before."
OWN_CHECKS = join(
    "A command of your own becomes a check with ", h("code", "[[checks.commands]]"), " in the settings."
)
NONE_FOUND = (
    "No checks were found here. Handrail finds the tools that a project is set up for: mypy, ruff, pytest, "
    "tsc, eslint, vitest, go, cargo, make test."
)


async def checks_page(call: PageCall) -> Response:
    problem = ""
    found: Sequence[Check] = ()
    try:
        found = await call.app.checks.find()
    except HandrailError as error:
        problem = str(error)
    run = call.workspace.check_run
    if found or run:
        live = h("div", render_run(run), id="checks", class_="check-live")
        said = h("p", id="checks-said", class_="hidden-label", role="status")
        content = join(_buttons(), said, live, _found(found))
    else:
        content = h("div", h("p", NONE_FOUND), h("p", OWN_CHECKS), class_="empty")
    return HTMLResponse(
        place(
            call.view("Checks", "checks"),
            h("p", LEAD, class_="lead"),
            h("div", dot("bad", "problem"), h("div", problem), class_="banner bad") if problem else None,
            content,
        )
    )


async def checks_part(call: PageCall) -> Response:
    """What changes while checks run."""
    return part(render_run(call.workspace.check_run))


def _buttons() -> Html:
    return h(
        "div",
        button("Run all", "checks-run", class_="primary"),
        button("Run changed", "checks-run", changed="1"),
        button("Stop", "checks-stop"),
        class_="check-buttons",
    )


def _found(checks: Sequence["Check"]) -> Html:
    rows = [
        h(
            "tr",
            h("td", each.name, class_="name"),
            h("td", each.kind, class_="soft"),
            h("td", _command(each)),
            h("td", None if each.missing else _run_one(each.name), class_="number"),
        )
        for each in checks
    ]
    names: tuple[Html | str, ...] = ("Check", "Kind", "Command", h("span", "Run", class_="hidden-label"))
    head = h("tr", *(h("th", name, scope="col") for name in names))
    table = h("table", h("thead", head), h("tbody", *rows), class_="list checks-found")
    box = h("div", table, class_="scroll", tabindex="0", role="region", aria_label="Found checks")
    return h("section", h("h2", "Found in this project"), box)


def _command(check: "Check") -> Html:
    if check.missing:
        return h("span", dot("off", "unavailable"), f" unavailable: {check.missing}", class_="soft")
    where = h("span", f" in {check.part}", class_="soft") if check.part else None
    return join(h("code", clean(check.command)), where)


def _run_one(name: str) -> Html:
    return button("Run", "checks-run", class_="small", label=f"Run {name}", only=name)


def render_run(run: CheckRun | None) -> Html:
    """The verification that runs, or what the last one has found."""
    if run is None:
        return h("p", NONE_RUN, class_="empty")
    if run.verdict:
        return _render_verdict(run, run.verdict)
    rows = [_row(row) for row in run.rows()]
    done = sum(row.result is not None and not row.running for row in run.rows())
    if run.state == "running":
        words = f"{done} of {count_of(len(rows), 'check')}" if rows else "copying the project"
        head = _banner("run", "Running", words, format_clock(run.seconds))
    elif run.state == "stopped":
        head = _banner("off", "Stopped", "there is no verdict", format_duration(run.seconds))
    else:
        head = _banner("wait", "Could not run", run.problem, "")
    return join(head, h("div", *rows, class_="check-rows") if rows else None)


def _banner(state: str, word: str, words: str, clock: str) -> Html:
    told = h("div", h("strong", f"{word}: "), words, class_="told")
    clockwork = h("span", clock, class_="soft when") if clock else None
    return h("div", dot(state, word), told, clockwork, class_=f"banner verdict {state}")


def _row(row: CheckRow) -> Html:
    if row.running:
        return _line("run", row.name, "running", format_clock(row.seconds), h("code", clean(row.doing)))
    if row.result is None:
        return _line("off", row.name, "waiting", "", None)
    return _result_line(row.result)


def _result_line(result: CheckResult) -> Html:
    seconds = format_duration(result.seconds) if result.seconds else ""
    words = h("span", clean(result_text(result)))
    return _line(SIGNS[result.status], result.name, result.status, seconds, words)


def _line(state: str, name: str, word: str, seconds: str, words: Html | None) -> Html:
    return h(
        "div",
        dot(state, word),
        h("span", name, class_="name"),
        h("span", word, class_=f"t-{state}"),
        h("span", seconds, class_="soft number"),
        h("span", words, class_="words"),
        class_="check-row",
    )


def _render_verdict(run: CheckRun, verdict: Verdict) -> Html:
    state = {"passed": "ok", "failed": "bad", "unverified": "off"}[verdict.status]
    when = f"{format_age(time.time() - run.began)}, took {format_duration(verdict.seconds)}"
    issues = verdict.issues
    fresh = [issue for issue in issues if issue.origin in COUNTING]
    title = "Broken by the change" if verdict.base else "Issues"
    groups = (
        _group(title, fresh, opened=True),
        _group("Flaky: failed, then passed alone", [issue for issue in issues if issue.origin == "flaky"]),
        _group("Was there before", [issue for issue in issues if issue.origin == "before"]),
    )
    reasons = [
        h("pre", clean(result.reason), class_="output", tabindex="0", aria_label=f"Why: {result.name}")
        for result in verdict.checks
        if "\n" in result.reason
    ]
    return join(
        _banner(state, verdict.status.capitalize(), verdict_text(verdict), when),
        h("div", *map(_result_line, verdict.checks), class_="check-rows"),
        reasons,
        groups,
        h("ul", *(h("li", note) for note in verdict.notes), class_="soft check-notes")
        if verdict.notes
        else None,
    )


def _group(title: str, issues: Sequence[Issue], *, opened: bool = False) -> Html | None:
    if not issues:
        return None
    by_file: dict[str, list[Issue]] = {}
    for issue in issues[:MAX_ISSUES]:
        by_file.setdefault(issue.path, []).append(issue)
    left = len(issues) - MAX_ISSUES
    more = h("p", f"{left:,} more; GET checks/result has all of them.", class_="soft") if left > 0 else None
    head = h("summary", h("h2", f"{title} ", h("span", f"{len(issues):,}", class_="soft")))
    return h(
        "details", head, *_files(by_file.items()), more, class_="issue-group", data_id=title, open=opened
    )


def _files(groups: Iterable[tuple[str, list[Issue]]]) -> Iterable[Html]:
    for path, issues in groups:
        title = h("h3", h("code", clean(path))) if path else h("h3", "Without a file")
        yield h("section", title, *map(_issue, issues), class_="issue-file")


def _issue(issue: Issue) -> Html:
    place = f"line {issue.line:,}" if issue.line else ""
    names = [h("code", clean(each)) for each in (issue.test, issue.rule) if each]
    suspects = [h("code", f"{clean(each.path)}:{each.line}") for each in issue.suspects[:5]]
    return h(
        "div",
        h("span", issue.severity, class_=f"severity t-{SEVERITIES[issue.severity]}"),
        h("span", place, class_="soft at"),
        h(
            "div",
            h("div", *names, class_="names") if names else None,
            h("div", clean(issue.message), class_="message"),
            h("div", h("strong", "Fix: "), clean(issue.fix), class_="hint") if issue.fix else None,
            h("div", h("strong", "Look at: "), *suspects, class_="hint suspects") if suspects else None,
            class_="words",
        ),
        class_="issue",
    )
