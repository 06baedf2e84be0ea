"""Split requests: a form to plan one, the list, and one with its subtasks, conflicts and buttons."""

import time
from collections.abc import Iterable, Sequence

from starlette.responses import HTMLResponse, Response

from handrail.app.splits.plans import known_plan
from handrail.app.splits.report import (
    Estimate,
    SplitLine,
    SplitReport,
    SubtaskRow,
    estimate_plan,
    list_splits,
)
from handrail.app.splits.run import read_split
from handrail.interfaces.cli.render.split_lines import CHECKING, is_checked
from handrail.interfaces.cli.render.styles import (
    clean,
    count_of,
    format_age,
    format_clock,
    format_duration,
    format_usd,
    one_line,
)
from handrail.interfaces.web.conversation.blocks import button, dot
from handrail.interfaces.web.frame import place
from handrail.interfaces.web.html import Html, h, join
from handrail.interfaces.web.page_call import PageCall, part
from handrail.interfaces.web.places.split_forms import (
    limits_words,
    new_split_form,
    planned_subtasks,
    strategy_choice,
)
from handrail.protocol.subtask import SplitConflict, SplitPlan

LEAD = "A request as many small subtasks, in parallel; their merged result is verified, and applied as one."
DOTS = {"done": "ok", "failed": "bad", "running": "run", "waiting": "off", "cancelled": "off"}
ENDS = {"complete": "ok", "failed": "bad", "unverified": "wait", "cancelled": "off", "running": "run"}
MAX_ROWS, BAR = 500, 1000
BUTTONS = {
    "planned": (("start", "Start"), ("cancel", "Cancel")),
    "running": (("pause", "Pause"), ("cancel", "Cancel all")),
    "paused": (("resume", "Resume"), ("cancel", "Cancel all")),
    "paused: budget": (("cancel", "Cancel all"),),
    "failed": (("accept", "Apply all the same"),),
    "unverified": (("accept", "Apply all the same"),),
}
LIMITS = {
    "planned": "Limits",
    "paused: budget": "Resume with a larger budget",
    "paused: failed": "Resume with other limits",
    "paused: user": "Resume with other limits",
}
"""The button that opens the limits, by the status in which they can be changed."""


async def splits_page(call: PageCall) -> Response:
    rows = [_list_row(call, each) for each in await call.app.query(list_splits)]
    listed = (
        h("table", h("tbody", *rows), class_="list") if rows else h("p", "There is none yet.", class_="empty")
    )
    return HTMLResponse(
        place(
            call.view("Splits", "splits"),
            h("p", LEAD, class_="lead"),
            new_split_form(),
            h("h2", "Splits"),
            listed,
        )
    )


async def split_page(call: PageCall) -> Response:
    live = h(
        "div", await _live(call), id="split", class_="check-live", data_id=call.request.path_params["split"]
    )
    said = h("p", id="split-said", class_="hidden-label", role="status")
    return HTMLResponse(place(call.view("Split", "splits"), said, live))


async def split_part(call: PageCall) -> Response:
    """What changes while it runs."""
    return part(await _live(call))


async def _live(call: PageCall) -> Html:
    split_id = call.request.path_params["split"]
    report = read_split(call.app, split_id)
    problem = call.workspace.split_problems.get(split_id, "")
    if report.status != "planned":
        return render_split(call.workspace.name, report, problem)
    plan = known_plan(call.app, split_id)
    return render_plan(report, plan, await estimate_plan(call.app, plan), problem)


def render_plan(report: SplitReport, plan: SplitPlan, found: Sequence[Estimate], problem: str = "") -> Html:
    """A plan that waits for the user: what each strategy would take, and its subtasks; all can be changed."""
    head = f"{count_of(len(plan.subtasks), 'subtask')}, {plan.granularity}. {limits_words(plan.limits)}"
    return join(
        _banner(report),
        h("p", problem, class_="soft") if problem else None,
        _buttons(report, BUTTONS["planned"]),
        h("p", head, class_="soft"),
        strategy_choice(report, found),
        planned_subtasks(report.session_id, plan, MAX_ROWS),
        _more(report),
    )


def render_split(workspace: str, report: SplitReport, problem: str = "") -> Html:
    """The split as it is now, with what can be done about it."""
    state = report.status.partition(":")[0]
    stopped = state == "running" and not report.held
    wanted = BUTTONS["paused"] if stopped else BUTTONS.get(report.status) or BUTTONS.get(state, ())
    now = "Nothing works on it now." if stopped else CHECKING if is_checked(report) else ""
    told = problem or report.detail or now
    rows = [_row(report, row) for row in report.subtasks[:MAX_ROWS]]
    return join(
        _banner(report),
        h("p", told, class_="soft") if told else None,
        h("p", f"Waiting: {report.stalled}", class_="soft", role="status") if report.stalled else None,
        _bar(report),
        _buttons(report, wanted),
        [_conflict(report, each) for each in report.conflicts],
        h("div", *rows, class_="check-rows"),
        _more(report),
        h("p", f"Checks: {', '.join(report.checks)}", class_="soft") if report.checks else None,
        _applied(workspace, report) if report.files else None,
    )


def _banner(report: SplitReport) -> Html:
    state = report.status.partition(":")[0]
    return h(
        "div",
        dot(ENDS.get(state, "wait"), state),
        h("div", h("strong", f"{report.status}: "), one_line(report.task), class_="told"),
        class_=f"banner verdict {ENDS.get(state, 'wait')}",
    )


