"""HTTP/1.1 client: proxies, decompression, and library errors mapped to our own.

After the first bytes of an answer, a failed request may already be billed.
"""

import base64
import json
import os
import ssl
import sys
import zlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit

from handrail.protocol.errors import FixRequest, GiveUp, ModelProblem, RetryLater

if TYPE_CHECKING:
    import httpcore2


HTTP_LIBRARIES = ("httpcore2._exceptions", "h11")
UNSTARTED_PACKAGES = ("httpcore2", "httpcore2._async")
NEEDED_NAMES = {
    "_async.connection_pool": ("AsyncConnectionPool",),
    "_models": ("URL", "Proxy", "Request", "Response"),
    "_ssl": ("default_ssl_context",),
}
"""What a request uses of httpcore2, and where that is."""
DOWNLOAD_LIBRARY = "httpx2"
"""Only downloads files: if it was not imported, it cannot have failed."""
ERROR_ROOTS = (
    *("TimeoutException", "NetworkError", "ProtocolError", "ProxyError", "UnsupportedProtocol"),
    *("ConnectionNotAvailable", "HTTPError", "InvalidURL", "CookieConflict", "StreamError"),
)
UNREADABLE = (zlib.error, json.JSONDecodeError, UnicodeError, RecursionError)


def load_http_library() -> None:
    """Import what a request needs of httpcore2; everything else of it, once somebody asks for that.

    To import the package would also import its synchronous half, and read its version with the e-mail parser,
    which is half of the time.
    """
    with _loading:
        if UNSTARTED_PACKAGES[0] in sys.modules:
            return
        library, *_ = (_import_unstarted(name) for name in UNSTARTED_PACKAGES)
        for module, names in NEEDED_NAMES.items():
            found = import_module(f"{library.__name__}.{module}")
            for name in names:
                setattr(library, name, getattr(found, name))


_loading = RLock()


def _import_unstarted(name: str) -> ModuleType:
    """The package, whose own code runs when a name is used that nobody has set."""
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{name} is not installed", name=name)
    package, loader = module_from_spec(spec), spec.loader

    def start(attribute: str) -> object:
        with _loading:
            if attribute.startswith("__") and attribute not in ("__all__", "__version__"):
                raise AttributeError(attribute)
            if vars(package).pop("__getattr__", None):
                loader.exec_module(package)
            return getattr(package, attribute)

    vars(package)["__getattr__"] = start
    sys.modules[name] = package
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, package)
    return package


def library_errors() -> tuple[type[Exception], ...]:
    """Every error that HTTP, TLS, JSON and text decoding can raise below an adapter."""
    return (*_errors_named(*ERROR_ROOTS), ssl.SSLError, OSError, *UNREADABLE)


def _errors_named(*names: str) -> tuple[type[Exception], ...]:
    """The error classes with these names, from every loaded library."""
    there = (*HTTP_LIBRARIES, DOWNLOAD_LIBRARY) if DOWNLOAD_LIBRARY in sys.modules else HTTP_LIBRARIES
    loaded = [import_module(name) for name in there]
    return tuple(getattr(module, name) for module in loaded for name in names if hasattr(module, name))


