"""The walker: does what comes next in a run, until it has ended or waits for the user."""

import copy
import hashlib
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from handrail.engine.ending import Ending
from handrail.engine.pipeline.definition import (
    KEPT,
    TALKS,
    Catalogue,
    Gate,
    Output,
    Outputs,
    Pipeline,
    Stage,
    Verdict,
)
from handrail.engine.pipeline.ends import run_end
from handrail.engine.pipeline.failing import failing
from handrail.engine.pipeline.following import Complete, Do, Fail, Flawed, Onward, Redo, Stop, following
from handrail.engine.pipeline.outputs import completed, outputs_of
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import BudgetReached, ModelProblem
from handrail.protocol.events import Event, GateFailed, RunContinued, RunRepaired, RunStarted, StageStarted
from handrail.protocol.ids import new_id
from handrail.protocol.values import ReadAs
from handrail.sessions.handle import Session
from handrail.sessions.run_state import RunState

ANSWERED = Ending("answered")
WAITS = Ending("waiting", "The run is paused and waits for your word.")


class Done(NamedTuple):
    """What a stage came to: how the turn would end with it, and what later stages are given."""

    ending: Ending
    output: Output
    read: tuple[ReadAs, ...] = ()
    """How a model's answer was read, where the output is one."""


class Performer(Protocol):
    """Does the work of a stage."""

    def hear(self, *, pictures: bool) -> None:
        """Take what the user said meanwhile; `pictures`: a stage to come can look at them."""

    async def perform(self, stage: Stage, run: RunState, outputs: Outputs) -> Done: ...


class Walked(NamedTuple):
    """How the turn ends, and what is to be committed together with that."""

    ending: Ending
    events: Sequence[Event]
    blobs: Sequence[bytes]


def begun(
    pipeline: Pipeline,
    turn_id: str,
    question: str,
    *,
    reads_only: bool = False,
    kept: Mapping[str, Any] = MappingProxyType({}),
    skips: tuple[str, ...] = (),
    continues: bool = False,
) -> list[Event]:
    """The events that begin a run, to be committed with those of its turn; `kept` is of earlier runs."""
    run_id = new_id("run")
    conversational = pipeline.conversational(skips)
    started = RunStarted(
        run_id=run_id,
        turn_id=turn_id,
        pipeline=pipeline.name,
        question="" if conversational else question,
        conversational=conversational,
        reads_only=reads_only,
        skips=skips,
        continues=continues,
        sha256=pipeline.sha256,
        kept=dict(kept),
    )
    first = pipeline.first(skips)
    return [started, _started(run_id, pipeline, first, first.prompt, skips)]


def _started(
    run_id: str, pipeline: Pipeline, stage: Stage, told: str, skips: Collection[str]
) -> StageStarted:
    walked = [each for each in pipeline.stages if each.name not in skips]
    return StageStarted(
        run_id=run_id,
        stage_id=new_id("st"),
        stage=stage.name,
        kind=stage.kind,
        text=told if stage.kind in TALKS else "",
        number=walked.index(stage) + 1,
        of=len(walked),
    )


