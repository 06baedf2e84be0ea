"""State outside that is no file: memory and keys that outlive a command, and other processes."""

import ctypes
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from handrail.tools.process import run_for_output
from handrail.tools.sandbox.protected_paths import SandboxSetup
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from handrail.tools.sandbox.syscall_filter import (
    ABSENT,
    ALLOW,
    AUDIT_NUMBERS,
    MODES_AND_TIMES,
    OWNERS_AND_ATTRIBUTES,
    REPORT,
    Filter,
)
from handrail.tools.secrets import without_secrets
from tests.tools.sandbox.machine import probed
from tests.tools.sandbox.room import Room, furnished

pytestmark = pytest.mark.anyio

IPC = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
arm = os.uname().machine == "aarch64"
def call(function, *arguments):
    if function(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return "done"
"""


@pytest.fixture
def room(home: Path, protection: Protection) -> Room:
    return furnished(home, protection)


def keys() -> set[int]:
    """The keys of all memory, semaphores and queues of System V."""
    found = set()
    for kind in ("shm", "sem", "msg"):
        lines = Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]
        found |= {int(line.split()[0]) for line in lines}
    return found


@pytest.mark.promise("SAND-17")
@pytest.mark.parametrize("network", [False, True])
async def test_no_memory_semaphore_queue_or_key_outlives_a_command(room: Room, network: bool) -> None:
    key = secrets.randbits(30) + 1
    said = await room.tries(
        IPC
        + """
key = int(sys.argv[1])
say(
    shm=tried(lambda: call(libc.shmget, key, 4096, 0o1600)),
    sem=tried(lambda: call(libc.semget, key + 1, 1, 0o1600)),
    msg=tried(lambda: call(libc.msgget, key + 2, 0o1600)),
    mq=tried(lambda: call(libc.mq_open, b"/handrail-%d" % key, 0o102, 0o600, None)),
    keyring=tried(lambda: call(libc.syscall, 219 if arm else 250, 0, -4, 0)),
    uring=tried(lambda: call(libc.syscall, 425, 4, ctypes.create_string_buffer(120))),
)
""",
        str(key),
        network=network,
    )
    assert not {key, key + 1, key + 2} & keys()
    assert not os.path.exists(f"/dev/mqueue/handrail-{key}")
    if room.protection.name == "Landlock":
        assert set(said.values()) == {"OSError"}, said
    assert (said["keyring"] == "done") == (not room.protection.keys)


@pytest.fixture
def theirs() -> Iterator[SimpleNamespace]:
    """Memory, semaphores and a queue of another program."""
    libc = ctypes.CDLL(None)
    key = secrets.randbits(30) + 1
    made = SimpleNamespace(
        key=key,
        shm=libc.shmget(key, 4096, 0o1600),
        sem=libc.semget(key, 1, 0o1600),
        msg=libc.msgget(key, 0o1600),
    )
    yield made
    libc.shmctl(made.shm, 0, None)
    libc.semctl(made.sem, 0, 0)
    libc.msgctl(made.msg, 0, None)


@pytest.mark.promise("SAND-17")
async def test_memory_of_other_programs_is_neither_attached_nor_removed(
    room: Room, theirs: SimpleNamespace
) -> None:
    if min(theirs.shm, theirs.sem, theirs.msg) < 0:
        return  # the machine that runs this test has none
    said = await room.tries(
        IPC
        + """
libc.shmat.restype = ctypes.c_long
shm, sem, msg = map(int, sys.argv[1:])
say(
    attached=tried(lambda: call(libc.shmat, shm, None, 0)),
    shm=tried(lambda: call(libc.shmctl, shm, 0, None)),
    sem=tried(lambda: call(libc.semctl, sem, 0, 0)),
    raised=tried(lambda: call(libc.semop, sem, ctypes.create_string_buffer(bytes([0, 0, 1, 0, 0, 0]), 6), 1)),
    sent=tried(lambda: call(libc.msgsnd, msg, ctypes.create_string_buffer(b"\\1" + bytes(20)), 1, 0)),
    msg=tried(lambda: call(libc.msgctl, msg, 0, None)),
)
""",
        str(theirs.shm),
        str(theirs.sem),
        str(theirs.msg),
    )
    assert "done" not in said.values(), said
    assert theirs.key in keys()


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        yield process
        process.kill()


@pytest.mark.promise("SAND-18")
async def test_other_processes_keep_their_limits_and_priorities(
    room: Room, bystander: subprocess.Popen[bytes]
) -> None:
    before = state(bystander.pid)
    said = await room.tries(
        IPC
        + """
import resource
pid = int(sys.argv[1])
attributes = ctypes.create_string_buffer(bytes([48, 0, 0, 0, 3]), 48)
say(
    limit=tried(lambda: resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0))),
    affinity=tried(lambda: os.sched_setaffinity(pid, [min(os.sched_getaffinity(0))])),
    scheduler=tried(lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))),
    attributes=tried(lambda: call(libc.syscall, 274 if arm else 314, pid, attributes, 0)),
    priority=tried(lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)),
    group=tried(lambda: os.setpriority(os.PRIO_PGRP, pid, 19)),
    disk=tried(lambda: call(libc.syscall, 30 if arm else 251, 1, pid, 3 << 13)),
    signal=tried(lambda: os.kill(pid, 15)),
)
""",
        str(bystander.pid),
    )
    if room.protection.others:
        assert bystander.poll() is None
    else:
        assert "other processes of the user can be signalled" in room.protection.missing
    if bystander.poll() is None:
        assert state(bystander.pid) == before, said
    if room.protection.name == "Landlock":  # elsewhere the number may be one of the command's own
        assert None not in (result for way, result in said.items() if way != "signal"), said


def state(pid: int) -> tuple[object, ...]:
    limits = Path(f"/proc/{pid}/limits").read_text()
    return (
        limits,
        os.sched_getaffinity(pid),
        os.sched_getscheduler(pid),
        os.getpriority(os.PRIO_PROCESS, pid),
    )


@pytest.mark.promise("SAND-18")
async def test_a_command_sets_limits_and_priorities_of_its_own_processes(room: Room) -> None:
    said = await room.tries(
        """
