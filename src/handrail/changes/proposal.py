"""What forms make of files, checked against the versions that were shown. Nothing has happened yet."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from handrail.changes.change_set import FileEdit, Op
from handrail.changes.diff import diff
from handrail.changes.endings import in_place_of, only_ending, unix
from handrail.changes.forms import Delete, Form, Lines, Move, Patch, Replace, Whole
from handrail.changes.numbered import renumbered
from handrail.changes.patching import check_deleted, created, patched
from handrail.changes.refusals import Loss, refuse
from handrail.changes.replacing import Text, replaced
from handrail.changes.shown import Shown, check_hash, is_hash_of, stale
from handrail.changes.unified import Unified, read_diff
from handrail.protocol.errors import PathProblem
from handrail.workspace.files import WHOLE_LIMIT, TextFile, Workspace
from handrail.workspace.places import Place
from handrail.workspace.text import encode


class Proposed(NamedTuple):
    """The edits of a change set, one a file."""

    edits: tuple[FileEdit, ...]
    confirm: str = ""
    """Why it may be applied only after the user has said yes to it; empty where it may be."""


@dataclass(slots=True)
class Draft:
    """A file in the making: several forms of one set work on it one after the other."""

    path: str
    base: TextFile | None
    text: str | None
    """None: there is to be no file."""
    destination: str = ""
    matched: tuple[str, ...] = ()
    touched: bool = False

    @property
    def op(self) -> Op:
        if self.base is None:
            return "create"
        if self.text is None:
            return "delete"
        return "move" if self.destination else "update"


def propose(workspace: Workspace, shown: Shown, forms: Sequence[Form]) -> Proposed:
    """The edits that forms stand for, all together; raises PathProblem where one is refused."""
    drafts = Drafts(workspace, shown)
    for form in forms:
        drafts.add(form)
    return drafts.proposed()


class Drafts:
    """Files that a set of forms is about, each once, by whatever spelling of its path."""

    def __init__(self, workspace: Workspace, shown: Shown) -> None:
        self._workspace = workspace
        self._shown = shown
        self._drafts: dict[str, Draft] = {}

    def add(self, form: Form) -> None:
        """Work one form in."""
        place = writable(self._workspace, form.path)
        unified = read_diff(place.path, form.diff) if isinstance(form, Patch) else None
        new = _new_text(place.path, form, unified)
        if place.path not in self._drafts and new is not None and not self._workspace.exists(place):
            self._create(place, form, new)
            return
        draft = self._draft(place, form)
        if draft.text is None or (draft.destination and draft.destination != place.path):
            raise _contradiction(place.path)
        if draft.touched and isinstance(form, Lines | Delete | Whole):
            raise _contradiction(place.path)
        self._work(draft, form, unified)
        draft.touched = True

    def _create(self, place: Place, form: Form, text: str) -> None:
        if isinstance(form, Whole) and form.only == "rewrite":
            self._workspace.size(place)  # says what is missing, and what is near
        if not isinstance(form, Move | Delete) and form.base_hash:
            raise PathProblem(
                f"{place.path} does not exist any more. Leave base_hash out to create it anew.",
                "file_missing",
                place.path,
            )
        self._drafts[place.path] = Draft(place.path, base=None, text=text, touched=True)

    def _draft(self, place: Place, form: Form) -> Draft:
        if draft := self._drafts.get(place.path):
            if form.base_hash and draft.base and not is_hash_of(form.base_hash, draft.base.sha256):
                raise stale(draft.base, form.base_hash)
            return draft
        file = self._workspace.read(place)
        if isinstance(form, Whole) and form.only == "create":
            raise _exists(file, form.text)
        check_hash(file, self._shown, form)
        draft = self._drafts[place.path] = Draft(place.path, base=file, text=file.text)
        return draft

    def _work(self, draft: Draft, form: Form, unified: Unified | None) -> None:
        text = draft.text or ""
        match form:
            case Replace():
                self._changed(draft, replaced(draft.path, text, form.edits))
            case Lines():
                self._changed(draft, renumbered(draft.path, text, form.edits))
            case Whole():
                draft.text = _in_the_manner_of(text, form.text)
            case Patch() if unified and unified.deletes:
                check_deleted(draft.path, text, unified)
                draft.text = None
            case Patch() if unified:
                if unified.creates:
                    raise _exists(draft.base, created(draft.path, unified))
                self._changed(draft, patched(draft.path, text, unified))
            case Delete():
                draft.text = None
            case Move():
                self._move(draft, form)

    def _changed(self, draft: Draft, new: Text) -> None:
        draft.text = new.text
        draft.matched = tuple(dict.fromkeys((*draft.matched, *new.matched)))

    def _move(self, draft: Draft, form: Move) -> None:
        place = writable(self._workspace, form.destination)
        if draft.base is None or draft.destination:
            raise _contradiction(draft.path)
        if self._workspace.exists(place) or place.path in self._drafts:
            message = f"{place.path} exists already, so nothing can be moved there. Choose another name."
            raise PathProblem(message, "file_exists", place.path)
        draft.destination = place.path
        self._drafts[place.path] = draft

    def proposed(self) -> Proposed:
        """What has been worked in so far."""
        drafts = list({id(draft): draft for draft in self._drafts.values()}.values())
        edits, asked = [], []
        for draft in drafts:
            loss = _checked(draft)
            edits.append(_edit(draft))
            if loss and loss.is_large:
                asked.append(f"{draft.path} would lose {loss.lost} of its {loss.total} lines")
        return Proposed(tuple(edits), "; ".join(asked))


def writable(workspace: Workspace, path: str | Place) -> Place:
    """The place of a path that `changes` may write; raises PathProblem for the others."""
    place = workspace.resolve(path)
    if not place.inside:
        raise PathProblem(f"{place.path} is outside the workspace.", "outside_workspace", place.path)
    if place.in_git or place.in_state or place.secret:
        whose = "git's" if place.in_git else "Handrail's" if place.in_state else "a secret, perhaps"
        message = f"{place.path} is {whose}, and is written by the user only."
        raise PathProblem(message, "protected_path", place.path)
    if workspace.root / place.path != place.absolute:
        raise PathProblem(f"The name of {place.path} is not UTF-8: rename it first.", "not_text", place.path)
    return place


def refuse_link(workspace: Workspace, path: str) -> None:
    """Raises PathProblem for the name of a link: deleting or moving one would hit what it leads to."""
    if os.path.islink(os.path.join(workspace.root, path)):
        raise PathProblem(f"{path} is a link. Name the file that it leads to.", "protected_path", path)


def _contradiction(path: str) -> PathProblem:
    message = f"{path} is changed twice in ways that do not go together. Send one change of it."
    return PathProblem(message, "overlap", path)


def _exists(file: TextFile | None, text: str) -> PathProblem:
    path = file.path if file else ""
    if file and unix(file.text) == unix(text):
        return PathProblem(f"{path} exists already, with exactly this text.", "already_applied", path)
    message = f"{path} exists already. Read it, then change it, or choose another name."
    return PathProblem(message, "file_exists", path)


def _new_text(path: str, form: Form, unified: Unified | None) -> str | None:
    """The text a new file would have; None where the form needs a file that exists."""
    match form:
        case Whole():
            return form.text
        case Replace(edits=(only,)) if not only.search:
            return only.replace
        case Patch() if unified and unified.creates:
            return created(path, unified)
        case _:
            return None


def _in_the_manner_of(old: str, text: str) -> str:
    """A whole new text, with the line endings and the final line break of the old one."""
    text = in_place_of(old, text, only_ending(old))
    if not old or not text.strip() or old.endswith("\n") == text.endswith("\n"):
        return text
    if old.endswith("\n"):
        return text + (only_ending(old) or "\n")
    return text.removesuffix("\n").removesuffix("\r")


def _checked(draft: Draft) -> Loss | None:
    """The loss of an edit that keeps or makes a file, after everything that forbids it."""
    if draft.text is None or (draft.destination and draft.base and draft.text == draft.base.text):
        return None
    return refuse(draft.destination or draft.path, draft.base.text if draft.base else None, draft.text)


def _edit(draft: Draft) -> FileEdit:
    base = draft.base
    return FileEdit(
        path=draft.path,
        op=draft.op,
        old=base.data if base else None,
        new=_bytes(draft) if draft.text is not None else None,
        diff=diff(draft.destination or draft.path, base.text if base else None, draft.text),
        destination=draft.destination,
        matched=", ".join(draft.matched),
    )


def _bytes(draft: Draft) -> bytes:
    data = encode(draft.text or "", bom=bool(draft.base and draft.base.bom))
    if len(data) > WHOLE_LIMIT:
        raise PathProblem(
            f"The new text of {draft.path} has {len(data):,} bytes; files are written up to {WHOLE_LIMIT:,}.",
            "too_large",
            draft.path,
        )
    return data
