"""What is said to a run: while it works, before it has asked, with a picture, by another route."""

from pathlib import Path

import pytest

from handrail.engine.pipeline import Pause, Pipeline, Stage
from handrail.protocol.commands import RunAll, SendMessage
from handrail.protocol.events import (
    Answered,
    BatchFinished,
    BreakoutPending,
    RunBrokenOff,
    RunPaused,
    RunResumed,
    RunStarted,
    StageStarted,
    TurnFinished,
    UserMessage,
)
from tests.engine.conversation import Conversation, conversation, eventually, words
from tests.engine.scripted import QUESTION, answers, as_json, catalogue, report
from tests.pictures import png

pytestmark = pytest.mark.anyio
WORD = "only look at 2024"
UNPAUSED = report()._replace(pauses=())


async def begin(talk: Conversation) -> TurnFinished:
    await talk.send(SendMessage(text=QUESTION, route="report"))
    return await talk.until(TurnFinished)


async def say_while_it_plans(talk: Conversation, message: SendMessage) -> None:
    """Send something while the first stage waits for its answer."""
    talk.held.hold(0, 0)
    await talk.send(SendMessage(text=QUESTION, route="report"))
    await talk.held.reached(0, 0)
    await talk.send(message)
    talk.held.let_go(0, 0)


@pytest.mark.promise("RUN-10")
async def test_what_is_said_while_a_run_works_steers_the_stages_to_come(tmp_path: Path) -> None:
    async with conversation(tmp_path, answers(), mode="edit", catalogue=catalogue(UNPAUSED)) as talk:
        await say_while_it_plans(talk, SendMessage(text=WORD))
        assert (await talk.until(TurnFinished)).reason == "answered"
        plan, draft, *_ = talk.requests
        assert WORD not in words(plan)
        assert f"The user says:\n- {WORD}" in words(draft)
        assert [event.steering for event in talk.all(UserMessage)] == [False, True]
        heard = talk.types.index("user_message", talk.types.index("run_started"))
        assert talk.types[heard - 1 : heard + 2] == ["stage_completed", "user_message", "stage_started"]
        assert talk.app.state(talk.id).turns == 1


@pytest.mark.promise("RUN-10")
async def test_what_was_said_to_a_run_counts_over_a_restart(tmp_path: Path) -> None:
    async with conversation(tmp_path, answers(), mode="edit", catalogue=catalogue(UNPAUSED)) as talk:
        await say_while_it_plans(talk, SendMessage(text=WORD))
        talk.held.hold(0, 0)  # the draft, which is asked in a context of its own
        await talk.held.reached(0, 0)
        session_id = talk.id
    async with conversation(
        tmp_path, answers(), mode="edit", catalogue=catalogue(UNPAUSED), session=session_id
    ) as talk:
        await talk.until(TurnFinished)
        assert WORD in words(talk.requests[0])
        assert len(talk.all(UserMessage)) == 2


@pytest.mark.promise("RUN-10")
async def test_a_number_sent_while_a_run_works_is_no_answer_to_the_menu_that_follows(tmp_path: Path) -> None:
    async with conversation(tmp_path, answers(), mode="edit", catalogue=catalogue()) as talk:
        await say_while_it_plans(talk, SendMessage(text="1"))
        await talk.until(TurnFinished)
        assert talk.types[-3:] == ["user_message", "run_paused", "turn_finished"]
        assert talk.app.state(talk.id).paused
        assert (await talk.turn("1")).reason == "answered"
        assert len(talk.all(RunResumed)) == 1


@pytest.mark.promise("RUN-10")
async def test_a_number_that_is_sent_twice_does_not_answer_the_next_pause(tmp_path: Path) -> None:
    twice = report()._replace(pauses=(Pause("plan"), Pause("gather")))
    async with conversation(tmp_path, answers(), mode="edit", catalogue=catalogue(twice)) as talk:
        await begin(talk)
        await talk.say("1")
        await talk.say("1")
        await talk.until(RunPaused)
        await eventually(lambda: not talk.app.log.waiting(f"session/{talk.id}"))
        await eventually(lambda: talk.app.state(talk.id).turn is None)
        paused = talk.app.state(talk.id).paused
        assert paused
        assert paused.last == "gather"
        assert len(talk.all(RunResumed)) == 1


@pytest.mark.promise("RUN-10")
@pytest.mark.parametrize(
    ("asked", "said"),
    [("", "1"), ("", "never mind"), ("", WORD), ("exit pipeline", "1"), ("exit pipeline", "yes")],
)
async def test_what_was_sent_before_a_run_asked_is_a_word_to_it_and_no_answer(
    tmp_path: Path, asked: str, said: str
) -> None:
    async with conversation(tmp_path, answers(), mode="edit", catalogue=catalogue()) as talk:
        await begin(talk)
        shown = talk.seen[-3 if not asked else -1].seq
        if asked:
            await talk.turn(asked)
        requests = len(talk.requests)
        await talk.send(SendMessage(text=said, seen=shown))
        finished = await talk.until(TurnFinished)
        assert finished.reason == "waiting"
        assert "sent this before the run asked" in finished.detail
        assert len(talk.requests) == requests
        session_id, after = talk.id, talk.app.last_seq(talk.id)
    async with conversation(
        tmp_path, answers(), mode="edit", catalogue=catalogue(), session=session_id, after=after
    ) as talk:
        paused = talk.app.state(session_id).paused
        assert paused
        assert (bool(paused.leaving), paused.feedback) == (bool(asked), [said])
        assert (await talk.turn("2" if asked else "1")).reason == "answered"
        assert f"The user says:\n- {said}" in words(talk.requests[-1])


