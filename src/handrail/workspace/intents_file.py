"""The workspace's intents; the file is read again only when it changed."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.protocol.errors import IntentsProblem, PathProblem
from handrail.protocol.intent import Intent
from handrail.protocol.values import Value
from handrail.workspace.files import NotText, Workspace, decode

if TYPE_CHECKING:
    from handrail.workspace.intents_document import IntentsDocument

FOLDER = ".orchestration"
INTENTS_FILE = f"{FOLDER}/active_intents.yaml"
IGNORE_NAME = ".intentignore"
IGNORE_FILES = (IGNORE_NAME, f"{FOLDER}/{IGNORE_NAME}")
INIT_HINT = "Run `handrail intents init` to make one."

SavedFiles = Mapping[str, bytes | None]
"""Files as they were before the commands that run now."""
Stamp = tuple[int, ...]
NO_FILE: Stamp = ()
UNKNOWN: Stamp = (0,)
RECENT_NS = 2_000_000_000  # a file written this recently may change again with the same times


class IntentList(Value):
    intents: tuple[Intent, ...] = ()
    ignored: frozenset[str] = frozenset()
    problem: str = ""  # why the file cannot be read; then there are no intents

    def find(self, intent_id: str) -> Intent | None:
        return next((each for each in self.intents if each.id == intent_id), None)

    @property
    def selectable(self) -> tuple[Intent, ...]:
        return tuple(each for each in self.intents if not each.done and each.id not in self.ignored)


class IntentFile:
    """One workspace's file; `required`: changes need an intent even if there is no file."""

    def __init__(self, workspace: Workspace, *, required: bool = False) -> None:
        self.workspace = workspace
        self._required = required
        self._stamps: tuple[Stamp, ...] = ()
        self._texts: tuple[str, ...] = ()
        self._read = IntentList()

    def now(self, saved: SavedFiles | None = None) -> IntentList | None:
        """The intents; None where there is no file and none is required.

        `saved`: not those on disk, which a running command can write.
        """
        if saved is not None:
            return self._saved(saved)
        if not may_exist(self.workspace.root / INTENTS_FILE):
            return self._missing
        stamps = tuple(_stamp(self.workspace.root / path) for path in (INTENTS_FILE, *IGNORE_FILES))
        if stamps != self._stamps or UNKNOWN in stamps:
            self._reload()
            self._stamps = stamps
        return self._read

    def document(self) -> "IntentsDocument":
        """The text of the file with its intents; raises IntentsProblem."""
        return self._document(_read_text(self.workspace, INTENTS_FILE))

    def _saved(self, saved: SavedFiles) -> IntentList | None:
        if INTENTS_FILE not in saved:
            return self._missing
        if saved[INTENTS_FILE] is None:
            return IntentList(problem=f"{INTENTS_FILE} could not be saved while a command runs.")
        try:
            texts = [decode(saved.get(path) or b"").text for path in (INTENTS_FILE, *IGNORE_FILES)]
            return self._list(*texts)
        except (IntentsProblem, NotText) as problem:
            return IntentList(problem=str(problem))

    @property
    def _missing(self) -> IntentList | None:
        return IntentList(problem=f"There is no {INTENTS_FILE}. {INIT_HINT}") if self._required else None

    def _list(self, text: str, *ignores: str) -> IntentList:
        lines = (line.partition("#")[0].strip() for each in ignores for line in each.splitlines())
        return IntentList(self._document(text).intents, frozenset(filter(None, lines)))

    def _reload(self) -> None:
        try:
            texts = tuple(_read_text(self.workspace, path) for path in (INTENTS_FILE, *IGNORE_FILES))
            if texts == self._texts:
                return
            self._texts = texts
            self._read = self._list(*texts)
        except IntentsProblem as problem:
            self._texts, self._read = (), IntentList(problem=str(problem))

    def _document(self, text: str) -> "IntentsDocument":
        from handrail.workspace.intents_document import parse_intents

        try:
            return parse_intents(text)
        except IntentsProblem as problem:
            joint = ", " if problem.line else ": "
            raise IntentsProblem(f"{INTENTS_FILE}{joint}{problem}", problem.line) from problem


def may_exist(path: Path) -> bool:
    """Whether there is such a file, or it cannot be known: an unreadable folder, or a link to itself."""
    try:
        os.lstat(path)
    except OSError as error:
        return not isinstance(error, FileNotFoundError | NotADirectoryError)
    return True


def _read_text(workspace: Workspace, path: str) -> str:
    """The text of a file, empty for an ignore file that does not exist. It must be in the workspace."""
    if path in IGNORE_FILES and not may_exist(workspace.root / path):
        return ""
    try:
        place = workspace.resolve(path)
        if not place.inside:
            raise IntentsProblem(f"{path} is a link out of the workspace. Put the file itself there.")
        return workspace.read(place).text
    except PathProblem as problem:
        named = str(problem) if path in str(problem) else f"{path} cannot be read: {problem}"
        raise IntentsProblem(named) from problem


def _stamp(path: Path) -> Stamp:
    """Changes when a file is written or replaced."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return NO_FILE
    except OSError:
        return UNKNOWN
    if abs(time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns)) < RECENT_NS:
        return UNKNOWN
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
