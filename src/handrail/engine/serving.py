"""Serving sessions: each is run from here whenever no other process runs it."""

from collections.abc import Callable
from typing import Any

import anyio
from anyio.abc import TaskGroup

from handrail.engine.bell import Bell
from handrail.engine.runner import Runner
from handrail.protocol.errors import HandrailError, LostHold
from handrail.sessions.handle import Session

HOLD_SECONDS = 0.25
"""How soon a dead holder is noticed."""


class Attachment:
    """A session that this process serves whenever nobody else does."""

    def __init__(self, session: Session, scope: anyio.CancelScope) -> None:
        self.session = session
        self.scope = scope
        self.failure: HandrailError | None = None


class Serving:
    """The sessions of one process."""

    def __init__(self, tasks: TaskGroup, bell: Bell, runner: Callable[[Session], Runner]) -> None:
        self._tasks = tasks
        self._bell = bell
        self._runner = runner
        self._attached: dict[str, Attachment] = {}

    def get(self, session_id: str) -> Attachment | None:
        """How the session is served; None where it is not."""
        return self._attached.get(session_id)

    def serve(self, session: Session) -> None:
        """Run the session from here, from now on, whenever no other process does."""
        attachment = Attachment(session, anyio.CancelScope())
        self._attached[session.id] = attachment
        session.watchers.append(self._bell.ring)
        self._tasks.start_soon(self._hold, attachment)

    def leave(self, session_id: str) -> None:
        """Leave the session to others."""
        if attachment := self._attached.pop(session_id, None):
            attachment.scope.cancel()

    def close(self) -> None:
        for session_id in list(self._attached):
            self.leave(session_id)

    async def _hold(self, attachment: Attachment) -> None:
        with attachment.scope:
            try:
                await self._serve_in_turn(attachment.session)
            except* HandrailError as problems:
                attachment.failure = first_problem(problems)
        self._bell.ring()

    async def _serve_in_turn(self, session: Session) -> None:
        """Serve the session whenever no other process does, until something fails."""
        while True:
            try:
                if session.try_hold():
                    await self._runner(session).run()
            except* LostHold:
                pass  # another process serves it now; this one follows
            finally:
                session.release()
            await anyio.sleep(HOLD_SECONDS)


def first_problem(group: BaseExceptionGroup[Any]) -> Any:
    """What really went wrong: task groups wrap it."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
