"""The program that is run in a sandbox to see what it can still do; run by its path with `python -I -S`.

    trial.py INSIDE OUTSIDE HOME SECRET TCP_PORT UDP_PORT SOCKET COUNTING

Prints `tried` and one word for each thing that was refused. COUNTING says who limits processes: `self`, or
whoever confines the trial. What it leaves running holds a lock on `INSIDE/left`.
"""

import fcntl
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable

FEW, LIMIT, MANY = 4, 16, 40
LASTS = 60
"""Seconds after which what is left running ends, where Handrail was killed and nobody else ends it."""
MEMORY = 64 << 20
"""What may be taken where memory has a limit, for the trial; it takes twice as much."""


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


def read(path: str) -> None:
    os.close(os.open(path, os.O_RDONLY))


def connect(family: int, kind: int, address: str | tuple[str, int]) -> None:
    with socket.socket(family, kind) as client:
        client.settimeout(2)
        client.connect(address)
        client.send(b"x")


def processes_are_limited() -> bool:
    """Whether a limit on processes lets a few of ours run, and not many."""
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
    """Whether a child that takes too much is ended for it."""
    child = os.fork()
    if child == 0:
        taken = bytearray(2 * MEMORY)
        os._exit(len(taken) == 0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def leave_behind(path: str) -> None:
    """A process that has left its group and session, and holds a lock for as long as it runs."""
    ready, tell = os.pipe()
    if os.fork() == 0:
        os.setsid()
        file = os.open(path, os.O_WRONLY | os.O_CREAT)
        fcntl.flock(file, fcntl.LOCK_EX)
        os.write(tell, b"x")
        for stream in (0, 1, 2):
            os.close(stream)
        signal.alarm(LASTS)
        signal.pause()
        os._exit(0)
    os.read(ready, 1)


def main(words: list[str]) -> None:
    inside, outside, home, secret, tcp, udp, path, counting = words
    write(f"{inside}/new")
    kept = (
        refused(lambda: write_and_remove(f"{outside}/new")),
        refused(lambda: write_and_remove(f"{home}/.handrail-trial-{os.getpid()}")),
        refused(lambda: os.truncate(secret, 0)),
    )
    given = {
        "files": all(kept),
        "git": refused(lambda: write(f"{inside}/.git/config")),
        "secrets": refused(lambda: read(secret)),
        "sockets": refused(lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, path)),
    }
    # Whether these arrive, the one who listens knows.
    refused(lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(tcp))))
    refused(lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", int(udp))))
    given["memory"] = memory_is_limited()
    if counting == "self":
        _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
        resource.setrlimit(resource.RLIMIT_NPROC, (LIMIT, hard))
    given["processes"] = processes_are_limited()
    leave_behind(f"{inside}/left")
    sys.stdout.write(" ".join(["tried", *(word for word, yes in given.items() if yes)]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
