"""What a tool is: a name, arguments, what it is about, and how it runs."""

from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from handrail.models.base import ToolSpec
from handrail.policy.facts import Action
from handrail.protocol.errors import RefusalReason, ToolError
from handrail.protocol.events import CallStatus, Event
from handrail.protocol.record import Record
from handrail.protocol.values import FileSeen, Value
from handrail.sessions.handle import Session
from handrail.tools.schema import schema_of
from handrail.tools.secrets import NO_SECRETS, Secrets
from handrail.workspace.files import Workspace
from handrail.workspace.images import ImageFile
from handrail.workspace.places import Place

Arguments = TypeVar("Arguments", bound=Value)


class About(NamedTuple):
    """What a call touches, as far as a decision and a summary need it."""

    path: str | None = None
    others: tuple[str, ...] = ()
    """Further paths that the call writes, such as where a file is moved to."""
    command: str | None = None
    url: str | None = None
    network: bool = False
    """The command wants the network."""
    todos: tuple[str, ...] = ()
    """The todos that the call's success completes."""


class Question(NamedTuple):
    text: str
    options: tuple[str, ...] = ()


class Unasked(NamedTuple):
    """How a command runs that was let through without asking."""

    text: str
    """The words that were judged, written so that a shell can read nothing else."""
    network: bool
    git: bool
    """Its git commands run hardened."""
    code: bool
    """It runs code of the workspace."""
    named: bool
    """The user has put it on the list."""


class Work(Record):
    """What a tool has at hand during one call."""

    session: Session
    workspace: Workspace
    turn_id: str
    call_id: str
    held: ExitStack
    """What is to last until the end of the call is in the log, such as the lock on the workspace."""
    place: Place | None = None
    """Where the path of the arguments led when the call was decided; what is used is this place."""
    others: tuple[Place, ...] = ()
    """The same for the further paths."""
    answer: str = ""
    """What the user said to the tool's question."""
    shown_characters: int = 16_000
    """How much of a file the model can be shown at once."""
    secrets: Secrets = NO_SECRETS
    """What commands do not get."""
    confirmed: bool = False
    """The user said yes to what the tool's `confirmation` named."""
    scope: tuple[str, ...] | None = None
    """What the active intent owns; None where none is active."""
    answerable: bool = True
    """Somebody is there who can be asked."""
    unasked: Unasked | None = None
    """Of a command that the rules let through."""

    @property
    def by_code(self) -> bool:
        """Whether a stage of code makes the call, and not a model."""
        run = self.session.state.run
        return bool(run and run.open and self.call_id.startswith(f"{run.open.stage_id}."))

    @property
    def decided(self) -> Place:
        """The place of a call whose tool has a path."""
        if self.place is None:
            raise AssertionError("a call about a path was let through without its place")
        return self.place


class Outcome(Record):
    """What came of a call, for the event that ends it."""

    summary: str
    content: str
    shown: str = ""
    status: CallStatus = "ok"
    error: ToolError | None = None
    files: tuple[FileSeen, ...] = ()
    events: tuple[Event, ...] = ()
    """Facts to be committed together with the end of the call."""
    images: tuple[ImageFile, ...] = ()
    """Pictures that the model is shown with `content`."""
    output: bytes = b""
    """The whole output, where `content` is only a part of it."""


class Tool(ABC, Generic[Arguments]):
    """Something a model can do. A tool checks nothing that policy checks; it may refuse by PathProblem."""

    name: ClassVar[str]
    description: ClassVar[str]
    action: ClassVar[Action]
    arguments: type[Arguments]

    @abstractmethod
    def about(self, arguments: Arguments) -> About:
        """What the call touches."""

    @abstractmethod
    async def run(self, arguments: Arguments, work: Work) -> Outcome:
        """Do it. Called once, after the call was allowed and its start committed."""

    def summary(self, arguments: Arguments, work: Work) -> str:
        """One line that says what the call is about."""
        return work.place.path if work.place else ""

    def subject(self, arguments: Arguments, work: Work) -> dict[str, Any]:
        """What an `always` to the call holds for; equal subjects mean equal things."""
        given = arguments.model_dump(mode="json")
        return given | {"path": str(work.place.absolute)} if work.place else given

    def preview(self, arguments: Arguments, work: Work) -> str:
        """What a user is shown who is asked; refuses by PathProblem what cannot be done anyway."""
        return ""

    def confirmation(self, arguments: Arguments, work: Work) -> str:
        """Why the user has to say yes to this very call, whatever the mode allows; empty where not."""
        return ""

    async def confined(self) -> bool:
        """Whether what the tool runs can write only in the workspace."""
        return False

    def question(self, arguments: Arguments) -> Question | None:
        """What is asked of the user before the tool runs, if that is what the tool is for."""
        return None

    def spec(self) -> ToolSpec:
        """The tool as a model is told of it."""
        return ToolSpec(self.name, self.description, schema_of(self.arguments))


def failure(tool: str, reason: RefusalReason, message: str, summary: str = "") -> Outcome:
    """A call that was tried and did not work."""
    error = ToolError(tool=tool, reason=reason, message=message)
    return Outcome(summary or reason, error_json(error), status="failed", error=error)


def error_json(error: ToolError) -> str:
    """A refusal as the model reads it, without its empty fields."""
    empty = {name for name in ("file", "intent_id") if not getattr(error, name)}
    return error.model_dump_json(exclude=empty)