def map_library_error(error: Exception, host: str, *, billed: bool) -> ModelProblem:
    """Our error for a library's. The library's text is left out where it could contain a key."""
    text = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    if _is_certificate(error):
        return GiveUp(
            f"This machine does not trust the certificate of {host}. "
            "Set SSL_CERT_FILE to the file with your organisation's certificates."
        )
    if isinstance(error, _errors_named("InvalidURL", "UnsupportedProtocol")):
        return _unusable_address(host)
    if isinstance(error, _errors_named("LocalProtocolError")):
        return FixRequest(
            f"The request to {host} cannot be sent: a header or the key has forbidden characters."
        )
    if isinstance(error, _errors_named("ProxyError")):
        return RetryLater(f"The proxy on the way to {host} failed: {text}", billed=billed)
    if isinstance(error, _errors_named("ConnectTimeout")):
        return RetryLater(f"{host} did not accept a connection in time.")
    if isinstance(error, _errors_named("ConnectError")):
        return RetryLater(f"{host} cannot be reached ({text}): is the address right, is it running?")
    if isinstance(error, (*_errors_named("DecodingError"), *UNREADABLE)):
        return RetryLater(f"{host} sent data that cannot be read ({type(error).__name__}).", billed=billed)
    if isinstance(error, _errors_named("TooManyRedirects", "CookieConflict", "HTTPStatusError")):
        return GiveUp(f"{host} answered in a way that is not understood ({type(error).__name__}).")
    if isinstance(error, library_errors()):
        return RetryLater(f"The connection to {host} broke ({text}).", billed=billed)
    raise error


