"""What the gates of a build look at beside the checks: syntax, intents, the changelog, who is asked."""

import json
from pathlib import Path
from typing import Any

import pytest

from handrail.protocol.commands import SelectIntent, SendMessage
from handrail.protocol.events import GateFailed, RequestStarted, StageStarted, TurnFinished
from tests.engine.conversation import conversation, script_file
from tests.engine.conversation import words as words_of
from tests.pipelines.build.builds import (
    APPROVED,
    COPIES,
    FAST,
    FIX,
    PLAN,
    PROJECT,
    RIGHT,
    TASK,
    WRONG,
    Build,
    build,
    replaced,
    script,
    whole,
)
from tests.verification.projects import write

pytestmark = pytest.mark.anyio
CHECK = """\
[checks]
detect = false
skip = ["consistency"]
[[checks.commands]]
name = "tests"
run = "true"
"""
PROBLEMS = {
    "a.ts": ("const a: number = (1;\n", "syntax error"),
    "a.jsx": ("const a = <b>;\n", "syntax error"),
    "a.yaml": ("a: [1\nb: 2\n", "YAML"),
    "a.go": ("func {\n", "syntax error"),
    "a.json": ("{'a': 1}\n", "JSON"),
}
OTHER_INTENTS = """\
active_intents:
  - id: INT-1
    name: Sums
    owned_scope: ["calc.py"]
  - id: INT-2
    name: Taxes
    owned_scope: ["tax.py"]
"""


def modifying(*targets: str) -> dict[str, Any]:
    return {**PLAN, "steps": [{"kind": "modify-file", "description": "Change", "targets": list(targets)}]}


def planned(*targets: str) -> dict[str, Any]:
    return {**PLAN, "steps": [{"kind": "create-file", "description": "Write", "targets": list(targets)}]}


@pytest.mark.promise("BUILD-14")
async def test_file_that_does_not_parse_never_reaches_the_checks(tmp_path: Path) -> None:
    changes = [whole(path, text) for path, (text, _) in PROBLEMS.items()]
    task = f"Write {', '.join(PROBLEMS)}."
    answers = script(changes, plan=planned(*PROBLEMS))
    done = await build(tmp_path, answers, task=task, files={}, settings=CHECK)
    assert done.state == ("escalated" if COPIES else "failed")
    for path, (_, words) in PROBLEMS.items():
        assert (f"{path}:" in done.detail and words in done.detail) == COPIES, (path, done.detail)
        assert not (tmp_path / path).exists()


@pytest.mark.promise("TOOL-14")
async def test_mark_in_place_of_a_secret_is_refused_before_the_checks(tmp_path: Path) -> None:
    key = "PASSWORD = 'hunter2-hunter2-hunter2'\n"
    files = {".env": "SERVICE_PASSWORD=hunter2-hunter2-hunter2\n", "calc.py": WRONG + key}
    mark = "[secret SERVICE_PASSWORD in .env]"
    changes = [whole("calc.py", RIGHT + key.replace("hunter2-hunter2-hunter2", mark))]
    done = await build(tmp_path, script(changes), files=files, settings=CHECK)
    assert done.state == ("escalated" if COPIES else "failed"), done.detail
    assert done.text("calc.py") == WRONG + key
    asked = [words_of(request) for request in done.requests]
    assert any(f"Your last answer was not used: {mark} stands for" in each for each in asked) == COPIES


@pytest.mark.promise("BUILD-14")
async def test_file_that_did_not_parse_before_may_be_edited(tmp_path: Path) -> None:
    chart = {"chart.yaml": "a: {{ .Values.a }}\n", "odd.yaml": "a: [1\n"}
    changes = [replaced("Values.a", "Values.b", "chart.yaml"), replaced("1", "2", "odd.yaml")]
    answers = script(changes, plan=planned(*chart))
    done = await build(tmp_path, answers, task="Change both.", files=chart, settings=CHECK)
    assert done.state == ("complete" if COPIES else "failed"), done.detail


@pytest.mark.promise("BUILD-14")
async def test_change_that_reaches_another_intent_is_for_the_user_to_decide(tmp_path: Path) -> None:
    files = {"calc.py": WRONG, "tax.py": "TAX = 1\n", ".orchestration/active_intents.yaml": OTHER_INTENTS}
    write(tmp_path, files)
    answers = script([FIX, replaced("1", "2", "tax.py")], plan=planned("calc.py", "tax.py"))
    async with conversation(tmp_path, answers, mode="edit", answerable=False, settings=CHECK) as talk:
        await talk.send(SelectIntent(intent_id="INT-1"))
        await talk.send(SendMessage(text="Change the values.", route="build"))
        done = Build(tmp_path, talk, await talk.until(TurnFinished))
    assert done.state == ("escalated" if COPIES else "failed"), done.detail
    assert ("tax.py belongs to INT-2" in done.detail) == COPIES
    assert (done.text("calc.py"), done.text("tax.py")) == (WRONG, "TAX = 1\n")


