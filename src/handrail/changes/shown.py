"""The hash rule: only the version of a file that was shown can be changed."""

import re
from typing import NamedTuple

from handrail.changes.forms import Form, Lines, Whole
from handrail.protocol.errors import PathProblem
from handrail.protocol.values import SHOWN_DIGITS
from handrail.sessions.files_seen import FilesSeen
from handrail.workspace.files import TextFile


class Shown(NamedTuple):
    """Which versions of files count as known to whoever wrote the forms."""

    seen: FilesSeen | None
    """None: a person's proposal, in which each base hash speaks for itself."""
    turn: int = 0
    """A file shown in this turn needs no hash in the form: code fills it in."""


def check_hash(file: TextFile, shown: Shown, form: Form) -> None:
    """Refuse unless the version that the form is based on is the file's, and was shown."""
    given = form.base_hash.strip().lower()
    if given and not re.fullmatch(rf"[0-9a-f]{{{SHOWN_DIGITS},64}}", given):
        raise _no_hash(
            file.path,
            f"base_hash must be the {SHOWN_DIGITS} digits that read shows at the head of {file.path}",
        )
    if isinstance(form, Lines) and not given and not all(edit.expected for edit in form.edits):
        raise _no_hash(file.path, "Line numbers need base_hash, or with each of them the text expected there")
    if shown.seen is None:
        if not given:
            raise _no_hash(file.path, f"{file.path} exists: base_hash must say which version of it was meant")
        if not is_hash_of(given, file.sha256):
            raise stale(file, given)
        return
    known = shown.seen.files.get(file.path)
    if known is None:
        raise _no_hash(file.path, f"{file.path} exists, and the model has not been shown it")
    if not given and known.turn < shown.turn:
        raise _no_hash(file.path, f"{file.path} was not shown in this turn, and base_hash is missing")
    # An older version that was shown is as stale as one that was never shown.
    if not is_hash_of(given, known.sha256):
        raise stale(file, given)
    if file.sha256 != known.sha256:
        raise stale(file, known.sha256)
    if isinstance(form, Whole) and not known.whole:
        raise PathProblem(
            f"The model has been shown only a part of {file.path}, so it cannot rewrite all of it."
            " Edit the part that was shown, or read all of the file first.",
            "no_hash",
            file.path,
        )


def is_hash_of(given: str, sha256: str) -> bool:
    """Whether these are the first digits of the hash, or none at all."""
    return sha256.startswith(given.strip().lower())


def _no_hash(path: str, why: str) -> PathProblem:
    return PathProblem(f"{why}. Read {path}, then repeat the change.", "no_hash", path)


def stale(file: TextFile, given: str) -> PathProblem:
    """The refusal of a change that was meant for another version."""
    return PathProblem(
        f"{file.path} is not the version that was shown: that was {given[:SHOWN_DIGITS]}, the file is now"
        f" {file.sha256[:SHOWN_DIGITS]}. Read it again, then repeat the change on what it says now.",
        "stale_file",
        file.path,
    )
