"""Plans that run commands: in the copy, through policy; what they leave in the workspace, and what never."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from handrail.app.builds.build import BuildResult, build_counts, build_task
from handrail.pipelines.build.report import build_result
from handrail.protocol.commands import AnswerApproval, SendMessage
from handrail.protocol.events import ApprovalAsked, TurnFinished
from handrail.protocol.events.base import EventBase
from tests.engine.conversation import conversation
from tests.pipelines.build.builds import COPIES, PLAN, TASK, replaced, script
from tests.verification.projects import write

pytestmark = pytest.mark.anyio
CHECK = """\
[checks]
detect = false
skip = ["consistency"]
[[checks.commands]]
name = "tests"
"""
PACKAGES = ".venv/lib/python3/site-packages"
GENERATE = (
    "from pathlib import Path\nimport values\n\nPath('table.py').write_text(f'TABLE = {values.VALUES}\\n')\n"
)
FILES = {"values.py": "VALUES = [1]\n", "gen.py": GENERATE, "tests/test_x.py": "assert True\n"}
VENV = {".gitignore": ".venv/\n", ".venv/pyvenv.cfg": "", f"{PACKAGES}/old/__init__.py": "OLD = 1\n"}


def runs(command: str, *targets: str, network: bool = False) -> dict[str, Any]:
    return {
        "kind": "run-command",
        "description": "Run a command",
        "targets": list(targets),
        "command": command,
        "network": network,
    }


def plan(*steps: Mapping[str, Any], targets: tuple[str, ...] = ()) -> dict[str, Any]:
    file = {"kind": "modify-file", "description": "Change", "targets": list(targets)}
    return {**PLAN, "steps": [*([file] if targets else []), *steps]}


def adds(path: str, text: str = "X = 1") -> str:
    """A program that writes a file; policy sees only that `python do.py` runs code of the workspace."""
    return (
        f"import pathlib\n\np = pathlib.Path({path!r})\n"
        f"p.parent.mkdir(parents=True, exist_ok=True)\np.write_text({text!r})\n"
    )


async def result(
    root: Path,
    answers: list[dict[str, Any]],
    check: str,
    *,
    mode: str = "auto",
    task: str = "Change the values in values.py.",
    settings: str = "",
) -> BuildResult:
    settings = f'{CHECK}run = "{check}"\n{settings}'
    async with conversation(root, answers, mode=mode, answerable=False, settings=settings) as talk:
        return await build_task(talk.app, task)


def tree(root: Path) -> dict[str, str]:
    paths = (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(root)): path.read_text() for path in paths}


@pytest.mark.promise("BUILD-13")
async def test_files_that_a_command_writes_from_new_ones_are_in_the_same_change_set(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    steps = plan(runs("python gen.py", "table.py"), targets=("values.py",))
    answers = script([replaced("[1]", "[1, 2]", "values.py")], plan=steps)
    done = await result(tmp_path, answers, "grep -q 2 table.py || ! test -e table.py")
    assert done.state == ("complete" if COPIES else "failed"), done.detail
    if COPIES:
        assert tree(tmp_path) == {**FILES, "values.py": "VALUES = [1, 2]\n", "table.py": "TABLE = [1, 2]\n"}
        assert (done.commands, done.packages) == (("python gen.py",), ())
        assert set(done.files) == {"values.py", "table.py"}


@pytest.mark.promise("BUILD-13")
async def test_installed_packages_are_checked_in_a_layer_and_repeated_in_the_workspace(
    tmp_path: Path,
) -> None:
    new = f"{PACKAGES}/shout/__init__.py"
    files = tree(write(tmp_path, {**FILES, **VENV, "do.py": adds(new)}))
    steps = plan(runs("python do.py", ".venv/"), targets=("values.py",))
    answers = script([replaced("[1]", "[1, 2]", "values.py")], plan=steps)
    # The check needs both; only a layer has the package while it runs.
    done = await result(tmp_path, answers, f"grep -q '\\\\[1\\\\]' values.py || grep -q X {new}")
    assert done.state == ("complete" if COPIES else "failed"), done.detail
    if COPIES:
        assert tree(tmp_path) == {**files, "values.py": "VALUES = [1, 2]\n", new: "X = 1"}
        assert done.packages == (".venv: 1 added",)


TESTS_AND_FILES = """\
import os

os.remove("tests/test_y.py")
os.symlink("/etc/passwd", "link.py")
"""
OLD_PACKAGES = f"""\
import pathlib
import shutil

shutil.rmtree("{PACKAGES}/gone")
pathlib.Path("{PACKAGES}/old/__init__.py").write_text("OLD = 2")
"""
CLOSED = f"""\
from pathlib import Path

refused = 0
for path in (".git/hooks/pre-commit", ".handrail/config.toml", "/usr/outside.txt", "{PACKAGES}/new.py"):
    try:
        Path(path).write_text("X = 1")
    except OSError:
        refused += 1
