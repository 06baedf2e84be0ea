"""Commands in the background and bombs, in a real process with a scripted model."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.interfaces.cli.program import command, environment, run, script, terminal
from tests.processes import lasting, running

DEADLINE = 60.0
ENTER, CTRL_D = "\r", "\x04"
MEGABYTE = 1_000_000


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


def call(name: str, **arguments: object) -> dict[str, object]:
    return {"calls": [{"name": name, "arguments": arguments}]}


def until(true: object, what: str) -> None:
    assert callable(true)
    limit = time.monotonic() + DEADLINE
    while not true():
        assert time.monotonic() < limit, what
        time.sleep(0.01)


SERVE = """
setsid bash -c "trap '' TERM; sleep {child}; true" &
setsid sleep {child} &
echo listening
sleep {child}
"""


def serving(workspace: Path, child: str) -> dict[str, object]:
    """The call that starts a server which leaves its group in every way."""
    (workspace / "serve.sh").write_text(SERVE.format(child=child))
    return call("run", command="bash serve.sh", background=True)


@pytest.mark.promise("CMD-10")
def test_nothing_in_the_background_outlives_handrail_when_it_is_killed(
    workspace: Path, tmp_path: Path
) -> None:
    child = lasting()
    slow = {"text": "one two", "chunk_delay_ms": 20_000}
    model = script(tmp_path, serving(workspace, child), slow)
    options = ("run", "--json", "--mode", "auto", "--allow", "bash serve.sh", "--model", model)
    process = subprocess.Popen(
        command(*options, "go"), cwd=workspace, stdout=subprocess.PIPE, env=environment(), text=True
    )
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())
    until(lambda: len(running(child)) >= 3, "the command did not begin")
    process.kill()
    process.communicate(timeout=DEADLINE)
    until(lambda: not running(child), "something was left running")
    after = script(tmp_path, {"text": "Done."}, {"text": "Done."}, name="after.json")
    run("run", "--session", first["session_id"], "--model", after, "and now?", cwd=workspace)
    exported = tmp_path / "session.jsonl"
    run("export", first["session_id"], str(exported), cwd=workspace)
    assert "stopped with Handrail" in exported.read_text()


@pytest.mark.promise("CMD-10")
def test_a_run_that_ends_stops_what_it_left_in_the_background(workspace: Path, tmp_path: Path) -> None:
    child = lasting()
    model = script(tmp_path, serving(workspace, child), call("background", id="b1"), {"text": "Done."})
    done = run(
        "run", "--json", "--mode", "auto", "--allow", "bash serve.sh", "--model", model, "go", cwd=workspace
    )
    assert done.returncode == 0
    finished = [
        each for line in done.stdout.splitlines() if (each := json.loads(line))["type"] == "tool_finished"
    ]
    assert "listening" in finished[-1]["content"]
    assert not running(child)


@pytest.mark.promise("CMD-9")
def test_the_user_sees_lists_and_stops_commands_in_the_background(workspace: Path, tmp_path: Path) -> None:
    child = lasting()
    model = script(tmp_path, serving(workspace, child), {"text": "It listens."}, {"text": "I see."})
    options = ("--mode", "auto", "--allow", "bash serve.sh", "--model", model)
    with terminal(*options, "go", cwd=workspace) as talk:
        talk.expect("It listens.")
        talk.expect("in the background: b1 bash serve.sh")
        talk.type("/background" + ENTER)
        talk.expect("/background ID shows the output of one")
        talk.type("/background b1" + ENTER)
        talk.expect("listening")
        talk.type("/background stop b1" + ENTER)
        talk.expect("b1        bash serve.sh: stopped by the user after")
        until(lambda: not running(child), "it was not stopped")
        talk.type("what now?" + ENTER)
        talk.expect("I see.")
        talk.type(CTRL_D)
        assert talk.end() == 0


MEASURED = """
import os, subprocess, sys
_, status, usage = os.wait4(subprocess.Popen(sys.argv[1:]).pid, 0)
print(usage.ru_maxrss, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""Runs a program and tells the memory it took. What starts a program counts as its own: this is small."""


@pytest.mark.promise("TOOL-9")
@pytest.mark.promise("SAND-13")
def test_ten_gigabytes_of_output_end_at_a_limit_in_little_memory(workspace: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    model = script(tmp_path, call("run", command="yes | head -c 10G", timeout=300), {"text": "Done."})
    words = command("run", "--json", "--mode", "auto", "--allow", "yes", "--model", model, "go")
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, *words],
            cwd=workspace,
            stdout=out,
            stderr=subprocess.PIPE,
            env=environment(HANDRAIL_HOME=str(data)),
            stdin=subprocess.DEVNULL,
            check=False,
            text=True,
        )
    assert done.returncode == 0
    assert int(done.stderr.split()[-1]) * 1024 < 300 * MEGABYTE
    found = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    (finished,) = [event for event in found if event["type"] == "tool_finished"]
    assert finished["error"]["reason"] == "too_large"
    assert "256 MB of output" in finished["summary"]
    assert sum(file.stat().st_size for file in data.rglob("*") if file.is_file()) < 40 * MEGABYTE
