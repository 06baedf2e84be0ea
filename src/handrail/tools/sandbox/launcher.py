"""The program whose child confines itself by Landlock and then becomes the command, while it stands guard.

It imports only what it needs, because every command waits for it. It is a program of its own because a
process with threads must not run Python between fork and exec.

    main --parent PID --processes N [--landlock --file-bytes N --open-files N [--network] [--write PATH]...
        [--hide PATH]...] -- COMMAND...

Ends with status 125 when it could not confine itself; the command was not run then.
"""

import ctypes
import errno
import itertools
import os
import resource
import stat
import struct
from collections.abc import Iterator
from typing import NoReturn

from handrail.tools.sandbox.guardian import guard, leave, libc

NOT_CONFINED = 125
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION_FLAG, PATH_BENEATH = 1, 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = (1 << bit for bit in range(6))
MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_SYM = (1 << bit for bit in (7, 8, 9, 10, 12))
REFER, TRUNCATE, IOCTL_DEV = (1 << bit for bit in (13, 14, 15))
ALL_OF_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All that can be refused, by the version that brought it."""
READ = EXECUTE | READ_FILE | READ_DIR
CHANGE = REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM
WRITE = READ | CHANGE | WRITE_FILE | REFER | TRUNCATE
OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
TCP = 0b11
SIGNALS_AND_ABSTRACT_SOCKETS = 0b11

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - semaphores of Python's multiprocessing are made here

PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 22, 24, 38
SECCOMP_FILTER = 2
KEPT_POWERS = (0, 1, 3, 4)
"""chown, dac_override, fowner, fsetid: work on files of a workspace that belongs to somebody else."""
SYSCALLS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""The audit number of a machine, and its number of `socket`."""
IO_URING_SETUP = 425
X32 = 0x4000_0000
AF_UNIX, AF_NETLINK = 1, 16
"""Sockets that end on this machine: local services, and the kernel's word on its interfaces."""


def abi() -> int:
    """The version of Landlock that the kernel has; 0 for none."""
    return max(0, int(libc.syscall(CREATE_RULESET, None, 0, VERSION_FLAG)))


def main(words: list[str]) -> NoReturn:
    split = words.index("--")
    options, command = words[:split], words[split + 1 :]

    def become() -> NoReturn:
        try:
            if "--landlock" in options:
                confine(options)
            else:
                limit(resource.RLIMIT_NPROC, number_of("--processes", options) + threads_of_user())
        except OSError as error:
            os.write(2, f"The command was not run, because it could not be confined: {error}.\n".encode())
            os._exit(NOT_CONFINED)
        try:
            os.execvp(command[0], command)  # noqa: S606
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
            os._exit(127 if error.errno == errno.ENOENT else 126)

    leave(guard(number_of("--parent", options), become))


def confine(options: list[str]) -> None:
    values: dict[str, list[str]] = {"--write": [], "--hide": ["/dev"]}
    for name, value in itertools.pairwise(options):
        if name in values:
            values[name].append(value)
    network = "--network" in options
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_FSIZE, number_of("--file-bytes", options))
    limit(resource.RLIMIT_NOFILE, number_of("--open-files", options))
    limit(resource.RLIMIT_NPROC, number_of("--processes", options) + threads_of_user())
    if os.geteuid() == 0:
        drop_powers()
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    restrict_files(values["--write"], values["--hide"], network=network)
    if not network:
        restrict_sockets()


def threads_of_user() -> int:
    """What the kernel counts for the user already: its limit is on all of it, not on the command alone."""
    user, found = os.geteuid(), 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid == user:
                    found += len(os.listdir(f"/proc/{name}/task"))
            except OSError:
                continue  # it has ended
    return found


def number_of(name: str, options: list[str]) -> int:
    return int(options[options.index(name) + 1])


def limit(which: int, wished: int) -> None:
    _, hard = resource.getrlimit(which)
    most = wished if hard == resource.RLIM_INFINITY else min(wished, hard)
    resource.setrlimit(which, (most, most))


def drop_powers() -> None:
    """Root keeps what it needs to work on other people's files, from the next exec on."""
    for power in range(64):
        if power not in KEPT_POWERS and libc.prctl(PR_CAPBSET_DROP, power, 0, 0, 0) != 0:
            break  # beyond the last one there is


def restrict_files(writable: list[str], hide: list[str], *, network: bool) -> None:
    version = abi()
    handled = max(rights for since, rights in ALL_OF_ABI.items() if since <= version)
    net = TCP if version >= 4 and not network else 0
    scoped = SIGNALS_AND_ABSTRACT_SOCKETS if version >= 6 else 0
    attributes = struct.pack("=QQQ", handled, net, scoped)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = check(libc.syscall(CREATE_RULESET, attributes, size, 0))
    for path in beneath("/", hide):
        allow(ruleset, path, READ & handled)
    for folder in writable:
        for path in beneath(folder, [place for place in hide if not folder.startswith(f"{place}/")]):
            allow(ruleset, path, WRITE & handled)
    for path in DEVICES:
        allow(ruleset, path, (READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV) & handled)
    allow(ruleset, SHARED_MEMORY, (READ_FILE | WRITE_FILE | TRUNCATE | MAKE_REG | REMOVE_FILE) & handled)
    check(libc.syscall(RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def beneath(folder: str, hide: list[str]) -> Iterator[str]:
    """The fewest paths that together are all of the folder without the hidden places.

    A rule holds for everything below its path, so folders on the way to a hidden place get none themselves.
    """
    start = folder.rstrip("/") + "/"
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
        # What a link leads to has a rule where it lies, or none.
        if path not in inside and not os.path.islink(path):
            yield from beneath(path, inside)


def allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return  # what cannot be reached needs no rule
    try:
        mode = os.fstat(place).st_mode
        if not stat.S_ISDIR(mode):
            rights &= OF_A_FILE
        if not stat.S_ISLNK(mode):
            check(libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", rights, place), 0))
    finally:
        os.close(place)


def restrict_sockets() -> None:
    """Leave only local sockets: Landlock itself knows nothing of UDP."""
    machine = os.uname().machine
    if machine not in SYSCALLS:
        return
    audit, socket = SYSCALLS[machine]
    allowed, refused = 0x7FFF_0000, 0x0005_0000 | errno.EACCES
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    program = [
        (load, 0, 0, 4),
        (equal, 0, 8, audit),
        (load, 0, 0, 0),
        (at_least, 6, 0, X32),
        (equal, 5, 0, IO_URING_SETUP),  # it can open sockets without the call
        (equal, 0, 3, socket),
        (load, 0, 0, 16),
        (equal, 1, 0, AF_NETLINK),
        (equal, 0, 1, AF_UNIX),
        (give, 0, 0, allowed),
        (give, 0, 0, refused),
    ]
    code = b"".join(struct.pack("=HBBI", *line) for line in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    check(libc.prctl(PR_SET_SECCOMP, SECCOMP_FILTER, header, 0, 0))


def check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
