"""Sign-in at HTTP sources: OAuth 2.1, authorization code with PKCE, and a redirect to this machine.

Tokens are stored among the user's credentials and refreshed before they expire. Only `handrail sources auth`
sends the user to a sign-in page; a call with an expired sign-in fails and says so.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import anyio
from anyio.abc import SocketAttribute, SocketStream
from msgspec import DecodeError
from msgspec.json import decode

from handrail.config.files import FileLock
from handrail.config.places import make_private
from handrail.protocol.values import to_json
from handrail.tools.secrets import sign_in_secrets
from handrail.tools.sources.launch import Credentials, Launch, SourceFailed, stored_as

if TYPE_CHECKING:
    import httpx2

SIGN_IN_NAME = "sign-in"
REDIRECT_PATH = "/callback"
EARLY_SECONDS = 30.0
"""A token is refreshed this long before it expires."""
REFRESH_SECONDS, POLL_SECONDS = 30.0, 0.05
REQUEST_BYTES, REQUEST_SECONDS = 16_000, 10.0
PAGE = (
    "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n"
    "content-security-policy: default-src 'none'\r\n\r\n{text}\n"
)


class _Callback(NamedTuple):
    """Where the browser brings the answer back to, and how to wait for it."""

    url: str
    wait: Callable[[], Awaitable[dict[str, str]]]


class TokenStore:
    """The sign-in of one source: tokens, the registered client and the server's endpoints, as one secret."""

    def __init__(self, launch: Launch, credentials: Credentials) -> None:
        self._name = stored_as(launch.source, SIGN_IN_NAME)
        self._url = launch.url
        self._credentials = credentials
        self._secrets = launch.secrets

    def read(self) -> dict[str, Any]:
        """What is stored; empty where the sign-in was at another address."""
        text = self._credentials.get(self._name)
        try:
            found = decode(text) if text else {}
        except DecodeError:
            return {}
        here = isinstance(found, dict) and found.get("url") == self._url
        return self._learned(found if here else {})

    def write(self, **values: Any) -> None:
        self._credentials.set(self._name, to_json(self._learned({**self.read(), **values, "url": self._url})))

    def _learned(self, sign_in: dict[str, Any]) -> dict[str, Any]:
        """The same; a server may repeat its tokens in an answer, and they are hidden there."""
        for part in sign_in_secrets(sign_in):
            self._secrets.learn(*part)
        return sign_in


