"""Small frozen values that commands and events are made of."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Mode = Literal["explore", "plan", "ask", "edit", "auto"]
Role = Literal["main", "fast", "audit", "image"]
Effort = Literal["low", "medium", "high"]
"""How much a model is to think before it answers."""
ReadAs = Literal["as_is", "fenced", "first_object", "repaired", "coerced", "trimmed", "words"]
"""How an answer became an object: it was one, in a fence, among words, mended; then perhaps with simple types
made what the schema asks for, and without names that it does not know. `words`: it was none, and its words
are all that counts."""
FinishReason = Literal[
    "answered", "cancelled", "budget", "stuck", "failed", "waiting", "interrupted", "unverified"
]
ToolKind = Literal["safe", "destructive"]
HookPoint = Literal["before_tool", "after_tool", "before_end", "session_start"]
"""When a hook runs."""

SHOWN_DIGITS = 12
"""How many hex digits of a file's SHA-256 the model sees and echoes."""


class Value(BaseModel):
    """Base of everything that is stored or sent: frozen, closed, built on first use."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Usage(Value):
    """Tokens of one request, as the provider counted them. `input_tokens` includes the cached ones."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
        )


class ToolCall(Value):
    """A model's wish to use a tool. `problem` says why the arguments could not be read, if so."""

    id: str
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    problem: str = ""
    read: Literal["whole", "repaired", "cut"] = "whole"
    """Repaired: it was no valid JSON, and a library made it so. Cut: its answer breaks off."""


class FileSeen(Value):
    """A version of a file that the model has been shown."""

    path: str
    sha256: str
    how: Literal["user", "auto", "agent"]
    whole: bool = True
    size: int | None = None
    """Bytes, where known."""


class Excerpt(Value):
    """A part of a file that one answer is to rewrite: a function, or all of a small file."""

    path: str
    name: str
    """Empty for all of the file."""
    text: str
    """As it stands in the file."""
    kept: str
    """Its first lines, which stay as they are."""


ImageType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]


class AttachedImage(Value):
    """A picture that the model is shown; its bytes are the blob of this hash."""

    sha256: str
    media_type: ImageType
    size: int = Field(ge=1)
    """Bytes."""
    width: int = Field(ge=1)
    height: int = Field(ge=1)
    name: str
    """Its path, for people and models."""

    @property
    def described(self) -> str:
        """What it is, in words: `PNG, 800 x 600`."""
        return f"{self.media_type.removeprefix('image/').upper()}, {self.width} x {self.height}"


class ChangedRange(Value):
    """Lines of a new content that were not in the old one."""

    start: int
    end: int
    """From 1, both included."""
    sha256: str
    """First 32 digits of the hash of the lines, normalised: found again where the block was moved."""


class FileChange(Value):
    """One file's part of a change set; the hashes name blobs, empty where there is no file."""

    path: str
    op: Literal["create", "update", "delete", "move"]
    destination: str = ""
    """Where a move leads; `new_sha256` is the content there."""
    old_sha256: str = ""
    new_sha256: str = ""
    old_mode: int | None = None
    new_mode: int | None = None
    """Permissions; None where there is no file, or where they are not known."""
    added: int = 0
    removed: int = 0
    matched: str = ""
    """The step of tolerance that found the place; empty: exactly as it was written."""
    size: int | None = None
    """Bytes of the new content, where known."""
    restorable: bool = True
    """False: what was there before is not kept, so that nothing can bring it back."""
    ranges: tuple[ChangedRange, ...] = ()
    """What is new in it, where both contents are known and are text."""


class TraceMark(Value):
    """The lines that a change set has in the trace of the workspace, one a file, chained by their hashes."""

    writer: str
    number: int
    """Of the first of them in the writer's chain, from 1."""
    before: str
    """Hash of the line before it in that chain; empty for the first."""
    lines: tuple[str, ...]
    """Hash of each: the last is the chain's head."""
    at: str
    """ISO 8601, UTC."""
    session_id: str


class FileConflict(Value):
    """A file that a rewind cannot simply put back."""

    path: str
    kind: Literal["merge", "conflict", "lost"]
    """A merge can be accepted; a conflict or what is not kept any more can only be left as it is."""
    why: str
    diff: str = ""
    """What accepting the merge would do."""


class Kept(Value):
    """What a compaction keeps of older turns; the next one goes on from it."""

    goal: str = ""
    asked: str = ""
    """The message that is still being worked at, where the model is no longer shown it."""
    notes: str = ""
    """Written by a model."""
    said: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    todos: tuple[str, ...] = ()
    left_out: dict[str, int] = Field(default_factory=dict)
    """{list: how many older lines of it are not in it}"""


class Todo(Value):
    """A step of the session's plan. Its state changes by facts, never by the model's word."""

    id: str
    text: str
    done: bool = False


class AllowedCommand(Value):
    """An entry of the list of allowed commands that carries more than its words."""

    command: Annotated[str, Field(min_length=1)]
    network: bool = False
    """The network is open for commands that it allows."""


Entry = str | AllowedCommand
