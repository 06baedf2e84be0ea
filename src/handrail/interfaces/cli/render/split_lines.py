"""A split request as lines: the plan with its estimates, progress, conflicts with both sides, the end."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from handrail.interfaces.cli.render.styles import (
    INDENT,
    Line,
    count_of,
    fit,
    format_clock,
    format_duration,
    format_usd,
    line,
    one_line,
    wrap,
)

if TYPE_CHECKING:
    from handrail.app.splits.report import Estimate, SplitLine, SplitReport, SubtaskRow
    from handrail.protocol.subtask import SplitConflict

STYLES = {"done": "good", "failed": "bad", "running": "accent", "waiting": "dim", "cancelled": "dim"}
STATUS_STYLES = {"complete": "good", "failed": "bad", "unverified": "bad", "cancelled": "dim"}
STRATEGY_WORDS = {"graph": "by dependencies", "sequential": "one by one", "all_at_once": "all at once"}
CHECKING = "All parts are done. The result is merged and checked."
BAR_COLUMNS, STATUS_COLUMNS, MAX_ROWS, MAX_SIDE = 30, 10, 200, 20


def plan_lines(report: "SplitReport", found: "Sequence[Estimate]", width: int) -> list[Line]:
    """The plan before it starts: each subtask, and what each strategy would take."""
    head = f"{count_of(len(report.subtasks), 'subtask')}, {report.granularity}"
    rows = wrap(line(("bold", one_line(report.task)), ("dim", f"  {head}")), width, INDENT)
    for row in report.subtasks[:MAX_ROWS]:
        needs = f" after {', '.join(row.depends_on)}" if row.depends_on else ""
        words = f"{one_line(row.instruction)}"
        rows.append(line(f"{INDENT}{row.id}", ("dim", fit(f"  {words}", max(20, width - len(row.id) - 4)))))
        rows.append(line(("dim", fit(f"{INDENT * 2}{', '.join(row.files)}{needs}", width))))
    rows += _more(len(report.subtasks))
    for each in found:
        chosen = "*" if each.strategy == report.strategy else " "
        told = f"{format_duration(each.seconds)}, {each.tokens:,} tokens, {format_usd(each.usd)}"
        risk = f"; {each.risk}" if each.risk else ""
        rows += wrap(line(f"{chosen} {STRATEGY_WORDS[each.strategy]:<16} about {told}", ("bad", risk)), width)
    return rows


def progress_lines(report: "SplitReport", width: int, most: int) -> list[Line]:
    """A bar for the whole, then what runs, what failed, and what waits for what."""
    shown = {"running": 0, "failed": 1, "waiting": 2, "done": 3, "cancelled": 4}
    rows = sorted(report.subtasks, key=lambda row: shown[row.status])
    checks = [line(("dim", CHECKING))] if is_checked(report) else []
    above = [summary_line(report), *checks, *stalled_lines(report, width)]
    return [*above, *(subtask_line(row, width) for row in rows[: max(0, most - len(above))])]


def is_checked(report: "SplitReport") -> bool:
    """Whether all parts are done, and what they made is merged and verified now."""
    open_ones = any(report.counts[each] for each in ("waiting", "running", "failed"))
    return report.status == "running" and report.held and not open_ones


def stalled_lines(report: "SplitReport", width: int) -> list[Line]:
    """Why no worker can take what is to be done."""
    return (
        wrap(line(("bad", "waiting"), f"  {one_line(report.stalled)}"), width, INDENT)
        if report.stalled
        else []
    )


def summary_line(report: "SplitReport") -> Line:
    counts, of = report.counts, max(1, len(report.subtasks))
    done, running = (counts[each] * BAR_COLUMNS // of for each in ("done", "running"))
    running = max(running, min(1, counts["running"]))
    rest = BAR_COLUMNS - done - running
    told = f" {counts['done']}/{len(report.subtasks)}"
    told += "".join(f", {counts[each]} {each}" for each in ("running", "failed", "cancelled") if counts[each])
    spent = f"  {report.tokens:,} tokens, {format_usd(report.usd)}"
    return line(("good", "#" * done), ("accent", "=" * running), ("dim", "." * rest), told, ("dim", spent))


def subtask_line(row: "SubtaskRow", width: int) -> Line:
    clock = format_clock(row.seconds) if row.status == "running" else format_duration(row.seconds)
    usd = f"{format_usd(row.usd)}  " if row.usd else ""
    usd += f"on {row.worker}  " if row.worker else ""
    took = f"{clock}  " if row.seconds or row.status == "running" else ""
    spent = f"{took}{row.tokens:,} tokens  {usd}" if row.tokens or row.status == "running" else ""
    again = f"try {row.attempt}: " if row.attempt > 1 else ""
    waits = f"waiting on {', '.join(row.waiting_on)}" if row.waiting_on else ""
    words = fit(
        f"{spent}{again}{waits or one_line(row.detail)}", max(10, width - STATUS_COLUMNS - len(row.id) - 3)
    )
    return line((STYLES[row.status], f"{row.status:<{STATUS_COLUMNS}}"), f"{row.id}  ", ("dim", words))


def report_lines(report: "SplitReport", width: int) -> list[Line]:
    """What a split came to, or why it waits, and what to do then."""
    style = STATUS_STYLES.get(report.status, "accent")
    rows = wrap(line((style, report.status), f"  {one_line(report.task)}"), width, INDENT)
    rows += [summary_line(report), *stalled_lines(report, width)]
    rows += [subtask_line(row, width) for row in report.subtasks[:MAX_ROWS]] + _more(len(report.subtasks))
    for conflict in report.conflicts:
        rows += conflict_lines(conflict, width)
    if report.detail and (report.conflicts or report.status != "paused: conflicts"):
        rows += wrap(line(one_line(report.detail)), width, INDENT)
    if report.checks:
        rows += wrap(line(("dim", f"checks: {', '.join(report.checks)}")), width, INDENT)
    if report.files:
        rows += wrap(line(f"applied as one change set: {', '.join(report.files)}"), width, INDENT)
    return [*rows, *(line(("dim", words)) for words in next_words(report))]


def next_words(report: "SplitReport") -> list[str]:
    """What the user can do next."""
    name = f"handrail splits {{}} {report.session_id}"
    match report.status:
        case "planned":
            return [f"`{name.format('start')}` starts it."]
        case "complete" if report.files:
            return [f"`handrail undo --session {report.session_id}` takes all of it back."]
        case "paused: conflicts" if not report.conflicts:
            return [
                f"All conflicts are settled. `{name.format('resume')}` verifies the result and applies it."
            ]
        case "paused: conflicts":
            settle = f"{name.format('settle')} CONFLICT --take ours|theirs|both"
            return [f"`{settle}` settles one, `--text FILE` or `--ask` too; then `{name.format('resume')}`."]
        case "paused: failed":
            again = f"`{name.format('retry')} SUBTASK` tries one again"
            return [f"{again}, `{name.format('cancel')} SUBTASK` leaves it out."]
        case "paused: budget":
            return [f"`{name.format('resume')} --max-usd N --max-tokens N` goes on with more."]
        case "paused: user":
            return [f"`{name.format('resume')}` goes on."]
        case "failed" | "unverified":
            again = f"`{name.format('retry')} SUBTASK` tries one again"
            return [f"{again}, `{name.format('accept')}` applies the result all the same."]
        case "running" if not report.held:
            return [f"Nothing works on it now. `{name.format('resume')}` goes on."]
    return []


def conflict_lines(conflict: "SplitConflict", width: int) -> list[Line]:
    """Both sides of an overlap, with what was there before."""
    ours = ", ".join(conflict.ours_by) or "the workspace as it is now"
    rows = [line(("bad", f"conflict {conflict.id}"), f"  {one_line(conflict.path)}:{conflict.line}")]
    for name, text in (
        ("before", conflict.base),
        (f"ours: {ours}", conflict.ours),
        (f"theirs: {conflict.theirs_by}", conflict.theirs),
    ):
        rows.append(line(("dim", f"{INDENT}{name}")))
        rows += _side(text, width)
    return rows


def _side(text: str | None, width: int) -> list[Line]:
    if text is None:
        return [line(f"{INDENT * 2}(the file is deleted)")]
    lines = text.splitlines()
    rows = [line(fit(f"{INDENT * 2}| {each}", width)) for each in lines[:MAX_SIDE]]
    rows += [line(("dim", f"{INDENT * 2}... {len(lines) - MAX_SIDE} more lines"))] * (len(lines) > MAX_SIDE)
    return rows or [line(("dim", f"{INDENT * 2}(nothing)"))]


def list_line(each: "SplitLine", width: int) -> Line:
    style = STATUS_STYLES.get(each.status, "accent")
    told = f"{each.session_id}  {each.done}/{each.subtasks}  "
    return line((style, f"{each.status:<18}"), told, fit(one_line(each.task), max(10, width - 50)))


def _more(count: int) -> list[Line]:
    return [line(("dim", f"{INDENT}... {count - MAX_ROWS} more; --json has all"))] * (count > MAX_ROWS)
