"""A clone in which files are pipes, devices, circles of links or huge: nothing hangs or reads without end."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.special_files import ALONE, KINDS, NAMES, special_repository
from tests.interfaces.cli.program import DEADLINE, environment, script, terminal

pytestmark = pytest.mark.usefixtures("no_server")
MEMORY = 2_000_000_000
LIMITED = f"""
import os, resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
os.execv(sys.executable, [sys.executable, "-P", "-m", "handrail", *sys.argv[1:]])
"""
COMMANDS = (
    ("doctor",),
    ("config",),
    ("intents",),
    ("agents",),
    ("trust",),
    ("policy", "explain", "--command", "cat src/a.py"),
    ("policy", "explain", "--path", "src/a.py"),
    ("trace", "verify"),
)
EDIT = {"path": "src/a.py", "edits": [{"search": "return 1", "replace": "return 2"}]}


def limited(root: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run Handrail with little memory, to its end; it says what is wrong without a traceback."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *arguments],
        cwd=root,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "crashed" not in done.stderr, done.stderr
    assert done.returncode in (0, 1, 2, 3), (arguments, done)
    return done


def call(name: str, **arguments: object) -> dict[str, object]:
    return {"name": name, "arguments": arguments}


@pytest.mark.promise("WORK-8")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_skipped_wherever_a_file_is_looked_for(kind: str, tmp_path: Path) -> None:
    root = tmp_path / "clone"
    special_repository(root, kind, NAMES)
    looks = [call("read", path=name) for name in (*NAMES, "src/a.py")]
    looks += [call("search", pattern="total", path=name) for name in ("src/module.py", "pyproject.toml")]
    looks += [call("search", pattern="def total"), call("glob", pattern="**/*.py"), call("list", path=".")]
    looks += [call("run", command="cat src/a.py")]
    model = script(tmp_path, {"calls": looks}, {"calls": [call("edit", **EDIT)]}, {"text": "Done."})
    task = "look at @pyproject.toml and @src/module.py"
    done = limited(root, "run", task, "--model", model, "--mode", "auto", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    finished = [event for event in events if event["type"] == "tool_finished"]
    assert len(finished) == len(looks) + 1, done.stderr
    by_tool: dict[str, list[dict[str, str]]] = {}
    for event in finished:
        by_tool.setdefault(event["tool"], []).append(event)
    assert by_tool["read"][len(NAMES)]["status"] == "ok"
    assert all(event["status"] != "ok" for event in by_tool["read"][: len(NAMES)])
    assert by_tool["search"][-1]["summary"] == "1 hit in src/a.py"
    assert "src/a.py" in by_tool["glob"][0]["content"]
    assert by_tool["run"][0]["status"] == "ok"
    if kind != "folder":  # one that is in the way of the trace stops edits, with a reason
        expected = "return 2" if by_tool["edit"][0]["status"] == "ok" else "return 1"
        assert expected in (root / "src" / "a.py").read_text()
    limited(root, "undo")
    assert "return 1" in (root / "src" / "a.py").read_text()
    for words in COMMANDS:
        limited(root, *words)


@pytest.mark.promise("WORK-8")
@pytest.mark.parametrize("kind", ["endless device", "pipe", "circle of links", "sparse file"])
@pytest.mark.parametrize("name", ALONE)
def test_settings_and_intents_that_are_no_files_are_named_with_the_reason(
    name: str, kind: str, tmp_path: Path
) -> None:
    root = tmp_path / "clone"
    special_repository(root, kind, (name,))
    model = script(tmp_path, {"calls": [call("edit", **EDIT)]}, {"text": "Done."})
    done = limited(root, "run", "do it", "--model", model, "--mode", "auto")
    if name.endswith((".toml", ".yaml")):
        assert name in done.stderr
        assert "return 1" in (root / "src" / "a.py").read_text()
    for words in (("doctor",), ("intents",), ("agents",)):
        limited(root, *words)


@pytest.mark.promise("WORK-8")
@pytest.mark.parametrize("kind", ["endless device", "pipe"])
def test_a_conversation_starts_in_such_a_clone(kind: str, tmp_path: Path) -> None:
    root = tmp_path / "clone"
    special_repository(root, kind, NAMES)
    with terminal("--model", script(tmp_path, {"text": "hi there"}), cwd=root) as talk:
        talk.expect("mode ask")
        talk.type("hello\r")
        talk.expect("hi there")
        talk.type("\x04")
        assert talk.end() == 0
    assert os.path.lexists(root / "pyproject.toml")
