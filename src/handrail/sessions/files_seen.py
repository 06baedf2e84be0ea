"""Which version of each file the model has seen, and what was done to files.

Both are folds of the session's events and keep only the latest entries.
"""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from handrail.protocol.events import ChangeAbandoned, ChangeApplied, ChangePrepared, Event
from handrail.protocol.values import FileChange, FileSeen

REMEMBERED_FILES = 2_000
"""The least recently seen are dropped first; editing one then needs another read."""
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

ChangedBy = Literal["agent", "user", "rollback", "command"]
"""`user` includes any other program that changed a file outside Handrail."""
REPEATED = 10
"""A repeated operation is noted once if it is among so many latest ones."""


class SeenFile(Struct):
    sha256: str
    """The version that the model last saw, or wrote itself."""
    turn: int
    whole: bool
    how: Literal["user", "auto", "agent"] = "agent"
    size: int | None = None
    language: str = ""
    current: str = ""
    """The file's content according to the events; not what the model saw, if others changed it since."""
    modified: int = 0
    """The turn of the last known change; 0: none."""
    modified_by: ChangedBy | None = None


class Operation(Struct):
    """Something done to a file; a hash is empty where there is no file."""

    turn: int
    op: Literal["read", "create", "update", "delete", "move"]
    path: str
    before: str
    after: str
    by: ChangedBy
    destination: str = ""


class FilesSeen(Struct):
    files: dict[str, SeenFile] = {}
    """Last seen last."""
    history: list[Operation] = []
    """Only the latest, oldest first."""
    prepared: dict[str, ChangePrepared] = {}
    """Change sets that were started and have no outcome yet."""
    changed: dict[str, str] = {}
    """{path: hash after its last change in this session, empty if deleted}, last changed last"""

    def record_seen(self, files: tuple[FileSeen, ...], turn: int) -> None:
        """Record versions that the model has seen; an unexpected version was made by somebody else."""
        for file in files:
            before = self.files.pop(file.path, None)
            modified, by = (before.modified, before.modified_by) if before else (0, None)
            if before and before.current != file.sha256:
                self._note(Operation(turn, "update", file.path, before.current, file.sha256, "user"))
                modified, by = turn, "user"
            if file.how != "auto":  # attached again by code: nobody read it
                reader: ChangedBy = "user" if file.how == "user" else "agent"
                self._note(Operation(turn, "read", file.path, file.sha256, file.sha256, reader))
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

    def record_deleted(self, paths: tuple[str, ...], turn: int) -> None:
        """Record that the model was told of files that somebody else deleted."""
        for path in paths:
            before = self.files.pop(path, None)
            if before and before.current:
                self._note(Operation(turn, "delete", path, before.current, "", "user"))

    def apply(self, event: Event, turn: int) -> None:
        match event:
            case ChangePrepared():
                self.prepared[event.change_id] = event
            case ChangeAbandoned():
                self.prepared.pop(event.change_id, None)
            case ChangeApplied():
                if prepared := self.prepared.pop(event.change_id, None):
                    for file in prepared.files:
                        self._changed(file, prepared.by, turn, made=not prepared.subagent)
                    self._forget()

    def _changed(self, file: FileChange, by: ChangedBy, turn: int, *, made: bool) -> None:
        """`made`: if an agent did it, it is the one whose context this is."""
        hashes = file.old_sha256, file.new_sha256
        if not file.ignored:
            self._note(Operation(turn, file.op, file.path, *hashes, by, file.destination))
        self.changed.pop(file.path, None)
        self.changed[file.path] = "" if file.destination else file.new_sha256
        if file.destination:
            self.changed[file.destination] = file.new_sha256
        if by == "agent" and made:
            self._made(file, turn)
        elif known := self.files.get(file.path):
            # The model has not seen what others change, the user by a rewind included.
            current = self.changed[file.path]
            self.files[file.path] = replace(known, current=current, modified=turn, modified_by=by)

    def _made(self, file: FileChange, turn: int) -> None:
        """Record a file that the model wrote: it knows the new content."""
        before = self.files.pop(file.path, None)
        path = file.destination or file.path
        if not file.new_sha256:
            return
        self.files[path] = SeenFile(
            sha256=file.new_sha256,
            turn=turn,
            # Changing a part of a file does not show the rest of it.
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


def language_of(path: str) -> str:
    """A file's language by its extension; empty if unknown."""
    return LANGUAGES.get(path.rpartition(".")[2].lower(), "")
