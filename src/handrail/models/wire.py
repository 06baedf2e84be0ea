"""HTTP to a model server: one client a connection, deadlines, the size limit, and every failure as ours."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio

from handrail.models.base import Deadlines, Part, RawBytes
from handrail.models.clock import Clock
from handrail.models.connections import Asked, Connection
from handrail.models.foreign import foreign_errors, translate
from handrail.models.http_client import HttpClient, Reply
from handrail.models.inflate import plain_bytes
from handrail.models.key_scrub import KeyScrub
from handrail.models.sendable import joined
from handrail.protocol.errors import Authenticate, ConfigProblem, FixRequest, GiveUp, ModelProblem, RetryLater

if TYPE_CHECKING:
    from handrail.models.incoming import Reader
    from handrail.models.refusals import Refusal

MAX_ANSWER_BYTES = 32 * 1024 * 1024
MAX_REFUSAL_BYTES = 64 * 1024
MAX_DOCUMENT_BYTES = 4 * 1024 * 1024
"""The longest honest one, a list of several hundred models with their descriptions, is near 1 MB."""
MODEL_LIST_SECONDS = 3.0
CLOSE_SECONDS = 1.0
DRAIN_SECONDS = 0.25


class Wire:
    """The way to one connection's server."""

    def __init__(self, connection: Connection, key: str) -> None:
        self._connection = connection
        self._key = key
        self._headers = headers(connection, key)
        self._client: HttpClient | None = None
        self.host = urlsplit(connection.base_url).netloc.rpartition("@")[2]

    async def answer(
        self,
        path: str,
        body: dict[str, Any],
        deadlines: Deadlines,
        reader: "Callable[[], Reader]",
        asked: Asked,
    ) -> AsyncGenerator[Part, None]:
        """The parts of one streamed answer. Only `ModelProblem`s leave, and closing it closes the socket.

        What reads the answer is made, and imported, when the server has begun to give one.
        """
        clock = Clock(deadlines)
        with self._without_key():
            try:
                content = _content(body)
                async with aclosing(self._bytes(path, content, clock, asked)) as stream:
                    async for part in self._parts(stream, reader, asked):
                        yield part
                    await _drain(stream)
            except foreign_errors() as error:
                raise translate(error, self.host, billed=clock.answering) from error

    @contextmanager
    def _without_key(self) -> Iterator[None]:
        try:
            yield
        except ModelProblem as found:
            found.args = (KeyScrub(self._key).words(str(found)),)
            raise

    async def _parts(
        self, stream: AsyncIterator[bytes], reader: "Callable[[], Reader]", asked: Asked
    ) -> AsyncGenerator[Part, None]:
        data = await anext(stream, None)
        from handrail.models.incoming import Incoming, StreamRefused
        from handrail.models.refusals import problem

        incoming = Incoming(reading := reader(), self.host, asked.connection)
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
            for part in incoming.end():
                yield part
        except StreamRefused as refused:
            raise problem(refused.refusal, asked, headers={}, billed=True) from None

    async def _bytes(
        self, path: str, content: bytes, clock: Clock, asked: Asked
    ) -> AsyncGenerator[bytes, None]:
        """What the server sends, without the key if it sends that too."""
        scrub = KeyScrub(self._key)
        failures: tuple[type[Exception], ...] = (ModelProblem, *foreign_errors())
        async with aclosing(self._received(path, content, clock, asked)) as received:
            try:
                async for data in received:
                    yield scrub.feed(data)
            except failures:
                yield scrub.end()
                raise
        yield scrub.end()

    async def _received(
        self, path: str, content: bytes, clock: Clock, asked: Asked
    ) -> AsyncGenerator[bytes, None]:
        response = await self._send(path, content, clock)
        try:
            chunks = plain_bytes(response, self.host)
            if response.status != 200 or not _streams(response):
                async for part in self._refused(response, chunks, clock, asked):
                    yield part
            while (data := await self._next(chunks, clock)) is not None:
                yield data
        finally:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await response.aclose()

    async def _send(self, path: str, content: bytes, clock: Clock) -> Reply:
        with anyio.move_on_after(clock.left()):
            return await self._open().send(
                "POST",
                f"{self._connection.base_url}{path}",
                query=self._connection.query,
                content=content,
                timeout={"connect": clock.deadlines.connect},
            )
        raise clock.expired(self.host)

    async def _next(self, chunks: AsyncIterator[bytes], clock: Clock) -> bytes | None:
        with anyio.move_on_after(clock.left()):
            data = await anext(chunks, None)
            clock.heard()
            return data
        raise clock.expired(self.host)

    async def _refused(
        self, response: Reply, chunks: AsyncIterator[bytes], clock: Clock, asked: Asked
    ) -> AsyncGenerator[bytes, None]:
        """The body of an answer that is none, for the audit; then what it means is raised."""
        from handrail.models.refusals import is_unknown_model, problem, read_refusal

        body = bytearray()
        while len(body) < MAX_REFUSAL_BYTES and (data := await self._next(chunks, clock)) is not None:
            body += data
            yield data
        scrub = KeyScrub(self._key)
        refusal = read_refusal(response.status, scrub.feed(bytes(body)) + scrub.end())
        if response.status == 200:
            raise self._not_a_stream(response, refusal, asked)
        found = problem(refusal, asked, response.headers)
        if isinstance(found, FixRequest) and is_unknown_model(refusal):
            found = FixRequest(f"{found} {await self._nearest(asked.model)}")
        raise found

    def _not_a_stream(self, response: Reply, refusal: "Refusal", asked: Asked) -> ModelProblem:
        from handrail.models.refusals import problem, read_stream_error

        try:
            value = json.loads(refusal.raw)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and value.get("error"):
            return problem(read_stream_error(value["error"]), asked, response.headers)
        kind = response.headers.get("content-type", "nothing").partition(";")[0]
        return GiveUp(
            f"{self.host} answered with {kind} instead of a stream of events: "
            f"check base_url of connection {asked.connection!r}, or the proxy in between."
        )

    async def _nearest(self, model: str) -> str:
        try:
            names = await self.model_names(MODEL_LIST_SECONDS)
        except ModelProblem:
            names = []
        from difflib import get_close_matches

        near = get_close_matches(model, names, n=3, cutoff=0.4) or names[:5]
        return f"It has: {', '.join(near)}." if near else "Choose another with --model."

    async def model_names(self, seconds: float) -> list[str]:
        """The models that the server lists."""
        path = "/v1/models" if self._connection.protocol == "anthropic" else "/models"
        value = await self.get_json(f"{self._connection.base_url}{path}", seconds)
        data = value.get("data") if isinstance(value, dict) else None
        entries = data if isinstance(data, list) else []
        names = [joined(str(each["id"])) for each in entries if isinstance(each, dict) and each.get("id")]
        return [name.removeprefix("models/") for name in names]

    async def get_json(self, url: str, seconds: float, content: dict[str, Any] | None = None) -> Any:
        """A small JSON document of the server (POSTed for when `content` is given)."""
        with self._without_key():
            try:
                with anyio.fail_after(seconds):
                    body = await self._document(url, seconds, content)
                return json.loads(body)
            except foreign_errors() as error:
                raise translate(error, self.host, billed=False) from error
            except ValueError as error:
                raise RetryLater(f"{self.host} sent a number that cannot be read.") from error

    async def _document(self, url: str, seconds: float, content: dict[str, Any] | None) -> bytes:
        response = await self._open().send(
            "GET" if content is None else "POST",
            url,
            query=self._connection.query,
            content=None if content is None else _content(content),
            timeout=dict.fromkeys(("connect", "read", "write", "pool"), seconds),
        )
        body = bytearray()
        try:
            if response.status != 200:
                raise RetryLater(f"{url} answered {response.status}.")
            async with aclosing(plain_bytes(response, self.host)) as pieces:
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
            there = self._connection
            self._client = HttpClient(there.base_url, self._headers, by_proxy=not there.local)
        return self._client

    async def aclose(self) -> None:
        """Give back the sockets."""
        client, self._client = self._client, None
        if client is not None:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await client.aclose()


