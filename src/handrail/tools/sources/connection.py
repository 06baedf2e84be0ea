"""The connection to one source: started when it is needed, checked, restarted after a pause, and closed.

Everything here has a time limit, and no call is made twice: whoever asked learns that the outcome is unknown.
"""

import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio.abc import TaskGroup

from handrail import __version__
from handrail.config.sources import Source
from handrail.protocol.values import to_json
from handrail.tools.secrets import NO_SECRETS, Secrets
from handrail.tools.sources.launch import SourceFailed

if TYPE_CHECKING:
    from mcp import Client

MAX_TOOLS, MAX_PAGES, MAX_SCHEMA, MAX_DESCRIPTION = 300, 20, 30_000, 20_000
FRESH_SECONDS = 5.0
"""A list of tools is read again before a call once it is older, or once the server says that it changed."""
IDLE_SECONDS = 900.0
"""Without a call, a source is closed."""
HEALTH_SECONDS = 5.0
"""How soon a server has to list its tools after a call that timed out; otherwise it is closed."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
ERROR_CHARACTERS = 600
UNKNOWN_OUTCOME = "What the call did before that is unknown. It is not repeated; check before you repeat it."

State = Literal["stopped", "starting", "ready", "failed"]


class Progress(Protocol):
    """Hears how far a call is."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


Elicit = Callable[[Any], Awaitable[Any]]
"""Asks the user what a server wants to know: the parameters of its request, and the result for it."""


class SourceTool(NamedTuple):
    """A tool as its server describes it: data, whatever it says."""

    name: str
    description: str
    schema: Mapping[str, Any]
    reads_only: bool

    @property
    def sha256(self) -> str:
        parts = [self.name, self.description, dict(self.schema), self.reads_only]
        return hashlib.sha256(to_json(parts).encode()).hexdigest()


class Health(NamedTuple):
    """How a source is doing, for a person."""

    state: State
    problem: str = ""
    server: str = ""
    """Name and version, as the server says."""
    protocol: str = ""
    pid: int = 0
    tools: int = 0


class OpenServer(NamedTuple):
    """A server while its transport is open."""

    streams: AbstractAsyncContextManager[Any]
    problem: Callable[[], str]
    """Why it ended, and what it printed last."""
    begin_call: Callable[[], None]
    pid: Callable[[], int]


