"""Figures from the log of a workspace: cost, tokens, corrections and decisions, by day and by model."""

import time
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.json import decode

from handrail.protocol.values import Usage

if TYPE_CHECKING:
    from handrail.app.app import App

COUNTED = (
    *("answered", "request_failed", "side_answered", "run_repaired", "attempt_started"),
    *("approval_answered", "turn_finished"),
)


class DayCount(Struct):
    """What happened on one day, in local time."""

    day: str
    """`2026-05-31`."""
    turns: int = 0
    requests: int = 0
    failed_requests: int = 0
    recovered: int = 0
    """Answers that broke off, of which a part could be used."""
    corrections: int = 0
    """Rounds in which a stage or an answer was tried again, because a check did not pass."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    """Requests whose price is not known."""
    approvals: dict[str, int] = {}
    """{decision: how often}"""
    models: dict[str, float] = {}
    """{model: cost in USD}"""


class _Counted(Struct):
    """The fields of all counted events that are used; others are skipped."""

    type: str
    model: str = ""
    usage: Usage = Usage()
    cost_usd: float | None = None
    decision: str = ""
    recovered: dict[str, object] | None = None
    number: int = 0


def daily_counts(app: "App", session_id: str = "") -> list[DayCount]:
    """A row for each day with activity, oldest first; of one session if it is named."""
    days: dict[str, DayCount] = {}
    for stream, at, data in app.log.dated(COUNTED):
        if session_id and stream != f"session:{session_id}":
            continue
        day = time.strftime("%Y-%m-%d", time.localtime(at))
        _add(days.setdefault(day, DayCount(day)), decode(data, type=_Counted))
    return [days[day] for day in sorted(days)]


def _add(count: DayCount, event: _Counted) -> None:
    match event.type:
        case "turn_finished":
            count.turns += 1
        case "approval_answered":
            count.approvals[event.decision] = count.approvals.get(event.decision, 0) + 1
        case "run_repaired":
            count.corrections += 1
        case "attempt_started":
            count.corrections += event.number > 1
        case _:
            count.requests += 1
            count.failed_requests += event.type == "request_failed"
            count.recovered += event.recovered is not None
            count.input_tokens += event.usage.input_tokens
            count.output_tokens += event.usage.output_tokens
            count.unpriced += event.cost_usd is None
            count.cost_usd += event.cost_usd or 0.0
            if event.model:
                count.models[event.model] = count.models.get(event.model, 0.0) + (event.cost_usd or 0.0)