class RequestLock:
    """One request at a time with this sign-in in this process, and one refresh at a time among processes."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._request = anyio.Lock()
        self._refresh: FileLock | None = None

    async def __aenter__(self) -> None:
        await self._request.acquire()

    async def __aexit__(self, *error: object) -> None:
        self.refreshed()
        self._request.release()

    async def read(self, read: Callable[[], Awaitable[None]], must_refresh: Callable[[], bool]) -> None:
        """Read the tokens; where they are too old, again, once no other process refreshes them."""
        await read()
        if must_refresh():
            await self._wait()
            await read()
            if not must_refresh():
                self.refreshed()

    async def _wait(self) -> None:
        self._refresh = FileLock(make_private(self._launch.cache))
        with anyio.move_on_after(REFRESH_SECONDS):
            while not self._refresh.try_lock():  # noqa: ASYNC110 - of another process
                await anyio.sleep(POLL_SECONDS)
            return
        name = self._launch.source.name
        raise SourceFailed(f"another process has been refreshing the sign-in at {name} for long; try again")

    def refreshed(self) -> None:
        if self._refresh:
            self._refresh.release()
        self._refresh = None


def has_sign_in(launch: Launch, credentials: Credentials) -> bool:
    return bool(TokenStore(launch, credentials).read().get("tokens"))


def stored_sign_in(launch: Launch, credentials: Credentials) -> "httpx2.Auth | None":
    """Authentication with the stored sign-in; None where none is stored."""
    if not has_sign_in(launch, credentials):
        return None

    async def expired(_url: str = "") -> Any:
        name = launch.source.name
        raise SourceFailed(
            f"the sign-in at {name} has expired; `handrail sources auth {name}` signs in again"
        )

    return _provider(launch, TokenStore(launch, credentials), "http://127.0.0.1:0/callback", expired, expired)


@asynccontextmanager
async def sign_in(
    launch: Launch, credentials: Credentials, show: Callable[[str], Awaitable[None]]
) -> "AsyncIterator[httpx2.Auth]":
    """Authentication that signs in anew: `show` gets the address that the user has to open."""
    store = TokenStore(launch, credentials)
    async with _callback_server() as callback:
        kept = store.read()
        # A client is registered with its redirect, whose port differs from that of the last time.
        store.write(
            tokens=None, client=None if not launch.source.file.oauth.client_id else kept.get("client")
        )

        async def answer() -> Any:
            from mcp.shared.auth import AuthorizationCodeResult

            given = await callback.wait()
            if error := given.get("error"):
                why = f"{error} {given.get('error_description', '')}".strip()
                raise SourceFailed(f"the sign-in was refused: {why[:200]}")
            return AuthorizationCodeResult(
                code=given.get("code", ""), state=given.get("state"), iss=given.get("iss")
            )

        yield _provider(launch, store, callback.url, show, answer)


def _provider(
    launch: Launch,
    store: TokenStore,
    redirect: str,
    show: Callable[[str], Awaitable[None]],
    answer: Callable[[], Awaitable[Any]],
) -> "httpx2.Auth":
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken
    from pydantic import AnyUrl

    class Stored(OAuthClientProvider):
        """Keeps with the tokens when they expire and where they are refreshed, which the library forgets.

        They are read again before each request, and once no other process refreshes them: a refresh token
        counts once, and the old ones are worth nothing then.
        """

        @property
        def _initialized(self) -> bool:
            return False

        @_initialized.setter
        def _initialized(self, value: bool) -> None: ...

        async def _initialize(self) -> None:
            await lock.read(self._read, self._must_refresh)

        async def _handle_refresh_response(self, response: "httpx2.Response") -> bool:
            try:
                return await super()._handle_refresh_response(response)
            finally:
                lock.refreshed()

        def _must_refresh(self) -> bool:
            return not self.context.is_token_valid() and self.context.can_refresh_token()

        async def _read(self) -> None:
            await super()._initialize()
            kept = store.read()
            if self.context.current_tokens:
                self.context.token_expiry_time = kept.get("expires_at")
            if kept.get("endpoints"):
                self.context.oauth_metadata = OAuthMetadata.model_validate(kept["endpoints"])

    class Storage:
        async def get_tokens(self) -> Any:
            tokens = store.read().get("tokens")
            return OAuthToken.model_validate(tokens) if tokens else None

        async def set_tokens(self, tokens: Any) -> None:
            metadata = provider.context.oauth_metadata
            lifetime = tokens.expires_in
            store.write(
                tokens=tokens.model_dump(mode="json", exclude_none=True),
                expires_at=time.time() + lifetime - EARLY_SECONDS if lifetime is not None else None,
                endpoints=metadata.model_dump(mode="json", exclude_none=True) if metadata else None,
            )

        async def get_client_info(self) -> Any:
            client = store.read().get("client")
            if client is None and (known := launch.source.file.oauth.client_id):
                secret = launch.client_secret
                client = {
                    "client_id": known,
                    "redirect_uris": [redirect],
                    "token_endpoint_auth_method": "client_secret_basic" if secret else "none",
                    **({"client_secret": secret} if secret else {}),
                }
            return OAuthClientInformationFull.model_validate(client) if client else None

        async def set_client_info(self, client_info: Any) -> None:
            store.write(client=client_info.model_dump(mode="json", exclude_none=True))

    metadata = OAuthClientMetadata(
        client_name="Handrail",
        redirect_uris=[AnyUrl(redirect)],
        grant_types=["authorization_code", "refresh_token"],
        token_endpoint_auth_method="none",  # noqa: S106 - the name of a method
        scope=" ".join(launch.source.file.oauth.scopes) or None,
    )
    provider = Stored(launch.url, metadata, Storage(), show, answer)
    lock = RequestLock(launch)
    provider.context.lock = lock  # type: ignore[assignment]
    return provider


@asynccontextmanager
async def _callback_server() -> AsyncIterator[_Callback]:
    """Listens on the loopback, on a free port, for the browser to come back once."""
    send, receive = anyio.create_memory_object_stream[dict[str, str]](1)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - of anyio

    async def serve(stream: SocketStream) -> None:
        async with stream:
            with anyio.move_on_after(REQUEST_SECONDS):
                given = await _read_query(stream)
                status = "200 OK" if given is not None else "404 Not Found"
                text = "You can close this page and go back to Handrail." if given else "Nothing is here."
                await stream.send(PAGE.format(status=status, text=text).encode())
                if given is not None:
                    try:
                        send.send_nowait(given)
                    except anyio.WouldBlock:
                        return  # it came twice

    async with listener, send, receive, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        try:
            yield _Callback(f"http://127.0.0.1:{port}{REDIRECT_PATH}", receive.receive)
        finally:
            tasks.cancel_scope.cancel()


async def _read_query(stream: SocketStream) -> dict[str, str] | None:
    """What the request for the redirect brings; None for any other request."""
    data = b""
    while b"\r\n\r\n" not in data and len(data) < REQUEST_BYTES:
        try:
            data += await stream.receive()
        except (anyio.EndOfStream, OSError):
            return None
    words = data.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    if len(words) != 3 or words[0] != "GET":
        return None
    parts = urlsplit(words[1])
    given = {name: values[0] for name, values in parse_qs(parts.query).items()}
    return given if parts.path == REDIRECT_PATH and given.get("state") else None
