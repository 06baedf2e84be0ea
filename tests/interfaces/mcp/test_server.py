"""`handrail mcp` as another agent's program uses it: real processes, both eras of the protocol."""

import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import CallToolResult, ElicitResult

from tests.interfaces.cli.program import command, environment, run
from tests.interfaces.mcp.raw import RawClient

pytestmark = pytest.mark.anyio
DEADLINE = 60.0
ERAS = pytest.mark.parametrize("era", ["auto", "legacy"])
INTENTS = """intents:
  - id: INT-1
    name: The notes
    status: active
    owned_scope: [notes/**]
"""


@asynccontextmanager
async def client(
    workspace: Path, era: str = "auto", answer: ElicitResult | None = None, *options: str
) -> AsyncIterator[Client]:
    """A client of its own server process; `answer`: what its user says, None: it cannot ask."""
    first, *words = command("mcp", *options)
    server = StdioServerParameters(command=first, args=words, env=environment(), cwd=workspace)

    async def elicit(_context: object, params: Any) -> ElicitResult:
        asked.append(params.message)
        assert answer is not None
        return answer

    asked: list[str] = []
    given: dict[str, Any] = {"elicitation_callback": elicit} if answer else {}
    with anyio.fail_after(DEADLINE):
        async with Client(stdio_client(server), mode=era, **given) as talk:
            yield talk
    if answer:
        assert asked


def yes() -> ElicitResult:
    return ElicitResult(action="accept", content={"allow": True})


def replace(path: str, old: str, new: str, base: str) -> dict[str, Any]:
    change = {"form": "replace", "path": path, "edits": [{"search": old, "replace": new}], "base_hash": base}
    return {"changes": [change]}


async def call(talk: Client, name: str, **arguments: Any) -> dict[str, Any]:
    result = await talk.call_tool(name, arguments)
    assert not result.is_error, text_of(result)
    found: dict[str, Any] = result.structured_content or {}
    return found


def text_of(result: CallToolResult) -> str:
    return "".join(getattr(part, "text", "") for part in result.content)


async def refused(talk: Client, name: str, **arguments: Any) -> dict[str, Any]:
    result = await talk.call_tool(name, arguments)
    assert result.is_error
    found: dict[str, Any] = json.loads(text_of(result))
    return found


@pytest.mark.promise("MCPS-1")
@ERAS
async def test_an_edit_needs_the_hash_of_what_was_seen_and_is_undone_by_handrail(
    era: str, tmp_path: Path
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\n")
    async with client(tmp_path, era, None, "--mode", "edit") as talk:
        seen = await call(talk, "read", path="a.txt")
        assert seen["text"] == "1\tone"
        missing = await refused(talk, "edit_files", **replace("a.txt", "one", "two", ""))
        assert missing["reason"] == "no_hash"
        edited = await call(talk, "edit_files", **replace("a.txt", "one", "two", seen["hash"]))
        assert "+two" in edited["diff"]
        assert file.read_text() == "two\n"
        stale = await refused(talk, "edit_files", **replace("a.txt", "two", "three", seen["hash"]))
        assert stale["reason"] == "stale_file"
        (line,) = (await call(talk, "trace_blame", path="a.txt"))["lines"]
        assert (line["by"], line["change_id"]) == ("agent", edited["change_id"])
        again = replace("a.txt", "two", "three", edited["files"][0]["hash"])
        await call(talk, "edit_files", **again)
        listed = run("sessions", cwd=tmp_path).stdout
        assert "MCP: " in listed
        assert run("undo", cwd=tmp_path).returncode == 0  # while the client is connected
        assert file.read_text() == "two\n"


@pytest.mark.promise("MCPS-2")
@ERAS
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (yes(), ""),
        (ElicitResult(action="decline"), "user_rejected"),
        (ElicitResult(action="accept", content={"allow": False}), "user_rejected"),
        (None, "nobody_to_ask"),
    ],
)
async def test_what_needs_approval_is_asked_through_the_client_or_refused(
    era: str, answer: ElicitResult | None, reason: str, tmp_path: Path
) -> None:
    create = {"changes": [{"form": "create", "path": "new.txt", "text": "new\n"}]}
    async with client(tmp_path, era, answer) as talk:
        result = await talk.call_tool("edit_files", create)
        assert (tmp_path / "new.txt").exists() == (reason == "")
        if reason:
            assert json.loads(text_of(result))["reason"] == reason
        if reason == "nobody_to_ask":
            assert "--mode edit" in text_of(result)


@pytest.mark.promise("MCPS-3")
@ERAS
async def test_in_a_bound_workspace_edits_stay_in_the_scope_of_a_selected_intent(
    era: str, tmp_path: Path
) -> None:
    (tmp_path / ".orchestration").mkdir()
    (tmp_path / ".orchestration" / "active_intents.yaml").write_text(INTENTS)
    inside = {"changes": [{"form": "create", "path": "notes/a.txt", "text": "a\n"}]}
    outside = {"changes": [{"form": "create", "path": "src/a.txt", "text": "a\n"}]}
    async with client(tmp_path, era, None, "--mode", "edit") as talk:
        listed = await call(talk, "list_intents")
        assert (listed["bound"], [each["id"] for each in listed["intents"]]) == (True, ["INT-1"])
        assert (await call(talk, "check_intents"))["ok"]
        assert (await refused(talk, "edit_files", **inside))["reason"] == "missing_intent_id"
        assert (await refused(talk, "select_active_intent", intent_id="INT-9"))["reason"] == "unknown_intent"
        chosen = await call(talk, "select_active_intent", intent_id="INT-1")
        assert "notes/**" in chosen["context"]
        await call(talk, "edit_files", **inside)
        assert (await refused(talk, "edit_files", **outside))["reason"] == "scope_violation"
        assert (await refused(talk, "edit_files", **inside, intent_id="INT-9"))["reason"] == "unknown_intent"
        (line,) = (await call(talk, "trace_blame", path="notes/a.txt"))["lines"]
        assert line["intent_id"] == "INT-1"


