"""HTTP/1.1 to one server over a pool of connections, straight or by the proxy that the environment names."""

import base64
from collections.abc import AsyncGenerator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit

from handrail.models.proxies import proxy_for
from handrail.protocol.errors import FixRequest, GiveUp

if TYPE_CHECKING:
    import httpcore2

KEPT_SECONDS = 5.0
"""How long a connection is kept that nothing is asked on."""
PLAIN = "/%:@!$&'()*+,;=~[]|^\\"
"""What may stand in a path as it is. A percent sign: the user has escaped it already."""


class Reply:
    """The head of a server's answer; its body comes piece by piece."""

    def __init__(self, response: "httpcore2.Response") -> None:
        self._response = response
        self.status = response.status
        self.headers: dict[str, str] = {}
        for raw, value in response.headers:
            name, text = raw.decode("latin-1").lower(), value.decode("utf-8", "replace")
            self.headers[name] = f"{self.headers[name]}, {text}" if name in self.headers else text

    def pieces(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes, still compressed where it is."""
        return self._response.aiter_stream()

    async def aclose(self) -> None:
        """Let others have the connection, or close it where the body was not read to its end."""
        await self._response.aclose()


class HttpClient:
    """Requests to the server of one address. What fails is told by errors of `foreign.foreign_errors()`."""

    def __init__(self, base_url: str, headers: Mapping[str, str], *, by_proxy: bool) -> None:
        import httpcore2

        self._headers = headers
        url = _split(base_url)
        self._pool = httpcore2.AsyncConnectionPool(
            # A TLS context takes tens of milliseconds, and plain HTTP never uses one.
            ssl_context=httpcore2.default_ssl_context() if url.scheme == "https" else None,
            proxy=_proxy(url) if by_proxy else None,
            max_connections=None,
            keepalive_expiry=KEPT_SECONDS,
        )

    async def send(
        self,
        method: str,
        url: str,
        *,
        query: Mapping[str, str],
        content: bytes | None,
        timeout: Mapping[str, float],
    ) -> Reply:
        """The head of the answer. `timeout` has seconds for `connect`, `read`, `write` and `pool`."""
        import httpcore2

        split = _split(url)
        target = quote(split.path or "/", safe=PLAIN)
        asked = urlencode(query) or quote(split.query, safe=f"{PLAIN}?")
        request = httpcore2.Request(
            method,
            httpcore2.URL(
                scheme=split.scheme,
                host=_host(split),
                port=split.port,
                target=f"{target}?{asked}" if asked else target,
            ),
            headers=list(self._request_headers(split, content).items()),
            content=content,
            extensions={"timeout": dict(timeout)},
        )
        return Reply(await self._pool.handle_async_request(request))

    def _request_headers(self, url: SplitResult, content: bytes | None) -> dict[str, str]:
        host = _host(url)
        named = f"[{host}]" if ":" in host else host
        # Some servers want the host first.
        result = {"host": f"{named}:{url.port}" if url.port else named} | dict(self._headers)
        if content is not None:
            result |= {"content-type": "application/json", "content-length": str(len(content))}
        if url.username or url.password:
            login = f"{unquote(url.username or '')}:{unquote(url.password or '')}"
            result["authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
        return result

    async def aclose(self) -> None:
        """Give back the sockets."""
        await self._pool.aclose()


def _split(url: str) -> SplitResult:
    split = urlsplit(url)
    try:
        _ = split.port, _host(split)
    except ValueError as error:
        host = split.netloc.rpartition("@")[2]
        raise FixRequest(
            f"The address of {host} cannot be used: check base_url of the connection."
        ) from error
    return split


def _host(url: SplitResult) -> str:
    """The host as the name service knows it; raises ValueError where it has no such name."""
    host = url.hostname or ""
    if host.isascii():
        return host
    import idna

    return idna.encode(host).decode("ascii")


def _proxy(url: SplitResult) -> "httpcore2.Proxy | None":
    import httpcore2

    try:
        proxy = proxy_for(url)
        if proxy is None:
            return None
        if proxy.scheme.startswith("socks") and find_spec("socksio") is None:
            raise ValueError("for SOCKS the Python package socksio has to be installed")
        address = httpcore2.URL(scheme=proxy.scheme, host=_host(proxy), port=proxy.port, target="/")
    except ValueError as error:
        raise GiveUp(f"The proxy that the environment names cannot be used: {error}") from error
    if not proxy.username and not proxy.password:
        return httpcore2.Proxy(address)
    login = (unquote(proxy.username or "").encode(), unquote(proxy.password or "").encode())
    return httpcore2.Proxy(address, auth=login)
