"""`handrail serve` as a process: its address, its end, its death under a client that resumes."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import httpx2
import pytest

from tests.interfaces.cli.program import command, environment, run, script, terminal

DEADLINE = 60.0
SLOW = [f"word{number} " for number in range(200)]


class Serving:
    def __init__(self, process: "subprocess.Popen[str]", address: str) -> None:
        self.process = process
        self.base, _, self.token = address.partition("?token=")
        headers = {"authorization": f"Bearer {self.token}"}
        self.client = httpx2.Client(base_url=self.base, headers=headers, timeout=DEADLINE)

    def post(self, path: str, body: Any) -> Any:
        response = self.client.post(f"/api{path}", json=body)
        assert response.is_success, response.text
        return response.json()

    def events(self, session: str, last: int) -> Iterator[dict[str, Any]]:
        headers = {"last-event-id": str(last)}
        with self.client.stream("GET", f"/api/sessions/{session}/events", headers=headers) as response:
            assert response.status_code == 200
            for line in response.iter_lines():
                if line.startswith("data: ") and '"seq"' in line:
                    yield json.loads(line.removeprefix("data: "))

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=DEADLINE)


@contextmanager
def serve(*arguments: str, cwd: Path, stderr: IO[str] | None = None) -> Iterator[Serving]:
    words = command("serve", *arguments)
    process = subprocess.Popen(
        words, cwd=cwd, env=environment(), stdout=subprocess.PIPE, stderr=stderr, text=True
    )
    with process:
        try:
            assert process.stdout
            line = process.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
            assert found, line
            serving = Serving(process, found[0])
            with serving.client:
                yield serving
        finally:
            process.kill()


@pytest.mark.promise("HTTP-6")
def test_killed_server_is_replaced_under_a_client_that_misses_nothing(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    write = {"calls": [{"name": "write", "arguments": {"path": "new.txt", "text": "made\n"}}]}
    model = script(tmp_path, write, {"text": "Made it."}, {"text": SLOW, "chunk_delay_ms": 10})
    seen: list[dict[str, Any]] = []

    def follow(served: Serving, until: str) -> dict[str, Any]:
        for one in served.events(session, seen[-1]["seq"] if seen else 0):
            seen.append(one)
            if one["event"]["type"] == until:
                return dict(one["event"])
        raise AssertionError(f"the stream ended before {until}")

    with serve("--model", model, "--port", "0", cwd=workspace) as first:
        session = first.post("/sessions", {"route": "agent"})["id"]
        first.post(f"/sessions/{session}/messages", {"text": "make it"})
        asked = follow(first, "approval_asked")
        first.end(signal.SIGKILL)
    port = first.base.rstrip("/").rpartition(":")[2]
    with serve("--model", model, "--port", port, cwd=workspace) as second:
        assert (second.base, second.token) == (first.base, first.token)
        approval = f"/sessions/{session}/approvals/{asked['approval_id']}"
        with terminal("resume", "--model", model, session, cwd=workspace) as typed:
            typed.expect("allow?")
            second.post(approval, {"decision": "once"})
            assert follow(second, "turn_finished")["reason"] == "answered"
            typed.expect("Made it.")
            typed.type("and now slowly\r")
            follow(second, "request_started")
            typed.expect("word3 ")
            second.post(f"/sessions/{session}/cancel", {})
            assert follow(second, "turn_finished")["reason"] == "cancelled"
            typed.expect("cancelled")
        assert second.end(signal.SIGTERM) == 0
    assert (workspace / "new.txt").read_text() == "made\n"
    assert [one["seq"] for one in seen] == list(range(1, len(seen) + 1))


def test_usual_port_is_left_to_another_server_and_a_named_one_is_demanded(tmp_path: Path) -> None:
    with serve("--port", "0", cwd=tmp_path) as first:
        port = first.base.rstrip("/").rpartition(":")[2]
        ran = run("serve", "--port", port, cwd=tmp_path)
        assert ran.returncode == 2
        assert "Choose another --port" in ran.stderr
        assert first.end(signal.SIGINT) == 0


def test_folder_that_cannot_be_opened_is_reported_and_the_others_are_served(tmp_path: Path) -> None:
    for name in ("good", "bad"):
        (tmp_path / name / ".handrail").mkdir(parents=True)
    (tmp_path / "bad" / ".handrail" / "config.toml").write_text("nonsense = 1\n")
    errors = tmp_path / "errors.txt"
    with (
        errors.open("w") as stderr,
        serve("--port", "0", "good", "bad", cwd=tmp_path, stderr=stderr) as served,
    ):
        assert served.client.get("/api/w/bad/sessions").status_code == 409
        assert served.client.get("/api/w/good/sessions").status_code == 200
        assert served.end(signal.SIGTERM) == 0
    assert "bad cannot be opened" in errors.read_text()


@pytest.mark.promise("CONF-8")
def test_workspace_that_says_where_traces_go_is_served_without_them(tmp_path: Path) -> None:
    for name in ("good", "evil"):
        (tmp_path / name / ".handrail").mkdir(parents=True)
    settings = tmp_path / "evil" / ".handrail" / "config.toml"
    settings.write_text('[telemetry]\nendpoint = "http://127.0.0.1:9"\n')
    with serve("--port", "0", "good", "evil", cwd=tmp_path) as served:
        for name in ("good", "evil"):
            assert served.client.get(f"/api/w/{name}/sessions").status_code == 200
        assert served.end(signal.SIGTERM) == 0
    told = run("trust", cwd=tmp_path / "evil")
    assert "it would choose where traces of your work are sent" in told.stdout, told.stderr


@pytest.mark.promise("HTTP-1")
def test_another_address_needs_a_token_and_says_what_that_means(tmp_path: Path) -> None:
    ran = run("serve", "--host", "0.0.0.0", cwd=tmp_path)  # noqa: S104
    assert ran.returncode == 2
    assert "--token" in ran.stderr
    assert "other machines" in ran.stderr
    for token in ("short", "with a space in between"):
        ran = run("serve", "--host", "0.0.0.0", "--token", token, cwd=tmp_path)  # noqa: S104
        assert ran.returncode == 2
    ran = run("serve", str(tmp_path / "nothing"), cwd=tmp_path)
    assert (ran.returncode, "There is no folder" in ran.stderr) == (2, True)
