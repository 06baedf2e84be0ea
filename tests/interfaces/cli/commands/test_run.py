"""`handrail run`: one turn, its output and its exit status."""

import base64
import hashlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.cli.program import DEADLINE, command, environment, run, script, terminal
from tests.models.fake_server import FakeServer, Reply, Said
from tests.models.wires import FORMATS, WireFormat
from tests.pictures import png


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "cart.py").write_text("def total():\n    return 1\n")
    return folder


def edit_call(workspace: Path) -> dict[str, Any]:
    """A call that changes cart.py as it is now."""
    digits = hashlib.sha256((workspace / "cart.py").read_bytes()).hexdigest()[:12]
    edits = [{"search": "return 1", "replace": "return 2"}]
    return {"name": "edit", "arguments": {"path": "cart.py", "base_hash": digits, "edits": edits}}


READ = {"text": "I look.", "calls": [{"name": "read", "arguments": {"path": "cart.py"}}]}


def test_the_answer_is_on_stdout_and_progress_on_stderr(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, READ, {"text": "It returns **1**.\n"})
    done = run("run", "what does it return?", "--model", model, cwd=workspace)
    assert (done.returncode, done.stdout) == (0, "It returns **1**.\n")
    assert "read      cart.py" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


def test_in_a_terminal_what_goes_on_has_a_clock_and_leaves_no_trace(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "one two three four five", "chunk_delay_ms": 600})
    with terminal("run", "count", "--model", model, cwd=workspace, NO_COLOR="1") as shown:
        shown.expect("  answering ")
        shown.expect("one two three four five")
        assert shown.end() == 0
        last = shown.raw.rpartition("\r\x1b[K")[2]
    assert "answering" not in last
    assert "one two three four five" in last


@pytest.mark.promise("TERM-6")
def test_json_is_one_event_a_line(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, READ, {"text": "Done."})
    done = run("run", "look", "--json", "--model", model, cwd=workspace)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert [event["type"] for event in events] == [
        "session_started",
        "user_message",
        "turn_started",
        "run_started",
        "stage_started",
        "request_started",
        "answer_received",
        "answered",
        "tool_started",
        "tool_finished",
        "request_started",
        "answer_received",
        "answered",
        "stage_completed",
        "run_completed",
        "turn_finished",
    ]
    assert all(event["at"] > 0 for event in events)
    assert events[1]["text"] == "look"


def test_the_task_may_come_from_stdin(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "ok"})
    done = run("run", "-", "--json", "--model", model, cwd=workspace, stdin="first line\nsecond ü\n")
    message = json.loads(done.stdout.splitlines()[1])
    assert message["text"].startswith("first line\nsecond ü")


@pytest.mark.promise("TERM-5")
def test_what_would_be_asked_is_refused_and_the_status_says_so(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, READ, {"calls": [edit_call(workspace)]}, {"text": "I could not."})
    done = run("run", "change it", "--model", model, cwd=workspace)
    assert (done.returncode, done.stdout) == (3, "I could not.\n")
    assert "nobody_to_ask" in done.stderr
    assert "return 1" in (workspace / "cart.py").read_text()


def test_a_mode_that_allows_it_does_it(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, READ, {"calls": [edit_call(workspace)]}, {"text": "Done."})
    done = run("run", "change it", "--mode", "edit", "--model", model, cwd=workspace)
    assert done.returncode == 0
    assert "return 2" in (workspace / "cart.py").read_text()
    assert "2 +     return 2" in done.stderr


def test_a_failed_turn_says_why_and_is_status_1(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, {"error": {"kind": "authenticate", "message": "The key was refused."}})
    done = run("run", "hi", "--model", model, cwd=workspace)
    assert (done.returncode, done.stdout) == (1, "")
    assert "The key was refused." in done.stderr


def test_a_wrong_key_is_told_with_what_to_do(workspace: Path, home: Path) -> None:
    body = b'{"error": {"message": "invalid x-api-key", "type": "authentication_error"}}'
    with FakeServer([Reply(body, status=401, content_type="application/json")] * 3) as server:
        settings = home / "handrail" / "config.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(f'[connections.mine]\nbase_url = "{server.url}/v1"\nkey_env = ["MINE_KEY"]\n')
        done = run("run", "hi", "--model", "mine/some-model", cwd=workspace, MINE_KEY="wrong-key")
    assert (done.returncode, done.stdout) == (1, "")
    assert "MINE_KEY" in done.stderr
    assert "wrong-key" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_limit_is_status_4(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, READ, READ, {"text": "never"})
    done = run("run", "look", "--max-steps", "1", "--model", model, cwd=workspace)
    assert done.returncode == 4
    assert "never" not in done.stdout
    assert "limit reached" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_cleanly(number: signal.Signals, workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "a b c d e f g h i j k l m n o p", "chunk_delay_ms": 1000})
    process = subprocess.Popen(
        command("run", "count", "--json", "--model", model),
        cwd=workspace,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    for line in process.stdout:
        if json.loads(line)["type"] == "request_started":
            break
    process.send_signal(number)
    out, error = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130
    last = json.loads(out.splitlines()[-1])
    assert (last["type"], last["reason"]) == ("turn_finished", "cancelled")
    assert ("from outside" in last["detail"]) == (number == signal.SIGTERM)
    assert error == ""


def test_a_reader_that_leaves_is_no_crash(workspace: Path, tmp_path: Path, home: Path) -> None:
    model = script(tmp_path, READ, {"text": "Done."})
    process = subprocess.Popen(
        command("run", "look", "--json", "--model", model),
        cwd=workspace,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout
    process.stdout.close()
    _, error = process.communicate(timeout=DEADLINE)
    assert error == b""
    assert not (home / "handrail" / "crashes").exists()


def test_a_session_goes_on_from_the_shell(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "First."}, {"text": "Second."}, {"text": "Third."})
    run("run", "one", "--model", model, cwd=workspace)
    again = run("resume", "--message", "one", "--json", "--model", model, cwd=workspace)
    events = [json.loads(line) for line in again.stdout.splitlines()]
    assert [event["text"] for event in events if event["type"] == "answered"] == ["Second."]
    listed = json.loads(run("sessions", "--json", cwd=workspace).stdout)
    third = run("run", "three", "--session", listed["id"], "--model", model, cwd=workspace)
    assert third.stdout == "Third.\n"


def test_an_answer_that_was_cut_short_is_told_beside_it(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "This is cut off in the mid", "finish": "length"})
    done = run("run", "go", "--model", model, cwd=workspace)
    assert done.stdout == "This is cut off in the mid\n"
    assert "length limit" in done.stderr


