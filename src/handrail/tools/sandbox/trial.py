"""The program that is run in a sandbox to see what it can still do; run by its path with `python -I -S`.

    trial.py INSIDE OUTSIDE HOME SECRET TCP_PORT UDP_PORT SOCKET PID_NAMESPACE

Prints `tried` and one word for each thing that was refused.
"""

import os
import resource
import signal
import socket
import sys
from collections.abc import Callable

FEW, MANY = 4, 20


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


def processes_are_counted_here() -> bool:
    """Whether a limit on processes lets a few of ours run, and not many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (FEW + 8, hard))
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


def main(words: list[str]) -> None:
    inside, outside, home, secret, tcp, udp, path, namespace = words
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
        "children": os.readlink("/proc/self/ns/pid") != namespace,
    }
    # Whether these arrive, the one who listens knows.
    refused(lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(tcp))))
    refused(lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", int(udp))))
    given["processes"] = given["children"] and processes_are_counted_here()
    sys.stdout.write(" ".join(["tried", *(word for word, yes in given.items() if yes)]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
