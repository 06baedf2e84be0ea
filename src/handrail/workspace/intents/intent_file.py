"""The intents of a workspace as they are now: read again only when the file has changed."""

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.protocol.errors import IntentsProblem, PathProblem
from handrail.protocol.intent import Intent
from handrail.protocol.record import Record
from handrail.workspace.files import Workspace

if TYPE_CHECKING:
    from handrail.workspace.intents.document import IntentsDocument

FOLDER = ".orchestration"
FILE = f"{FOLDER}/active_intents.yaml"
IGNORE = ".intentignore"
IGNORES = (IGNORE, f"{FOLDER}/{IGNORE}")
INIT = "`handrail intents init` makes one."

Stamp = tuple[int, ...]
GONE: Stamp = ()
UNSURE: Stamp = (0,)
YOUNG = 2_000_000_000
"""Nanoseconds in which a second writing of a file may leave no trace in its times."""


class Intents(Record):
    """What the file of intents says."""

    intents: tuple[Intent, ...] = ()
    ignored: frozenset[str] = frozenset()
    """Ids for which nothing is done."""
    problem: str = ""
    """Why the file cannot be read; then it says nothing."""

    def find(self, intent_id: str) -> Intent | None:
        return next((each for each in self.intents if each.id == intent_id), None)

    @property
    def selectable(self) -> tuple[Intent, ...]:
        """Those that can be worked at."""
        return tuple(each for each in self.intents if not each.done and each.id not in self.ignored)


class IntentFile:
    """One workspace's file; `required` binds the workspace even where there is none."""

    def __init__(self, workspace: Workspace, *, required: bool = False) -> None:
        self.workspace = workspace
        self._required = required
        self._stamps: tuple[Stamp, ...] = ()
        self._texts: tuple[str, ...] = ()
        self._read = Intents()

    def now(self) -> Intents | None:
        """The intents; None where the workspace has none and needs none."""
        if not is_there(self.workspace.root / FILE):
            return Intents(problem=f"There is no {FILE}. {INIT}") if self._required else None
        stamps = tuple(_stamp(self.workspace.root / path) for path in (FILE, *IGNORES))
        if stamps != self._stamps or UNSURE in stamps:
            self._look()
            self._stamps = stamps
        return self._read

    def document(self) -> "IntentsDocument":
        """The text of the file with its intents; raises IntentsProblem."""
        return self._document(_text(self.workspace, FILE))

    def _look(self) -> None:
        try:
            texts = tuple(_text(self.workspace, path) for path in (FILE, *IGNORES))
            if texts == self._texts:
                return
            self._texts = texts
            text, *ignores = texts
            self._read = Intents(self._document(text).intents, frozenset(_ids(ignores)))
        except IntentsProblem as problem:
            self._texts, self._read = (), Intents(problem=str(problem))

    def _document(self, text: str) -> "IntentsDocument":
        from handrail.workspace.intents.document import read_intents

        try:
            return read_intents(text)
        except IntentsProblem as problem:
            joint = ", " if problem.line else ": "
            raise IntentsProblem(f"{FILE}{joint}{problem}", problem.line) from problem


def is_there(path: Path) -> bool:
    """Whether there is such a file, or it cannot be known: a folder that is closed, or a link to itself."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _ids(ignores: Iterable[str]) -> Iterator[str]:
    for text in ignores:
        for line in text.splitlines():
            if word := line.partition("#")[0].strip():
                yield word


def _text(workspace: Workspace, path: str) -> str:
    """A file of the workspace's own; empty where there is none. A link must not lead out of it."""
    if path in IGNORES and not is_there(workspace.root / path):
        return ""
    try:
        place = workspace.resolve(path)
        if not place.inside:
            raise IntentsProblem(f"{path} leads out of the workspace. Put the file itself there.")
        return workspace.read(place).text
    except PathProblem as problem:
        named = str(problem) if path in str(problem) else f"{path} cannot be read: {problem}"
        raise IntentsProblem(named) from problem


def _stamp(path: Path) -> Stamp:
    """What tells that a file was written, or replaced."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return GONE
    except OSError:
        return UNSURE
    if abs(time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns)) < YOUNG:
        return UNSURE
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
