"""The turn: its course through a pipeline, and the tool loop: ask, run what is called, until answered."""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from handrail.context.assemble import assemble
from handrail.context.images import Stored
from handrail.context.prompt import Prompt
from handrail.context.run_summaries import with_runs
from handrail.engine.asking import Asking, ask
from handrail.engine.attempts import Attempts
from handrail.engine.compacting import Compacting
from handrail.engine.course import Course
from handrail.engine.ending import Ending, cut_short
from handrail.engine.left_off import CUT_OFF, last_answer
from handrail.engine.limits import Limits, exceeded
from handrail.engine.pipeline.ends import run_end
from handrail.engine.pipeline.stages import Steering, Talk
from handrail.engine.pipeline.walker import Walked
from handrail.engine.stuck import stuck
from handrail.engine.takeover import close_turn
from handrail.models.base import Deadlines, Model, Request
from handrail.protocol.errors import BudgetReached, FixRequest, ModelProblem
from handrail.protocol.events import Answered, Compacted, Nudged
from handrail.protocol.values import Effort
from handrail.sessions.handle import Session
from handrail.sessions.transcript import Replied
from handrail.sessions.turn_state import TurnState
from handrail.tools.gate import Gate
from handrail.tools.secrets import Secrets

if TYPE_CHECKING:
    from handrail.tools.hooks import Hooks