class Walker:
    """Walks one run. All it knows is in the session's state, so any process can go on with it."""

    def __init__(
        self, session: Session, catalogue: Catalogue, pipeline: Pipeline, performer: Performer
    ) -> None:
        self._session = session
        self._catalogue = catalogue
        self._pipeline = pipeline
        self._performer = performer
        self._new: list[Event] = []
        self._blobs: list[bytes] = []
        self._read: dict[str, Output] = {}
        self._run = self._folded()

    async def walk(self) -> Walked:
        """Go on until the run has ended, or waits for the user."""
        words = told = ""
        try:
            ending = await self._until_ended()
            words, told = self._words(self._pipeline.ends, ending), self._words(self._pipeline.tells, ending)
        except BudgetReached as problem:
            ending = Ending("budget", str(problem))
        except ModelProblem as problem:
            ending = Ending("failed", str(problem))
        events = [*self._new, *run_end(self._run, self._stored, ending, words, told)]
        return Walked(ending, events, self._blobs)

    async def _until_ended(self) -> Ending:
        ending = ANSWERED
        while True:
            match following(self._pipeline, self._run, self._judge):
                case Do(stage):
                    if self._run.open is None and stage.kind not in TALKS:  # the conversation hears by itself
                        self._hear()
                    done = await self._do(stage)
                    if done.reason != "answered":
                        return done
                    ending = done if done.detail else ending  # what the user has to know of a stage stays
                case Flawed(stage, gate, issues):
                    self._note(self._flaw(stage, gate, issues))
                case Redo(unit, number):
                    run_id, (first, last, _) = self._run.run_id, unit
                    self._note(RunRepaired(run_id=run_id, first=first, last=last, number=number))
                case Onward(first, number):
                    self._note(RunContinued(run_id=self._run.run_id, first=first, number=number))
                case Stop(pause):
                    self._hear()
                    from handrail.engine.pipeline.pausing import paused

                    with failing(f"What is said at the pause after {pause.after}"):
                        event = paused(pause, self._run, self._outputs, self._catalogue)
                    self._note(event)
                    return WAITS
                case Complete():
                    if self._pipeline.last(self._run.skips).kind not in TALKS:
                        self._commit()  # hooks are heard before the turn ends: a kill then costs no stage
                    return self._keep() or ending
                case Fail(detail):
                    return Ending("failed", detail)

    async def _do(self, stage: Stage) -> Ending:
        """Do a stage, or go on with it where it is open; what it came to is noted."""
        if self._run.open is None:
            from handrail.engine.pipeline.telling import told_to_conversation

            says = self._catalogue.words.get(stage.says)
            with failing(f"What {stage.name} is told"):
                told = told_to_conversation(stage, self._run, self._outputs, says)
            self._note(_started(self._run.run_id, self._pipeline, stage, told, self._run.skips))
        self._commit()
        done = await self._performer.perform(stage, self._run, self._outputs)
        self._run = self._folded()
        if done.ending.reason == "answered":
            event, blobs = completed(self._run, self._session.stage, done.output, done.read)
            self._note(event)
            self._blobs += blobs
        return done.ending

    def _hear(self) -> None:
        """Take what the user said while the last stage worked, for those that follow."""
        if not any(isinstance(command, SendMessage) for _, command in self._session.waiting()):
            return
        self._commit()
        names = [stage.name for stage in self._pipeline.stages]
        done = names.index(self._run.last) + 1 if self._run.last else 0
        coming = [stage for stage in self._pipeline.stages[done:] if stage.name not in self._run.skips]
        if all(stage.kind == "code" for stage in coming):
            return  # nobody is left who could make something of it: it begins a turn of its own
        self._performer.hear(pictures=any(stage.kind in TALKS for stage in coming))
        self._run = self._folded()

    def _flaw(self, stage: Stage, gate: Gate, issues: tuple[str, ...]) -> GateFailed:
        return GateFailed(
            run_id=self._run.run_id,
            stage_id=self._run.stages[stage.name].stage_id,
            stage=stage.name,
            gate=gate.check,
            issues=issues,
        )

    def _keep(self) -> Ending | None:
        """Keep what later runs are given; before the run has ended, so that a kill cannot lose it."""
        if not self._pipeline.keeps:
            return None
        from handrail.engine.pipeline.keeping import keep

        problem = keep(self._session.log, self._pipeline, self._run.run_id, self._outputs)
        return Ending("failed", problem) if problem else None

    def _judge(self, stage: Stage, gate: Gate) -> Verdict:
        outputs = self._outputs
        with failing(f"The check {gate.check} of the stage {stage.name}"):
            return self._catalogue.checks[gate.check](outputs[stage.name], outputs)

    def _words(self, name: str, ending: Ending) -> str:
        """What is said at the end, by the function of this name."""
        if ending.reason != "answered" or self._run.conversational:
            return ""
        if named := self._catalogue.words.get(name):
            with failing("What is said at the end"):
                return named(self._outputs)
        if self._run.spoke:
            return ""  # the conversation has it
        from handrail.engine.pipeline.pausing import listed

        return listed(self._outputs[self._run.last])

    # What is noted becomes a fact with the next commit: before the next effect, or with the end of the turn.

    def _note(self, event: Event) -> None:
        self._new.append(event)
        self._run.apply(event)

    def _commit(self) -> None:
        if self._new:
            self._session.append(*self._new, blobs=self._blobs)
            self._new, self._blobs = [], []
            self._run = self._folded()

    def _folded(self) -> RunState:
        return copy.deepcopy(self._session.run)

    @property
    def _outputs(self) -> Outputs:
        found = outputs_of(self._run, self._stored, self._read)
        return {KEPT: self._run.kept, **found} if self._run.kept else found

    def _stored(self, sha256: str) -> bytes | None:
        new = {hashlib.sha256(blob).hexdigest(): blob for blob in self._blobs}
        return new.get(sha256) or self._session.log.blob(sha256)
