"""Requests to one model server: deadlines, size limits, key removal, errors mapped to our own."""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import anyio
from msgspec.structs import replace

from handrail.models.model import (
    Capabilities,
    Deadlines,
    EndOfBytes,
    Finished,
    Part,
    RawBytes,
    Request,
    RequestBytes,
    Text,
)
from handrail.models.providers import PROVIDER_SDKS, Connection, RequestTarget
from handrail.models.reading.sanitize import join_surrogates
from handrail.models.structured_output import StructuredOutput
from handrail.models.wire.http_client import (
    HttpClient,
    Response,
    decompressed_body,
    idempotency_header,
    library_errors,
    map_library_error,
)
from handrail.protocol.errors import (
    Authenticate,
    ConfigProblem,
    FixRequest,
    GiveUp,
    ModelProblem,
    RetryLater,
    SchemaRefused,
)
from handrail.protocol.values import StructuredWay

if TYPE_CHECKING:
    from handrail.models.wire.sse import AnswerReader


class DeadlineClock:
    def __init__(self, deadlines: Deadlines) -> None:
        self.deadlines = deadlines
        self._begun = self.last_bytes = time.monotonic()
        self.answering = False
        """Bytes of an answer have come, so the request may be billed."""

    def seconds_left(self) -> float:
        pause = self.deadlines.silence if self.answering else self.deadlines.first_byte
        now = time.monotonic()
        return max(0.0, min(self.last_bytes + pause - now, self._begun + self.deadlines.whole - now))

    def expired_error(self, host: str) -> RetryLater:
        if time.monotonic() >= self._begun + self.deadlines.whole:
            what = f"did not finish its answer within {self.deadlines.whole:g} s"
        elif self.answering:
            what = f"fell silent for {self.deadlines.silence:g} s in the middle of its answer"
        else:
            what = f"sent nothing within {self.deadlines.first_byte:g} s"
        return RetryLater(f"{host} {what}.", billed=True)


SHORTEST_KEY = 12
"""Shorter ones are placeholders for servers without keys, such as `none`; ordinary text holds them too."""
KEY_MARK = "[key]"


class KeyRedactor:
    """Replaces the key in one stream of bytes, wherever the bytes are split."""

    def __init__(self, key: str) -> None:
        self._key = key if len(key) >= SHORTEST_KEY else ""
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """The bytes that can be passed on; an end that may begin the key is held back."""
        if not self._key:
            return data
        key = self._key.encode()
        data = (self._held + data).replace(key, KEY_MARK.encode())
        keep = next((n for n in range(len(key) - 1, 0, -1) if data.endswith(key[:n])), 0)
        self._held = data[len(data) - keep :]
        return data[: len(data) - keep]

    def end(self) -> bytes:
        return self._held


class HttpCall(NamedTuple):
    """A request as it is sent."""

    url: str
    content: bytes
    headers: Mapping[str, str] = MappingProxyType({})
    """In addition to those of every request to the server, or in their place."""


MAX_ANSWER_BYTES = 32 * 1024 * 1024
MAX_REFUSAL_BYTES = 64 * 1024
MAX_DOCUMENT_BYTES = 4 * 1024 * 1024
"""A list of several hundred models with their descriptions has about 1 MB."""
CLOSE_SECONDS = 1.0
DRAIN_SECONDS = 0.25


class ServerModel:
    """A model of one server: what all adapters share."""

    def __init__(
        self,
        connection: Connection,
        model: str,
        key: str,
        capabilities: Capabilities,
        structured: StructuredOutput | None = None,
    ) -> None:
        self._connection = connection
        self._model = model
        self._capabilities = capabilities
        self._structured = structured or StructuredOutput()
        self._transport = Transport(connection, key)

    @property
    def name(self) -> str:
        return f"{self._connection.name}/{self._model}"

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities._replace(structured=self._structured.way)

    def adapted(self, request: Request) -> tuple[Request, RequestTarget]:
        """The request with what this model takes, and whom it asks."""
        request = replace(request, effort=self._capabilities.effort_for(request))
        if not self._capabilities.native_tools:
            from handrail.models.reading.tool_calls import with_written_tools

            request = with_written_tools(request)
        to = self._connection
        effort = request.effort is not None
        return request, RequestTarget(to.name, self._model, to.key_env, to.local, effort=effort)

    async def by_schema(
        self, schema: dict[str, Any], send: Callable[[StructuredWay], AsyncGenerator[Part, None]]
    ) -> AsyncGenerator[Part, None]:
        """The answer to a request with a schema, which is asked for in the way that works here."""
        way = self._structured.way
        text: list[str] = []
        try:
            async with aclosing(send(way)) as parts:
                async for part in parts:
                    if isinstance(part, Text):
                        text.append(part.text)
                    elif isinstance(part, Finished) and part.reason == "stop":
                        self._structured.answered(way, "".join(text), schema)
                    yield part
        except SchemaRefused as problem:
            raise self._structured.refused(way, problem) from problem

    async def aclose(self) -> None:
        await self._transport.aclose()


