"""Facts about a call when it is decided, and the three answers: Allow, Ask, Deny."""

from typing import TYPE_CHECKING, Literal

from handrail.protocol.errors import RefusalReason, ToolError
from handrail.protocol.values import Mode, ToolKind, Value

if TYPE_CHECKING:
    from handrail.policy.commands.judge import CommandVerdict


class Allow(Value): ...


class Ask(Value):
    """The user decides."""

    reason: str
    """For the user: why they are asked."""


class Deny(Value):
    """The call does not run, whoever approves it."""

    error: ToolError


Decision = Allow | Ask | Deny
ALLOW = Allow()


def deny(tool: str, reason: RefusalReason, message: str, file: str = "") -> Deny:
    return Deny(ToolError(tool=tool, reason=reason, message=message, file=file))


Action = Literal["look", "note", "ask", "fetch", "write", "run", "call"]
"""What a tool does: look at files, keep a note, ask the user, fetch a page, write a file, run a command, call
a source."""


class PathFacts(Value):
    """A path after links and `..` were resolved."""

    path: str
    inside: bool = True
    in_git: bool = False
    in_state: bool = False
    secret: bool = False
    in_program: bool = False
    """It belongs to the Handrail that is running."""
    links: int = 1
    """How many names (hard links) the file has."""
    given: str = ""
    """As it was written; empty: the same as `path`."""
    found: Literal["nothing", "file", "folder", "other"] = "file"
    missing: tuple[str, ...] = ()
    """Names at the end of the path that do not exist yet."""
    through_file: bool = False
    twin: str = ""
    """An existing name that differs from the first missing one only in case or encoding, or looks like it."""
    twin_by: Literal["", "case", "encoding", "letters"] = ""

    @property
    def written(self) -> str:
        return self.given or self.path


class CommandFacts(Value):
    """The verdict on a command, and where its paths lead."""

    judged: "CommandVerdict"
    places: tuple[PathFacts, ...] = ()
    changes: tuple[PathFacts, ...] = ()
    """Those of `places` that the command is known to create or change."""
    writes: tuple[PathFacts, ...] = ()
    """What it is known to write, move or delete, even if other parts of it are not understood."""
    git: str = ""
    """A command in it that is known to write `.git`, as `git commit`."""


class SandboxFacts(Value):
    """What mode `sandbox` can do about a command."""

    missing: str = ""
    """Why there is no full sandbox, and what to do; empty if there is one."""
    outside: tuple[str, ...] = ()
    """What it is known to write outside the workspace and its own temporary folders."""
    opens: tuple[str, ...] = ()
    """What could be written outside the workspace, if the user approves."""
    closed: str = ""
    """Why a path that it writes is never opened; empty if all can be."""


class SourceFacts(Value):
    """A call to a source: a server whose tools the model can use."""

    source: str
    tool: str = ""
    """Empty: the call only lists the tools."""
    reads_only: bool = False
    """It lists, or the server says that the tool only reads, and the user believes this server."""
    unasked: bool = False
    """The user listed the tool among those that run without asking in mode auto and sandbox."""


class IntentFacts(Value):
    """The session's intent, in a workspace with intents."""

    id: str = ""
    """Empty: none is active."""
    known: bool = True
    done: bool = False
    ignored: bool = False
    ids: tuple[str, ...] = ()
    problem: str = ""


class Facts(Value):
    tool: str
    action: Action
    mode: Mode
    reads_only: bool = False
    """The user only asked a question: nothing is written or run, whatever the mode."""
    path: PathFacts | None = None
    command: CommandFacts | None = None
    scope: tuple[str, ...] | None = None
    """What the active intent owns; None if none is active."""
    intent: IntentFacts | None = None
    """None in a workspace without intents."""
    url_from_user: bool = False
    always: bool = False
    """The user answered `always` to exactly this call."""
    answerable: bool = True
    network: bool = False
    """The command needs the network, which the sandbox does not give."""
    secrets: tuple[str, ...] = ()
    """Names of credentials that the command gets."""
    confined: bool = False
    """A sandbox keeps the command's writes in the workspace and the network away, or the user wants none."""
    sandbox: SandboxFacts | None = None
    """For a command in mode `sandbox`."""
    source: SourceFacts | None = None
    """For a call to a source."""
    confirm: str = ""
    """Why the user must approve this very call, whatever else allows it."""


def tool_kind(facts: Facts) -> ToolKind:
    """Whether the call only reads, or writes, runs or sends something."""
    if facts.action == "fetch":
        return "safe" if facts.url_from_user else "destructive"
    if facts.action == "call":
        return "safe" if facts.source and facts.source.reads_only else "destructive"
    return "destructive" if facts.action in ("write", "run") else "safe"
