"""The example agent `plan`: code keeps what is done, asks before it writes, and archives what is finished."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.engine.pipeline import Failed, Passed
from handrail.pipelines.plan_file import KeepsPlanOptions, keeps_plan, parse_plan
from handrail.protocol.commands import AnswerQuestion
from handrail.protocol.events import (
    GateFailed,
    QuestionAsked,
    RunPaused,
    SubagentFinished,
    ToolFinished,
    TurnFinished,
)
from tests.engine.conversation import call, conversation
from tests.pipelines.agents import EXAMPLES

pytestmark = pytest.mark.anyio

BEFORE = """\
# Shop

## Basket
- [x] add items, by test_add
- [ ] remove items, by test_remove

## Paying
Later.
"""
AFTER = BEFORE.replace("- [ ] remove", "- [x] remove").replace("Later.", "- [ ] pay, by test_pay")
LOST = AFTER.replace("- [x] add items, by test_add\n", "")
BOTH = BEFORE.replace("Later.", "- [ ] pay, by test_pay")
LOOKED = [
    {"when": "There is no tool write", "text": "The next phase is paying."},
    {"when": "Look at what the task is about", **call("write", path="plan.md", text="anything\n")},
]


def drafted(plan: str, when: str = "Output of look") -> Mapping[str, Any]:
    """The draft: it is asked with what the stage before found."""
    return {"when": when, "text": json.dumps({"plan": plan})}


def planned(workspace: Path, text: str = BEFORE) -> Path:
    shutil.copytree(EXAMPLES / "agents" / "plan", workspace / "agents" / "plan")
    if text:
        (workspace / "plan.md").write_text(text)
    return workspace / "plan.md"


@pytest.mark.promise("AGENT-61")
async def test_a_draft_that_loses_a_done_item_is_sent_back_and_the_user_agrees_before_it_is_written(
    tmp_path: Path,
) -> None:
    plan = planned(tmp_path)
    answers = [drafted(AFTER, "put it back"), drafted(LOST), *LOOKED]
    async with conversation(tmp_path, answers, mode="auto", trust=True) as talk:
        assert (await talk.turn("@plan go on")).reason == "waiting"
        read, written = talk.all(ToolFinished)
        assert (read.status, written.status) == ("ok", "refused")
        assert "There is no tool write" in written.content
        assert "write" not in [tool.name for tool in talk.requests[0].tools]
        assert "- [x] add items, by test_add" in talk.all(GateFailed)[0].issues[0]
        assert "- [ ] pay, by test_pay" in talk.all(RunPaused)[0].text
        assert plan.read_text() == BEFORE
        assert (await talk.turn("1")).reason == "answered"
    assert plan.read_text() == AFTER


@pytest.mark.promise("AGENT-61")
@pytest.mark.parametrize("wrong", [LOST, BOTH])
async def test_a_plan_that_stays_wrong_is_never_written(tmp_path: Path, wrong: str) -> None:
    plan = planned(tmp_path)
    async with conversation(tmp_path, [drafted(wrong), *LOOKED], mode="auto", trust=True) as talk:
        assert (await talk.turn("@plan go on")).reason == "failed"
        assert len(talk.all(GateFailed)) == 3
    assert plan.read_text() == BEFORE


async def test_a_finished_plan_is_archived_and_a_new_one_begins(tmp_path: Path) -> None:
    finished = AFTER.replace("[ ]", "[x]")
    plan = planned(tmp_path, finished)
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "shop.md").write_text("an older one\n")
    new = "# Docs\n\n## Outline\n- [ ] headings, by reading\n"
    async with conversation(tmp_path, [drafted(new), *LOOKED], mode="auto", trust=True) as talk:
        await talk.turn("@plan write the docs")
        assert (await talk.turn("1")).reason == "answered"
    assert plan.read_text() == new
    assert (tmp_path / "plans" / "shop.md").read_text() == "an older one\n"
    assert (tmp_path / "plans" / "shop-2.md").read_text() == finished


@pytest.mark.parametrize("before", [BEFORE, ""])
async def test_what_the_user_wrote_during_the_pause_stays(tmp_path: Path, before: str) -> None:
    """The draft would overwrite an item that was ticked since."""
    plan, theirs = planned(tmp_path, before), "# Mine\n- [x] all of it\n"
    async with conversation(tmp_path, [drafted(AFTER), *LOOKED], mode="auto", trust=True) as talk:
        await talk.turn("@plan go on")
        plan.write_text(theirs)
        end = await talk.turn("1")
    assert end.reason == "failed"
    assert plan.read_text() == theirs


@pytest.mark.promise("SUB-8")
async def test_called_by_a_model_it_asks_the_user_all_the_same(tmp_path: Path) -> None:
    plan = planned(tmp_path, "")
    answers = [
        {"when": '"reason":"answered"', "text": "It is planned."},
        drafted(AFTER),
        *LOOKED,
        call("subagent", agent="plan", task="plan the shop"),
    ]
    async with conversation(tmp_path, answers, mode="edit", trust=True) as talk:
        await talk.say("Let it be planned")
        asked = await talk.until(QuestionAsked)
        assert "Shall plan.md say this?" in asked.question
        assert not plan.exists()
        await talk.send(AnswerQuestion(question_id=asked.question_id, answer="1"))
        await talk.until(TurnFinished)
    assert talk.all(SubagentFinished)[0].report.files == ("plan.md",)
    assert plan.read_text() == AFTER


TEXTS = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8)
ITEMS = st.lists(st.tuples(TEXTS, st.booleans()), max_size=6)


@given(before=ITEMS, after=ITEMS)
def test_a_plan_passes_only_with_every_item_that_was_done(
    before: list[tuple[str, bool]], after: list[tuple[str, bool]]
) -> None:
    def text(items: list[tuple[str, bool]]) -> str:
        return "## P\n" + "".join(f"- [{'x' if done else ' '}] {said}\n" for said, done in items)

    options = KeepsPlanOptions("plan", "open.text")
    verdict = keeps_plan(options, {"plan": text(after)}, {"open": {"text": text(before)}})
    left = [said for said, done in after if done]
    kept = all(left.count(said) >= [s for s, d in before if d].count(said) for said, done in before if done)
    assert isinstance(verdict, Passed if kept and after else Failed)


def test_a_plan_is_finished_when_every_phase_is_worked_out_and_ticked() -> None:
    assert not parse_plan("").finished
    assert not parse_plan(AFTER).finished
    assert not parse_plan(BEFORE.replace("[ ]", "[x]")).finished  # Paying is not worked out
    assert not parse_plan("# A\n```\n- [x] an example\n```\n").finished
    assert parse_plan(AFTER.replace("[ ]", "[X]")).finished
