"""A small HTTP source with OAuth, both real: authorization code with PKCE, registration and refresh.

It is an MCP server of the library behind a check of tokens, and an authorization server on the same address.
"""

import base64
import hashlib
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode

import anyio
import httpx2
import uvicorn
from mcp.server import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send


class OAuthServer:
    def __init__(self, *, lifetime: int = 3_600) -> None:
        self.lifetime = lifetime
        """Seconds that an access token is valid."""
        self.url = ""
        self.clients: dict[str, list[str]] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.tokens: dict[str, float] = {}
        self.refresh: set[str] = set()
        self.issued: set[str] = set()
        """All access and refresh tokens."""
        self.refreshed = 0
        self.calls = 0
        self.last = ""
        """The token of the last request."""

    def token(self) -> dict[str, Any]:
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.tokens = {access: time.time() + self.lifetime}  # a new one ends the old one
        self.issued |= {access, refresh}
        self.refresh.add(refresh)
        return {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": self.lifetime,
            "refresh_token": refresh,
        }

    async def metadata(self, _request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/sign-in",
                "token_endpoint": f"{self.url}/tokens",
                "registration_endpoint": f"{self.url}/clients",
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
            }
        )

    async def resource(self, _request: Request) -> Response:
        return JSONResponse({"resource": f"{self.url}/mcp", "authorization_servers": [self.url]})

    async def register(self, request: Request) -> Response:
        given = await request.json()
        client = secrets.token_hex(8)
        self.clients[client] = given["redirect_uris"]
        return JSONResponse({**given, "client_id": client}, 201)

    async def authorize(self, request: Request) -> Response:
        """The user, who says yes at once."""
        given = dict(request.query_params)
        if given.get("redirect_uri") not in self.clients.get(given.get("client_id", ""), []):
            return Response("unknown client or redirect", 400)
        if given.get("code_challenge_method") != "S256":
            return Response("PKCE is needed", 400)
        code = secrets.token_urlsafe(16)
        self.codes[code] = given
        back = urlencode({"code": code, "state": given["state"]})
        return RedirectResponse(f"{given['redirect_uri']}?{back}", 302)

    async def tokens_endpoint(self, request: Request) -> Response:
        given = dict(parse_qsl((await request.body()).decode()))
        if given["grant_type"] == "refresh_token":
            if given["refresh_token"] not in self.refresh:
                return JSONResponse({"error": "invalid_grant"}, 400)
            self.refresh.remove(given["refresh_token"])
            self.refreshed += 1
            return JSONResponse(self.token())
        asked = self.codes.pop(given.get("code", ""), None)
        digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if asked is None or asked["code_challenge"] != proof:
            return JSONResponse({"error": "invalid_grant"}, 400)
        return JSONResponse(self.token())

    def expire(self) -> None:
        """All access tokens are too old from now on."""
        self.tokens.clear()

    def application(self) -> Starlette:
        server = MCPServer("guarded")

        @server.tool()
        def whoami() -> str:
            """Say who is signed in."""
            self.calls += 1
            return f"somebody with {self.last}"

        inner = server.streamable_http_app()

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            headers = {name.decode(): value.decode() for name, value in scope.get("headers", [])}
            token = headers.get("authorization", "").removeprefix("Bearer ")
            self.last = token
            if self.tokens.get(token, 0) > time.time():
                await inner({**scope, "path": "/mcp", "root_path": ""}, receive, send)
                return
            where = f'Bearer resource_metadata="{self.url}/.well-known/oauth-protected-resource/mcp"'
            await Response("sign in", 401, {"www-authenticate": where})(scope, receive, send)

        routes = [
            Route("/.well-known/oauth-authorization-server", self.metadata),
            Route("/.well-known/oauth-protected-resource/mcp", self.resource),
            Route("/clients", self.register, methods=["POST"]),
            Route("/sign-in", self.authorize),
            Route("/tokens", self.tokens_endpoint, methods=["POST"]),
            Mount("/mcp", guarded),
        ]

        @asynccontextmanager
        async def lifespan(_app: Starlette) -> AsyncIterator[None]:
            async with inner.router.lifespan_context(inner):
                yield

        return Starlette(routes=routes, lifespan=lifespan)


@asynccontextmanager
async def serving(server: OAuthServer) -> AsyncIterator[str]:
    """The address of the running server."""
    config = uvicorn.Config(server.application(), host="127.0.0.1", port=0, log_config=None, lifespan="on")
    running = uvicorn.Server(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(running.serve)
        with anyio.fail_after(60):
            while not running.started:
                await anyio.sleep(0.01)
        port = running.servers[0].sockets[0].getsockname()[1]
        server.url = f"http://127.0.0.1:{port}"
        try:
            yield f"{server.url}/mcp"
        finally:
            running.should_exit = running.force_exit = True


async def browser(address: str) -> None:
    """What a browser does with the address: it follows redirects, back to this machine."""
    async with httpx2.AsyncClient(follow_redirects=True) as client:
        answer = await client.get(address)
        assert answer.status_code == 200
        assert "close this page" in answer.text