class _Attempt:
    """One run of a server, from its start to its end."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.ready = anyio.Event()
        self.over = anyio.Event()
        self.server: OpenServer | None = None
        self.client: Client | None = None
        self.problem = ""


class Connection:
    def __init__(
        self,
        source: Source,
        open_server: Callable[[], OpenServer],
        tasks: TaskGroup,
        secrets: Secrets = NO_SECRETS,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.source = source
        self.tools: dict[str, SourceTool] = {}
        self.secrets = secrets
        self._open_server = open_server
        self._clock = clock
        self._tasks = tasks
        self._attempt: _Attempt | None = None
        self._lock = anyio.Lock()
        self._failures = 0
        self._try_after = 0.0
        self._problem = ""
        self._listed_at = float("-inf")
        self._used_at = 0.0
        self._elicit: Elicit | None = None
        self._identity = ("", "")

    @property
    def health(self) -> Health:
        attempt = self._attempt
        state: State = "stopped" if attempt is None else "ready" if attempt.client else "starting"
        if state == "stopped" and self._problem:
            state = "failed"
        pid = attempt.server.pid() if attempt and attempt.server else 0
        return Health(state, self._problem, *self._identity, pid, len(self.tools))

    def close(self) -> None:
        """Stop the server; what stands in the way is cancelled."""
        if self._attempt:
            self._attempt.scope.cancel()

    async def closed(self) -> None:
        """Stop the server and wait until none of its processes is left."""
        self.close()
        if self._attempt:
            await self._attempt.over.wait()

    async def list_tools(self, *, again: bool = False) -> dict[str, SourceTool]:
        """The tools of the source, as of a few seconds ago at most; `again`: as of now."""
        async with self._alone():
            client, seconds = await self._client(), self.source.file.start_seconds
            if again or self._clock() - self._listed_at > FRESH_SECONDS:
                with anyio.move_on_after(seconds) as scope:
                    await self._list(client)
                if scope.cancelled_caught:
                    self._fail(f"it did not list its tools within {seconds:g} s")
                    await self.closed()
                    raise self._failed(self._problem)
            return self.tools

    async def call(self, tool: str, arguments: Mapping[str, Any], progress: Progress, elicit: Elicit) -> Any:
        """The server's `CallToolResult`; raises SourceFailed. One call at a time."""
        async with self._alone():
            client, attempt = await self._client(), self._attempt
            seconds, self._elicit = self.source.file.call_seconds, elicit
            if attempt and attempt.server:
                attempt.server.begin_call()
            try:
                with anyio.move_on_after(seconds) as self._deadline:
                    with self._foreign_errors(UNKNOWN_OUTCOME):
                        result = await client.call_tool(tool, dict(arguments), progress_callback=progress)
                    self._failures, self._used_at = 0, self._clock()
                    return result
            finally:
                self._elicit = None
            await self._check_health(client)
            raise self._failed(f"{tool} did not answer within {seconds:g} s", UNKNOWN_OUTCOME)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Wait for another session's call to end, as long as a call may take; raises SourceFailed."""
        with anyio.move_on_after(self.source.file.call_seconds) as waiting:
            await self._lock.acquire()
        if waiting.cancelled_caught:
            raise self._failed("it is busy with another call", "Nothing was sent. Try again later.")
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def waiting_for_user(self) -> Iterator[None]:
        """The time of a call does not run while the user is asked."""
        scope = self._deadline
        left = scope.deadline - anyio.current_time()
        scope.deadline = float("inf")
        try:
            yield
        finally:
            scope.deadline = anyio.current_time() + left

    _deadline: anyio.CancelScope

    # The server

    async def _client(self) -> "Client":
        """The client of a running server, started where none runs; raises SourceFailed."""
        if self._attempt and self._attempt.client and not self._attempt.over.is_set():
            return self._attempt.client
        if self._attempt:  # it is ending
            await self._attempt.over.wait()
        if (left := self._try_after - self._clock()) > 0:
            raise self._failed(self._problem, f"It is started again at the earliest in {left:.0f} s.")
        await anyio.to_thread.run_sync(_import_library)  # before the server's time runs
        attempt = self._attempt = _Attempt()
        self._problem, self._listed_at = "", float("-inf")
        self._tasks.start_soon(self._serve, attempt)
        try:
            with anyio.move_on_after(self.source.file.start_seconds) as scope:
                await attempt.ready.wait()
        except anyio.get_cancelled_exc_class():
            attempt.scope.cancel()
            raise
        if scope.cancelled_caught:
            self._fail(f"it did not start within {self.source.file.start_seconds:g} s")
            await self.closed()
        if attempt.client is None:
            raise self._failed(self._problem)
        return attempt.client

    async def _serve(self, attempt: _Attempt) -> None:
        """Run the server until it ends, is not used any more, or is closed."""
        try:
            with attempt.scope:
                try:
                    await self._run(attempt)
                # Servers and the library decide what is raised here, from within task groups of their own.
                # Whatever it is ends this source, and never the session.
                except Exception as error:  # noqa: BLE001
                    attempt.problem = attempt.problem or _first_words(error)
        finally:
            server = attempt.server
            if not attempt.scope.cancel_called:
                why = (server.problem() if server else "") or attempt.problem
                self._fail(why or "it closed the connection")
            attempt.client = None
            if self._attempt is attempt:
                self._attempt = None
            attempt.over.set()
            attempt.ready.set()

    async def _run(self, attempt: _Attempt) -> None:
        mcp = _import_library()
        server = attempt.server = self._open_server()

        async def elicit(_context: Any, params: Any) -> Any:
            return await self._elicit(params) if self._elicit else mcp.declined

        async def hear(message: Any) -> None:
            if isinstance(message, mcp.list_changed):
                self._listed_at = float("-inf")

        ended = anyio.Event()
        async with mcp.client(
            _noticing_end(server.streams, ended),
            elicitation_callback=elicit,
            message_handler=hear,
            client_info=mcp.info,
            cache=None,
        ) as client:
            named = client.server_info
            self._identity = (f"{named.name} {named.version}" if named else "", client.protocol_version)
            self._used_at = self._clock()
            attempt.client = client
            attempt.ready.set()
            while not ended.is_set():
                with anyio.move_on_after(IDLE_SECONDS):
                    await ended.wait()
                if self._clock() - self._used_at >= IDLE_SECONDS and not self._lock.locked():
                    attempt.scope.cancel()
                    await anyio.lowlevel.checkpoint()

    def _fail(self, why: str) -> None:
        """Remember why the server cannot be used, and when it may be started again."""
        self._problem = self.secrets.hide(why)[:ERROR_CHARACTERS]
        pause = min(FIRST_PAUSE * 2**self._failures, LONGEST_PAUSE)
        self._failures += 1
        self._try_after = self._clock() + pause

    def try_now(self) -> None:
        """Let the next use start the server, however soon: a person asked for it."""
        self._try_after = 0.0

    async def _list(self, client: "Client") -> None:
        found: dict[str, SourceTool] = {}
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            with self._foreign_errors():
                page = await client.list_tools(cursor=cursor)
            for each in page.tools[: MAX_TOOLS - len(found)]:
                hint = each.annotations.read_only_hint if each.annotations else None
                schema = each.input_schema if len(to_json(each.input_schema)) <= MAX_SCHEMA else {}
                text = (each.description or "")[:MAX_DESCRIPTION]
                found.setdefault(each.name, SourceTool(each.name, text, schema, hint is True))
            # The library would check results by the server's own schema, whose patterns can take for ever.
            client.session._tool_output_schemas = dict.fromkeys(found)
            cursor = page.next_cursor
            if not cursor or len(found) >= MAX_TOOLS:
                break
        self.tools, self._listed_at, self._used_at = found, self._clock(), self._clock()

    async def _check_health(self, client: "Client") -> None:
        """After a call without an answer: a server that does not list its tools either is closed."""
        with anyio.move_on_after(HEALTH_SECONDS) as scope:
            try:
                await self._list(client)
            except SourceFailed:
                return  # it has ended
        if scope.cancelled_caught:
            self._fail("it stopped answering")
            await self.closed()

    # Errors

    @contextmanager
    def _foreign_errors(self, then: str = "") -> Iterator[None]:
        """Raise SourceFailed for whatever the library raises."""
        try:
            yield
        except SourceFailed:
            raise
        except Exception as error:
            if not _is_unknown(error):
                text = self.secrets.hide(_first_words(error))
                raise SourceFailed(f"The source {self.source.name} answered with an error: {text}") from error
            attempt = self._attempt
            why = (attempt.server.problem() if attempt and attempt.server else "") or _first_words(error)
            raise self._failed(why, then) from error

    def _failed(self, why: str, then: str = "") -> SourceFailed:
        text = self.secrets.hide(f"The source {self.source.name} cannot be used: {why.rstrip('.')}.")
        return SourceFailed(f"{text[:ERROR_CHARACTERS]} {then}".rstrip())


