"""The server: the API and the page of one or several workspaces, on one port."""

import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import anyio
from anyio.abc import TaskGroup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import Receive, Scope, Send

from handrail.app.app import Options
from handrail.interfaces.http.access import Access, Guard
from handrail.interfaces.http.api.models import Download
from handrail.interfaces.http.api.table import ENDPOINTS
from handrail.interfaces.http.connection import run_uvicorn
from handrail.interfaces.http.endpoint import Handler
from handrail.interfaces.http.errors import JSON, ApiError, error_response, not_found
from handrail.interfaces.http.openapi import openapi_document
from handrail.interfaces.http.workspaces import OpenWorkspace, open_workspaces
from handrail.protocol.errors import UsageProblem

DEFAULT_PORT = 8642
PORTS_TRIED = 20
CLOSE_SECONDS = 10.0
BACKLOG = 1_024
WebRoutes = Callable[["Server"], Sequence[BaseRoute]]


class Server:
    """What the routes share: the workspaces, and who may use them."""

    def __init__(self, workspaces: Mapping[str, OpenWorkspace], access: Access, tasks: TaskGroup) -> None:
        self.workspaces = workspaces
        self.access = access
        self.tasks = tasks
        self.download: Download | None = None

    @property
    def address(self) -> str:
        host = self.access.host
        shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
        return f"http://{shown}:{self.access.port}/"

    @property
    def address_with_token(self) -> str:
        return f"{self.address}?token={self.access.token}"

    def workspace(self, name: str = "") -> OpenWorkspace:
        """The workspace of this name; the only one when empty. Raises ApiError where there is none."""
        if found := self.workspaces.get(name):
            return found
        if not name and len(self.workspaces) == 1:
            return next(iter(self.workspaces.values()))
        known = ", ".join(self.workspaces)
        raise not_found(f"No workspace here is called {name!r}.", f"Use /api/w/NAME with one of: {known}.")

    async def reopen_all(self) -> bool:
        """Read settings and keys again; False where a turn runs, after which that workspace follows."""
        return all([await each.reopen() for each in self.workspaces.values()])

    def close(self) -> None:
        """End all event streams, so that connections can end."""
        for workspace in self.workspaces.values():
            workspace.feeds.close()


def create_app(server: Server, web_routes: WebRoutes) -> Starlette:
    """The ASGI application: the API below `/api`, all else by `web_routes`, called on first use."""
    pages = cache(lambda: Router(web_routes(server)))

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        await pages()(scope, receive, send)

    by_path: dict[str, dict[str, Handler]] = {}
    for endpoint in ENDPOINTS:
        for prefix in ("/api",) if endpoint.of_server else ("/api/w/{workspace}", "/api"):
            by_path.setdefault(prefix + endpoint.path, {})[endpoint.method] = Handler(endpoint, server)

    async def document(_request: Request) -> Response:
        return Response(openapi_document(tuple(server.workspaces)), media_type=JSON)

    app = Starlette(
        routes=[
            *(_route(path, handlers) for path, handlers in by_path.items()),
            Route("/openapi.json", document),
        ],
        middleware=[Middleware(Guard, access=server.access)],
        exception_handlers={HTTPException: _http_error, Exception: _crash},
    )
    app.router.default = page
    return app


def _route(path: str, handlers: Mapping[str, Handler]) -> Route:
    async def answer(request: Request) -> Response:
        return await handlers[request.method](request)

    route = Route(path, answer, methods=list(handlers))
    route.methods = set(handlers)  # without HEAD, which would follow events without an end
    return route


async def _http_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    advice = "/openapi.json lists what there is."
    code = {404: "not_found", 405: "wrong_method"}.get(error.status_code, "http")
    response = error_response(ApiError(error.status_code, code, error.detail, advice))
    response.headers.update(error.headers or {})
    return response


async def _crash(_request: Request, error: Exception) -> Response:
    text = f"Handrail has a bug: {type(error).__name__}."
    return error_response(ApiError(500, "bug", text, "The server's own output says more."))


def listen(host: str, port: int | None) -> socket.socket:
    """A socket that listens there: on the given port, else on the usual one or the next that is free."""
    ports = [port] if port is not None else range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TRIED)
    problem = OSError()
    for each in ports:
        # asyncio sends small answers at once (TCP_NODELAY) only where the protocol is named here: otherwise
        # each would wait 40 ms for the acknowledgement of its headers.
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            # A port whose last connections are still closing can be used; one with a server cannot.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((host, each))
            listening.listen(BACKLOG)
        except OSError as error:
            listening.close()
            problem = error
        else:
            return listening
    where = f"{host} port {port}" if port is not None else f"{host} ports {ports[0]} to {ports[-1]}"
    raise UsageProblem(f"The server cannot listen on {where}: {problem.strerror}. Choose another --port.")


@asynccontextmanager
async def open_server(
    roots: Sequence[Path], access: Access, options: Options, environ: Mapping[str, str] = os.environ
) -> AsyncIterator[Server]:
    """The server's workspaces, for as long as the block lasts."""
    async with anyio.create_task_group() as tasks:
        server = Server(open_workspaces(roots, tasks, options, environ), access, tasks)
        try:
            yield server
        finally:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                for workspace in server.workspaces.values():
                    await workspace.close()
            tasks.cancel_scope.cancel()


async def serve(
    listening: socket.socket, server: Server, web_routes: WebRoutes, started: Callable[[], None]
) -> None:
    """Answer requests until a signal ends it; then let running requests end."""
    ending = anyio.Event()

    async def end_on_signals() -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async for _ in signals:
                ending.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(end_on_signals)
        app = create_app(server, web_routes)
        await run_uvicorn(app, listening, started=started, ending=ending, end_streams=server.close)
        tasks.cancel_scope.cancel()
