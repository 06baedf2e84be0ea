"""The runner: while this process holds a session, it takes commands from the inbox and runs turns."""

import time
from collections.abc import Callable
from contextlib import ExitStack

import anyio
from anyio import get_cancelled_exc_class
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from handrail.changes.crash_recovery import needs_recovery
from handrail.context.digest import compaction_without_model
from handrail.engine.host.session_title import TitleRequest
from handrail.engine.host.takeover import resumes_by_itself, take_over
from handrail.engine.host.turn_factory import TurnFactory
from handrail.engine.host.wakeup import Wakeup
from handrail.engine.router.confidence import WORK_ROUTE
from handrail.engine.router.router import Route
from handrail.engine.turn import run_turn
from handrail.engine.turn_end import Ending, early_end
from handrail.engine.user_input import command_events, look_before_message
from handrail.protocol.commands import (
    ApprovePlan,
    Cancel,
    CancelSubagent,
    CommitChanges,
    Compact,
    Redo,
    Rewind,
    RunAll,
    RunCommand,
    SendMessage,
    SetPlan,
    StopBackground,
)
from handrail.protocol.errors import HandrailError, StorageProblem, UsageProblem
from handrail.protocol.events import Compacted, Event, OutputRequested, TurnFinished, TurnStarted
from handrail.protocol.ids import new_id
from handrail.protocol.values import FinishReason
from handrail.sessions.session import Session
from handrail.sessions.storage_use import prune_announcement, prune_as_announced
from handrail.storage.locks import wait_for_workspace
from handrail.workspace.files import Workspace

FLUSH_SECONDS = 0.25
CHECK_TO_PAUSED_RUN = (
    "A run is paused here, and its answer cannot have a check or a schema. Answer without `--check` and "
    "`--output-schema`, leave the run (`exit pipeline`), or start another session."
)
BETWEEN_TURNS = Compact | Rewind | Redo | CommitChanges | RunCommand | RunAll | SetPlan | ApprovePlan
CANCEL_REASONS = {"user": "You cancelled it.", "signal": "It was stopped from outside, by a signal."}


