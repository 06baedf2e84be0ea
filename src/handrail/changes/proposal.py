"""Compute the file edits that forms describe, from the versions that were shown; writes nothing."""

import os
import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from msgspec import Struct

from handrail.changes.change_set import FileEdit, Op
from handrail.changes.diff import diff
from handrail.changes.forms.edit_forms import Delete, Form, Lines, Move, Patch, Replace, Whole
from handrail.changes.forms.patch import UnifiedDiff, apply_patch, check_deleted, patched_new_file, read_diff
from handrail.changes.forms.replace import EditedText, apply_edits, apply_line_edits
from handrail.changes.forms.text_checks import Loss, check_new_text
from handrail.changes.text_matching import only_ending, to_unix, with_endings_of
from handrail.protocol.errors import PathProblem
from handrail.protocol.values import HASH_DIGITS
from handrail.sessions.files_seen import FilesSeen
from handrail.workspace.files import MAX_FILE_BYTES, TextFile, Workspace, encode
from handrail.workspace.paths import ResolvedPath, without_case


class ShownVersions(NamedTuple):
    seen: FilesSeen | None
    """None: a person's proposal, in which each form names its base hash."""
    turn: int = 0
    """A file shown in this turn needs no hash in the form: code fills it in."""


def _check_hash(file: TextFile, shown: ShownVersions, form: Form) -> None:
    """Refuse unless the version that the form is based on is the file's, and was shown."""
    path, base_hash = file.path, form.base_hash.strip().lower()
    if base_hash and not re.fullmatch(rf"[0-9a-f]{{{HASH_DIGITS},64}}", base_hash):
        raise _no_hash(path, f"base_hash must be the {HASH_DIGITS} digits that read shows above {path}")
    if isinstance(form, Lines) and not base_hash and not all(edit.expected for edit in form.edits):
        raise _no_hash(path, "Line numbers need base_hash, or the text expected at each of them")
    if shown.seen is None:
        if not base_hash:
            raise _no_hash(path, f"{path} exists: base_hash must say which version you mean")
        if not file.sha256.startswith(base_hash):
            raise _stale_file(file, base_hash)
        return
    known = shown.seen.files.get(path)
    if known is None:
        raise _no_hash(path, f"{path} exists, and the model has not been shown it")
    if not base_hash and known.turn < shown.turn:
        raise _no_hash(path, f"{path} was not shown in this turn, and base_hash is missing")
    # An older version that was shown is as stale as one that was never shown.
    if not known.sha256.startswith(base_hash):
        raise _stale_file(file, base_hash)
    if file.sha256 != known.sha256:
        raise _stale_file(file, known.sha256)
    if isinstance(form, Whole) and not known.whole:
        why = f"The model has been shown only a part of {path}, so it cannot rewrite all of it."
        message = f"{why} Edit the part that was shown, or read the whole file first."
        raise PathProblem(message, "no_hash", path)


def _no_hash(path: str, why: str) -> PathProblem:
    return PathProblem(f"{why}. Read {path}, then repeat the change.", "no_hash", path)


def _stale_file(file: TextFile, base_hash: str) -> PathProblem:
    versions = f"that was {base_hash[:HASH_DIGITS]}, the file is now {file.sha256[:HASH_DIGITS]}"
    message = f"{file.path} is not the version that was shown: {versions}."
    return PathProblem(f"{message} Read it again, then repeat the change.", "stale_file", file.path)


class Proposal(NamedTuple):
    edits: tuple[FileEdit, ...]
    confirm: str = ""
    """What the user must confirm before it is applied; empty if nothing."""


class Draft(Struct):
    """A file while forms of one set are applied to it, one after the other."""

    path: str
    base: TextFile | None
    text: str | None
    """None: the file will not exist."""
    destination: str = ""
    matched: tuple[str, ...] = ()
    replaced: int = 0
    edited: bool = False
    """An earlier form of the set changed its text."""

    @property
    def op(self) -> Op:
        if self.base is None:
            return "create"
        if self.text is None:
            return "delete"
        return "move" if self.destination else "update"


def propose(workspace: Workspace, shown: ShownVersions, forms: Sequence[Form]) -> Proposal:
    """The edits that all forms together describe; raises PathProblem where one is refused."""
    drafts = _Drafts(workspace, shown)
    for form in forms:
        drafts.add(form)
    return drafts.proposed()


