"""Who may use the server: the token, the cookie, and the checks of `Host` and `Origin`.

A browser sends a request wherever a page tells it to. So nothing is answered before these checks pass, in
this order:

1. `Host` names this server. A page whose own name was made to point to our address (DNS rebinding) sends
   that name.
2. `Origin` and `Sec-Fetch-Site`, which a page cannot forge, name no other page.
3. The token, or the cookie that was set for it.
"""

import hmac
import ipaddress
import secrets
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from handrail.config.files import write_atomically
from handrail.config.open_file import open_file
from handrail.config.places import Places, make_private
from handrail.interfaces.http.errors import ApiError, error_response
from handrail.protocol.errors import ConfigProblem, UsageProblem

MAX_HEADER_BYTES = 32_000
TOKEN_BYTES = 32
MIN_TOKEN, MAX_TOKEN = 16, 1_000
SAFE_METHODS = ("GET", "HEAD")
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def stored_token(places: Places, *, renew: bool = False) -> str:
    """The user's token, made on first use. It is kept, so that an open page survives a restart."""
    path = make_private(places.data) / "server-token"
    try:
        if not renew and path.exists():
            return check_token(_read_private(path))
        token = secrets.token_urlsafe(TOKEN_BYTES)
        write_atomically(path, token.encode())
    except OSError as error:
        raise ConfigProblem(f"{path} cannot be used: {error.strerror}. Delete it, then try again.") from error
    return token


def check_token(token: str) -> str:
    if not MIN_TOKEN <= len(token) <= MAX_TOKEN or not all("!" <= character <= "~" for character in token):
        raise UsageProblem(
            f"A token has at least {MIN_TOKEN} visible characters of ASCII. Leave --token out to get one."
        )
    return token


def _read_private(path: Path) -> str:
    with open_file(path) as file:
        if file.found.st_mode & 0o077:
            raise ConfigProblem(f"{path} can be read by others. Start the server with --new-token.")
        return file.read(MAX_TOKEN).decode(errors="replace").strip()


class Access(NamedTuple):
    """What a request must show to be answered."""

    token: str
    host: str
    """The address that the server is bound to."""
    port: int

    @property
    def cookie_name(self) -> str:
        # Browsers send a cookie to all ports of a host.
        return f"handrail_{self.port}"

    @property
    def cookie(self) -> str:
        return hmac.digest(self.token.encode(), b"cookie", "sha256").hex()

    def knows_token(self, given: str) -> bool:
        return _same(given, self.token)

    def knows_cookie(self, given: str) -> bool:
        return _same(given, self.cookie)

    def allows_host(self, given: str) -> bool:
        name, port = _split(given)
        if port != str(self.port) and not (self.port == 80 and not port):
            return False
        if is_loopback(self.host):
            return name in LOOPBACK_NAMES
        # A rebound name is a name: an address cannot be rebound.
        return name in LOOPBACK_NAMES or name == self.host or _is_address(name)

    def allows_origin(self, headers: Headers) -> bool:
        """Whether the request comes from a page of ours, or from no page."""
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{headers.get('host')}":
            return False
        return headers.get("sec-fetch-site", "none") in ("same-origin", "none")


def is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host.strip("[]")).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _split(host: str) -> tuple[str, str]:
    name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    return (name, port) if name else (port, "")


def _same(given: str, known: str) -> bool:
    # Of equal length, so that the time says nothing about the token.
    return hmac.compare_digest(sha256(given.encode()).digest(), sha256(known.encode()).digest())


class Guard:
    """Refuses what `Access` does not allow, and adds the headers that every answer has."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # no WebSocket, and nothing to do at start and end

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        answer = self._check(scope)
        await (answer or self._app)(scope, receive, with_headers)

    def _check(self, scope: Scope) -> Response | None:
        headers, access = Headers(scope=scope), self._access
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADER_BYTES:
            return _refused(ApiError(431, "headers_too_large", "The headers are too large.", "Send less."))
        if len(headers.getlist("host")) != 1 or not access.allows_host(headers["host"]):
            return _refused(
                ApiError(
                    421, "wrong_host", "This server does not answer under that name.", "Use its own address."
                )
            )
        if not access.allows_origin(headers):
            return _refused(
                ApiError(403, "wrong_origin", "Another page sent this request.", "Use the server's own page.")
            )
        method, query = scope["method"], parse_qsl(scope["query_string"].decode("latin-1"))
        given = [value for name, value in query if name == "token"]
        if given and method in SAFE_METHODS and access.knows_token(given[0]):
            return self._signed_in(scope, query)
        if self._has_bearer(headers):
            return None
        if self._has_cookie(headers):
            # A form of another origin sends no other `Origin` in very old browsers: demand our own.
            if method in SAFE_METHODS or "origin" in headers or "sec-fetch-site" in headers:
                return None
            return _refused(
                ApiError(403, "no_origin", "The request does not say which page sent it.", "Send the token.")
            )
        problem = ApiError(
            401,
            "no_token",
            "The request has no valid token.",
            "Open the address that `handrail serve` printed, or send `Authorization: Bearer TOKEN`.",
        )
        if not scope["path"].startswith("/api/") and "text/html" in headers.get("accept", ""):
            return PlainTextResponse(f"{problem}\n{problem.advice}\n", 401)
        return _refused(problem)

    def _signed_in(self, scope: Scope, query: list[tuple[str, str]]) -> Response:
        """Set the cookie, and take the token out of the address before a page can see or keep it."""
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        path = "/" + scope["raw_path"].decode("latin-1").lstrip("/\\")
        response = Response(status_code=303, headers={"location": f"{path}?{rest}" if rest else path})
        response.set_cookie(
            self._access.cookie_name, self._access.cookie, path="/", httponly=True, samesite="strict"
        )
        return response

    def _has_bearer(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self._access.knows_token(given.strip())

    def _has_cookie(self, headers: Headers) -> bool:
        pairs = (
            each.strip().partition("=") for line in headers.getlist("cookie") for each in line.split(";")
        )
        return any(
            name == self._access.cookie_name and self._access.knows_cookie(value) for name, _, value in pairs
        )


def _refused(error: ApiError) -> Response:
    response = error_response(error)
    if error.status == 401:
        response.headers["www-authenticate"] = "Bearer"
    return response
