"""Events about a session: start, title, status, labels, mode, model, todo list."""

from typing import Annotated, Literal

from msgspec import Meta

from handrail.protocol.events.base import EventBase
from handrail.protocol.values import MAX_LABELS, LabelName, Mode, Role, SessionStatus, Todo


class SessionStarted(EventBase, tag="session_started"):
    session_id: str
    workspace: str
    version: str
    """The version of Handrail that created the session."""
    mode: Mode = "ask"
    forked_from: str = ""
    """Id of the session whose events up to `forked_at` this one starts with."""
    forked_at: int = 0


class SessionCopied(EventBase, tag="session_copied"):
    """All earlier events were copied from another session: permissions given there do not apply here."""

    how: Literal["fork", "import"]


class SessionRenamed(EventBase, tag="session_renamed"):
    title: str


class SessionTitled(EventBase, tag="session_titled"):
    """A title by a model; one that the user gave stays."""

    title: str
    model: str


class SessionStatusSet(EventBase, tag="session_status_set"):
    status: SessionStatus


class SessionLabelled(EventBase, tag="session_labelled"):
    """All labels of the session from now on."""

    labels: Annotated[tuple[LabelName, ...], Meta(max_length=MAX_LABELS)]


class SessionDeleted(EventBase, tag="session_deleted"): ...


class SessionRestored(EventBase, tag="session_restored"): ...


class ModeSet(EventBase, tag="mode_set"):
    mode: Mode


class ModelSet(EventBase, tag="model_set"):
    model: str
    """`connection/name`."""
    role: Role = "main"
    why: str = ""
    """For the user: where the choice comes from."""


class TodosChanged(EventBase, tag="todos_changed"):
    """The whole new list."""

    todos: tuple[Todo, ...]


class TodoCompleted(EventBase, tag="todo_completed"):
    todo_id: str
    by: Literal["user", "change", "command"]


class PruneAnnounced(EventBase, tag="prune_announced"):
    """Storage is full: what the end of the next turn would delete, if it still is full then."""

    requests: int
    """Parts of requests; the other numbers count raw answers and whole outputs."""
    answers: int
    outputs: int
    size: int
    """Bytes, compressed."""


class Pruned(EventBase, tag="pruned"):
    """The oldest contents that nothing needs were deleted, as announced."""

    requests: int
    answers: int
    outputs: int
    size: int


ListEvent = SessionTitled | SessionStatusSet | SessionLabelled
SettingEvent = ListEvent | ModeSet | ModelSet | SessionRenamed | SessionDeleted | SessionRestored
StorageEvent = PruneAnnounced | Pruned
SessionEvent = SettingEvent | StorageEvent | SessionStarted | SessionCopied | TodosChanged | TodoCompleted