raise SystemExit(40 + refused)
"""
HOSTILE: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    # {what it does: (its program, its targets, what the end says)}
    "changes tests, settings and what is not in the plan": (
        "".join(map(adds, ("tests/test_x.py", "conf/setup.cfg", "evil.py"))) + TESTS_AND_FILES,
        ("tests/", "conf/", "link.py"),
        (
            "tests/test_x.py belongs to the tests",
            "tests/test_y.py belongs to the tests",
            "conf/setup.cfg decides",
            "evil.py is not in the plan",
            "link.py, which a command changed, is not a file",
        ),
    ),
    "changes what checks the project": (
        adds(f"{PACKAGES}/pytest/__init__.py")
        + adds(f"{PACKAGES}/x-1.dist-info/entry_points.txt", "[pytest11]\nx = x")
        + adds(f"{PACKAGES}/x.pth", "import os"),
        (".venv/",),
        ("pytest checks the project", "entry_points.txt is loaded", "x.pth is loaded"),
    ),
    "changes installed packages": (
        OLD_PACKAGES,
        (".venv/",),
        ("old was installed before", "gone was installed before"),
    ),
    "writes what is closed": (CLOSED, (), ("exit 44",)),
}
REFUSED = ("python -c 'print(1)'", "git commit --allow-empty -m x")


@pytest.mark.promise("BUILD-13")
@pytest.mark.promise("BUILD-4")
@pytest.mark.parametrize("way", HOSTILE)
async def test_hostile_command_never_ends_in_complete_and_changes_nothing(tmp_path: Path, way: str) -> None:
    program, targets, words = HOSTILE[way]
    files = {**FILES, **VENV, ".git/HEAD": "ref: refs/heads/main\n", "do.py": program}
    files |= {f"{PACKAGES}/gone/__init__.py": "", "tests/test_y.py": ""}
    before = tree(write(tmp_path / "project", files))
    answers = script([], plan=plan(runs("python do.py", *targets)))
    done = await result(tmp_path / "project", answers, "true")
    assert done.state in ("failed", "escalated"), done.detail
    assert [each for each in words if each not in done.detail] == [] or not COPIES, done.detail
    assert tree(tmp_path / "project") == before
    assert [path.name for path in tmp_path.iterdir()] == ["project"]


@pytest.mark.promise("BUILD-13")
@pytest.mark.parametrize("command", REFUSED)
async def test_command_that_nobody_can_approve_escalates_at_once(tmp_path: Path, command: str) -> None:
    before = tree(write(tmp_path, FILES))
    done = await result(tmp_path, script([], plan=plan(runs(command))), "true")
    assert done.state == ("escalated" if COPIES else "failed")
    assert (command in done.detail and "nobody can be asked" in done.detail) == COPIES, done.detail
    assert tree(tmp_path) == before


@pytest.mark.promise("BUILD-13")
@pytest.mark.parametrize("answer", ["once", "reject"])
async def test_user_is_asked_about_commands_and_about_what_they_installed(
    tmp_path: Path, answer: Literal["once", "reject"]
) -> None:
    new = f"{PACKAGES}/shout/__init__.py"
    before = tree(write(tmp_path, {**FILES, **VENV, "do.py": adds(new)}))
    steps = plan(runs("python do.py", ".venv/"))
    settings = f'{CHECK}run = "true"\n'
    async with conversation(tmp_path, script([], plan=steps), mode="edit", settings=settings) as talk:
        await talk.send(SendMessage(text=TASK, route="build"))
        asked: list[str] = []
        while isinstance(
            event := await talk.until(EventBase, lambda each: isinstance(each, ApprovalAsked | TurnFinished)),
            ApprovalAsked,
        ):
            asked.append(event.summary)
            await talk.send(AnswerApproval(approval_id=event.approval_id, decision=answer))
        found, counts = build_result(talk.app.log, talk.id), build_counts(talk.app.log)
    if not COPIES:
        return
    assert counts.needed_user == 1
    if answer == "reject":
        assert (found.state, asked, tree(tmp_path)) == ("escalated", ["in a copy: python do.py"], before)
    else:
        assert asked == ["in a copy: python do.py", ".venv: 1 added, by python do.py"]
        assert (found.state, tree(tmp_path)) == ("complete", {**before, new: "X = 1"})


@pytest.mark.promise("BUILD-13")
async def test_build_in_the_workspace_refuses_a_plan_with_commands(tmp_path: Path) -> None:
    before = tree(write(tmp_path, FILES))
    steps = plan(runs("python gen.py", "table.py"))
    settings = '[build]\nverify_in = "workspace"\n'
    done = await result(tmp_path, script([], plan=steps), "true", settings=settings)
    assert done.state == "failed"
    assert ("run only in a copy" in done.detail) == COPIES
    assert tree(tmp_path) == before
