"""The connection to a source: back-off, and a server that is started again."""

import os
from pathlib import Path

import anyio
import pytest
from mcp_types import ElicitResult
from msgspec.structs import replace

from handrail.app.app import Options, open_app
from handrail.tools.sources.connection import LONGEST_PAUSE, Connection
from handrail.tools.sources.launch import SourceFailed
from tests.processes import gone
from tests.tools.sources.places import own, words

pytestmark = pytest.mark.anyio


@pytest.mark.promise("SOURCE-22")
async def test_a_server_that_fails_is_started_again_after_longer_and_longer_pauses(tmp_path: Path) -> None:
    own(os.environ, command=words("ends at start"))
    now = 0.0
    async with open_app(Options(workspace=tmp_path)) as app, anyio.create_task_group() as tasks:
        opener, source = app.sources.opener, app.sources.folders.named("plain")
        launch, starts = opener.launch(source), list[float]()

        def open_server() -> object:
            starts.append(now)
            return opener.open_server(launch)

        connection = Connection(source, open_server, tasks, clock=lambda: now)  # type: ignore[arg-type]
        for step in range(20):
            now = float(step)
            with pytest.raises(SourceFailed, match="no configuration found"):
                await connection.list_tools()
    assert starts == [0, 1, 3, 7, 15]
    assert LONGEST_PAUSE == 60


async def test_a_source_that_waits_for_its_user_keeps_nobody_else_waiting_for_ever(tmp_path: Path) -> None:
    own(os.environ)
    asked, answered = anyio.Event(), anyio.Event()
    async with open_app(Options(workspace=tmp_path)) as app, anyio.create_task_group() as tasks:
        connection = (await app.sources.offered(app.sources.folders.named("plain"))).connection

        async def elicit(_params: object) -> ElicitResult:
            asked.set()
            with connection.waiting_for_user():
                await answered.wait()
            return ElicitResult(action="decline")

        async def say(progress: float, total: float | None, message: str | None) -> None: ...

        async def ask() -> None:
            result = await connection.call("ask", {}, say, elicit)
            assert "decline" in result.content[0].text

        tasks.start_soon(ask)
        await asked.wait()
        file = replace(connection.source.file, call_seconds=0.01)  # for those who wait
        connection.source = connection.source._replace(file=file)
        with pytest.raises(SourceFailed, match=r"busy with another call. Nothing was sent"):
            await connection.list_tools(again=True)
        answered.set()


async def test_a_server_is_closed_with_the_application_and_started_again_by_the_next_call(
    tmp_path: Path,
) -> None:
    own(os.environ, command=words("good", tmp_path))
    async with open_app(Options(workspace=tmp_path)) as app:
        source = app.sources.folders.named("plain")
        connection = (await app.sources.offered(source)).connection
        states = [connection.health.state]
        await connection.closed()
        assert [*states, connection.health.state] == ["ready", "stopped"]
        assert await gone(str(tmp_path))
        assert "echo" in (await app.sources.offered(source)).tools
    assert await gone(str(tmp_path))
