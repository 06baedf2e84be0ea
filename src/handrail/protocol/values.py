"""Frozen values in commands and events: tool calls, file changes, answers, routes."""

import builtins
from operator import add
from typing import Annotated, Any, Literal, dataclass_transform

from msgspec import Meta, Struct, field
from msgspec.json import decode, encode
from msgspec.structs import astuple

Mode = Literal["explore", "plan", "ask", "edit", "auto", "sandbox"]
NARROWER_MODES: dict[Mode, tuple[Mode, ...]] = {
    "explore": ("explore",),
    "plan": ("explore", "plan"),
    "ask": ("explore", "plan", "ask"),
    "edit": ("explore", "plan", "ask", "edit"),
    "auto": ("explore", "plan", "ask", "edit", "auto"),
    "sandbox": ("explore", "plan", "ask", "edit", "sandbox"),
}
"""{mode: those that allow nothing which it does not}"""
Role = Literal["main", "fast", "audit", "image"]
Effort = Literal["low", "medium", "high"]
StructuredWay = Literal["schema", "json", "prompt"]
"""How an answer by a schema is asked for: by the schema, in the server's JSON mode, or by the prompt."""
ReadAs = Literal["as_is", "fenced", "first_object", "repaired", "coerced", "trimmed", "words"]
"""How an answer was read as an object: as it is, from a fence, as the first object in text, or repaired; then
perhaps with simple types converted and unknown names removed. `words`: it was not one, and only its text
is used."""
FinishReason = Literal[
    "answered", "cancelled", "budget", "stuck", "failed", "waiting", "interrupted", "unverified", "escalated"
]
ToolKind = Literal["safe", "destructive"]
HookPoint = Literal["before_tool", "after_tool", "before_end", "session_start"]

STORED, DECLINED = "stored", "declined"
"""The answers to a question for a secret; the secret itself is never an answer."""
HASH_DIGITS = 12
"""Hex digits of a file's SHA-256 that the model sees and echoes."""
Positive = Annotated[int, Meta(ge=1)]
ImageType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
SessionStatus = Literal["open", "in_progress", "done", "archived"]
LabelName = Annotated[str, Meta(pattern=r"^\w[\w.:/+-]*\Z", max_length=40)]
MAX_LABELS = 20
"""Labels of one session."""
RouteKind = Literal["clarify", "chat", "tasks", "agent"]
MAX_OPTIONS = 7
AUTO_ROUTE = "auto"
"""The router chooses the pipeline of each message."""
PLAN_ROUTE, FOLLOW_ROUTE = "plan-mode", "follow"
"""The pipelines that make a plan and that follow the approved one."""
FOLLOW_INPUT = "Follow the plan."


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Value(Struct, frozen=True, forbid_unknown_fields=True):
    """A frozen value. Types and limits are checked when it is decoded, not when it is constructed."""


class Tagged(Value, tag_field="type"):
    """A member of a union: `type` comes first in its JSON and says which member it is."""

    @property
    def type(self) -> str:
        return tag_of(builtins.type(self))


def tag_of(kind: type[Tagged]) -> str:
    return str(kind.__struct_config__.tag)


def to_json(value: object) -> str:
    """Compact JSON; raises UnicodeEncodeError for half of a surrogate pair."""
    return encode(value).decode()


def to_dict(value: Value) -> dict[str, Any]:
    data: dict[str, Any] = decode(encode(value))
    return data


def is_deeper(value: Any, levels: int) -> bool:
    """Whether JSON is nested deeper than this."""
    level = [value]
    for _ in range(levels + 1):
        level = [each for each in level if isinstance(each, dict | list)]
        if not level:
            return False
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return True


class Usage(Value):
    """Tokens of one request as the provider counted them; `input_tokens` includes cached ones."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*map(add, astuple(self), astuple(other)))


class ToolCall(Value):
    """A model's call of a tool. `problem` says why its arguments could not be read."""

    id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    read: Literal["whole", "repaired", "cut"] = "whole"
    """Repaired: invalid JSON that a library corrected. Cut: the answer ended within it."""


class FileSeen(Value):
    path: str
    sha256: str
    how: Literal["user", "auto", "agent"]
    whole: bool = True
    size: int | None = None
    """Bytes, where known."""


class Excerpt(Value):
    """A part of a file that one answer rewrites: a function, or a whole small file."""

    path: str
    name: str
    """Empty: the whole file."""
    text: str
    kept: str
    """Its first lines, which stay unchanged."""


class AttachedImage(Value):
    """A picture for the model; its bytes are the blob with this hash."""

    sha256: str
    media_type: ImageType
    size: Positive
    """Bytes."""
    width: Positive
    height: Positive
    name: str
    """Its path, as people and models see it."""

    @property
    def described(self) -> str:
        """Format and size: `PNG, 800 x 600`."""
        return f"{self.media_type.removeprefix('image/').upper()}, {self.width} x {self.height}"


class ChangedRange(Value):
    """Lines of the new content that were not in the old one."""

    start: int
    end: int
    """From 1, both included."""
    sha256: str
    """First 32 digits of the hash of the normalised lines; finds the block again after a move."""


