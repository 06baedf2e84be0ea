"""The task assistant: a message becomes an answer and proposed operations, as JSON or server-sent events."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import anyio
from msgspec import DecodeError, Meta, field
from msgspec.json import decode, encode

from handrail.app.tasks import ShownOperation
from handrail.interfaces.http.endpoint import EVENT_STREAM, Call, Endpoint
from handrail.interfaces.http.errors import ApiError, flat_error, not_found
from handrail.interfaces.http.message_stream import MessageStream, StreamForm
from handrail.protocol.errors import HandrailError
from handrail.protocol.ids import new_id
from handrail.protocol.values import RouteOption, TaskFilter, Value

if TYPE_CHECKING:
    from handrail.app.assistant import SentRequest

INVALID = "invalid_message"
HEARTBEAT = b"event: heartbeat\ndata: {}\n\n"
HEARTBEAT_SECONDS = 10.0
ANSWER_SECONDS = 600.0
"""The longest wait of a POST; the answer goes on without it."""
MAX_MESSAGE, MAX_TURNS, MAX_IDS = 20_000, 100, 1_000
SHOWN_TURNS, SHOWN_CHARACTERS = 6, 600
Message = Annotated[str, Meta(min_length=1, max_length=MAX_MESSAGE)]
RequestId = Annotated[str, Meta(pattern=r"^([A-Za-z0-9_.-]{1,100})?\Z")]
Mode = Literal["auto", "tasks", "chat"]
Read = TypeVar("Read")


class Turn(Value):
    role: Literal["user", "assistant"]
    text: Annotated[str, Meta(max_length=MAX_MESSAGE)]


Turns = Annotated[tuple[Turn, ...], Meta(max_length=MAX_TURNS)]


class Selection(Value):
    """The tasks that the user picked."""

    ids: Annotated[tuple[Annotated[str, Meta(max_length=20)], ...], Meta(max_length=MAX_IDS)] | None = ()
    date: Annotated[str, Meta(pattern=r"^(\d{4}-\d{2}-\d{2})?\Z")] | None = ""
    priority: Literal["", "low", "medium", "high"] | None = ""


class Clarify(Value):
    """The user's answer to a question of the assistant."""

    question: Annotated[str, Meta(max_length=2_000)] = ""
    selection: Selection = Selection()


class MessageOptions(Value):
    mode: Mode = "auto"
    """`auto`: the router decides."""
    clarify: Clarify | None = None


class AssistantMessage(Value):
    message: Message
    transcript: Turns | Annotated[str, Meta(max_length=MAX_MESSAGE)] = ()
    """What was said before, if the session does not know it: turns, or text."""
    options: MessageOptions = MessageOptions()
    request_id: RequestId = ""
    """Sent again, it gets the same answer; another one is never started."""
    session: Annotated[str, Meta(max_length=100)] = ""
    """Of an earlier answer, to continue the conversation; empty: a new one."""


class StreamQuery(Value):
    message: Message
    transcript: Annotated[str, Meta(max_length=16_000)] = ""
    """Text, or turns as JSON; in the body of a POST it may be longer."""
    mode: Mode = "auto"
    clarify: Annotated[str, Meta(max_length=8_000)] = ""
    """As JSON."""
    request_id: RequestId = ""
    session: Annotated[str, Meta(max_length=100)] = ""


class Proposal(Value):
    text: str
    operations: tuple[ShownOperation, ...]
    """Nothing is applied: send those that the user agrees to to `llm/apply`."""
    warnings: tuple[str, ...]
    session: str
    request_id: str


class Clarification(Value):
    question: str
    options: tuple[RouteOption, ...]
    session: str
    request_id: str
    requires_clarification: Literal[True] = field(default=True, name="requiresClarification")


async def ask_assistant(call: Call, body: AssistantMessage) -> Proposal | Clarification:
    """Answer a message about the task list, and propose operations; nothing is applied."""
    from handrail.app.assistant import ClarifyEvent, ErrorEvent, ResultEvent, follow_answer

    sent = await _send(call, body)
    answer: Proposal | Clarification | HandrailError | None = None
    ids = sent.request.session_id, sent.request.request_id
    with anyio.move_on_after(ANSWER_SECONDS):
        async with anyio.create_task_group() as tasks:

            async def until_ended() -> None:
                await call.workspace.feeds.ended()
                tasks.cancel_scope.cancel()

            tasks.start_soon(until_ended)
            try:
                async with aclosing(follow_answer(call.app, sent)) as events:
                    async for _, event in events:
                        match event:
                            case ResultEvent():
                                answer = Proposal(event.text, event.operations, event.warnings, *ids)
                            case ClarifyEvent():
                                answer = Clarification(event.question, event.options, *ids)
                            case ErrorEvent():
                                answer = ApiError(502, event.error, event.detail, "Try again later.")
            except HandrailError as problem:
                answer = problem
            tasks.cancel_scope.cancel()
    if isinstance(answer, HandrailError):
        raise answer
    if answer is None:
        advice = "Send the same message with the same request_id: it waits on."
        raise ApiError(503, "retry_later", f"There is no answer yet to the request {ids[1]!r}.", advice)
    return answer


