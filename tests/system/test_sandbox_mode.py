"""Mode `sandbox` through the program itself: a model that works with the shell, and one rewind."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from handrail.tools.sandbox.sandbox import Protection
from tests.interfaces.cli.program import command, environment, script
from tests.system.hundred_commands import HUNDRED, make_repository, manifest
from tests.tools.sandbox.machine import offer, working

DEADLINE = 600.0


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "protection" in metafunc.fixturenames:
        metafunc.parametrize("protection", working(), ids=lambda found: found.name)


@pytest.fixture
def workspace(tmp_path: Path, protection: Protection) -> Path:
    """A repository, on a machine that has this sandbox."""
    offer(protection)
    root = tmp_path / "shop"
    root.mkdir()
    make_repository(root)
    return root


def handrail(*words: str, root: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(*words),
        cwd=root,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


def run_commands(root: Path, *commands: str, task: str = "work") -> list[dict[str, object]]:
    """The ends of the commands, as a scripted model made them in mode sandbox."""
    answers = [{"calls": [{"name": "run", "arguments": {"command": each}}]} for each in commands]
    model = script(root.parent, *answers, {"text": "Done."})
    done = handrail(
        *("run", "--json", "--mode", "sandbox", "--model", model, "--max-steps", "300", task), root=root
    )
    assert done.returncode in (0, 3), done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return [event for event in events if event["type"] == "tool_finished"]


@pytest.mark.promise("CMD-19")
@pytest.mark.promise("POL-40")
def test_a_hundred_commands_run_and_one_rewind_gives_back_the_tree(workspace: Path) -> None:
    assert len(HUNDRED) == len({step.command for step in HUNDRED}) >= 100
    before = manifest(workspace)
    ends = run_commands(workspace, *(step.command for step in HUNDRED))
    wrong = [
        (step.command, end["status"], end["content"])
        for step, end in zip(HUNDRED, ends, strict=True)
        if end["status"] != ("failed" if step.fails else "ok")
    ]
    assert not wrong
    after = manifest(workspace)
    assert {path: each for path, each in after.items() if path.startswith(".git/")} == {
        path: each for path, each in before.items() if path.startswith(".git/")
    }
    assert len(before.items() ^ after.items()) > 300
    rewound = handrail("rewind", "--turn", "1", "--files", "--yes", root=workspace)
    assert rewound.returncode == 0, rewound.stdout + rewound.stderr
    assert manifest(workspace) == before
    again = handrail("redo", root=workspace)
    assert again.returncode == 0, again.stdout + again.stderr
    assert manifest(workspace) == after


@pytest.mark.promise("CMD-22")
def test_what_a_command_changed_before_handrail_was_killed_is_rewound(workspace: Path) -> None:
    before = manifest(workspace)
    slow = (
        "rm -rf private; echo new > made; sed -i s/RATE/rate/ src/shop/tax.py; echo begun > begun; sleep 60"
    )
    arguments = {"command": slow, "timeout": 120}
    model = script(workspace.parent, {"calls": [{"name": "run", "arguments": arguments}]})
    words = command("run", "--mode", "sandbox", "--model", model, "work")
    with subprocess.Popen(words, cwd=workspace, env=environment(), stdout=-3, stderr=-3) as process:
        deadline = time.monotonic() + DEADLINE
        while not (workspace / "begun").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert (workspace / "begun").exists()
    rewound = handrail("rewind", "--turn", "1", "--files", "--yes", root=workspace)
    assert rewound.returncode == 0, rewound.stdout + rewound.stderr
    assert manifest(workspace) == before


@pytest.mark.promise("POL-41")
@pytest.mark.parametrize("words", [("--mode", "sandbox", "work"), ("work",)], ids=["flag", "settings"])
def test_without_a_full_sandbox_the_mode_is_refused_with_what_to_install(
    tmp_path: Path, words: tuple[str, ...], home: Path
) -> None:
    offer(Protection("none", why="nothing works here"))
    (home / "handrail" / "config.toml").write_text('mode = "sandbox"\n')
    model = script(tmp_path, {"text": "Done."})
    refused = handrail("run", "--model", model, *words, root=tmp_path)
    assert refused.returncode == 2
    assert "apt install bubblewrap" in refused.stderr
    assert handrail("sessions", root=tmp_path).stdout.strip() in ("", "No sessions here.")
    assert handrail("run", "--model", model, "--mode", "ask", "work", root=tmp_path).returncode == 0