@pytest.mark.promise("MCPS-8")
@pytest.mark.parametrize("tool", ["read", "trace_blame"])
async def test_a_file_that_may_hold_a_secret_is_not_shown_unasked(tool: str, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("API_KEY=of-this-test-alone\n")
    async with client(tmp_path) as talk:
        for path in (".env", "/etc/hostname", "../other.txt"):
            assert (await refused(talk, tool, path=path))["reason"] == "nobody_to_ask"
    async with client(tmp_path, answer=yes()) as talk:
        shown = await talk.call_tool(tool, {"path": ".env"})
        assert not shown.is_error
        assert "of-this-test-alone" not in text_of(shown)  # a secret that Handrail knows


@pytest.mark.promise("MCPS-4")
async def test_verification_is_structured_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The project has no environment of its own, so its pytest is the one on the PATH.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert 1 == 2\n")
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    async with client(tmp_path) as talk:
        found = await call(talk, "verify")
        assert found["status"] == "failed"
        assert any("test_it" in each["test"] for each in found["issues"])
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix) == ["pyproject.toml", "test_it.py"]


async def test_every_tool_has_schemas_and_says_what_it_may_do(tmp_path: Path) -> None:
    async with client(tmp_path) as talk:
        tools = {tool.name: tool for tool in (await talk.list_tools()).tools}
        for tool in tools.values():
            assert tool.input_schema["type"] == "object"
            assert tool.output_schema
            assert tool.annotations
        reads = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
        assert reads == {"list_intents", "check_intents", "read", "verify", "trace_blame"}
        assert {n for n, tool in tools.items() if tool.annotations and tool.annotations.destructive_hint} == {
            "edit_files"
        }
        wrong = await talk.call_tool("read", {"path": 7})
        assert wrong.is_error
        assert "path" in text_of(wrong)


@pytest.mark.promise("MCPS-5")
async def test_two_clients_edit_at_once_and_none_overwrites_what_it_has_not_seen(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\n")
    done: list[bool] = []

    async def edit(talk: Client, word: str, seen: str) -> None:
        result = await talk.call_tool("edit_files", replace("a.txt", "one", word, seen))
        done.append(not result.is_error)

    async with (
        client(tmp_path, "auto", None, "--mode", "edit") as one,
        client(tmp_path, "legacy", None, "--mode", "edit") as other,
    ):
        hashes = [(await call(each, "read", path="a.txt"))["hash"] for each in (one, other)]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(edit, one, "from one", hashes[0])
            tasks.start_soon(edit, other, "from other", hashes[1])
    assert sorted(done) == [False, True]
    assert file.read_text() in ("from one\n", "from other\n")


@pytest.mark.promise("MCPS-5")
async def test_a_server_that_is_killed_in_an_edit_leaves_all_of_it_or_nothing(tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    names = [f"f{number}.txt" for number in range(200)]
    changes = [{"form": "create", "path": name, "text": "new\n"} for name in names]
    raw = RawClient(workspace, "--mode", "edit")
    raw.initialize()
    raw.send("tools/call", name="edit_files", arguments={"changes": changes})
    raw.wait_for(lambda: any((workspace / name).exists() for name in names))
    raw.process.send_signal(signal.SIGKILL)
    raw.process.wait(DEADLINE)
    raw.close()
    async with client(workspace, "auto", None, "--mode", "edit") as talk:  # the next change finishes it first
        await call(talk, "edit_files", changes=[{"form": "create", "path": "next.txt", "text": "n\n"}])
    assert sum((workspace / name).exists() for name in names) in (0, len(names))


@pytest.mark.promise("MCPS-5")
@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe not UTF-8 \x00\n",
        b"{not JSON}\n",
        b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "read", "arguments": '
        b'{"path": "' + b"x" * 5_000_000 + b'"}}}\n',
        b"[" * 100_000 + b"\n",
    ],
)
def test_the_server_goes_on_after_a_message_that_is_none(line: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    raw = RawClient(tmp_path)
    raw.initialize()
    raw.write(line)
    answer = raw.call("read", path="a.txt")
    assert answer["result"]["structuredContent"]["text"] == "1\tone"
    raw.close()


@pytest.mark.promise("MCPS-5")
def test_a_client_that_disappears_ends_its_server_and_what_that_runs(tmp_path: Path) -> None:
    raw = RawClient(tmp_path)
    raw.initialize()
    raw.send("tools/call", name="verify", arguments={})
    raw.hang_up()
    assert raw.process.wait(DEADLINE) is not None
    raw.close()


def test_text_that_is_no_unicode_is_refused_as_an_argument(tmp_path: Path) -> None:
    raw = RawClient(tmp_path)
    raw.initialize()
    raw.write(
        b'{"jsonrpc": "2.0", "id": 90, "method": "tools/call", "params": {"name": "read", "arguments": '
        b'{"path": "\\ud800"}}}\n'
    )
    answer = raw.call("list_intents")
    assert answer["result"]["structuredContent"]["bound"] is False
    raw.close()
