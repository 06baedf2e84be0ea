"""Starts commands through a process that is already there: `fork_server`.

The first commands start their launchers themselves. When the second has ended, a thread starts the server,
which forks the process for the next command; that waits in its cgroup. From then on, the process for the next
command is forked while a command runs. If the server dies, what it had forked dies with it, the next command
starts without it, and another server is started. If there can be none here, each command starts its launcher
itself.
"""

import marshal
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import anyio

from handrail.tools.process import RunningProcess, open_process
from handrail.tools.sandbox.fork_server import ENDED, MESSAGE, READY, STARTED
from handrail.tools.sandbox.limits import Cgroup

COLD_COMMANDS = 2
"""A server is started when so many have ended: many sessions run fewer, and it takes time and memory."""
START_SECONDS = 10.0
END_SECONDS = 5.0


MakeCgroup = Callable[[], Cgroup | None]


class Launch(NamedTuple):
    """What a forked process has to do."""

    options: Sequence[str]  # of the launcher; without them the words are a program that confines
    words: Sequence[str]


class WaitingProcess(NamedTuple):
    """A process that has been forked before its command is known, and its cgroup if it has one."""

    process: "ForkedProcess"
    cgroup: Cgroup | None


class WarmLauncher:
    def __init__(self, command: Callable[[], Sequence[str]]) -> None:
        """`command` returns the command line of the server, without the number of its socket."""
        self._command = command
        self._server: _Server | None = None
        self._starting = threading.Lock()
        self._ended = 0
        self._usable = sys.platform == "linux"

    def take_waiting(self) -> WaitingProcess | None:
        """The process that waits for this command; the caller removes its cgroup."""
        return self._server.take_waiting() if self._server else None

    def prepare_next(self, make_cgroup: MakeCgroup) -> None:
        """When a command has started: let a process wait for the next one, if there is a server."""
        if self._server and not self._server.prepare(make_cgroup):
            self._server_died(self._server)

    def command_ended(self, make_cgroup: MakeCgroup) -> None:
        """Start the server, in a thread, if there is none and this was not the first command."""
        self._ended += 1
        if self._server:
            self.prepare_next(make_cgroup)
        elif self._usable and self._ended >= COLD_COMMANDS and not self._starting.locked():
            threading.Thread(target=self.start_server, args=(make_cgroup,), daemon=True).start()

    def start_server(self, make_cgroup: MakeCgroup) -> None:
        """Start the server and let a process wait for the next command; blocks until it does."""
        with self._starting:
            if self._server or not self._usable:
                return
            try:
                server = _Server(self._command())
            except OSError:
                self._usable = False
                return
            if not server.wait_until_ready() or not server.prepare(make_cgroup):
                self._usable = False
            self._server = server
        if not self._usable:  # also if this was closed meanwhile
            self._server_died(server)

    async def start(
        self,
        launch: Launch,
        waiting: WaitingProcess | None,
        cgroup: Cgroup | None,
        words: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        stdin: int,
        stdout: int,
        stderr: int,
    ) -> RunningProcess:
        """The started command, in `cgroup`; `words` are its complete command line, used without a server."""
        standard = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
        server = self._server
        process = waiting.process if waiting else server.fork(cgroup) if server else None
        if process and process.send(_encoded(launch, folder, environment), **standard):
            try:
                await process.started()
            except OSError:
                process.close()
                self._server_died(server)
                raise
            return process
        self._server_died(server)
        return await open_process(words, folder=folder, environment=environment, **standard)

    def _server_died(self, server: "_Server | None") -> None:
        if server and self._server is server:
            self._server = None
            server.close()

    def close(self) -> None:
        """End the server and what it runs; no other one is started."""
        self._usable = False
        self._server_died(self._server)


