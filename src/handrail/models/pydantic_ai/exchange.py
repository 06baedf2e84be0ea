"""One HTTP request of a provider's client library, sent by our own transport.

The library writes the request and reads the answer. What passes between it and the server is ours: proxies,
deadlines, size limits, removal of the key, error responses, and the record of all bytes.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import ModuleType
from typing import Any

import anyio

from handrail.models.model import Part, RawBytes, Request, RequestBytes
from handrail.models.providers import RequestTarget
from handrail.models.wire import transport as wire
from handrail.models.wire.http_client import Response, library_errors, map_library_error
from handrail.models.wire.sse import HEAD_BYTES, begins_like_events
from handrail.models.wire.transport import CLOSE_SECONDS, DRAIN_SECONDS, DeadlineClock, HttpCall, Transport
from handrail.protocol.errors import GiveUp, ModelProblem

EVENTS = "text/event-stream"
SENT_HEADERS = {"accept", "authorization", "content-type", "x-goog-api-key", "x-goog-user-project"}
SENT_PREFIXES = ("x-amz-", "amz-sdk-")
"""Libraries also send the versions of themselves, of Python and of the system: nobody needs to know."""
KEPT_HEADERS = ("content-type", "x-amzn-requestid")

_current: ContextVar["Exchange"] = ContextVar("exchange")


class Exchange:
    """A request and its answer. Errors stay in `problem`, whatever the library makes of them."""

    def __init__(self, transport: Transport, request: Request, asked: RequestTarget, answers: str) -> None:
        self._transport = transport
        self._asked = asked
        self._received = request.received
        self._answers = answers  # the content type of answers
        self._new: list[Part] = []
        self._body: AsyncGenerator[bytes, None] | None = None
        self._count = 0
        self._sent = False
        self._reading = anyio.Lock()
        self.clock = DeadlineClock(request.deadlines)
        self.head = self._tail = b""
        self.host = transport.host
        self.problem: ModelProblem | None = None

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """What the library sends meanwhile belongs to this exchange."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def new_parts(self) -> list[Part]:
        """The bytes that were sent and received since the last call."""
        new, self._new = self._new, []
        return new

    async def send(self, url: str, headers: Mapping[str, str], content: bytes) -> dict[str, str]:
        """Send the request; the headers of a response whose body is an answer."""
        if self._sent:
            name = self._asked.connection
            raise self._failed(
                GiveUp(f"The library of {name} wanted to send a second request for one answer.")
            )
        self._sent = True
        if self._received is not None:
            self._body = _once(self._received)
            return {"content-type": self._answers}
        self._new.append(RequestBytes((self._transport.recorded(content),)))
        kept = {
            name.lower(): value
            for name, value in headers.items()
            if name.lower() in SENT_HEADERS or name.lower().startswith(SENT_PREFIXES)
        }
        with self._problems():
            response = await self._transport.send(HttpCall(url, content, kept), self.clock)
            self._body = self._transport.body(response, self.clock, self._asked)
            if response.status != 200 or not self._is_answer(response):
                while await self.read():
                    pass
        return {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}

    def _is_answer(self, response: Response) -> bool:
        return not response.headers.get("content-type", "").startswith(("text/html", "application/json"))

    async def read(self) -> bytes:
        """The next bytes of the answer; empty at its end."""
        if self.problem is not None or self._body is None:
            return b""
        async with self._reading:
            return await self._next()

    async def _next(self) -> bytes:
        with self._problems():
            while self._body is not None and (data := await anext(self._body, None)) is not None:
                if data:
                    self._new.append(RawBytes(data))
                    self.head += data[: HEAD_BYTES - len(self.head)]
                    self._tail = (self._tail + data)[-4:]
                    self._count += len(data)
                if self._count > wire.MAX_ANSWER_BYTES:
                    limit = wire.MAX_ANSWER_BYTES >> 20
                    raise GiveUp(f"{self._transport.host} sent more than {limit} MB for one answer.")
                if data:
                    return data
        return b""

    @contextmanager
    def _problems(self) -> Iterator[None]:
        try:
            yield
        except ModelProblem as problem:
            raise self._failed(problem) from problem
        except library_errors() as error:
            found = map_library_error(error, self._transport.host, billed=self.clock.answering)
            raise self._failed(found) from error

    def _failed(self, problem: ModelProblem) -> ModelProblem:
        self.problem = self.problem or problem
        return problem

    @property
    def in_event(self) -> bool:
        """Whether the bytes so far end inside an event."""
        return not self._tail.endswith((b"\n\n", b"\n\r\n", b"\r\r"))

    @property
    def may_be_cut_events(self) -> bool:
        """Whether the first bytes may be those of an answer in server-sent events, or there are none."""
        return not self.head or (self._answers == EVENTS and begins_like_events(self.head))

    async def drain(self) -> None:
        """Read to the end of the response, so that the connection can be used again."""
        with suppress(ModelProblem), anyio.move_on_after(DRAIN_SECONDS):
            while await self.read():
                pass
        self._new.clear()

    async def aclose(self) -> None:
        # A thread that was given up may still be leaving the body.
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            async with self._reading:
                if self._body is not None:
                    await self._body.aclose()


async def _once(data: bytes) -> AsyncGenerator[bytes, None]:
    yield data


def http_client(library: ModuleType) -> Any:
    """A client of httpx, or of httpx2, that sends everything by the current exchange."""

    class Body(library.AsyncByteStream):  # type: ignore[misc, name-defined]
        def __init__(self, exchange: Exchange) -> None:
            self._exchange = exchange

        async def __aiter__(self) -> AsyncIterator[bytes]:
            while data := await self._exchange.read():
                yield data

    class ExchangeTransport(library.AsyncBaseTransport):  # type: ignore[misc, name-defined]
        async def handle_async_request(self, request: Any) -> Any:
            exchange = _current.get()
            headers = await exchange.send(str(request.url), request.headers, await request.aread())
            return library.Response(200, headers=headers, stream=Body(exchange))

    # Deadlines are the exchange's. Google's library takes the default of five seconds for a mistake.
    return library.AsyncClient(transport=ExchangeTransport(), timeout=86_400, trust_env=False)


def send_botocore(request: Any, **_: Any) -> Any:
    """Handler of botocore's event `before-send`: the response, by the current exchange. Runs in a thread."""
    from botocore.awsrequest import AWSResponse

    exchange = _current.get()
    headers = {name: _text(value) for name, value in request.headers.items()}
    content = request.body.encode() if isinstance(request.body, str) else bytes(request.body or b"")
    kept = anyio.from_thread.run(exchange.send, request.url, headers, content)
    return AWSResponse(request.url, 200, kept, _ThreadBody(exchange))


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


class _ThreadBody:
    """The body of an answer, for a library that reads in a thread."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def stream(self, _size: int = 0) -> Iterator[bytes]:
        while data := anyio.from_thread.run(self._exchange.read):
            yield data

    def close(self) -> None:
        """The exchange closes it."""
