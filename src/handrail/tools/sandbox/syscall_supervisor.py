"""Decides the system calls that a confined command's filter reports.

Changes of modes, owners, times and attributes are made here, on a file that this process has opened, if it
lies where the command may write. The command never makes them itself: after a look at its path, it could put
another file there. This process has the same user and capabilities as the command, so it can do nothing that
the command could not do without a filter.

A file with several names is changed only if it is younger than the command: another name may lie outside, but
Landlock lets a command make no link to a file there.
"""

import _socket
import _thread
import ctypes
import errno
import os
import stat
import struct

from handrail.tools.sandbox.syscall_filter import (
    MACHINES,
    MODES_AND_TIMES,
    OF_A_PROCESS,
    OF_PROCESSES,
    OWNERS_AND_ATTRIBUTES,
    Filter,
    check,
    libc,
    number_here,
)

TYPE_CHECKING = False  # importing `signal` and `typing` would take longer than all the rest
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable

    Change = Callable[["Memory", bytes, tuple[int, ...]], None]
else:
    import _signal as signal

RECEIVE, SEND, IS_VALID, SET_FLAGS = 0xC050_2100, 0xC018_2101, 0x4008_2102, 0x4008_2104
SYNC_WAKE_UP, CONTINUE = 1, 1
REQUEST, REQUEST_BYTES, RESPONSE = struct.Struct("=QIIiIQ6Q"), 80, struct.Struct("=QqiI")

AT_FDCWD, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH = -100, 0x100, 0x1000
OPENAT2, NO_MAGIC_LINKS = 437, 2
STATX, BIRTH_TIME, BIRTH_TIME_OFFSET, STATX_BYTES = (332, 291), 0x800, 80, 256
SUPERVISED, ALONE = b"y", b"n"
PATH_BYTES, NAME_BYTES, VALUE_BYTES = 4096, 256, 65_536
CALLER = (b"self", b"thread-self")
DELETED = b" (deleted)"
SHARED_MEMORY = b"/dev/shm/"  # shared with other programs, so only what is new is the command's
ENDS_OF_A_REQUEST = (errno.EINTR, errno.ENOENT)  # its process was killed or got a signal


class Memory:
    """The memory of the process that called."""

    def __init__(self, file: int) -> None:
        self._file = file

    def read(self, address: int, size: int) -> bytes:
        data = self.read_up_to(address, size)
        if len(data) < size:
            raise OSError(errno.EFAULT, "bad address")
        return data

    def read_up_to(self, address: int, size: int) -> bytes:
        try:
            return os.pread(self._file, size, address)
        except (OSError, OverflowError) as error:
            raise OSError(errno.EFAULT, "bad address") from error

    def text(self, address: int, limit: int, too_long: int) -> bytes:
        data = self.read_up_to(address, limit)
        text, end, _ = data.partition(b"\0")
        if not end:
            raise OSError(too_long if len(data) == limit else errno.EFAULT, "not a text")
        return text


class Call:
    """What a call does, and where its arguments are; `values` is the first one after the file."""

    def __init__(
        self,
        change: "Change",
        values: int,
        *,
        folder: int | None = None,  # a descriptor: the folder of the path, or without a path the file itself
        path: int | None = None,
        flags: int | None = None,
        follow: bool = True,
    ) -> None:
        self.change = change
        self.values = values
        self.folder = folder
        self.path = path
        self.flags = flags
        self.follow = follow


def change_mode(_memory: Memory, file: bytes, values: tuple[int, ...]) -> None:
    os.chmod(file, values[0] & 0o7777)


def change_owner(_memory: Memory, file: bytes, values: tuple[int, ...]) -> None:
    os.chown(file, *(ctypes.c_int(value).value for value in values[:2]))


