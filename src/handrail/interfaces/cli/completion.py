"""Completion of /commands at the start of a message, and of @paths anywhere in it."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

MENTION = re.compile(r"(?:^|(?<=\s))@(\S*)$")
SLASH = re.compile(r"^/([a-z]*)$")
ENTRIES_LOOKED_AT = 2000
ENTRIES_SHOWN = 50
LEFT_OUT = {".git", "__pycache__", "node_modules", ".venv"}


class MessageCompleter(Completer):
    def __init__(self, workspace: Path, commands: Mapping[str, str]) -> None:
        self._workspace = workspace
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if slash := SLASH.match(before):
            for name, meaning in self._commands.items():
                if name.startswith(slash[1]):
                    yield Completion(name, -len(slash[1]), f"/{name}", display_meta=meaning)
        elif mention := MENTION.search(before):
            for path in paths(self._workspace, mention[1]):
                yield Completion(path, -len(mention[1]))


def paths(workspace: Path, typed: str) -> Iterator[str]:
    """What the one folder that is being typed has under this name; never a walk over the whole workspace."""
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
