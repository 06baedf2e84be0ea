"""The run tool."""

import math
from typing import Annotated, Any, NamedTuple

import anyio.to_thread
from pydantic import Field

from handrail.protocol.values import Value
from handrail.tools.background_commands import EARLY, BackgroundCommands, Finished, Running
from handrail.tools.base import About, Outcome, Tool, Work
from handrail.tools.command_outcome import (
    one_line,
    outcome_of,
    signal_of,
    with_changes,
    with_note,
    with_opened,
    with_reached,
    with_sandbox,
)
from handrail.tools.editing import TodoId
from handrail.tools.live_output import Screen
from handrail.tools.output import Output
from handrail.tools.process import Ended, run_process
from handrail.tools.sandbox.closed import changed_files, closed_files
from handrail.tools.sandbox.sandbox import Sandbox
from handrail.tools.sandbox.surveyed import new_repositories
from handrail.tools.starting import Start, ground_of, start_of
from handrail.tools.watching import Watch, snapshot_of

WITH_NETWORK = "with network: "
IN_BACKGROUND = "in the background: "
NO_HOOKS = "[hooks of the repository were not run]"


class RunArguments(Value):
    command: Annotated[str, Field(min_length=1)]
    timeout: Annotated[float, Field(gt=0, le=600, description="seconds, 30 if left out")] = 30
    network: Annotated[bool, Field(description="if needed; the user is asked")] = False
    background: bool = False
    todo: TodoId = ""


class Done(NamedTuple):
    """A command that has ended, before it is put into words."""

    ended: Ended
    output: Output
    reached: str
    """Limits of the kernel that it ran into."""
    opened: tuple[str, ...]
    """Files it changed that no command should change."""


class Run(Tool[RunArguments]):
    name = "run"
    description = "Run a bash command in the workspace, without stdin and network."
    action = "run"
    arguments = RunArguments

    def __init__(self, sandbox: Sandbox, background: BackgroundCommands | None = None) -> None:
        self._sandbox = sandbox
        self._background = background or BackgroundCommands()
        self._watch: Watch | None = None

    def about(self, arguments: RunArguments) -> About:
        todos = (arguments.todo,) if arguments.todo else ()
        return About(command=arguments.command, network=arguments.network, todos=todos)

    def summary(self, arguments: RunArguments, work: Work) -> str:
        return f"{how(arguments)}{one_line(arguments.command)}"

    def subject(self, arguments: RunArguments, work: Work) -> dict[str, Any]:
        return {"command": arguments.command, "network": arguments.network}

    def preview(self, arguments: RunArguments, work: Work) -> str:
        return f"{how(arguments)}{arguments.command}"

    async def confined(self) -> bool:
        return (await self._sandbox.protection()).files

    async def run(self, arguments: RunArguments, work: Work) -> Outcome:
        start = await start_of(arguments.command, work, network=arguments.network)
        if arguments.background:
            return await self._in_background(arguments, work, start)
        output = Output()
        live = Screen(work.session.live, work.call_id, work.secrets)

        def take(chunk: bytes) -> bool:
            live.add(chunk)
            return output.add(chunk)

        async with self._watched(work).around(work, self._label(arguments, work)) as told:
            ground = ground_of(work, start.environ, told.before, git=start.git)
            before = closed_files(ground)
            async with self._sandbox.confine(start.words, ground, network=start.network) as confined:
                ended = await run_process(
                    confined.words,
                    folder=ground.workspace,
                    environment=confined.environ,
                    timeout=arguments.timeout,
                    take=take,
                    bounds=confined.bounds,
                )
                reached = confined.reached()
        opened = changed_files(before, closed_files(ground, before))
        opened += new_repositories(told.before, told.after) if work.unasked else []
        output.change(work.secrets.hide_bytes)
        done = Done(await self._seen(ended), output, reached, tuple(opened))
        return with_changes(await self._outcome(done, start, arguments.timeout), told)

    async def _in_background(self, arguments: RunArguments, work: Work, start: Start) -> Outcome:
        before = await anyio.to_thread.run_sync(snapshot_of, work.workspace.root)
        ground = ground_of(work, start.environ, before, git=start.git)
        closed = closed_files(ground)

        def opened() -> tuple[str, ...]:
            changed = changed_files(closed, closed_files(ground, closed))
            made = new_repositories(before, snapshot_of(work.workspace.root)) if work.unasked else []
            return (*changed, *made)

        async def follow(running: Running) -> Finished:
            try:
                done = await run_it(running)
            finally:  # also of one that is stopped
                with anyio.CancelScope(shield=True):
                    running.opened = await anyio.to_thread.run_sync(opened)
            outcome = await self._outcome(done._replace(opened=running.opened), start, math.inf)
            return Finished(outcome, done.ended.code, limited=bool(outcome.error))

        async def run_it(running: Running) -> Done:
            async with self._sandbox.confine(start.words, ground, network=start.network) as confined:
                ended = await run_process(
                    confined.words,
                    folder=ground.workspace,
                    environment=confined.environ,
                    timeout=math.inf,
                    take=running.take,
                    bounds=confined.bounds,
                )
                reached = confined.reached()
            running.output.change(work.secrets.hide_bytes)
            return Done(await self._seen(ended), running.output, reached, ())

        running = self._background.start(work, one_line(arguments.command), follow)
        await running.ended_within(EARLY)
        return running.told()

    def _label(self, arguments: RunArguments, work: Work) -> str:
        """What the changes are put down to: whatever runs in the background may have made them too."""
        others = [each.command for each in self._background.running(work.session.id)]
        beside = f"; in the background ran: {', '.join(others)}" if others else ""
        return f"{one_line(arguments.command)}{beside}"

    async def _outcome(self, done: Done, start: Start, timeout: float) -> Outcome:
        protection = await self._sandbox.protection()
        outcome = with_reached(outcome_of(done.ended, done.output, timeout), done.reached)
        outcome = with_note(outcome, NO_HOOKS) if start.git and outcome.status == "ok" else outcome
        outcome = with_opened(outcome, list(done.opened))
        return with_sandbox(outcome, protection, network=start.network)

    async def _seen(self, ended: Ended) -> Ended:
        """How it ended, without what only the sandbox adds to that."""
        if (await self._sandbox.protection()).name != "bubblewrap":
            return ended
        # What is in the group after the end is bubblewrap itself; what the command left, it has told.
        return ended._replace(code=signal_of(ended.code), left_running=False)

    def _watched(self, work: Work) -> Watch:
        if self._watch is None or self._watch.workspace.root != work.workspace.root:
            self._watch = Watch(work.workspace)
        return self._watch


def how(arguments: RunArguments) -> str:
    """What a person is to know before the command itself."""
    return IN_BACKGROUND * arguments.background + WITH_NETWORK * arguments.network
