"""Hooks from outside: the page about them, headless runs, proposals, and a kill while one runs."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from inline_snapshot import snapshot
from msgspec import convert

from handrail.config.places import find_places
from handrail.protocol.events import HookSpoke, SessionHooked
from handrail.tools.gate.hooks import ALLOWED_FIELDS, MAX_OUTPUT
from tests.interfaces.cli.program import DEADLINE, command, environment, run, script, terminal
from tests.interfaces.cli.shown import refused, shown
from tests.processes import lasting, running
from tests.project.source import ROOT
from tests.tools.hook_programs import program, section

pytestmark = pytest.mark.usefixtures("no_server")

PAGE = (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


@pytest.fixture
def settings() -> Path:
    return find_places(os.environ).settings


def add(settings: Path, text: str) -> None:
    settings.write_text(f"{settings.read_text()}\n{text}")


def ran(name: str, arguments: dict[str, str]) -> dict[str, object]:
    return {"calls": [{"name": name, "arguments": arguments}]}


@pytest.mark.promise("HOOK-8")
def test_the_example_on_the_page_works_as_it_says(shop: Path, settings: Path, tmp_path: Path) -> None:
    (example,) = blocks("toml")
    add(settings, example)
    for text in blocks("python"):
        name = text.partition("\n")[0].removeprefix("# ")
        (settings.parent / name).write_text(text)
    model = script(
        tmp_path,
        ran("run", {"command": "git push origin main"}),
        ran("run", {"command": "git log"}),
        ran("write", {"path": "src/cart.py", "text": "x = 1\n"}),
        {"text": "Done."},
        ran("write", {"path": "CHANGELOG.md", "text": "- cart\n"}),
        {"text": "Done, and told."},
    )
    done = run("run", "do it", "--model", model, "--mode", "auto", "--allow", "git push", cwd=shop)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    assert "hook_denied: The user's hook (python3 guard.py) does not allow this: Pushing is for" in said
    assert 'python3 guard.py changed the arguments of run to {"command": "git log --oneline -n 20"}' in said
    assert (
        "python3 changelog.py does not let the turn end: Add a line to CHANGELOG.md for src/cart.py." in said
    )
    assert done.stdout == "Done, and told.\n"
    assert (shop / "CHANGELOG.md").exists()


def test_the_page_names_what_a_hook_may_answer() -> None:
    table = PAGE.partition("## What a hook is asked")[2]
    rows = dict(re.findall(r"^\| `(\w+_\w+)` \|.*\| (.*?) \|$", table, re.MULTILINE))
    assert {on: tuple(re.findall(r'\{"(\w+)"', cell)) for on, cell in rows.items()} == ALLOWED_FIELDS
    assert f"{MAX_OUTPUT:,} bytes" in PAGE


def test_the_doctor_names_hooks_and_what_keeps_one_from_starting(shop: Path, settings: Path) -> None:
    add(settings, section("before_end", program(settings.parent, "say()")))
    add(settings, section("session_start", ["no-such-program"]))
    told = " ".join(run("doctor", cwd=shop).stdout.split())
    assert "ok hook before_end: " in told or "hook ok before_end: " in told, told
    assert "session_start: no-such-program" in told
    assert "there is no program no-such-program on your PATH outside the workspace" in told


@pytest.mark.promise("HOOK-8")
def test_what_hooks_say_is_a_line_and_a_denial_stands_at_its_call() -> None:
    def spoke(**fields: object) -> HookSpoke:
        known = {"turn_id": "t_1", "hook": "guard.py", "call_id": "c_1", "tool": "run"}
        return convert(known | fields, HookSpoke)

    assert shown(
        SessionHooked(),
        SessionHooked(text="[start.py]\nfrozen"),
        spoke(on="before_tool", did="changed", arguments={"command": "ls"}),
        spoke(on="before_tool", did="denied", text="no"),
        spoke(on="before_tool", did="failed", text="no"),
        refused("run", "hook_denied", "A hook of the user's (guard.py) does not allow this: no."),
        spoke(on="after_tool", did="told", text="two warnings"),
        spoke(on="after_tool", did="failed", text="it took longer than 30 s"),
        spoke(on="before_end", did="demanded", text="run the tests"),
    ) == snapshot("""\
  hook      the model was told: [start.py] frozen
  hook      guard.py changed the arguments of run to {"command": "ls"}
  run       refused  hook_denied: A hook of the user's (guard.py) does not
            allow this: no.
  hook      guard.py told the model: two warnings
  hook      guard.py failed: it took longer than 30 s
  hook      guard.py does not let the turn end: run the tests\