class Turn:
    """One running turn. All it knows is in the session's state, so any process can go on with it."""

    def __init__(
        self,
        *,
        session: Session,
        asking: Asking,
        gate: Gate,
        prompt: Prompt,
        limits: Limits,
        deadlines: Deadlines,
        take_steering: Steering,
        attempts: Attempts,
        secrets: Secrets,
        compacting: Compacting,
        stored: Stored,
        course: Course,
        settle: Callable[[], Awaitable[None]],
        intents: Callable[[], str],
        hooks: "Hooks | None" = None,
    ) -> None:
        """`settle` does what is to be done with what was changed, before the turn counts as ended."""
        self.session = session
        self.asking = asking
        self.gate = gate
        self.prompt = prompt
        self.limits = limits
        self.deadlines = deadlines
        self.take_steering = take_steering
        self.attempts = attempts
        self.secrets = secrets
        self.compacting = compacting
        self.stored = stored
        self.course = course
        self.settle = settle
        self.intents = intents
        self.hooks = hooks
        self.began = time.monotonic()
        self.waited_before = session.state.turn.waited if session.state.turn else 0.0

    async def run(self) -> None:
        """Go on until the turn has its end in the log."""
        talk = Talk(self.work, self.reply, self.let_end, self.hear_end, self.take_steering)
        walked = await self.course.run(talk, self.reached)
        await self.settle()
        self._finish(walked)

    async def end(self, ending: Ending) -> None:
        """Write the end of the turn into the log, and of its run with it."""
        await self.settle()
        self._finish(Walked(ending, run_end(self.session.state.run, self.session.log.blob, ending), ()))

    async def work(self, effort: Effort | None) -> Ending:
        """The tool loop: ask and run what is called, until an answer passes the check, if there is one."""
        checked = bool(self._turn.check)
        answer = partial(self._answer, self.asking._replace(effort=effort or self.asking.effort))
        return await (self.attempts.until_passed(answer) if checked else answer())

    async def reply(self, schema: dict[str, Any]) -> Answered:
        """One answer of the schema, without tools."""
        from handrail.engine.replying import as_structured, replying

        self.take_steering()
        await self.make_room()
        request = partial(replying, self._request, schema)
        return await self._ask(as_structured(self.asking, schema), request)

    async def let_end(self, answer: Callable[[], Awaitable[Ending]]) -> Ending:
        """The ending that the user's hooks agree to, if there are any."""
        if self.hooks is None:
            return await answer()
        from handrail.engine.hooked_end import until_let_end

        return await until_let_end(self.hooks, self.session, answer)

    async def hear_end(self, ending: Ending) -> Ending:
        """The same where the run is over: nobody can be sent back to work."""
        if self.hooks is None:
            return ending
        from handrail.engine.hooked_end import heard_at_end

        return await heard_at_end(self.hooks, self.session, ending)

    async def make_room(self) -> None:
        """Compact the conversation, where the next request would not fit."""
        if self.compacting.due:
            self._append(await self.compacting.event())

    def reached(self) -> str:
        """Which limit of the turn is reached, in words for the user; empty when none is."""
        return exceeded(self._turn, self.session.state.run, self.limits, self._seconds())

    async def _answer(self, asking: Asking) -> Ending:
        try:
            return await self.let_end(partial(self._until_answered, asking))
        except BudgetReached as problem:
            return Ending("budget", str(problem))
        except ModelProblem as problem:
            return Ending("failed", str(problem))

    async def _until_answered(self, asking: Asking) -> Ending:
        if before := last_answer(self.session):
            if before.end not in ("cancelled", "interrupted"):
                return Ending("answered", cut_short(before))
            self.session.append(Nudged(turn_id=self._turn.turn_id, text=CUT_OFF))
        while True:
            await self._run_calls()
            if self._is_done():
                return Ending("answered")
            if ending := self._must_end():
                return ending
            self.take_steering()
            await self.make_room()
            answered = await self._ask(asking, self._request)
            if not answered.calls:
                return Ending("answered", cut_short(answered))

    def _is_done(self) -> bool:
        """Small models are asked once: the check, or the change itself, says more than another answer."""
        small = self.asking.models[0].capabilities.one_action
        return small and bool(self._turn.calls) and bool(self._turn.check or self._turn.made)

    async def _run_calls(self) -> None:
        calls = [state.call for state in self._turn.unfinished()]
        await self.gate.run_all(calls, self._turn.turn_id)

    def _must_end(self) -> Ending | None:
        turn = self._turn
        if reached := self.reached():
            return Ending("budget", reached)
        if circles := stuck(turn.recent):
            if turn.nudges:
                return Ending("stuck", f"The model was told, and went on: {circles}")
            text = f"[Handrail: {circles} Try something else, or say what stands in the way.]"
            self.session.append(Nudged(turn_id=turn.turn_id, text=text))
        return None

    async def _ask(self, asking: Asking, request: Callable[[Model], Request]) -> Answered:
        try:
            return await ask(asking, self._turn.turn_id, request)
        except FixRequest as problem:
            # The provider counts more tokens than we do: its word goes before our estimate, once.
            if not problem.too_long or not self._append(self.compacting.event_by_code()):
                raise
        return await ask(asking, self._turn.turn_id, request)

    def _seconds(self) -> float:
        """How long this process has worked at the turn, by a clock that cannot be set."""
        return time.monotonic() - self.began - (self._turn.waited - self.waited_before)

    def _request(self, model: Model) -> Request:
        prompt = self.prompt.rewriting(self._turn.rewrite).answering(self._turn.refusal)
        run = self.session.state.run
        return assemble(
            prompt=prompt.only_reading(self._read()) if run and run.reads_only else prompt,
            cut=with_runs(self.session.state, model.capabilities.context_window),
            transcript=self.compacting.shown(model),
            capabilities=model.capabilities,
            model=model.name,
            max_output=self.limits.max_output_tokens,
            deadlines=self.deadlines,
            temperature=self._turn.temperature,
            secrets=self.secrets,
            stored=self.stored,
        )

    def _read(self) -> list[str]:
        """The files that were read in this turn."""
        begun = self._turn.message_seq
        said = (each for each in self.session.transcript if isinstance(each, Replied) and each.seq > begun)
        return [str(call.arguments.get("path")) for each in said for call in each.calls]

    def _append(self, event: Compacted | None) -> bool:
        """Whether there was anything to compact."""
        if event:
            self.session.append(event)
            self.prompt = self.prompt._replace(intents=self.intents())  # selected since the turn began
        return event is not None

    @property
    def _turn(self) -> TurnState:
        return self.session.turn

    def _finish(self, walked: Walked) -> None:
        turn, (ending, events, blobs) = self._turn, walked
        finished = close_turn(turn, ending.reason, ending.detail, turn.seconds(time.time()))
        self.session.append(*events, finished, blobs=blobs)
        self.session.save_snapshot()
