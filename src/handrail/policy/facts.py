"""What is known of a call when it is decided: gathered first, frozen, and never looked up again."""

from typing import TYPE_CHECKING, Literal

from handrail.protocol.record import Record
from handrail.protocol.values import Mode, ToolKind

if TYPE_CHECKING:
    from handrail.policy.commands.judge import Judged

Action = Literal["look", "note", "ask", "fetch", "write", "run"]
"""What a tool does: look at files, keep a note, ask the user, fetch a page, write a file, run a command."""


class PathFacts(Record):
    """A path after links and `..` were resolved."""

    path: str
    inside: bool = True
    in_git: bool = False
    in_state: bool = False
    secret: bool = False
    links: int = 1
    """Names that the file has."""
    given: str = ""
    """As it was written; empty: like `path`."""
    found: Literal["nothing", "file", "folder", "other"] = "file"
    missing: tuple[str, ...] = ()
    """Names at the end of the path that nothing has yet."""
    through_file: bool = False
    """What should be a folder on the way is none."""
    twin: str = ""
    """What is there and differs from the first missing name only in case or encoding."""
    twin_by: Literal["", "case", "encoding"] = ""

    @property
    def written(self) -> str:
        return self.given or self.path


class CommandFacts(Record):
    """A command as it was judged, and where the paths in it lead."""

    judged: "Judged"
    places: tuple[PathFacts, ...] = ()
    changes: tuple[PathFacts, ...] = ()
    """Those of them that the command is known to make or change."""
    writes: tuple[PathFacts, ...] = ()
    """What else it is known to write, move or delete, whatever else there is to it."""


class IntentFacts(Record):
    """In a workspace with intents, the one that the session works at."""

    id: str = ""
    """Empty: none is active."""
    known: bool = True
    done: bool = False
    ignored: bool = False
    ids: tuple[str, ...] = ()
    """Those that can be selected."""
    problem: str = ""
    """Why the intents cannot be read."""


class Facts(Record):
    """All that a decision depends on."""

    tool: str
    action: Action
    mode: Mode
    reads_only: bool = False
    """The message only asks: whatever the mode, nothing is written or run for it."""
    path: PathFacts | None = None
    command: CommandFacts | None = None
    scope: tuple[str, ...] | None = None
    """What the active intent owns; None where none is active."""
    intent: IntentFacts | None = None
    """None in a workspace without intents."""
    url_from_user: bool = False
    """The URL stands in a message of the user's."""
    always: bool = False
    """The user has said `always` to exactly this."""
    answerable: bool = True
    """Somebody is there who can be asked."""
    network: bool = False
    """The command wants the network, which the sandbox does not give."""
    confined: bool = False
    """Commands run in a sandbox that keeps their writes in the workspace, or the user wants none."""
    confirm: str = ""
    """Why the user has to say yes to this very call, whatever else allows it."""


def kind_of(facts: Facts) -> ToolKind:
    """Whether the call only reads, or writes, runs or sends something."""
    if facts.action == "fetch":
        return "safe" if facts.url_from_user else "destructive"
    return "destructive" if facts.action in ("write", "run") else "safe"
