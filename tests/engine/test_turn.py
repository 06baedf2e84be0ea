"""A message on its way through a pipeline, from the first stage to its end."""

from pathlib import Path

import pytest

from handrail.engine.pipeline import Pipeline, Stage
from handrail.protocol.commands import Cancel, Compact, SendMessage
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import (
    Answered,
    BreakoutPending,
    Compacted,
    GateFailed,
    RequestStarted,
    RunBrokenOff,
    RunCompleted,
    RunFailed,
    RunPaused,
    RunRepaired,
    RunResumed,
    RunStarted,
    StageCompleted,
    StageStarted,
    ToolStarted,
    TurnFinished,
)
from tests.engine.conversation import Conversation, conversation, words
from tests.engine.scripted import QUESTION, answers, as_json, catalogue, report

pytestmark = pytest.mark.anyio


async def begin(talk: Conversation) -> TurnFinished:
    await talk.send(SendMessage(text=QUESTION, route="report"))
    return await talk.until(TurnFinished)


@pytest.mark.promise("RUN-1")
async def test_a_run_goes_through_its_stages_with_a_pause_and_a_repair(tmp_path: Path) -> None:
    async with conversation(tmp_path, answers(), mode="edit", catalogue=catalogue()) as talk:
        paused = await begin(talk)
        assert paused.reason == "waiting"
        (pause,) = talk.all(RunPaused)
        assert "- costs" in pause.text
        assert "3. Leave this run" in pause.text
        assert pause.exit == 3
        state = talk.app.state(talk.id)
        assert (state.turn, state.run) == (None, None)
        assert state.paused
        assert (await talk.turn("1")).reason == "answered"
    stages = [event.stage for event in talk.all(StageStarted)]
    assert stages == ["plan", "gather", "draft", "gather", "draft", "publish"]
    assert len(talk.all(StageCompleted)) == 6
    assert [event.issues for event in talk.all(GateFailed)] == [("A score of 0.2 is too low.",)]
    assert [event.number for event in talk.all(RunRepaired)] == [1]
    assert [(event.choice, event.feedback) for event in talk.all(RunResumed)] == [("Go on", "")]
    assert "and chose: Go on" in words(talk.requests[-1])
    assert "The user says" not in words(talk.requests[-1])
    assert "The report is written." in talk.all(RunCompleted)[0].text
    assert (tmp_path / "report.md").read_text() == "Costs rose by 3 %.\n"
    written = sorted(path.name for path in tmp_path.glob("*-*.txt"))
    assert written == ["first-1.txt", "first-2.txt", "second-1.txt", "second-2.txt"]


@pytest.mark.promise("RUN-1")
async def test_every_step_of_a_run_is_under_its_stage_with_an_id_of_its_own(tmp_path: Path) -> None:
    async with conversation(tmp_path, answers(), mode="edit", catalogue=catalogue()) as talk:
        await begin(talk)
        await talk.turn("1")
    stages = {event.stage_id: event.stage for event in talk.all(StageStarted)}
    asked, called = talk.all(RequestStarted), talk.all(ToolStarted)
    assert [stages[event.stage_id] for event in asked] == ["plan", "draft", "draft"]
    assert [stages[event.stage_id] for event in called] == ["gather"] * 4 + ["publish"]
    ids = [*(event.message_id for event in asked), *(event.call_id for event in called)]
    assert len(set(ids)) == len(ids)
    texts = {delta.message_id for delta in talk.deltas if delta.kind == "text"}
    assert texts == {event.message_id for event in asked}


@pytest.mark.promise("RUN-1")
async def test_a_gate_that_fails_too_often_ends_the_run(tmp_path: Path) -> None:
    pipelines = catalogue(report(times=0))
    async with conversation(tmp_path, answers(), mode="edit", catalogue=pipelines) as talk:
        await begin(talk)
        finished = await talk.turn("1")
    assert finished.reason == "failed"
    assert "draft did not pass well_scored" in finished.detail
    (failed,) = talk.all(RunFailed)
    assert "partial" in failed.summary
    assert not (tmp_path / "report.md").exists()


