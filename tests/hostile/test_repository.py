"""A hostile repository: nothing of it runs or counts before it is trusted, and what was ignored is told."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.repository import Canary, Listener, hostile_repository
from tests.interfaces.cli.program import run, script, terminal

pytestmark = pytest.mark.usefixtures("no_server")
IGNORED = (
    "mode",
    "models.main",
    "commands.allow",
    "commands.without_sandbox",
    "connections.evil",
    "hooks",
    "git.commit",
)
TEE = {"calls": [{"name": "run", "arguments": {"command": "tee allowed"}}]}


@pytest.fixture
def listener() -> Iterator[Listener]:
    listening = Listener()
    yield listening
    listening.close()


@pytest.fixture
def canary(tmp_path: Path) -> Canary:
    return Canary(tmp_path / "ran")


@pytest.fixture
def hostile(tmp_path: Path, listener: Listener, canary: Canary) -> Path:
    folder = tmp_path / "hostile"
    folder.mkdir()
    hostile_repository(folder, canary.file, listener.port)
    return folder


@pytest.mark.promise("CONF-8")
def test_nothing_of_a_hostile_repository_is_used_before_it_is_trusted(
    hostile: Path, tmp_path: Path, listener: Listener, canary: Canary
) -> None:
    calls = [{"name": "run", "arguments": {"command": "git log -p && git status && git show"}}]
    calls += [
        {"name": "read", "arguments": {"path": "a.txt"}},
        {"name": "search", "arguments": {"pattern": "one"}},
    ]
    edit = {"path": "a.txt", "edits": [{"search": "two", "replace": "three"}]}
    model = script(
        tmp_path, {"calls": calls}, {"calls": [{"name": "edit", "arguments": edit}]}, TEE, {"text": "Done."}
    )
    # A shell that has been in the folder, as tools that change the PATH by folder leave it.
    path = f".:bin:{hostile}/bin:{hostile}/node_modules/.bin:{os.environ['PATH']}"
    done = run("run", "do it", "--model", model, "--mode", "auto", cwd=hostile, PATH=path)
    assert done.returncode == 3, done.stderr
    assert not (hostile / "allowed").exists()
    assert (hostile / "a.txt").read_text() == "three\n"
    commits = subprocess.run(
        ["git", "-C", str(hostile), "rev-list", "--count", "HEAD"],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert commits.stdout == b"2\n"  # those it was made with
    for key in IGNORED:
        assert f"{key}" in done.stderr, key
    assert "handrail trust" in done.stderr
    assert str(canary) == ""
    assert listener.connections == 0


@pytest.mark.promise("CONF-8")
def test_no_command_of_handrail_runs_anything_of_a_hostile_repository(
    hostile: Path, tmp_path: Path, listener: Listener, canary: Canary
) -> None:
    path = f".:bin:{hostile}/bin:{os.environ['PATH']}"
    for words in (
        ("run", "do it"),
        ("doctor",),
        ("config",),
        ("model",),
        ("sessions",),
        ("changes",),
        ("storage",),
        ("policy", "explain", "--command", "git status && pytest"),
        ("policy", "explain", "--path", "a.txt", "--op", "write"),
        ("trust",),
        ("--version",),
    ):
        done = run(*words, cwd=hostile, PATH=path)
        assert "Traceback" not in done.stderr, done.stderr
        assert str(canary) == "", words
    assert listener.connections == 0


@pytest.mark.promise("CONF-8")
def test_a_conversation_in_a_hostile_repository_says_what_it_ignores(
    hostile: Path, tmp_path: Path, listener: Listener, canary: Canary
) -> None:
    model = script(tmp_path, {"text": "hi"})
    with terminal("--model", model, cwd=hostile, PATH=f".:bin:{os.environ['PATH']}") as talk:
        talk.expect("mode ask")
        talk.expect("handrail trust")
        talk.type("hello\r")
        talk.expect("hi")
        talk.expect("$0.00")
        talk.type("\x04")
        assert talk.end() == 0
    assert str(canary) == ""
    assert listener.connections == 0


@pytest.mark.promise("CONF-8")
def test_what_was_trusted_counts_until_a_byte_of_it_changes(
    hostile: Path, tmp_path: Path, canary: Canary
) -> None:
    model = script(tmp_path, TEE, {"text": "Done."})
    with terminal("trust", cwd=hostile) as talk:
        talk.expect('commands.allow = ["tee"]')
        talk.expect("evil.sh")
        talk.expect("Trust this, as it is now?")
        talk.type("y\r")
        talk.expect("Trusted.")
        assert talk.end() == 0
    assert str(canary) == ""
    (hostile / "evil.sh").write_text("#!/bin/sh\ntouch changed-program\n")
    assert run("run", "do it", "--model", model, "--mode", "auto", cwd=hostile).returncode != 0
    settings = hostile / ".handrail" / "config.toml"
    settings.write_text(settings.read_text() + "# one more byte\n")
    done = run("run", "do it", "--model", model, "--mode", "auto", cwd=hostile)
    assert done.returncode == 3, done.stderr
    assert not (hostile / "allowed").exists()
    assert not (hostile / "changed-program").exists()
    assert "changed" in run("doctor", cwd=hostile).stdout
    assert str(canary) == ""
