"""The same session by the client of the npm SDK, which others wrote in another language."""

import asyncio
import fcntl
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from acp import schema
from pydantic import TypeAdapter

from tests.interfaces.acp.editor import DEADLINE, shown
from tests.interfaces.acp.test_session import call
from tests.interfaces.cli.program import command, environment, run, script
from tests.interfaces.http.serving import serving
from tests.mcp.conformance import NODE_FOLDER, NPM
from tests.processes import gone, lasting

pytestmark = pytest.mark.anyio
HERE = Path(__file__).parent / "node"
UPDATES = TypeAdapter(list[schema.SessionNotification])


@pytest.fixture(scope="session")
def client() -> Path:
    """The client with the SDK that `package-lock.json` pins, installed once for all test runs."""
    folder = Path(sys.prefix) / "acp-client"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        marker, pinned = folder / "installed.json", (HERE / "package-lock.json").read_bytes()
        if not marker.is_file() or marker.read_bytes() != pinned:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / name, folder)
            quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
            subprocess.run([NODE_FOLDER / "node", NPM, "ci", *quiet], cwd=folder, check=True)
            marker.write_bytes(pinned)
        shutil.copy(HERE / "client.mjs", folder)
    return folder / "client.mjs"


async def drive(client: Path, folder: Path, model: str, *options: str, **wanted: Any) -> dict[str, Any]:
    """What the client saw while it did what is wanted."""
    given = {"allow": [], "prompts": [], "cwd": str(folder)} | wanted
    given["agent"] = command("acp", "--model", model, *options)
    words = [str(NODE_FOLDER / "node"), str(client), json.dumps(given)]
    with anyio.fail_after(DEADLINE):
        done = await anyio.run_process(words, cwd=folder, env=environment(), stderr=None)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def updates(saw: dict[str, Any]) -> list[dict[str, Any]]:
    found = UPDATES.validate_python([{"sessionId": "s", "update": each} for each in saw["updates"]])
    return shown([each.update for each in found])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    (made / "notes.txt").write_text("one\ntwo\n")
    return made


@pytest.mark.promise("ACP-1")
async def test_the_npm_client_drives_a_session_and_loads_it_again(
    tmp_path: Path, folder: Path, client: Path
) -> None:
    model = script(
        tmp_path,
        {
            "text": "Let me look.",
            "calls": [call("todos", todos=[{"text": "count"}]), call("read", path="notes.txt")],
        },
        {"calls": [call("edit", path="notes.txt", edits=[{"search": "two", "replace": "2"}], todo="t1")]},
        {"calls": [call("run", command="cat notes.txt")]},
        {"text": "Done."},
    )
    path = str(folder / "notes.txt")
    unsaved = {path: "one\ntwo\nthree, not saved\n"}
    saw = await drive(client, folder, model, prompts=["count"], allow=["edit"], buffers=unsaved)
    assert saw["stops"] == ["end_turn"]
    assert (folder / "notes.txt").read_text() == "one\n2\nthree, not saved\n"
    assert [each["kind"] for each in saw["asked"]] == ["edit", "execute"]
    read, edit, refused = [each for each in updates(saw) if "tool_call_id" in each]
    assert "three, not saved" in read["content"][0]["content"]["text"]
    assert edit["content"][0]["new_text"] == "one\n2\nthree, not saved\n"
    assert [each["status"] for each in (read, edit, refused)] == ["completed", "completed", "failed"]
    again = await drive(client, folder, model, load=saw["sessionId"])
    assert [each["sessionId"] for each in again["listed"]] == [saw["sessionId"]]
    mine, *replayed = updates(again)
    assert mine["text"] == "count"
    assert replayed == updates(saw)


@pytest.mark.promise("ACP-2")
async def test_the_npm_client_cancels_in_the_middle_of_a_command(
    tmp_path: Path, folder: Path, client: Path
) -> None:
    word = lasting()
    model = script(tmp_path, {"calls": [call("run", command=f"sleep {word}")]}, {"text": "never"})
    saw = await drive(client, folder, model, prompts=["wait"], allow=["execute"], cancelAt=word)
    assert saw["stops"] == ["cancelled"]
    assert await gone(word)


@pytest.mark.promise("ACP-7")
async def test_the_clients_question_is_closed_when_it_is_answered_elsewhere(
    tmp_path: Path, client: Path
) -> None:
    answers = ({"calls": [call("write", path="b.txt", text="new\n")]}, {"text": "written"})
    async with serving(tmp_path, *answers) as served:
        model = script(tmp_path, *answers)
        driving = asyncio.create_task(drive(client, served.folder, model, prompts=["write"], waits=True))
        with anyio.fail_after(DEADLINE):
            while not (sessions := (await served.get("/sessions"))["sessions"]):
                await anyio.sleep(0.05)
        session = sessions[0]["id"]
        await served.until(session, "approval_asked")
        asked = (await served.get(f"/sessions/{session}"))["approvals"][0]["approval_id"]
        await served.post(f"/sessions/{session}/approvals/{asked}", {"decision": "once"}, 202)
        saw = await driving
    assert saw["closed"] == 1
    assert saw["stops"] == ["end_turn"]
    assert (served.folder / "b.txt").read_text() == "new\n"
    assert "b.txt" in run("changes", "--session", session, cwd=served.folder).stdout
