"""The reference servers that others wrote, in the sandbox, as a user would define them."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.protocol.events import ToolFinished
from tests.engine.conversation import call, conversation
from tests.file_server import serving
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


@pytest.mark.promise("SOURCE-20")
async def test_time(tmp_path: Path) -> None:
    own(os.environ, command=[sys.executable, "-m", "mcp_server_time"], tools={"unasked": ["*"]})
    arguments = {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "UTC"}
    (converted,) = await used(tmp_path, {"tool": "convert_time", "arguments": arguments})
    assert "03:00" in converted.content


async def test_fetch_reaches_the_network_only_if_its_definition_says_so(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mcp_server_fetch", "--allow-private-ips"]
    (tmp_path / "page.txt").write_text("A page of this test.")
    with serving(tmp_path) as address:
        fetch = {"tool": "fetch", "arguments": {"url": f"{address}/page.txt", "raw": True}}
        own(os.environ, command=words, tools={"unasked": ["*"]}, network=True)
        (fetched,) = await used(tmp_path, fetch)
        assert "A page of this test." in fetched.content
        own(os.environ, command=words, tools={"unasked": ["*"]})
        (closed,) = await used(tmp_path, fetch)
    assert closed.status == "failed"