async def test_an_answer_that_is_not_of_the_schema_is_asked_for_again_once(tmp_path: Path) -> None:
    bad = as_json(f"Question:\n{QUESTION}", {"topics": "costs"})
    good = as_json("`topics` is not of type array", {"topics": ["costs"]})
    async with conversation(tmp_path, [bad, good], catalogue=catalogue()) as talk:
        assert (await begin(talk)).reason == "waiting"
    async with conversation(tmp_path, [bad, {**good, "text": "no"}], catalogue=catalogue()) as talk:
        finished = await begin(talk)
        assert finished.reason == "failed"
        assert "The answer of the stage plan cannot be used" in finished.detail
        assert talk.app.state(talk.id).runs.current is None


@pytest.mark.promise("RUN-4")
async def test_who_leaves_a_run_gets_the_message_that_asked_for_it_answered(tmp_path: Path) -> None:
    asked = "what is in notes.txt?"
    script = answers({"when": asked, "text": "Notes are in it."})
    async with conversation(tmp_path, script, catalogue=catalogue()) as talk:
        await begin(talk)
        assert (await talk.turn(f"never mind, {asked}")).reason == "waiting"
        (pending,) = talk.all(BreakoutPending)
        assert "1. Leave" in pending.text
        assert (await talk.turn("yes")).reason == "answered"
        assert talk.all(Answered)[-1].text == "Notes are in it."
        (left,) = talk.all(RunBrokenOff)
        assert "partial" in left.summary
        assert [event.pipeline for event in talk.all(RunStarted)] == ["report", "agent"]
        last = words(talk.requests[-1])
        assert last.count(asked) == 1
        assert "yes" not in last.split()
        assert "Run of report: the user left it, partial" in last


@pytest.mark.promise("RUN-4")
async def test_a_word_to_a_paused_run_is_its_feedback_unless_a_model_is_sure_that_it_leaves(
    tmp_path: Path,
) -> None:
    async with conversation(tmp_path, answers(), mode="edit", catalogue=catalogue()) as talk:
        await begin(talk)
        assert (await talk.turn("also look at the dates")).reason == "answered"
        assert talk.all(RunResumed)[-1].feedback == "also look at the dates"
        assert "The user says:\n- also look at the dates" in words(talk.requests[-1])
    for sure, ends in ((0.69, "answered"), (0.7, "waiting")):
        script = answers(means="breakout", sure=sure)
        async with conversation(tmp_path, script, mode="edit", catalogue=catalogue()) as talk:
            await begin(talk)
            assert (await talk.turn("how do I install this?")).reason == ends


@pytest.mark.promise("RUN-4")
async def test_a_model_that_fails_to_say_what_a_word_means_does_not_leave(tmp_path: Path) -> None:
    script = [{"when": "The user's message:", "error": {"kind": "give_up"}}, *answers()]
    async with conversation(tmp_path, script, mode="edit", catalogue=catalogue()) as talk:
        await begin(talk)
        assert (await talk.turn("how do I install this?")).reason == "answered"
        assert talk.all(RunResumed)


@pytest.mark.promise("RUN-4")
async def test_who_stays_goes_on_and_who_says_something_else_leaves(tmp_path: Path) -> None:
    script = answers({"when": "list the bugs", "text": "None."})
    async with conversation(tmp_path, script, mode="edit", catalogue=catalogue()) as talk:
        await begin(talk)
        await talk.turn("3")
        assert (await talk.turn("no, continue")).reason == "answered"
        assert (tmp_path / "report.md").exists()
        await begin(talk)
        await talk.turn("exit pipeline")
        assert (await talk.turn("list the bugs")).reason == "answered"
        assert talk.all(Answered)[-1].text == "None."


async def test_who_only_wants_to_leave_costs_no_request(tmp_path: Path) -> None:
    async with conversation(tmp_path, answers(), catalogue=catalogue()) as talk:
        await begin(talk)
        asked = len(talk.requests)
        await talk.turn("3.")
        finished = await talk.turn("1")
        assert finished.reason == "answered"
        assert "left the run" in finished.detail
        assert len(talk.requests) == asked
        assert talk.app.state(talk.id).paused is None