class _Server:
    def __init__(self, command: Sequence[str]) -> None:
        self._socket, theirs = _socket_pair()
        with theirs:
            process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self.pid = process.pid
        self._process = process
        self.waiting: list[WaitingProcess] = []  # at most one
        self.close = weakref.finalize(self, _end, self._socket, process, self.waiting)

    def wait_until_ready(self) -> bool:
        """Whether it works here."""
        with suppress(OSError, ValueError):  # it was closed because Handrail ends
            readable, _, _ = select.select([self._socket], [], [], START_SECONDS)
            return bool(readable) and self._socket.recv(len(READY)) == READY
        return False

    def fork(self, cgroup: Cgroup | None) -> "ForkedProcess | None":
        """A process that waits for its command; None if the server has died."""
        if not self._is_alive():
            return None
        ours, theirs = _socket_pair()
        with theirs:
            try:
                socket.send_fds(self._socket, [b"f"], [theirs.fileno()])
                ours.send(b"\0".join(os.fsencode(path) for path in cgroup.files) if cgroup else b"\0")
            except OSError:
                ours.close()
                return None
        return ForkedProcess(ours)

    def prepare(self, make_cgroup: MakeCgroup) -> bool:
        """Let a process wait for the next command, unless one does; False if the server has died."""
        if self.waiting:
            return self._is_alive()
        cgroup = make_cgroup()
        if process := self.fork(cgroup):
            self.waiting.append(WaitingProcess(process, cgroup))
        elif cgroup:
            cgroup.remove()
        return process is not None

    def _is_alive(self) -> bool:
        # Its closed socket would say so later: what it has forked may still have its end open.
        return self._process.poll() is None

    def take_waiting(self) -> WaitingProcess | None:
        if not self.waiting:
            return None
        waiting = self.waiting.pop()
        # If the server has just died, what it forked may live for another moment.
        if self._is_alive() and waiting.process.is_alive():
            return waiting
        _discard(waiting)
        return None


def _end(control: socket.socket, process: "subprocess.Popen[bytes]", waiting: list[WaitingProcess]) -> None:
    control.close()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    while waiting:
        _discard(waiting.pop())


def _discard(waiting: WaitingProcess) -> None:
    waiting.process.close()
    if waiting.cgroup:
        waiting.cgroup.remove()


def _socket_pair() -> tuple[socket.socket, socket.socket]:
    """Handrail's end, which never blocks, and the other one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(0)
    return ours, theirs


class ForkedProcess:
    """A process that the server has forked, from before its command is known until it has ended."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lock = anyio.Lock()
        self.pid = 0
        self.returncode: int | None = None

    def is_alive(self) -> bool:
        with suppress(BlockingIOError):
            while self.returncode is None:
                self._read_message()
        return self.returncode is None

    def send(self, request: bytes, *, stdin: int, stdout: int, stderr: int) -> bool:
        """Give it its command; False if it is gone."""
        with ExitStack() as opened:
            file = os.memfd_create("request")  # a message could be too large
            opened.callback(os.close, file)
            with open(file, "wb", closefd=False) as writing:
                writing.write(request)
            nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            opened.callback(os.close, nothing)
            known = {subprocess.DEVNULL: nothing, subprocess.STDOUT: stdout}
            standard = [known.get(each, each) for each in (stdin, stdout, stderr)]
            try:
                socket.send_fds(self._channel, [b"c"], [file, *standard])
            except OSError:
                self.close()
                return False
        return True

    async def started(self) -> None:
        """Wait until the process exists; raises OSError if it does not."""
        # Not cancelled meanwhile: nobody would know which process to stop.
        with anyio.move_on_after(START_SECONDS, shield=True):
            while not self.pid and self.returncode is None:
                await self._receive()
        if not self.pid:
            raise OSError("the process that starts commands was killed; try again")

    async def wait(self) -> int:
        async with self._lock:
            while self.returncode is None:
                await self._receive()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.is_alive():  # otherwise the number may be another's by now
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def aclose(self) -> None:
        self.close()

    def close(self) -> None:
        """Hear no more of it; ends it if it still waits for a command."""
        self._channel.close()

    async def _receive(self) -> None:
        await anyio.wait_readable(self._channel)
        self._read_message()

    def _read_message(self) -> None:
        message = b""
        with suppress(ConnectionError):
            message = self._channel.recv(MESSAGE.size)
        # If the server has died, it was killed with it.
        kind, value = MESSAGE.unpack(message) if message else (ENDED, signal.SIGKILL)
        if kind == STARTED:
            self.pid = value
        else:
            self.returncode = os.waitstatus_to_exitcode(value)


def _encoded(launch: Launch, folder: Path, environment: Mapping[str, str]) -> bytes:
    """The request; in bytes, because the server may have another encoding of file names."""

    def encoded(texts: Iterable[str]) -> list[bytes]:
        return [os.fsencode(text) for text in texts]

    environ = {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}
    return marshal.dumps((encoded(launch.options), encoded(launch.words), environ, os.fsencode(folder)))
