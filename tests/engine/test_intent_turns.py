"""Conversations in a workspace with intents: what the model is told, and what stays apart."""

import platform
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.context.prompt import system_prompt
from handrail.models.model import Request
from handrail.protocol.commands import AnswerApproval, Redo, Rewind, SelectIntent
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import (
    ApprovalAsked,
    ChangePrepared,
    Compacted,
    IntentEdited,
    IntentSelected,
    Redone,
    Rewound,
    ToolFinished,
    TurnFinished,
)
from handrail.sessions.workspace_events import intent_history
from handrail.workspace.intents_file import INTENTS_FILE
from tests.engine.conversation import call, conversation, run, words

pytestmark = pytest.mark.anyio

INTENTS = """- id: CART
  name: Totals
  owned_scope: [src/**]
  constraints: [no new dependency]
- id: DOCS
  name: Pages
  owned_scope: [docs/**]
"""
SELECT = call("select_active_intent", intent_id="CART")
BLOCK = '<intent_context id="CART">'


def bind(folder: Path, text: str = INTENTS) -> Path:
    (folder / ".orchestration").mkdir(parents=True)
    (folder / INTENTS_FILE).write_text(text)
    return folder


def fixed(request: Request) -> tuple[str, list[str]]:
    return request.system, [tool.name for tool in request.tools]


@pytest.mark.promise("INTENT-9")
async def test_without_intents_the_prompt_says_nothing_of_them(tmp_path: Path) -> None:
    async with conversation(tmp_path, [{"text": "hi"}]) as talk:
        await talk.turn("hello")
    system, tools = fixed(talk.requests[0])
    assert system == system_prompt(str(tmp_path), platform.system(), "")
    assert not {"select_active_intent", "request_scope"} & set(tools)
    assert not (tmp_path / ".orchestration").exists()


@pytest.mark.promise("INTENT-3")
async def test_the_model_is_told_the_ids_selects_one_and_has_it_in_every_turn_also_after_a_restart(
    tmp_path: Path,
) -> None:
    bind(tmp_path)
    answers = [
        call("write", path="src/a.py", text="x = 1\n"),
        SELECT,
        call("write", path="src/a.py", text="x = 1\n"),
        {"text": "done"},
        {"text": "again"},
    ]
    async with conversation(tmp_path, answers, mode="edit") as talk:
        await talk.turn("go")
        assert [each.error and each.error.reason for each in talk.all(ToolFinished)] == [
            "missing_intent_id",
            None,
            None,
        ]
        (change,) = talk.all(ChangePrepared)
        assert change.intent_id == "CART"
        await talk.turn("more")
        session, seen, system = talk.id, talk.app.last_seq(talk.id), fixed(talk.requests[0])[0]
        assert "select_active_intent" in system
        assert "CART (Totals), DOCS (Pages)." in system
        assert BLOCK not in system
        assert [fixed(each) for each in talk.requests[1:4]] == [fixed(talk.requests[0])] * 3
        later = fixed(talk.requests[4])[0]
        assert later.startswith(system)
        assert f"{BLOCK}\n  <name>Totals</name>" in later
        assert "Changed last for CART: create src/a.py." in words(talk.requests[4])
    async with conversation(tmp_path, [{"text": "hi"}], session=session, after=seen) as talk:
        await talk.turn("still there?")
        assert fixed(talk.requests[0])[0] == later


@pytest.mark.promise("INTENT-3")
async def test_a_compaction_in_the_turn_that_selects_does_not_lose_the_intent(tmp_path: Path) -> None:
    bind(tmp_path)
    for number in range(8):
        (tmp_path / f"{number}.txt").write_text("some words\n" * 300)
    reading = [call("read", path=f"{number}.txt") for number in range(8)]
    answers: list[dict[str, Any]] = [SELECT, *reading, {"text": "done"}]
    async with conversation(tmp_path, answers, window=8_000) as talk:
        await talk.turn("read it all")
        assert talk.all(Compacted)
        last = talk.requests[-1]
        assert BLOCK in last.system
        assert BLOCK not in words(last)


@pytest.mark.promise("INTENT-10")
async def test_an_edit_by_hand_is_in_the_next_turn_and_its_old_text_is_kept(tmp_path: Path) -> None:
    bind(tmp_path)
    async with conversation(tmp_path, [SELECT, {"text": "ok"}, {"text": "ok"}]) as talk:
        await talk.turn("go")
        (tmp_path / INTENTS_FILE).write_text(INTENTS.replace("no new dependency", "no globals"))
        await talk.turn("more")
        assert "<constraint>no globals</constraint>" in talk.requests[-1].system
        edits = [each.event for each in intent_history(talk.app.log).versions["CART"]]
        assert [isinstance(each, IntentEdited) and "no new dependency" in each.old for each in edits] == [
            False,
            True,
        ]


async def test_a_hundred_intents_take_bounded_room_in_the_prompt(tmp_path: Path) -> None:
    long = "\n".join(f"- id: {'LONG-' * 11}{number}\n  name: {'n' * 200}" for number in range(150))
    bind(tmp_path, long)
    async with conversation(tmp_path, [{"text": "hi"}]) as talk:
        await talk.turn("hello")
    assert len(talk.requests[0].system) < 8_000
    assert "more in .orchestration/active_intents.yaml" in talk.requests[0].system


