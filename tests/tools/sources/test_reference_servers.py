"""The reference servers that others wrote, in the sandbox, as a user would define them."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.app.app import App, Options, open_app
from handrail.app.extensions.sources import try_source
from handrail.protocol.events import ToolFinished
from tests.engine.conversation import call, conversation
from tests.mcp.conformance import node_program
from tests.tools.sources.places import own

pytestmark = pytest.mark.anyio


async def used(folder: Path, *calls: Mapping[str, Any]) -> list[ToolFinished]:
    """What came of these calls of the source `plain`."""
    answers = [call("mcp", source="plain", **each) for each in calls]
    async with conversation(folder, [*answers, {"text": "done"}], mode="auto") as talk:
        await talk.turn("Go")
    return talk.all(ToolFinished)


@pytest.mark.promise("SOURCE-20")
async def test_filesystem(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("remember")
    server = node_program("mcp-server-filesystem")
    own(os.environ, command=[*server, "${WORKSPACE}"], tools={"unasked": ["*"]})
    read, written = await used(
        tmp_path,
        {"tool": "read_text_file", "arguments": {"path": str(tmp_path / "notes.txt")}},
        {"tool": "write_file", "arguments": {"path": str(tmp_path / "made.txt"), "content": "x"}},
    )
    assert "remember" in read.content
    assert written.status == "failed"  # the sandbox: its definition lets it write nothing
    assert not (tmp_path / "made.txt").exists()
    own(os.environ, command=[*server, "${WORKSPACE}"], tools={"unasked": ["*"]}, writes=["workspace"])
    answers = [
        call(
            "mcp",
            source="plain",
            tool="write_file",
            arguments={"path": str(tmp_path / "made.txt"), "content": "by the server"},
        ),
        {"text": "done"},
    ]
    async with conversation(tmp_path, answers, mode="auto") as talk:
        await talk.turn("Go")
        assert (tmp_path / "made.txt").read_text() == "by the server"
        changes = talk.app.state(talk.id).files.changed
    assert "made.txt" in changes  # recorded, as a command's changes are


async def test_everything(tmp_path: Path) -> None:
    own(os.environ, command=node_program("mcp-server-everything"), tools={"unasked": ["*"]})
    echo, image, structured = await used(
        tmp_path,
        {"tool": "echo", "arguments": {"message": "hello"}},
        {"tool": "get-tiny-image"},
        {"tool": "get-structured-content", "arguments": {"location": "New York"}},
    )
    assert "hello" in echo.content
    assert image.images
    assert "temperature" in structured.content


async def test_git(tmp_path: Path) -> None:
    await anyio.run_process(["git", "-C", str(tmp_path), "init", "-q"])
    (tmp_path / "new.txt").write_text("x")
    words = [sys.executable, "-m", "mcp_server_git", "--repository", "${WORKSPACE}"]
    own(os.environ, command=words, tools={"unasked": ["*"]})
    (status,) = await used(tmp_path, {"tool": "git_status", "arguments": {"repo_path": str(tmp_path)}})
    assert "new.txt" in status.content


@pytest.mark.parametrize("name", ["mcp_server_fetch", "mcp_server_time"])
async def test_fetch_and_time_start_and_list_their_tools(tmp_path: Path, name: str) -> None:
    own(os.environ, command=[sys.executable, "-m", name])

    async def tried(app: App) -> list[str]:
        found = await try_source(app, "plain")
        assert found.ok, found.problem
        return [tool.name for tool in found.tools]

    async with open_app(Options(workspace=tmp_path)) as app:
        assert {"mcp_server_fetch": "fetch", "mcp_server_time": "get_current_time"}[name] in await tried(app)
