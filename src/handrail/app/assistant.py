"""The task assistant for programs: one message is one request, answered by events that any reader can resume.

A request is a message of a session. Its id gives the id of the message, and that of the session where the
sender named none: a request that is sent again is found in the log, also after a restart. What readers get is
a pure fold of the session's events, so it has the same numbers however often it is read.
"""

import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import convert, field

from handrail.app.tasks import ShownOperation, shown_operation
from handrail.engine.router.confidence import TASKS_ROUTE
from handrail.pipelines.tasks import CHECK, LOOK, OFFER, SUMMARISE, in_sections
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import IdempotencyConflict, StorageProblem, UsageProblem
from handrail.protocol.events import (
    Answered,
    ApprovalAsked,
    Event,
    QuestionAsked,
    Recorded,
    Routed,
    RunCompleted,
    RunRepaired,
    RunStarted,
    StageCompleted,
    StageStarted,
    TurnFinished,
    UserMessage,
)
from handrail.protocol.ids import session_stream
from handrail.protocol.task import OperationResult
from handrail.protocol.values import RouteOption, TaskFilter, Value

if TYPE_CHECKING:
    from handrail.app.app import App

FAILURE = "assistant_failure"
PAGE = 500
StageName = Literal["routing", "proposing", "validating", "repairing", "summarizing"]
STAGES: dict[str, StageName] = {LOOK: "proposing", CHECK: "validating", SUMMARISE: "summarizing"}


# What a reader gets


class StageEvent(Value):
    stage: StageName


class ClarifyEvent(Value):
    question: str
    options: tuple[RouteOption, ...]
    session: str
    """Where the answer to the question goes."""
    request_id: str


class OperationsEvent(Value):
    version: int
    """2 after a repair."""
    operations: tuple[ShownOperation, ...]
    valid_count: int = field(name="validCount")
    invalid_count: int = field(name="invalidCount")


class SummaryEvent(Value):
    text: str


class ResultEvent(Value):
    text: str
    operations: tuple[ShownOperation, ...]
    warnings: tuple[str, ...]
    """Each is a reason to ask the user a second time."""
    session: str
    request_id: str


class ErrorEvent(Value):
    error: str
    detail: str


class DoneEvent(Value): ...


AssistantEvent = (
    StageEvent | ClarifyEvent | OperationsEvent | SummaryEvent | ResultEvent | ErrorEvent | DoneEvent
)
NAMES: dict[type[AssistantEvent], str] = {
    StageEvent: "stage",
    ClarifyEvent: "clarify",
    OperationsEvent: "ops",
    SummaryEvent: "summary",
    ResultEvent: "result",
    ErrorEvent: "error",
    DoneEvent: "done",
}


# The request


class AssistantRequest(NamedTuple):
    request_id: str
    message: str
    session: str = ""
    """Empty: a session of its own."""
    mode: str = "auto"
    earlier: str = ""
    selection: TaskFilter | None = None

    @property
    def message_id(self) -> str:
        return f"m_{_digest('message', self.request_id)}"

    @property
    def session_id(self) -> str:
        return self.session or f"s_{_digest('session', self.request_id)[:16]}"


def _digest(what: str, request_id: str) -> str:
    return hashlib.sha256(f"{what}:{request_id}".encode()).hexdigest()[:32]


class SentRequest(NamedTuple):
    request: AssistantRequest
    after: int
    """The last event before it, or an earlier one."""


async def send_request(app: "App", request: AssistantRequest) -> SentRequest:
    """Send the message, unless it was sent before. Only one call at a time, or it may be sent twice.

    Raises IdempotencyConflict where the id came with another message, UsageProblem where the session is busy.
    """
    if (found := _sent_before(app, request)) is not None:
        app.attach(request.session_id)  # a turn that a restart has cut off goes on
        return SentRequest(request, found)
    if not app.has_session(request.session_id):
        app.new_session(request.session_id)
    state = app.state(request.session_id)
    if state.turn or state.paused:
        does = "is answering another message" if state.turn else "waits for an answer of yours"
        raise UsageProblem(f"Session {request.session_id} {does}. Let it end, or leave `session` out.")
    after = app.last_seq(request.session_id)
    await app.send(
        request.session_id,
        SendMessage(
            text=request.message,
            message_id=request.message_id,
            route=request.mode,
            selection=request.selection,
            proposes=True,
            earlier=request.earlier,
        ),
    )
    return SentRequest(request, after)


def _sent_before(app: "App", request: AssistantRequest) -> int | None:
    """The event before the message of this request; None where it was not sent yet."""
    session_id = request.session_id
    if not app.has_session(session_id):
        return None
    last = upto = app.last_seq(session_id)
    for waiting in app.log.waiting(session_stream(session_id)):
        command = json.loads(waiting.data)
        if command.get("message_id") == request.message_id:
            return _same(request, command["text"], last)
    while upto > 0:
        after = max(0, upto - PAGE)
        for one in reversed(app.read_events(session_id, after, upto - after)):
            if isinstance(one.event, UserMessage) and one.event.message_id == request.message_id:
                return _same(request, one.event.text, one.seq - 1)
        upto = after
    return None