async def stream_assistant(call: Call, query: StreamQuery) -> MessageStream:
    """The same as server-sent events, as it happens.

    `stage` {stage}; `clarify` {question, options, session, request_id}; `ops` {version, operations,
    validCount, invalidCount} as soon as they are checked, again with version 2 after a repair; `summary`
    {text}; `result` as the answer of
    a POST; `error` {error, detail}; `done` at the end; `heartbeat` every 10 seconds, without an id. The same
    request_id follows the same answer; send the last id as `Last-Event-ID` to get only the rest of it.
    """
    turns = query.transcript.lstrip().startswith("[")
    transcript = _from_json(query.transcript, Turns, ()) if turns else query.transcript
    clarify = _from_json(query.clarify, Clarify, None)
    request_id, done = _place(call.request.headers.get("last-event-id", ""), query.request_id)
    options = MessageOptions(query.mode, clarify)
    body = AssistantMessage(query.message, transcript, options, request_id, query.session)
    sent = await _send(call, body)
    form = StreamForm(HEARTBEAT, HEARTBEAT_SECONDS, _problem)
    return MessageStream(call.workspace, _messages(call, sent, done), form)


async def _messages(call: Call, sent: "SentRequest", done: int) -> AsyncGenerator[bytes, None]:
    from handrail.app.assistant import NAMES, follow_answer

    async with aclosing(follow_answer(call.app, sent)) as events:
        async for number, event in events:
            if number > done:
                place = f"{sent.request.request_id}:{number}".encode()
                name = NAMES[type(event)].encode()
                yield b"id: %s\nevent: %s\ndata: %s\n\n" % (place, name, encode(event))


def _problem(problem: HandrailError) -> bytes:
    return b"event: error\ndata: %s\n\nevent: done\ndata: {}\n\n" % encode(flat_error(problem))


def _place(last_id: str, request_id: str) -> tuple[str, int]:
    """The request, and the last event of its answer that the reader has."""
    if not last_id:
        return request_id, 0
    named, _, number = last_id.rpartition(":")
    known = named and request_id in ("", named)
    if not (known and number.isascii() and number.isdecimal() and len(number) < 10):
        raise _wrong("Last-Event-ID is not of an event of this request.", "Send the last id as it came.")
    return named, int(number)


def _from_json(text: str, type_: type[Read], empty: Read) -> Read:
    try:
        return decode(text, type=type_) if text else empty
    except DecodeError as error:
        raise _wrong(f"The query is wrong: {error}.", "/openapi.json says what is expected.") from error


def _wrong(text: str, advice: str) -> ApiError:
    return ApiError(400, INVALID, text, advice)


def _earlier(transcript: tuple[Turn, ...] | str, question: str) -> str:
    """What was said before, the question that the user answers last."""
    if isinstance(transcript, str):
        lines = [transcript[-SHOWN_TURNS * SHOWN_CHARACTERS :].strip()]
    else:
        lines = [f"{each.role}: {each.text[:SHOWN_CHARACTERS]}" for each in transcript[-SHOWN_TURNS:]]
    lines += [f"assistant: {question[:SHOWN_CHARACTERS]}"] if question else []
    return "\n".join(filter(None, lines))


async def _send(call: Call, body: AssistantMessage) -> "SentRequest":
    from handrail.app.assistant import AssistantRequest, send_request

    if not body.message.strip():
        raise _wrong("The message is empty.", "Write something.")
    if body.session and not call.app.has_session(body.session):
        raise not_found(f"No session here is called {body.session!r}.", "Leave it out to get a new one.")
    clarify = body.options.clarify
    picked = clarify.selection if clarify else Selection()
    where = TaskFilter(
        ids=picked.ids or (),
        scheduled_range=(picked.date, picked.date) if picked.date else None,
        priority=picked.priority or "",
    )
    request = AssistantRequest(
        body.request_id or new_id("r"),
        body.message,
        body.session,
        # A selection says what the message is about, so there is nothing left to route.
        mode="auto" if where != TaskFilter() else body.options.mode,
        earlier=_earlier(body.transcript, clarify.question if clarify else ""),
        selection=where if where != TaskFilter() else None,
    )
    async with call.workspace.assistant:
        return await send_request(call.app, request)


ASSISTANT_ENDPOINTS = (
    Endpoint("POST", "/assistant/message", ask_assistant, invalid=INVALID),
    Endpoint("GET", "/assistant/message/stream", stream_assistant, invalid=INVALID, returns=EVENT_STREAM),
)
