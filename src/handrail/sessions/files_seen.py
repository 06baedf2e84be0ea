"""The registry: which version of each file the model has been shown, and what was done to files.

Both are folds of the session's events. What is older than they keep is in the log.
"""

from copy import copy
from typing import Literal

from handrail.protocol.events import ChangeAbandoned, ChangeApplied, ChangePrepared, Event
from handrail.protocol.values import FileChange, FileSeen
from handrail.sessions.fold import Fold

REMEMBERED_FILES = 2_000
"""The longest unseen are forgotten first: editing one again then only needs another read."""
REMEMBERED_OPERATIONS = 100
LANGUAGES = {
    ending: name
    for name, endings in (
        *(("Python", "py pyi"), ("JavaScript", "js mjs cjs jsx"), ("TypeScript", "ts tsx"), ("Go", "go")),
        *(("Rust", "rs"), ("C", "c h"), ("C++", "cc cpp hpp"), ("Java", "java"), ("Kotlin", "kt")),
        *(("C#", "cs"), ("Ruby", "rb"), ("PHP", "php"), ("Swift", "swift"), ("Scala", "scala")),
        *(("Lua", "lua"), ("Shell", "sh"), ("SQL", "sql"), ("HTML", "html"), ("CSS", "css")),
        *(("Markdown", "md"), ("JSON", "json"), ("TOML", "toml"), ("YAML", "yaml yml")),
    )
    for ending in endings.split()
}
"""By the ending of a file's name."""

By = Literal["agent", "user", "rollback", "command"]
"""`user` is also any other program: whoever changed a file without telling Handrail."""


class SeenFile(Fold):
    sha256: str
    """The version that the model was shown last, or made itself."""
    turn: int
    """When that was."""
    whole: bool
    how: Literal["user", "auto", "agent"] = "agent"
    size: int | None = None
    """Bytes, where known."""
    language: str = ""
    current: str = ""
    """What the file holds as far as events tell: not what the model was shown where others changed it."""
    modified: int = 0
    """The turn of the last change that is known of; 0: none is."""
    modified_by: By | None = None


class Operation(Fold):
    """Something done to a file; the hashes are empty where there was or is none."""

    turn: int
    op: Literal["read", "create", "update", "delete", "move"]
    path: str
    before: str
    after: str
    by: By
    destination: str = ""


class FilesSeen(Fold):
    files: dict[str, SeenFile] = {}
    """Last seen last."""
    history: list[Operation] = []
    """The latest, oldest first."""
    prepared: dict[str, ChangePrepared] = {}
    """Change sets that were begun and of which no outcome is known yet."""
    changed: dict[str, str] = {}
    """{path: hash after the last change in this session, empty where it was deleted}, last changed last"""

    def saw(self, files: tuple[FileSeen, ...], turn: int) -> None:
        """Fold in versions that the model was shown; one that nobody told of somebody else has made."""
        for file in files:
            before = self.files.pop(file.path, None)
            modified, by = (before.modified, before.modified_by) if before else (0, None)
            if before and before.current != file.sha256:
                self._note(_by_others("update", file.path, before.current, file.sha256, turn))
                modified, by = turn, "user"
            if file.how != "auto":  # what code shows again, nobody has done anything for
                self._note(_read(file, turn))
            self.files[file.path] = SeenFile(
                sha256=file.sha256,
                turn=turn,
                whole=file.whole or bool(before and before.whole and before.sha256 == file.sha256),
                how=file.how,
                size=file.size,
                language=language_of(file.path),
                current=file.sha256,
                modified=modified,
                modified_by=by,
            )
        self._forget()

    def gone(self, paths: tuple[str, ...], turn: int) -> None:
        """Fold in that the model was told that somebody else has deleted files."""
        for path in paths:
            before = self.files.pop(path, None)
            if before and before.current:
                self._note(_by_others("delete", path, before.current, "", turn))

    def apply(self, event: Event, turn: int) -> None:
        match event:
            case ChangePrepared():
                self.prepared[event.change_id] = event
            case ChangeAbandoned():
                self.prepared.pop(event.change_id, None)
            case ChangeApplied():
                if prepared := self.prepared.pop(event.change_id, None):
                    for file in prepared.files:
                        self._changed(file, prepared.by, turn)
                    self._forget()

    def _changed(self, file: FileChange, by: By, turn: int) -> None:
        self._note(
            Operation(
                turn=turn,
                op=file.op,
                path=file.path,
                before=file.old_sha256,
                after=file.new_sha256,
                by=by,
                destination=file.destination,
            )
        )
        self.changed.pop(file.path, None)
        self.changed[file.path] = "" if file.destination else file.new_sha256
        if file.destination:
            self.changed[file.destination] = file.new_sha256
        if by == "agent":
            self._made(file, turn)
        elif known := self.files.get(file.path):
            # What anybody else changes, the user by a rewind included, the model has not been shown.
            told = copy(known)
            told.current, told.modified, told.modified_by = self.changed[file.path], turn, by
            self.files[file.path] = told

    def _made(self, file: FileChange, turn: int) -> None:
        """What the model has made itself it knows."""
        before = self.files.pop(file.path, None)
        path = file.destination or file.path
        if not file.new_sha256:
            return
        self.files[path] = SeenFile(
            sha256=file.new_sha256,
            turn=turn,
            # Who changed a part of what they saw a part of has still not seen the rest.
            whole=file.op == "create" or bool(before and before.whole),
            how=before.how if before else "agent",
            size=file.size,
            language=language_of(path),
            current=file.new_sha256,
            modified=turn,
            modified_by="agent",
        )

    def _note(self, done: Operation) -> None:
        if done not in self.history[-REPEATED:]:
            self.history.append(done)

    def _forget(self) -> None:
        while len(self.files) > REMEMBERED_FILES:
            del self.files[next(iter(self.files))]
        while len(self.changed) > REMEMBERED_FILES:
            del self.changed[next(iter(self.changed))]
        del self.history[:-REMEMBERED_OPERATIONS]


REPEATED = 10
"""Reading on in a file is one operation, as long as little else happens meanwhile."""


def _read(file: FileSeen, turn: int) -> Operation:
    by: By = "user" if file.how == "user" else "agent"
    return Operation(turn=turn, op="read", path=file.path, before=file.sha256, after=file.sha256, by=by)


def _by_others(op: Literal["update", "delete"], path: str, before: str, after: str, turn: int) -> Operation:
    return Operation(turn=turn, op=op, path=path, before=before, after=after, by="user")


def language_of(path: str) -> str:
    """What a file is written in, by its name; empty where that does not tell."""
    return LANGUAGES.get(path.rpartition(".")[2].lower(), "")