def _buttons(report: SplitReport, wanted: Iterable[tuple[str, str]]) -> Html | None:
    found = [
        button(
            words,
            "split-command",
            class_="primary" if action in ("start", "resume") else "",
            id=report.session_id,
            action=action,
        )
        for action, words in wanted
    ]
    if words := LIMITS.get(report.status):
        kind = "primary" if report.status == "paused: budget" else ""
        shown = button(words, "split-edit", class_=kind, title="Limits", path=f"{report.session_id}/limits")
        found.insert(0 if kind else 1, shown)
    return h("div", *found, class_="check-buttons") if found else None


def _more(report: SplitReport) -> Html | None:
    more = len(report.subtasks) - MAX_ROWS
    return h("p", f"{more:,} more; the API has all of them.", class_="soft") if more > 0 else None


def _applied(workspace: str, report: SplitReport) -> Html:
    link = h("a", "See the change, or undo it", href=f"/w/{workspace}/s/{report.session_id}")
    return h("p", f"Applied: {', '.join(report.files)}. ", link)


def _bar(report: SplitReport) -> Html:
    """Done, running and failed, stacked."""
    at, parts = 0, []
    for status in ("done", "running", "failed", "cancelled"):
        width = report.counts[status] * BAR // max(1, len(report.subtasks))
        parts.append(h("rect", x=str(at), width=str(width), height="10", class_=f"split-{status}"))
        at += width
    counts = [
        f"{report.counts[each]} {each}" for each in report.counts if report.counts[each] and each != "done"
    ]
    words = f"{report.counts['done']} of {count_of(len(report.subtasks), 'subtask')} done"
    spent = f"{report.tokens:,} tokens, {format_usd(report.usd)}"
    drawn = h(
        "svg",
        *parts,
        viewBox=f"0 0 {BAR} 10",
        preserveAspectRatio="none",
        role="img",
        aria_label=words,
        class_="split-bar",
    )
    return h(
        "div",
        drawn,
        h("p", f"{' · '.join(filter(None, [words, ', '.join(counts), spent]))}", class_="soft split-counts"),
    )


def _row(report: SplitReport, row: SubtaskRow) -> Html:
    clock = format_clock(row.seconds) if row.status == "running" else format_duration(row.seconds)
    waits = f"waiting on {', '.join(row.waiting_on)}" if row.waiting_on else ""
    spent = [f"{row.tokens:,} tokens"] * bool(row.tokens) + [format_usd(row.usd)] * bool(row.usd)
    spent += [f"on {row.worker}"] * bool(row.worker)
    words = " · ".join(filter(None, [waits, one_line(row.detail), *spent]))
    actions = []
    if report.status != "complete":
        if row.status in ("failed", "done", "cancelled"):
            actions.append(_action("Try again", "retry", report, row))
        if row.status in ("waiting", "running", "failed"):
            actions.append(_action("Leave out", "cancel", report, row))
    return h(
        "div",
        dot(DOTS[row.status], row.status),
        h("span", row.id, class_="name"),
        h("span", row.status, class_=f"t-{DOTS[row.status]}"),
        h("span", clock if row.seconds or row.status == "running" else "", class_="soft number"),
        h("span", words or one_line(row.instruction), " ", *actions, class_="words"),
        class_="check-row",
    )


def _action(words: str, action: str, report: SplitReport, row: SubtaskRow) -> Html:
    label = f"{words}: {row.id}"
    return button(
        words,
        "split-command",
        class_="small",
        label=label,
        id=report.session_id,
        action=action,
        subtask=row.id,
    )


def _conflict(report: SplitReport, conflict: SplitConflict) -> Html:
    ours = ", ".join(conflict.ours_by) or "the workspace as it is now"
    sides = (
        (f"Ours: {ours}", conflict.ours),
        (f"Theirs: {conflict.theirs_by}", conflict.theirs),
        ("Before", conflict.base),
    )
    shown = [
        h(
            "div",
            h("h3", name),
            h("pre", "(deleted)" if text is None else clean(text), class_="output", tabindex="0"),
        )
        for name, text in sides
    ]
    ways = (
        ("ours", "Take ours"),
        ("theirs", "Take theirs"),
        ("both", "Take both"),
        ("model", "Let the model join"),
    )
    buttons = [
        button(
            words,
            "split-settle",
            id=report.session_id,
            conflict=conflict.id,
            by=by,
            label=f"{words}: {conflict.path}",
        )
        for by, words in ways
    ]
    path = f"{report.session_id}/conflicts/{conflict.id}"
    label = f"Write it yourself: {conflict.path}"
    buttons.append(button("Write it yourself", "split-edit", label=label, title=conflict.path, path=path))
    head = h("h2", "Conflict in ", h("code", f"{clean(conflict.path)}:{conflict.line}"))
    return h("section", head, *shown, h("div", *buttons, class_="buttons"), class_="tile split-conflict")


def _list_row(call: PageCall, each: SplitLine) -> Html:
    state = each.status.partition(":")[0]
    link = h("a", one_line(each.task), href=f"/w/{call.workspace.name}/splits/{each.session_id}")
    return h(
        "tr",
        h("td", dot(ENDS.get(state, "wait"), each.status), f" {each.status}"),
        h("td", link),
        h("td", f"{each.done} of {each.subtasks}", class_="number"),
        h("td", format_age(time.time() - each.at), class_="soft"),
    )
