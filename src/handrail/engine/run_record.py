"""The record of one run: its outputs, the input of stages, pauses, and values kept for later runs."""

import copy
import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from msgspec.structs import replace

from handrail.engine.pipeline import (
    IN_CONVERSATION,
    KEPT,
    Catalogue,
    Gate,
    Output,
    Outputs,
    Pause,
    Pipeline,
    Repair,
    Stage,
    definition_errors,
)
from handrail.protocol.errors import GiveUp, WrongSequence
from handrail.protocol.events import (
    Event,
    GateFailed,
    Recorded,
    RunContinued,
    RunPaused,
    RunRepaired,
    StageCompleted,
    StageStarted,
    ValueKept,
)
from handrail.protocol.events.runs import MenuChoice
from handrail.protocol.ids import new_id
from handrail.protocol.values import ReadAs
from handrail.sessions.run_state import RunState
from handrail.sessions.session import Session
from handrail.sessions.workspace_events import APPEND_TRIES, append_to_workspace, read_workspace
from handrail.storage.event_log import Log
from handrail.tools.tool import head_and_tail, truncate

INLINE = 16_000  # characters of an output that is stored in its event; larger ones are blobs
CONVERSATION_SHARE, PAUSE_CHARACTERS, MAX_KEPT_BYTES = 8_000, 4_000, 65_536
"""Characters of each output in the conversation, and of an output at a pause; bytes of all kept values."""
EXIT = "Leave this run, and do something else"
CHOOSE_PROMPT = "Choose a number, or say what should be different:"
Stored = Callable[[str], bytes | None]  # the content of a hash; None where it is no longer stored


class RunRecord:
    """A run with events that are not committed yet; the next effect or the end of the turn commits them."""

    def __init__(self, session: Session, pipeline: Pipeline, catalogue: Catalogue) -> None:
        self._session = session
        self._pipeline = pipeline
        self._catalogue = catalogue
        self._read: dict[str, Output] = {}  # large outputs by hash
        self.new: list[Event] = []
        self.blobs: list[bytes] = []
        self.run = copy.deepcopy(session.run)

    @property
    def outputs(self) -> Outputs:
        """The latest output of each completed stage, and the values that earlier runs kept."""
        found = outputs_of(self.run, self.stored, self._read)
        return {KEPT: self.run.kept, **found} if self.run.kept else found

    def stored(self, sha256: str) -> bytes | None:
        new = {hashlib.sha256(blob).hexdigest(): blob for blob in self.blobs}
        return new.get(sha256) or self._session.log.blob(sha256)

    def commit(self) -> None:
        if self.new:
            self._session.append(*self.new, blobs=self.blobs)
            self.new, self.blobs = [], []
            self.reload()

    def reload(self) -> None:
        self.run = copy.deepcopy(self._session.run)

    # Events, to be committed with the next effect

    def start_stage(self, stage: Stage) -> None:
        with definition_errors(f"The input of {stage.name}"):
            if says := self._catalogue.words.get(stage.says):
                text = says(self.outputs)
            else:
                parts = stage_input(stage, self.run, self.outputs, CONVERSATION_SHARE)
                text = "\n\n".join(filter(None, [stage.prompt, *parts]))
        self._add(stage_started(self.run.run_id, self._pipeline, stage, text, self.run.skips))

    def complete_stage(self, output: Output, read: tuple[ReadAs, ...]) -> None:
        """End the open stage; a large output becomes a blob."""
        data, stage = json.dumps(output, ensure_ascii=False), self._session.stage
        event = StageCompleted(run_id=self.run.run_id, stage_id=stage.stage_id, stage=stage.stage, read=read)
        if len(data) <= INLINE:
            self._add(replace(event, output=output))
            return
        self.blobs.append(data.encode())
        self._add(replace(event, blob=hashlib.sha256(self.blobs[-1]).hexdigest()))

    def fail_gate(self, stage: Stage, gate: Gate, issues: tuple[str, ...]) -> None:
        stage_id = self.run.stages[stage.name].stage_id
        self._add(
            GateFailed(
                run_id=self.run.run_id, stage_id=stage_id, stage=stage.name, gate=gate.check, issues=issues
            )
        )

    def repair(self, unit: Repair, number: int) -> None:
        self._add(RunRepaired(run_id=self.run.run_id, first=unit.first, last=unit.last, number=number))

    def next_round(self, first: str, number: int) -> None:
        self._add(RunContinued(run_id=self.run.run_id, first=first, number=number))

    def pause(self, pause: Pause) -> None:
        """Ask the user, with numbered choices; leaving the run is always the last one."""
        last = self.run.last
        with definition_errors(f"The text of the pause after {pause.after}"):
            words = (
                self._catalogue.words[pause.says](self.outputs) if pause.says else listed(self.outputs[last])
            )
            picks = tuple(self._catalogue.words[pause.picks](self.outputs).split()) if pause.picks else ()
        choices = [MenuChoice(text=option.text, then=option.then) for option in pause.options]
        choices.append(MenuChoice(text=EXIT, then="leave"))
        menu = "\n".join(f"{number}. {choice.text}" for number, choice in enumerate(choices, 1))
        shown = truncate(words, PAUSE_CHARACTERS, "The log has it all.")
        self._add(
            RunPaused(
                run_id=self.run.run_id,
                stage=last,
                text=f"{shown}\n\n{CHOOSE_PROMPT}\n{menu}".strip(),
                choices=tuple(choices),
                exit=len(choices),
                picks=picks,
            )
        )

    def _add(self, event: Event) -> None:
        self.new.append(event)
        self.run.apply(event)

    # The end

    def keep_values(self) -> str:
        """Keep values for later runs before this one ends, so that a kill loses none; the problem, if any."""
        if not self._pipeline.keeps:
            return ""
        return keep(self._session.log, self._pipeline, self.run.run_id, self.outputs)

    def words(self, name: str) -> str:
        """The text at the end, by the function of this name; without one, the last output."""
        if self.run.conversational:
            return ""
        if named := self._catalogue.words.get(name):
            with definition_errors("The text at the end"):
                return named(self.outputs)
        return "" if self.run.spoke else listed(self.outputs[self.run.last])  # else the conversation has it


