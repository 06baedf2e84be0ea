"""Sessions hosted by this process, and the stream of their events, from any process."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct

from handrail.engine.host.wakeup import Wakeup
from handrail.protocol.errors import HandrailError, LostHold, StorageUnreachable
from handrail.protocol.events import Delta, Recorded
from handrail.protocol.ids import session_stream
from handrail.sessions.live_text import forget_offset, stored_since
from handrail.sessions.session import Session
from handrail.storage.event_log import Log

PAGE_EVENTS = 200
HOLD_SECONDS = 0.25  # how soon a dead holder is noticed


class HostedSession(Struct, eq=False):
    session: Session
    scope: anyio.CancelScope
    failure: HandrailError | None = None


class SessionHost:
    """The sessions of this process: each is run from here whenever no other process runs it."""

    def __init__(
        self, tasks: TaskGroup, commits: Wakeup, updates: Wakeup, run: Callable[[Session], Awaitable[None]]
    ) -> None:
        """`commits` is notified of commits, `updates` also of streamed text; `run` runs a held session."""
        self._tasks = tasks
        self._commits = commits
        self._updates = updates
        self._run = run
        self._hosted: dict[str, HostedSession] = {}

    def get(self, session_id: str) -> HostedSession | None:
        return self._hosted.get(session_id)

    def serve(self, session: Session) -> None:
        """Run the session from now on, whenever no other process does."""
        hosted = HostedSession(session, anyio.CancelScope())
        self._hosted[session.id] = hosted
        session.watchers.append(self._commits.notify)
        session.live.watchers.append(self._updates.notify)
        self._tasks.start_soon(self._hold, hosted)

    def release(self, session_id: str) -> None:
        if hosted := self._hosted.pop(session_id, None):
            hosted.scope.cancel()

    def all(self) -> list[HostedSession]:
        return list(self._hosted.values())

    def live_text(self, log: Log, session_id: str, offsets: dict[tuple[str, str], int]) -> list[Delta]:
        """Text that streams in any process and that a follower has not got; updates its `offsets`."""
        hosted = self._hosted.get(session_id)
        if hosted and hosted.session.held:
            return list(hosted.session.live.since(offsets))
        return list(stored_since(log, session_stream(session_id), offsets))

    def close(self) -> None:
        for session_id in list(self._hosted):
            self.release(session_id)

    async def _hold(self, hosted: HostedSession) -> None:
        with hosted.scope:
            try:
                await self._run_whenever_free(hosted.session)
            except* HandrailError as problems:
                hosted.failure = first_problem(problems)
        self._commits.notify()

    async def _run_whenever_free(self, session: Session) -> None:
        while True:
            try:
                if session.try_hold():
                    await self._run(session)
            except* (LostHold, StorageUnreachable):
                pass  # another process runs it now, and this one follows; or the database is asked again
            finally:
                session.release()
            await anyio.sleep(HOLD_SECONDS)


def first_problem(group: BaseExceptionGroup[Any]) -> Any:
    """The error inside nested exception groups."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def no_pace() -> float:
    """For a follower that wants everything at once."""
    return 0.0


async def one_by_one(
    batches: AsyncGenerator[list[Recorded] | list[Delta], None],
) -> AsyncGenerator[Recorded | Delta, None]:
    async with aclosing(batches):
        async for batch in batches:
            for item in batch:
                yield item


async def follow_batches(
    log: Log, host: SessionHost, updates: Wakeup, session_id: str, after: int, *, pace: Callable[[], float]
) -> AsyncGenerator[list[Recorded] | list[Delta], None]:
    """Events after a sequence number and streamed text, from any process, forever.

    After a wait, what comes within `pace()` seconds is read together.
    """
    reader = Session(log, session_id)
    seq, offsets = after, dict[tuple[str, str], int]()
    while True:
        version = updates.version
        hosted = host.get(session_id)
        ours = hosted.session if hosted and hosted.session.held else None
        if (ours is None or ours.seq > seq) and (found := reader.read_after(seq, PAGE_EVENTS)):
            for one in found:
                forget_offset(offsets, one.event)
            seq = found[-1].seq
            yield found
            continue
        if hosted and hosted.failure:
            raise hosted.failure
        if deltas := host.live_text(log, session_id, offsets):
            yield deltas
            continue
        await updates.wait(version)
        if seconds := pace():
            await anyio.sleep(seconds)