class _Drafts:
    """The files of a set of forms, each once, however its path is spelled."""

    def __init__(self, workspace: Workspace, shown: ShownVersions) -> None:
        self._workspace = workspace
        self._shown = shown
        self._drafts: dict[str, Draft] = {}

    def add(self, form: Form) -> None:
        place = _writable_place(self._workspace, form.path)
        unified = read_diff(place.path, form.diff) if isinstance(form, Patch) else None
        new = _new_text(place.path, form, unified)
        if place.path not in self._drafts and new is not None and not self._workspace.exists(place):
            if isinstance(form, Whole) and form.only == "rewrite":
                self._workspace.size(place)  # raises, with names that are similar
            if not isinstance(form, Move | Delete) and form.base_hash:
                message = f"{place.path} no longer exists. Leave base_hash out to create it."
                raise PathProblem(message, "file_missing", place.path)
            self._drafts[place.path] = Draft(place.path, base=None, text=new, edited=True)
            return
        draft = self._draft(place, form)
        if draft.text is None or not _follows(draft, form):
            raise _contradiction(place.path)
        if draft.destination and draft.destination != place.path:
            message = f"{place.path} is moved to {draft.destination} by a change before. Use that name."
            raise PathProblem(message, "overlap", place.path)
        self._apply(draft, form, unified)
        draft.edited = draft.edited or not isinstance(form, Move)

    def _draft(self, place: ResolvedPath, form: Form) -> Draft:
        if draft := self._drafts.get(place.path):
            base_hash = form.base_hash.strip().lower()
            if draft.base and not draft.base.sha256.startswith(base_hash):
                raise _stale_file(draft.base, form.base_hash)
            if draft.base and isinstance(form, Whole) and form.only == "create":
                raise _exists(draft.base, form.text)
            if draft.base and isinstance(form, Lines | Whole):
                _check_hash(draft.base, self._shown, form)
            return draft
        file = self._workspace.read(place)
        if isinstance(form, Whole) and form.only == "create":
            raise _exists(file, form.text)
        _check_hash(file, self._shown, form)
        draft = self._drafts[place.path] = Draft(place.path, base=file, text=file.text)
        return draft

    def _apply(self, draft: Draft, form: Form, unified: UnifiedDiff | None) -> None:
        text = draft.text or ""
        match form:
            case Replace():
                _update(draft, apply_edits(draft.path, text, form.edits))
            case Lines():
                _update(draft, apply_line_edits(draft.path, text, form.edits))
            case Whole():
                draft.text = with_layout_of(text, form.text)
            case Patch() if unified and unified.deletes:
                check_deleted(draft.path, text, unified)
                draft.text = None
            case Patch() if unified:
                if unified.creates:
                    raise _exists(draft.base, patched_new_file(draft.path, unified))
                _update(draft, apply_patch(draft.path, text, unified))
            case Delete():
                draft.text = None
            case Move():
                self._move(draft, form)

    def _move(self, draft: Draft, form: Move) -> None:
        place = _writable_place(self._workspace, form.destination)
        if draft.base is None or draft.destination:
            raise _contradiction(draft.path)
        if self._workspace.exists(place) or place.path in self._drafts:
            message = f"{place.path} already exists, so nothing can be moved there. Choose another name."
            raise PathProblem(message, "file_exists", place.path)
        draft.destination = place.path
        self._drafts[place.path] = draft

    def proposed(self) -> Proposal:
        self._refuse_twins()
        edits, confirm = [], []
        for draft in {id(draft): draft for draft in self._drafts.values()}.values():
            loss = _check_text(draft)
            edits.append(_edit(draft))
            if loss and loss.is_large:
                confirm.append(f"{draft.path} would lose {loss.lost} of its {loss.total} lines")
        return Proposal(tuple(edits), "; ".join(confirm))

    def _refuse_twins(self) -> None:
        """New names that differ only in case are one file on some systems. The gate looks at the disk."""
        known: dict[str, str] = {}
        for draft in self._drafts.values():
            path = PurePosixPath(draft.destination or (draft.path if draft.base is None else ""))
            for new in (str(each) for each in (path, *path.parents) if each.name):
                twin = known.setdefault(without_case(new), new)
                if twin != new:
                    message = f"{new} differs from {twin} only in case or encoding. Choose one of the names."
                    raise PathProblem(message, "invalid_path", new)