def _is_certificate(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


DEFAULT_PORTS = {"http": 80, "https": 443}
PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")


class ProxyTarget(NamedTuple):
    scheme: str
    host: str
    port: int | None


def proxy_for(url: SplitResult) -> SplitResult | None:
    """The proxy for a URL, or None; raises ValueError if the configured one cannot be used."""
    # On other systems, the system settings may name one too.
    if sys.platform == "linux" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies

    named = getproxies()
    words = named.get(url.scheme) or named.get("all") or ""
    target = ProxyTarget(url.scheme, url.hostname or "", url.port or DEFAULT_PORTS.get(url.scheme))
    if not words or bypasses_proxy(target, named.get("no", "")):
        return None
    proxy = urlsplit(words if "://" in words else f"http://{words}")
    if proxy.scheme not in PROXY_SCHEMES or not proxy.hostname:
        raise ValueError(f"{proxy.scheme}://{proxy.hostname or ''} is none of {', '.join(PROXY_SCHEMES)}")
    return proxy


def bypasses_proxy(target: ProxyTarget, exceptions: str) -> bool:
    """Whether NO_PROXY applies: a star, domains, addresses and networks, with or without a port."""
    entries = [entry.strip().lower() for entry in exceptions.split(",")]
    return any(entry == "*" or _entry_matches(entry, target) for entry in entries if entry)


def _entry_matches(entry: str, target: ProxyTarget) -> bool:
    scheme, _, rest = entry.rpartition("://")
    if scheme not in {"", "all", target.scheme}:
        return False
    if "/" in rest or rest.count(":") > 1:
        return _address_matches(rest, target)
    domain, _, port = rest.partition(":")
    if port and port != str(target.port):
        return False
    domain = domain.removeprefix("*")
    return target.host == domain or target.host.endswith(f".{domain.removeprefix('.')}")


def _address_matches(entry: str, target: ProxyTarget) -> bool:
    """Whether an IP address (version 6 may be in brackets, with a port) or a network matches."""
    from ipaddress import ip_address, ip_network

    if entry.startswith("["):
        inside, _, behind = entry[1:].partition("]")
        if behind.startswith(":") and behind[1:] != str(target.port):
            return False
        entry = inside + (behind if behind.startswith("/") else "")
    try:
        return ip_address(target.host) in ip_network(entry, strict=False)
    except ValueError:
        return False  # a name, or a malformed entry, which other programs ignore too


SAFE_CHARACTERS = "/%:@!$&'()*+,;=~[]|^\\"
"""Characters of a path that are not escaped; a percent sign means the user escaped it already."""


class Response:
    """Status and headers of a response; its body is read in pieces."""

    def __init__(self, response: "httpcore2.Response") -> None:
        self.status = response.status
        self.headers: dict[str, str] = {}
        for raw, value in response.headers:
            name, text = raw.decode("latin-1").lower(), value.decode("utf-8", "replace")
            self.headers[name] = f"{self.headers[name]}, {text}" if name in self.headers else text

        # The body as it arrives, still compressed.
        self.pieces = response.aiter_stream
        # Returns the connection to the pool, or closes it if the body was not read to its end.
        self.aclose = response.aclose


class HttpClient:
    """Sends requests to one server. Raises the errors of `library_errors()`."""

    def __init__(self, base_url: str, headers: Mapping[str, str], *, by_proxy: bool) -> None:
        load_http_library()
        import httpcore2

        self._headers = headers
        url = _split(base_url)
        self._pool = httpcore2.AsyncConnectionPool(
            # A TLS context takes tens of milliseconds, and plain HTTP never uses one.
            ssl_context=httpcore2.default_ssl_context() if url.scheme == "https" else None,
            proxy=_proxy(url) if by_proxy else None,
            max_connections=None,
            keepalive_expiry=5.0,
        )

    async def send(
        self,
        method: str,
        url: str,
        query: Mapping[str, str],
        content: bytes | None,
        timeout: dict[str, float],
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Response:
        """The response, without its body. `timeout` has seconds for `connect`, `read`, `write` and `pool`."""
        import httpcore2

        split = _split(url)
        target = quote(split.path or "/", safe=SAFE_CHARACTERS)
        asked = urlencode(query) or quote(split.query, safe=f"{SAFE_CHARACTERS}?")
        target = f"{target}?{asked}" if asked else target
        request = httpcore2.Request(
            method,
            httpcore2.URL(scheme=split.scheme, host=_host(split), port=split.port, target=target),
            headers=list((self._request_headers(split, content) | dict(headers)).items()),
            content=content,
            extensions={"timeout": timeout},
        )
        return Response(await self._pool.handle_async_request(request))

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
        await self._pool.aclose()


def _split(url: str) -> SplitResult:
    split = urlsplit(url)
    try:
        _ = split.port, _host(split)
    except ValueError as error:
        raise _unusable_address(split.netloc.rpartition("@")[2]) from error
    return split


def _unusable_address(host: str) -> FixRequest:
    return FixRequest(f"The address of {host} cannot be used: check base_url of the connection.")


def _host(url: SplitResult) -> str:
    """The host in ASCII form; raises ValueError if it has none."""
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
            raise ValueError("SOCKS needs the Python package socksio")
        address = httpcore2.URL(scheme=proxy.scheme, host=_host(proxy), port=proxy.port, target="/")
    except ValueError as error:
        raise GiveUp(f"The proxy in your environment cannot be used: {error}") from error
    if not proxy.username and not proxy.password:
        return httpcore2.Proxy(address)
    login = (unquote(proxy.username or "").encode(), unquote(proxy.password or "").encode())
    return httpcore2.Proxy(address, auth=login)


CHUNK_BYTES = 64 * 1024


async def decompressed_body(response: Response, host: str) -> AsyncGenerator[bytes, None]:
    """The body in pieces of bounded size, however well it was compressed; raises zlib.error if damaged."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"identity", "gzip", "x-gzip", "deflate"}:
        raise GiveUp(
            f"{host} compressed its answer as {encoding[:40]!r}, which nobody asked for: "
            "check base_url of the connection, or the proxy in between."
        )
    inflater = zlib.decompressobj(32 + zlib.MAX_WBITS)  # gzip or zlib
    async with aclosing(response.pieces()) as raw:
        async for data in raw:
            if encoding == "identity":
                yield data
                continue
            rest = data
            # Called again even when all input is consumed: more output than one piece may be left.
            while piece := inflater.decompress(rest, CHUNK_BYTES):
                yield piece
                rest = inflater.unconsumed_tail


def idempotency_header(key: str, content: bytes) -> dict[str, str]:
    """The header by which a server can tell that it has been asked this before.

    The bytes are a part of it: servers refuse a key that comes again with another request.
    """
    return {"idempotency-key": sha256(f"{key}\0".encode() + content).hexdigest()[:40]} if key else {}
