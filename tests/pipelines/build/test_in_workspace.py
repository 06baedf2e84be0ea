"""Builds that are tried in the workspace itself: what is left of them, and what they say."""

import json
from pathlib import Path

import pytest

from handrail.protocol.commands import Cancel, SendMessage
from handrail.protocol.events import TurnFinished
from tests.engine.conversation import conversation, eventually
from tests.interfaces.cli.program import run
from tests.interfaces.cli.program import script as scripted
from tests.pipelines.build.builds import (
    COPIES,
    FIX,
    PLAN,
    RIGHT,
    TASK,
    WRONG,
    build,
    replaced,
    script,
    whole,
)
from tests.tools.sandbox.machine import offer, working
from tests.verification.projects import write

pytestmark = pytest.mark.anyio
CHECK = """\
[checks]
detect = false
skip = ["consistency"]
[[checks.commands]]
name = "tests"
"""
HERE = '[build]\nverify_in = "workspace"\n'
TESTS = f"{CHECK}run = \"grep -q 'number \\\\* 2' calc.py && test ! -e old.py\"\n{HERE}"
STEPS = [
    {"kind": "modify-file", "description": "All", "targets": ["calc.py", "more.py"]},
    {"kind": "delete-file", "description": "Old", "targets": ["old.py"]},
]
FILES = {"calc.py": WRONG, "old.py": "OLD = 1\n"}
GONE = {"form": "delete", "path": "old.py"}


def tree(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in root.glob("*.py")}


@pytest.mark.promise("BUILD-11")
async def test_failed_trial_is_rolled_back_and_a_passing_one_stays(tmp_path: Path) -> None:
    still_wrong = replaced("number + 1", "number * 1")
    tried = [whole("more.py", "MORE = 1\n"), still_wrong]
    answers = script(tried, [replaced("number * 1", "number * 2")], plan={**PLAN, "steps": STEPS[:1]})
    settings = TESTS.replace(" && test ! -e old.py", "")
    done = await build(tmp_path / "good", answers, files=FILES, settings=settings)
    assert done.state == ("complete" if COPIES else "failed")
    if COPIES:
        assert tree(done.root) == {"calc.py": RIGHT, "more.py": "MORE = 1\n", "old.py": "OLD = 1\n"}
    never = script(tried, plan={**PLAN, "steps": STEPS[:1]})
    failed = await build(tmp_path / "bad", never, files=FILES, settings=settings)
    assert failed.state == ("escalated" if COPIES else "failed")
    assert tree(failed.root) == FILES


@pytest.mark.promise("BUILD-11")
async def test_deleted_file_comes_back_and_an_unverified_trial_is_rolled_back(tmp_path: Path) -> None:
    settings = f'{CHECK}run = "exit 127"\n{HERE}'
    write(tmp_path, FILES)
    answers = script([FIX, GONE], plan={**PLAN, "steps": STEPS})
    async with conversation(tmp_path, answers, mode="edit", settings=settings) as talk:
        await talk.send(SendMessage(text=TASK, route="build"))
        await talk.until(TurnFinished)
        if COPIES:
            end = await talk.turn("1")
            assert end.reason == "unverified"
    assert tree(tmp_path) == FILES


@pytest.mark.promise("BUILD-11")
async def test_cancelled_trial_is_rolled_back(tmp_path: Path) -> None:
    settings = f'{CHECK}run = "grep -q 1 calc.py || sleep 50"\n{HERE}'
    write(tmp_path, FILES)
    async with conversation(tmp_path, script([FIX]), mode="edit", settings=settings) as talk:
        await talk.send(SendMessage(text=TASK, route="build"))
        if COPIES:
            await eventually(lambda: (tmp_path / "calc.py").read_text() == RIGHT)
            await talk.send(Cancel())
        end = await talk.until(TurnFinished)
    assert end.reason == ("cancelled" if COPIES else "failed")
    assert tree(tmp_path) == FILES


@pytest.mark.promise("BUILD-11")
@pytest.mark.parametrize(
    ("edited", "told"), [("old.py", "files of the workspace have changed"), ("calc.py", "`handrail undo`")]
)
async def test_trial_during_which_the_user_edited_is_not_complete_and_the_edit_stays(
    tmp_path: Path, edited: str, told: str
) -> None:
    wait = "grep -q 'number + 1' calc.py || until test -e go; do sleep 0.05; done"
    write(tmp_path, FILES)
    settings = f'{CHECK}run = "{wait}"\n{HERE}'
    async with conversation(tmp_path, script([FIX]), mode="edit", settings=settings) as talk:
        await talk.send(SendMessage(text=TASK, route="build"))
        if COPIES:
            await eventually(lambda: (tmp_path / "calc.py").read_text() == RIGHT)
        write(tmp_path, {edited: "MINE = 1\n", "go": ""})
        end = await talk.until(TurnFinished)
    assert end.reason == "failed"
    assert tree(tmp_path) == {**FILES, edited: "MINE = 1\n"}
    assert (told in end.detail) == COPIES


@pytest.mark.promise("BUILD-11")
def test_machine_with_landlock_alone_builds_in_the_workspace_and_says_so(tmp_path: Path, home: Path) -> None:
    landlock = [found for found in working() if found.name == "Landlock"]
    if not landlock:
        return
    offer(landlock[0])
    write(home / "handrail", {"config.toml": TESTS.replace(HERE, "").replace(" && test ! -e old.py", "")})
    root = write(tmp_path / "work", FILES)
    done = run("build", "--json", "--model", scripted(tmp_path, *script([FIX])), TASK, cwd=root)
    found = json.loads(done.stdout)
    assert (found["state"], done.returncode) == ("complete", 0), done.stderr
    assert "Landlock cannot show a copy" in found["in_workspace"]
    assert tree(root) == {**FILES, "calc.py": RIGHT}
