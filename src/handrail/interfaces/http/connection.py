"""Uvicorn, with limits on what a connection may do."""

import asyncio
import logging
import resource
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import h11
from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn import Server as Uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from handrail.interfaces.http.access import MAX_HEADER_BYTES

MAX_CONNECTIONS = 1_500
RESERVED_FILES = 200
"""Open files that are left for the log, the agent's commands and their output."""
HEADER_SECONDS = 20.0
KEEP_ALIVE_SECONDS = 30
END_SECONDS = 5


class LimitedConnection(H11Protocol):
    """A connection that is cut when headers come too slowly, and that its request can cut."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.app_state = {**self.app_state, "abort": transport.abort}
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        self._expect_headers()
        super().data_received(data)
        if self._answering:
            self._stop_deadline()

    def send_400_response(self, msg: str) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, h11.RemoteProtocolError) or error.error_status_hint == 400:
            super().send_400_response(msg)
            return
        head = f"HTTP/1.1 {error.error_status_hint} Refused\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        self.transport.write(head.encode())
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_deadline()
        super().connection_lost(exc)

    @property
    def _answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _expect_headers(self) -> None:
        if self._deadline is None and not self._answering:
            self._deadline = self.loop.call_later(HEADER_SECONDS, self.transport.abort)

    def _stop_deadline(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None


class EmbeddedUvicorn(Uvicorn):
    """Uvicorn that leaves signals to us, and says when it has started."""

    def __init__(self, config: Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = started

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()


def most_connections() -> int:
    """How many connections there may be at once; further ones are answered with 503."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if files < 0 else max(50, min(MAX_CONNECTIONS, files - RESERVED_FILES))


async def run_uvicorn(
    app: ASGIApp,
    listening: socket.socket,
    *,
    started: Callable[[], None],
    ending: anyio.Event,
    end_streams: Callable[[], None],
) -> None:
    """Serve until `ending`; then end the streams, and give requests a few seconds to finish."""
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    config = Config(
        app,
        http=LimitedConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=most_connections(),
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=END_SECONDS,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
    )
    uvicorn = EmbeddedUvicorn(config, started)

    async def end() -> None:
        await ending.wait()
        uvicorn.should_exit = True
        end_streams()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(end)
        await uvicorn.serve(sockets=[listening])
        tasks.cancel_scope.cancel()