@pytest.mark.promise("RUN-10")
async def test_a_picture_to_a_paused_run_is_said_not_to_be_seen_and_alone_is_no_consent(
    tmp_path: Path,
) -> None:
    (tmp_path / "shot.png").write_bytes(png(80, 60))
    async with conversation(tmp_path, answers(), mode="edit", catalogue=catalogue(), images=True) as talk:
        await begin(talk)
        image = talk.app.images.named(tmp_path / "shot.png")
        for text in ("", "@shot.png", '@"shot.png" '):
            await talk.send(SendMessage(text=text, images=(image,)))
            finished = await talk.until(TurnFinished)
            assert finished.reason == "waiting"
            assert "only your words" in finished.detail
            assert not talk.all(RunResumed)
        assert (await talk.turn("use the numbers in @shot.png")).reason == "answered"
        for said in talk.all(UserMessage)[1:]:
            assert ["only your words, no pictures" in note for note in said.unattached] == [True]


async def test_a_picture_sent_while_a_run_works_is_seen_by_a_stage_that_can(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(png(80, 60))
    plan, work = report().stages[0], Stage("work", "work", prompt="Now do it.", takes=("plan",))
    script = [as_json(f"Question:\n{QUESTION}", {"topics": ["costs"]}), {"text": "Done."}]
    sees = Pipeline("report", stages=(plan, work))
    for pipeline, seen in ((sees, True), (UNPAUSED, False)):
        async with conversation(
            tmp_path, script if seen else answers(), mode="edit", catalogue=catalogue(pipeline), images=True
        ) as talk:
            await say_while_it_plans(talk, SendMessage(text="as in @shot.png"))
            await talk.until(TurnFinished)
            pictures = [getattr(message, "images", ()) for message in talk.requests[-1].messages]
            assert any(pictures) == seen
            assert bool(talk.all(UserMessage)[-1].unattached) != seen


@pytest.mark.promise("RUN-10")
async def test_a_message_by_another_route_asks_whether_to_leave_and_then_takes_it(tmp_path: Path) -> None:
    other = Pipeline("other", stages=(Stage("work", "work", prompt="Think."),))
    script = answers({"when": "two plus two", "text": "Four."})
    async with conversation(tmp_path, script, mode="edit", catalogue=catalogue(report(), other)) as talk:
        await begin(talk)
        await talk.send(SendMessage(text="what is two plus two", route="other"))
        assert (await talk.until(TurnFinished)).reason == "waiting"
        (pending,) = talk.all(BreakoutPending)
        assert "A run of report is paused here, and your message is for other." in pending.text
        assert (await talk.turn("yes")).reason == "answered"
        assert talk.all(Answered)[-1].text == "Four."
        assert [event.pipeline for event in talk.all(RunStarted)] == ["report", "other"]
        await begin(talk)
        await talk.turn("3")
        await talk.send(SendMessage(text="two plus two?", route="other"))
        assert (await talk.until(TurnFinished)).reason == "answered"
        assert len(talk.all(RunBrokenOff)) == 2


@pytest.mark.parametrize("route", ["report", "auto", "agent"])
async def test_a_number_of_the_menu_is_an_answer_by_whatever_route_it_comes(
    tmp_path: Path, route: str
) -> None:
    async with conversation(tmp_path, answers(), mode="edit", catalogue=catalogue()) as talk:
        await begin(talk)
        await talk.send(SendMessage(text="1", route=route))
        assert (await talk.until(TurnFinished)).reason == "answered"
        assert not talk.all(BreakoutPending)


@pytest.mark.promise("RUN-10")
async def test_an_answer_to_a_paused_run_waits_until_a_batch_has_ended(tmp_path: Path) -> None:
    script = answers({"when": "command 1 of 2", "text": '{"decision": "continue"}'}, {"text": "Both ran."})
    async with conversation(tmp_path, script, mode="auto", catalogue=catalogue()) as talk:
        await begin(talk)
        talk.held.hold(1, 0)
        await talk.send(RunAll(commands=("true", "true")))
        await talk.held.reached(1, 0)
        await talk.say("1")
        await talk.say("be quick")
        talk.held.let_go(1, 0)
        await talk.until(BatchFinished)
        await talk.until(TurnFinished)
        assert [event.text for event in talk.all(UserMessage)[1:]][1:] == ["be quick"]
        assert (await talk.until(TurnFinished)).reason == "answered"
        assert [event.choice for event in talk.all(RunResumed)] == ["Go on"]
        assert [event.stage for event in talk.all(StageStarted)][:3] == ["plan", "work", "gather"]
