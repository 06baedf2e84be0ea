"""An endpoint of the API: what a request may contain is read from the types of its function.

The function's parameters say what it takes: `call` (always), `query` (a struct of query parameters) and
`body` (the type of its JSON, or `Upload` for bytes). Its return type is the type of its JSON, or a `Response`
of its own. The OpenAPI document is made from the same types.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
from msgspec import DecodeError, ValidationError, convert
from msgspec.json import Decoder, decode, encode
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from handrail.interfaces.http.errors import JSON, ApiError, error_response, not_found
from handrail.protocol.errors import HandrailError

if TYPE_CHECKING:
    from handrail.app.app import App
    from handrail.interfaces.http.server import Server
    from handrail.interfaces.http.workspaces import OpenWorkspace

EVENT_STREAM = "text/event-stream"
BYTES = "application/octet-stream"
MAX_BODY = 1_000_000
BODY_SECONDS = 30.0
"""The longest wait for the next part of a body."""
PARAMETER = re.compile(r"\{(\w+)\}")


class Call(NamedTuple):
    """What every function gets: the server, and what the path names."""

    server: "Server"
    request: Request
    names: dict[str, str]
    """The parameters of the path."""
    workspace: "OpenWorkspace"
    app: "App"
    session_id: str = ""
    """An existing session, if the path has one."""


class Upload(NamedTuple):
    """A body of bytes, read as it arrives."""

    parts: AsyncIterator[bytes]


class Endpoint(NamedTuple):
    method: str
    path: str
    """Below `/api/w/{workspace}`."""
    function: Callable[..., Awaitable[Any]]
    status: int = 200
    accepts: str = JSON
    returns: str = JSON
    max_body: int = MAX_BODY
    of_server: bool = False
    """Below `/api`, for the whole server: its function takes the `Server` as `call`."""
    invalid: str = ""
    """The code of a request that cannot be read; with it, all errors are a `FlatError`."""
    headers: tuple[str, ...] = ()
    """Headers that a request may have: up to 200 printable ASCII characters."""

    @property
    def types(self) -> dict[str, Any]:
        return {name: type_ for name, type_ in get_annotations(self.function).items() if name != "call"}

    @property
    def parameters(self) -> list[str]:
        return PARAMETER.findall(self.path)

    @property
    def summary(self) -> str:
        return (self.function.__doc__ or "").strip().splitlines()[0]


class Handler:
    """Answers the requests to one endpoint."""

    def __init__(self, endpoint: Endpoint, server: "Server") -> None:
        self._endpoint = endpoint
        self._server = server
        types = endpoint.types
        self._query = types.get("query")
        self._body = types.get("body")
        self._decoder: Decoder[Any] | None = None

    async def __call__(self, request: Request) -> Response:
        try:
            return await self._answer(request)
        except HandrailError as error:
            return error_response(error, flat=bool(self._endpoint.invalid))

    async def _answer(self, request: Request) -> Response:
        names = dict(request.path_params)
        given: dict[str, Any] = {}
        if self._query is not None:
            given["query"] = self._read_query(request)
        if self._body is Upload:
            self._check_type(request)
            given["body"] = Upload(_parts(request, self._endpoint.max_body))
        elif self._body is not None:
            self._check_type(request)
            given["body"] = self._decode(await whole_body(request, self._endpoint.max_body))
        if self._endpoint.of_server:
            return self._respond(await self._endpoint.function(self._server, **given))
        workspace = self._server.workspace(names.pop("workspace", ""))
        app = await workspace.app()
        session_id = names.get("session", "")
        if session_id and not app.has_session(session_id):
            raise not_found(f"No session here is called {session_id!r}.", "GET sessions lists them.")
        call = Call(self._server, request, names, workspace, app, session_id)
        return self._respond(await self._endpoint.function(call, **given))

    def _respond(self, result: Any) -> Response:
        if isinstance(result, Response):
            return result
        return Response(encode(result), self._endpoint.status, media_type=JSON)

    def _read_query(self, request: Request) -> Any:
        pairs = request.query_params.multi_items()
        if len({name for name, _ in pairs}) != len(pairs):
            raise self._wrong("A query parameter is given twice.")
        try:
            return convert(dict(pairs), self._query, strict=False)
        except ValidationError as error:
            raise self._wrong(f"The query is wrong: {error}.") from error

    def _check_type(self, request: Request) -> None:
        given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if given != self._endpoint.accepts:
            wanted = self._endpoint.accepts
            raise ApiError(
                415, "wrong_type", f"The body is {given or 'of no type'}, not {wanted}.", f"Send {wanted}."
            )

    def _decode(self, data: bytes) -> Any:
        self._decoder = self._decoder or Decoder(self._body)
        try:
            return self._decoder.decode(data)
        except (DecodeError, RecursionError) as error:
            with suppress(DecodeError, RecursionError):  # in JSON, 3.0 is an integer too
                return convert(_with_integers(decode(data)), self._body)
            raise self._wrong(f"The body is wrong: {error}.") from error

    def _wrong(self, message: str) -> ApiError:
        code = self._endpoint.invalid or "invalid_request"
        return ApiError(400, code, message, "/openapi.json says what is expected.")


def _with_integers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_integers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_integers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


async def whole_body(request: Request, limit: int) -> bytes:
    """All of the body. Raises ApiError where it is too large or too slow, or cut off."""
    return b"".join([part async for part in _parts(request, limit)])


async def _parts(request: Request, limit: int) -> AsyncIterator[bytes]:
    size = 0
    too_large = ApiError(413, "too_large", f"The body has more than {limit:,} bytes.", "Send less.")
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared) > limit:
        raise too_large
    stream = request.stream()
    while True:
        try:
            with anyio.fail_after(BODY_SECONDS):
                part = await anext(stream)
        except StopAsyncIteration:
            return
        except ClientDisconnect as error:
            raise ApiError(400, "cut", "The body was cut off.", "Send it again.") from error
        except TimeoutError as error:
            raise ApiError(408, "too_slow", "The body came too slowly.", "Send it again.") from error
        size += len(part)
        if size > limit:
            raise too_large
        if part:
            yield part