import resource, signal, threading
child = os.fork()
if child == 0:
    signal.pause()
grandchild = os.fork()
if grandchild == 0:
    signal.pause()
found = []
def thread():
    found.append(tried(lambda: os.sched_setaffinity(threading.get_native_id(), os.sched_getaffinity(0))))
running = threading.Thread(target=thread)
running.start()
running.join()
say(
    itself=tried(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))),
    limit=tried(lambda: resource.prlimit(child, resource.RLIMIT_NOFILE, (100, 100)) and None),
    priority=tried(lambda: os.setpriority(os.PRIO_PROCESS, grandchild, 5)),
    nice=tried(lambda: os.nice(1) and None),
    affinity=tried(lambda: os.sched_setaffinity(child, [min(os.sched_getaffinity(0))])),
    thread=found[0],
    killed=tried(lambda: os.kill(child, 9) or os.kill(grandchild, 9)),
)
"""
    )
    assert set(said.values()) == {None}, said


SUPERVISED_ALREADY = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
allow = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000), 8)
libc.prctl(38, 1, 0, 0, 0)
number = 277 if os.uname().machine == "aarch64" else 317
listener = libc.syscall(number, 1, 8, struct.pack("@HP", 1, ctypes.addressof(allow)))
os.set_inheritable(listener, True)
os.execv(sys.argv[1], sys.argv[1:])
"""

WITHOUT_SUPERVISOR = """
import os, sys
def tried(action):
    try:
        return action()
    except OSError as error:
        return type(error).__name__
open("f", "w").close()
print(
    tried(lambda: os.chmod("f", 0o600)),
    tried(lambda: os.utime("f", (1, 1))),
    tried(lambda: os.chmod(sys.argv[1], 0o600)),
    tried(lambda: os.chown(sys.argv[1], os.getuid(), os.getgid())),
    tried(lambda: os.setxattr(sys.argv[1], "user.new", b"x")),
)
"""


