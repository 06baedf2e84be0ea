"""The user's own slash commands: a Markdown file each, with optional front matter.

    ---
    description: Review a file
    arguments: FILE [FOCUS]
    ---
    Review $1. Look above all at $ARGUMENTS.

The user's are in `commands/` beside the settings file, a workspace's in `.handrail/commands/`. A workspace's
command can be used once the user has trusted its exact text.
"""

import hashlib
import os
import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from handrail.config.places import WORKSPACE_SETTINGS, Places
from handrail.config.toml_file import read_bytes
from handrail.config.trust import trusted_commands
from handrail.protocol.errors import ConfigProblem, UsageProblem

FOLDER = "commands"
SUFFIX = ".md"
NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
KEYS = ("description", "arguments")
MAX_NAME, MAX_BYTES, MAX_COMMANDS, MAX_ENTRIES = 40, 32_000, 200, 5_000
FRONT_MATTER = re.compile(
    r"---[ \t]*\n(?P<head>.*?)^---[ \t]*(?:\n|\Z)(?P<body>.*)", re.DOTALL | re.MULTILINE
)
PLACEHOLDER = re.compile(
    r"\\(?P<literal>\$(?:ARGUMENTS\b|[1-9]))|\$(?P<all>ARGUMENTS\b)|\$(?P<one>[1-9])(?!\d)"
)
OPTIONAL = re.compile(r"\[[^\[\]]*\]")

Trust = Literal["own", "trusted", "untrusted", "changed"]


class UserCommand(NamedTuple):
    name: str
    path: Path
    description: str
    arguments: str
    """How to call it: `FILE [FOCUS]`. What stands in brackets may be left out."""
    body: str
    sha256: str
    trust: Trust

    @property
    def usable(self) -> bool:
        return self.trust in ("own", "trusted")

    def message(self, argument: str) -> str:
        """The message that the command sends; raises UsageProblem where an argument is missing."""
        words = _split(argument)
        required = self.arguments
        while OPTIONAL.search(required):  # brackets can stand in brackets
            required = OPTIONAL.sub(" ", required)
        if len(words) < len(required.split()):
            raise UsageProblem(f"Say /{self.name} {self.arguments}.")

        def value(found: re.Match[str]) -> str:
            if found["literal"]:
                return found["literal"]
            number = int(found["one"] or 0)
            return argument if found["all"] else words[number - 1] if number <= len(words) else ""

        text = PLACEHOLDER.sub(value, self.body)
        takes = any(not found["literal"] for found in PLACEHOLDER.finditer(self.body))
        return f"{text}\n\n{argument}" if argument and not takes else text


class WrongCommand(NamedTuple):
    name: str
    problem: str