@pytest.mark.promise("RUN-5")
async def test_later_turns_are_told_of_a_run_also_after_a_compaction(tmp_path: Path) -> None:
    script = answers(*({"text": f"answer {number}"} for number in range(9)))
    async with conversation(tmp_path, script, mode="edit", catalogue=catalogue()) as talk:
        await begin(talk)
        await talk.turn("1")
        for number in range(4):
            await talk.turn(f"more {number}")
            assert words(talk.requests[-1]).count("Run of report: finished") == 1
        told = words(talk.requests[-1])
        for part in (QUESTION, "Stages done: plan, gather, draft, publish", "Costs rose by 3 %.", "0.9"):
            assert part in told
        await talk.send(Compact())
        await talk.until(Compacted)
        await talk.turn("and now?")
        assert words(talk.requests[-1]).count("Run of report: finished") == 1


async def test_a_cancelled_run_ends_and_keeps_what_it_found(tmp_path: Path) -> None:
    async with conversation(tmp_path, answers(), mode="edit", catalogue=catalogue()) as talk:
        talk.held.hold(0, 0)
        await talk.send(SendMessage(text=QUESTION, route="report"))
        await talk.held.reached(0, 0)
        await talk.send(Cancel())
        finished = await talk.until(TurnFinished)
        assert finished.reason == "cancelled"
        (failed,) = talk.all(RunFailed)
        assert failed.reason == "cancelled"
        assert QUESTION in failed.summary


async def test_an_unknown_pipeline_is_refused_with_the_names_of_those_there_are(tmp_path: Path) -> None:
    async with conversation(tmp_path) as talk:
        with pytest.raises(UsageProblem, match="there are auto, agent"):
            await talk.send(SendMessage(text="hi", route="nothing"))


async def test_a_stage_that_works_in_the_conversation_is_told_what_it_takes(tmp_path: Path) -> None:
    plan, work = report().stages[0], Stage("work", "work", prompt="Now do it.", takes=("plan",))
    script = [
        as_json(f"Question:\n{QUESTION}", {"topics": ["costs"]}),
        {"calls": [{"name": "list", "arguments": {"path": "."}}]},
        {"text": "It is done."},
    ]
    pipelines = catalogue(Pipeline("report", stages=(plan, work)))
    async with conversation(tmp_path, script, catalogue=pipelines) as talk:
        assert (await begin(talk)).reason == "answered"
        asked = talk.requests[-1]
        assert 'Now do it.\n\nOutput of plan:\n{"topics": ["costs"]}' in words(asked)
        assert words(asked).startswith(QUESTION)
        assert talk.all(RunCompleted)[0].text == "answer: It is done."
        stages = {event.stage_id: event.stage for event in talk.all(StageStarted)}
        assert [stages[event.stage_id] for event in talk.all(ToolStarted)] == ["work"]


async def test_an_empty_answer_of_a_stage_is_not_taken_for_an_older_one(tmp_path: Path) -> None:
    plan, work = report().stages[0], Stage("work", "work", prompt="Now do it.", takes=("plan",))
    script = [
        as_json(f"Question:\n{QUESTION}", {"topics": ["costs"]}),
        {"when": "hello", "text": "An answer to something else."},
        {"when": "Now do it", "text": ""},
    ]
    pipelines = catalogue(Pipeline("report", stages=(plan, work)))
    async with conversation(tmp_path, script, catalogue=pipelines) as talk:
        await talk.turn("hello")
        await begin(talk)
    assert talk.all(StageCompleted)[-1].output == {}
    assert "something else" not in talk.all(RunCompleted)[-1].text


async def test_a_session_whose_run_is_paused_is_listed_as_waiting(tmp_path: Path) -> None:
    async with conversation(tmp_path, answers(), mode="edit", catalogue=catalogue()) as talk:
        await begin(talk)
        (info,) = talk.app.sessions()
        assert (info.running, info.waiting) == (False, True)
        await talk.turn("1")
        (info,) = talk.app.sessions()
        assert (info.running, info.waiting) == (False, False)