class HttpModel(ServerModel, ABC):
    path: str
    json_mode: Mapping[str, Any] = MappingProxyType({})
    """What a request adds for an answer in JSON of any form."""

    def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        reader = partial(self.reader, {tool.name for tool in request.tools})
        request, asked = self.adapted(request)
        if request.received is not None:
            return self._transport.read_again(request.received, reader, asked)
        answer = partial(
            self._transport.answer, self.path, deadlines=request.deadlines, reader=reader, key=request.key
        )
        schema = request.output_schema
        if schema is None:
            return answer(self.body(request), asked=asked)

        def send(way: StructuredWay) -> AsyncGenerator[Part, None]:
            body = self.body(request if way == "schema" else replace(request, output_schema=None))
            body |= self.json_mode if way == "json" else {}
            return answer(body, asked=asked._replace(structured=True))

        return self.by_schema(schema, send)

    @abstractmethod
    def body(self, request: Request) -> dict[str, Any]: ...
    @abstractmethod
    def reader(self, tools: set[str]) -> "AnswerReader":
        """Reads an answer to a request that offered these tools. Not imported before a server answers."""


class Transport:
    """Sends requests to one connection's server."""

    def __init__(self, connection: Connection, key: str) -> None:
        self._connection = connection
        self._key = key
        self._headers = request_headers(connection, key)
        self._client: HttpClient | None = None
        self.host = urlsplit(connection.base_url).netloc.rpartition("@")[2]

    async def answer(
        self,
        path: str,
        body: dict[str, Any],
        deadlines: Deadlines,
        reader: "Callable[[], AnswerReader]",
        asked: RequestTarget,
        *,
        key: str = "",
    ) -> AsyncGenerator[Part, None]:
        """The parts of one streamed answer. Raises only `ModelProblem`s; closing it closes the socket."""
        with self.without_key():
            pieces = body_pieces(body)
            yield RequestBytes(tuple(map(self.recorded, pieces)))
            clock = DeadlineClock(deadlines)
            try:
                content = b"".join(pieces)
                call = HttpCall(
                    f"{self._connection.base_url}{path}", content, idempotency_header(key, content)
                )
                async with aclosing(self._bytes(call, clock, asked)) as stream:
                    async for part in self._parts(stream, reader, asked):
                        yield part
                    # To the end of the response, so that the connection can be used again.
                    with suppress(ModelProblem, *library_errors()), anyio.move_on_after(DRAIN_SECONDS):
                        async for _ in stream:
                            pass
            except library_errors() as error:
                raise map_library_error(error, self.host, billed=clock.answering) from error

    async def read_again(
        self, data: bytes, reader: "Callable[[], AnswerReader]", asked: RequestTarget
    ) -> AsyncGenerator[Part, None]:
        """The parts of an answer whose bytes came earlier."""

        async def stream() -> AsyncGenerator[bytes, None]:
            yield data

        async for part in self._parts(stream(), reader, asked):
            yield part

    def recorded(self, piece: bytes) -> bytes:
        """A piece of a request for the record: no message should hold the key, and the record never does."""
        if len(self._key) < SHORTEST_KEY:
            return piece
        return piece.replace(self._key.encode(), KEY_MARK.encode())

    @contextmanager
    def without_key(self) -> Iterator[None]:
        try:
            yield
        except ModelProblem as found:
            if len(self._key) >= SHORTEST_KEY:
                found.args = (str(found).replace(self._key, KEY_MARK),)
            raise

    async def _parts(
        self, stream: AsyncIterator[bytes], reader: "Callable[[], AnswerReader]", asked: RequestTarget
    ) -> AsyncGenerator[Part, None]:
        data = await anext(stream, None)
        from handrail.models.wire.provider_errors import to_model_problem
        from handrail.models.wire.sse import IncomingAnswer, StreamError

        incoming = IncomingAnswer(reading := reader(), self.host, asked.connection)
        received = 0
        try:
            while data is not None:
                received += len(data)
                if data:
                    yield RawBytes(data)
                if received > MAX_ANSWER_BYTES:
                    raise GiveUp(f"{self.host} sent more than {MAX_ANSWER_BYTES >> 20} MB for one answer.")
                for part in incoming.feed(data):
                    yield part
                data = None if reading.finished else await anext(stream, None)
            yield EndOfBytes()
            for part in incoming.end():
                yield part
        except StreamError as refused:
            raise to_model_problem(refused.refusal, asked, headers={}, billed=True) from None

    async def _bytes(
        self, call: HttpCall, clock: DeadlineClock, asked: RequestTarget
    ) -> AsyncGenerator[bytes, None]:
        async with aclosing(self.body(await self.send(call, clock), clock, asked)) as stream:
            async for data in stream:
                yield data

    async def body(
        self, response: Response, clock: DeadlineClock, asked: RequestTarget
    ) -> AsyncGenerator[bytes, None]:
        """The server's bytes, with the key removed; then raises what an error response means."""
        scrub = KeyRedactor(self._key)
        failures: tuple[type[Exception], ...] = (ModelProblem, *library_errors())
        try:
            chunks = decompressed_body(response, self.host)
            kind = response.headers.get("content-type", "")
            if response.status != 200 or kind.startswith(("text/html", "application/json")):
                async for part in self._refused(response, chunks, clock, asked):
                    yield scrub.feed(part)
            while (data := await self._next(chunks, clock)) is not None:
                yield scrub.feed(data)
        except failures:
            yield scrub.end()
            raise
        finally:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await response.aclose()
        yield scrub.end()

    async def send(self, call: HttpCall, clock: DeadlineClock) -> Response:
        """The response to a POST, without its body."""
        with anyio.move_on_after(clock.seconds_left()):
            return await self._open().send(
                "POST",
                call.url,
                query=self._connection.query,
                content=call.content,
                timeout={"connect": clock.deadlines.connect},
                headers=call.headers,
            )
        raise clock.expired_error(self.host)

    async def _next(self, chunks: AsyncIterator[bytes], clock: DeadlineClock) -> bytes | None:
        with anyio.move_on_after(clock.seconds_left()):
            data = await anext(chunks, None)
            clock.last_bytes, clock.answering = time.monotonic(), True
            return data
        raise clock.expired_error(self.host)

    async def _refused(
        self, response: Response, chunks: AsyncIterator[bytes], clock: DeadlineClock, asked: RequestTarget
    ) -> AsyncGenerator[bytes, None]:
        """The body of an error response, for the audit; then raises what it means."""
        from handrail.models.wire.provider_errors import (
            is_unknown_model,
            read_error_response,
            to_model_problem,
        )

        body = bytearray()
        while len(body) < MAX_REFUSAL_BYTES and (data := await self._next(chunks, clock)) is not None:
            body += data
            yield data
        scrub = KeyRedactor(self._key)
        refusal = read_error_response(response.status, scrub.feed(bytes(body)) + scrub.end())
        if response.status == 200:
            raise self._not_a_stream(response, refusal.raw, asked)
        found = to_model_problem(refusal, asked, response.headers)
        if isinstance(found, FixRequest) and is_unknown_model(refusal):
            found = FixRequest(f"{found} {await self._nearest(asked.model)}")
        raise found

    def _not_a_stream(self, response: Response, raw: str, asked: RequestTarget) -> ModelProblem:
        from handrail.models.wire.provider_errors import read_stream_error, to_model_problem

        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and value.get("error"):
            return to_model_problem(read_stream_error(value["error"]), asked, response.headers)
        kind = response.headers.get("content-type", "nothing").partition(";")[0]
        return GiveUp(
            f"{self.host} answered with {kind} instead of a stream of events: "
            f"check base_url of connection {asked.connection!r}, or the proxy in between."
        )

    async def _nearest(self, model: str) -> str:
        names: list[str] = []
        with suppress(ModelProblem):
            names = await self.model_names(seconds=3.0)
        from difflib import get_close_matches

        near = get_close_matches(model, names, n=3, cutoff=0.4) or names[:5]
        return f"It has: {', '.join(near)}." if near else "Choose another with --model."

    async def model_names(self, seconds: float) -> list[str]:
        if self._connection.provider:
            return []  # each of them lists its models in another way
        path = "/v1/models" if self._connection.protocol == "anthropic" else "/models"
        value = await self.get_json(f"{self._connection.base_url}{path}", seconds)
        data = value.get("data") if isinstance(value, dict) else None
        entries = [each for each in data if isinstance(each, dict)] if isinstance(data, list) else []
        ids = [join_surrogates(str(each["id"])) for each in entries if each.get("id")]
        return [each.removeprefix("models/") for each in ids]

    async def get_json(self, url: str, seconds: float, content: dict[str, Any] | None = None) -> Any:
        """A small JSON document from the server; `content` is sent with POST."""
        with self.without_key():
            try:
                with anyio.fail_after(seconds):
                    body = await self._document(url, seconds, content)
                return json.loads(body)
            except library_errors() as error:
                raise map_library_error(error, self.host, billed=False) from error
            except ValueError as error:
                raise RetryLater(f"{self.host} sent JSON with a number that cannot be read.") from error

    async def _document(self, url: str, seconds: float, content: dict[str, Any] | None) -> bytes:
        response = await self._open().send(
            "GET" if content is None else "POST",
            url,
            query=self._connection.query,
            content=None if content is None else b"".join(body_pieces(content)),
            timeout=dict.fromkeys(("connect", "read", "write", "pool"), seconds),
        )
        body = bytearray()
        try:
            if response.status != 200:
                raise RetryLater(f"{url} answered {response.status}.")
            async with aclosing(decompressed_body(response, self.host)) as pieces:
                async for data in pieces:
                    body += data
                    if len(body) > MAX_DOCUMENT_BYTES:
                        raise GiveUp(f"{url} answered with more than {MAX_DOCUMENT_BYTES >> 20} MB.")
        finally:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await response.aclose()
        return bytes(body)

    def _open(self) -> HttpClient:
        if self._client is None:
            connection = self._connection
            self._client = HttpClient(connection.base_url, self._headers, by_proxy=not connection.local)
        return self._client

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await client.aclose()


