"""Doing a stage: the tool loop, a question to a model, or code."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from handrail.engine.asking import Afford, Asking, Cost
from handrail.engine.ending import Ending
from handrail.engine.limits import NO_BUDGET, Afforded, afford, shares
from handrail.engine.pipeline.definition import Catalogue, Output, Outputs, Stage
from handrail.engine.pipeline.walker import Done
from handrail.models.base import Deadlines, Model, Request
from handrail.sessions.handle import Session
from handrail.sessions.run_state import RunState
from handrail.sessions.transcript import Replied
from handrail.tools.gate import Gate
from handrail.tools.gathering import Tools
from handrail.tools.secrets import Secrets

Work = Callable[[], Awaitable[Ending]]
"""The tool loop, in the session's conversation."""


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
    work: Work
    reached: Callable[[], str]
    """Which limit of the turn is reached, in words for the user; empty when none is."""

    async def perform(self, stage: Stage, run: RunState, outputs: Outputs) -> Done:
        if stage.kind == "work":
            return self._answered(await self.work(), run)
        if reached := self.reached():
            return Done(Ending("budget", reached), {})
        output = await (self._ask if stage.kind == "ask" else self._code)(stage, run, outputs)
        return Done(Ending("answered"), output)

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
        return await ask_stage(
            stage,
            run,
            outputs,
            asking=asking._replace(models=models),
            turn_id=_turn_id(self.means.session),
            deadlines=self.means.deadlines,
            secrets=self.means.secrets,
        )

    async def _code(self, stage: Stage, run: RunState, outputs: Outputs) -> Output:
        from handrail.engine.pipeline.code_stage import StageWork

        means = self.means
        taken = {name: outputs[name] for name in stage.takes if name in outputs}
        turn_id = _turn_id(means.session)
        work = StageWork(means.session, run, taken, gate=means.gate, tools=means.tools, turn_id=turn_id)
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