@pytest.mark.promise("BUILD-14")
async def test_plan_that_reaches_another_intent_is_never_executed(tmp_path: Path) -> None:
    files = {"calc.py": WRONG, "tax.py": "TAX = 1\n", ".orchestration/active_intents.yaml": OTHER_INTENTS}
    write(tmp_path, files)
    answers = script([FIX], plan=modifying("calc.py", "tax.py"))
    async with conversation(tmp_path, answers, mode="edit", answerable=False, settings=CHECK) as talk:
        await talk.send(SelectIntent(intent_id="INT-1"))
        await talk.send(SendMessage(text="Change the values.", route="build"))
        done = Build(tmp_path, talk, await talk.until(TurnFinished))
    assert done.state == ("escalated" if COPIES else "failed"), done.detail
    assert ("tax.py belongs to INT-2" in done.detail) == COPIES
    assert "execute" not in [each.stage for each in done.events if isinstance(each, StageStarted)]


CREATES = {"kind": "create-file", "description": "Write", "targets": ["tax.py"]}
DELETES = {"kind": "delete-file", "description": "Delete", "targets": ["old.py"]}


@pytest.mark.promise("BUILD-14")
@pytest.mark.parametrize(
    ("step", "left_out", "words"),
    [
        pytest.param(CREATES, whole("tax.py", "TAX = 1\n"), "the plan creates tax.py", id="create"),
        pytest.param(DELETES, {"form": "delete", "path": "old.py"}, "the plan deletes old.py", id="delete"),
    ],
)
async def test_answer_that_leaves_out_a_planned_file_never_reaches_the_checks(
    tmp_path: Path, step: dict[str, Any], left_out: dict[str, Any], words: str
) -> None:
    plan = {**PLAN, "steps": [*PLAN["steps"], step]}
    files = {"calc.py": WRONG, "old.py": "OLD = 1\n"}
    write(tmp_path, files)
    answers = [{"when": words, "text": json.dumps({"changes": [FIX, left_out]})}, *script([FIX], plan=plan)]
    async with conversation(tmp_path, answers, mode="edit", settings=CHECK) as talk:
        await talk.send(SendMessage(text=TASK, route="build"))
        end = await talk.until(TurnFinished)
        if COPIES and step is DELETES:  # a plan that deletes waits for the user
            end = await talk.turn("1")
        done = Build(tmp_path, talk, end)
    assert done.state == ("complete" if COPIES else "failed"), done.detail
    if COPIES:
        (refused,) = [each for each in done.events if isinstance(each, GateFailed)]
        assert (refused.gate, len(refused.issues)) == ("G3_execution", 1)
        assert words in refused.issues[0]
        assert (tmp_path / "tax.py").exists() == (step is CREATES)
        assert (tmp_path / "old.py").exists() == (step is CREATES)


CONDITIONS = {
    **APPROVED,
    "verdict": "conditional",
    "issues": ["Keep the signature.", "Say why in a comment."],
}
COMMENTED = replaced("number + 1", "number * 2  # twice")


def judged(met: list[bool]) -> str:
    rows = [{"number": at, "met": each, "why": f"reason {at}"} for at, each in enumerate(met, 1)]
    return json.dumps({"conditions": rows})


@pytest.mark.promise("BUILD-6")
@pytest.mark.parametrize("first", [judged([True, False]), judged([True])], ids=["not met", "not judged"])
async def test_changes_that_do_not_meet_a_condition_of_the_audit_are_corrected_before_the_checks(
    tmp_path: Path, first: str
) -> None:
    reread = [
        {"when": "number * 2  # twice", "text": judged([True, True])},
        {"when": "Output of assemble.diff", "text": first},
    ]
    write(tmp_path, PROJECT)
    answers = [*reread, *script([FIX], audit=CONDITIONS)]
    answers.insert(2, {"when": "Your last answer was not used", "text": json.dumps({"changes": [COMMENTED]})})
    async with conversation(tmp_path, answers, mode="edit", answerable=False, settings=CHECK) as talk:
        await talk.send(SendMessage(text=TASK, route="build"))
        done = Build(tmp_path, talk, await talk.until(TurnFinished))
    assert done.state == ("complete" if COPIES else "failed"), done.detail
    if COPIES:
        (failed,) = [each for each in done.events if isinstance(each, GateFailed)]
        assert failed.gate == "G3_conditions"
        (issue,) = failed.issues
        assert "Say why in a comment." in issue
        assert "number * 2  # twice" in done.text("calc.py")


