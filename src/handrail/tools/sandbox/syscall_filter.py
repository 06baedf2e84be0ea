"""The seccomp filter of a confined command: for what Landlock has no rules.

A call is refused, left to the kernel, or reported to `syscall_supervisor`, which decides it. The same filter
holds for everything that the command starts. Calls that it does not name cost next to nothing: the kernel
remembers that they are always allowed.

Calls are given by their numbers on x86_64 and aarch64; None if there is no such call.
"""

import ctypes
import errno
import os
import struct

libc = ctypes.CDLL(None, use_errno=True)

AUDIT_NUMBERS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
MACHINES = tuple(AUDIT_NUMBERS)
X32 = 0x4000_0000

ABSENT = (
    # What they make outlives the command, and belongs to all of the user's programs.
    *((29, 194), (30, 196), (31, 195)),  # shmget, shmat, shmctl
    *((64, 190), (65, 193), (220, 192), (66, 191)),  # semget, semop, semtimedop, semctl
    *((68, 186), (69, 189), (70, 188), (71, 187)),  # msgget, msgsnd, msgrcv, msgctl
    *((240, 180), (241, 181)),  # mq_open, mq_unlink
    *((248, 217), (249, 218), (250, 219)),  # add_key, request_key, keyctl
    (425, 425),  # io_uring_setup: it runs other calls, which a filter does not see
    # Their arguments are in memory, where a filter cannot look; programs then use the older calls.
    *((435, 435), (463, 463), (466, 466), (469, 469)),  # clone3, setxattrat, removexattrat, file_setattr
)
REFUSED = (
    # In another mount namespace or root folder, a path would mean something else.
    *((308, 268), (161, 51), (155, 41), (165, 40), (166, 39)),  # setns, chroot, pivot_root, mount, umount2
    *((429, 429), (442, 442), (428, 428), (467, 467)),  # move_mount, mount_setattr, open_tree, open_tree_attr
    *((430, 430), (433, 433)),  # fsopen, fspick
    *((304, 265), (179, 60), (443, 443)),  # open_by_handle_at, quotactl, quotactl_fd
)
MODES_AND_TIMES = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
}
OWNERS_AND_ATTRIBUTES = {
    "chown": (92, None),
    "lchown": (94, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
}
OF_A_PROCESS = (  # the process is the first argument, and 0 is the caller
    *((302, 261), (203, 122)),  # prlimit64, sched_setaffinity
    *((314, 274), (142, 118), (144, 119)),  # sched_setattr, sched_setparam, sched_setscheduler
)
OF_PROCESSES = (((141, 140), 2), ((251, 30), 3))  # setpriority, ioprio_set
"""The first argument says what the second is: a process, a group, or (the number here) a user."""
NAMESPACES = (((56, 220), 0x7E02_0000), ((272, 97), 0x7E02_0080))  # clone, unshare
"""Calls with the flags that make namespaces: in one of its own, a command could have capabilities."""

IOCTL, SOCKET, SOCKETPAIR, SECCOMP = (16, 29), (41, 198), (53, 199), (317, 277)
IOCTL_KINDS = (0x00, 0x24, 0x54, 0x89, 0xAA, 0xFF)  # files, perf, terminals, sockets, userfaultfd, pidfd
IOCTLS = (
    *(0x4004_9409, 0x4020_940D, 0xC018_9436),  # FICLONE, FICLONERANGE, FIDEDUPERANGE
    *(0x8008_6601, 0x8004_6601, 0x8008_7601, 0xC020_660B, 0x801C_581F),  # read flags, version, extents
)
"""All that is allowed: others change flags of files that are open for reading, or make subvolumes."""
SOCKET_KIND, DATAGRAM = 0xF, 2
AF_UNIX, AF_NETLINK = 1, 16  # local sockets: services on this machine, and the kernel's interface list

LOAD, EQUAL, AT_LEAST, ANY_BIT, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
NUMBER, ARCHITECTURE, FIRST, SECOND = 0, 4, 16, 24  # offsets of the lower halves: kernels read only these
ALLOW, REPORT = 0x7FFF_0000, 0x7FC0_0000
SET_FILTER, NEW_LISTENER, WAIT_KILLABLE = 1, 1 << 3, 1 << 5

Instruction = tuple[int, int, int, int]
Numbers = tuple[int | None, int | None]  # on each of the machines


class Filter:
    def __init__(self, machine: str, *, network: bool, supervised: bool, local: bool = True) -> None:
        """If not `supervised`, modes and times are open, and the other calls to report are refused.

        If not `local`, there are no local sockets either, except pairs.
        """
        self.machine = machine
        self.network = network
        self.local = local
        self.families = (AF_UNIX, AF_NETLINK) if local else (AF_NETLINK,)
        self.supervised = supervised

    def program(self) -> list[Instruction]:
        report = REPORT if self.supervised else _error(errno.EPERM)
        rules: list[tuple[Numbers, list[Instruction]]] = [
            *((numbers, _always(_error(errno.ENOSYS))) for numbers in ABSENT),
            *((numbers, _always(_error(errno.EPERM))) for numbers in REFUSED),
            *((numbers, _always(report)) for numbers in OWNERS_AND_ATTRIBUTES.values()),
            *((numbers, _allow_only(FIRST, (0,), report)) for numbers in OF_A_PROCESS),
            *((numbers, _processes(user, report)) for numbers, user in OF_PROCESSES),
            *((numbers, _without_flags(flags)) for numbers, flags in NAMESPACES),
            (IOCTL, _ioctl()),
        ]
        if self.supervised:
            rules += [(numbers, _always(REPORT)) for numbers in MODES_AND_TIMES.values()]
        if not self.local:
            rules.append((SOCKETPAIR, _connected_pairs()))
        if not self.network:
            rules.append((SOCKET, _allow_only(FIRST, self.families, _error(errno.EACCES))))
        return [
            (LOAD, 0, 0, ARCHITECTURE),
            (EQUAL, 1, 0, AUDIT_NUMBERS[self.machine]),
            (RETURN, 0, 0, _error(errno.EPERM)),
            (LOAD, 0, 0, NUMBER),
            (AT_LEAST, 0, 1, X32),
            (RETURN, 0, 0, _error(errno.ENOSYS)),
            *(step for numbers, body in rules for step in self._rule(numbers, body)),
            (RETURN, 0, 0, ALLOW),
        ]

    def _rule(self, numbers: Numbers, body: list[Instruction]) -> list[Instruction]:
        number = number_here(numbers, self.machine)
        return [] if number is None else [(EQUAL, 0, len(body), number), *body]

    def install(self) -> int:
        """Filter this process from now on; returns the supervisor's listener if `supervised`."""
        program = self.program()
        code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
        buffer = ctypes.create_string_buffer(code, len(code))
        header = struct.pack("@HP", len(program), ctypes.addressof(buffer))
        call = number_here(SECCOMP, self.machine)
        if self.supervised:
            # Signals must not interrupt a call that the supervisor is about to make; older kernels lack that.
            listener = libc.syscall(call, SET_FILTER, NEW_LISTENER | WAIT_KILLABLE, header)
            if listener >= 0 or ctypes.get_errno() != errno.EINVAL:
                return check(listener)
        return check(libc.syscall(call, SET_FILTER, NEW_LISTENER if self.supervised else 0, header))


def number_here(numbers: Numbers, machine: str) -> int | None:
    return numbers[MACHINES.index(machine)] if machine in MACHINES else None


def check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _error(number: int) -> int:
    return 0x0005_0000 | number


def _always(action: int) -> list[Instruction]:
    return [(RETURN, 0, 0, action)]


def _allow_only(argument: int, values: tuple[int, ...], otherwise: int) -> list[Instruction]:
    compare = [(EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [(LOAD, 0, 0, argument), *compare, (RETURN, 0, 0, otherwise), (RETURN, 0, 0, ALLOW)]


def _processes(user: int, report: int) -> list[Instruction]:
    refuse = [(LOAD, 0, 0, FIRST), (EQUAL, 0, 1, user), (RETURN, 0, 0, _error(errno.EPERM))]
    return [*refuse, *_allow_only(SECOND, (0,), report)]


def _without_flags(flags: int) -> list[Instruction]:
    refuse = [(LOAD, 0, 0, FIRST), (ANY_BIT, 0, 1, flags), (RETURN, 0, 0, _error(errno.EPERM))]
    return [*refuse, (RETURN, 0, 0, ALLOW)]


def _connected_pairs() -> list[Instruction]:
    """Pairs of datagram sockets could be connected to a service afterwards."""
    kind = [(LOAD, 0, 0, SECOND), (AND, 0, 0, SOCKET_KIND), (EQUAL, 0, 1, DATAGRAM)]
    return [*kind, (RETURN, 0, 0, _error(errno.EACCES)), (RETURN, 0, 0, ALLOW)]


def _ioctl() -> list[Instruction]:
    exact = _allow_only(SECOND, IOCTLS, _error(errno.ENOTTY))
    end = len(IOCTL_KINDS) + len(exact) - 2  # the distance to the last instruction, which allows
    kinds = [(EQUAL, end - place, 0, kind << 8) for place, kind in enumerate(IOCTL_KINDS)]
    return [(LOAD, 0, 0, SECOND), (AND, 0, 0, 0xFF00), *kinds, *exact]
