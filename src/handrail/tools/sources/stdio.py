"""The stdio transport: a confined program that speaks JSON-RPC, one message a line, in bounded memory.

The library's own transport starts programs outside the sandbox and keeps lines of any length.
"""

import fcntl
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, NamedTuple

import anyio
import anyio.to_thread

from handrail.tools.commands.output import CapturedOutput
from handrail.tools.process import RunningProcess, exceeded_limit, stop_group
from handrail.tools.sandbox.protected_paths import SandboxSetup
from handrail.tools.sandbox.sandbox import ConfinedCommand, Sandbox
from handrail.tools.sources.launch import Launch, SourceFailed, confined_words, launcher_environment
from handrail.tools.tool import strip_control_codes

CHUNK = 1 << 18
MAX_MESSAGE = 16_000_000
MAX_TRAFFIC = 64_000_000
"""Bytes that a server may send during one call, or between two."""
MAX_NOISE = 1_000
"""Lines on its output that are no messages: some programs log there."""
ERRORS_KEPT = 4_000
ERRORS_SHOWN = 480
END_SECONDS = 1.0
"""After its input was closed, a server may end by itself."""
STOP_SECONDS = 1.0
DRAIN_SECONDS = 0.5
WATCH_SECONDS = 1.0


NOT_FOUND = "it ended with status 127"
NEEDED = {
    "npx": ". Install Node.js, which has `npx`",
    "uvx": ". Install uv, which has `uvx`",
}
"""What to do where such a program is not found."""


class Pipes(NamedTuple):
    """Our ends of the pipes to the program."""

    stdin: int
    stdout: int
    stderr: int


