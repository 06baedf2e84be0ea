"""`handrail audit`: what was sent, what came, and what was understood of it."""

import json
import os
import sqlite3
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.engine.conversation import write_settings
from tests.interfaces.cli.program import DEADLINE, command, environment, run, script, terminal
from tests.models.fake_server import FakeServer, Reply, Said
from tests.models.wires import FORMATS, WireFormat

KEY = "sk-secret-0123456789abcdef"
WRITE = Said(text=("I write \u00e9.",), calls=(("c1", "write", '{"path": "a.txt", "text": "a\\n"}'),))
OUTSIDE = Said(calls=(("c2", "write", '{"path": "../out.txt", "text": "a\\n"}'),))
DONE = Said(text=("Done.",))
ENDS = ("/messages", "/chat/completions")


def settings(server: FakeServer, wire: WireFormat) -> str:
    return f"""
[retries]
count = 1
[connections.mine]
protocol = "{wire.protocol}"
base_url = "{server.url}{wire.path}"
context_window = 32000
key_env = ["MINE_KEY"]
"""


def bytes_of(*arguments: str, cwd: Path) -> bytes:
    """What the command writes into a pipe."""
    return subprocess.run(
        command(*arguments), cwd=cwd, env=environment(), capture_output=True, timeout=DEADLINE, check=True
    ).stdout


def stored_files() -> bytes:
    """All that is in Handrail's home; stored contents also as they were before they were compressed."""
    home = Path(os.environ["HANDRAIL_HOME"])
    found = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
    (log,) = home.rglob("log.db")
    with sqlite3.connect(log) as db:
        found += [zlib.decompress(packed) for (packed,) in db.execute("SELECT data FROM blobs")]
    db.close()
    return b"\n".join(found)


@pytest.mark.promise("MOD-40")
@pytest.mark.parametrize("wire", FORMATS, ids=lambda wire: wire.protocol)
def test_audit_has_every_request_and_answer_to_the_byte(tmp_path: Path, wire: WireFormat) -> None:
    busy = Reply(b'{"error": {"message": "overloaded"}}', status=529, content_type="application/json")
    with FakeServer([busy, WRITE, OUTSIDE, DONE]) as server:
        write_settings(settings(server, wire))
        done = run(
            "run", "write a.txt", "--route", "agent", "--mode", "edit", "--model", "mine/test-model",
            cwd=tmp_path, MINE_KEY=KEY,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        sent = [asked for asked in server.requests if asked.path.endswith(ENDS)]
    assert any(KEY in value for asked in sent for value in asked.headers.values())
    answers = [busy.body, *map(wire.write, (WRITE, OUTSIDE, DONE))]
    for number, (asked, answer) in enumerate(zip(sent, answers, strict=True), start=1):
        assert bytes_of("audit", "--raw", str(number), cwd=tmp_path) == asked.body + b"\n" + answer
    listed: list[dict[str, Any]] = [
        json.loads(line) for line in run("audit", "--json", cwd=tmp_path).stdout.splitlines()
    ]
    assert [each["finish"] for each in listed] == ["failed", "tool_calls", "tool_calls", "stop"]
    assert [each["attempt"] for each in listed] == [1, 2, 1, 1]
    assert "overloaded" in listed[0]["problem"]
    assert listed[1]["usage"]["input_tokens"] == WRITE.input_tokens
    assert listed[1]["text"] == "I write \u00e9."
    assert listed[1]["edits"] == ["a.txt"]
    assert [call["status"] for call in listed[1]["calls"].values()] == ["ok"]
    assert [call["status"] for call in listed[2]["calls"].values()] == ["refused"]
    assert listed[2]["refusals"]
    shown = run("audit", cwd=tmp_path).stdout
    for words in ("mine/test-model", "tool_calls", "100 in", "edit       a.txt", "refused    write:"):
        assert words in shown
    raw = json.loads(run("audit", "--raw", "2", "--json", cwd=tmp_path).stdout)
    assert raw == {"number": 2, "request": sent[1].body.decode(), "answer": answers[1].decode()}
    assert sent[-1].body[-60:-2] in stored_files()
    assert KEY.encode() not in stored_files()


@pytest.mark.promise("MOD-40")
def test_terminal_gets_the_bytes_as_harmless_text(tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "red \x1b[31m\x1b]0;title\x07 text"})
    assert run("run", "hello", "--model", model, cwd=tmp_path).returncode == 0
    assert b"\\u001b[31m" in bytes_of("audit", "--raw", "1", cwd=tmp_path)
    with FakeServer([Reply(b"data: \x1b]0;title\x07 no JSON\n\n")]) as server:
        write_settings(settings(server, FORMATS[0]))
        run("run", "hello", "--model", "mine/test-model", cwd=tmp_path, MINE_KEY=KEY)
    assert b"\x1b]0;title" in bytes_of("audit", "--raw", "1", cwd=tmp_path)
    with terminal("audit", "--raw", "1", cwd=tmp_path) as screen:
        screen.expect("no JSON")
        assert "\x1b]0;title" not in screen.raw
        assert "^[]0;title" in screen.text


@pytest.mark.promise("MOD-40")
def test_number_that_is_not_there_and_a_session_without_requests_are_said(tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "Hello."})
    assert run("run", "hi", "--model", model, cwd=tmp_path).returncode == 0
    wrong = run("audit", "--raw", "7", cwd=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "no number 7" in wrong.stderr
    assert run("audit", "s_nowhere", cwd=tmp_path).returncode == 2


@pytest.mark.promise("MOD-40")
def test_audit_goes_with_an_exported_session(tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "One."}, {"text": "Two."})
    assert run("run", "hi", "--model", model, cwd=tmp_path).returncode == 0
    assert run("resume", "--message", "more", "--model", model, cwd=tmp_path).returncode == 0
    before = [bytes_of("audit", "--raw", number, cwd=tmp_path) for number in ("1", "2")]
    session = json.loads(run("sessions", "--json", cwd=tmp_path).stdout)["id"]
    other = tmp_path / "other"
    other.mkdir()
    assert run("export", session, str(tmp_path / "s.jsonl"), cwd=tmp_path).returncode == 0
    assert run("import", str(tmp_path / "s.jsonl"), cwd=other).returncode == 0
    assert [bytes_of("audit", "--raw", number, cwd=other) for number in ("1", "2")] == before
