"""Doing a stage: the tool loop, a question to a model, or code."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

from handrail.context.budget import shown_characters
from handrail.engine.asking import Afford, Asking, Cost
from handrail.engine.ending import Ending
from handrail.engine.limits import NO_BUDGET, Afforded, afford, shares
from handrail.engine.pipeline.definition import Catalogue, Output, Outputs, Stage
from handrail.engine.pipeline.failing import failing
from handrail.engine.pipeline.walker import Done
from handrail.models.base import Deadlines, Model, Request
from handrail.protocol.errors import BudgetReached, ModelProblem
from handrail.protocol.events import Answered
from handrail.protocol.values import Effort
from handrail.sessions.handle import Session
from handrail.sessions.run_state import RunState
from handrail.sessions.state import State
from handrail.sessions.transcript import Replied
from handrail.tools.gate import Gate
from handrail.tools.gathering import Tools
from handrail.tools.secrets import Secrets

MOST_FOUND = 60_000
"""Characters of what a stage of code may find for a model."""


class Steering(Protocol):
    """Takes what the user said meanwhile into the log; `pictures`: somebody can look at them."""

    def __call__(self, *, pictures: bool = True) -> None: ...


class Talk(NamedTuple):
    """What happens in the session's conversation."""

    work: Callable[[Effort | None], Awaitable[Ending]]
    """The tool loop, with an effort of its own where there is one."""
    reply: Callable[[dict[str, Any]], Awaitable[Answered]]
    """One answer of a JSON Schema, without tools."""
    let_end: Callable[[Callable[[], Awaitable[Ending]]], Awaitable[Ending]]
    """Hears the user's hooks on an answer; what they demand is answered again."""
    hear_end: Callable[[Ending], Awaitable[Ending]]
    """Hears them on the end of a run, when it was not the conversation that came last."""
    steer: "Steering"


class Means(NamedTuple):
    """What stages work with."""

    session: Session
    catalogue: Catalogue
    asking: Asking
    fast: Asking
    """The same for the role `fast`."""
    named: Callable[[str], Awaitable[Model]]
    """The model of a reference; raises where it cannot be asked."""
    gate: Gate
    tools: Tools
    deadlines: Deadlines
    secrets: Secrets


class Stages(NamedTuple):
    """Does the stages of one turn."""

    means: Means
    talk: Talk
    reached: Callable[[], str]
    """Which limit of the turn is reached, in words for the user; empty when none is."""

    def hear(self, *, pictures: bool) -> None:
        self.talk.steer(pictures=pictures)

    async def perform(self, stage: Stage, run: RunState, outputs: Outputs) -> Done:
        if stage.kind == "work":
            return self._answered(await self.talk.work(stage.effort), run)
        if reached := self.reached():
            return Done(Ending("budget", reached), {})
        if stage.kind == "answer":
            return await self._reply(stage, run)
        if stage.kind == "ask":
            return await self._ask(stage, run, outputs)
        return Done(Ending("answered"), await self._code(stage, run, outputs))

    async def _reply(self, stage: Stage, run: RunState) -> Done:
        """A small model answers as it always does, and looks at files on its way if it has to."""
        if self.means.asking.models[0].capabilities.one_action:
            return self._answered(await self.talk.work(stage.effort), run)
        from handrail.engine.pipeline.answering_stage import answer_stage

        done = Done(Ending("answered"), {})

        async def answer() -> Ending:
            nonlocal done
            if reached := self.reached():
                return Ending("budget", reached)
            done = await answer_stage(self.means.session, self.talk.reply, reads_only=run.reads_only)
            return done.ending

        ending = await self.talk.let_end(answer)
        return Done(ending, done.output)

    def _answered(self, ending: Ending, run: RunState) -> Done:
        """The conversation has the answer; only a stage after this one needs it, too."""
        began = run.open.seq if run.open else 0
        transcript = self.means.session.transcript
        replied = [entry for entry in transcript if isinstance(entry, Replied) and entry.seq > began]
        said = replied[-1].text if replied and not run.conversational else ""
        return Done(ending, {"answer": said} if said else {})

    async def _ask(self, stage: Stage, run: RunState, outputs: Outputs) -> Done:
        from handrail.engine.pipeline.asking_stage import ask_stage

        asking = await self._asking(stage)
        try:
            output, read = await ask_stage(
                stage,
                run,
                outputs,
                asking=asking,
                turn_id=self.means.session.turn.turn_id,
                deadlines=self.means.deadlines,
                secrets=self.means.secrets,
            )
        except BudgetReached:
            raise
        except ModelProblem:
            if stage.otherwise is None:
                raise
            return Done(Ending("answered"), dict(stage.otherwise))  # each failed request is in the log
        return Done(Ending("answered"), output, read)

    async def _asking(self, stage: Stage) -> Asking:
        """Who is asked, and with how much effort: the model that the stage names, or those of its role."""
        asking = self.means.fast if stage.role == "fast" else self.means.asking
        if stage.model:
            asking = asking._replace(models=[await self.means.named(stage.model)], effort=None)
        return asking._replace(effort=stage.effort or asking.effort)

    async def _code(self, stage: Stage, run: RunState, outputs: Outputs) -> Output:
        from handrail.engine.pipeline.code_stage import StageWork

        means = self.means
        taken = {name: outputs[name] for name in stage.takes if name in outputs}
        window = means.asking.models[0].capabilities.context_window
        work = StageWork(
            means.session,
            run,
            taken,
            gate=means.gate,
            tools=means.tools,
            turn_id=means.session.turn.turn_id,
            room=shown_characters(window, most=MOST_FOUND, share=3),
        )
        with failing(f"The stage {stage.name}"):
            return await means.catalogue.steps[stage.step](work)


def affording(session: Session, catalogue: Catalogue, cost: Cost) -> Afford:
    """Holds requests to the budgets of the run and of the stage that is under way."""

    def afforded(model: Model, request: Request) -> Afforded:
        run = session.state.run or _spoken_to(session.state)
        if run is None:
            return Afforded(request)
        pipeline = catalogue.same(run.pipeline, run.sha256)
        stage = pipeline.stage(run.open.stage).budget if run.open else NO_BUDGET
        return afford(request, shares(run, pipeline.budget, stage), lambda usage: cost(model, usage))

    return afforded


def _spoken_to(state: State) -> RunState | None:
    """The paused run, where the turn is about it."""
    return state.paused if state.paused and state.turn and state.turn.run_id == state.paused.run_id else None