class ServerProcess:
    """What is known about a running server while its transport is open."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.problem = ""
        """Why the transport ended, if the server is at fault."""
        self.pid = 0
        self._errors = CapturedOutput(0, ERRORS_KEPT)
        self._received = 0
        self._noise = 0

    def begin_call(self) -> None:
        self._received = 0

    def said(self) -> str:
        """The last part of its error output, on one line, without secrets; its beginning often says why."""
        text = strip_control_codes(self.launch.secrets.hide(self._errors.tail(ERRORS_KEPT)))
        text, half = " ".join(text.split()), ERRORS_SHOWN // 2
        return text if len(text) <= ERRORS_SHOWN else f"{text[:half]} … {text[-half:]}"

    def why_ended(self) -> str:
        """Why the transport ended, with what it printed last; empty while it runs."""
        said = self.said() if self.problem else ""
        missing = NEEDED.get(self.launch.words[0], "") if self.problem == NOT_FOUND else ""
        return self.problem + (f". It printed: {said}" if said else "") + missing

    def add_errors(self, chunk: bytes) -> None:
        self._errors.add(chunk)

    def count(self, size: int) -> None:
        """Raises SourceFailed where it has sent too much."""
        self._received += size
        if self._received > MAX_TRAFFIC:
            raise SourceFailed(f"it sent more than {MAX_TRAFFIC // 1_000_000} MB at once")

    def read_message(self, line: bytes) -> Any:
        """The message in a line, or None for a line that is none; raises SourceFailed if it is broken."""
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter
        from pydantic import ValidationError

        if not line.lstrip().startswith(b"{"):
            self._noise += bool(line.strip())
            if self._noise > MAX_NOISE:
                raise SourceFailed(f"it printed more than {MAX_NOISE} lines that are no messages")
            self.add_errors(line + b"\n")
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except (ValidationError, RecursionError) as error:
            raise SourceFailed("it sent a message that is not valid JSON-RPC") from error


@asynccontextmanager
async def stdio_transport(
    server: ServerProcess, sandbox: Sandbox, prepare: Callable[[], SandboxSetup]
) -> AsyncIterator[tuple[Any, Any]]:
    """Streams of messages from and to the program; no process of it is left after the block.

    `prepare` looks through the workspace, in a thread.
    """
    file = server.launch.source.file
    setup = await anyio.to_thread.run_sync(prepare)
    async with AsyncExitStack() as stack:
        words = confined_words(server.launch)
        confined = await stack.enter_async_context(sandbox.confine(words, setup, network=file.network))
        ours, theirs = _make_pipes(stack)
        try:
            process = await confined.start(
                confined.words,
                folder=setup.workspace,
                environment=launcher_environment(confined.environ, server.launch),
                stdin=theirs.stdin,
                stdout=theirs.stdout,
                stderr=theirs.stderr,
            )
        except BaseException as error:
            os.close(ours.stdin)
            if not isinstance(error, OSError):
                raise
            program, why = server.launch.words[0], error.strerror or error
            raise SourceFailed(f"{program} cannot be started ({why})") from error
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        server.pid = process.pid
        async with _Pumps(server, process, ours, confined).running() as streams:
            yield streams


def _make_pipes(stack: AsyncExitStack) -> tuple[Pipes, Pipes]:
    """Our ends, which never block and are closed with the stack, and those of the program."""
    ours, theirs = list[int](), list[int]()
    for number in range(3):
        reading, writing = os.pipe()
        mine, other = (writing, reading) if number == 0 else (reading, writing)
        os.set_blocking(mine, False)
        with suppress(OSError, AttributeError):
            fcntl.fcntl(mine, fcntl.F_SETPIPE_SZ, CHUNK)
        ours.append(mine)
        theirs.append(other)
    for descriptor in ours[1:]:  # the program's input is closed first, by itself
        stack.callback(os.close, descriptor)
    return Pipes(*ours), Pipes(*theirs)


class _Pumps:
    """The tasks that move messages between the program's pipes and the client's streams."""

    def __init__(
        self, server: ServerProcess, process: RunningProcess, pipes: Pipes, confined: ConfinedCommand
    ) -> None:
        self._server, self._process, self._pipes, self._confined = server, process, pipes, confined
        self._to_client, self.incoming = anyio.create_memory_object_stream[Any](0)
        self.outgoing, self._from_client = anyio.create_memory_object_stream[Any](0)
        self._drained = anyio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[tuple[Any, Any]]:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read)
                tasks.start_soon(self._write)
                tasks.start_soon(self._read_errors)
                tasks.start_soon(self._watch_end)
                if any(self._confined.limits):
                    tasks.start_soon(self._watch_limits)
                try:
                    yield self.incoming, self.outgoing
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                os.close(self._pipes.stdin)
                await self._stop()
                for stream in (self._to_client, self.incoming, self.outgoing, self._from_client):
                    await stream.aclose()

    async def _end(self, why: str) -> None:
        """Let the client see the end of the connection."""
        self._server.problem = self._server.problem or why
        await self._to_client.aclose()

    async def _read(self) -> None:
        why = ""
        try:
            await self._read_lines()
        except SourceFailed as problem:
            why = str(problem)
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the client is gone
        self._drained.set()
        with anyio.move_on_after(DRAIN_SECONDS):
            why = why or f"it ended with status {await self._process.wait()}"
        await self._end(why or "it closed its output")

    async def _read_lines(self) -> None:
        server, line = self._server, bytearray()
        while chunk := await _read_some(self._pipes.stdout):
            server.count(len(chunk))
            first, *others = chunk.split(b"\n")
            line += first
            for start in others:
                if message := server.read_message(bytes(line)):
                    await self._to_client.send(message)
                line = bytearray(start)
            if len(line) > MAX_MESSAGE:
                raise SourceFailed(f"it sent a message of more than {MAX_MESSAGE // 1_000_000} MB")

    async def _write(self) -> None:
        with suppress(OSError, anyio.ClosedResourceError):
            async for message in self._from_client:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                data = memoryview(text.encode() + b"\n")
                while data:
                    await anyio.wait_writable(self._pipes.stdin)
                    with suppress(BlockingIOError):
                        data = data[os.write(self._pipes.stdin, data) :]

    async def _read_errors(self) -> None:
        with suppress(OSError):
            while chunk := await _read_some(self._pipes.stderr):
                self._server.add_errors(chunk)

    async def _watch_end(self) -> None:
        code = await self._process.wait()
        with anyio.move_on_after(DRAIN_SECONDS):  # something that it started may hold the pipe open
            await self._drained.wait()
        await self._end(f"it ended with status {code}")

    async def _watch_limits(self) -> None:
        while True:
            await anyio.sleep(WATCH_SECONDS)
            limits = self._confined.limits
            if over := await anyio.to_thread.run_sync(exceeded_limit, self._process.pid, limits):
                await self._end(f"it was stopped at the limit of {over}")
                return

    async def _stop(self) -> None:
        """Wait for a moment, then end what is left; its output is thrown away so that it can end."""

        async def discard() -> None:
            with suppress(OSError):
                while await _read_some(self._pipes.stdout):
                    pass

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(discard)
            with anyio.move_on_after(END_SECONDS):
                await self._process.wait()
            await stop_group(self._process, STOP_SECONDS)
            tasks.cancel_scope.cancel()
        await self._process.aclose()


async def _read_some(descriptor: int) -> bytes:
    """What there is to read; empty at the end."""
    while True:
        await anyio.wait_readable(descriptor)
        with suppress(BlockingIOError):
            return os.read(descriptor, CHUNK)
