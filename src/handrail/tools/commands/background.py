"""Background commands: start, follow and stop them; the background tool."""

import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Literal, NamedTuple

import anyio
from anyio.abc import TaskGroup

from handrail.protocol.errors import LostHold
from handrail.protocol.events import BackgroundEnd, BackgroundEnded, BackgroundStarted
from handrail.protocol.values import Value
from handrail.sessions.live_text import BACKGROUND
from handrail.sessions.session import Session
from handrail.storage.protected_copies import ChangeReport
from handrail.tools.commands.output import CapturedOutput, LiveOutput, with_protected_changes
from handrail.tools.tool import CallContext, Outcome, Tool, strip_control_codes, tool_refused

EARLY_EXIT_SECONDS = 0.5  # a command that fails this early is reported with its start
MAX_RUNNING = 8
MAX_ENDED = 8  # ended commands whose output can still be read
HEAD_BYTES, TAIL_BYTES = 4_000_000, 256_000
LIVE_LIMIT = 1_000_000
READ_LIMIT = 3_000
STOP_SECONDS = 10.0
MAX_WAIT = 600.0
USAGE_HINT = "Call `background` with id {id} to read its output, wait for its end or stop it."

StoppedBy = Literal["", "model", "user"]


class BackgroundResult(NamedTuple):
    outcome: Outcome
    code: int | None
    limited: bool


class BackgroundCommand:
    def __init__(self, background_id: str, command: str, work: CallContext) -> None:
        self.id = background_id
        self.command = command
        self.secrets = work.secrets
        self.output = CapturedOutput(HEAD_BYTES, TAIL_BYTES)
        self.scope = anyio.CancelScope()
        self.stopped_by: StoppedBy = ""
        self.end: BackgroundEnded | None = None
        self.changed = ChangeReport()
        self.content = ""
        self._began = time.monotonic()
        self._over = anyio.Event()
        live, secrets = work.session.live, work.secrets
        self._screen = LiveOutput(live, background_id, secrets, kind=BACKGROUND, limit=LIVE_LIMIT)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def state(self) -> str:
        return self.end.summary if self.end else f"running for {self.seconds:.0f} s"

    def take(self, chunk: bytes) -> bool:
        self._screen.add(chunk)
        return self.output.add(chunk)

    async def ended_within(self, seconds: float = EARLY_EXIT_SECONDS) -> bool:
        with anyio.move_on_after(seconds):
            await self._over.wait()
        return self.end is not None

    def latest(self, limit: int = READ_LIMIT) -> str:
        return strip_control_codes(self.secrets.hide(self.output.tail(limit))).rstrip("\n") or "(no output)"

    def outcome(self) -> Outcome:
        """Its state and latest output, for the model."""
        if self.end:
            status: Literal["ok", "failed"] = "ok" if self.end.code == 0 or self.stopped_by else "failed"
            summary = f"{self.id} has ended, {self.end.summary}"
            return Outcome(summary, f"[{self.id} has ended]\n{self.content}", self.end.shown, status)
        shown, hint = self.latest(), USAGE_HINT.format(id=self.id)
        summary = f"{self.id} {self.state}, in the background"
        return Outcome(summary, f"[{self.id} {self.state}. {hint}]\n{shown}", shown)

    def close(self, end: BackgroundEnded, content: str) -> None:
        self.end, self.content, self.output = end, content, CapturedOutput()
        self._over.set()


RunCommand = Callable[[BackgroundCommand], Awaitable[BackgroundResult]]


