"""Events of committing to the user's git repository."""

from typing import Literal

from handrail.protocol.events.base import EventBase


class Committed(EventBase):
    """Change sets of this session are in git."""

    type: Literal["committed"] = "committed"
    request_id: str
    commit: str
    branch: str = ""
    """Empty where no branch was checked out."""
    subject: str
    """The first line of its message."""
    change_ids: tuple[str, ...]
    upto: int
    """Change sets that were applied up to this event of the session are dealt with."""
    files: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """For the user: what is not in it, or else than they may think."""


class CommitRefused(EventBase):
    """Nothing was committed."""

    type: Literal["commit_refused"] = "commit_refused"
    request_id: str
    why: str
    """Empty: there was nothing to commit after all."""
