"""Agents in folders, the models of their stages, and their runs as lines."""

import hashlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from handrail.interfaces.cli.render.styles import format_age, format_duration, format_usd, one_line, shorten
from handrail.protocol import events

if TYPE_CHECKING:
    from handrail.app.extensions.agents import Agent, Agents, ListedAgent, PastRun, Stage, Trust

EFFORT_NOT_SENT = "not sent: this model is not known to take it"
TRUST_LABELS = {
    "own": "yours",
    "built in": "comes with Handrail",
    "trusted": "of this workspace, trusted",
    "untrusted": "of this workspace, not trusted",
    "changed": "of this workspace, changed since you trusted it",
}
READ_LABELS = {
    "as_is": "as it is",
    "fenced": "from a fence",
    "first_object": "found in text",
    "repaired": "repaired",
    "coerced": "types corrected",
    "trimmed": "extra fields dropped",
    "words": "as text",
}
OUTPUT_CHARS, VALUE_CHARS, QUESTION_CHARS = 300, 500, 74


def list_row(listed: "ListedAgent") -> str:
    """An agent in a list: its name, whether it can be used, and what it is for."""
    return f"{one_line(listed.found.slug):<20} {listed.state:<12} {one_line(listed.description)}"


def agent_details(agent: "Agent", trust: "Trust", agents: "Agents") -> Iterator[str]:
    """What an agent consists of, a fact a line; its own texts are cut where they are long."""
    yield one_line(f"{agent.slug}: {agent.definition.name}. {agent.definition.description}")
    for label, text in _agent_fields(agent, trust, agents):
        yield f"  {label:<10} {shorten(one_line(text), VALUE_CHARS)}"


def _agent_fields(agent: "Agent", trust: "Trust", agents: "Agents") -> Iterator[tuple[str, str]]:
    definition, pipeline = agent.definition, agent.pipeline
    yield "from", str(agent.files.found.folder)
    yield "trust", TRUST_LABELS[trust]
    yield "needs", ", ".join(definition.needs)
    if definition.mode:
        yield "mode", f"{definition.mode} at most"
    if definition.tools:
        yield "tools", ", ".join(definition.tools)
    yield "budget", _budget(pipeline.budget.tokens, pipeline.budget.usd)
    for number, (entry, stage) in enumerate(zip(definition.stages, pipeline.stages, strict=True), 1):
        what = entry.step if entry.kind == "code" else entry.prompt or "the conversation"
        yield f"stage {number}", f"{stage.name}: {entry.kind} {what}"
        yield from (("", line) for line in _model_lines(stage, agents))
        if stage.takes:
            yield "", f"takes {', '.join(stage.takes)}"
        if stage.tools:
            yield "", f"tools {', '.join(stage.tools)}"
        yield from (("", f"{name} = {_as_text(value)}") for name, value in entry.options.items())
        yield from (("", f"gate {gate.check}, else {gate.fails}") for gate in stage.gates)
        if stage.budget.tokens or stage.budget.usd:
            yield "", f"budget {_budget(stage.budget.tokens, stage.budget.usd)}"
        if pause := pipeline.pause_after(stage.name):
            yield "", f"then pauses: {', '.join(option.text for option in pause.options)}"
    for unit in pipeline.repairs:
        through = unit.first if unit.first == unit.last else f"{unit.first} to {unit.last}"
        yield "repair", f"{through}, {'once' if unit.times == 1 else f'{unit.times} times'} at most"
    for keep in pipeline.keeps:
        yield "keeps", f"{keep.name}, from {keep.stage}.{keep.field}"
    for name, data in sorted(agent.files.files.items()):
        yield "file", f"{name} {hashlib.sha256(data).hexdigest()[:12]}"


def _model_lines(stage: "Stage", agents: "Agents") -> Iterator[str]:
    """Which model an `ask` or `work` stage asks, and with how much effort."""
    model = agents.model_of(stage)
    if stage.kind == "ask":
        name = stage.model or (f"{stage.role}, now {model.name}" if model.name else stage.role)
        yield f"model {name}{f' at {model.place}' if model.place else ''}"
    if model.problem:
        yield f"which cannot be asked: {model.problem}"
    if stage.effort:
        yield f"effort {stage.effort}{'' if model.takes_effort else f' ({EFFORT_NOT_SENT})'}"


def run_rows(run: "PastRun", now: float) -> Iterator[str]:
    """A run in a list: its outcome, and below that the question."""
    spent = f"{run.tokens:,} tokens, {format_usd(run.usd)}"
    yield f"{run.run_id}  {run.end:<8}  {run.pipeline}  {format_age(now - run.began)}, {spent}"
    yield f"    {shorten(run.question, QUESTION_CHARS)}"


def run_details(run: "PastRun") -> Iterator[str]:
    yield f"{run.run_id}: {run.pipeline}, {run.end}"
    yield from _labelled("asked", run.question)
    yield f"  session    {run.session_id}"
    yield f"  began      {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(run.began))}"
    if run.sha256:
        yield f"  definition {run.sha256[:12]}"
    for one in run.events:
        for label, text in _event_fields(one.event):
            yield from _labelled(label, text)
    took = format_duration(run.ended - run.began)
    yield f"  cost       {run.tokens:,} tokens, {format_usd(run.usd)}, {took}"


def _labelled(label: str, text: str) -> Iterator[str]:
    first, *rest = text.split("\n")
    yield f"  {label:<10} {first}".rstrip()
    yield from (f"             {line}".rstrip() for line in rest)


def _event_fields(event: events.Event) -> Iterator[tuple[str, str]]:
    match event:
        case events.StageStarted():
            of = f" ({event.number} of {event.of})" if event.of else ""
            yield "stage", f"{event.stage}{of}"
        case events.RequestStarted():
            attempt = f", attempt {event.attempt}" if event.attempt > 1 else ""
            sent = "" if event.effort_sent else f" ({EFFORT_NOT_SENT})"
            yield "model", f"{event.model}{attempt}{f', effort {event.effort}{sent}' if event.effort else ''}"
        case events.StageCompleted(output=output):
            if event.read:
                yield "read", ", ".join(READ_LABELS[each] for each in event.read)
            fields = ", ".join(f"{name}: {_as_text(value)}" for name, value in (output or {}).items())
            empty = "kept beside the log" if event.blob else "-"
            yield "done", shorten(fields, OUTPUT_CHARS) or empty
        case events.GateFailed():
            yield "gate", "\n".join(event.issues)
        case events.RunRepaired():
            yield "again", f"{event.first} to {event.last}, repair {event.number}"
        case events.RunPaused() | events.BreakoutPending():
            yield "paused", event.text
        case events.RunResumed():
            yield "you", event.feedback or event.choice or "go on"
        case events.RunCompleted():
            yield "result", event.text
        case events.RunFailed():
            yield "failed", f"{event.reason}: {event.detail}"
        case events.RunBrokenOff():
            yield "left", "what it found is kept"


def _budget(tokens: int | None, dollars: float | None) -> str:
    parts = [f"{tokens:,} tokens"] if tokens else []
    return ", ".join([*parts, f"${dollars:.2f}"] if dollars else parts) or "none of its own"


def _as_text(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{'; '.join(map(_as_text, value))}]"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_as_text(each)}" for name, each in value.items())
    return str(value)
