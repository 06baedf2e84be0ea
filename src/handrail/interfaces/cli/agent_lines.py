"""Agents and their runs as lines, for a person."""

import hashlib
import time
from collections.abc import Iterator

from handrail.interfaces.cli.agent_models import NOT_SENT, AgentModels
from handrail.interfaces.cli.figures import ago, duration, usd
from handrail.interfaces.cli.styles import flat
from handrail.pipelines.agent_definition import Agent
from handrail.pipelines.load import Trust
from handrail.protocol.events import (
    BreakoutPending,
    Event,
    GateFailed,
    RequestStarted,
    RunBrokenOff,
    RunCompleted,
    RunFailed,
    RunPaused,
    RunRepaired,
    RunResumed,
    StageCompleted,
    StageStarted,
)
from handrail.sessions.past_runs import PastRun

TRUST = {
    "own": "yours",
    "trusted": "of this workspace, trusted",
    "untrusted": "of this workspace, not trusted",
    "changed": "of this workspace, changed since you trusted it",
}
READ = {
    "as_is": "as it is",
    "fenced": "from a fence",
    "first_object": "from among words",
    "repaired": "repaired",
    "coerced": "types mended",
    "trimmed": "without what nobody asked for",
    "words": "its words",
}
SHOWN, VALUE, ASKED = 100, 500, 74
"""Characters: of what a run came to, of what an agent says of itself, of what a listed run was asked."""


def shown(agent: Agent, trust: Trust, models: AgentModels) -> Iterator[str]:
    """All that an agent is made of; what it says itself is cut where it is long, and never two lines."""
    yield flat(f"{agent.slug}: {agent.said.name}. {agent.said.description}")
    for label, text in _made_of(agent, trust, models):
        yield f"  {label:<10} {_short(flat(text), VALUE)}"


def _made_of(agent: Agent, trust: Trust, models: AgentModels) -> Iterator[tuple[str, str]]:
    said, pipeline = agent.said, agent.pipeline
    yield "from", str(agent.files.found.folder)
    yield "trust", TRUST[trust]
    yield "needs", ", ".join(said.needs)
    yield "budget", _budget(pipeline.budget.tokens, pipeline.budget.usd)
    for number, (entry, stage) in enumerate(zip(said.stages, pipeline.stages, strict=True), 1):
        what = entry.step if entry.kind == "code" else entry.prompt or "the conversation"
        yield f"stage {number}", f"{stage.name}: {entry.kind} {what}"
        yield from (("", line) for line in models.lines(stage))
        if stage.takes:
            yield "", f"takes {', '.join(stage.takes)}"
        yield from (("", f"{name} = {_plain(value)}") for name, value in entry.options.items())
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


def run_rows(run: PastRun, now: float) -> Iterator[str]:
    """A run in a list: what became of it, and below that what was asked."""
    spent = f"{run.tokens:,} tokens, {usd(run.usd)}"
    yield f"{run.run_id}  {run.end:<8}  {run.pipeline}  {ago(now - run.began)}, {spent}"
    yield f"    {_short(run.question, ASKED)}"


def run_shown(run: PastRun) -> Iterator[str]:
    """A run from its start to its end: stages, pauses, what was found wanting, cost and result."""
    yield f"{run.run_id}: {run.pipeline}, {run.end}"
    yield from _labelled("asked", run.question)
    yield f"  session    {run.session_id}"
    yield f"  began      {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(run.began))}"
    if run.sha256:
        yield f"  definition {run.sha256[:12]}"
    for one in run.events:
        for label, text in _told(one.event):
            yield from _labelled(label, text)
    yield f"  cost       {run.tokens:,} tokens, {usd(run.usd)}, {duration(run.ended - run.began)}"


def _labelled(label: str, text: str) -> Iterator[str]:
    first, *rest = text.split("\n")
    yield f"  {label:<10} {first}".rstrip()
    yield from (f"             {line}".rstrip() for line in rest)


def _told(event: Event) -> Iterator[tuple[str, str]]:
    match event:
        case StageStarted():
            of = f" ({event.number} of {event.of})" if event.of else ""
            yield "stage", f"{event.stage}{of}"
        case RequestStarted():
            told = [event.model, f"attempt {event.attempt}" if event.attempt > 1 else ""]
            sent = "" if event.effort_sent else f" ({NOT_SENT})"
            told.append(f"effort {event.effort}{sent}" if event.effort else "")
            yield "model", ", ".join(filter(None, told))
        case StageCompleted(output=output):
            if event.read:
                yield "read", ", ".join(READ[each] for each in event.read)
            fields = ", ".join(f"{name}: {_plain(value)}" for name, value in (output or {}).items())
            yield (
                "done",
                _short(fields, 3 * SHOWN) if fields else "kept beside the log" if event.blob else "-",
            )
        case GateFailed():
            yield "wanting", "\n".join(event.issues)
        case RunRepaired():
            yield "again", f"{event.first} to {event.last}, repair {event.number}"
        case RunPaused() | BreakoutPending():
            yield "paused", event.text
        case RunResumed():
            yield "you", event.feedback or event.choice or "go on"
        case RunCompleted():
            yield "result", event.text
        case RunFailed():
            yield "failed", f"{event.reason}: {event.detail}"
        case RunBrokenOff():
            yield "left", "what it found is kept"


def _budget(tokens: int | None, dollars: float | None) -> str:
    parts = [f"{tokens:,} tokens"] if tokens else []
    return ", ".join([*parts, f"${dollars:.2f}"] if dollars else parts) or "none of its own"


def _plain(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{'; '.join(map(_plain, value))}]"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_plain(each)}" for name, each in value.items())
    return str(value)


def _short(text: str, most: int = SHOWN) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
