"""Lock and notice files through which the embedded server and its clients find each other.

server.lock    held by the child for as long as it lives
clients.lock   held, shared, by every process that uses the child
server.json    where the child answers, once it does
server.log     what the child and its library say, bounded in size
"""

import os
from pathlib import Path

from msgspec import DecodeError
from msgspec.json import decode

from handrail.config.files import is_locked, write_atomically
from handrail.protocol.values import Value, to_json

EXIT_ANOTHER_RUNS = 3
LOAD_SECONDS = 180


class RunningServer(Value):
    pid: int
    url: str
    key: str
    """New at each start, and readable only by this user."""
    context_window: int
    threads: int
    memory_limit: int
    """In bytes; 0 if memory could not be limited."""


class ServerFiles:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server_lock = folder / "server.lock"
        self.clients_lock = folder / "clients.lock"
        self.server = folder / "server.json"
        self.log = folder / "server.log"

    def is_running(self) -> bool:
        """Whether a server exists, answering or still loading."""
        return is_locked(self.server_lock, alone=True)

    def running(self) -> RunningServer | None:
        """The server that answers; None while there is none."""
        if not self.is_running():
            return None
        try:
            return decode(self.server.read_bytes(), type=RunningServer)
        except (OSError, DecodeError):
            return None

    def publish(self, running: RunningServer) -> None:
        write_atomically(self.server, to_json(running).encode())

    def log_tail(self) -> str:
        """The last line of the log that reports an error; empty without one."""
        try:
            with self.log.open("rb") as content:
                content.seek(-min(4096, os.fstat(content.fileno()).st_size), os.SEEK_END)
                lines = content.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        errors = [line for line in lines if " E " in line or "rror" in line]
        return (errors or lines or [""])[-1].strip()[:200]
