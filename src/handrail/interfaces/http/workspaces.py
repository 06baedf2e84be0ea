"""The workspaces of a server: each is one application, opened on first use."""

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct, field

from handrail.app.app import App, Options, open_app
from handrail.app.builds.check_run import CheckRun
from handrail.interfaces.http.errors import ApiError
from handrail.interfaces.http.event_feed import EventFeeds
from handrail.protocol.errors import HandrailError
from handrail.protocol.subtask import SplitCommand

if TYPE_CHECKING:
    from handrail.app.builds.verify import VerifyOptions

TIDY_SECONDS = 30.0
"""Between two looks for sessions that have neither reader nor work, which are then given up."""


class Hosting(Struct, eq=False):
    """One application from opening to closing."""

    opened: anyio.Event = field(default_factory=anyio.Event)
    closing: anyio.Event = field(default_factory=anyio.Event)
    """Close it when no turn runs."""
    open: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    """Cancelled: close it now."""
    closed: anyio.Event = field(default_factory=anyio.Event)
    app: App | None = None
    problem: HandrailError | None = None


class RunningSplit(Struct, eq=False):
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)


class OpenWorkspace:
    """One folder with its application, and the events of its sessions."""

    def __init__(self, name: str, options: Options, tasks: TaskGroup, environ: Mapping[str, str]) -> None:
        self.name = name
        self.root = options.workspace
        self.environ = environ
        self._options = options
        self._tasks = tasks
        self._hosting: Hosting | None = None
        self.feeds = EventFeeds(self.app, tasks)
        self.check_run: CheckRun | None = None
        """The verification that runs, or the last one."""
        self.split_problems: dict[str, str] = {}
        """Why a split stopped that has not ended, by its session."""
        self._splits: dict[str, RunningSplit] = {}
        self.assistant = anyio.Lock()
        """Held while a message is sent to the assistant, so that the same request is sent once."""

    async def app(self) -> App:
        """The application. Raises what is wrong with the workspace; the next call tries again."""
        while True:
            if self._hosting is None:
                self._hosting = Hosting()
                self._tasks.start_soon(self._host, self._hosting)
            hosting = self._hosting
            await hosting.opened.wait()
            if hosting.problem:
                raise hosting.problem
            if hosting.app and self._hosting is hosting:
                return hosting.app

    async def reopen(self) -> bool:
        """Read settings and keys again; False where a turn or checks run, after which it is done."""
        hosting = self._hosting
        if hosting is None or hosting.app is None:
            return True
        hosting.closing.set()
        if hosting.app.busy() or self._checking() or self._splits:
            return False
        await hosting.closed.wait()
        return True

    async def close(self) -> None:
        """Close the application; a turn that runs is interrupted, and can be continued."""
        if self.check_run:
            self.check_run.stop()
            await self.check_run.ended.wait()
        for running in list(self._splits.values()):
            running.scope.cancel()
            await running.ended.wait()
        if hosting := self._hosting:
            hosting.open.cancel()
            await hosting.closed.wait()

    def start_checks(self, app: App, options: "VerifyOptions") -> CheckRun:
        """Verify in the background. Raises ApiError while another verification runs."""
        if self._checking():
            raise ApiError(
                409, "running", "The checks are running already.", "Wait for them, or POST checks/cancel."
            )
        self.check_run = CheckRun(options)
        self._tasks.start_soon(self._run_checks, app, self.check_run)
        return self.check_run

    def start_split(self, app: App, session_id: str, command: SplitCommand) -> None:
        """Run a split in the background. Raises ApiError while it runs here."""
        if session_id in self._splits:
            raise ApiError(409, "running", "This split runs already.", "Pause or cancel it first.")
        running = self._splits[session_id] = RunningSplit()
        self.split_problems.pop(session_id, None)
        self._tasks.start_soon(self._run_split, app, session_id, command, running)

    async def _run_split(
        self, app: App, session_id: str, command: SplitCommand, running: RunningSplit
    ) -> None:
        from handrail.app.splits.run import run_split

        try:
            with running.scope:
                await run_split(app, session_id, command)
        except HandrailError as problem:
            self.split_problems[session_id] = str(problem)
        except Exception as bug:  # other work of the server goes on
            logging.getLogger("uvicorn.error").exception("A split ended with a bug")
            self.split_problems[session_id] = (
                f"Handrail has a bug: {type(bug).__name__}. The server's own output says more."
            )
        finally:
            del self._splits[session_id]
            running.ended.set()

    def _checking(self) -> bool:
        return self.check_run is not None and self.check_run.state == "running"

    async def _run_checks(self, app: App, run: CheckRun) -> None:
        try:
            await run.run(app.checks)
        except Exception as bug:  # other work of the server goes on
            logging.getLogger("uvicorn.error").exception("Checks ended with a bug")
            run.problem = f"Handrail has a bug: {type(bug).__name__}. The server's own output says more."

    async def _host(self, hosting: Hosting) -> None:
        try:
            async with open_app(self._options, self.environ) as app:
                hosting.app = app
                hosting.opened.set()
                with hosting.open:
                    await self._until_closed(app, hosting.closing)
                self._hosting = None
                self.feeds.restart()
        except HandrailError as problem:
            hosting.problem = problem
        finally:
            if self._hosting is hosting:
                self._hosting = None
            hosting.app = None
            self.feeds.restart()
            hosting.opened.set()
            hosting.closed.set()

    async def _until_closed(self, app: App, closing: anyio.Event) -> None:
        while not closing.is_set():
            with anyio.move_on_after(TIDY_SECONDS):
                await closing.wait()
            app.release_idle(keep=self.feeds.followed())
        await app.until_idle()
        if self.check_run:
            await self.check_run.ended.wait()
        for running in list(self._splits.values()):
            await running.ended.wait()


def workspace_names(roots: Sequence[Path]) -> dict[str, Path]:
    """A short name for each folder, for addresses: `shop`, `shop-2`."""
    names: dict[str, Path] = {}
    for root in dict.fromkeys(roots):
        word = "".join(each if each.isalnum() and each.isascii() else "-" for each in root.name.lower())
        base = "-".join(filter(None, word.split("-")))[:40] or "workspace"
        name, number = base, 1
        while name in names:
            number += 1
            name = f"{base}-{number}"
        names[name] = root
    return names


def open_workspaces(
    roots: Sequence[Path], tasks: TaskGroup, options: Options, environ: Mapping[str, str] = os.environ
) -> dict[str, OpenWorkspace]:
    return {
        name: OpenWorkspace(name, options._replace(workspace=root), tasks, environ)
        for name, root in workspace_names(roots).items()
    }
