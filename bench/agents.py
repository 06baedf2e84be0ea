"""What the bench needs to know of an agent: how it is set up, started, and told to read, edit and answer."""

import os
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from bench.wire import Said

CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "handrail-bench"
"""Peers, generated repositories and the homes of runs. Some peers refuse a home below the temp folder."""
MODEL = "test-model"
EDITED, BEFORE, AFTER = "a.py", "x = 1", "x = 2"
TASK = "Change x to 2."
"""It names no file: aider would add it at once, and have nothing to ask for."""


class Bed(NamedTuple):
    """Where an agent runs: a home of its own, a repository, and a server."""

    home: Path
    workspace: Path
    url: str

    @property
    def file(self) -> str:
        return str(self.workspace / EDITED)


class Calls(NamedTuple):
    """What a model says that writes files, then runs commands."""

    writes: list[Said]
    commands: list[Said]


CALLS, STEADY = 7, 2
"""Of each kind, and from which on they count. The first is told apart: it loads what the others need."""


def new_file(number: int) -> str:
    return f"new_{number}.txt"


def touch(number: int) -> str:
    """A command that changes something, and never the same twice."""
    return f"touch made_{number}"


class Agent(ABC):
    name: ClassVar[str]
    tells_version: ClassVar[bool] = True

    @property
    @abstractmethod
    def program(self) -> Path:
        """What is started; where it is missing, the agent is not installed."""

    @abstractmethod
    def prepare(self, bed: Bed) -> dict[str, str]:
        """Write its settings into the home: the fake server, no telemetry, no updates. Returns variables."""

    @abstractmethod
    def words(self, bed: Bed, task: str) -> list[str]:
        """The arguments that do a task without a terminal and without asking."""

    def chat_words(self, bed: Bed, task: str) -> list[str] | None:
        """The same with the fewest tools that it can be told to have; None where it has no such way."""
        return None

    @abstractmethod
    def moves(self, bed: Bed) -> list[Said]:
        """What a model says that reads the file, edits it and answers, in this agent's own tools."""

    def call_words(self, bed: Bed, task: str) -> list[str]:
        """The arguments with which it may also run `touch`."""
        return self.words(bed, task)

    def call_moves(self, bed: Bed) -> "Calls | None":
        """Calls that write new files and run commands, in this agent's own tools; None: not measured."""
        return None

    def is_work(self, request: dict[str, Any]) -> bool:
        """Whether a request is a step of the task, and not a title or the like."""
        return bool(request.get("tools"))

    @property
    def installed(self) -> bool:
        return self.program.exists()


class Handrail(Agent):
    name = "handrail"

    @property
    def program(self) -> Path:
        return Path(sys.executable).with_name("handrail")

    def prepare(self, bed: Bed) -> dict[str, str]:
        home = bed.home / "handrail"
        home.mkdir()
        # What a user says of a server need not be asked of it; peers are told the same in their settings.
        (home / "config.toml").write_text(
            f'[connections.fake]\nbase_url = "{bed.url}"\ncontext_window = 32768\n'
            "native_tools = true\nimages = false\n"
        )
        return {"HANDRAIL_HOME": str(home)}

    def words(self, bed: Bed, task: str) -> list[str]:
        return ["run", task, "--mode", "edit", "--route", "agent", "--model", f"fake/{MODEL}"]

    def chat_words(self, bed: Bed, task: str) -> list[str]:
        return ["run", task, "--route", "chat", "--model", f"fake/{MODEL}"]

    def call_words(self, bed: Bed, task: str) -> list[str]:
        route = ["--route", "agent", "--model", f"fake/{MODEL}"]
        return ["run", task, "--mode", "auto", "--allow", "touch", *route]

    def call_moves(self, bed: Bed) -> Calls:
        writes = [{"path": new_file(number), "text": "new\n"} for number in range(CALLS)]
        return Calls(
            [Said(tool="write", arguments=each) for each in writes],
            [Said(tool="run", arguments={"command": touch(number)}) for number in range(CALLS)],
        )

    def moves(self, bed: Bed) -> list[Said]:
        edit = {"path": EDITED, "edits": [{"search": BEFORE, "replace": AFTER}]}
        return [
            Said(tool="read", arguments={"path": EDITED}),
            Said(tool="edit", arguments=edit),
            Said("Done."),
        ]
