"""The runner: while this process holds a session, it takes commands from the inbox and runs turns."""

import time
from collections.abc import Callable
from typing import Protocol

import anyio
from anyio import get_cancelled_exc_class
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from handrail.context.compaction import without_model
from handrail.context.map.repository_map import RepositoryMap
from handrail.engine.bell import Bell
from handrail.engine.compacting import Compacting
from handrail.engine.messages import Messages, Taken
from handrail.engine.pipeline.definition import Catalogue
from handrail.engine.pipeline.stages import Steering
from handrail.engine.routing.beginning import WORK, Way, Ways
from handrail.engine.routing.starting import run_of
from handrail.engine.takeover import ended_turn, resumes, take_over
from handrail.models.base import Model
from handrail.protocol.commands import (
    Cancel,
    Command,
    CommitChanges,
    Compact,
    Redo,
    Rewind,
    RunAll,
    RunCommand,
    SendMessage,
    StopBackground,
)
from handrail.protocol.errors import HandrailError, StorageProblem, UsageProblem
from handrail.protocol.events import (
    Compacted,
    Event,
    TurnFinished,
    TurnStarted,
    UserMessage,
)
from handrail.protocol.ids import new_id
from handrail.protocol.values import FinishReason
from handrail.sessions.handle import Session
from handrail.tools.background_commands import BackgroundCommands
from handrail.workspace.files import Workspace

FLUSH_SECONDS = 0.25
CHECKED = (
    "A run is paused here, and a check says nothing about it. Answer it without `--check`, leave it "
    "(`exit pipeline`), or begin another session."
)
CANCELLED = {"user": "You cancelled it.", "signal": "It was stopped from outside, by a signal."}


class Running(Protocol):
    """A turn, whatever it does first."""

    async def run(self) -> None: ...


class TurnMaker(Protocol):
    """Builds a turn with the model that the session now wants."""

    @property
    def ways(self) -> Ways:
        """How messages find the pipeline that they run through."""

    @property
    def map(self) -> RepositoryMap: ...

    @property
    def catalogue(self) -> Catalogue:
        """The pipelines that a message can run through."""

    @property
    def background(self) -> BackgroundCommands: ...

    def keep_bounded(self, session: Session) -> None: ...

    def select(self, session: Session, intent_id: str) -> list[Event]: ...

    async def model(self, session: Session) -> Model: ...

    def picked(self, command: RunCommand | RunAll, message: UserMessage, started: TurnStarted) -> list[Event]:
        """The events that begin a turn of commands that the user picked."""

    async def turn(self, session: Session, take_steering: Steering) -> Running: ...

    async def compacting(self, session: Session) -> Compacting: ...

    async def commit(self, session: Session) -> None:
        """Commit what was changed, where the user wants that unasked."""


def is_withdrawn(waiting: Command, cancel: Cancel) -> bool:
    if not isinstance(waiting, SendMessage | RunCommand | RunAll):
        return False
    return waiting.message_id in cancel.withdraw


