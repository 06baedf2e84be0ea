"""Program that confines a command with Landlock and ends everything the command leaves behind.

Everything the command starts is below this process, even if it left its group or session. The launcher ends
all of it when the command has ended, when it is asked to, and when the process that started it is gone.

    SIGTERM: ask everything to end, then kill it.    SIGQUIT: kill it now.

It imports only what it needs, because every command waits for it. It is a separate program because a process
with threads must not run Python between fork and exec.

    --parent PID --processes N [--landlock --file-bytes N --open-files N [--network] [--write PATH]...
        [--keep PATH]... [--hide PATH]... [--look PATH --run PATH...]] -- COMMAND...

`--keep`: not written, though it is below a `--write`. `--hide`: not read either. With `--look` only these
paths are read, and programs run only from `--run`.

Exits with status 125 if it could not confine itself; the command was not run then.
"""

import _socket
import ctypes
import errno
import itertools
import os
import resource
import stat
import struct
import sys
import time

from handrail.tools.sandbox.syscall_filter import check, libc
from handrail.tools.sandbox.syscall_supervisor import Supervisor, filter_self

TYPE_CHECKING = False  # importing `signal` and `typing` would take longer than all the rest
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import NoReturn
else:
    import _signal as signal

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
GRACE = 1.5  # seconds between SIGTERM and SIGKILL; less than `KILL_AFTER` of the process that asks
PAUSE = 0.01
KILL_SECONDS = 5.0
LEFT_BEHIND_NOTE = b"[processes it left in the background were stopped]\n"


class StopRequested(Exception):
    """A signal asked for the end; `grace` is the number of seconds before killing."""

    def __init__(self, grace: float) -> None:
        self.grace = grace


def guard(parent: int, become: "Callable[[], NoReturn]", supervise: "Callable[[int], None]") -> int:
    """Run the program in a child; returns its exit status once everything below has ended."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        return 1  # the parent ended before we could watch it
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, _stop)
    child = os.fork()
    if child == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.setsid()
        become()
    status, grace = 0, GRACE
    try:
        supervise(child)
        pid = 0
        while pid != child:
            pid, status = os.wait()
        # Without a child there is nothing below: what loses its parent becomes our child.
        if _anything_left() and descendants(os.getpid()):
            os.write(1, LEFT_BEHIND_NOTE)
    except StopRequested as request:
        grace = request.grace
        if not grace:
            _kill_group(child)
    except OSError:
        pass  # nobody reads the note
    try:
        _end_all(grace)
    except StopRequested:
        _kill_group(child)  # first, because there may be very many processes to look through
        _end_all(0.0)
    return status


def exit_like_child(status: int) -> "NoReturn":
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    sys.exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


def _stop(number: int, _frame: "FrameType | None") -> None:
    raise StopRequested(0.0 if number == signal.SIGQUIT else GRACE)


def _end_all(grace: float) -> None:
    """Ask everything below to end, and kill what does not."""
    limit = time.monotonic() + grace
    if not _anything_left():
        return
    if grace:
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGTERM)
            except OSError:
                continue  # it has ended, or is another user's
    while _anything_left() and time.monotonic() < limit:
        time.sleep(PAUSE)
    limit = time.monotonic() + KILL_SECONDS
    while _anything_left() and time.monotonic() < limit:
        # Repeatedly: a killed process may just have started another one in a group of its own.
        _kill_groups()
        time.sleep(PAUSE)


def _anything_left() -> bool:
    """Reap ended children; whether any child is left. Orphans below us become our children."""
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return False
    return True


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        return  # it has ended


def _kill_groups() -> None:
    """Kill by process group: the kernel ends a group at once, however fast its members fork."""
    ours = os.getpgid(0)
    for pid in descendants(os.getpid()):
        try:
            group = os.getpgid(pid)
        except OSError:
            continue  # it has ended
        if group != ours:
            _kill_group(group)


def descendants(pid: int) -> list[int]:
    """All running processes that descend from this one."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent, *_ = file.read().rpartition(b")")[2].split()
        except (OSError, ValueError):
            continue
        children.setdefault(int(parent), []).append(int(name) * (-1 if state in b"ZX" else 1))
    found = list(children.get(pid, ()))
    for each in found:
        found += children.get(abs(each), ())
    return [each for each in found if each > 0]


NOT_CONFINED = 125
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION_FLAG, PATH_BENEATH = 1, 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = (1 << bit for bit in range(6))
MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_SYM = (1 << bit for bit in (7, 8, 9, 10, 12))
REFER, TRUNCATE, IOCTL_DEV = (1 << bit for bit in (13, 14, 15))
ALL_OF_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All rights that can be refused, by the Landlock version that added them."""
READ = EXECUTE | READ_FILE | READ_DIR
CHANGE = REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM
WRITE = READ | CHANGE | WRITE_FILE | REFER | TRUNCATE
OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
TCP = 0b11
SIGNALS_AND_ABSTRACT_SOCKETS = 0b11

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - semaphores of Python's multiprocessing are made here

PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
KEPT_CAPABILITIES = (0, 1, 3, 4)  # chown, dac_override, fowner, fsetid: for workspaces of other users
CAPABILITY_VERSION = 0x2008_0522
CLOCK_OF_FILES = 5  # CLOCK_REALTIME_COARSE: the times of files are read off it


def landlock_version() -> int:
    """The kernel's Landlock version; 0 if it has none."""
    return max(0, int(libc.syscall(CREATE_RULESET, None, 0, VERSION_FLAG)))


