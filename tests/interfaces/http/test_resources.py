"""Everything else over HTTP: changes, intents, the record, agents, models, settings, files."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.app.models import SmallModel
from handrail.interfaces.http.api.models import Download, run_download
from handrail.models.embedded.download import DownloadProgress
from handrail.protocol.errors import FetchStopped, HandrailError
from tests.conftest import NO_SERVER
from tests.interfaces.http.serving import DEADLINE, Served, serving
from tests.models.fake_server import FakeServer, Reply, Said, anthropic_bytes
from tests.pipelines.agents import REPORT

pytestmark = pytest.mark.anyio


def write(path: str, text: str) -> dict[str, Any]:
    return {"calls": [{"name": "write", "arguments": {"path": path, "text": text}}]}


async def changed(served: Served) -> str:
    """A session whose first turn made `a.txt`."""
    session = await served.session(mode="edit", route="agent")
    await served.turn(session, "make it")
    return session


@pytest.mark.promise("HTTP-7")
async def test_change_is_shown_undone_and_redone_as_previewed(tmp_path: Path) -> None:
    async with serving(tmp_path, write("a.txt", "one\n"), {"text": "Done."}) as served:
        session = await changed(served)
        base, file = f"/sessions/{session}", served.folder / "a.txt"
        listed = (await served.get(f"{base}/changes"))["changes"]
        assert [(each["number"], each["status"]) for each in listed] == [(1, "applied")]
        assert "+one" in (await served.get(f"{base}/changes/1"))["diffs"][0]["diff"]
        assert "+one" in (await served.get(f"{base}/diff"))["files"][0]["diff"]
        preview = await served.post(f"{base}/rewind/preview", {"what": "undo"})
        assert [(each["path"], each["kind"]) for each in preview["files"]] == [("a.txt", "restore")]
        assert file.exists()
        outcome = await served.post(f"{base}/rewind", preview["command"])
        assert outcome["event"]["type"] == "rewound"
        assert not file.exists()
        preview = await served.post(f"{base}/rewind/preview", {"what": "redo"})
        assert (await served.post(f"{base}/rewind", preview["command"]))["event"]["type"] == "redone"
        assert file.read_text() == "one\n"
        await served.get(f"{base}/changes/99", 409)


@pytest.mark.promise("HTTP-7")
async def test_undo_of_a_file_that_the_user_edited_needs_a_decision(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(20))
    async with serving(tmp_path, write("a.txt", text), {"text": "Done."}) as served:
        (served.folder / "a.txt").parent.mkdir(exist_ok=True)
        session = await changed(served)
        (served.folder / "a.txt").write_text(text.replace("line 3", "mine"))
        base = f"/sessions/{session}"
        preview = await served.post(f"{base}/rewind/preview", {"what": "rewind", "change": "1"})
        assert preview["files"][0]["kind"] in ("merge", "conflict")
        outcome = await served.post(f"{base}/rewind", preview["command"])
        assert outcome["event"]["type"] == "rewind_refused"
        assert [each["path"] for each in outcome["event"]["conflicts"]] == ["a.txt"]
        assert "mine" in (served.folder / "a.txt").read_text()
        left = await served.post(
            f"{base}/rewind", preview["command"] | {"request_id": "r_2", "leave": ["a.txt"]}
        )
        assert left["event"]["type"] == "rewound"
        assert "mine" in (served.folder / "a.txt").read_text()


async def test_raw_answers_figures_and_disk_space_are_on_record(tmp_path: Path) -> None:
    async with serving(tmp_path, write("a.txt", "one\n"), {"text": "All done."}) as served:
        session = await changed(served)
        requests = (await served.get(f"/sessions/{session}/requests"))["requests"]
        assert [each["finish"] for each in requests] == ["tool_calls", "stop"]
        raw = await served.get(f"/sessions/{session}/requests/2")
        assert "make it" in raw["request"]
        assert "All done." in raw["answer"]
        assert raw["audited"]["text"] == "All done."
        for wrong, status in (("99", 409), ("0", 409), ("x", 404), ("-1", 404)):
            await served.get(f"/sessions/{session}/requests/{wrong}", status)
        found = await served.get("/requests", finish="stop", limit="1")
        assert [(each["session_id"], each["request"]["number"]) for each in found["requests"]] == [
            (session, 2)
        ]
        (day,) = (await served.get("/stats"))["days"]
        assert (day["turns"], day["requests"], day["input_tokens"]) == (1, 2, 20)
        assert (await served.get("/stats", session="s_other"))["days"] == []
        space = await served.get("/storage")
        assert space["sessions"] == 1
        assert space["all"]["contents"] > 0
        assert (await served.post("/storage/prune"))["contents"] == 0
        blamed = (await served.get("/trace/blame", path="a.txt"))["lines"]
        assert [(each["text"], each["author"]["session_id"]) for each in blamed] == [("one", session)]
        assert (await served.get("/trace/report"))["total"]["lines"] == 1
        assert (await served.get(f"/sessions/{session}/pipeline")) == {"current": None, "paused": None}


async def test_disk_space_is_counted_after_answers_of_stages(tmp_path: Path) -> None:
    async with serving(tmp_path, {"text": "Hello."}) as served:
        session = await served.session(route="chat")
        await served.turn(session, "hi")
        assert (await served.get("/storage"))["spare"]["contents"] > 0


async def test_intents_are_made_checked_and_traced(tmp_path: Path) -> None:
    async with serving(tmp_path, write("src/a.txt", "one\n"), {"text": "Done."}) as served:
        assert not (await served.get("/intents"))["used"]
        await served.get("/intent-check", 409)
        one = {"id": "INT-1", "name": "Cart", "scope": ["src/**"], "template": "bugfix"}
        assert (await served.post("/intents", one, 201))["scope"] == ["src/**"]
        await served.post("/intents", {"id": "INT-2", "scope": ["src/a.txt"]}, 201)
        (clash,) = (await served.get("/intent-check"))["conflicts"]
        assert {clash["one"], clash["other"]} == {"INT-1", "INT-2"}
        accepted = await served.post("/intent-check/accept", {"one": "INT-1", "other": "INT-2"})
        assert accepted["conflicts"] == []
        session = await served.session(mode="edit", route="agent", intent="INT-1")
        await served.turn(session, "make it")
        shown = await served.get("/intents/INT-1")
        assert [(each["session_id"], each["files"]) for each in shown["changes"]] == [
            (session, ["src/a.txt"])
        ]
        done = await served.patch("/intents/INT-1", {"key": "status", "value": "done", "why": "shipped"})
        assert done["status"] == "done"
        board = await served.get("/intents")
        assert [(each["intent"]["id"], each["done"]) for each in board["intents"]] == [
            ("INT-1", True),
            ("INT-2", False),
        ]
        assert (await served.get("/intents/INT-1"))["edits"][-1]["why"] == "shipped"
        await served.get("/intents/INT-9", 404)
        await served.post("/sessions", {"intent": "INT-9"}, 409)


async def test_agents_of_the_workspace_are_shown_trusted_and_run(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    shutil.copytree(REPORT / "agent", workspace / "agents" / "report")
    async with serving(tmp_path, {"text": "{}"}) as served:
        agent, built_in = (await served.get("/agents"))["agents"]
        assert (built_in["name"], built_in["state"]) == ("research", "built in")
        assert (agent["name"], agent["state"]) == ("report", "untrusted")
        shown = await served.get("/agents/report")
        assert shown["problem"] == ""
        assert shown["stages"]
        await served.get("/agents/nothing", 404)
        report = await served.get("/trust")
        hashes = {each["name"]: each["sha256"] for each in report["agents"]}
        stale = await served.post("/trust", {"agents": {"report": "0" * 64}}, 409)
        assert stale["error"]["code"] == "changed"
        trusted = await served.post("/trust", {"agents": hashes})
        assert trusted["agents"] == []
        session = await served.session(route="report")
        await served.turn(session, "what is it?")
        (run,) = (await served.get("/runs", agent="report"))["runs"]
        assert run["session_id"] == session
        assert (await served.get(f"/runs/{run['run_id']}"))["events"][0]["event"]["type"] == "run_started"
        await served.get("/runs/run_none", 404)
        assert [each["name"] for each in (await served.delete("/trust"))["agents"]] == ["report"]


async def test_setting_is_saved_and_counts_at_once(tmp_path: Path, home: Path) -> None:
    async with serving(tmp_path, {"text": "Hi."}) as served:
        session = await served.session()
        await served.turn(session, "hello")
        rows = {each["key"]: each for each in (await served.get("/settings"))["settings"]}
        assert (rows["mode"]["value"], rows["mode"]["where"]) == ("ask", "default")
        saved = await served.put("/settings/mode", {"value": "edit"})
        assert (saved["value"], saved["applied"]) == ("edit", True)
        assert 'mode = "edit"' in (home / "handrail" / "config.toml").read_text()
        assert (await served.get(f"/sessions/{await served.session()}"))["mode"] == "edit"
        assert (await served.put("/settings/mode", {"value": "x"}, 409))["error"]["code"] == "config"
        await served.put("/settings/nothing", {"value": "x"}, 404)
        await served.put("/settings/connections", {"value": "x"}, 404)


async def test_setting_counts_after_the_turn_that_runs(tmp_path: Path) -> None:
    slow = {"text": [f"word{number} " for number in range(50)], "chunk_delay_ms": 10}
    async with serving(tmp_path, slow) as served:
        session = await served.session()
        sent = await served.post(f"/sessions/{session}/messages", {"text": "go"}, 202)
        await served.until(session, "delta", after=sent["seq"])
        assert not (await served.put("/settings/mode", {"value": "edit"}))["applied"]
        with anyio.fail_after(DEADLINE):
            ended = (await served.until(session, "turn_finished", after=sent["seq"]))[-1]
            assert ended.data["event"]["reason"] == "answered"
            while (await served.get("/workspace"))["mode"] != "edit":
                await anyio.sleep(0.02)


async def test_first_model_is_set_up_by_a_key_or_a_server(tmp_path: Path, home: Path) -> None:
    (home / "handrail").mkdir(mode=0o700)
    refused = Reply(b'{"error": {"message": "bad key"}}', status=401, content_type="application/json")
    with FakeServer([refused, Reply(anthropic_bytes(Said(("ok",))))]) as fake:
        settings = f'{NO_SERVER}[connections.anthropic]\nbase_url = "{fake.url}"\n'
        (home / "handrail" / "config.toml").write_text(settings)
        async with serving(tmp_path, model="") as served:
            before = await served.get("/models")
            assert (before["model"], before["servers"]) == ("", [])
            assert before["problem"].startswith("There is no model")
            assert before["small"]["bytes"] > 1_000_000_000
            error = (await served.post("/models/key", {"key": "no-known-form"}, 409))["error"]
            assert "anthropic" in error["advice"]
            key = {"key": "sk-ant-test-0123456789"}
            error = (await served.post("/models/key", key, 409))["error"]
            assert "not stored" in error["message"]
            assert not (home / "handrail" / "credentials.json").exists()
            after = await served.post("/models/key", key)
            assert after["model"].startswith("anthropic/")
            assert (await served.get("/credentials"))["names"] == ["model/anthropic"]
            chosen = await served.put("/models/main", {"model": "anthropic/claude-other"})
            assert chosen["model"] == "anthropic/claude-other"
            await served.put("/models/main", {"model": "nobody/knows"}, 409)


async def test_doctor_and_workspace_say_what_is_here(tmp_path: Path) -> None:
    async with serving(tmp_path, {"text": "ok"}) as served:
        findings = {each["name"]: each["level"] for each in (await served.get("/doctor"))["findings"]}
        assert findings["version"] == "ok"
        assert findings["model"] == "ok"
        assert (await served.get("/workspace"))["path"] == str(served.folder)


@pytest.mark.promise("HTTP-8")
async def test_only_text_of_the_workspace_is_shown_and_no_secret(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        (tmp_path / "outside.txt").write_text("outside")
        (served.folder / "src").mkdir()
        (served.folder / "src" / "cart.py").write_text("x = 1\n")
        (served.folder / ".env").write_text("KEY=secret\n")
        (served.folder / "link.txt").symlink_to(tmp_path / "outside.txt")
        assert (await served.get("/file", path="src/cart.py"))["text"] == "x = 1\n"
        refused = [
            "../outside.txt",
            str(tmp_path / "outside.txt"),
            "link.txt",
            ".env",
            "nothing",
            "src",
            "a\0b",
        ]
        for path in refused:
            assert (await served.get("/file", 409, path=path))["error"]["code"] in ("path", "usage"), path
        assert (await served.get("/files", typed="cart"))["paths"] == ["src/cart.py"]
        assert (await served.get("/files", typed="../"))["paths"] == []
        await served.get("/trace/blame", 409, path="../outside.txt")


@pytest.mark.promise("CTX-7")
async def test_mentions_are_completed_as_in_the_terminal(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        (served.folder / "data").mkdir()
        await served.post("/tasks", {"title": "Round totals"}, 201)

        async def offered(typed: str, **query: str) -> list[tuple[str, str]]:
            found = (await served.get("/mentions", typed=typed, **query))["mentions"]
            return [(each["text"], each["note"]) for each in found]

        assert ("data/", "") in await offered("d")
        assert [text for text, _ in await offered("di")] == ["diff"]
        assert await offered("task:") == [("task:1", "Round totals")]
        assert ("research", "agent") in await offered("res", first="true")
        assert await offered("res") == []


async def test_folder_that_cannot_be_opened_says_why_until_it_can(tmp_path: Path, home: Path) -> None:
    (home / "handrail").mkdir(mode=0o700)
    settings = home / "handrail" / "config.toml"
    settings.write_text("nonsense = 1\n")
    async with serving(tmp_path, {"text": "Hi."}) as served:
        error = (await served.get("/sessions", 409))["error"]
        assert error["code"] == "config"
        assert "nonsense" in error["message"]
        settings.write_text("")
        assert (await served.get("/sessions"))["sessions"] == []


class ReadModel(SmallModel):
    """A small model whose file arrives as the test says."""

    def __init__(self, problem: HandrailError | None) -> None:
        super().__init__()
        self.problem = problem
        self.told, self.go_on = anyio.Event(), anyio.Event()

    async def download(self, progress: Callable[[DownloadProgress], None]) -> Path:
        progress(DownloadProgress(7, 10, "test"))
        self.told.set()
        await self.go_on.wait()
        if self.problem:
            raise self.problem
        return Path("model")


@pytest.mark.parametrize("problem", [None, FetchStopped("The disk is full. Free some space.")])
async def test_download_says_how_far_it_is_and_how_it_ended(
    tmp_path: Path, problem: HandrailError | None
) -> None:
    async with serving(tmp_path) as served:
        assert (await served.get("/models/small"))["state"] == "none"
        model, server = ReadModel(problem), served.server
        server.download = Download(anyio.CancelScope())
        server.tasks.start_soon(run_download, server, model, server.download)
        with anyio.fail_after(DEADLINE):
            await model.told.wait()
            now = await served.get("/models/small")
            assert (now["state"], now["downloaded"]) == ("downloading", 7)
            model.go_on.set()
            while (now := await served.get("/models/small"))["state"] == "downloading":
                await anyio.sleep(0.01)
        assert now["state"] == ("failed" if problem else "done")
        assert now["problem"] == (str(problem) if problem else "")


async def test_stopped_download_can_be_started_again(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        model, server = ReadModel(None), served.server
        server.download = Download(anyio.CancelScope())
        server.tasks.start_soon(run_download, server, model, server.download)
        with anyio.fail_after(DEADLINE):
            await model.told.wait()
            await served.delete("/models/small/download")
            while (now := await served.get("/models/small"))["state"] == "downloading":
                await anyio.sleep(0.01)
        assert now["state"] == "failed"
        assert "kept" in now["problem"]
