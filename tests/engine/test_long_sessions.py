"""Long sessions: what a compaction keeps, by code and by a model, and that it can always be gone on with."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from handrail.context.digest import MAX_DIGEST_TOKENS
from handrail.context.token_budget import text_tokens
from handrail.engine.compaction import notes_problem, tidy_notes
from handrail.protocol.commands import (
    AnswerApproval,
    AnswerQuestion,
    Cancel,
    Compact,
    CompleteTodo,
    SendMessage,
    UndoCompaction,
)
from handrail.protocol.events import (
    ApprovalAsked,
    Compacted,
    CompactionUndone,
    QuestionAsked,
    SideAnswered,
    SideAsked,
    TurnFinished,
    UserMessage,
)
from tests.engine.conversation import Conversation, call, calls, conversation, run, script_file, words
from tests.engine.test_compaction import assert_well_formed, tokens
from tests.pipelines.agents import SMALL, agent

pytestmark = pytest.mark.anyio

GOAL = "Make the totals of the cart right, with tests."
CONSTRAINT = "The public names in cart.py must never change."
ASKED_FOR_NOTES = "[Handrail: the conversation above"
NOTES = """Goal: right totals
Constraints:
- public names stay
Decisions:
- cents as integers, because floats lose them
Failed attempts:
- Decimal everywhere: too slow
State: rounding is next"""
HEADED = ("Goal", "Constraints", "Decisions", "Failed attempts", "State")
TALK: list[dict[str, Any]] = [
    call("todos", todos=[{"text": "round half up"}, {"text": "write tests"}]) | {"when": GOAL},
    call("ask_user", question="Which rounding?", options=["half up", "bankers"]) | {"when": "plan it"},
    call("write", path="cart.py", text="total = 1\n") | {"when": "write it"},
    call("write", path="secret_plan.py", text="x\n") | {"when": "write more"},
    run("echo the totals differ by 3; exit 4") | {"when": "run it"},
    {"text": "Understood. " + "Indeed, this is so. " * 120, "when": ""},
]


def with_notes(notes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"when": ASKED_FOR_NOTES, **notes}, *TALK]


async def real_work(talk: Conversation) -> None:
    """A session in which everything happens that a compaction has to keep."""
    await talk.turn(GOAL)
    await talk.turn(f"Before you begin: {CONSTRAINT} Please mind it.")
    await talk.say("plan it")
    question = await talk.until(QuestionAsked)
    await talk.send(
        AnswerQuestion(question_id=question.question_id, answer="half up, as the tax office wants")
    )
    await talk.until(TurnFinished)
    for text, decision, note in (
        ("write it", "once", ""),
        ("write more", "reject", "no plans in the repository"),
    ):
        await talk.say(text)
        asked = await talk.until(ApprovalAsked)
        answer = {"approval_id": asked.approval_id, "decision": decision, "note": note}
        await talk.send(convert(answer, AnswerApproval))
        await talk.until(TurnFinished)
    await talk.say("run it")
    asked = await talk.until(ApprovalAsked)
    await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
    await talk.until(TurnFinished)
    await talk.send(CompleteTodo(todo_id="t1"))


async def chat(talk: Conversation, turns: int) -> None:
    for number in range(turns):
        assert (await talk.turn(f"and what of case {number}? " + "It is odd. " * 20)).reason == "answered"


def assert_kept(summary: str) -> None:
    digits = hashlib.sha256(b"total = 1\n").hexdigest()[:12]
    assert summary.count(GOAL) == 1
    assert CONSTRAINT in summary
    assert "Which rounding? The user: half up, as the tax office wants" in summary
    assert "secret_plan.py" in summary
    assert "no plans in the repository" in summary
    assert f"cart.py [hash: {digits}]" in summary
    assert "the totals differ by 3" in summary
    assert "t2: write tests" in summary
    assert "t1: round half up" not in summary


@pytest.mark.promise("CTX-1")
async def test_a_real_session_keeps_all_that_matters_over_many_compactions(tmp_path: Path) -> None:
    async with conversation(tmp_path, TALK, window=12_000) as talk:
        await real_work(talk)
        await chat(talk, 60)
        made = talk.all(Compacted)
        assert len(made) > 4
        for event in made[1:]:
            assert_kept(event.summary)
            assert event.tokens_after < event.tokens_before
            assert text_tokens(event.summary) <= 2_100
            assert event.by == ""
        assert not talk.all(SideAsked)
    assert max(tokens(request) for request in talk.requests) < 12_000
    assert_kept(words(talk.requests[-1]))


@pytest.mark.promise("CTX-5")
async def test_a_capable_model_writes_notes_beside_the_facts_and_they_are_replaced_not_piled_up(
    tmp_path: Path,
) -> None:
    usage = {"input_tokens": 4_000, "output_tokens": 50}
    async with conversation(tmp_path, with_notes({"text": NOTES, "usage": usage}), window=24_000) as talk:
        await real_work(talk)
        await chat(talk, 90)
        made = talk.all(Compacted)
        assert len(made) > 3
        for event in made:
            assert event.by == "scripted/test"
            assert event.summary.count("cents as integers") == 1
        assert_kept(made[-1].summary)
        assert text_tokens(made[-1].summary) <= MAX_DIGEST_TOKENS
        asked, answered = talk.all(SideAsked), talk.all(SideAnswered)
        assert [each.request_id for each in asked] == [each.request_id for each in answered]
        state = talk.app.state(talk.id)
        requests = len(talk.requests) - len(asked)
        assert state.usage.input_tokens == 10 * requests + 4_000 * len(answered)
    for request in talk.requests:
        if ASKED_FOR_NOTES not in words(request):
            assert NOTES not in words(request).replace(made[0].kept.notes, "")
        assert_well_formed(request)
    assert "cents as integers" in words(talk.requests[-1])
    assert ASKED_FOR_NOTES not in words(talk.requests[-1])


@pytest.mark.promise("CTX-5")
@pytest.mark.parametrize(
    ("notes", "problem"),
    [
        ({"error": {"kind": "give_up", "message": "no more today"}}, "no more today"),
        ({"error": {"kind": "retry_later", "message": "busy", "after_chunks": 2}, "text": NOTES}, "busy"),
        ({"text": NOTES, "finish": "length"}, "length limit"),
        ({"text": ""}, "wrote nothing"),
        ({"text": "Sure, here is a poem about carts."}, "no goal"),
        ({"text": NOTES.replace("Decisions", "Choices")}, "no decisions"),
        ({"text": NOTES + "\n- and more" * 3_000}, "Its notes are too long"),
        (call("read", path="cart.py"), "wrote nothing"),
    ],
)
async def test_notes_that_cannot_be_used_are_not_and_code_keeps_the_facts(
    tmp_path: Path, notes: dict[str, Any], problem: str
) -> None:
    async with conversation(tmp_path, with_notes(notes), window=40_000) as talk:
        await real_work(talk)
        await talk.send(Compact())
        event = await talk.until(Compacted)
        assert event.by == ""
        assert problem in event.problem
        assert event.kept.notes == ""
        assert len(talk.all(SideAnswered)) == 1
        assert (await talk.turn("go on")).reason == "answered"
    assert "poem" not in words(talk.requests[-1])
    assert GOAL in words(talk.requests[-1])


@pytest.mark.promise("CTX-5")
async def test_cancelling_while_notes_are_written_leaves_all_as_it_was(tmp_path: Path) -> None:
    async with conversation(tmp_path, with_notes({"text": NOTES}), window=40_000) as talk:
        await talk.turn("one")
        await talk.turn("two")
        talk.held.hold(2, 3)
        await talk.send(Compact())
        await talk.held.reached(2, 3)
        await talk.send(SendMessage(text="three"))
        await talk.send(Cancel())
        ended = await talk.until(SideAnswered)
        assert "cancelled" in ended.problem
        talk.held.let_go(2, 3)
        await talk.until(TurnFinished)
        assert not talk.all(Compacted)
        assert talk.app.state(talk.id).side == ""
    assert "three" in words(talk.requests[-1])
    assert "one" in words(talk.requests[-1])


@pytest.mark.promise("CTX-5")
async def test_a_turn_cancelled_while_its_notes_are_written_ends_and_the_next_goes_on(tmp_path: Path) -> None:
    # Longer than any other answer, so that only these notes come to the chunk where they are held.
    notes = {"text": NOTES + " x" * 700}
    async with conversation(tmp_path, with_notes(notes), window=24_000) as first:
        turns = 0
        while not first.all(SideAsked):
            await chat(first, 1)
            turns += 1
    async with conversation(tmp_path, with_notes(notes), window=24_000) as talk:
        await chat(talk, turns - 1)
        number = turns - 1
        talk.held.hold(number, 650)
        await talk.say("and what of case 0? " + "It is odd. " * 20)
        await talk.held.reached(number, 650)
        await talk.send(Cancel())
        assert (await talk.until(TurnFinished)).reason == "cancelled"
        (ended,) = talk.all(SideAnswered)
        assert "cancelled" in ended.problem
        assert not talk.all(Compacted)
        talk.held.let_go(number, 650)
        assert (await talk.turn("go on")).reason == "answered"
        assert talk.all(Compacted)[0].by == "scripted/test"


@pytest.mark.promise("CTX-5")
async def test_a_restart_while_notes_are_written_closes_the_question_and_asks_again(tmp_path: Path) -> None:
    async with conversation(tmp_path, with_notes({"text": NOTES}), window=40_000) as talk:
        await talk.turn("one")
        await talk.turn("two")
        talk.held.hold(2, 3)
        await talk.send(Compact())
        await talk.held.reached(2, 3)
    async with conversation(tmp_path, with_notes({"text": NOTES}), window=40_000, session=talk.id) as again:
        first = await again.until(SideAnswered)
        assert first.problem
        event = await again.until(Compacted)
        assert event.by == "scripted/test"
        assert (await again.turn("three")).reason == "answered"


@pytest.mark.parametrize("dress", ["## {}", "**{}:**", "{}:", "- {}: x", "  __{}__"])
def test_headings_are_found_however_they_are_dressed_up(dress: str) -> None:
    text = "Here you are.\n" + "\n\n".join(f"{dress.format(each)}\n- none" for each in HEADED)
    assert notes_problem(text) == ""
    assert tidy_notes(text).lstrip("#*-_ ").startswith("Goal")
    assert notes_problem(text.replace("State", "The state of it")) != ""


@pytest.mark.promise("ENG-19")
async def test_undoing_goes_back_one_compaction_at_a_time(tmp_path: Path) -> None:
    async with conversation(tmp_path, with_notes({"text": NOTES}), window=40_000) as talk:
        await real_work(talk)
        full = talk.requests[-1]
        await talk.send(Compact())
        first = await talk.until(Compacted)
        await chat(talk, 3)
        await talk.send(Compact())
        second = await talk.until(Compacted)
        assert second.upto > first.upto
        await talk.send(UndoCompaction())
        await talk.until(CompactionUndone)
        await talk.turn("once back")
        assert first.summary in words(talk.requests[-1])
        assert "and what of case 0?" in words(talk.requests[-1])
        await talk.send(UndoCompaction())
        await talk.until(CompactionUndone)
        await talk.turn("all back")
    assert talk.requests[-1].messages[: len(full.messages)] == full.messages


@pytest.mark.promise("ENG-18")
async def test_one_turn_with_many_calls_is_compacted_in_its_middle_and_knows_what_was_asked(
    tmp_path: Path,
) -> None:
    for number in range(80):
        (tmp_path / f"file{number}").write_text(f"content {number}\n" * 100)
    task = (
        "Read all eighty files, one by one. " + "Only the odd ones matter, in the end. " * 12 + "Mind this."
    )
    answers = [call("read", path=f"file{number}") for number in range(80)] + [{"text": "All read."}]
    chosen = [each | {"when": f"content {number - 1}\n"} for number, each in enumerate(answers) if number]
    answers = [answers[0] | {"when": "Mind this."}, {"text": "ok", "when": GOAL}, *reversed(chosen)]
    async with conversation(tmp_path, answers, window=14_000, settings="[limits]\nsteps = 100") as talk:
        await talk.turn(GOAL)
        assert (await talk.turn(task)).reason == "answered"
        assert len(talk.all(Compacted)) > 3
    assert max(tokens(request) for request in talk.requests) < 14_000
    for request in talk.requests[1:]:
        assert_well_formed(request)
        assert task in words(request)
        assert GOAL in words(request)


@pytest.mark.promise("ENG-18")
async def test_what_does_not_fit_even_alone_is_cut_and_says_so(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"big{number}").write_text(f"line of {number}\n" * 390)
    reads = calls(*(call("read", path=f"big{number}") for number in range(12)))
    answers = [reads | {"when": "read them"}, {"text": "Seen.", "when": ""}]
    async with conversation(tmp_path, answers, window=8_000) as talk:
        await talk.turn(GOAL)
        assert (await talk.turn("read them all")).reason == "answered"
        assert (await talk.turn("and a long word: " + "x" * 100_000)).reason == "answered"
        assert (await talk.turn("and now?")).reason == "answered"
    for request in talk.requests:
        assert_well_formed(request)
        assert tokens(request) <= 8_000 - 2_000
        assert GOAL in words(request)
    told = [event.unattached for event in talk.all(UserMessage)]
    assert [bool(each) for each in told] == [False, False, True, False]
    assert "too long for scripted/test" in told[2][0]
    assert "does not fit your window" in words(talk.requests[2])
    assert "line of 11" in words(talk.requests[2])


@pytest.mark.promise("ENG-18")
async def test_the_smallest_window_is_enough_for_all_tools_the_goal_and_the_last_words(
    tmp_path: Path,
) -> None:
    async with conversation(tmp_path, TALK, window=40_000) as before:
        await real_work(before)
        last = before.app.last_seq(before.id)
    async with conversation(tmp_path, TALK[-1:], window=4_096, session=before.id, after=last) as talk:
        await chat(talk, 25)
        assert talk.all(Compacted)
        digest = talk.all(Compacted)[-1]
        assert "t2: write tests" in digest.summary
        assert "cart.py [hash:" in digest.summary
    assert max(tokens(request) for request in talk.requests) <= 4_096 - 1_024
    for request in talk.requests:
        assert_well_formed(request)
        assert GOAL in words(request)
    assert "case 24" in words(talk.requests[-1])


@pytest.mark.promise("ENG-18")
async def test_a_small_window_has_only_the_tools_that_work_needs(tmp_path: Path) -> None:
    offered = []
    for window in (4_096, 16_000):
        async with conversation(tmp_path, [{"text": "hi"}], window=window) as talk:
            await talk.turn("hi")
        offered.append({tool.name for tool in talk.requests[0].tools})
    assert {"read", "edit", "run", "todos"} <= offered[0]
    assert offered[1] - offered[0] == {"credential_prompt", "validate", "subagent", "record_lesson"}
    # An agent that names one has it.
    agent(
        tmp_path,
        text='tools = ["read", "validate"]'
        + SMALL.replace('kind = "ask"', 'kind = "work"').split("[stages.output]")[0],
    )
    async with conversation(tmp_path, [{"text": "hi"}], window=4_096, trust=True) as talk:
        await talk.turn("@small hi")
    assert [tool.name for tool in talk.requests[0].tools] == ["read", "validate"]


@pytest.mark.promise("CTX-1")
async def test_a_fork_an_import_and_a_restart_go_on_from_what_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    async with conversation(root, with_notes({"text": NOTES}), window=40_000) as talk:
        await real_work(talk)
        await talk.send(Compact())
        event = await talk.until(Compacted)
        await talk.turn("one more")
        file = tmp_path / "session.jsonl"
        talk.app.export(talk.id, file)
        forked = talk.app.fork(talk.id)
        seqs = {talk.id: talk.app.last_seq(talk.id), forked: talk.app.last_seq(forked)}

    async def go_on(session: str, last: int) -> None:
        async with conversation(
            root, with_notes({"text": NOTES}), window=40_000, session=session, after=last
        ) as again:
            await again.turn("and then?")
            assert event.summary in words(again.requests[-1])
            assert GOAL in words(again.requests[-1])
            await again.send(Compact())
            second = await again.until(Compacted)
            assert_kept(second.summary)

    for session, last in seqs.items():
        await go_on(session, last)
    monkeypatch.setenv("HANDRAIL_HOME", str(tmp_path / "other"))
    async with conversation(root, TALK, window=40_000) as other:
        imported = other.app.import_session(file)
        last = other.app.last_seq(imported)
    await go_on(imported, last)


@pytest.mark.promise("CTX-5")
async def test_the_model_that_is_set_for_side_work_writes_the_notes(tmp_path: Path) -> None:
    fast = script_file(tmp_path, [{"when": ASKED_FOR_NOTES, "text": NOTES}], "fast.json")
    settings = f'[models]\nfast = "{fast}"'
    async with conversation(tmp_path, TALK, window=40_000, settings=settings) as talk:
        await real_work(talk)
        await talk.send(Compact())
        event = await talk.until(Compacted)
        (asked,) = [each for each in talk.all(SideAsked) if each.purpose == "summary"]
    assert event.by == asked.model == fast
    assert asked.role == "fast"
    assert not any(ASKED_FOR_NOTES in words(request) for request in talk.requests)
