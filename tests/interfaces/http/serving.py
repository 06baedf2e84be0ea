"""A real server on a random port of the loopback, in the test's own event loop, and clients of it."""

import json
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx2

from handrail.app.app import Options
from handrail.interfaces.http.access import Access
from handrail.interfaces.http.connection import run_uvicorn
from handrail.interfaces.http.server import Server, create_app, listen, open_server
from handrail.interfaces.web.routes import web_routes

TOKEN = "token-of-the-tests-0123456789"
DEADLINE = 60.0
Answer = dict[str, Any]


class Sent(NamedTuple):
    """One server-sent event."""

    name: str
    id: str
    data: dict[str, Any]

    @property
    def type(self) -> str:
        return str(self.data["event"]["type"]) if not self.name else self.name


class Served(NamedTuple):
    server: Server
    client: httpx2.AsyncClient
    folder: Path
    ending: anyio.Event

    @property
    def url(self) -> str:
        return self.server.address.rstrip("/")

    async def get(self, place: str, status: int = 200, /, **query: str) -> Any:
        return _json(await self.client.get(f"/api{place}", params=query), status)

    async def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        return _json(await self.client.post(f"/api{path}", json={} if body is None else body), status)

    async def patch(self, path: str, body: Any, status: int = 200) -> Any:
        return _json(await self.client.patch(f"/api{path}", json=body), status)

    async def put(self, path: str, body: Any, status: int = 200) -> Any:
        return _json(await self.client.put(f"/api{path}", json=body), status)

    async def delete(self, path: str, status: int = 200) -> Any:
        return _json(await self.client.delete(f"/api{path}"), status)

    async def session(self, **settings: str) -> str:
        return str((await self.post("/sessions", settings, 201))["id"])

    async def turn(self, session: str, text: str) -> list[Sent]:
        """Send a message, and wait until its turn has ended; the events of it."""
        sent = await self.post(f"/sessions/{session}/messages", {"text": text}, 202)
        return await self.until(session, "turn_finished", after=sent["seq"])

    async def until(self, session: str, type_: str, after: int = 0) -> list[Sent]:
        """All that is sent up to the first event of this type; resumes when the stream ends."""
        found: list[Sent] = []
        with anyio.fail_after(DEADLINE):
            while True:
                async with events(self.client, session, after=after) as stream:
                    async for sent in stream:
                        found.append(sent)
                        after = int(sent.id or after)
                        if sent.type == type_:
                            return found


def _json(response: httpx2.Response, status: int) -> Any:
    assert response.status_code == status, f"{response.request.url}: {response.text}"
    return response.json()


@asynccontextmanager
async def events(
    client: httpx2.AsyncClient, session: str, *, after: int = 0, last_id: str = ""
) -> AsyncIterator[AsyncIterator[Sent]]:
    """The session's events as a browser would read them."""
    headers = {"last-event-id": last_id} if last_id else {}
    path = f"/api/sessions/{session}/events"
    with anyio.fail_after(DEADLINE):
        async with client.stream("GET", path, params={"after": after}, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            assert response.headers["content-type"] == "text/event-stream"
            yield parsed(response.aiter_lines())


async def parsed(lines: AsyncIterator[str]) -> AsyncIterator[Sent]:
    name, number, data = "", "", ""
    async for line in lines:
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "id":
            number = value
        elif field == "data":
            data += value
        elif not line and data:
            yield Sent(name, number, json.loads(data))
            name, number, data = "", "", ""


def client_of(server: Server, **headers: str) -> httpx2.AsyncClient:
    """A client that sends the token and nothing else; `headers` adds to or replaces that."""
    sent = {"authorization": f"Bearer {TOKEN}"} | headers
    return httpx2.AsyncClient(base_url=server.address, headers=sent, timeout=DEADLINE)


@asynccontextmanager
async def closing_after(listening: socket.socket) -> AsyncIterator[None]:
    with listening:
        yield


@asynccontextmanager
async def serving(
    folder: Path, *answers: Answer, names: Sequence[str] = ("workspace",), model: str | None = None
) -> AsyncIterator[Served]:
    """A server for folders of these names, whose model gives these answers."""
    roots = [folder / name for name in names]
    for root in roots:
        root.mkdir(parents=True, exist_ok=True)
    script = folder / "script.json"
    script.write_text(json.dumps(list(answers)), encoding="utf-8")
    listening = listen("127.0.0.1", 0)
    access = Access(TOKEN, "127.0.0.1", listening.getsockname()[1])
    options = Options(roots[0], model=f"scripted/{script}" if model is None else model)
    started, ending = anyio.Event(), anyio.Event()
    async with (
        closing_after(listening),
        open_server(roots, access, options) as server,
        anyio.create_task_group() as tasks,
    ):

        async def run() -> None:
            app = create_app(server, web_routes)
            await run_uvicorn(app, listening, started=started.set, ending=ending, end_streams=server.close)

        tasks.start_soon(run)
        with anyio.fail_after(DEADLINE):
            await started.wait()
        try:
            async with client_of(server) as client:
                yield Served(server, client, roots[0], ending)
        finally:
            ending.set()
