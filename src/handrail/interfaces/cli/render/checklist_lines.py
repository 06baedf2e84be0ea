"""A run over a checklist as lines: an item, what came of it, and the summary."""

from typing import TYPE_CHECKING

from handrail.interfaces.cli.render.build_lines import STYLES
from handrail.interfaces.cli.render.styles import (
    INDENT,
    Line,
    count_of,
    fit,
    format_duration,
    line,
    one_line,
    wrap,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handrail.app.builds.checklists import ChecklistReport, Item, ItemResult, PhaseProgress

ENDINGS = {
    "done": "all items that were to be built were attempted",
    "not_complete": "stopped at an item that is not complete; --keep-going goes on after one",
    "max": "stopped at the limit of --max; the same command goes on",
    "stopped": "stopped; the same command goes on",
    "nobody_to_ask": "nobody could be asked; --auto builds without asking",
}
STATE_COLUMNS = 11


def wanted_lines(item: "Item", width: int) -> list[Line]:
    """An item for a user who is asked whether to build it."""
    about = " ".join(filter(None, [item.phase, item.priority]))
    rows = wrap(line(("bold", one_line(item.text)), ("dim", f"  {one_line(about)}")), width, INDENT)
    for text in (*item.description, *(f"Acceptance: {each}" for each in item.acceptance)):
        rows += wrap(line(INDENT, ("dim", one_line(text))), width, INDENT * 2)
    return rows


def item_lines(item: "ItemResult", width: int) -> list[Line]:
    """An item with what came of it."""
    state = (STYLES.get(item.state, "bad"), f"{item.state:<{STATE_COLUMNS}}")
    rows = wrap(line(state, f"{item.number:>3}  {one_line(item.text)}"), width, INDENT)
    accept = f"handrail build --accept {item.session_id} shows and applies its files" if item.proposed else ""
    for text in [*item.detail.splitlines(), *filter(None, [accept])]:
        rows += wrap(line(INDENT, ("dim", one_line(text))), width, INDENT * 2)
    return rows


def report_lines(report: "ChecklistReport", width: int) -> list[Line]:
    """The summary: each item, the counts, progress by phase, tokens, cost and time."""
    rows = [row for item in report.items for row in item_lines(item, width)]
    counts = [
        f"{count} {state}"
        for state in ("complete", "unverified", "failed", "escalated", "paused")
        if (count := getattr(report, state))
    ]
    told = f"{report.attempted} attempted" + (f": {', '.join(counts)}" if counts else "")
    rows += wrap(line(("bold", one_line(report.path)), f": {told}; {report.open} open"), width, INDENT)
    rows += phase_lines(report.phases, width)
    rows += wrap(line(f"{INDENT}{ENDINGS[report.ended]}"), width, INDENT * 2)
    usd = f"{report.cost_usd:.4f} USD" if report.cost_usd is not None else "price unknown"
    spent = f"{report.tokens:,} tokens, {usd}, {format_duration(report.seconds)}"
    return [*rows, line(("dim", f"{INDENT}{spent}"))]


def phase_lines(phases: "Sequence[PhaseProgress]", width: int) -> list[Line]:
    done, of = sum(each.done for each in phases), sum(each.of for each in phases)
    rows = [line(f"{INDENT}{done} of {count_of(of, 'item')} done")]
    if len(phases) > 1:
        rows += [
            line(("dim", f"{INDENT * 2}{each.done} of {each.of}  {fit(one_line(each.phase), width - 20)}"))
            for each in phases
        ]
    return rows