def request_headers(connection: Connection, key: str) -> dict[str, str]:
    """The headers of every request; nothing else carries the key."""
    result = {"accept": "text/event-stream, application/json", "accept-encoding": "identity"}
    result["user-agent"] = "handrail"
    if connection.protocol == "anthropic":
        result["anthropic-version"] = "2023-06-01"
    if key:
        if not key.isascii() or not key.isprintable() or " " in key:
            raise Authenticate(
                f"The key of connection {connection.name!r} contains characters that no key has. "
                "Copy it again, without quotes or line ends."
            )
        if connection.provider and PROVIDER_SDKS[connection.provider].adds_key:
            return result
        usual = "x-api-key" if connection.protocol == "anthropic" else "authorization"
        name = (connection.key_header or usual).lower()
        result[name] = f"Bearer {key}" if name == "authorization" else key
    for own, value in connection.headers.items():
        if not f"{own}{value}".isascii() or not f"{own}{value}".isprintable():
            where = f"header {own!r} of connection {connection.name!r}"
            raise ConfigProblem(f"{where} is not plain printable text.")
        result[own.lower()] = value
    return result


GROWING = "messages"
"""The list that each request of a conversation has more of."""


def body_pieces(body: dict[str, Any]) -> list[bytes]:
    """The JSON of a body in pieces: each message is one, and ends where it ends in every other request."""
    pieces: list[str] = []
    text = "{"
    for number, (key, value) in enumerate(body.items()):
        text += f"{',' * (number > 0)}{_json(key)}:"
        if key == GROWING and value:
            pieces += [f"{text}[", _json(value[0]), *(f",{_json(each)}" for each in value[1:])]
            text = "]"
        else:
            text += _json(value)
    return [piece.encode("utf-8", "replace") for piece in (*pieces, f"{text}}}")]


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise FixRequest("The conversation has a number that cannot be sent; start a new one.") from error