def _same(request: AssistantRequest, text: str, seq: int) -> int:
    if request.message not in ("", text):
        raise IdempotencyConflict(
            f"The request {request.request_id!r} was already sent with another message."
        )
    return seq


# The answer


class NumberedEvent(NamedTuple):
    number: int
    event: AssistantEvent


async def follow_answer(app: "App", sent: SentRequest) -> AsyncGenerator[NumberedEvent, None]:
    """The events of the answer from its beginning, until it is done."""
    answer = Answer(sent.request, app.log.blob)
    number = 0
    async with aclosing(app.follow_batches(sent.request.session_id, sent.after)) as batches:
        async for batch in batches:
            for one in batch:
                for event in answer.saw(one.event) if isinstance(one, Recorded) else ():
                    number += 1
                    yield NumberedEvent(number, event)
                    if isinstance(event, DoneEvent):
                        return


class Answer:
    """The answer to one request, folded from the session's events."""

    def __init__(self, request: AssistantRequest, stored: Callable[[str], bytes | None]) -> None:
        self._request = request
        self._stored = stored
        self._turn_id = ""
        self._run_id = ""
        self._is_tasks = False
        self._repaired = False
        self._version = 0
        self._found: dict[str, Any] = {}
        """The output of the last check."""
        self._operations: tuple[ShownOperation, ...] = ()
        self._summary = ""
        self._asked: ClarifyEvent | None = None
        self._text = ""

    def saw(self, event: Event) -> Iterable[AssistantEvent]:
        if isinstance(event, UserMessage) and event.message_id == self._request.message_id:
            self._turn_id = event.turn_id
            return [StageEvent("routing")]
        if not self._turn_id:
            return []
        match event:
            case Routed(route=""):
                self._asked = self._clarify(event.decision.question, event.decision.options)
            case RunStarted():
                self._run_id, self._is_tasks = event.run_id, event.pipeline == TASKS_ROUTE
            case RunRepaired():
                self._repaired = True
                return [StageEvent("repairing")]
            case StageStarted() if self._is_tasks and event.stage in STAGES:
                again = event.stage == LOOK and self._repaired
                return [] if again else [StageEvent(STAGES[event.stage])]
            case StageCompleted() if self._is_tasks:
                return self._completed(event.stage, self._output(event))
            case Answered(apart=False):
                self._text = event.text or self._text
            case RunCompleted():
                self._text = event.text or self._text
            case ApprovalAsked() | QuestionAsked():
                detail = f"The answer needs a decision of yours. Open the session {self._request.session_id}."
                return [ErrorEvent(FAILURE, detail), DoneEvent()]
            case TurnFinished() if event.turn_id == self._turn_id:
                return [*self._end(event), DoneEvent()]
        return []

    def _clarify(self, question: str, options: tuple[RouteOption, ...] = ()) -> ClarifyEvent:
        return ClarifyEvent(question, options, self._request.session_id, self._request.request_id)

    def _output(self, event: StageCompleted) -> dict[str, Any]:
        if event.output is not None:
            return event.output
        if (data := self._stored(event.blob)) is None:
            raise StorageProblem("A part of this answer is no longer stored. Send the message again.")
        found: dict[str, Any] = json.loads(data)
        return found

    def _completed(self, stage: str, output: dict[str, Any]) -> Sequence[AssistantEvent]:
        if stage == CHECK:
            self._version += 1
            self._found = output
            results = [convert(each, OperationResult) for each in output["results"]]
            self._operations = tuple(map(shown_operation, results, output["lines"]))
            valid = sum(each.valid for each in self._operations)
            if results or self._repaired:
                return [OperationsEvent(self._version, self._operations, valid, len(results) - valid)]
        elif stage == OFFER and any(each.valid for each in self._operations):
            self._summary = str(output["summary"])
            return [SummaryEvent(self._summary)]
        return []

    def _end(self, finished: TurnFinished) -> list[AssistantEvent]:
        question = str(self._found.get("question", ""))
        if question and not self._operations:
            self._asked = self._clarify(question)
        if self._asked:
            return [self._asked]
        text = in_sections(self._found.get("answer", ""), self._summary) if self._summary else self._text
        if finished.reason in ("answered", "unverified") and (text or self._operations):
            warnings = tuple(self._found.get("warnings", ()))
            request = self._request
            return [ResultEvent(text, self._operations, warnings, request.session_id, request.request_id)]
        detail = (
            finished.detail or "The model gave no answer. Send the message again, with another request_id."
        )
        return [ErrorEvent(FAILURE, detail)]