class _Library(NamedTuple):
    client: Callable[..., Any]
    info: Any
    list_changed: type
    declined: Any


@cache
def _import_library() -> _Library:
    """What is used of the library; importing it takes a second or two."""
    import logging

    import mcp_types
    from mcp import Client

    # It logs what servers send. Errors reach the user as results.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    logging.getLogger("mcp").propagate = False
    info = mcp_types.Implementation(name="handrail", version=__version__)
    declined = mcp_types.ElicitResult(action="decline")
    return _Library(Client, info, mcp_types.ToolListChangedNotification, declined)


@asynccontextmanager
async def _noticing_end(
    streams: AbstractAsyncContextManager[Any], ended: anyio.Event
) -> AsyncIterator[tuple[Any, Any]]:
    """The same streams; the event is set when the server has closed its side."""
    async with streams as (reading, writing):
        yield _Noticing(reading, ended), writing


class _Noticing:
    """A stream of messages that sets an event at its end."""

    def __init__(self, stream: Any, ended: anyio.Event) -> None:
        self._stream, self._ended = stream, ended

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> "_Noticing":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> "_Noticing":
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except BaseException:
            self._ended.set()
            raise


def _is_unknown(error: Exception) -> bool:
    """Whether the server may have acted: it did not answer with an error of its own."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

    return not isinstance(error, MCPError) or error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT)


def _first_words(error: BaseException) -> str:
    """What went wrong, in one line: of a group, its first error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if type(error).__name__ == "ValidationError":
        return "it sent what the protocol does not allow"
    text = " ".join(str(error).split()) or type(error).__name__
    return text[:ERROR_CHARACTERS]