@pytest.mark.promise("SAND-19")
async def test_inside_another_supervisor_modes_stay_open_and_owners_are_refused(home: Path) -> None:
    """There can be only one supervisor, for example where Handrail runs in a container that has one."""
    landlock = probed()[1]
    if not landlock.active:
        return
    room = furnished(home, landlock)
    outside = room.home / ".bashrc"
    setup = SandboxSetup(room.workspace, (room.state,), without_secrets(os.environ))
    tries = (sys.executable, "-I", "-S", "-c", WITHOUT_SUPERVISOR, str(outside))
    async with Sandbox(found=landlock).confine(tries, setup) as confined:
        words = [sys.executable, "-I", "-S", "-c", SUPERVISED_ALREADY, *confined.words]
        ended = await run_for_output(
            words, folder=room.workspace, environment=confined.environ, timeout=60, limit=10_000
        )
    assert ended.data.decode().split() == ["None", "None", "None", "PermissionError", "PermissionError"]


@pytest.mark.promise("SAND-19")
@pytest.mark.parametrize("machine", AUDIT_NUMBERS)
@pytest.mark.parametrize("supervised", [False, True])
@pytest.mark.parametrize("network", [False, True])
def test_the_filter_decides_each_call_as_its_tables_say(
    machine: str, supervised: bool, network: bool
) -> None:
    """Runs the program as the kernel does, also for the machine that this one is not."""
    program = Filter(machine, network=network, supervised=supervised).program()
    place = list(AUDIT_NUMBERS).index(machine)

    def result(number: int, *arguments: int, audit: int = AUDIT_NUMBERS[machine]) -> int:
        words = {0: number, 4: audit} | {16 + 8 * n: value for n, value in enumerate(arguments)}
        at = value = 0
        while True:
            code, yes, no, operand = program[at]
            at += 1
            match code:
                case 0x20:
                    value = words.get(operand, 0)
                case 0x54:
                    value &= operand
                case 0x06:
                    return operand
                case _:
                    holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[
                        code
                    ]
                    at += yes if holds else no

    def refusal(number: int) -> int:
        return 0x0005_0000 | number

    assert all(result(numbers[place]) == refusal(38) for numbers in ABSENT)
    for number in (numbers[place] for numbers in OWNERS_AND_ATTRIBUTES.values()):
        if number is not None:
            assert result(number) == (REPORT if supervised else refusal(1))
    for number in (numbers[place] for numbers in MODES_AND_TIMES.values()):
        if number is not None:
            assert result(number) == (REPORT if supervised else ALLOW)
    ioctl, socket, clone, unshare = ((16, 41, 56, 272), (29, 198, 220, 97))[place]
    for allowed in (0x5401, 0x541B, 0x8910, 0x40049409, 0x80086601, 2):
        assert result(ioctl, 3, allowed) == ALLOW
    for refused in (0x40086602, 0x40046602, 0x401C5820, 0x5000940E, 0x40806685, 0x40087602):
        assert result(ioctl, 3, refused) == refusal(25)
    assert result(clone, 0x1200011) == result(unshare, 0x400) == ALLOW
    assert result(clone, 0x10000011) == result(unshare, 0x20000) == refusal(1)
    assert result(socket, 1) == result(socket, 16) == ALLOW
    assert result(socket, 2) == result(socket, 40) == (ALLOW if network else refusal(13))
    setpriority, ioprio_set = ((141, 251), (140, 30))[place]
    for call, process, user in ((setpriority, 0, 2), (ioprio_set, 1, 3)):
        assert result(call, process, 0) == ALLOW
        assert result(call, process, 7) == (REPORT if supervised else refusal(1))
        assert result(call, user, 0) == refusal(1)
    assert result(1, audit=0x4000_0003) == refusal(1)
    assert result(0x4000_0001) == refusal(38)
    assert result(63) == ALLOW