@pytest.mark.promise("BUILD-6")
async def test_condition_that_is_never_met_escalates_and_changes_nothing(tmp_path: Path) -> None:
    reread = {"when": "Output of assemble.diff", "text": judged([False, True])}
    write(tmp_path, PROJECT)
    answers = [reread, *script([FIX], audit=CONDITIONS)]
    async with conversation(tmp_path, answers, mode="edit", answerable=False, settings=CHECK) as talk:
        await talk.send(SendMessage(text=TASK, route="build"))
        done = Build(tmp_path, talk, await talk.until(TurnFinished))
    assert done.state == ("escalated" if COPIES else "failed"), done.detail
    assert ("Keep the signature. (reason 1)" in done.detail) == COPIES
    assert done.text("calc.py") == WRONG


SILENCED = "tells a check not to look"
TWICE: dict[str, tuple[list[dict[str, Any]], str, bool]] = {
    # {what fails: (two answers, what the model is told after the first, whether the other model is asked)}
    "same demand": ([replaced(f"+ {at}", f"+ {at + 1}  # noqa") for at in (1, 2)], SILENCED, True),
    "other demand": (
        [replaced("+ 1", "+ 2  # noqa"), replaced("+ 2  # noqa", "+ 2  # type: ignore")],
        SILENCED,
        False,
    ),
    "same refusal": (
        [whole("other.py", f"X = {at}\n") for at in (1, 2)],
        "other.py is not in the plan",
        True,
    ),
}


@pytest.mark.promise("BUILD-14")
@pytest.mark.parametrize("fails", TWICE)
async def test_only_a_failure_that_comes_twice_goes_to_the_other_model(tmp_path: Path, fails: str) -> None:
    (first, second), told, is_same = TWICE[fails]
    right = json.dumps({"changes": [whole("calc.py", RIGHT)]})
    audit = {"when": "Output of read", "text": json.dumps(APPROVED)}
    answers = [
        {"when": "(`# type: ignore`)", "text": right},
        {"when": told, "text": json.dumps({"changes": [second]})},
        *script([first]),
    ]
    other = script_file(tmp_path, [audit, {"when": "all issues, wider context", "text": right}], "other.json")
    root = write(tmp_path / "work", {"calc.py": WRONG})
    settings = f'{CHECK}[models]\naudit = "{other}"\n'
    async with conversation(root, answers, mode="edit", answerable=False, settings=settings) as talk:
        await talk.send(SendMessage(text=TASK, route="build"))
        done = Build(root, talk, await talk.until(TurnFinished))
    assert done.state == ("complete" if COPIES else "failed"), done.detail
    if COPIES:
        asked = [each.model for each in done.events if isinstance(each, RequestStarted)]
        assert [each == other for each in asked] == [False, True, False, False, is_same]


@pytest.mark.promise("BUILD-14")
async def test_entry_goes_to_the_changelog_of_the_settings_which_the_model_cannot_write(
    tmp_path: Path,
) -> None:
    settings = f'{CHECK}[build]\nchangelog = "docs/log.md"\n'
    files = {
        "calc.py": WRONG,
        "docs/log.md": "# Log\n\n## [2020-01-01] - Old\n- x\n",
        "CHANGELOG.md": "# C\n",
    }
    done = await build(tmp_path / "good", script([FIX]), files=files, settings=settings)
    assert done.state == ("complete" if COPIES else "failed"), done.detail
    assert ("double returns twice" in done.text("docs/log.md")) == COPIES
    assert done.text("CHANGELOG.md") == "# C\n"
    own = script([FIX, whole("docs/log.md", "# Mine\n")], plan=planned("calc.py", "docs/log.md"))
    refused = await build(tmp_path / "bad", own, files=files, settings=settings)
    assert refused.state == "failed"
    assert ("docs/log.md is written by Handrail" in refused.detail) == COPIES


LOG = "# Changelog\n\n## [2020-01-01] - Old\n- x\n"


