"""Program that forks a process for each command, so that no command waits for Python to start.

The forked process waits for its command, so it can be there before the command is known, and in its cgroup:
to join one takes as long as all the rest. It reads the command itself. The server sees nothing of that, so
every command starts from the same memory, and nothing of one is left for the next. The server has no
environment and no open files but the socket to Handrail and the channels of commands, which a forked process
closes first.

It ends when Handrail does, because its socket is then closed, and what it has forked ends with it.

    main --serve SOCKET, or the arguments of the launcher, for one command without a server
"""

import _socket
import marshal
import os
import struct

from handrail.tools.sandbox.landlock_launcher import (
    NOT_CONFINED,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    run_confined,
)
from handrail.tools.sandbox.syscall_filter import libc

TYPE_CHECKING = False  # importing `signal` and `typing` would take longer than all the rest
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal

READY = b"ready"
MESSAGE = struct.Struct("=ci")  # to Handrail, in the channel of a command
STARTED, ENDED = b"p", b"s"  # with the process, the wait status
COMMAND_FILES = 4  # what comes with a command: the request itself, stdin, stdout and stderr
JOIN_BYTES = 65_536  # of the paths of a cgroup


def main(words: list[str]) -> "NoReturn":
    if words[0] == "--serve":
        serve(int(words[1]))
    run_confined(words, dict(os.environb))


def serve(number: int) -> "NoReturn":
    """Fork for each channel that comes until Handrail's end of the socket is closed."""
    import gc
    import select

    gc.disable()  # a collection after a fork would copy all of the memory
    requests = _socket.socket(fileno=number)
    woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    # What bubblewrap leaves for a moment is collected here: some machines' init takes its time.
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    poll = select.poll()
    poll.register(number, select.POLLIN)
    poll.register(woken, select.POLLIN)
    channels: dict[int, int] = {}
    requests.send(READY)
    while True:
        for ready, _ in poll.poll():
            if ready == woken:
                os.read(woken, 4096)
                _collect(channels)
                continue
            _, files = receive(requests, 1)
            if not files:
                os._exit(0)
            parent, pid = os.getpid(), os.fork()
            if pid == 0:
                _run_one(parent, files[0])
            channels[pid] = files[0]
            _send(files[0], STARTED, pid)


def receive(socket: _socket.socket, files: int, size: int = 1) -> tuple[bytes, tuple[int, ...]]:
    """A message with up to so many files; empty if the other end is closed."""
    data, received, _, _ = socket.recvmsg(size, _socket.CMSG_SPACE(4 * files), _socket.MSG_CMSG_CLOEXEC)
    numbers = b"".join(each[2] for each in received)
    return data, struct.unpack(f"={len(numbers) // 4}i", numbers)


def _collect(channels: dict[int, int]) -> None:
    """Report the ends of commands to their channels."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        channel = channels.pop(pid, None)
        if channel is not None:
            _send(channel, ENDED, status)
            os.close(channel)


def _send(channel: int, kind: bytes, value: int) -> None:
    try:
        os.write(channel, MESSAGE.pack(kind, value))
    except OSError:
        return  # Handrail waits no longer


def _run_one(parent: int, channel: int) -> "NoReturn":
    """Wait for a command and become it; never returns to the server."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(code)
        os.setsid()
        _close_all_but(channel)  # those of Handrail and of other commands
        socket = _socket.socket(fileno=channel)
        try:
            join, _ = receive(socket, 0, JOIN_BYTES)
            for path in filter(None, join.split(b"\0")):
                _write(path, b"0")
            _, files = receive(socket, COMMAND_FILES)
            if not files:
                os._exit(0)  # it is not needed any more
            request, *standard = files
            for number, file in enumerate(standard):
                os.dup2(file, number)
            data = os.pread(request, os.fstat(request).st_size, 0)
            options, words, environ, folder = marshal.loads(data)  # noqa: S302 - Handrail's own
            _close_all_but(socket.detach())
            os.close(channel)
            os.chdir(folder)
            if not options:
                for name in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
                    signal.signal(name, signal.SIG_DFL)
                os.execve(words[0], words, environ)  # noqa: S606
        except OSError as error:
            os.write(2, f"The command was not run: {error.strerror}.\n".encode())
            os._exit(NOT_CONFINED)
        given = [os.fsdecode(word) for word in (*options, b"--", *words)]
        run_confined(["--parent", str(parent), *given], environ)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else code
    finally:
        os._exit(code)


def _close_all_but(channel: int) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != channel:
            try:
                os.close(int(name))
            except OSError:
                continue  # the list itself


def _write(path: bytes, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, data)
    finally:
        os.close(file)
