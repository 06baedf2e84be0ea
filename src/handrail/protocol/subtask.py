"""Subtasks: a request split into a graph of small tasks, its limits, and what each of them returns."""

from typing import Annotated, Literal

from msgspec import Meta, field

from handrail.protocol.values import ChecklistItem, Value

Granularity = Literal["fine", "medium", "coarse"]
Strategy = Literal["graph", "sequential", "all_at_once"]
"""By the dependencies; one after the other, each after all before it; or all together, without them."""
ModelClass = Literal["main", "fast"]
Needs = Literal["files", "tree"]
"""The contents of its files; or a whole tree, in which an agent can look around and run commands."""
RunOn = Literal["here", "workers"]
"""Models are asked by the process that runs the split, or by workers, on any machine."""
PlanSource = Literal["model", "map", "checklist", "file"]
SubtaskStatus = Literal["waiting", "running", "done", "failed", "cancelled"]
SplitEnd = Literal["complete", "failed", "unverified", "cancelled"]
PauseReason = Literal["user", "budget", "failed", "conflicts"]
Settlement = Literal["ours", "theirs", "both", "text", "model"]
MAX_SUBTASKS = 10_000


class Subtask(Value):
    """One part of a request: a pure function of its instruction, its files and what others export."""

    id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][\w.-]{0,59}\Z")]
    instruction: Annotated[str, Meta(min_length=1, max_length=50_000)]
    files: tuple[str, ...] = ()
    """Shown to the model with their content."""
    writes: tuple[str, ...] = ()
    """What it may change or create; a folder ends with `/`. Empty: its files."""
    constraints: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    model_class: ModelClass = "main"
    priority: int = 0
    """Of those that can start, the highest starts first."""
    needs: Needs = "files"

    def may_write(self, path: str) -> bool:
        allowed = self.writes or self.files
        return any(path == each or (each.endswith("/") and path.startswith(each)) for each in allowed)


class SplitLimits(Value):
    parallel: Annotated[int, Meta(ge=1, le=256)] = 4
    tries: Annotated[int, Meta(ge=1, le=10)] = 2
    """How often a subtask is tried whose answer cannot be used."""
    tokens: Annotated[int, Meta(ge=1)] | None = None
    usd: Annotated[float, Meta(ge=0)] | None = None
    subtask_tokens: Annotated[int, Meta(ge=1)] | None = None
    subtask_usd: Annotated[float, Meta(ge=0)] | None = None


class SplitPlan(Value):
    """The graph as the user sees it, may edit it, and starts it."""

    task: str
    subtasks: Annotated[tuple[Subtask, ...], Meta(min_length=1, max_length=MAX_SUBTASKS)]
    strategy: Strategy = "graph"
    granularity: Granularity = "medium"
    limits: SplitLimits = SplitLimits()
    items: dict[str, ChecklistItem] = field(default_factory=dict)
    """{subtask: the item of a checklist that it is for}"""
    run_on: RunOn | None = None
    """None: as the settings say."""


class Export(Value):
    """What others may use of a subtask's result: a name, a type, a file that it created."""

    name: str
    kind: str = ""
    detail: str = ""


class SubtaskFile(Value):
    """A file as a subtask leaves it; its contents are stored by their hashes."""

    path: str
    base: str
    """Hash of the content that the subtask was given; empty: there was no file."""
    sha256: str
    """Empty: it is deleted."""


class SplitConflict(Value):
    """Two results that change the same lines, with both sides."""

    id: str
    path: str
    line: int
    base: str
    ours: str | None
    """None: the file is deleted on this side."""
    theirs: str | None
    ours_by: tuple[str, ...]
    """Subtasks; empty: the workspace itself has changed since the start."""
    theirs_by: str


class SplitCommand(Value):
    """What the user wants of a split request; taken by whichever process runs it."""

    action: Literal["start", "pause", "resume", "cancel", "retry", "settle", "accept"]
    subtask_ids: tuple[str, ...] = ()
    """`cancel`: none means all of them."""
    conflict_id: str = ""
    by: Settlement = "text"
    text: str | None = None
    limits: SplitLimits | None = None
    """`resume`: new limits."""
