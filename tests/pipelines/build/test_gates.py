"""What the gates of a build look at beside the checks: syntax, intents, the changelog, who is asked."""

import json
from pathlib import Path
from typing import Any

import pytest

from handrail.protocol.commands import SelectIntent, SendMessage
from handrail.protocol.events import RequestStarted, TurnFinished
from tests.engine.conversation import conversation, script_file
from tests.pipelines.build.builds import (
    APPROVED,
    COPIES,
    FIX,
    PLAN,
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
