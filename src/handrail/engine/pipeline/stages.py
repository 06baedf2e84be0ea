"""Doing a stage: the tool loop, a question to a model, or code."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from handrail.context.budget import shown_characters
from handrail.engine.asking import Afford, Asking, Cost
from handrail.engine.ending import Ending
from handrail.engine.limits import NO_BUDGET, Afforded, afford, shares
from handrail.engine.pipeline.definition import Catalogue, Output, Outputs, Stage
from handrail.engine.pipeline.walker import Done
from handrail.models.base import Deadlines, Model, Request
from handrail.protocol.errors import BudgetReached, ModelProblem
from handrail.protocol.events import Answered
from handrail.sessions.handle import Session
from handrail.sessions.run_state import RunState
from handrail.sessions.transcript import Replied
from handrail.tools.gate import Gate
from handrail.tools.gathering import Tools
from handrail.tools.secrets import Secrets

MOST_FOUND = 60_000
"""Characters of what a stage of code may find for a model."""


class Talk(NamedTuple):
    """What happens in the session's conversation."""

    work: Callable[[], Awaitable[Ending]]
    """The tool loop."""
    reply: Callable[[dict[str, Any]], Awaitable[Answered]]
    """One answer of a JSON Schema, without tools."""
    let_end: Callable[[Callable[[], Awaitable[Ending]]], Awaitable[Ending]]
    """Hears the user's hooks on an answer; what they demand is answered again."""
    hear_end: Callable[[Ending], Awaitable[Ending]]
    """Hears them on the end of a run, when it was not the conversation that came last."""


class Means(NamedTuple):
    """What stages work with."""

    session: Session
    catalogue: Catalogue
    asking: Asking
    fast: Model
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

    async def perform(self, stage: Stage, run: RunState, outputs: Outputs) -> Done:
        if stage.kind == "work":
            return self._answered(await self.talk.work(), run)
        if reached := self.reached():
            return Done(Ending("budget", reached), {})
        if stage.kind == "answer":
            return await self._reply(run)
        output = await (self._ask if stage.kind == "ask" else self._code)(stage, run, outputs)
        return Done(Ending("answered"), output)

    async def _reply(self, run: RunState) -> Done:
        """A small model answers as it always does, and looks at files on its way if it has to."""
        if self.means.asking.models[0].capabilities.one_action:
            return self._answered(await self.talk.work(), run)
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
        replied = [entry for entry in self.means.session.transcript if isinstance(entry, Replied)]
        said = replied[-1].text if replied and not run.conversational else ""
        return Done(ending, {"answer": said} if said else {})

    async def _ask(self, stage: Stage, run: RunState, outputs: Outputs) -> Output:
        from handrail.engine.pipeline.asking_stage import ask_stage

        asking, fast = self.means.asking, self.means.fast
        others = [model for model in asking.models if model is not fast]
        models = [fast, *others] if stage.role == "fast" else asking.models
        try:
            return await ask_stage(
                stage,
                run,
                outputs,
                asking=asking._replace(models=models),
                turn_id=_turn_id(self.means.session),
                deadlines=self.means.deadlines,
                secrets=self.means.secrets,
            )
        except BudgetReached:
            raise
        except ModelProblem:
            if stage.otherwise is None:
                raise
            return dict(stage.otherwise)  # each failed request is in the log

    async def _code(self, stage: Stage, run: RunState, outputs: Outputs) -> Output:
        from handrail.engine.pipeline.code_stage import StageWork

        means = self.means
        taken = {name: outputs[name] for name in stage.takes if name in outputs}
        turn_id = _turn_id(means.session)
        window = means.asking.models[0].capabilities.context_window
        work = StageWork(
            means.session,
            run,
            taken,
            gate=means.gate,
            tools=means.tools,
            turn_id=turn_id,
            room=shown_characters(window, most=MOST_FOUND, share=3),
        )
        return await means.catalogue.steps[stage.step](work)


def affording(session: Session, catalogue: Catalogue, cost: Cost) -> Afford:
    """Holds requests to the budgets of the run and of the stage that is under way."""

    def afforded(model: Model, request: Request) -> Afforded:
        run = session.state.run or session.state.paused
        if run is None:
            return Afforded(request)
        pipeline = catalogue.find(run.pipeline)
        stage = pipeline.stage(run.open.stage).budget if run.open else NO_BUDGET
        return afford(request, shares(run, pipeline.budget, stage), lambda usage: cost(model, usage))

    return afforded


def _turn_id(session: Session) -> str:
    return session.state.turn.turn_id if session.state.turn else ""
