"""The folders that the client works on: each is one application, opened on first use."""

import os
from collections.abc import Mapping
from pathlib import Path

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct, field

from handrail.app.app import App, Options, open_app
from handrail.app.environment import use_login_path
from handrail.protocol.errors import HandrailError, UsageProblem


class Opened(Struct, eq=False):
    """One application, or why it could not be opened."""

    folder: Path
    """As the client names it: a link to the folder stays one."""
    ready: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    closed: anyio.Event = field(default_factory=anyio.Event)
    app: App | None = None
    problem: HandrailError | None = None


class Workspaces:
    def __init__(self, tasks: TaskGroup, options: Options, environ: Mapping[str, str]) -> None:
        """`options` of all applications; each gets the folder that the client names."""
        self._tasks = tasks
        self._options = options
        self._environ = environ
        self._opened: dict[Path, Opened] = {}
        self._login_path = anyio.Lock()
        self.notice: str | None = None
        """Why the login shell's PATH could not be read, empty if it was; None: not tried yet."""

    async def open(self, folder: str) -> App:
        """The application of a folder; raises what is wrong with it, and the next call tries again."""
        if not os.path.isabs(folder):
            raise UsageProblem(f"The working directory has to be an absolute path, and {folder!r} is none.")
        real = Path(os.path.realpath(folder))
        while True:
            opened = self._opened.get(real)
            if opened is None:
                opened = self._opened[real] = Opened(Path(folder))
                self._tasks.start_soon(self._host, real, opened)
            await opened.ready.wait()
            if opened.app:
                return opened.app
            if opened.problem:
                raise opened.problem

    async def close(self) -> None:
        """Close all; turns that run are interrupted, and can be continued."""
        for opened in list(self._opened.values()):
            opened.scope.cancel()
            await opened.closed.wait()

    async def _read_login_path(self) -> None:
        """Before the first application, so that `initialize` is answered at once."""
        async with self._login_path:
            if self.notice is None:
                self.notice = await use_login_path(self._environ)

    async def _host(self, real: Path, opened: Opened) -> None:
        try:
            with opened.scope:
                await self._read_login_path()
                async with open_app(self._options._replace(workspace=real), self._environ) as app:
                    opened.app = app
                    opened.ready.set()
                    await anyio.sleep_forever()
        except HandrailError as problem:
            opened.problem = problem
        finally:
            self._opened.pop(real, None)
            opened.app = None
            opened.ready.set()
            opened.closed.set()