""")


@pytest.mark.promise("HOOK-3")
def test_a_proposal_passes_hooks_too(shop: Path, settings: Path) -> None:
    body = 'say(deny="frozen") if "b.txt" in str(asked["arguments"]) else None'
    add(settings, section("before_tool", program(settings.parent, body), match=["proposal"]))
    add(settings, section("after_tool", program(settings.parent, 'say(tell="noted")', "after.py")))
    for path in ("a.txt", "b.txt"):
        change = {"form": "create", "path": path, "text": "x\n"}
        (shop.parent / f"{path}.json").write_text(json.dumps({"changes": [change]}))
    done = run("edit", "--proposal", str(shop.parent / "a.txt.json"), cwd=shop)
    assert done.returncode == 0, done.stderr
    assert "after.py told the model: noted" in " ".join(done.stderr.split())
    denied = run("edit", "--proposal", str(shop.parent / "b.txt.json"), cwd=shop)
    assert (denied.returncode, "does not allow this: frozen" in denied.stderr) == (1, True)
    assert [path.name for path in shop.iterdir()] == ["a.txt"]


@pytest.mark.promise("HOOK-4")
def test_a_headless_run_that_a_hook_does_not_let_end_says_so_by_its_status(
    shop: Path, settings: Path, tmp_path: Path
) -> None:
    add(settings, section("before_end", program(settings.parent, 'say(demand="tests")')))
    model = script(tmp_path, *[{"text": f"answer {number}"} for number in range(4)])
    done = run("run", "do it", "--model", model, cwd=shop)
    assert done.returncode == 5
    assert "unverified" in done.stderr


@pytest.mark.promise("HOOK-1")
@pytest.mark.promise("HOOK-7")
def test_killed_while_a_hook_runs_the_call_was_not_begun_and_is_not_done_later(
    shop: Path, settings: Path, tmp_path: Path
) -> None:
    word = lasting()
    add(settings, section("before_tool", ["sleep", word], match=["write"], seconds=600))
    model = script(tmp_path, ran("write", {"path": "a.txt", "text": "one\n"}), {"text": "Hello again."})
    killed = subprocess.Popen(
        command("run", "write it", "--json", "--model", model, "--mode", "edit"),
        cwd=shop,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with killed:
        deadline = time.monotonic() + DEADLINE
        while not running(word) and time.monotonic() < deadline:
            time.sleep(0.01)
        killed.kill()
        said, _ = killed.communicate(timeout=DEADLINE)
    while running(word) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not running(word)
    session = json.loads(said.splitlines()[0])["session_id"]
    assert b"answered" in said
    assert b"tool_started" not in said
    after = run("run", "hello?", "--json", "--model", model, "--session", session, cwd=shop)
    events = [json.loads(line) for line in after.stdout.splitlines()]
    (call,) = [event for event in events if event["type"] == "tool_finished"]
    assert (call["status"], call["summary"]) == ("interrupted", "not run")
    assert events[-1]["reason"] == "answered"
    assert not (shop / "a.txt").exists()


@pytest.mark.promise("HOOK-6")
def test_trusting_a_workspace_shows_its_hooks_and_their_programs(shop: Path) -> None:
    own = shop / ".handrail"
    own.mkdir()
    (own / "guard.py").write_text("print()\n")
    (own / "config.toml").write_text(section("before_tool", [sys.executable, "guard.py"]))
    assert "hooks is ignored: it would run programs on your machine" in run("config", cwd=shop).stderr
    with terminal("trust", cwd=shop) as talk:
        talk.expect("guard.py")
        talk.expect(".handrail/guard.py: would be run as it is now")
        talk.expect("Trust this, as it is now?")
        talk.type("y\r")
        talk.expect("Trusted.")
        assert talk.end() == 0
    assert "guard.py" in run("config", "get", "hooks", cwd=shop).stdout
