"""Split requests: a form to plan one, the list, and one with its subtasks, conflicts and buttons."""

import time
from collections.abc import Sequence

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
from handrail.interfaces.cli.render.split_lines import CHECKING, STRATEGY_WORDS, is_checked
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
from handrail.protocol.subtask import SplitConflict

LEAD = "A request as many small subtasks, in parallel; their merged result is verified, and applied as one."
DOTS = {"done": "ok", "failed": "bad", "running": "run", "waiting": "off", "cancelled": "off"}
ENDS = {"complete": "ok", "failed": "bad", "unverified": "wait", "cancelled": "off", "running": "run"}
MAX_ROWS, BAR = 500, 1000
BUTTONS = {
    "planned": (("start", "Start"), ("cancel", "Cancel")),
    "running": (("pause", "Pause"), ("cancel", "Cancel all")),
    "paused": (("resume", "Resume"), ("cancel", "Cancel all")),
    "failed": (("accept", "Apply all the same"),),
    "unverified": (("accept", "Apply all the same"),),
}


async def splits_page(call: PageCall) -> Response:
    rows = [_list_row(call, each) for each in await call.app.query(list_splits)]
    form = h(
        "form",
        h("label", "Task ", h("textarea", name="task", rows="3", required=True)),
        h(
            "label",
            "For each file that matches (empty: the model plans) ",
            h("input", name="files", type="text"),
        ),
        h("div", h("button", "Plan it", type="submit", class_="primary"), class_="buttons"),
        class_="split-form",
        data_act="split-plan",
    )
    listed = (
        h("table", h("tbody", *rows), class_="list") if rows else h("p", "There is none yet.", class_="empty")
    )
    return HTMLResponse(
        place(call.view("Splits", "splits"), h("p", LEAD, class_="lead"), form, h("h2", "Splits"), listed)
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
    found: Sequence[Estimate] = ()
    if report.status == "planned":
        found = await estimate_plan(call.app, known_plan(call.app, split_id))
    return render_split(call.workspace.name, report, found, call.workspace.split_problems.get(split_id, ""))


def render_split(workspace: str, report: SplitReport, found: Sequence[Estimate], problem: str = "") -> Html:
    """The split as it is now, with what can be done about it."""
    state = report.status.partition(":")[0]
    stopped = state == "running" and not report.held
    wanted = BUTTONS["paused"] if stopped else BUTTONS.get(state, ())
    buttons = [
        button(
            words,
            "split-command",
            class_="primary" if action in ("start", "resume") else "",
            id=report.session_id,
            action=action,
        )
        for action, words in wanted
    ]
    now = "Nothing works on it now." if stopped else CHECKING if is_checked(report) else ""
    told = problem or report.detail or now
    banner = h(
        "div",
        dot(ENDS.get(state, "wait"), state),
        h("div", h("strong", f"{report.status}: "), one_line(report.task), class_="told"),
        class_=f"banner verdict {ENDS.get(state, 'wait')}",
    )
    rows = [_row(report, row) for row in report.subtasks[:MAX_ROWS]]
    more = len(report.subtasks) - MAX_ROWS
    return join(
        banner,
        h("p", told, class_="soft") if told else None,
        h("p", f"Waiting: {report.stalled}", class_="soft", role="status") if report.stalled else None,
        _bar(report),
        h("div", *buttons, class_="check-buttons") if buttons else None,
        [_estimate(report, each) for each in found],
        [_conflict(report, each) for each in report.conflicts],
        h("div", *rows, class_="check-rows"),
        h("p", f"{more:,} more; the API has all of them.", class_="soft") if more > 0 else None,
        h("p", f"Checks: {', '.join(report.checks)}", class_="soft") if report.checks else None,
        _applied(workspace, report) if report.files else None,
    )


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


def _estimate(report: SplitReport, each: Estimate) -> Html:
    told = f"about {format_duration(each.seconds)}, {each.tokens:,} tokens, {format_usd(each.usd)}"
    chosen = " (chosen)" if each.strategy == report.strategy else ""
    risk = f"; {each.risk}" if each.risk else ""
    return h("p", h("strong", STRATEGY_WORDS[each.strategy]), f"{chosen}: {told}{risk}", class_="soft")


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
