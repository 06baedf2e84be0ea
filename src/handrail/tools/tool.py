"""The Tool base class, argument schemas, tool outcomes and refusals."""

import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar, get_args, get_origin

from msgspec import Meta
from msgspec.structs import fields, replace

from handrail.models.model import ToolSpec
from handrail.policy.call_facts import Action, CommandFacts, SandboxFacts, SourceFacts
from handrail.protocol.errors import PathProblem, RefusalReason, ToolError, ToolRefused
from handrail.protocol.events import CallStatus, Event
from handrail.protocol.values import FileSeen, ToolCall, Value, to_dict, to_json
from handrail.sessions.session import Session
from handrail.tools.secrets import NO_SECRETS, Secrets
from handrail.workspace.files import Workspace
from handrail.workspace.images import ImageFile
from handrail.workspace.paths import ResolvedPath

ANSI_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
CONTROL_CHARACTERS = dict.fromkeys((*range(9), *range(11, 32), 127))


def head_and_tail(text: str, limit: int) -> str:
    """The text if it fits, else its start and its end with a note on how much is missing."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


def truncate(text: str, limit: int, hint: str) -> str:
    """The text if it fits, else its start, how much is missing and a hint on what to do."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[{len(text) - limit:,} more characters left out. {hint}]"


def strip_control_codes(text: str) -> str:
    """A program's output without colours, cursor movements and other control characters."""
    return ANSI_ESCAPES.sub("", text.replace("\r\n", "\n")).translate(CONTROL_CHARACTERS)


