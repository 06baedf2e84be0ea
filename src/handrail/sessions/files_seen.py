"""The registry: which version of each file the model has been shown, a fold of the session's events."""

from pydantic import BaseModel

from handrail.protocol.events import ChangeAbandoned, ChangeApplied, ChangePrepared, Event
from handrail.protocol.values import FileSeen

REMEMBERED_FILES = 2_000
"""The longest unseen are forgotten first: editing one again then only needs another read."""


class SeenFile(BaseModel):
    sha256: str
    turn: int
    whole: bool


class FilesSeen(BaseModel):
    files: dict[str, SeenFile] = {}
    prepared: dict[str, ChangePrepared] = {}
    """Change sets that were begun and of which no outcome is known yet."""
    changed: dict[str, str] = {}
    """{path: hash after the last change in this session, empty where it was deleted}, last changed last"""

    def saw(self, files: tuple[FileSeen, ...], turn: int) -> None:
        for file in files:
            before = self.files.pop(file.path, None)
            whole = file.whole or bool(before and before.whole and before.sha256 == file.sha256)
            self.files[file.path] = SeenFile(sha256=file.sha256, turn=turn, whole=whole)
        self._forget()

    def apply(self, event: Event, turn: int) -> None:
        match event:
            case ChangePrepared():
                self.prepared[event.change_id] = event
            case ChangeAbandoned():
                self.prepared.pop(event.change_id, None)
            case ChangeApplied():
                self._changed(self.prepared.pop(event.change_id, None), turn)

    def _changed(self, prepared: ChangePrepared | None, turn: int) -> None:
        for file in prepared.files if prepared else ():
            self.changed.pop(file.path, None)
            self.changed[file.path] = "" if file.destination else file.new_sha256
            if file.destination:
                self.changed[file.destination] = file.new_sha256
        # What anybody else changes, the user by a rewind included, the model has not been shown.
        for file in prepared.files if prepared and prepared.by == "agent" else ():
            before = self.files.pop(file.path, None)
            # Who changed a part of what they saw a part of has still not seen the rest.
            whole = file.op == "create" or bool(before and before.whole)
            if file.new_sha256:
                self.files[file.destination or file.path] = SeenFile(
                    sha256=file.new_sha256, turn=turn, whole=whole
                )
        self._forget()

    def _forget(self) -> None:
        while len(self.files) > REMEMBERED_FILES:
            del self.files[next(iter(self.files))]
        while len(self.changed) > REMEMBERED_FILES:
            del self.changed[next(iter(self.changed))]
