"""Completion of /commands and @agents at the start of a message, and of @paths anywhere in it."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

MENTION = re.compile(r"(?:^|(?<=\s))@(\"[^\"\n]*|[^\s\"]*)$")
BARE = re.compile(r"[\w./~+-]*")
"""What a mention can be without quotes."""
SLASH = re.compile(r"^/([a-z]*)$")
ENTRIES_LOOKED_AT = 2000
ENTRIES_WALKED = 5000
ENTRIES_SHOWN = 50
LEFT_OUT = {".git", "__pycache__", "node_modules", ".venv"}


class MessageCompleter(Completer):
    def __init__(
        self, workspace: Path, commands: Mapping[str, str], agents: Callable[[], Iterable[str]] = tuple
    ) -> None:
        """`agents` gives the names of those there are."""
        self._workspace = workspace
        self._commands = commands
        self._agents = agents

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if slash := SLASH.match(before):
            for name, meaning in self._commands.items():
                if name.startswith(slash[1]):
                    yield Completion(name, -len(slash[1]), f"/{name}", display_meta=meaning)
        elif mention := MENTION.search(before):
            typed = mention[1].removeprefix('"')
            if mention.start() == 0:
                named = [name for name in dict.fromkeys(self._agents()) if name.startswith(typed)]
                yield from (Completion(name, -len(typed), f"@{name}", display_meta="agent") for name in named)
            found = list(paths(self._workspace, typed)) or deeper(self._workspace, typed)
            for path in found:
                yield Completion(quoted(path), -len(mention[1]), display=path)


def quoted(path: str) -> str:
    """The path as a mention of it is written; a folder's quotes stay open, for what follows."""
    if BARE.fullmatch(path):
        return path
    return f'"{path}' if path.endswith("/") else f'"{path}"'


def paths(workspace: Path, typed: str) -> Iterator[str]:
    """What the one folder that is being typed has under this name."""
    folder, _, start = typed.rpartition("/")
    parent = (workspace / folder).resolve()
    if not parent.is_relative_to(workspace):
        return
    found = []
    try:
        with os.scandir(parent) as entries:
            for _, entry in zip(range(ENTRIES_LOOKED_AT), entries, strict=False):
                hidden = entry.name.startswith(".") and not start.startswith(".")
                if entry.name.startswith(start) and not hidden and entry.name not in LEFT_OUT:
                    found.append(entry.name + "/" * entry.is_dir())
    except OSError:
        return
    for name in sorted(found)[:ENTRIES_SHOWN]:
        yield f"{folder}/{name}" if folder else name


def deeper(workspace: Path, typed: str) -> list[str]:
    """Files anywhere below whose name begins so, nearest first; a large workspace is not walked whole."""
    start = typed.lower()
    found: list[str] = []
    folders, left = [""], ENTRIES_WALKED
    while start and "/" not in start and folders and left > 0 and len(found) < ENTRIES_SHOWN:
        folder = folders.pop(0)
        try:
            with os.scandir(workspace / folder) as entries:
                for entry in entries:
                    left -= 1
                    if entry.name in LEFT_OUT or entry.name.startswith("."):
                        continue
                    path = f"{folder}{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{path}/")
                    elif entry.name.lower().startswith(start):
                        found.append(path)
                    if left <= 0:
                        break
        except OSError:
            continue
    return found[:ENTRIES_SHOWN]
