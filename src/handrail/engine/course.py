"""The course of a turn: what its message means to a paused run, and then the walk through a pipeline."""

import copy
import time
from collections.abc import Callable

from handrail.engine.earlier import earlier_turns
from handrail.engine.ending import Ending
from handrail.engine.messages import Taken
from handrail.engine.pipeline.definition import TALKS, Catalogue
from handrail.engine.pipeline.ends import broken_off
from handrail.engine.pipeline.stages import Means, Stages, Talk
from handrail.engine.pipeline.walker import Walked, Walker, begun
from handrail.engine.routing.beginning import TASKS, Way, Ways
from handrail.engine.routing.starting import run_of
from handrail.engine.side_call import SideCall
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import ConfigProblem, HandrailError, UsageProblem
from handrail.protocol.events import BreakoutPending, Event, Recorded, RunResumed, UserMessage
from handrail.protocol.ids import new_id
from handrail.sessions.run_state import RunState
from handrail.sessions.state import State
from handrail.sessions.turn_state import TurnState

EARLY = Ending(
    "waiting",
    "This was sent before the run asked, and answers nothing of that. The stages to come are told of it; "
    "the run still waits for your word.",
)
WORDLESS = Ending("waiting", "A run gets only your words, and there are none. It still waits for your word.")
ASKED = Ending("waiting", "You are asked whether to leave the run.")
CLARIFIES = Ending("waiting", "You are asked what you want.")
STAYS = "The run stays paused. Answer again once this is mended, or leave the run: `exit pipeline`."
LEFT = Ending("answered", "You have left the run; what it found is kept. Say what you want next.")


class Course:
    """Where one turn goes. All it knows is in the session's state, so any process can go on with it."""

    def __init__(
        self,
        means: Means,
        side: SideCall,
        said: Callable[[SendMessage, State], Taken],
        ways: Ways,
    ) -> None:
        """`said` makes a message of the turn, with all that the model is shown with it."""
        self._ways = ways
        self._means = means
        self._session = means.session
        self._side = side
        self._said = said

    async def run(self, talk: Talk, reached: Callable[[], str]) -> Walked:
        """Go on until the turn can end. `reached` says which limit of the turn is."""
        state = self._session.state
        if state.run is None and state.paused and state.paused.run_id == self._turn.run_id:
            if ended := await self._heeded(state.paused):
                return ended
        elif state.run is None and self._turn.unrouted:
            if asked := await self._routed():
                return asked
        elif state.run is None:  # the turn was begun by a Handrail that had no runs
            self._session.append(*begun(self._catalogue.find(""), self._turn.turn_id, ""))
        pipeline = self._catalogue.same(self._run.pipeline, self._run.sha256)
        catalogue = self._catalogue.of(pipeline)
        stages = Stages(self._means._replace(catalogue=catalogue), talk, reached)
        skips = self._run.skips
        walked = await Walker(self._session, catalogue, pipeline, stages).walk()
        if walked.ending.reason != "answered" or pipeline.last(skips).kind in TALKS:
            return walked
        return walked._replace(ending=await talk.hear_end(walked.ending))

    async def _routed(self) -> Walked | None:
        """Let a model say where the message goes; the end of the turn where the user is asked instead."""
        from handrail.engine.routing.asking import route_by_model

        message = self._message
        routed = await route_by_model(
            message.text,
            self._turn.turn_id,
            side=self._side,
            secrets=self._means.secrets,
            earlier=earlier_turns(self._session),
            thresholds=self._ways.thresholds,
            tasks=TASKS in self._catalogue.pipelines,
        )
        if not routed.route:
            return Walked(CLARIFIES, [routed], ())
        self._session.append(*self._begun(Way(routed.route, routed), message))
        return None

    def _begun(self, way: Way, message: UserMessage) -> list[Event]:
        return run_of(
            way,
            self._turn.turn_id,
            message,
            catalogue=self._catalogue,
            log=self._session.log,
            capabilities=self._means.asking.models[0].capabilities,
            continues=self._ways.continues,
        )

    async def _heeded(self, run: RunState) -> Walked | None:
        """How the turn ends with what was said to the paused run; None where there is more to do."""
        from handrail.engine.breakout import CONFIRM, Confirm, Leave, Resume, Unsaid, decide

        message = self._message
        if message.early or _is_wordless(message):
            return Walked(EARLY if message.early else WORDLESS, [], ())
        decision = decide(run, message.text, message.route)
        if isinstance(decision, Resume | Unsaid) and (problem := self._hindered(run)):
            return Walked(Ending("waiting", problem), [], ())
        if isinstance(decision, Unsaid):
            from handrail.engine.leaving import read_by_model

            decision = await read_by_model(run, message.text, self._side, self._means.secrets)
        match decision:
            case Confirm(why):
                return Walked(ASKED, [_pending(run, message, f"{why}\n\n{CONFIRM}".strip())], ())
            case Leave(text, first):
                return await self._leave(run, text, message, first=first)
            case Resume(feedback, again, choice):
                told = "\n\n".join(filter(None, (feedback, message.attached if feedback else "")))
                self._session.append(RunResumed(run_id=run.run_id, feedback=told, again=again, choice=choice))
        return None

    def _hindered(self, run: RunState) -> str:
        """Why a paused run cannot go on now; it stays paused, and can be left."""
        try:
            self._catalogue.same(run.pipeline, run.sha256)
        except (UsageProblem, ConfigProblem) as problem:
            return f"{problem}\n{STAYS}"
        return ""

    async def _leave(self, run: RunState, text: str, message: UserMessage, *, first: bool) -> Walked | None:
        """End the run, and begin with what the user wants instead."""
        left = broken_off(run, self._session.log.blob)
        if not text:
            return Walked(LEFT, [left], ())
        asked: BreakoutPending | UserMessage = run.leaving if first and run.leaving else message
        # The message tells of the run that it ends, and both become facts at once.
        after = copy.deepcopy(self._session.state)
        after.apply(Recorded(self._session.stream, self._session.seq + 1, time.time(), left))
        command = SendMessage(
            text=text,
            images=asked.images,
            route=asked.route,
            suggested=asked.suggested,
            message_id=new_id("m"),
        )
        again, blobs = self._said(command, after)
        try:
            way = self._ways.of(command, after, self._turn.turn_id)
            started = self._begun(way, again)
        except HandrailError:
            self._session.append(left, again, blobs=blobs)  # the run is left, whatever becomes of the message
            raise
        self._session.append(left, again, *started, blobs=blobs)
        return None if started else await self._routed()

    @property
    def _catalogue(self) -> Catalogue:
        return self._means.catalogue

    @property
    def _turn(self) -> TurnState:
        return self._session.turn

    @property
    def _run(self) -> RunState:
        return self._session.run

    @property
    def _message(self) -> UserMessage:
        """What the user said to begin the turn."""
        (recorded,) = self._session.read_after(self._turn.message_seq - 1, 1)
        if not isinstance(recorded.event, UserMessage):
            raise AssertionError("a turn begins with a message")
        return recorded.event


def _is_wordless(message: UserMessage) -> bool:
    """Whether there is nothing in it but pictures."""
    from handrail.context.mentions import MENTION

    return not (MENTION.sub("", message.text) if message.images else message.text).strip()


def _pending(run: RunState, message: UserMessage, text: str) -> BreakoutPending:
    return BreakoutPending(
        run_id=run.run_id,
        message_id=message.message_id,
        message=message.text,
        images=message.images,
        text=text,
        route=message.route,
        suggested=message.suggested,
    )
