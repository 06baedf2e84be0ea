"""The output of commands in terminals of the client.

The command itself runs in Handrail's sandbox. The terminal runs a program that prints what comes through a
named pipe, and exits with 0 if the command succeeded.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import anyio
from acp.agent.connection import AgentSideConnection
from acp.exceptions import RequestError
from msgspec import Struct, field
from pydantic import ValidationError

from handrail.interfaces.acp.tool_calls import Call

VIEWER = 'cat "$0"; exit "$(cat "$0.code")"'
"""`$0` is the pipe; the exit status is beside it."""
ANSWER_SECONDS = 5.0
MAX_WAITING = 1_000_000
"""Bytes that the terminal has not read yet; what comes then is left out there."""
POLL_SECONDS = 0.02
LEFT_OUT = b"\n[the terminal was too slow: output is left out here; it is in the log]\n"


class Shown(Struct, eq=False):
    """A command whose output goes to a terminal."""

    waiting: bytearray = field(default_factory=bytearray)
    left_out: bool = False
    code: int | None = None
    changed: anyio.Event = field(default_factory=anyio.Event)

    def add(self, data: bytes) -> None:
        if len(self.waiting) + len(data) <= MAX_WAITING:
            self.waiting += data
        elif not self.left_out:
            self.left_out = True
            self.waiting += LEFT_OUT
        self.notify()

    def notify(self) -> None:
        event, self.changed = self.changed, anyio.Event()
        event.set()


class Terminals:
    def __init__(self, client: AgentSideConnection, session_id: str, folder: Path) -> None:
        self._client = client
        self._session_id = session_id
        self._folder = folder
        self._shown: dict[str, Shown] = {}

    def begin(self, call_id: str) -> None:
        """Keep the output of a command from now on, for `show`."""
        self._shown[call_id] = Shown()

    def feed(self, call_id: str, text: str) -> None:
        """Add output, as the session has it: without control characters."""
        if shown := self._shown.get(call_id):
            shown.add(text.encode(errors="replace"))

    def finish(self, call_id: str, code: int) -> None:
        if shown := self._shown.pop(call_id, None):
            shown.code = code
            shown.notify()

    def close(self) -> None:
        """Show nothing more."""
        for call_id in list(self._shown):
            self.finish(call_id, 1)

    async def show(self, call_id: str, call: Call, opened: Callable[[], Awaitable[None]]) -> None:
        """Print the output until the command ends; `opened` tells the client about the terminal.

        Where the client cannot do it, the output stays in the call.
        """
        shown = self._shown.get(call_id)
        if shown is None:
            return
        place = await anyio.to_thread.run_sync(tempfile.mkdtemp, "", "handrail-terminal-")
        pipe, terminal = Path(place, "output"), ""
        try:
            os.mkfifo(pipe, 0o600)
            with anyio.fail_after(ANSWER_SECONDS):
                made = await self._client.create_terminal(
                    self._session_id, "/bin/sh", args=["-c", VIEWER, str(pipe)], cwd=str(self._folder)
                )
                terminal = made.terminal_id
                writing = await _opened_for_writing(pipe)
            call.terminal = terminal
            await opened()
            try:
                await _print(shown, writing)
                Path(f"{pipe}.code").write_text(str(shown.code), encoding="ascii")
            finally:
                os.close(writing)
            with anyio.move_on_after(ANSWER_SECONDS):
                await self._client.wait_for_terminal_exit(self._session_id, terminal)
        except (RequestError, ValidationError, ConnectionError, TimeoutError, OSError):
            pass  # the user closed the terminal, or the client cannot open one
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(lambda: shutil.rmtree(place, ignore_errors=True))
                if terminal:
                    await self._release(terminal)

    async def _release(self, terminal: str) -> None:
        with suppress(RequestError, ValidationError, ConnectionError), anyio.move_on_after(ANSWER_SECONDS):
            await self._client.release_terminal(self._session_id, terminal)


async def _opened_for_writing(pipe: Path) -> int:
    """A descriptor of the pipe, once the terminal reads it."""
    while True:
        with suppress(OSError):  # nobody reads it yet
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        await anyio.sleep(POLL_SECONDS)


async def _print(shown: Shown, descriptor: int) -> None:
    """Write what comes, until the command has ended and all of it is written."""
    loop = asyncio.get_running_loop()
    while True:
        changed = shown.changed
        while shown.waiting:
            try:
                written = os.write(descriptor, shown.waiting)
            except BlockingIOError:
                ready = anyio.Event()
                loop.add_writer(descriptor, ready.set)
                try:
                    await ready.wait()
                finally:
                    loop.remove_writer(descriptor)
            else:
                del shown.waiting[:written]
        if shown.code is not None:
            return
        await changed.wait()
