"""The tools of the MCP server: what each takes, returns and may do."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, ValidationError, convert, json, to_builtins
from msgspec.structs import replace

from handrail.app.app import App
from handrail.app.extensions.outside_agents import (
    EDIT,
    READ,
    SELECT_INTENT,
    Approve,
    Blame,
    Document,
    EndedCall,
    IntentCheck,
    IntentReport,
    OutsideCalls,
    Verification,
    check_intents,
    list_intents,
    trace_blame,
    verify,
)
from handrail.protocol.errors import ToolRefused, UsageProblem
from handrail.protocol.values import HASH_DIGITS, Value

Path = Annotated[str, Meta(min_length=1, max_length=4_000, description="in the workspace")]
Line = Annotated[int, Meta(ge=0, le=100_000_000)]


class Caller(NamedTuple):
    """Who calls: their session's calls, and the way to ask their user, where there is one."""

    app: App
    calls: OutsideCalls
    approve: Approve | None


class Nothing(Value): ...


class Selection(Value):
    intent_id: Annotated[str, Meta(min_length=1, max_length=200)]


class SelectedIntent(Value):
    intent_id: str
    context: str
    """Constraints, scope, acceptance criteria and recent changes, as XML."""


class ReadFile(Value):
    path: Path
    start: Annotated[int, Meta(ge=1)] = 1
    end: Annotated[Line, Meta(description="0: up to 400 lines")] = 0


class FileText(Value):
    path: str
    hash: str
    """Of the whole file, for `base_hash` of a change."""
    text: str
    """With line numbers; what is left out is said at its end."""


class ChangedFile(Value):
    path: str
    hash: str
    """Of the new version; empty: deleted."""


class Edited(Value):
    change_id: str
    """`handrail undo` takes it back."""
    summary: str
    diff: str
    files: tuple[ChangedFile, ...]


class VerifyChecks(Value):
    checks: Annotated[tuple[str, ...], Meta(max_length=100, description="names; empty: all")] = ()
    changed: Annotated[bool, Meta(description="only what the changed files concern")] = False
    base: Annotated[str, Meta(max_length=200, description="a commit to compare with")] = ""


class BlameLines(Value):
    path: Path
    start: Annotated[int, Meta(ge=1)] = 1
    end: Annotated[Line, Meta(description="0: to the end")] = 0


Run = Callable[[Caller, Any], Awaitable[Value]]


class ServerTool(NamedTuple):
    name: str
    title: str
    description: str
    takes: type[Value]
    returns: type[Value]
    run: Run
    reads_only: bool = True
    destructive: bool = False
    idempotent: bool = True


async def _list_intents(caller: Caller, _given: Nothing) -> IntentReport:
    return await caller.app.query(list_intents)


async def _check_intents(caller: Caller, _given: Nothing) -> IntentCheck:
    return await caller.app.query(check_intents)


async def _select_intent(caller: Caller, given: Selection) -> SelectedIntent:
    if not caller.app.intents.bound:
        raise UsageProblem(
            "This workspace has no intents, so none is needed. `handrail intents init` adds them."
        )
    ended = await caller.calls.call(SELECT_INTENT, {"intent_id": given.intent_id}, caller.approve)
    return SelectedIntent(given.intent_id, done(ended).finished.content)


async def _read_file(caller: Caller, given: ReadFile) -> FileText:
    ended = done(await caller.calls.call(READ, to_builtins(given), caller.approve))
    if not ended.finished.files:
        raise UsageProblem(f"{given.path} is not text. Only text files can be read over MCP.")
    (seen,) = ended.finished.files
    _, _, text = ended.finished.content.partition("\n")
    return FileText(seen.path, seen.sha256[:HASH_DIGITS], text)


async def _edit_files(caller: Caller, given: Document) -> Edited:
    arguments = to_builtins(replace(given, intent_id=""))
    ended = done(await caller.calls.call(EDIT, arguments, caller.approve, intent=given.intent_id))
    files = (
        ChangedFile(each.destination or each.path, each.new_sha256[:HASH_DIGITS]) for each in ended.changed
    )
    return Edited(ended.finished.content, ended.finished.summary, ended.finished.shown, tuple(files))


async def _verify(caller: Caller, given: VerifyChecks) -> Verification:
    return await verify(caller.app, only=given.checks, changed=given.changed, base=given.base)


async def _trace_blame(caller: Caller, given: BlameLines) -> Blame:
    # The lines are shown, so reading them is decided as every reading: the file may hold a secret.
    done(await caller.calls.call(READ, {"path": given.path, "start": 1, "end": 1}, caller.approve))
    return await caller.app.query(lambda app: trace_blame(app, given.path, given.start, given.end))


def done(ended: EndedCall) -> EndedCall:
    """The call, if it did what it should; raises its refusal otherwise."""
    if ended.finished.error:
        raise ToolRefused(ended.finished.error)
    if ended.finished.status != "ok":
        raise UsageProblem(ended.finished.content)
    return ended


TOOLS = (
    ServerTool(
        "list_intents",
        "List intents",
        "The intents of this workspace. Where it is bound, each change needs one and stays in its scope.",
        Nothing,
        IntentReport,
        _list_intents,
    ),
    ServerTool(
        SELECT_INTENT,
        "Select an intent",
        "Choose the intent that your work belongs to, and read its constraints, scope and criteria.",
        Selection,
        SelectedIntent,
        _select_intent,
        reads_only=False,
    ),
    ServerTool(
        "check_intents",
        "Check intents",
        "What is wrong with the intents: scopes that overlap, unknown or unmet dependencies, bad paths.",
        Nothing,
        IntentCheck,
        _check_intents,
    ),
    ServerTool(
        READ,
        "Read a file",
        "A text file or some of its lines, with its hash.",
        ReadFile,
        FileText,
        _read_file,
    ),
    ServerTool(
        EDIT,
        "Edit files",
        "Create, change, move, delete files, all of it or nothing. Each change of an existing file names "
        "in base_hash the version that you read. The user may be asked. `handrail undo` takes it back.",
        Document,
        Edited,
        _edit_files,
        reads_only=False,
        destructive=True,
        idempotent=False,
    ),
    ServerTool(
        "verify",
        "Verify",
        "Run the project's own checks (types, lint, tests, build) in a sandbox, on a copy of the workspace.",
        VerifyChecks,
        Verification,
        _verify,
    ),
    ServerTool(
        "trace_blame",
        "Who wrote a line",
        "For each line: the intent, session, model and time of the change that wrote it.",
        BlameLines,
        Blame,
        _trace_blame,
    ),
)


def arguments_of(tool: ServerTool, given: object) -> Value:
    """The arguments of a call; raises UsageProblem that says what is wrong with them."""
    try:
        found: Value = convert(given, tool.takes)
    except ValidationError as error:
        raise UsageProblem(f"The arguments of {tool.name} are wrong: {error}.") from error
    return found


def schema_of(kind: type[Value]) -> dict[str, Any]:
    """The JSON Schema of a struct, with the object itself at the top."""
    (_,), parts = json.schema_components([kind], ref_template="#/$defs/{name}")
    top = parts.pop(kind.__name__)
    return {**top, "$defs": parts} if parts else dict(top)