class FileChange(Value):
    """One file in a change set; the hashes name blobs and are empty where there is no file."""

    path: str
    op: Literal["create", "update", "delete", "move"]
    destination: str = ""
    """The target of a move; `new_sha256` is the content there."""
    old_sha256: str = ""
    new_sha256: str = ""
    old_mode: int | None = None
    new_mode: int | None = None
    """Permissions, with the type bits for a link; None if there is no file or they are not known."""
    added: int = 0
    removed: int = 0
    matched: str = ""
    """The tolerance that was needed to find the place; empty: an exact match."""
    size: int | None = None
    restorable: bool = True
    """False: the old content is not stored, so the change cannot be undone."""
    ranges: tuple[ChangedRange, ...] = ()
    """The new lines, if both contents are known and are text."""
    raw: str = ""
    """The bytes of `path` in hexadecimal, where they are not UTF-8."""
    ignored: bool = False
    """Git ignores it, or it is in a cache: it is recorded only so that it can be undone."""
    editor: bool = False
    """An editor is asked to write it, so it is not all or none with the other files; the old content may be
    a text that the user had not saved."""


class FolderMode(Value):
    """Permissions of a folder before and after a change set; None where there is no folder."""

    path: str
    """As in `path_text`: also what is not UTF-8."""
    old: int | None
    new: int | None


class TraceMark(Value):
    """A change set's lines in the workspace's trace, one per file, chained by hashes."""

    writer: str
    number: int
    """Number of the first line in the writer's chain, from 1."""
    before: str
    """Hash of the previous line in that chain; empty for the first."""
    lines: tuple[str, ...]
    """Hash of each line; the last one is the chain's head."""
    at: str
    """ISO 8601, UTC."""
    session_id: str


class FileConflict(Value):
    """A file that a rewind cannot simply restore."""

    path: str
    kind: Literal["merge", "conflict", "lost"]
    """A merge can be accepted. A conflict, or content that is no longer stored, can only be left as it is."""
    why: str
    diff: str = ""
    """What accepting the merge would do."""


class CompactionSummary(Value):
    """What a compaction keeps of older turns; the next compaction starts from it."""

    goal: str = ""
    asked: str = ""
    """The message in progress, if it is no longer in the model's context."""
    notes: str = ""
    said: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    todos: tuple[str, ...] = ()
    left_out: dict[str, int] = field(default_factory=dict)
    """{list: how many older lines were dropped from it}"""


class Todo(Value):
    """A step of the session's plan. Facts complete it, never a claim of the model."""

    id: str
    text: str
    done: bool = False
    command: str = ""
    """The command whose success completes it; empty: the change or command that names it does."""


class AllowedCommand(Value):
    command: Annotated[str, Meta(min_length=1)]
    network: bool = False


CommandEntry = str | AllowedCommand
NEXT_STEPS_TOOL = "next_steps"
CONTINUE_INPUT = "Continue with the next open todos."
"""The input of the next step of a request with several steps."""


class AnswerSection(Value, kw_only=True):
    title: str = ""
    text: str


class AnswerTodo(Value):
    text: str
    done: bool = False
    """In answers of older versions; nothing follows from it."""
    command: str = ""
    """The command whose success completes it, if no change does."""


class NextStep(Value):
    label: str
    input: str


class StructuredAnswer(Value):
    summary: str
    sections: tuple[AnswerSection, ...] = ()
    todos: tuple[AnswerTodo, ...] = ()
    changes: tuple[dict[str, Any], ...] = ()
    """In the form of docs/proposals.md; other events say whether they are applied."""
    commands: tuple[str, ...] = ()
    """For the user to run; none runs by itself."""
    next_steps: tuple[NextStep, ...] = ()


class ChecklistItem(Value):
    """An item of a checklist in Markdown, as the file had it when its build began."""

    path: str
    number: int
    """From 1, in the order of the file; it may move while others edit the file."""
    text: str
    phase: str = ""
    """The heading above it."""
    part_of: str = ""
    """The text of the item that it belongs to."""


class RouteOption(Value):
    id: str
    title: str
    scheduled_for: str = ""


class TaskFilter(Value):
    """A normalised filter on the task list; empty fields do not restrict it."""

    ids: tuple[str, ...] = ()
    text: str = ""
    scheduled_range: tuple[str, str] | None = None
    priority: str = ""
    completed: bool | None = None
    repeating: bool | None = None


class RouterDecision(Value):
    decision: RouteKind
    confidence: Annotated[float, Meta(ge=0, le=1)]
    question: str = ""
    """One short question, if the user has to clarify."""
    options: Annotated[tuple[RouteOption, ...], Meta(max_length=MAX_OPTIONS)] = ()
    entities: dict[str, Any] = field(default_factory=dict)
    """What the message names: files, people, dates."""
    where: TaskFilter | None = None

    @property
    def strong(self) -> bool:
        """Whether the message names what it is about."""
        return any(self.entities.values()) or self.where not in (None, TaskFilter())