@pytest.mark.promise("MOD-20")
def test_an_answer_that_breaks_off_changes_nothing_and_says_what_it_was_about(
    workspace: Path, tmp_path: Path
) -> None:
    text = {"path": "cart.py", "text": "def total():\n"}
    write = {"text": "I write.", "calls": [{"name": "write", "arguments": text}], "finish": "length"}
    done = run("run", "go", "--mode", "auto", "--model", script(tmp_path, READ, write), cwd=workspace)
    assert (workspace / "cart.py").read_text() == "def total():\n    return 1\n"
    assert "None of its calls ran" in done.stderr
    assert "write cart.py" in " ".join(done.stderr.split())
    assert "/retry" in done.stderr


def test_a_mention_that_is_not_attached_is_told(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "Hm."})
    done = run("run", "look at @missing.py and @cart.py", "--model", model, cwd=workspace)
    assert "left out  missing.py" in done.stderr
    assert "left out  cart.py" not in done.stderr


def test_a_full_disk_behind_the_output_is_no_crash(workspace: Path, tmp_path: Path, home: Path) -> None:
    model = script(tmp_path, {"text": "Done."})
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command("run", "look", "--model", model),
            cwd=workspace,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
    assert done.returncode == 1
    assert "handrail: The output could not be written: No space left on device." in done.stderr
    assert "Exception" not in done.stderr
    assert not (home / "handrail" / "crashes").exists()


@pytest.mark.promise("IMG-7")
def test_a_picture_named_on_the_command_line_goes_with_the_task_wherever_it_is(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    (tmp_path / "shot one.png").write_bytes(png(12, 34))
    model = tmp_path / "seeing.json"
    model.write_text(json.dumps({"images": True, "answers": [{"text": "I see."}]}))
    done = run(
        "run", "--json", "--model", f"scripted/{model}", "--image", "../shot one.png", "what is it", cwd=root
    )
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    (message,) = [event for event in events if event["type"] == "user_message"]
    assert [(image["name"], image["width"]) for image in message["images"]] == [
        (str(tmp_path / "shot one.png"), 12)
    ]
    assert message["unattached"] == []


@pytest.mark.promise("IMG-2")
@pytest.mark.parametrize(
    ("name", "words"),
    [("missing.png", "does not exist"), ("text.png", "not a PNG, JPEG, GIF or WebP"), ("pipe.png", "a pipe")],
)
def test_what_is_no_picture_is_refused_before_anything_is_sent(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "text.png").write_text("no picture")
    os.mkfifo(tmp_path / "pipe.png")
    model = script(tmp_path, {"text": "never"})
    done = run("run", "--model", model, "--image", name, "what is it", cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert run("sessions", cwd=tmp_path).stdout.count("what is it") == 0


def test_a_blind_model_is_told_of_on_stderr(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(png())
    done = run("run", "--model", script(tmp_path, {"text": "ok"}), "what is @shot.png", cwd=tmp_path)
    assert done.returncode == 0
    assert "cannot see pictures" in " ".join(done.stderr.split())


@pytest.mark.promise("IMG-3")
@pytest.mark.parametrize("wire", FORMATS, ids=lambda wire: wire.protocol)
def test_the_bytes_of_a_picture_reach_a_server_that_sees_and_no_other(
    workspace: Path, home: Path, wire: WireFormat
) -> None:
    (workspace / "shot.png").write_bytes(png(9, 9))
    encoded = base64.b64encode(png(9, 9)).decode()
    settings = home / "handrail" / "config.toml"
    settings.parent.mkdir(parents=True)
    for sees in (True, False):
        with FakeServer([Reply(wire.write(Said(text=("I see.",))))] * 9) as server:
            settings.write_text(
                f'[connections.mine]\nprotocol = "{wire.protocol}"\nbase_url = "{server.url}{wire.path}"\n'
                f"images = {str(sees).lower()}\ncontext_window = 50000\n"
            )
            done = run("run", "what is", "--image", "shot.png", "--model", "mine/m", cwd=workspace)
            asked = [each for each in server.requests if each.method == "POST" and b"what is" in each.body]
        assert (done.returncode, done.stdout) == (0, "I see.\n"), done.stderr
        assert len(asked) == 1
        assert (encoded.encode() in asked[0].body) is sees
        assert ("cannot see pictures" in " ".join(done.stderr.split())) is not sees
