"""Handrail's own client as the conformance suite tests it: `serve` answers `forward.py`, one scenario each.

A scenario is a source: it is signed in at where it asks for that, its tools are listed, and each is called.
"""

import json
import traceback
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
from anyio.abc import SocketStream
from mcp.client import session

from handrail.app.app import App, Options, open_app
from handrail.tools.sources.connection import Connection, _import_library
from handrail.tools.sources.elicitation import Elicitation
from handrail.tools.sources.launch import SourceFailed
from handrail.tools.sources.oauth import sign_in
from handrail.tools.tool import Question
from tests.tools.sources.places import own

AT_A_TIME = 2
SAMPLES = {"string": "x", "integer": 2, "number": 3, "boolean": True, "array": [], "object": {}}


@asynccontextmanager
async def serve(folder: Path) -> AsyncIterator[Path]:
    """The socket on which scenarios are taken, a few at a time: each has time limits."""
    await anyio.to_thread.run_sync(_import_library)
    # On a busy machine its ten seconds are not enough to find out which era a server speaks.
    session.DISCOVER_TIMEOUT_SECONDS = 120.0
    few = anyio.CapacityLimiter(AT_A_TIME)
    path = folder / "client.socket"
    listener = await anyio.create_unix_listener(path)
    async with listener, anyio.create_task_group() as tasks:

        async def answer(stream: SocketStream) -> None:
            async with stream:
                given = json.loads(await stream.receive(1_000_000))
                place = (
                    folder
                    / given["scenario"].replace("/", "-")
                    / given["url"].rpartition(":")[2].partition("/")[0]
                )
                try:
                    async with few:
                        said = await run_scenario(
                            place, given["scenario"], given["url"], json.loads(given["context"])
                        )
                except Exception:  # noqa: BLE001 - the suite shows it
                    said = traceback.format_exc()
                await stream.send(said.encode() + b"\n")

        tasks.start_soon(listener.serve, answer)
        yield path
        tasks.cancel_scope.cancel()


async def run_scenario(folder: Path, scenario: str, url: str, context: Mapping[str, Any]) -> str:
    """What a user would see of it."""
    workspace = folder / "work"
    workspace.mkdir(parents=True, exist_ok=True)
    environ = {"HANDRAIL_HOME": str(folder / "home"), "HOME": str(folder), "PATH": ""}
    oauth = (
        {"client_id": context["client_id"], "client_secret": context["client_secret"]}
        if "client_secret" in context
        else {}
    )
    own(environ, "tested", url=url, call_seconds=20, **({"oauth": oauth} if oauth else {}))
    async with open_app(Options(workspace=workspace), environ) as app:
        if not scenario.startswith("auth/"):
            return await use(await app.sources.connection(app.sources.folders.named("tested")), context)
        return await use_signed_in(app, context)


async def use_signed_in(app: App, context: Mapping[str, Any]) -> str:
    source = app.sources.folders.named("tested")
    launch = app.sources.opener.launch(source)
    said = ""
    async with sign_in(launch, app.sources.opener.credentials, follow) as auth:
        connection = await app.sources.signing_in(source, launch, auth)
        said = await use(connection, context)
        await app.sources.forget("tested")
    return said


async def follow(address: str) -> None:
    """What a browser does with the address of a sign-in."""
    async with httpx2.AsyncClient(follow_redirects=True, timeout=60) as browser:
        await browser.get(address)


async def use(connection: Connection, context: Mapping[str, Any]) -> str:
    said = []
    try:
        tools = await connection.list_tools(again=True)
        calls = [(each["name"], each["arguments"]) for each in context.get("toolCalls", [])]
        for name, arguments in calls or [(tool.name, sample(tool.schema)) for tool in tools.values()]:
            said.append(await call(connection, name, arguments))
    except SourceFailed as problem:
        said.append(str(problem))
    return "\n".join(said)


async def call(connection: Connection, name: str, arguments: Mapping[str, Any]) -> str:
    async def say(progress: float, total: float | None, message: str | None) -> None:
        said.append(f"{progress} {total} {message}")

    async def ask(question: Question) -> str:
        """The user takes what is proposed, else the first of the choices."""
        said.append(question.text)
        return "" if "empty: " in question.text else question.options[0] if len(question.options) > 1 else "x"

    said = [f"{name} {json.dumps(arguments)}"]
    questions = Elicitation("tested", name, ask, connection.secrets)
    try:
        result = await connection.call(name, arguments, say, questions.answer)
        said.append(result.model_dump_json())
    except SourceFailed as problem:
        said.append(str(problem))
    return "\n".join(said)


def sample(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that fit the schema."""
    properties = schema.get("properties", {})
    return {name: SAMPLES.get(one.get("type", "string"), "x") for name, one in properties.items()}
