"""What a child and its clients know of each other: files in one folder, and locks on them.

server.lock    held by the child for as long as it lives
clients.lock   held, shared, by every process that uses the child
server.json    where the child answers, once it does
server.log     what the child and its library say, bounded in size
"""

import os
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from handrail.models.embedded.locks import is_locked
from handrail.protocol.values import Value

ANOTHER_RUNS = 3
"""The exit status of a child that finds another one."""
LOAD_SECONDS = 180
"""Within which a child answers or is given up."""


class Running(Value):
    """Where a child answers."""

    pid: int
    url: str
    key: str
    """Chosen anew at each start, and readable by this user alone: others on the machine get no answer."""
    context_window: int
    threads: int
    memory_limit: int
    """Bytes that it may have of its own; 0 where the system would not limit it."""


class Notices(NamedTuple):
    """The files of one child."""

    folder: Path

    @property
    def server_lock(self) -> Path:
        return self.folder / "server.lock"

    @property
    def clients_lock(self) -> Path:
        return self.folder / "clients.lock"

    @property
    def server(self) -> Path:
        return self.folder / "server.json"

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    def lives(self) -> bool:
        """Whether there is a child, answering or still loading."""
        return is_locked(self.server_lock)

    def running(self) -> Running | None:
        """Where the child answers; None while there is none that does."""
        if not self.lives():
            return None
        try:
            return Running.model_validate_json(self.server.read_bytes())
        except (OSError, ValidationError):
            return None

    def publish(self, running: Running) -> None:
        """Tell where the child answers."""
        draft = self.server.with_suffix(".draft")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as content:
            content.write(running.model_dump_json())
        draft.replace(self.server)

    def last_words(self) -> str:
        """The last line of the log that tells of a failure; empty without one."""
        try:
            with self.log.open("rb") as content:
                content.seek(-min(4096, os.fstat(content.fileno()).st_size), os.SEEK_END)
                lines = content.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        telling = [line for line in lines if " E " in line or "rror" in line]
        return (telling or lines or [""])[-1].strip()[:200]