class Runner:
    """Runs one held session until it is cancelled or the hold is lost."""

    def __init__(
        self,
        session: Session,
        workspace: Workspace,
        factory: TurnFactory,
        commits: Wakeup,
        *,
        begins: Callable[[set[str]], bool],
    ) -> None:
        """`begins`, given the ids of the waiting messages, says whether this process starts another turn."""
        self.session = session
        self.workspace = workspace
        self.factory = factory
        self.commits = commits
        self.begins = begins
        self._scope: anyio.CancelScope | None = None
        self._why_cancelled = ""
        self._storage_limit = factory.settings.storage.megabytes * 1_000_000
        self._title = TitleRequest(session, factory)
        self._prunes = False
        """The turn has begun by saying what is pruned at its end."""

    async def run(self) -> None:
        with ExitStack() as held:
            lock = None
            if needs_recovery(self.session):
                who = f"session {self.session.id}"
                lock = await wait_for_workspace(held, self.session.log.folder, who)
            take_over(self.session, self.workspace, lock)
        async with self.factory.background.open_for(self.session), anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_text)
            if self.session.state.turn and not (self._waits and self.factory.router.answerable):
                self._go_on(tasks)
            while True:
                seen = self.commits.version
                await self._take(tasks)
                await self.commits.wait(seen)

    @property
    def _waits(self) -> bool:
        """Whether the turn waits for the user's answer."""
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
            await self._title.give_way(command)
            match command:
                case SendMessage() if not busy:
                    if self.begins(messages):
                        await self._start_turn(number, command, tasks)
                case SendMessage():
                    pass  # the turn takes it at its next step
                case RunCommand() | RunAll() if not busy:
                    if self.begins({command.message_id}):
                        from handrail.engine.command_batch import batch_message

                        await self._start_turn(number, batch_message(command), tasks, picked=command)
                case Cancel():
                    withdrawn = [
                        each
                        for each, other in waiting
                        if isinstance(other, SendMessage | RunCommand | RunAll)
                        and other.message_id in command.withdraw
                    ]
                    self.session.append(take=[number, *withdrawn])
                    self._cancel(CANCEL_REASONS[command.by])
                case Compact() if not busy:
                    self._scope = anyio.CancelScope()
                    tasks.start_soon(self._compact, number, self._scope)
                case Rewind() | Redo() if not busy:
                    from handrail.engine.admin.history import carry_out_rewind

                    await carry_out_rewind(self.session, self.workspace, command, number)
                case CommitChanges() if not busy:
                    from handrail.engine.admin.history import commit_changes

                    await commit_changes(self.session, self.workspace, command, number)
                case _ if busy and isinstance(command, BETWEEN_TURNS):
                    pass  # when the turn has ended
                case CancelSubagent() | StopBackground():
                    self._stop(command)
                    self.session.append(take=[number])
                case _:
                    events = command_events(self.session, command, self.factory.intents)
                    self.session.append(*events, take=[number])
            if self.session.state.turn and not self._scope and not self._waits:
                self._go_on(tasks)  # the answer that it waited for since a restart has come
        if not (self.session.state.turn or self._scope):
            await self.factory.commit_changes(self.session)  # after an undo, or a turn that was cut off

    def _stop(self, command: CancelSubagent | StopBackground) -> None:
        if isinstance(command, CancelSubagent):
            self.factory.subagents.cancel(command.subagent_id)
        else:
            self.factory.background.stop(self.session.id, command.background_id, "user")

    def _cancel(self, why: str) -> None:
        self._why_cancelled = why
        if self._scope:
            self._scope.cancel()
        else:
            self._end("cancelled", why)

    async def _compact(self, number: int, scope: anyio.CancelScope) -> None:
        """Compact on request; the command stays in the inbox until it is done or cancelled."""
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
        self.commits.notify()

    async def _compacted(self) -> Compacted | None:
        try:
            compactor = await self.factory.compactor(self.session)
        except StorageProblem:
            raise
        except HandrailError:
            return compaction_without_model(self.session.state, self.session.transcript)
        return await compactor.event_now()

    # Turns

    async def _start_turn(
        self, number: int, command: SendMessage, tasks: TaskGroup, picked: RunCommand | RunAll | None = None
    ) -> None:
        """Start a turn: one commit with the message and, if rules decide the route, the run."""
        turn_id, model, problem = new_id("t"), None, ""
        state, router, resumed = self.session.state, self.factory.router, None
        paused = state.paused if picked is None else None
        run_id, run, route = paused.run_id if paused else "", list[Event](), Route(WORK_ROUTE)
        try:
            if command.resume:
                from handrail.engine.requests.resume_answer import resume_turn

                resumed = resume_turn(self.session, router, command, turn_id)
                command = resumed.command
            if paused and (command.check or command.output_schema is not None):
                raise UsageProblem(CHECK_TO_PAUSED_RUN)
            starts = resumed.run if resumed else None
            if paused is None and picked is None and starts is None:
                route = router.route(command, state, turn_id)
            model = await self.factory.model(self.session)
            if paused is None and starts is not None:
                run = starts
            elif paused is None:
                run = router.start(
                    route,
                    turn_id,
                    command,
                    state,
                    log=self.session.log,
                    capabilities=model.capabilities,
                    by_schema=command.output_schema is not None,
                )
        except StorageProblem:
            raise
        except HandrailError as error:
            problem = str(error)
        unseen = await look_before_message(self.session, self.workspace, command.text)
        built = self.factory.messages(model).build(
            command,
            state,
            turn_id,
            steering=False,
            run_id=run_id,
            told=resumed.told if resumed and resumed.run else route.told,
            pictures=not run_id,
            looked_up=await self.factory.look_up(command),
        )
        message = built.with_note(route.note).with_note(unseen)
        schema = command.output_schema
        if schema is not None:
            from handrail.engine.output_schema import schema_text

            message = message.with_told(schema_text(schema))
        if resumed and resumed.run:
            message = message._replace(event=resumed.message(message.event))
        message = message.for_run(paused, command, router.named_route(command)) if paused else message
        started = TurnStarted(
            turn_id=turn_id,
            number=state.turns + 1,
            model=model.name if model else "",
            mode=state.mode,
            check=command.check,
            attempts=command.attempts,
            run_id=run_id,
            unrouted=not route.name,
            repeats=resumed.repeats if resumed else 0,
        )
        if problem:
            finished = TurnFinished(turn_id=turn_id, reason="failed", detail=problem, cost_usd=0.0)
            self.session.append(message.event, started, finished, take=[number], blobs=message.blobs)
            return
        events: list[Event] = [message.event, started]
        run = [*([OutputRequested(turn_id=turn_id, schema=schema)] if schema is not None else []), *run]
        announced = prune_announcement(self.session.log, self._storage_limit)
        self._prunes = announced is not None
        if picked:
            from handrail.engine.command_batch import batch_events

            shown = self.factory.settings.commands.output_to_model
            events = batch_events(picked, message.event, started, told=shown)
        run += [announced] if announced else []
        self.session.append(*events, *run, take=[number], blobs=message.blobs)
        self._go_on(tasks)

    def _go_on(self, tasks: TaskGroup) -> None:
        self._scope = anyio.CancelScope()
        tasks.start_soon(self._run_turn, self._scope, tasks)

    async def _run_turn(self, scope: anyio.CancelScope, tasks: TaskGroup) -> None:
        with scope:
            try:
                await checkpoint()  # it may already have been cancelled
                await run_turn(await self.factory.context(self.session, scope))
            except get_cancelled_exc_class():
                state = self.session.state
                if scope.cancel_called:
                    self._end("cancelled", self._why_cancelled)
                elif not (self._waits or resumes_by_itself(state)):  # those continue after a restart
                    self._end("interrupted", "Handrail was closed; /continue goes on from there.")
                raise
            except StorageProblem:
                raise
            except HandrailError as problem:
                self._end("failed", str(problem))
        if self._scope is scope:
            self._scope = None
        self._title.start(tasks)
        self.commits.notify()
        if self._prunes:
            prune_as_announced(self.session, self._storage_limit)
        with anyio.CancelScope(shield=True):  # the map is refreshed even if Handrail is closed now
            await anyio.to_thread.run_sync(self.factory.map.refresh)

    def _end(self, reason: FinishReason, detail: str) -> None:
        if self.session.state.turn:
            self.session.append(*early_end(self.session, Ending(reason, detail), time.time()))