class UserCommands:
    """The commands of the user and of a workspace, read when they are asked for."""

    def __init__(
        self, places: Places, workspace: Path, reserved: Collection[str] = (), *, trusted: bool = False
    ) -> None:
        """`reserved`: names of Handrail's own commands; `trusted`: use the workspace's in this process."""
        self._folders = {
            "yours": places.settings.parent / FOLDER,
            "workspace": workspace / WORKSPACE_SETTINGS.parent / FOLDER,
        }
        self._places = places
        self._workspace = workspace
        self._reserved = reserved
        self._trusted = trusted

    def all(self) -> tuple[list[UserCommand], list[WrongCommand]]:
        """The commands by name, and what cannot be used as one. The user's hides the workspace's."""
        found, wrong = dict[str, UserCommand](), list[WrongCommand]()
        before = trusted_commands(self._places, self._workspace)
        for where, folder in self._folders.items():
            for name in _names(folder):
                try:
                    command = self._read(name, folder, where, before)
                except ConfigProblem as problem:
                    wrong.append(WrongCommand(name, str(problem)))
                else:
                    found.setdefault(name, command)
        return [found[name] for name in sorted(found)], wrong

    def find(self, name: str) -> UserCommand | None:
        """The command of this name; raises where its file is wrong or not trusted."""
        before = trusted_commands(self._places, self._workspace)
        for where, folder in self._folders.items():
            if NAME.fullmatch(name) and os.path.lexists(folder / f"{name}{SUFFIX}"):
                command = self._read(name, folder, where, before)
                if not command.usable:
                    changed = (
                        "has changed since you trusted it" if command.trust == "changed" else "is not trusted"
                    )
                    raise UsageProblem(
                        f"The command /{name} came with this workspace and {changed}. "
                        "`handrail trust` shows it, and lets you trust it; so do the settings of the page."
                    )
                return command
        return None

    def untrusted(self) -> list[UserCommand]:
        return [command for command in self.all()[0] if not command.usable]

    def _read(self, name: str, folder: Path, where: str, before: Mapping[str, str]) -> UserCommand:
        path = folder / f"{name}{SUFFIX}"
        if name in self._reserved:
            raise ConfigProblem(f"{path}: /{name} is a command of Handrail's own. Rename the file.")
        if not NAME.fullmatch(name) or len(name) > MAX_NAME:
            rule = f"small letters, digits and single dashes, a letter first, at most {MAX_NAME}"
            raise ConfigProblem(f"{path}: {name[:60]!r} cannot be a command's name: {rule}. Rename the file.")
        if where == "workspace" and not self._is_inside(path):
            raise ConfigProblem(f"{path} leads out of the workspace. Put the file itself there.")
        data = read_bytes(path)
        if data is None:
            raise ConfigProblem(f"{path} does not exist any more.")
        if len(data) > MAX_BYTES:
            raise ConfigProblem(f"{path} has {len(data):,} bytes, more than {MAX_BYTES:,}. Make it shorter.")
        sha256 = hashlib.sha256(data).hexdigest()
        trust: Trust = "own"
        if where == "workspace":
            known = before.get(name)
            is_trusted = self._trusted or known == sha256
            trust = "trusted" if is_trusted else "changed" if known else "untrusted"
        return _parse(name, path, data, sha256, trust)

    def _is_inside(self, path: Path) -> bool:
        root = os.path.realpath(self._workspace)
        return os.path.realpath(path) == os.path.join(root, WORKSPACE_SETTINGS.parent, FOLDER, path.name)


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, MAX_ENTRIES))
    except OSError:
        return []
    return [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)][:MAX_COMMANDS]


def _parse(name: str, path: Path, data: bytes, sha256: str, trust: Trust) -> UserCommand:
    try:
        text = data.decode().removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ConfigProblem(f"{path} is not valid UTF-8; save the file as UTF-8.") from error
    found = FRONT_MATTER.match(text)
    if text.startswith("---\n") and found is None:
        raise ConfigProblem(f"{path}:1: the front matter does not end. Write `---` below it.")
    head = dict(_front_matter(path, found["head"])) if found else {}
    body = (found["body"] if found else text).strip()
    if not body:
        raise ConfigProblem(f"{path} is empty. Write the message that the command sends.")
    first = next(line.strip("# ") for line in body.splitlines() if line.strip())
    return UserCommand(
        name, path, head.get("description") or first, head.get("arguments", ""), body, sha256, trust
    )


def _front_matter(path: Path, head: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(head.splitlines(), start=2):
        key, colon, value = line.partition(":")
        if not line.strip() or line.startswith("#"):
            continue
        if not colon or key.strip() not in KEYS:
            known = " and ".join(f"`{each}:`" for each in KEYS)
            raise ConfigProblem(f"{path}:{number}: unknown key {key.strip()[:60]!r}; known are {known}.")
        yield key.strip(), value.strip().strip("\"'")


def _split(argument: str) -> list[str]:
    """The words of an argument; quotes keep blanks together, where they are closed."""
    try:
        return shlex.split(argument)
    except ValueError:
        return argument.split()
