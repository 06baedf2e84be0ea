"""Events of checks (a command that must pass), of fresh attempts, and of what a small model tries."""

from typing import Literal

from handrail.protocol.events.base import EventBase
from handrail.protocol.values import Excerpt, FileSeen


class CheckStarted(EventBase, tag="check_started"):
    """Committed before the command runs."""

    turn_id: str
    check_id: str
    command: str
    attempt: int
    """0 for the run before the first attempt."""


class CheckFinished(EventBase, tag="check_finished"):
    turn_id: str
    check_id: str
    passed: bool
    summary: str
    """One line for a person: `exit 1 in 0.4 s`."""
    content: str
    """The end of the output, as the model sees it."""


class AttemptStarted(EventBase, tag="attempt_started"):
    """A fresh answer: the model sees the conversation up to `keep`, then `text`, and nothing in between."""

    turn_id: str
    number: int
    temperature: float
    keep: int
    """Sequence number of the message that began the turn."""
    text: str
    files: tuple[FileSeen, ...] = ()
    rewrite: Excerpt | None = None
    """Of older logs: the one part that a small model was asked to rewrite."""


class CandidateTried(EventBase, tag="candidate_tried", kw_only=True):
    """An answer in the search of a small model: what was asked, what it would change, what came of it."""

    turn_id: str
    stage_id: str
    number: int
    """From 1."""
    key: str
    """The question, so that it is not asked again."""
    asked: Literal["file", "function", "line", "insertion", "graft", "mutation"]
    """No model was asked for a `graft`, a function of an earlier draft, and a `mutation`, an edit of one sign
    or word."""
    path: str
    name: str = ""
    line: int = 0
    temperature: float = 0.0
    request_id: str = ""
    """Of the model's answer; empty: an earlier answer had it already."""
    change: str = ""
    """In a line."""
    code: str = ""
    """Hash of the file's code without layout and comments."""
    result: Literal["passed", "better", "failed", "unusable", "unchanged", "repeated"]
    """`better`: it is kept for the questions that follow. `unusable`: it was not run, see `why`."""
    why: str = ""
    passing: int = 0
    """Tests that pass with it."""
    total: int = 0
    text: str = ""
    """The file as it is then, if it is kept or a draft of the whole file."""
    seconds: float = 0.0


CheckEvent = CheckStarted | CheckFinished | AttemptStarted | CandidateTried