def pluralize(number: int, noun: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class HiddenFromModel:
    """Marks an argument that a model may give but that its schema leaves out, unless asked for by name."""


JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
SHOWN_LIMITS = {"le": "maximum", "description": "description"}
"""Other limits are checked when a call arrives, and cost no tokens in every request."""
UNSUPPORTED = ("lt", "multiple_of", "pattern", "extra_json_schema")


def argument_schema(arguments: type[Value], include: Collection[str] = ()) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments; `include` names hidden fields to show.

    msgspec's own schema has titles, defaults and references: tokens that a model does not need.
    """
    shown = [
        field
        for field in fields(arguments)
        if field.name in include or not any(isinstance(mark, HiddenFromModel) for mark in _marks(field.type))
    ]
    schema: dict[str, Any] = {"properties": {field.name: _type_schema(field.type) for field in shown}}
    if required := [field.name for field in shown if field.required]:
        schema["required"] = required
    return schema | {"type": "object"}


def _marks(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()


def _type_schema(annotation: Any) -> dict[str, Any]:
    if annotation in JSON_TYPES:
        return {"type": JSON_TYPES[annotation]}
    if get_origin(annotation) is Annotated:
        schema = _type_schema(get_args(annotation)[0])
        for mark in _marks(annotation):
            schema |= _limits(mark) if isinstance(mark, Meta) else {}
        return dict(sorted(schema.items()))
    if get_origin(annotation) is tuple:
        return {"items": _type_schema(get_args(annotation)[0]), "type": "array"}
    if isinstance(annotation, type) and issubclass(annotation, Value):
        return argument_schema(annotation)
    if get_origin(annotation) is dict:
        return {"type": "object"}
    if get_origin(annotation) is Literal:
        return {"enum": list(get_args(annotation)), "type": "string"}
    raise TypeError(f"No rule for the JSON Schema of {annotation}. Add one here.")


def _limits(meta: Meta) -> dict[str, Any]:
    if any(getattr(meta, name) is not None for name in UNSUPPORTED):
        raise TypeError(f"No rule for the JSON Schema of {meta}. Add one here.")
    return {name: getattr(meta, key) for key, name in SHOWN_LIMITS.items() if getattr(meta, key) is not None}


Arguments = TypeVar("Arguments", bound=Value)


class CallTarget(NamedTuple):
    """What a call touches: the input for decisions and summaries."""

    path: str | None = None
    others: tuple[str, ...] = ()  # further paths that the call writes, such as the destination of a move
    moved: tuple[str, ...] = ()  # those of its paths from which it moves a file away
    command: str | None = None
    url: str | None = None
    network: bool = False
    secrets: tuple[str, ...] = ()  # credentials that the command gets as variables
    todos: tuple[str, ...] = ()
    background: bool = False  # the call ends before the command does


class Question(NamedTuple):
    text: str
    options: tuple[str, ...] = ()
    secret: str = ""  # the name of the credential that is asked for


class AutoApproval(NamedTuple):
    """How a command runs that was allowed without asking."""

    text: str  # the command as it was judged, quoted so that a shell reads nothing else in it
    network: bool
    git: bool  # its git commands run hardened
    code: bool  # it runs code of the workspace
    reads_only: bool
    named: bool
    writes_git: bool = False  # it only lets git write `.git`


class Prepared(Value):
    """What a call would do, computed once and used for the question, the check after a wait and the run."""

    preview: str = ""
    confirm: str = ""  # why the user has to confirm this call in every mode; empty if they need not


NOTHING = Prepared()


class CallContext(Value):
    """What a tool has at hand during one call."""

    session: Session
    workspace: Workspace
    turn_id: str
    call_id: str
    cleanup: ExitStack  # closed once the end of the call is in the log; holds the workspace lock, for example
    place: ResolvedPath | None = None  # where the path argument led when the call was decided
    others: tuple[ResolvedPath, ...] = ()
    moved: frozenset[Path] = frozenset()  # files that the call, or another of its batch, moves away
    answer: str = ""
    shown_characters: int = 16_000  # how much of a file the model can be shown at once
    secrets: Secrets = NO_SECRETS
    prepared: Prepared = NOTHING
    decide_again: Callable[[], object] | None = None  # raises ToolRefused if denied by now
    scope: tuple[str, ...] | None = None  # the active intent's scope; None if no intent is active
    answerable: bool = True
    ask: "Callable[[Question], Awaitable[str]] | None" = None  # the user, while the call runs
    auto_approval: AutoApproval | None = None  # set if the rules allowed a command without asking
    opened: tuple[str, ...] | None = (
        None  # in mode sandbox: places outside that the user opened for the command
    )

    @property
    def by_code(self) -> bool:
        """Whether a code stage makes the call rather than a model."""
        run = self.session.state.run
        return bool(run and run.open and self.call_id.startswith(f"{run.open.stage_id}."))

    @property
    def resolved(self) -> ResolvedPath:
        """The place of a call whose tool has a path."""
        if self.place is None:
            raise AssertionError("a call with a path was allowed before its path was resolved")
        return self.place


class Outcome(Value):
    """The result of a call, for the event that ends it."""

    summary: str
    content: str
    shown: str = ""
    status: CallStatus = "ok"
    error: ToolError | None = None
    files: tuple[FileSeen, ...] = ()
    events: tuple[Event, ...] = ()  # events to commit together with the end of the call
    images: tuple[ImageFile, ...] = ()
    output: bytes = b""  # the whole output, if `content` is only a part of it
    others: "tuple[Outcome, ...]" = ()  # of a batch of calls: the outcomes of the calls after the first


class Tool(ABC, Generic[Arguments]):
    """Something a model can do. Tools leave all checks to policy, except that PathProblem refuses a call."""

    name: ClassVar[str]
    description: ClassVar[str]
    action: ClassVar[Action]
    offered: ClassVar[bool] = True
    """False: only the code of a pipeline calls it."""
    sees_disk: ClassVar[bool] = False
    """It reads many files, as they are on disk: unsaved text in an editor has to be reported."""
    repeatable: ClassVar[bool] = False
    """Whether a call that was cut off by a crash can be made again; calls that write files always can."""
    arguments: type[Arguments]

    @abstractmethod
    async def run(self, arguments: Arguments, work: CallContext) -> Outcome:
        """Do it. Called once, after the call was allowed and its start committed."""

    def target(self, arguments: Arguments) -> CallTarget:
        """What the call touches; by default its `path` argument, if it has one."""
        return CallTarget(path=getattr(arguments, "path", None))

    def summary(self, arguments: Arguments, work: CallContext) -> str:
        """One line on what the call is about."""
        return work.place.path if work.place else ""

    def subject(self, arguments: Arguments, work: CallContext) -> dict[str, Any]:
        """What the answer `always` covers: every call with an equal subject."""
        subject = to_dict(arguments)
        return subject | {"path": str(work.place.absolute)} if work.place else subject

    def prepare(self, arguments: Arguments, work: CallContext) -> Prepared:
        """What the call would do; raises PathProblem if it cannot be done."""
        return NOTHING

    def is_current(self, arguments: Arguments, work: CallContext) -> bool:
        """Whether `work.prepared` is still what the call would do, after a wait."""
        return self.prepare(arguments, work) == work.prepared

    async def is_confined(self) -> bool:
        """Whether what the tool runs can write only in the workspace, and has no network by itself."""
        return False

    async def sandbox_facts(self, command: CommandFacts, workspace: Workspace) -> SandboxFacts:
        """What mode `sandbox` can do about a command of the tool."""
        return SandboxFacts(missing=f"{self.name} runs no commands.")

    async def source_facts(self, arguments: Arguments, session: Session) -> SourceFacts:
        """What is known about a call to a source; raises ToolRefused if the source cannot be used."""
        raise AssertionError(f"{self.name} calls no source")

    def cancelled(self, call: ToolCall, work: CallContext) -> Outcome | None:
        """The outcome of a call that was cancelled; None: the same call goes on after a restart."""
        return cancelled(call, work.session.live.text(call.id, "output"))

    def question(self, arguments: Arguments) -> Question | None:
        """The question for the user, if the tool exists to ask one."""
        return None

    def spec(self, include: Collection[str] = ()) -> ToolSpec:
        """The tool as a model sees it; `include` names hidden arguments to show."""
        return ToolSpec(self.name, self.description, argument_schema(self.arguments, include))


def failure(tool: str, reason: RefusalReason, message: str) -> Outcome:
    error = ToolError(tool=tool, reason=reason, message=message)
    return Outcome(reason, error_json(error), status="failed", error=error)


def error_json(error: ToolError) -> str:
    """A refusal as the model reads it, without empty fields."""
    items = to_dict(error).items()
    return to_json({name: value for name, value in items if value or name not in ("file", "intent_id")})


def cancelled(call: ToolCall, output: str) -> Outcome:
    """The outcome of a call that was cancelled while it ran, with its output so far."""
    error = ToolError(tool=call.name, reason="cancelled", message="Cancelled before it finished.")
    output = head_and_tail(output, 3_000)
    content = f"{error_json(error)}\nOutput so far:\n{output}" if output else error_json(error)
    return Outcome("cancelled", content, shown=output, status="cancelled", error=error)


def redact(secrets: Secrets, outcome: Outcome) -> Outcome:
    """The outcome without secrets, as it may be stored and shown."""
    error = outcome.error
    return replace(
        outcome,
        summary=secrets.hide(outcome.summary),
        content=secrets.hide(outcome.content),
        shown=secrets.hide(outcome.shown),
        error=replace(error, message=secrets.hide(error.message)) if error else None,
        output=secrets.hide_bytes(outcome.output),
    )


def with_intent_id(outcome: Outcome, intent_id: str) -> Outcome:
    """The outcome; a refusal also names the active intent."""
    before = outcome.error
    if before is None or not intent_id or before.intent_id:
        return outcome
    error = replace(before, intent_id=intent_id)
    content = outcome.content.replace(error_json(before), error_json(error), 1)
    return replace(outcome, error=error, content=content)


@contextmanager
def refuse_path_problems(tool: str, *, at_fault: int | None = None) -> Iterator[None]:
    """Turn PathProblem into ToolRefused; `at_fault` is the number of the call in its batch."""
    try:
        yield
    except PathProblem as problem:
        error = tool_refused(tool, problem.reason, str(problem), problem.path)
        error.at_fault = at_fault
        raise error from problem
    except ToolRefused as problem:
        if problem.at_fault is None:
            problem.at_fault = at_fault
        raise


def tool_refused(tool: str, reason: RefusalReason, message: str, file: str = "") -> ToolRefused:
    return ToolRefused(ToolError(tool=tool, reason=reason, message=message, file=file))


def refusals_of(calls: Sequence[ToolCall], refused: ToolRefused) -> list[Outcome]:
    """The outcome of each call of a refused batch: its own fault, or that of another call."""
    at_fault, error = refused.at_fault, refused.error
    errors = [replace(error, tool=call.name) for call in calls]
    if at_fault is not None:
        message = (
            f"Not done: the changes of one answer are made together, and {calls[at_fault].name} {error.file}"
            f" was refused ({error.reason}). Correct that call, then send all of them again."
        )
        other = ToolError(tool="", reason="other_refused", message=message)
        errors = [
            each if number == at_fault else replace(other, tool=each.tool)
            for number, each in enumerate(errors)
        ]
    return [Outcome(each.reason, error_json(each), status="refused", error=each) for each in errors]