def change_times(memory: Memory, file: bytes, values: tuple[int, ...], *, unit: int = 1) -> None:
    """`unit` is the number of nanoseconds in the second half of each time; 0 if there is none."""
    times = None
    if values[0]:
        numbers = struct.unpack("=4q" if unit else "=2q", memory.read(values[0], 32 if unit else 16))
        if unit > 1 and not all(0 <= number < 1_000_000_000 // unit for number in numbers[1::2]):
            raise OSError(errno.EINVAL, "not a time")
        parts = (numbers[0], numbers[1] * unit, numbers[2], numbers[3] * unit) if unit else ()
        times = struct.pack("=4q", *(parts or (numbers[0], 0, numbers[1], 0)))
    check(libc.utimensat(AT_FDCWD, file, times, 0))


def change_times_in_seconds(memory: Memory, file: bytes, values: tuple[int, ...]) -> None:
    change_times(memory, file, values, unit=0)


def change_times_in_microseconds(memory: Memory, file: bytes, values: tuple[int, ...]) -> None:
    change_times(memory, file, values, unit=1000)


def set_attribute(memory: Memory, file: bytes, values: tuple[int, ...]) -> None:
    name = memory.text(values[0], NAME_BYTES, errno.ERANGE)
    if values[2] > VALUE_BYTES:
        raise OSError(errno.E2BIG, "too long")
    value = memory.read(values[1], values[2]) if values[2] else b""
    os.setxattr(file, name, value, ctypes.c_int(values[3]).value)


def remove_attribute(memory: Memory, file: bytes, values: tuple[int, ...]) -> None:
    os.removexattr(file, memory.text(values[0], NAME_BYTES, errno.ERANGE))


CALLS = {
    "chmod": Call(change_mode, 1, path=0),
    "fchmod": Call(change_mode, 1, folder=0),
    "fchmodat": Call(change_mode, 2, folder=0, path=1),
    "fchmodat2": Call(change_mode, 2, folder=0, path=1, flags=3),
    "chown": Call(change_owner, 1, path=0),
    "lchown": Call(change_owner, 1, path=0, follow=False),
    "fchown": Call(change_owner, 1, folder=0),
    "fchownat": Call(change_owner, 2, folder=0, path=1, flags=4),
    "utime": Call(change_times_in_seconds, 1, path=0),
    "utimes": Call(change_times_in_microseconds, 1, path=0),
    "futimesat": Call(change_times_in_microseconds, 2, folder=0, path=1),
    "utimensat": Call(change_times, 2, folder=0, path=1, flags=3),
    "setxattr": Call(set_attribute, 1, path=0),
    "lsetxattr": Call(set_attribute, 1, path=0, follow=False),
    "fsetxattr": Call(set_attribute, 1, folder=0),
    "removexattr": Call(remove_attribute, 1, path=0),
    "lremovexattr": Call(remove_attribute, 1, path=0, follow=False),
    "fremovexattr": Call(remove_attribute, 1, folder=0),
}


def filter_self(socket: _socket.socket, *, network: bool, local: bool = True) -> None:
    """Filter this process from now on, and pass the listener to the supervisor at the other end."""
    machine = os.uname().machine
    if machine not in MACHINES:
        return  # the numbers of its calls are not known
    try:
        supervised = socket.recv(1) == SUPERVISED
        listener = Filter(machine, network=network, supervised=supervised, local=local).install()
    except OSError:
        # There can be only one supervisor, also with those of sandboxes around this one.
        listener = Filter(machine, network=network, supervised=False, local=local).install()
    if not listener:
        return
    rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("=i", listener))
    socket.sendmsg([SUPERVISED], [rights])
    os.close(listener)


class Supervisor:
    def __init__(self, writable: list[str], closed: list[str], since: int) -> None:
        """`closed` are places in the writable folders that are not; what is older than `since` is not new."""
        machine = os.uname().machine
        places = [os.fsencode(path) for path in closed]
        roots = [os.fsencode(os.path.realpath(path)) for path in writable]
        self._writable = {root: [place for place in places if not is_beneath(root, place)] for root in roots}
        self._since = since
        self._statx = number_here(STATX, machine)
        numbers = MODES_AND_TIMES | OWNERS_AND_ATTRIBUTES
        self._calls = {number_here(numbers[name], machine): call for name, call in CALLS.items()}
        self._of_processes = {number_here(numbers, machine): 0 for numbers in OF_A_PROCESS}
        self._of_processes |= {number_here(numbers, machine): 1 for numbers, _ in OF_PROCESSES}

    def start(self, child: int, socket: _socket.socket) -> None:
        """Wait for the listener of a child that calls `filter_self`, and serve it in a thread."""
        try:
            os.close(os.open(f"/proc/{child}/mem", os.O_RDONLY | os.O_CLOEXEC))
            socket.send(SUPERVISED)
        except OSError:
            socket.send(ALONE)  # no process may look into another here
        _, received, _, _ = socket.recvmsg(1, _socket.CMSG_SPACE(4))
        for _, _, data in received:
            _thread.start_new_thread(self.serve, struct.unpack("=i", data))

    def serve(self, listener: int) -> None:
        """Answer until there is nobody left to ask."""
        # Signals are the main thread's, which would otherwise not wake up for them.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        libc.ioctl(listener, SET_FLAGS, ctypes.c_ulong(SYNC_WAKE_UP))  # faster; older kernels lack it
        try:
            while self._answer(listener):
                pass
        finally:
            os.close(listener)  # then the kernel refuses what is reported

    def _answer(self, listener: int) -> bool:
        buffer = ctypes.create_string_buffer(REQUEST_BYTES)
        if libc.ioctl(listener, RECEIVE, buffer) < 0:
            return ctypes.get_errno() in ENDS_OF_A_REQUEST
        request, pid, _, number, _, _, *arguments = REQUEST.unpack(buffer.raw)
        failed, flags = 0, 0
        try:
            if number in self._of_processes:
                process = ctypes.c_int(arguments[self._of_processes[number]]).value
                # The arguments are numbers, so the kernel sees those that were looked at.
                failed, flags = (0, CONTINUE) if is_below(process, os.getpid()) else (errno.EPERM, 0)
            else:
                self._change(listener, request, pid, self._calls[number], arguments)
        except OSError as error:
            failed = error.errno or errno.EPERM
        except (ValueError, OverflowError, MemoryError):
            failed = errno.EINVAL
        libc.ioctl(listener, SEND, RESPONSE.pack(request, 0, -failed, flags))  # fails if it was killed
        return True

    def _change(self, listener: int, request: int, pid: int, call: Call, arguments: list[int]) -> None:
        """Make the change on a file that lies where the command may write; raises OSError otherwise."""
        opened: list[int] = []
        try:
            memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
            opened.append(memory)
            # Otherwise the process has ended, and its number may be another's by now.
            check(libc.ioctl(listener, IS_VALID, struct.pack("=Q", request)))
            folder, path, follow = named_file(Memory(memory), call, arguments)
            file = open_file(pid, folder, path, follow=follow, opened=opened)
            self._require_writable(file)
            call.change(Memory(memory), b"/proc/self/fd/%d" % file, tuple(arguments[call.values :]))
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def _require_writable(self, file: int) -> None:
        # First the number of names, then this name: a name that is removed in between shows as deleted.
        found = os.stat(file)
        name = os.readlink(b"/proc/self/fd/%d" % file)
        if not any(
            is_beneath(name, folder) and not any(is_beneath(name, place) for place in closed)
            for folder, closed in self._writable.items()
        ):
            if not name.startswith(SHARED_MEMORY) or not self._is_new(file):
                raise OSError(errno.EPERM, "outside")
        elif stat.S_ISDIR(found.st_mode) or found.st_nlink == 0:
            return
        elif (found.st_nlink > 1 or name.endswith(DELETED)) and not self._is_new(file):
            raise OSError(errno.EPERM, "may have a name outside")

    def _is_new(self, file: int) -> bool:
        """Whether the file was made since the command started; no, if the file system does not tell."""
        found = ctypes.create_string_buffer(STATX_BYTES)
        check(libc.syscall(self._statx, file, b"", AT_EMPTY_PATH, BIRTH_TIME, found))
        seconds, nanoseconds = struct.unpack_from("=qI", found, BIRTH_TIME_OFFSET)
        known = struct.unpack_from("=I", found)[0] & BIRTH_TIME
        return bool(known) and seconds * 1_000_000_000 + nanoseconds >= self._since


