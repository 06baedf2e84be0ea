"""The streamable HTTP transport, in bounded memory, with the sign-in of `oauth.py` where one is stored."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from handrail import __version__
from handrail.models.wire.http_client import proxy_for
from handrail.tools.sources.launch import Launch, SourceFailed

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 20.0
MAX_MESSAGE = 16_000_000
MAX_EVENT = 4_000_000
MAX_TRAFFIC = 64_000_000
"""Bytes that a server may send during one call, or between two."""
SIGN_IN = "`handrail sources auth {name}` signs in"


class HttpServer:
    """What is known about a server while its transport is open."""

    def __init__(self, launch: Launch, auth: "httpx2.Auth | None") -> None:
        self.launch = launch
        self.problem = ""
        self._auth = auth
        self._received = 0

    def begin_call(self) -> None:
        self._received, self.problem = 0, ""

    def count(self, size: int) -> None:
        """Raises SourceFailed where it has sent too much."""
        self._received += size
        if self._received > MAX_TRAFFIC:
            self.problem = f"it sent more than {MAX_TRAFFIC // 1_000_000} MB at once"
            raise SourceFailed(self.problem)

    async def _look_at(self, response: "httpx2.Response") -> None:
        """Remember why a request was refused: the library only says that it was."""
        to = str(response.request.url).rstrip("/")
        if to != self.launch.url.rstrip("/") or response.request.method != "POST":
            return
        if response.status_code in (401, 403) and self._auth is None:
            way = SIGN_IN.format(name=self.launch.source.name)
            self.problem = f"it refused the request with status {response.status_code}; {way}"
        elif response.status_code >= 500:
            self.problem = f"it answered with status {response.status_code}"

    @asynccontextmanager
    async def transport(self) -> AsyncIterator[tuple[Any, Any]]:
        """Streams of messages from and to the server."""
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        headers = {"user-agent": f"handrail/{__version__}", **self.launch.headers}
        timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)  # a call has a limit of its own
        async with (
            httpx2.AsyncClient(
                transport=_bounded(self),
                headers=headers,
                timeout=timeout,
                auth=self._auth,
                event_hooks={"response": [self._look_at]},
            ) as client,
            streamable_http_client(
                self.launch.url, http_client=client, max_sse_event_size=MAX_EVENT
            ) as streams,
        ):
            yield streams


def _bounded(server: HttpServer) -> "httpx2.AsyncBaseTransport":
    """A transport that counts what arrives, and takes only what is not compressed: that could grow."""
    import httpx2

    class Bounded(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            request.headers["accept-encoding"] = "identity"
            try:
                response = await super().handle_async_request(request)
            except httpx2.ConnectError as error:
                server.problem = f"{request.url.host} cannot be reached ({error})"
                raise
            if response.headers.get("content-encoding", "identity") != "identity":
                await response.aclose()
                server.problem = "it sent a compressed answer, which it was asked not to"
                raise httpx2.RemoteProtocolError(server.problem, request=request)
            response.stream = _Counted(response.stream, server)
            return response

    class _Counted(httpx2.AsyncByteStream):
        def __init__(self, stream: Any, server: HttpServer) -> None:
            self._stream, self._server, self._size = stream, server, 0

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for chunk in self._stream:
                self._server.count(len(chunk))
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    proxy = proxy_for(urlsplit(server.launch.url))
    return Bounded(retries=0, proxy=proxy.geturl() if proxy else None)
