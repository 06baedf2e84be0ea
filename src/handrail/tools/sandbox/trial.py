"""The trial program that probe runs in a sandbox; run by path with `python -I -S`.

    trial.py INSIDE OUTSIDE HOME SECRET TCP_PORT UDP_PORT SOCKET COUNTING PROCESS STARTED KEY MEMORY_DEVICE

Prints `tried` and one word for each thing that was refused. COUNTING says who limits processes: the trial
(`self`) or its sandbox (`given`). PROCESS is one outside, which STARTED then; MEMORY_DEVICE is the one of
/dev/shm outside. The trial leaves a process that holds a lock on `INSIDE/left`, and memory with the KEY.
"""

import ctypes
import fcntl
import os
import resource
import signal
import socket
import stat
import sys
from collections.abc import Callable

FEW, LIMIT, MANY = 4, 16, 40
LEFTOVER_SECONDS = 60  # seconds after which the leftover process ends if nobody else ends it
SHARED_MEMORY = "/dev/shm"  # noqa: S108
MEMORY = 64 << 20  # the memory limit for the trial, which takes twice as much


def refused(action: Callable[[], object]) -> bool:
    try:
        action()
    except OSError:
        return True
    return False


def write(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT))


def write_and_remove(path: str) -> None:
    write(path)
    os.unlink(path)


def connect(family: int, kind: int, address: str | tuple[str, int]) -> None:
    with socket.socket(family, kind) as client:
        client.settimeout(2)
        client.connect(address)
        client.send(b"x")


def processes_are_limited() -> bool:
    """Whether a few processes can run, but not many."""
    started: list[int] = []
    try:
        for _ in range(MANY):
            child = os.fork()
            if child == 0:
                signal.pause()
                os._exit(0)
            started.append(child)
    except OSError:
        return len(started) >= FEW
    finally:
        for child in started:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return False


def memory_is_limited() -> bool:
    """Whether a child that takes too much memory is killed."""
    child = os.fork()
    if child == 0:
        taken = bytearray(2 * MEMORY)
        os._exit(len(taken) == 0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def leave_behind(path: str) -> None:
    """Start a process that leaves its group and session, and holds a lock while it runs."""
    ready, tell = os.pipe()
    if os.fork() == 0:
        os.setsid()
        file = os.open(path, os.O_WRONLY | os.O_CREAT)
        fcntl.flock(file, fcntl.LOCK_EX)
        os.write(tell, b"x")
        for stream in (0, 1, 2):
            os.close(stream)
        signal.alarm(LEFTOVER_SECONDS)
        signal.pause()
        os._exit(0)
    os.read(ready, 1)


def change_metadata(path: str) -> tuple[Callable[[], object], ...]:
    """Changes that leave everything as it was; none if it is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return (
        lambda: os.chmod(path, stat.S_IMODE(found.st_mode)),
        lambda: os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns)),
        lambda: os.chown(path, found.st_uid, found.st_gid),
        lambda: os.setxattr(path, "user.handrail-trial", b""),
        lambda: os.removexattr(path, "user.handrail-trial"),
    )


def change_process(pid: int, started: str) -> tuple[Callable[[], object], ...]:
    """Changes that leave everything as it was; none if it is another process that has this number here."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            if file.read().rpartition(")")[2].split()[19] != started:
                return ()
    except OSError:
        return ()
    return (
        lambda: os.kill(pid, 0),
        lambda: resource.prlimit(pid, resource.RLIMIT_CORE, resource.prlimit(pid, resource.RLIMIT_CORE)),
        lambda: os.sched_setaffinity(pid, os.sched_getaffinity(pid)),
        lambda: os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid)),
    )


def find_keyring() -> None:
    """Ask for the user's keyring, which all of the user's programs share."""
    keyctl = {"x86_64": 250, "aarch64": 219}.get(os.uname().machine)
    if keyctl and ctypes.CDLL(None).syscall(keyctl, 0, -4, 0) < 0:
        raise PermissionError


def leave_memory(key: int) -> None:
    """Make one of each kind that belongs to no process; whoever reads the output looks for them."""
    libc, make = ctypes.CDLL(None), 0o1600
    libc.shmget(key, 1, make)
    libc.semget(key, 1, make)
    libc.msgget(key, make)


def main(words: list[str]) -> None:
    inside, outside, home, secret, tcp, udp, path, counting, process, started, key, device = words
    write(f"{inside}/new")
    for change in change_metadata(f"{inside}/new")[:3]:
        change()  # a sandbox that refuses this too is of no use
    leave_memory(int(key))
    writes_refused = (
        refused(lambda: write_and_remove(f"{outside}/new")),
        refused(lambda: write_and_remove(f"{home}/.handrail-trial-{os.getpid()}")),
        refused(lambda: os.truncate(secret, 0)),
        refused(lambda: os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))),
    )
    protected = {
        "files": all(writes_refused),
        "git": refused(lambda: write(f"{inside}/.git/config")),
        "secrets": refused(lambda: os.close(os.open(secret, os.O_RDONLY))),
        "sockets": refused(lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, path)),
        "metadata": all(map(refused, (*change_metadata(home), *change_metadata(outside)))),
        "devices": all(map(refused, change_metadata("/dev/null")[:2])),
        "others": all(map(refused, change_process(int(process), started))),
        "keys": refused(find_keyring),
        "shm": refused(lambda: write_and_remove(f"{SHARED_MEMORY}/handrail-trial-{os.getpid()}"))
        or str(os.stat(SHARED_MEMORY).st_dev) != device,
    }
    # The listening side sees whether these arrive.
    refused(lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(tcp))))
    refused(lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", int(udp))))
    protected["memory"] = memory_is_limited()
    if counting == "self":
        _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
        resource.setrlimit(resource.RLIMIT_NPROC, (LIMIT, hard))
    protected["processes"] = processes_are_limited()
    leave_behind(f"{inside}/left")
    sys.stdout.write(" ".join(["tried", *(word for word, yes in protected.items() if yes)]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
