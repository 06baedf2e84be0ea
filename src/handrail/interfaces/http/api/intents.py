"""Intents of the workspace, and its trace: which intent, turn and model wrote what."""

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from handrail.app.app import App
from handrail.interfaces.http.endpoint import Call, Endpoint
from handrail.interfaces.http.errors import not_found
from handrail.protocol.events import IntentEdited
from handrail.protocol.intent import Intent
from handrail.protocol.values import Value

if TYPE_CHECKING:
    from handrail.app.history.changes import BlamedLine, Count, Report

Line = Annotated[str, Meta(max_length=2_000)]
IntentId = Annotated[str, Meta(min_length=1, max_length=100)]


class ListedIntent(Value):
    intent: Intent
    done: bool
    ignored: bool


class IntentBoard(Value):
    used: bool
    """Whether the workspace uses intents: every change then needs one."""
    problem: str
    """Why the file cannot be read; empty where it can."""
    intents: tuple[ListedIntent, ...]


async def list_intents(call: Call) -> IntentBoard:
    """The intents of the workspace."""
    book = call.app.intents
    found = book.file.now()
    if found is None:
        return IntentBoard(used=False, problem="", intents=())
    listed = (ListedIntent(each, each.done, each.id in found.ignored) for each in found.intents)
    return IntentBoard(used=True, problem=found.problem, intents=tuple(listed))


class IntentEdit(Value):
    at: float
    old: str
    new: str
    why: str
    by: str


class IntentChange(Value):
    """A change set that was made for the intent."""

    at: float
    session_id: str
    turn: int
    change_id: str
    model: str
    files: tuple[str, ...]


class IntentDetail(Value):
    intent: Intent
    done: bool
    ignored: bool
    edits: tuple[IntentEdit, ...]
    changes: tuple[IntentChange, ...]
    """The trace of the intent, oldest first."""


def _find(app: App, intent_id: str) -> Intent:
    found = app.intents.now().find(intent_id)
    if found is None:
        raise not_found(f"There is no intent {intent_id!r}.", "GET intents lists them.")
    return found


async def show_intent(call: Call) -> IntentDetail:
    """One intent with its history and the changes that were made for it."""
    from handrail.app.intents import intent_changes

    def show(app: App) -> IntentDetail:
        intent = _find(app, call.names["intent"])
        edits = [
            IntentEdit(one.at, event.old, event.new, event.why, event.by)
            for one in app.intents.versions(intent.id)
            if isinstance(event := one.event, IntentEdited)
        ]
        changes = [
            IntentChange(
                each.at,
                each.session_id,
                each.turn,
                each.change.change_id,
                each.change.model,
                tuple(file.destination or file.path for file in each.change.files),
            )
            for each in intent_changes(app, intent.id)
        ]
        ignored = intent.id in app.intents.now().ignored
        return IntentDetail(intent, intent.done, ignored, tuple(edits), tuple(changes))

    return await call.app.query(show)


class IntentConflict(Value):
    one: str
    other: str
    message: str


class IntentCheck(Value):
    wrong: tuple[str, ...]
    conflicts: tuple[IntentConflict, ...]
    waiting: tuple[str, ...]
    """Intents whose dependencies are not done."""


async def check_intents(call: Call) -> IntentCheck:
    """What is wrong with the intents, and which own the same files."""
    found = await call.app.query(lambda app: app.intents.problems())
    conflicts = (IntentConflict(each.one, each.other, each.message) for each in found.conflicts)
    return IntentCheck(found.wrong, tuple(conflicts), found.waiting)


class NewIntent(Value):
    id: IntentId
    name: Line = ""
    template: Literal["bugfix", "feature", "refactor"] | None = None
    scope: tuple[Line, ...] = ()
    constraints: tuple[Line, ...] = ()
    criteria: tuple[Line, ...] = ()
    depends_on: tuple[IntentId, ...] = ()


async def create_intent(call: Call, body: NewIntent) -> Intent:
    """Add an intent, in a new file of intents where there is none."""
    from handrail.app.intents import EXAMPLE, add_intent

    book = call.app.intents
    if not book.bound:
        book.init(EXAMPLE)
    add_intent(
        book,
        body.id,
        template=body.template,
        name=body.name,
        scope=body.scope,
        constraint=body.constraints,
        criterion=body.criteria,
        depends_on=body.depends_on,
    )
    return book.find(body.id)


class IntentValue(Value):
    key: Annotated[str, Meta(min_length=1, max_length=100)]
    """`name`, `status`, `owned_scope`, `constraints`, `acceptance_criteria`, `depends_on`, or another key."""
    value: Annotated[str, Meta(max_length=20_000)]
    """Lists are separated by commas."""
    why: Line = ""


async def set_intent(call: Call, body: IntentValue) -> Intent:
    """Set one key of an intent."""
    intent = _find(call.app, call.names["intent"])
    return call.app.intents.set_value(intent.id, body.key, body.value, body.why)


class IntentPair(Value):
    one: IntentId
    other: IntentId


async def accept_overlap(call: Call, body: IntentPair) -> IntentCheck:
    """Record that two intents may own the same files."""
    call.app.intents.accept(body.one, body.other)
    return await check_intents(call)


class BlameQuery(Value):
    path: Annotated[str, Meta(min_length=1, max_length=4_096)]


class LineAuthor(Value):
    intent_id: str
    by: str
    model: str
    session_id: str
    turn: int
    change_id: str
    at: str


class Blamed(Value):
    number: int
    text: str
    author: LineAuthor | None
    """Null where no agent wrote it."""


class Blame(Value):
    path: str
    lines: tuple[Blamed, ...]


async def blame(call: Call, query: BlameQuery) -> Blame:
    """Which intent, turn and model wrote each line of a file."""

    def one(line: "BlamedLine") -> Blamed:
        found = line.author
        author = found and LineAuthor(
            found.intent_id, found.by, found.model, found.session_id, found.turn, found.change_id, found.at
        )
        return Blamed(line.number, line.text.decode(errors="replace"), author)

    lines = await call.app.query(lambda app: app.trace.blame(query.path))
    return Blame(query.path, tuple(map(one, lines)))


class Counted(Value):
    changes: int
    files: int
    lines: int
    rework: int
    taken_back: int


class TraceReport(Value):
    intents: dict[str, Counted]
    classes: dict[str, Counted]
    models: dict[str, Counted]
    mutation_problems: int
    total: Counted


async def trace_report(call: Call) -> TraceReport:
    """Changes, lines and rework by intent, by class and by model."""

    def counted(each: "Count") -> Counted:
        return Counted(len(each.changes), len(each.files), each.lines, each.rewritten, each.taken_back)

    found: Report = await call.app.query(lambda app: app.trace.report())
    groups = (found.intents, found.classes, found.models)
    intents, classes, models = [{name: counted(each) for name, each in group.items()} for group in groups]
    return TraceReport(intents, classes, models, found.problems, counted(found.total))


INTENT_ENDPOINTS = (
    Endpoint("GET", "/intents", list_intents),
    Endpoint("POST", "/intents", create_intent, status=201),
    Endpoint("GET", "/intents/{intent}", show_intent),
    Endpoint("PATCH", "/intents/{intent}", set_intent),
    Endpoint("GET", "/intent-check", check_intents),
    Endpoint("POST", "/intent-check/accept", accept_overlap),
    Endpoint("GET", "/trace/blame", blame),
    Endpoint("GET", "/trace/report", trace_report),
)
