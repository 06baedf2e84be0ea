"""What can be asked of a file. A form says what is wanted; whether it may be is found out by `propose`."""

from typing import Literal, NamedTuple

from handrail.workspace.places import Place


class Edit(NamedTuple):
    """A text that stands in the file, and what is to stand there instead."""

    search: str
    replace: str
    line: int = 0
    """The line where the search text begins, where it stands more than once."""


class LineEdit(NamedTuple):
    """An edit by line numbers of the file as it was shown, counted from 1."""

    op: Literal["insert", "delete", "replace"]
    start: int
    """The first line; of an insertion the line that it follows, 0 for the beginning of the file."""
    end: int = 0
    """The last line, included; of an insertion it means nothing."""
    lines: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    """What stands in these lines now; of an insertion, in the line that it follows."""


class Replace(NamedTuple):
    """Change parts of a file that exists, or create one by a single empty search."""

    path: str | Place
    edits: tuple[Edit, ...]
    base_hash: str = ""


class Lines(NamedTuple):
    """Change lines of a file that exists, by their numbers."""

    path: str | Place
    edits: tuple[LineEdit, ...]
    base_hash: str = ""


class Whole(NamedTuple):
    """Write a file from its first to its last line: a new one, or one whose whole text was seen."""

    path: str | Place
    text: str
    base_hash: str = ""
    only: Literal["", "create", "rewrite"] = ""
    """Refuse where it would be the other of the two."""


class Patch(NamedTuple):
    """Change, create or delete one file by a unified diff."""

    path: str | Place
    diff: str
    base_hash: str = ""


class Delete(NamedTuple):
    path: str | Place
    base_hash: str = ""


class Move(NamedTuple):
    """Give a file another name; what it holds stays."""

    path: str | Place
    destination: str | Place
    base_hash: str = ""


Form = Replace | Lines | Whole | Patch | Delete | Move
