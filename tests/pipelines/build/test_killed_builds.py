"""A build that is killed after any of its commits leaves the old tree, or the verified one."""

from pathlib import Path

import pytest

from handrail.pipelines.build.report import build_result
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import TurnFinished
from tests.engine.commits import Commits, is_idle
from tests.engine.conversation import conversation, eventually
from tests.pipelines.build.builds import COPIES, PLAN, RIGHT, TASK, WRONG, replaced, script, whole
from tests.verification.projects import write

pytestmark = pytest.mark.anyio
APPLYING = 14
"""Commits at the end of a build: it applies its files."""
SETTINGS = """\
[checks]
detect = false
skip = ["consistency"]
[[checks.commands]]
name = "tests"
run = "grep -q 'number \\\\* 2' calc.py && test -e more.py"
"""
TWO_FILES = {
    **PLAN,
    "steps": [{"kind": "modify-file", "description": "Both", "targets": ["calc.py", "more.py"]}],
}
SCRIPT = script(
    [replaced("number + 1", "number * 1"), whole("more.py", "MORE = 1\n")],
    [replaced("number * 1", "number * 2")],
    plan=TWO_FILES,
)


@pytest.mark.promise("BUILD-3")
@pytest.mark.promise("BUILD-11")
@pytest.mark.parametrize("where", ["copy", "workspace"])
async def test_killed_build_leaves_the_old_tree_or_the_verified_one(
    tmp_path: Path, home: Path, where: str
) -> None:
    settings = f'{SETTINGS}[build]\nverify_in = "{where}"\n'
    workspace = write(tmp_path / "work", {"calc.py": WRONG})
    commits = Commits(tmp_path / "commits", home, workspace)
    async with conversation(workspace, SCRIPT, mode="edit", settings=settings, answerable=False) as talk:
        with commits.watching(talk.app):
            await talk.send(SendMessage(text=TASK, route="build"))
            await talk.until(TurnFinished)
        session_id = talk.id
        assert build_result(talk.app.log, session_id).state == ("complete" if COPIES else "failed")
    ends = set()
    for number in commits.restored():
        if number % 4 and number < commits.count - APPLYING:
            continue  # before the workspace is touched, a few are enough
        async with conversation(workspace, SCRIPT, session=session_id, settings=settings) as talk:
            await eventually(lambda app=talk.app: is_idle(app, session_id))  # type: ignore[misc]
            tree = {path.name: path.read_text() for path in workspace.iterdir()}
            old, new = {"calc.py": WRONG}, {"calc.py": RIGHT, "more.py": "MORE = 1\n"}
            assert tree in (old, new), number
            if talk.app.state(session_id).turns:
                state = build_result(talk.app.log, session_id).state
                assert (state == "complete") == (tree == new), (number, state)
                ends.add(state)
    assert "complete" in ends or not COPIES


@pytest.mark.promise("BUILD-13")
@pytest.mark.promise("BUILD-3")
async def test_killed_build_with_commands_leaves_the_old_tree_or_the_verified_one(
    tmp_path: Path, home: Path
) -> None:
    package = ".venv/lib/python3/site-packages/shout.py"
    makes = (
        f"from pathlib import Path\n\nPath('more.py').write_text('MORE')\nPath('{package}').write_text('')\n"
    )
    files = {"calc.py": WRONG, "do.py": makes, ".gitignore": ".venv/\n", ".venv/pyvenv.cfg": ""}
    workspace = write(tmp_path / "work", {**files, package.replace("shout", "old"): ""})
    runs = {
        "kind": "run-command",
        "description": "Run",
        "targets": ["more.py", ".venv/"],
        "command": "python do.py",
    }
    answers = script([replaced("number + 1", "number * 2")], plan={**PLAN, "steps": [*PLAN["steps"], runs]})
    settings = SETTINGS.replace("test -e more.py", f"test -e {package}")
    commits = Commits(tmp_path / "commits", home, workspace)
    async with conversation(workspace, answers, mode="auto", settings=settings, answerable=False) as talk:
        with commits.watching(talk.app):
            await talk.send(SendMessage(text=TASK, route="build"))
            await talk.until(TurnFinished)
        session_id = talk.id
        assert build_result(talk.app.log, session_id).state == ("complete" if COPIES else "failed")
    old, ends = {"calc.py": WRONG, "do.py": makes}, set()
    new = {**old, "calc.py": RIGHT, "more.py": "MORE"}
    for number in commits.restored():
        if number % 4 and number < commits.count - APPLYING:
            continue
        async with conversation(workspace, answers, session=session_id, settings=settings) as talk:
            await eventually(lambda app=talk.app: is_idle(app, session_id))  # type: ignore[misc]
            tree = {path.name: path.read_text() for path in workspace.glob("*.py")}
            assert tree in (old, new), number
            if talk.app.state(session_id).turns:
                found = build_result(talk.app.log, session_id)
                ends.add(found.state)
                assert (found.state == "complete") == (tree == new), (number, found.state)
                assert (workspace / package).exists() or tree == old, number
                # Files that were copied back look as if somebody else had changed them.
                assert not (workspace / package).exists() or tree == new or ".venv" in found.detail
    assert "complete" in ends or not COPIES