class BackgroundCommands:
    """The background commands of the sessions that this process serves."""

    def __init__(self) -> None:
        self._open: dict[str, TaskGroup] = {}
        self._known: dict[str, dict[str, BackgroundCommand]] = {}

    @asynccontextmanager
    async def open_for(self, session: Session) -> AsyncIterator[None]:
        """Allow background commands in the session; stops those still running at the end of the block."""
        async with anyio.create_task_group() as tasks:
            self._open[session.id] = tasks
            try:
                yield
            finally:
                del self._open[session.id]
                tasks.cancel_scope.cancel()

    def start(self, work: CallContext, command: str, follow: RunCommand) -> BackgroundCommand:
        """Start a command, once its start is in the log."""
        session, tasks = work.session, self._open.get(work.session.id)
        if tasks is None:
            message = "Commands cannot run in the background here. Leave `background` out."
            raise tool_refused("run", "invalid_arguments", message)
        if len(self.running(session.id)) >= MAX_RUNNING:
            message = f"{MAX_RUNNING} commands already run in the background. Stop one first."
            raise tool_refused("run", "invalid_arguments", message)
        running = BackgroundCommand(session.state.background.next_id, work.secrets.hide(command), work)
        ids = {"background_id": running.id, "turn_id": work.turn_id, "call_id": work.call_id}
        session.append(BackgroundStarted(**ids, command=running.command))
        self._known.setdefault(session.id, {})[running.id] = running
        tasks.start_soon(self._run, session, running, follow)
        return running

    def known(self, session_id: str) -> list[BackgroundCommand]:
        """The running commands and the last ended ones."""
        return list(self._known.get(session_id, {}).values())

    def running(self, session_id: str) -> list[BackgroundCommand]:
        return [each for each in self.known(session_id) if each.end is None]

    def find(self, session_id: str, background_id: str) -> BackgroundCommand | None:
        return self._known.get(session_id, {}).get(background_id)

    def stop(self, session_id: str, background_id: str, by: StoppedBy) -> None:
        """Stop the command, if it still runs."""
        found = self.find(session_id, background_id)
        if found and found.end is None:
            found.stopped_by = found.stopped_by or by
            found.scope.cancel()

    async def _run(self, session: Session, running: BackgroundCommand, follow: RunCommand) -> None:
        result: BackgroundResult | None = None
        try:
            with running.scope:
                result = await follow(running)
        except OSError as error:
            message = f"It could not be started: {error.strerror or error}."
            result = BackgroundResult(Outcome("not started", message, message, "failed"), None, limited=False)
        finally:
            self._close(session, running, result)

    def _close(self, session: Session, running: BackgroundCommand, result: BackgroundResult | None) -> None:
        running.output.transform(running.secrets.hide_bytes)
        latest = running.latest()
        how: BackgroundEnd
        if result:
            how, outcome = "limit" if result.limited else "exited", result.outcome
        else:
            how = "stopped" if running.stopped_by else "session"
            by = f"by the {running.stopped_by}" if running.stopped_by else "with the session"
            summary = f"stopped {by} after {running.seconds:.1f} s"
            outcome = with_protected_changes(Outcome(summary, f"[{summary}]\n{latest}"), running.changed)
        whole = running.output.whole()
        end = BackgroundEnded(
            background_id=running.id,
            command=running.command,
            how=how,
            code=result.code if result else None,
            summary=running.secrets.hide(outcome.summary),
            shown=latest,
            output=hashlib.sha256(whole).hexdigest() if whole else "",
            seconds=running.seconds,
        )
        running.close(end, running.secrets.hide(outcome.content))
        ended = [each.id for each in self.known(session.id) if each.end]
        for background_id in ended[:-MAX_ENDED]:
            del self._known[session.id][background_id]
        with suppress(LostHold):  # the session's new holder has closed it in the log
            session.append(end, blobs=[whole] if whole else [], settle=[running.id])


class BackgroundArguments(Value):
    id: str = ""
    wait: float = 0
    stop: bool = False


class Background(Tool[BackgroundArguments]):
    name = "background"
    description = "List, read or stop background commands."
    action = "look"
    arguments = BackgroundArguments

    def __init__(self, commands: BackgroundCommands) -> None:
        self._commands = commands

    def summary(self, arguments: BackgroundArguments, work: CallContext) -> str:
        return f"{'stop ' * arguments.stop}{arguments.id}"

    async def run(self, arguments: BackgroundArguments, work: CallContext) -> Outcome:
        known = self._commands.known(work.session.id)
        if not arguments.id and not arguments.stop:
            running = sum(each.end is None for each in known)
            listed = "\n".join(f"{each.id} {each.state}: {each.command}" for each in known)
            return Outcome(f"{running} running", listed or "There are none.")
        found = self._commands.find(work.session.id, arguments.id)
        if found is None:
            ids = ", ".join(each.id for each in known) or "none"
            message = f"There is no background command {arguments.id[:20]!r} now. There are: {ids}."
            raise tool_refused(self.name, "invalid_arguments", message)
        if arguments.stop:
            self._commands.stop(work.session.id, found.id, "model")
        await found.ended_within(STOP_SECONDS if arguments.stop else min(arguments.wait, MAX_WAIT))
        return found.outcome()
