"""What a model wants a file to become, checked against the version it was shown."""

import hashlib
import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from handrail.changes.diff import Diff, diff
from handrail.changes.matching import Edit, replaced
from handrail.protocol.errors import PathProblem
from handrail.protocol.values import SHOWN_DIGITS, FileChange
from handrail.sessions.files_seen import FilesSeen
from handrail.workspace.files import WHOLE_LIMIT, TextFile, Workspace
from handrail.workspace.places import Place
from handrail.workspace.text import encode


class Replace(NamedTuple):
    """Change parts of a file that exists."""

    path: str | Place
    edits: tuple[Edit, ...]
    base_hash: str = ""


class Whole(NamedTuple):
    """Write a file from its first to its last line: a new one, or one whose whole text was seen."""

    path: str | Place
    text: str
    base_hash: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One file's old and new content. Nothing has happened yet."""

    path: str
    op: Literal["create", "update"]
    old: bytes
    new: bytes
    diff: Diff

    @property
    def change(self) -> FileChange:
        return FileChange(
            path=self.path,
            op=self.op,
            old_sha256=hashlib.sha256(self.old).hexdigest() if self.op == "update" else "",
            new_sha256=hashlib.sha256(self.new).hexdigest(),
            added=self.diff.added,
            removed=self.diff.removed,
        )


def propose(workspace: Workspace, seen: FilesSeen, form: Replace | Whole) -> Proposal:
    """The change that a form stands for; raises PathProblem with what to do where it is refused."""
    place = _writable(workspace, form.path)
    text = _new_text(form)
    if text is not None and not workspace.exists(place):
        return _creation(place, text, form.base_hash)
    file = workspace.read(place)
    check_hash(file, seen, form)
    if isinstance(form, Replace):
        new = replaced(file.path, file.text, file.ending, form.edits)
    else:
        new = _in_the_manner_of(file, form.text)
    return _update(file, new)


def check_hash(file: TextFile, seen: FilesSeen, form: Replace | Whole) -> None:
    """Refuse unless the model was shown this very content, and all of it where it rewrites all."""
    known = seen.files.get(file.path)
    given = form.base_hash.strip().lower()
    if given and not re.fullmatch(rf"[0-9a-f]{{{SHOWN_DIGITS},64}}", given):
        raise PathProblem(
            f"base_hash must be the {SHOWN_DIGITS} digits that read shows at the head of {file.path}."
            " Read the file, then repeat the change.",
            "no_hash",
            file.path,
        )
    if known is None:
        raise PathProblem(
            f"{file.path} exists, and the model has not been shown it. Read it, then repeat the change.",
            "no_hash",
            file.path,
        )
    # An older version that was shown is as stale as one that was never shown.
    shown = known.sha256 if known.sha256.startswith(given) else given
    if file.sha256 != known.sha256 or shown != known.sha256:
        raise PathProblem(
            f"{file.path} is not what the model was shown: that was {shown[:SHOWN_DIGITS]}, the file is now"
            f" {file.sha256[:SHOWN_DIGITS]}. Read it again, then repeat the change on what it says now.",
            "stale_file",
            file.path,
        )
    if isinstance(form, Whole) and not known.whole:
        raise PathProblem(
            f"The model has been shown only a part of {file.path}, so it cannot rewrite all of it."
            " Edit the part that was shown, or read all of the file first.",
            "no_hash",
            file.path,
        )


def _writable(workspace: Workspace, path: str | Place) -> Place:
    place = workspace.resolve(path)
    if not place.inside:
        raise PathProblem(f"{place.path} is outside the workspace.", "outside_workspace", place.path)
    if workspace.root / place.path != place.absolute:
        raise PathProblem(f"The name of {place.path} is not UTF-8: rename it first.", "not_text", place.path)
    return place


def _new_text(form: Replace | Whole) -> str | None:
    """The text a new file would have; an edit whose only search is empty is such a file too."""
    if isinstance(form, Whole):
        return form.text
    only = form.edits[0] if len(form.edits) == 1 else None
    return only.replace if only and not only.search else None


def _creation(place: Place, text: str, base_hash: str) -> Proposal:
    if base_hash:
        raise PathProblem(
            f"{place.path} does not exist any more. Leave base_hash out to create it anew.",
            "file_missing",
            place.path,
        )
    return Proposal(
        place.path, "create", b"", _bytes(place.path, text, bom=False), diff(place.path, None, text)
    )


def _update(file: TextFile, new: str) -> Proposal:
    if new == file.text:
        raise PathProblem(f"{file.path} already says exactly this.", "no_change", file.path)
    if file.text.strip() and not new.strip():
        raise PathProblem(
            f"This would leave {file.path} empty. Say what it is to contain; only the user deletes files.",
            "invalid_arguments",
            file.path,
        )
    data = _bytes(file.path, new, bom=file.bom)
    return Proposal(file.path, "update", file.data, data, diff(file.path, file.text, new))


def _in_the_manner_of(file: TextFile, text: str) -> str:
    """A whole new text, with the line endings and the final line break of the old one."""
    if file.ending != "mixed":
        text = text.replace("\r\n", "\n")
    if file.text.endswith("\n") and text and not text.endswith("\n"):
        text += "\n"
    return text.replace("\n", "\r\n") if file.ending == "\r\n" else text


def _bytes(path: str, text: str, *, bom: bool) -> bytes:
    try:
        data = encode(text, bom=bom)
    except UnicodeEncodeError as error:
        message = f"The new text of {path} has half of a surrogate pair at {error.start}: send plain Unicode."
        raise PathProblem(message, "invalid_arguments", path) from error
    if b"\0" in data:
        raise PathProblem(f"The new text of {path} has NUL characters.", "invalid_arguments", path)
    if len(data) > WHOLE_LIMIT:
        raise PathProblem(
            f"The new text of {path} has {len(data):,} bytes; files are written up to {WHOLE_LIMIT:,}.",
            "too_large",
            path,
        )
    return data
