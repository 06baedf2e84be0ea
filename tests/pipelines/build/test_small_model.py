"""A build by a small model: the same states and gates, with a plan by rules and a search for the code."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from handrail.pipelines.build.report import BuildResult, build_result
from handrail.pipelines.build.small_model import VARIANT
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import CandidateTried, TurnFinished
from tests.engine.commits import Commits, is_idle
from tests.engine.conversation import eventually
from tests.engine.search.small_model import SmallModel, small_conversation
from tests.pipelines.build.builds import COPIES, PROJECT, RIGHT, TASK, WRONG
from tests.verification.projects import write

pytestmark = pytest.mark.anyio
SETTINGS = '[checks]\nskip = ["consistency"]\n'


def model(*answers: str) -> SmallModel:
    left = list(answers)
    return SmallModel(lambda _request: left.pop(0) if len(left) > 1 else left[0])


async def build(
    root: Path, small: SmallModel, files: Mapping[str, str] = PROJECT, task: str = TASK
) -> BuildResult:
    write(root, files)
    async with small_conversation(root, small, settings=SETTINGS) as talk:
        await talk.send(SendMessage(text=task, route="build"))
        await talk.until(TurnFinished)
        return build_result(talk.app.log, talk.id)


def tree(root: Path, files: Mapping[str, str] = PROJECT) -> dict[str, str]:
    return {path: (root / path).read_text() for path in files if (root / path).exists()}


@pytest.mark.promise("BUILD-15")
async def test_search_finds_the_code_and_the_five_gates_accept_it(tmp_path: Path) -> None:
    small = model("    return number + 1\n", "    return number * 2\n")
    result = await build(tmp_path, small)
    assert result.state == ("complete" if COPIES else "failed")
    if COPIES:
        assert tree(tmp_path) == {**PROJECT, "calc.py": RIGHT}
        assert (result.variant, result.audited_by) == (VARIANT, "rules alone")
        accepted = [each.step for each in result.history if each.step.endswith("accepted")]
        assert len(accepted) == 5
        assert all(TASK in asked for asked in small.asked)


@pytest.mark.promise("BUILD-15")
async def test_where_no_answer_passes_the_build_fails_and_changes_nothing(tmp_path: Path) -> None:
    result = await build(tmp_path, model("    return number + 3\n"))
    assert result.state == "failed"
    assert tree(tmp_path) == PROJECT
    if COPIES:
        assert re.search(r"answers? and \d+ small edits tried", result.detail)


@pytest.mark.promise("BUILD-15")
async def test_answer_that_the_tests_accept_and_another_check_does_not_leads_to_another_one(
    tmp_path: Path,
) -> None:
    files = {**PROJECT, "handrail.toml": ""}
    lint = """\
[[checks.commands]]
name = "style"
kind = "lint"
run = "! grep -n multiply calc.py"
"""
    write(tmp_path, files)
    small = model("    multiply = 2\n    return number * multiply\n", "    return number * 2\n")
    async with small_conversation(tmp_path, small, settings=f"{SETTINGS}{lint}") as talk:
        await talk.send(SendMessage(text=TASK, route="build"))
        await talk.until(TurnFinished)
        result = build_result(talk.app.log, talk.id)
    if COPIES:
        assert (result.state, result.corrections) == ("complete", 1)
        assert (tmp_path / "calc.py").read_text() == RIGHT


@pytest.mark.promise("BUILD-3")
async def test_killed_search_leaves_the_old_tree_or_the_verified_one_and_asks_nothing_twice(
    tmp_path: Path, home: Path
) -> None:
    workspace = write(tmp_path / "work", PROJECT)
    answers = ("    return number + 5\n", "    return number + 6\n", "    return number * 2\n")
    commits = Commits(tmp_path / "commits", home, workspace)
    async with small_conversation(workspace, model(*answers), settings=SETTINGS) as talk:
        with commits.watching(talk.app):
            await talk.send(SendMessage(text=TASK, route="build"))
            await talk.until(TurnFinished)
        session_id = talk.id
    if not COPIES:
        return
    for number in commits.restored():
        if number % 9:
            continue  # each costs a build; what the gates do after a kill has a test of its own
        async with small_conversation(workspace, model(answers[-1]), session=session_id) as talk:
            await eventually(lambda app=talk.app: is_idle(app, session_id))  # type: ignore[misc]
            text = (workspace / "calc.py").read_text()
            assert text in (WRONG, RIGHT), number
            keys = [one.event.key for one in talk.seen if isinstance(one.event, CandidateTried)]
            assert len(keys) == len(set(keys))


@pytest.mark.promise("EMB-23")
async def test_build_whose_tests_accept_two_changes_that_differ_is_unverified_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    files = {
        "age.py": "def is_adult(age):\n    return age < 18\n",
        "test_age.py": "from age import is_adult\n\ndef test_it():\n    assert is_adult(30) > is_adult(1)\n",
        "pyproject.toml": '[tool.pytest.ini_options]\ntestpaths = ["."]\n',
    }
    result = await build(tmp_path, model("    return None\n"), files, "Fix the bug in age.py.")
    if COPIES:
        assert result.state == "unverified", result
        assert "`is_adult(18)`" in result.detail
    assert tree(tmp_path, files) == files