def run_confined(words: list[str], environ: dict[bytes, bytes]) -> "NoReturn":
    """Run the command of these words with this environment; ends the process."""
    split = words.index("--")
    options, command = words[:split], words[split + 1 :]
    parent, landlocked = option_number("--parent", options), "--landlock" in options
    guards_end, commands_end = _socket.socketpair()
    since = time.clock_gettime_ns(CLOCK_OF_FILES)

    def become() -> "NoReturn":
        try:
            if landlocked:
                confine(options, commands_end)
            else:
                set_limit(resource.RLIMIT_NPROC, option_number("--processes", options) + threads_of_user())
        except OSError as error:
            os.write(2, f"The command was not run, because it could not be confined: {error}.\n".encode())
            os._exit(NOT_CONFINED)
        try:
            os.execvpe(command[0], command, environ)  # noqa: S606
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
            os._exit(127 if error.errno == errno.ENOENT else 126)

    def supervise(child: int) -> None:
        commands_end.close()
        if landlocked:
            places = option_values(options)
            closed = [*places["--hide"], *places["--keep"]]
            Supervisor(places["--write"], closed, since).start(child, guards_end)

    if landlocked:
        drop_capabilities()  # here too: the supervisor can do no more than the command
    exit_like_child(guard(parent, become, supervise))


def confine(options: list[str], supervisor: _socket.socket) -> None:
    values, network = option_values(options), "--network" in options
    set_limit(resource.RLIMIT_CORE, 0)
    set_limit(resource.RLIMIT_FSIZE, option_number("--file-bytes", options))
    set_limit(resource.RLIMIT_NOFILE, option_number("--open-files", options))
    set_limit(resource.RLIMIT_NPROC, option_number("--processes", options) + threads_of_user())
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    restrict_files(values, network=network)
    filter_self(supervisor, network=network, local="--no-local-sockets" not in options)


def option_values(options: list[str]) -> dict[str, list[str]]:
    names = ("--write", "--keep", "--hide", "--look", "--run")
    values: dict[str, list[str]] = {name: ["/dev"] * (name == "--hide") for name in names}
    for name, value in itertools.pairwise(options):
        if name in values:
            values[name].append(value)
    return values


def drop_capabilities() -> None:
    """Of root's capabilities, keep only those for working on other users' files."""
    if os.geteuid() != 0:
        return
    for capability in range(64):
        if capability not in KEPT_CAPABILITIES and libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break  # past the last one
    ours = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; then their upper halves
    header = struct.pack("=Ii", CAPABILITY_VERSION, 0)
    check(libc.capget(header, ours))
    for place in range(6):
        ours[place] &= sum(1 << capability for capability in KEPT_CAPABILITIES) if place < 2 else 0
    check(libc.capset(header, ours))


def threads_of_user() -> int:
    """The user's threads now: the kernel's limit counts these too, not just the command's."""
    user, found = os.geteuid(), 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                threads = os.stat(f"/proc/{name}/task")
            except OSError:
                continue  # it has ended
            found += max(1, threads.st_nlink - 2) if threads.st_uid == user else 0
    return found


def option_number(name: str, options: list[str]) -> int:
    return int(options[options.index(name) + 1])


def set_limit(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))


def restrict_files(values: dict[str, list[str]], *, network: bool) -> None:
    version = landlock_version()
    handled = max(rights for since, rights in ALL_OF_ABI.items() if since <= version)
    net = TCP if version >= 4 and not network else 0
    scoped = SIGNALS_AND_ABSTRACT_SOCKETS if version >= 6 else 0
    attributes = struct.pack("=QQQ", handled, net, scoped)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = check(libc.syscall(CREATE_RULESET, attributes, size, 0))
    hide, look = values["--hide"], values["--look"]
    rules = [(path, READ) for path in ([*values["--run"], "/proc"] if look else ["/"])]
    rules += [(path, READ_FILE | READ_DIR) for path in look]
    for folder, rights in rules:
        for path in paths_without_hidden(folder, hidden_below(folder, hide)):
            add_rule(ruleset, path, rights & handled)
    for folder in (*look, *values["--run"], *values["--write"]):
        add_rule(ruleset, folder, READ_DIR & handled)  # names, also of what is hidden
    for folder in values["--write"]:
        for path in paths_without_hidden(folder, [*hidden_below(folder, hide), *values["--keep"]]):
            add_rule(ruleset, path, WRITE & handled)
    for path in DEVICES:
        add_rule(ruleset, path, (READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV) & handled)
    add_rule(ruleset, SHARED_MEMORY, (READ_FILE | WRITE_FILE | TRUNCATE | MAKE_REG | REMOVE_FILE) & handled)
    check(libc.syscall(RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def hidden_below(folder: str, hide: list[str]) -> list[str]:
    """What is hidden in the folder; one that is itself in a hidden place is not hidden by that."""
    return [place for place in hide if not folder.startswith(f"{place}/")]


def paths_without_hidden(folder: str, hide: list[str]) -> "Iterator[str]":
    """The fewest paths that together cover the folder except the hidden places.

    A rule covers everything below its path, so folders above a hidden place get none.
    """
    start = folder.rstrip("/") + "/"
    if folder in hide:
        return
    inside = [place for place in hide if place.startswith(start)]
    if not inside:
        yield folder
        return
    known = {start + place.removeprefix(start).partition("/")[0] for place in inside}
    try:
        paths = {entry.path for entry in os.scandir(folder)} | known
    except OSError:
        paths = known
    for path in sorted(paths):
        # The target of a link has a rule of its own, or none.
        if path not in inside and not os.path.islink(path):
            yield from paths_without_hidden(path, inside)


def add_rule(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return  # an unreachable path needs no rule
    try:
        mode = os.fstat(place).st_mode
        if not stat.S_ISDIR(mode):
            rights &= OF_A_FILE
        if rights and not stat.S_ISLNK(mode):
            check(libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", rights, place), 0))
    finally:
        os.close(place)