def _follows(draft: Draft, form: Form) -> bool:
    """Whether a form can be applied after those before it."""
    if isinstance(form, Delete):
        return not draft.edited and not draft.destination
    return not (draft.edited and isinstance(form, Lines | Whole))


def _update(draft: Draft, new: EditedText) -> None:
    draft.text = new.text
    draft.replaced += new.replaced
    draft.matched = tuple(dict.fromkeys((*draft.matched, *new.matched)))


def _writable_place(workspace: Workspace, path: str | ResolvedPath) -> ResolvedPath:
    place = workspace.resolve(path)
    if not place.inside:
        raise PathProblem(f"{place.path} is outside the workspace.", "outside_workspace", place.path)
    if place.in_git or place.in_state or place.in_program or place.secret:
        what = (
            "is part of the Handrail that is running"
            if place.in_program
            else "belongs to git"
            if place.in_git
            else "belongs to Handrail"
            if place.in_state
            else "may be a secret"
        )
        raise PathProblem(f"{place.path} {what}: only the user may write it.", "protected_path", place.path)
    if workspace.root / place.path != place.absolute:
        raise PathProblem(f"The name of {place.path} is not UTF-8: rename it first.", "not_text", place.path)
    return place


def refuse_link(workspace: Workspace, path: str) -> None:
    """Raises PathProblem if a path is a link: deleting or moving it would change the file it points to."""
    if os.path.islink(os.path.join(workspace.root, path)):
        raise PathProblem(f"{path} is a link. Name the file that it points to.", "protected_path", path)


def _contradiction(path: str) -> PathProblem:
    message = f"{path} is changed twice in ways that do not fit together. Send one change for it."
    return PathProblem(message, "overlap", path)


def _exists(file: TextFile | None, text: str) -> PathProblem:
    path = file.path if file else ""
    if file and to_unix(file.text) == to_unix(text):
        return PathProblem(f"{path} already exists, with exactly this text.", "already_applied", path)
    message = f"{path} already exists. Read it, then change it, or choose another name."
    return PathProblem(message, "file_exists", path)


def _new_text(path: str, form: Form, unified: UnifiedDiff | None) -> str | None:
    """The text a new file would have; None where the form needs a file that exists."""
    match form:
        case Whole():
            return form.text
        case Replace(edits=(only,)) if not only.search:
            return only.replace
        case Patch() if unified and unified.creates:
            return patched_new_file(path, unified)
        case _:
            return None


def with_layout_of(old: str, text: str) -> str:
    """A whole new text, with the line endings and the final line break of the old one."""
    text = with_endings_of(old, text, only_ending(old))
    if not old or not text.strip() or old.endswith("\n") == text.endswith("\n"):
        return text
    if old.endswith("\n"):
        return text + (only_ending(old) or "\n")
    return text.removesuffix("\n").removesuffix("\r")


def _check_text(draft: Draft) -> Loss | None:
    """How many lines an edit removes, if its text is allowed; None for a deletion or a plain move."""
    if draft.text is None or (draft.destination and draft.base and draft.text == draft.base.text):
        return None
    old = draft.base.text if draft.base else None
    return check_new_text(draft.destination or draft.path, old, draft.text)


def _edit(draft: Draft) -> FileEdit:
    base = draft.base
    return FileEdit(
        path=draft.path,
        op=draft.op,
        old=base.data if base else None,
        new=_bytes(draft) if draft.text is not None else None,
        diff=diff(
            draft.destination or draft.path, base.text if base else None, draft.text, old_path=draft.path
        ),
        destination=draft.destination,
        matched=", ".join(draft.matched),
        replaced=draft.replaced,
    )


def _bytes(draft: Draft) -> bytes:
    data = encode(draft.text or "", bom=bool(draft.base and draft.base.bom))
    if len(data) > MAX_FILE_BYTES:
        message = f"The new text of {draft.path} has {len(data):,} bytes; the limit is {MAX_FILE_BYTES:,}."
        raise PathProblem(message, "too_large", draft.path)
    return data
