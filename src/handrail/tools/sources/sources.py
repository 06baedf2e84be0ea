"""The sources of this process: which can be used, their connections, and what the user approved of them."""

from collections.abc import Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import anyio
from anyio.abc import TaskGroup
from msgspec.structs import replace

from handrail.config.skills import plain_line
from handrail.config.source_tools import ApprovedTools
from handrail.config.sources import Source, SourceFolders
from handrail.protocol.errors import ConfigProblem
from handrail.tools.sandbox.sandbox import Sandbox
from handrail.tools.sources.launch import Credentials, Launch, SourceFailed, launch_of, sandbox_setup
from handrail.workspace.files import Workspace

if TYPE_CHECKING:
    import httpx2

    from handrail.tools.sources.connection import Connection, Health, OpenServer, SourceTool

MAX_DESCRIPTION = 200
CLOSE_SECONDS = 20.0
SIGN_IN_SECONDS = 600.0


class Offered(NamedTuple):
    """A running source, and those of its tools that its definition allows."""

    connection: "Connection"
    tools: "dict[str, SourceTool]"
    changes: str
    """How they differ from what the user approved; empty: they do not, or the source is new."""

    @property
    def hashes(self) -> dict[str, str]:
        return {name: tool.sha256 for name, tool in self.tools.items()}


class Opener(NamedTuple):
    """What it takes to reach servers from this process."""

    workspace: Workspace
    sandbox: Sandbox
    credentials: Credentials
    environ: Mapping[str, str]
    log_folder: Path
    """Of the workspace's log, where protected files are saved while a program may write."""

    def launch(self, source: Source) -> Launch:
        return launch_of(source, self.workspace.root, self.credentials, self.environ)

    def open_server(self, launch: Launch, auth: "httpx2.Auth | None" = None) -> "OpenServer":
        """The transport to a server that is about to be started, or reached; `auth`: a sign-in under way."""
        from handrail.tools.sources.connection import OpenServer

        if launch.url:
            from handrail.tools.sources.http import HttpServer
            from handrail.tools.sources.oauth import stored_sign_in

            reached = HttpServer(launch, auth or stored_sign_in(launch, self.credentials))
            return OpenServer(reached.transport(), lambda: reached.problem, reached.begin_call, lambda: 0)
        from handrail.tools.sources.stdio import ServerProcess, stdio_transport

        prepare = partial(sandbox_setup, launch, self.workspace, self.log_folder)
        started = ServerProcess(launch)
        streams = stdio_transport(started, self.sandbox, prepare)
        return OpenServer(streams, started.why_ended, started.begin_call, lambda: started.pid)


class Sources:
    def __init__(
        self, folders: SourceFolders, approved: ApprovedTools, opener: Opener, tasks: TaskGroup
    ) -> None:
        """Servers run in `tasks`."""
        self.folders = folders
        self.approved = approved
        self.opener = opener
        self._tasks = tasks
        self._connections: dict[str, tuple[object, Connection]] = {}

    def listed(self, needed: tuple[str, ...] = ()) -> tuple[tuple[str, str], ...]:
        """Name and description of those that can be used; `needed`: by the agent that runs."""
        usable = self.folders.usable(needed)
        return tuple(
            (name, plain_line(each.file.description, MAX_DESCRIPTION))
            for name, each in sorted(usable.items())
        )

    async def connection(self, source: Source) -> "Connection":
        """The connection to the source as it is defined now; another one of the same name is closed."""
        from handrail.tools.sources.connection import Connection

        launch = self.opener.launch(source)
        key = (source.sha256, launch.words, launch.url, dict(launch.headers), dict(launch.environ))
        known = self._connections.get(source.name)
        if known and known[0] == key:
            return known[1]
        if known:
            await known[1].closed()
        opener = partial(self.opener.open_server, launch)
        connection = Connection(source, opener, self._tasks, launch.secrets)
        self._connections[source.name] = (key, connection)
        return connection

    async def offered(self, source: Source, *, again: bool = False) -> Offered:
        """The source's tools that its definition allows; starts it where needed. Raises SourceFailed."""
        await self._close_unused()
        try:
            connection = await self.connection(source)
            found = await connection.list_tools(again=again)
        except ConfigProblem as problem:
            raise SourceFailed(str(problem)) from problem
        tools = {name: tool for name, tool in found.items() if is_allowed(source, name)}
        hashes = {name: tool.sha256 for name, tool in tools.items()}
        return Offered(connection, tools, changes_since(self.approved.of(source), hashes))

    async def signing_in(self, source: Source, launch: Launch, auth: "httpx2.Auth") -> "Connection":
        """A connection for a sign-in under way, in place of the usual one; its time limit is the person's."""
        from handrail.tools.sources.connection import Connection

        await self.forget(source.name)
        patient = source._replace(file=replace(source.file, start_seconds=SIGN_IN_SECONDS))
        opener = partial(self.opener.open_server, launch, auth)
        connection = Connection(patient, opener, self._tasks, launch.secrets)
        self._connections[source.name] = ("a sign-in", connection)
        return connection

    async def forget(self, name: str) -> None:
        """Close the connection; the next use makes a new one."""
        if known := self._connections.pop(name, None):
            await known[1].closed()

    async def _close_unused(self) -> None:
        """Close connections whose definition is gone, or not trusted any more."""
        used = self.folders.used()
        for name in [name for name in self._connections if name not in used]:
            await self.forget(name)

    def health(self, name: str) -> "Health | None":
        """How the source is doing in this process; None if it was not used."""
        known = self._connections.get(name)
        return known[1].health if known else None

    async def close(self) -> None:
        """Close all connections; none of their processes is left."""
        connections = [connection for _, connection in self._connections.values()]
        self._connections.clear()
        if not connections:
            return
        with anyio.CancelScope(shield=True), suppress(TimeoutError):
            with anyio.fail_after(CLOSE_SECONDS):
                async with anyio.create_task_group() as tasks:
                    for connection in connections:
                        tasks.start_soon(connection.closed)


def is_allowed(source: Source, tool: str) -> bool:
    rules = source.file.tools
    return matches(tool, rules.allow) and not matches(tool, rules.deny)


def matches(tool: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in patterns)


def changes_since(before: Mapping[str, str] | None, now: Mapping[str, str]) -> str:
    """How the tools differ from those that were approved, in words; empty if not, or if none were."""
    if before is None or before == now:
        return ""
    kinds = {
        "new": [name for name in now if name not in before],
        "changed": [name for name in now if before.get(name, now[name]) != now[name]],
        "gone": [name for name in before if name not in now],
    }
    return "; ".join(
        f"{kind}: {plain_line(', '.join(sorted(names)), 300)}" for kind, names in kinds.items() if names
    )