def headers(connection: Connection, key: str) -> dict[str, str]:
    """What every request of a connection carries; the key goes nowhere else."""
    result = {"accept": "text/event-stream, application/json", "accept-encoding": "identity"}
    result["user-agent"] = "handrail"
    if connection.protocol == "anthropic":
        result["anthropic-version"] = "2023-06-01"
    if key:
        if not key.isascii() or not key.isprintable() or " " in key:
            raise Authenticate(
                f"The key of connection {connection.name!r} holds characters that no key has. "
                "Copy it again, without quotes or line ends."
            )
        name = connection.key_header or (
            "x-api-key" if connection.protocol == "anthropic" else "authorization"
        )
        result[name.lower()] = f"Bearer {key}" if name.lower() == "authorization" else key
    for own, value in connection.headers.items():
        if not f"{own}{value}".isascii() or not f"{own}{value}".isprintable():
            raise ConfigProblem(
                f"header {own!r} of connection {connection.name!r} is not plain printable text."
            )
        result[own.lower()] = value
    return result


def _content(body: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise FixRequest("The conversation holds a number that cannot be sent; start a new one.") from error
    return text.encode("utf-8", "replace")


async def _drain(stream: AsyncIterator[bytes]) -> None:
    """Read the HTTP end mark that follows the last event, so that the socket can be used again."""
    with suppress(ModelProblem, *foreign_errors()), anyio.move_on_after(DRAIN_SECONDS):
        async for _ in stream:
            pass


def _streams(response: Reply) -> bool:
    kind = response.headers.get("content-type", "")
    return not kind.startswith(("text/html", "application/json"))