@pytest.mark.promise("INTENT-8")
async def test_a_file_that_cannot_be_read_is_told_to_the_model_and_nothing_is_done(tmp_path: Path) -> None:
    bind(tmp_path, "- id: [")
    async with conversation(tmp_path, [run("ls"), {"text": "hm"}], mode="auto") as talk:
        await talk.turn("go")
        (end,) = talk.all(ToolFinished)
        assert end.error
        assert end.error.reason == "intents_unreadable"
    assert "cannot be read" in talk.requests[0].system


async def test_the_user_selects_and_clears_the_intent(tmp_path: Path) -> None:
    bind(tmp_path)
    async with conversation(tmp_path, [{"text": "hi"}]) as talk:
        with pytest.raises(UsageProblem, match="Select one of: CART, DOCS"):
            await talk.send(SelectIntent(intent_id="NONE"))
        await talk.send(SelectIntent(intent_id="DOCS"))
        selected = await talk.until(IntentSelected)
        assert (selected.intent_id, selected.by) == ("DOCS", "user")
        await talk.turn("hello")
        assert '<intent_context id="DOCS">' in talk.requests[0].system
        await talk.send(SelectIntent(intent_id=""))
        assert (await talk.until(IntentSelected)).intent_id == ""
        assert talk.app.state(talk.id).intent == ""


async def test_where_the_setting_asks_for_intents_nothing_is_done_without_a_file(tmp_path: Path) -> None:
    answers = [call("write", path="a.txt", text="x"), {"text": "hm"}]
    settings = "[intents]\nrequired = true\n"
    async with conversation(tmp_path, answers, settings=settings, mode="auto") as talk:
        await talk.turn("go")
        (end,) = talk.all(ToolFinished)
    assert end.error
    assert end.error.reason == "intents_unreadable"
    assert "handrail intents init" in end.error.message
    assert not (tmp_path / "a.txt").exists()


async def test_more_scope_is_asked_for_in_the_conversation(tmp_path: Path) -> None:
    bind(tmp_path)
    answers = [
        SELECT,
        call("request_scope", paths=["docs/x.md"], reason="the page"),
        call("write", path="docs/x.md", text="x\n"),
        {"text": "done"},
    ]
    async with conversation(tmp_path, answers, mode="edit") as talk:
        await talk.say("go")
        asked = await talk.until(ApprovalAsked)
        assert (asked.tool, asked.intent) == ("request_scope", "CART")
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
        await talk.until(TurnFinished)
    assert (tmp_path / "docs/x.md").read_text() == "x\n"
    assert "docs/x.md" in (tmp_path / INTENTS_FILE).read_text()


async def test_what_is_taken_back_and_done_again_belongs_to_the_intent_of_what_it_was(tmp_path: Path) -> None:
    bind(tmp_path)
    answers = [SELECT, call("write", path="src/a.py", text="x\n"), {"text": "ok"}]
    async with conversation(tmp_path, answers, mode="edit") as talk:
        await talk.turn("go")
        await talk.send(SelectIntent(intent_id="DOCS"))
        await talk.until(IntentSelected)
        (made,) = talk.all(ChangePrepared)
        await talk.send(Rewind(to=made.change_id))
        back = await talk.until(ChangePrepared)
        await talk.until(Rewound)
        await talk.send(Redo())
        again = await talk.until(ChangePrepared)
        await talk.until(Redone)
    assert [each.intent_id for each in (made, back, again)] == ["CART"] * 3


@pytest.mark.promise("INTENT-11")
async def test_two_sessions_on_two_intents_are_kept_apart_by_scope_and_by_hash(tmp_path: Path) -> None:
    bind(tmp_path, INTENTS.replace("src/**", "src/**, shared.txt").replace("docs/**", "docs/**, shared.txt"))
    (tmp_path / "shared.txt").write_text("one\n")

    def answers(intent: str, own: str, others: str) -> list[dict[str, Any]]:
        return [
            call("select_active_intent", intent_id=intent),
            call("read", path="shared.txt"),
            call("write", path=own, text="mine\n"),
            call("write", path=others, text="not mine\n"),
            call("edit", path="shared.txt", edits=[{"search": "one", "replace": intent}]),
            {"text": "done"},
        ]

    ends: dict[str, list[str]] = {}

    async def work(intent: str, own: str, others: str, ready: anyio.Event, other: anyio.Event) -> None:
        options: dict[str, Any] = {"mode": "edit", "answerable": False}
        async with conversation(tmp_path, answers(intent, own, others), **options) as talk:
            talk.held.hold(4, 0)
            await talk.say("go")
            await talk.held.reached(4, 0)
            ready.set()
            await other.wait()  # both have read what both will change
            talk.held.let_go(4, 0)
            await talk.until(TurnFinished)
            ends[intent] = [each.error.reason if each.error else "ok" for each in talk.all(ToolFinished)]
            assert {each.intent_id for each in talk.all(ChangePrepared)} == {intent}

    first, second = anyio.Event(), anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work, "CART", "src/a.py", "docs/b.md", first, second)
        tasks.start_soon(work, "DOCS", "docs/a.md", "src/b.py", second, first)
    assert [each[:4] for each in ends.values()] == [["ok", "ok", "ok", "scope_violation"]] * 2
    assert sorted(each[4] for each in ends.values()) == ["ok", "stale_file"]
    assert (tmp_path / "shared.txt").read_text() in ("CART\n", "DOCS\n")
    assert sorted(path.name for path in tmp_path.glob("*/?.*")) == ["a.md", "a.py"]