@pytest.mark.promise("BUILD-23")
async def test_entry_whose_words_do_not_fit_the_changelog_is_written_by_template(tmp_path: Path) -> None:
    files = {"calc.py": WRONG, "CHANGELOG.md": LOG}
    odd = {**PLAN, "objective": "double returns twice # #"}  # a heading would lose its end
    answer = {"changes": [FIX], "changelog": "twice, as asked"}
    done = await build(tmp_path, script(answer, plan=odd), files=files, settings=CHECK)
    assert done.state == ("complete" if COPIES else "failed"), done.detail
    if COPIES:
        _, entry, old = done.text("CHANGELOG.md").split("\n## ")
        assert entry.partition("] - ")[2] == "Changes\n\n- Changed: `calc.py`\n"
        assert old == "[2020-01-01] - Old\n- x\n"


@pytest.mark.promise("BUILD-23")
@pytest.mark.parametrize(
    ("changelog", "words"),
    [
        pytest.param(None, "build.changelog names docs/log.md, which is not there", id="missing"),
        pytest.param("# Log\n\n```\nopen\n", "cannot be added to docs/log.md", id="open code block"),
    ],
)
async def test_changelog_that_takes_no_entry_fails_the_build_which_applies_nothing(
    tmp_path: Path, changelog: str | None, words: str
) -> None:
    settings = f'{CHECK}[build]\nchangelog = "docs/log.md"\n'
    files = {"calc.py": WRONG} | ({"docs/log.md": changelog} if changelog else {})
    done = await build(tmp_path, script([FIX]), files=files, settings=settings)
    assert done.state == "failed"
    assert {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*.*")} == files
    if COPIES:
        assert words in done.detail
        assert done.history.transitions[-1].before == "awaiting_documentation_gate"


@pytest.mark.promise("BUILD-14")
async def test_failure_that_comes_twice_goes_to_the_other_model(tmp_path: Path) -> None:
    wrong = [[replaced(f"number + {each}", f"number + {each + 1}")] for each in (1, 2)]
    audit = {"when": "Output of read", "text": json.dumps(APPROVED)}
    right = {"changes": [replaced("number + 3", "number * 2")]}
    other = script_file(tmp_path, [audit, {"when": '"round": 3', "text": json.dumps(right)}], "other.json")
    settings = CHECK.replace("true", "grep -q 'number \\\\* 2' calc.py") + f'[models]\naudit = "{other}"\n'
    root = write(tmp_path / "work", {"calc.py": WRONG})
    async with conversation(root, script(*wrong), mode="edit", answerable=False, settings=settings) as talk:
        await talk.send(SendMessage(text=TASK, route="build"))
        done = Build(root, talk, await talk.until(TurnFinished))
    assert done.state == ("complete" if COPIES else "failed"), done.detail
    if COPIES:
        assert done.text("calc.py") == RIGHT
        asked = [each.model for each in done.events if isinstance(each, RequestStarted)]
        assert [each == other for each in asked] == [False, True, False, False, True]


COVERS = """\
import json
import re
from pathlib import Path


def pytest_addoption(parser):
    parser.addoption("--cov")
    parser.addoption("--cov-report", action="append", default=[])
    parser.addoption("--no-cov", action="store_true")


def pytest_sessionfinish(session):
    names = re.findall(r"def (\\w+)", Path("calc.py").read_text())
    tests = Path("tests/test_calc.py").read_text()
    tested = [name for name in names if f"{name}(" in tests]
    for report in session.config.option.cov_report:
        totals = {"percent_covered": 100 * len(tested) / len(names)}
        Path(report.partition(":")[2]).write_text(json.dumps({"totals": totals}))
"""
"""In place of pytest-cov: the share of functions that the tests name."""
MEASURED = {
    **PROJECT,
    "conftest.py": COVERS,
    "pyproject.toml": '[tool.pytest.ini_options]\ntestpaths = ["tests"]\naddopts = "--cov=."\n',
}
UNTESTED = "\n\ndef third(number):\n    return number // 3\n\n\ndef fourth(number):\n    return number // 4\n"


@pytest.mark.promise("BUILD-22")
@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        pytest.param(WRONG + UNTESTED, RIGHT + UNTESTED, "complete", id="was too low"),
        pytest.param(WRONG, RIGHT + UNTESTED, "escalated", id="too low by the task"),
    ],
)
async def test_coverage_counts_only_where_the_task_brings_it_below_the_threshold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str, state: str
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    files, answers = {**MEASURED, "calc.py": before}, script([whole("calc.py", after)])
    done = await build(tmp_path, answers, files=files, settings=FAST)
    assert done.state == (state if COPIES else "failed"), done.detail
    assert done.text("calc.py") == (after if done.state == "complete" else before)
    if COPIES and state != "complete":
        why = " ".join(each.why for each in done.history.transitions)
        assert "tests run 50.0 % of the code; 70 % are needed" in why
