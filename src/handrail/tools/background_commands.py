"""Commands in the background: begun by a call, followed while they run, and stopped with their session."""

import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Literal, NamedTuple

import anyio
from anyio.abc import TaskGroup

from handrail.protocol.errors import LostHold, ToolError, ToolRefused
from handrail.protocol.events import BackgroundEnd, BackgroundEnded, BackgroundStarted
from handrail.sessions.handle import Session
from handrail.sessions.live import BACKGROUND
from handrail.tools.base import Outcome, Work
from handrail.tools.clip import plain
from handrail.tools.command_outcome import with_opened
from handrail.tools.live_output import Screen
from handrail.tools.output import Output

EARLY = 0.5
"""Seconds in which what fails at once, such as a server without its port, is told with the start."""
MOST = 8
"""Commands that a session may have in the background at once."""
REMEMBERED = 8
"""Ended ones of which the output can still be asked for."""
KEPT, TAIL = 4_000_000, 256_000
"""Bytes of the output, from its start and from its end."""
LIVE_LIMIT = 1_000_000
READ_LIMIT = 3_000
STOP_SECONDS = 10.0
ABOUT = "`background` with id {id} reads its output, with wait seconds for its end, or stops it."

By = Literal["", "model", "user"]


class Finished(NamedTuple):
    """How a command ended that was not stopped."""

    outcome: Outcome
    code: int | None
    limited: bool
    """It was stopped at a limit."""


class Running:
    """A command in the background, and what is left of it when it has ended."""

    def __init__(self, background_id: str, command: str, work: Work) -> None:
        self.id = background_id
        self.command = command
        self.secrets = work.secrets
        self.output = Output(KEPT, TAIL)
        self.scope = anyio.CancelScope()
        self.stopped_by: By = ""
        self.end: BackgroundEnded | None = None
        self.opened: tuple[str, ...] = ()
        """Files it changed that no command should change."""
        self.content = ""
        """What the model is shown of one that has ended."""
        self._began = time.monotonic()
        self._over = anyio.Event()
        self._screen = Screen(
            work.session.live, background_id, work.secrets, kind=BACKGROUND, limit=LIVE_LIMIT
        )

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def state(self) -> str:
        return self.end.summary if self.end else f"runs for {self.seconds:.0f} s"

    def take(self, chunk: bytes) -> bool:
        self._screen.add(chunk)
        return self.output.add(chunk)

    async def ended_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self._over.wait()
        return self.end is not None

    def latest(self, limit: int = READ_LIMIT) -> str:
        """The end of what it has written."""
        return plain(self.secrets.hide(self.output.latest(limit))).rstrip("\n") or "(no output)"

    def told(self) -> Outcome:
        """What is known of it, for the model."""
        if self.end:
            status: Literal["ok", "failed"] = "ok" if self.end.code == 0 or self.stopped_by else "failed"
            summary = f"{self.id} has ended, {self.end.summary}"
            return Outcome(summary, f"[{self.id} has ended]\n{self.content}", self.end.shown, status)
        about = ABOUT.format(id=self.id)
        shown = self.latest()
        return Outcome(
            f"{self.id} {self.state}, in the background", f"[{self.id} {self.state}. {about}]\n{shown}", shown
        )

    def close(self, end: BackgroundEnded, content: str) -> None:
        self.end, self.content, self.output = end, content, Output()
        self._over.set()


Follow = Callable[[Running], Awaitable[Finished]]


class BackgroundCommands:
    """Those of the sessions that this process serves."""

    def __init__(self) -> None:
        self._open: dict[str, TaskGroup] = {}
        self._known: dict[str, dict[str, Running]] = {}

    @asynccontextmanager
    async def kept(self, session: Session) -> AsyncIterator[None]:
        """Let the session have commands in the background; what still runs when the block ends is stopped."""
        async with anyio.create_task_group() as tasks:
            self._open[session.id] = tasks
            try:
                yield
            finally:
                del self._open[session.id]
                tasks.cancel_scope.cancel()

    def start(self, work: Work, command: str, follow: Follow) -> Running:
        """Begin one; that it has begun is in the log before it does anything."""
        session, tasks = work.session, self._open.get(work.session.id)
        if tasks is None:
            raise _refused("Nothing can run in the background here: leave `background` out.")
        if len(self.running(session.id)) >= MOST:
            raise _refused(f"{MOST} commands run in the background already: stop one first.")
        running = Running(session.state.background.next_id, work.secrets.hide(command), work)
        session.append(
            BackgroundStarted(
                background_id=running.id, turn_id=work.turn_id, call_id=work.call_id, command=running.command
            )
        )
        self._known.setdefault(session.id, {})[running.id] = running
        tasks.start_soon(self._run, session, running, follow)
        return running

    def known(self, session_id: str) -> list[Running]:
        """Those that run, and the last that have ended."""
        return list(self._known.get(session_id, {}).values())

    def running(self, session_id: str) -> list[Running]:
        return [each for each in self.known(session_id) if each.end is None]

    def find(self, session_id: str, background_id: str) -> Running | None:
        return self._known.get(session_id, {}).get(background_id)

    def stop(self, session_id: str, background_id: str, by: By) -> None:
        """Stop one; where it has ended already, nothing happens."""
        found = self.find(session_id, background_id)
        if found and found.end is None:
            found.stopped_by = found.stopped_by or by
            found.scope.cancel()

    async def _run(self, session: Session, running: Running, follow: Follow) -> None:
        finished: Finished | None = None
        try:
            with running.scope:
                finished = await _followed(follow, running)
        finally:
            self._close(session, running, finished)

    def _close(self, session: Session, running: Running, finished: Finished | None) -> None:
        running.output.change(running.secrets.hide_bytes)
        latest = running.latest()
        lasted = f"{running.seconds:.1f} s"
        how: BackgroundEnd = "session"
        if finished:
            how, summary = "limit" if finished.limited else "exited", finished.outcome.summary
            content = finished.outcome.content
        else:
            how = "stopped" if running.stopped_by else "session"
            by = f"by the {running.stopped_by}" if running.stopped_by else "with the session"
            stopped = f"stopped {by} after {lasted}"
            told = with_opened(Outcome(stopped, f"[{stopped}]\n{latest}"), list(running.opened))
            summary, content = told.summary, told.content
        whole = running.output.whole()
        end = BackgroundEnded(
            background_id=running.id,
            command=running.command,
            how=how,
            code=finished.code if finished else None,
            summary=running.secrets.hide(summary),
            shown=latest,
            output=hashlib.sha256(whole).hexdigest() if whole else "",
            seconds=running.seconds,
        )
        running.close(end, running.secrets.hide(content))
        self._forget(session.id)
        with suppress(LostHold):  # whoever holds the session now has closed it in the log
            session.append(end, blobs=[whole] if whole else [], settle=[running.id])

    def _forget(self, session_id: str) -> None:
        ended = [each.id for each in self.known(session_id) if each.end]
        for background_id in ended[:-REMEMBERED]:
            del self._known[session_id][background_id]


async def _followed(follow: Follow, running: Running) -> Finished:
    try:
        return await follow(running)
    except OSError as error:
        message = f"It could not be started: {error.strerror or error}."
        return Finished(Outcome("not started", message, message, "failed"), None, limited=False)


def _refused(message: str) -> ToolRefused:
    return ToolRefused(ToolError(tool="run", reason="invalid_arguments", message=message))
