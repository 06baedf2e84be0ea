"""What can be wrong with a trace, and how it is told."""

from typing import Literal, NamedTuple

Kind = Literal["edited", "removed", "reordered", "cut off", "forged", "copied", "unreadable"]


class Finding(NamedTuple):
    """Something wrong, at a line of the file."""

    line: int
    """From 1; 0 where it is no line of the file."""
    kind: Kind
    what: str