# Events of stages


def stage_started(
    run_id: str, pipeline: Pipeline, stage: Stage, text: str, skips: Collection[str]
) -> StageStarted:
    stages = [each for each in pipeline.stages if each.name not in skips]
    return StageStarted(
        run_id=run_id,
        stage_id=new_id("st"),
        stage=stage.name,
        kind=stage.kind,
        text=text if stage.kind in IN_CONVERSATION else "",
        number=stages.index(stage) + 1,
        of=len(stages),
        tools=stage.tools,
    )


def outputs_of(run: RunState, stored: Stored, read: dict[str, Output]) -> Mapping[str, Output]:
    """The latest output of each completed stage; `read` caches large ones by hash."""
    found: dict[str, Output] = {}
    for name, done in run.stages.items():
        if done.output is None and done.blob not in read:
            data = stored(done.blob)
            if data is None:
                raise GiveUp(f"The output of the stage {name} is no longer stored. Ask again.")
            read[done.blob] = json.loads(data)
        found[name] = read[done.blob] if done.output is None else done.output
    return found


def sampling_temperature(stage: Stage, outputs: Outputs) -> float | None:
    """The temperature of an answer that is one of several candidates; None: there is no other."""
    found: float | None = outputs.get(stage.sampled_by, {}).get("temperature")
    return found


def stage_input(stage: Stage, run: RunState, outputs: Outputs, share: int) -> list[str]:
    """Outputs of other stages, issues to correct and the user's words, with `share` characters for each."""
    parts = [
        f"Output of {name}:\n{head_and_tail(text, share)}"
        for name in stage.takes
        if (text := _taken(name, outputs))
    ]
    if run.issues and sampling_temperature(stage, outputs) is None:
        if before := outputs.get(stage.name):
            parts.append(f"Your last answer:\n{head_and_tail(json.dumps(before, ensure_ascii=False), share)}")
        parts.append("Problems that have to be corrected:\n" + _bullets(run.issues))
    if run.chosen:
        parts.append(f"The user was asked how to continue, and chose: {run.chosen}")
    if run.feedback:
        parts.append("The user says:\n" + _bullets(run.feedback))
    return parts


def _taken(name: str, outputs: Outputs) -> str:
    """An output as JSON, or one field of it; a field that is a text stays as it is."""
    stage, _, field = name.partition(".")
    output = outputs.get(stage, {})
    value = output.get(field) if field else output
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) if value else ""


def _bullets(items: Sequence[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def listed(output: Output) -> str:
    lines = []
    for name, value in output.items():
        if isinstance(value, list):
            lines += [f"{name}:", *(f"- {_plain(each)}" for each in value), ""]
        elif value not in ("", None):
            lines.append(f"{name}: {_plain(value)}")
    return "\n".join(lines).strip()


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# Small named values that an agent keeps from run to run, in the log


def kept_before(log: Log, pipeline: Pipeline) -> dict[str, Any]:
    """The values that earlier runs kept, if the pipeline still names them."""
    return _kept_values(read_workspace(log), pipeline) if pipeline.keeps else {}


def keep(log: Log, pipeline: Pipeline, run_id: str, outputs: Outputs) -> str:
    """Record the values that have changed; the problem, if any. Doing it twice changes nothing."""
    fresh = {
        each.name: outputs[each.stage][each.field]
        for each in pipeline.keeps
        if each.field in outputs.get(each.stage, {})
    }
    for tried in count(1):
        events = list(read_workspace(log))
        before = _kept_values(events, pipeline)
        size = len(json.dumps({**before, **fresh}, ensure_ascii=False).encode(errors="replace"))
        if size > MAX_KEPT_BYTES:
            return (
                f"The values that {pipeline.name} keeps between runs would be {size:,} bytes, more than "
                f"{MAX_KEPT_BYTES:,}. None were kept. What was done stays; let it keep less."
            )
        news = [
            ValueKept(pipeline=pipeline.name, name=name, value=value, run_id=run_id)
            for name, value in fresh.items()
            if name not in before or before[name] != value
        ]
        if not news:
            return ""
        try:
            append_to_workspace(log, *news, after=events[-1].seq if events else 0)
        except WrongSequence:  # another run has kept something too: both have to fit
            if tried == APPEND_TRIES:
                raise
        else:
            break
    return ""


def _kept_values(events: Iterable[Recorded], pipeline: Pipeline) -> dict[str, Any]:
    wanted = {each.name for each in pipeline.keeps}
    found = (one.event for one in events if isinstance(one.event, ValueKept))
    return {each.name: each.value for each in found if each.pipeline == pipeline.name and each.name in wanted}