def named_file(memory: Memory, call: Call, arguments: list[int]) -> tuple[int, bytes, bool]:
    """The file as the process named it: a folder, a path in it, and whether to follow a link at its end."""
    folder = AT_FDCWD if call.folder is None else ctypes.c_int(arguments[call.folder]).value
    if call.path is None:
        if folder < 0:
            raise OSError(errno.EBADF, "no descriptor")
        return folder, b"", True
    flags = arguments[call.flags] & 0xFFFF_FFFF if call.flags is not None else 0
    if flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH):
        raise OSError(errno.EINVAL, "unknown flags")
    address = arguments[call.path]
    of_times = call.change in (change_times, change_times_in_microseconds)
    if address == 0 and folder != AT_FDCWD and (of_times or flags & AT_EMPTY_PATH):
        return folder, b"", True
    path = memory.text(address, PATH_BYTES, errno.ENAMETOOLONG)
    if not path and not flags & AT_EMPTY_PATH:
        raise OSError(errno.ENOENT, "no path")
    return folder, path, call.follow and not flags & AT_SYMLINK_NOFOLLOW


def open_file(pid: int, folder: int, path: bytes, *, follow: bool, opened: list[int]) -> int:
    """The file as a descriptor for nothing but its name; appends what has to be closed to `opened`."""
    match path.split(b"/"):
        # Links to open files lead elsewhere when this process follows them.
        case [b"", b"proc", owner, b"fd", number] if follow and number.isdigit():
            pid, folder, path = pid if owner in CALLER else int(owner), int(number), b""
        case [b"", b"dev", b"fd", number] if follow and number.isdigit():
            folder, path = int(number), b""
    start = AT_FDCWD
    if not path.startswith(b"/"):
        name = "cwd" if folder == AT_FDCWD else f"fd/{folder}"
        try:
            start = os.open(f"/proc/{pid}/{name}", os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise OSError(errno.EBADF, "no such descriptor") from error
        opened.append(start)
    if not path:
        return start
    flags = os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    how = struct.pack("=QQQ", flags, 0, NO_MAGIC_LINKS)
    file = check(libc.syscall(OPENAT2, start, path, how, len(how)))
    opened.append(file)
    return file


def is_beneath(name: bytes, folder: bytes) -> bool:
    return name == folder or name.startswith(folder.rstrip(b"/") + b"/")


def is_below(pid: int, ancestor: int) -> bool:
    """Whether the process or thread descends from the other process."""
    while pid > 1:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError):
            return False
        if pid == ancestor:
            return True
    return False
