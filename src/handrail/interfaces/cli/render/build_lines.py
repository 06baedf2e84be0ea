"""A build as lines: stages, checks and corrections while it runs, and the result."""

import json
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import convert

from handrail.interfaces.cli.render.check_lines import name_column, result_line
from handrail.interfaces.cli.render.events import unattached_lines
from handrail.interfaces.cli.render.styles import (
    INDENT,
    Line,
    count_of,
    format_duration,
    line,
    one_line,
    wrap,
)
from handrail.interfaces.cli.render.tool_calls import candidate_tried
from handrail.protocol import events

if TYPE_CHECKING:
    from handrail.app.builds.build import BuildResult

STAGES = {
    "baseline": "checks before the task",
    "plan": "plan",
    "audit": "audit",
    "execute": "execute",
    "reread": "conditions of the audit",
    "document": "document",
    "verify": "verify",
    "apply": "apply",
}
"""Stages that are shown, as a person calls them."""
STYLES = {"complete": "good", "unverified": "bold", "paused": "bold", "escalated": "bold"}
MAX_ISSUES = 6


class BuildLines:
    """The lines of a build, event by event."""

    def __init__(self, width: int, stored: Callable[[str], bytes | None]) -> None:
        """`stored` gives large outputs by hash."""
        self._width = width
        self._stored = stored

    def saw(self, event: events.Event) -> list[Line]:
        match event:
            case events.UserMessage(unattached=(_, *_)):
                return unattached_lines(event, self._width)
            case events.StageStarted(stage=stage) if stage in STAGES:
                return [line(("accent", STAGES[stage]))]
            case events.StageCompleted(stage=stage):
                return self._completed(stage, self._output(event))
            case events.GateFailed():
                return self._issues(event.issues)
            case events.RunRepaired():
                what = "correction" if event.last == "verify" else "new plan"
                return [line(("bold", f"{what} {event.number}"))]
            case events.CandidateTried():
                return candidate_tried(event, self._width)
            case events.RequestFailed():
                return wrap(line(INDENT, ("bad", one_line(event.message))), self._width, INDENT * 2)
        return []

    def _output(self, event: events.StageCompleted) -> dict[str, Any]:
        data = self._stored(event.blob) if event.output is None else None
        found: dict[str, Any] = json.loads(data) if data else event.output or {}
        return found

    def _completed(self, stage: str, output: dict[str, Any]) -> list[Line]:
        match stage:
            case "plan":
                steps = list(map(_step, output["steps"]))
                variant = [output["variant"]] if output.get("variant") else []
                return self._told([output["objective"], *steps, *variant])
            case "execute" if output.get("searched"):
                return self._told([output["searched"]])
            case "review":
                return self._told([f"{output['verdict']} by {output['by']}"])
            case "assemble":
                return self._told(
                    [f"{_ended(each)}: {each['command']}" for each in output.get("commands", [])]
                )
            case "brief" if output["round"] > 1:
                return self._told([f"strategy: {output['strategy']}"])
            case "baseline" | "verify":
                return self._checks(output)
            case "apply":
                return self._told(output["paths"])
        return []

    def _checks(self, output: dict[str, Any]) -> list[Line]:
        from handrail.app.builds.build import CheckResult

        results = convert(output["checks"], tuple[CheckResult, ...])
        column = name_column(result.name for result in results)
        rows = [result_line(result, column, self._width) for result in results]
        return rows or self._told(["no check was found"])

    def _told(self, texts: list[str]) -> list[Line]:
        return [
            row
            for text in texts
            for row in wrap(line(INDENT, ("dim", one_line(text))), self._width, INDENT * 2)
        ]

    def _issues(self, issues: tuple[str, ...]) -> list[Line]:
        rows = [
            row
            for text in issues[:MAX_ISSUES]
            for row in wrap(line(INDENT, ("bad", one_line(text))), self._width, INDENT * 2)
        ]
        left = len(issues) - MAX_ISSUES
        return [*rows, line(("dim", f"{INDENT}{left:,} more"))] if left > 0 else rows


def _step(step: dict[str, Any]) -> str:
    command = [f"runs {step['command']}"] if step.get("command") else []
    return f"{step['description']} ({', '.join([*command, *step['targets']])})"


def _ended(command: dict[str, Any]) -> str:
    return "ran in the copy" if command["ok"] else "did not run to its end"


def _history(result: "BuildResult") -> str:
    """The states that the build went through; what happened again has its number."""
    states: list[str] = []
    for each in result.history:
        if each.after not in states and not each.after.startswith("awaiting"):
            states.append(each.after)
    passed = Counter(each.after for each in result.history)
    times = (f"{state} ({passed[state]})" if passed[state] > 1 else state for state in states)
    return " > ".join(one_line(state.replace("_", " ")) for state in times)


def _tried(result: "BuildResult", width: int) -> list[Line]:
    """The rounds that did not pass a gate, with their strategies, and why."""
    rows: list[Line] = []
    for number, each in enumerate(result.rounds, 1):
        if not each.problems:
            continue
        first, more = one_line(each.problems[0]), len(each.problems) - 1
        told = f"{first}{f' and {more} more' * (more > 0)}{'; rolled back' * each.rolled_back}"
        rows += wrap(line(("dim", f"{INDENT}tried {number} ({each.strategy}): {told}")), width, INDENT * 2)
    return rows


def result_lines(result: "BuildResult", width: int) -> list[Line]:
    """How the build ended: state, files, checks, corrections, cost, and how to undo it."""
    style = STYLES.get(result.state, "bad")
    told = result.objective or result.task
    rows = wrap(line((style, result.state), f": {one_line(told)}"), width, INDENT)
    for text in result.detail.splitlines():
        rows += wrap(line(INDENT, one_line(text)), width, INDENT * 2)
    if result.files:
        rows += wrap(line(f"{INDENT}changed: {', '.join(map(one_line, result.files))}"), width, INDENT * 2)
    else:
        rows.append(line(f"{INDENT}nothing was changed in the workspace"))
    for each in result.packages:
        text = f"{INDENT}repeated in the workspace, and not part of undo: {one_line(each)}"
        rows += wrap(line(text), width, INDENT * 2)
    if result.proposed and not result.files:
        names = ", ".join(one_line(file.path) for file in result.proposed)
        rows += wrap(line(f"{INDENT}proposed, not applied: {names}"), width, INDENT * 2)
    if result.state != "complete":
        rows += _tried(result, width)
    if result.in_workspace:
        rows += wrap(line(("dim", f"{INDENT}{one_line(result.in_workspace)}")), width, INDENT * 2)
    column = name_column(check.name for check in result.checks)
    rows += [result_line(check, column, width) for check in result.checks]
    rows += wrap(line(("dim", f"{INDENT}{_history(result)}")), width, INDENT * 2)
    usd = f"{result.cost_usd:.4f} USD" if result.cost_usd is not None else "price unknown"
    spent = f"{result.tokens:,} tokens, {usd}, {format_duration(result.seconds)}"
    rounds = f"{count_of(result.corrections, 'correction')}, {count_of(result.replans, 'new plan')}"
    rows.append(line(("dim", f"{INDENT}{rounds}; {spent}; session {result.session_id}")))
    if result.undo:
        rows.append(line(f"{INDENT}undo: {result.undo}"))
    return rows