class Runner:
    """Serves one held session until it is cancelled or the hold is lost."""

    def __init__(
        self,
        session: Session,
        workspace: Workspace,
        maker: TurnMaker,
        bell: Bell,
        *,
        begins: Callable[[set[str]], bool],
    ) -> None:
        """`begins` says, given the ids of the waiting messages, whether this process begins another turn."""
        self.session = session
        self.workspace = workspace
        self.maker = maker
        self.bell = bell
        self.begins = begins
        self._scope: anyio.CancelScope | None = None
        self._why_cancelled = ""
        self._model: Model | None = None
        """What answers in the turn that runs."""

    async def run(self) -> None:
        take_over(self.session, self.workspace)
        async with self.maker.background.kept(self.session), anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_text)
            if self.session.state.turn and not (self._waits and self.maker.ways.answerable):
                self._go_on(tasks)
            while True:
                ticket = self.bell.ticket()
                await self._take(tasks)
                await ticket.wait()

    @property
    def _waits(self) -> bool:
        """Whether the turn waits for the user's word."""
        return bool(self.session.state.approvals or self.session.state.questions)

    async def _keep_text(self) -> None:
        while True:
            await anyio.sleep(FLUSH_SECONDS)
            self.session.keep_live()

    # Commands

    async def _take(self, tasks: TaskGroup) -> None:
        waiting = self.session.waiting()
        messages = {command.message_id for _, command in waiting if isinstance(command, SendMessage)}
        for number, command in waiting:
            busy = self.session.state.turn is not None or self._scope is not None
            match command:
                case SendMessage() if not busy:
                    if self.begins(messages):
                        await self._begin(number, command, tasks)
                case SendMessage():
                    pass  # the turn takes it at its next step
                case RunCommand() | RunAll() if not busy:
                    if self.begins({command.message_id}):
                        from handrail.engine.running_all import as_message

                        await self._begin(number, as_message(command), tasks, picked=command)
                case Cancel():
                    back = [each for each, other in waiting if is_withdrawn(other, command)]
                    self.session.append(take=[number, *back])
                    self._cancel(CANCELLED[command.by])
                case Compact() if not busy:
                    self._scope = anyio.CancelScope()
                    tasks.start_soon(self._compact, number, self._scope)
                case Rewind() | Redo() if not busy:
                    from handrail.engine.rewinding import rewind

                    rewind(self.session, self.workspace, command, number)
                case CommitChanges() if not busy:
                    from handrail.engine.committing import commit

                    await commit(self.session, self.workspace, command, number)
                case Compact() | Rewind() | Redo() | CommitChanges() | RunCommand() | RunAll():
                    pass  # when the turn has ended
                case StopBackground():
                    self.maker.background.stop(self.session.id, command.background_id, "user")
                    self.session.append(take=[number])
                case _:
                    from handrail.engine.facts import facts

                    self.session.append(*facts(self.session, command, self.maker.select), take=[number])
            if self.session.state.turn and not self._scope and not self._waits:
                self._go_on(tasks)  # the word it waited for over a restart has come
        if not (self.session.state.turn or self._scope):
            await self.maker.commit(self.session)  # what was taken back, or is of a turn that was cut off

    def _cancel(self, why: str) -> None:
        self._why_cancelled = why
        if self._scope:
            self._scope.cancel()
        else:
            self._end("cancelled", why)

    async def _compact(self, number: int, scope: anyio.CancelScope) -> None:
        """What the user asked for; the command stays in the inbox until it is done or cancelled."""
        with scope:
            try:
                event = await self._compacted()
                self.session.append(*([event] if event else []), take=[number])
            except get_cancelled_exc_class():
                if scope.cancel_called:
                    self.session.append(take=[number])
                raise
        if self._scope is scope:
            self._scope = None
        self.bell.ring()

    async def _compacted(self) -> Compacted | None:
        try:
            compacting = await self.maker.compacting(self.session)
        except StorageProblem:
            raise
        except HandrailError:
            return without_model(self.session.state, self.session.transcript)
        return await compacting.event_now()

    # Turns

    async def _begin(
        self, number: int, command: SendMessage, tasks: TaskGroup, picked: RunCommand | RunAll | None = None
    ) -> None:
        """A message becomes a turn, in one commit with its leaving the inbox."""
        turn_id, model, problem = new_id("t"), "", ""
        paused = self.session.state.paused if picked is None else None
        run_id, run, way = paused.run_id if paused else "", list[Event](), Way(WORK)
        try:
            if paused and command.check:
                raise UsageProblem(CHECKED)
            if paused is None:
                way = self.maker.ways.of(command, self.session.state, turn_id) if picked is None else way
            self._model = await self.maker.model(self.session)
            model = self._model.name
            if paused is None:
                run = self._begun(way, turn_id, command, self._model)
        except StorageProblem:
            raise
        except HandrailError as error:
            problem = str(error)
        message = self._message(command, turn_id, steering=False, run_id=run_id, told=way.told)
        message = message.noting(way.noted)
        message = message.to_run(paused, command, self.maker.ways.named(command)) if paused else message
        state = self.session.state
        started = TurnStarted(
            turn_id=turn_id,
            number=state.turns + 1,
            model=model,
            mode=state.mode,
            check=command.check,
            attempts=command.attempts,
            run_id=run_id,
            unrouted=not way.route,
        )
        if problem:
            finished = TurnFinished(turn_id=turn_id, reason="failed", detail=problem, cost_usd=0.0)
            self.session.append(message.event, started, finished, take=[number], blobs=message.blobs)
        else:
            events = self.maker.picked(picked, message.event, started) if picked else [message.event, started]
            self.session.append(*events, *run, take=[number], blobs=message.blobs)
            self._go_on(tasks)

    def _begun(self, way: Way, turn_id: str, command: SendMessage, model: Model) -> list[Event]:
        return run_of(
            way,
            turn_id,
            command,
            catalogue=self.maker.catalogue,
            log=self.session.log,
            capabilities=model.capabilities,
            continues=self.maker.ways.continues,
        )

    def _message(
        self,
        command: SendMessage,
        turn_id: str,
        *,
        steering: bool,
        run_id: str = "",
        told: str = "",
        pictures: bool = True,
    ) -> Taken:
        return Messages(self.workspace, self.maker.map, self._model).taken(
            command,
            self.session.state,
            turn_id,
            steering=steering,
            run_id=run_id,
            told=told,
            pictures=pictures and not run_id,
        )

    def _take_steering(self, *, pictures: bool = True) -> None:
        turn = self.session.state.turn
        if turn is None or (self._scope and self._scope.cancel_called):
            return  # what is said after a cancel begins a turn of its own
        for number, command in self.session.waiting():
            if isinstance(command, SendMessage) and (command.check or self.maker.ways.named(command)):
                return  # it is a turn of its own, and what was said after it belongs to that
            if isinstance(command, SendMessage) and not self._is_for_paused(command):
                message = self._message(command, turn.turn_id, steering=True, pictures=pictures)
                self.session.append(message.event, take=[number], blobs=message.blobs)

    def _is_for_paused(self, command: SendMessage) -> bool:
        """Whether it answers a run that is paused while something else runs: then it waits for the end."""
        paused = self.session.state.paused
        if paused is None:
            return False
        from handrail.engine.breakout import is_answer

        return is_answer(paused, command.text)

    def _go_on(self, tasks: TaskGroup) -> None:
        self._scope = anyio.CancelScope()
        tasks.start_soon(self._run_turn, self._scope)

    async def _run_turn(self, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                await checkpoint()  # it may have been cancelled before it began
                turn = await self.maker.turn(self.session, self._take_steering)
                await turn.run()
            except get_cancelled_exc_class():
                self._cancelled(by_user=scope.cancel_called)
                raise
            except StorageProblem:
                raise
            except HandrailError as problem:
                self._end("failed", str(problem))
        if self._scope is scope:
            self._scope = None
        self.bell.ring()
        self.maker.keep_bounded(self.session)
        with anyio.CancelScope(shield=True):  # whoever leaves after the turn leaves a fresh map behind
            await anyio.to_thread.run_sync(self.maker.map.refresh)

    def _cancelled(self, *, by_user: bool) -> None:
        state = self.session.state
        if by_user:
            self._end("cancelled", self._why_cancelled)
        elif not (state.approvals or state.questions or resumes(state)):
            self._end("interrupted", "Handrail was closed; /continue goes on from there.")
        # else it can go on after a restart: with the user's word, or by itself

    def _end(self, reason: FinishReason, detail: str) -> None:
        if self.session.state.turn:
            self.session.append(*ended_turn(self.session, reason, detail, time.time()))
