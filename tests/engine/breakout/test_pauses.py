"""Runs that wait: what a model is told of them, what goes with a message that leaves, what they remember."""

from pathlib import Path

import pytest

from handrail.engine.pipeline import Catalogue, Output, Pause, Pipeline, Stage, StepContext
from handrail.models.model import UserTurn
from handrail.pipelines.load import AGENT
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import RunResumed, RunStarted, TurnFinished, UserMessage
from handrail.sessions.run_state import FEEDBACK_LENGTH, MAX_FEEDBACK
from handrail.sessions.session import Session
from tests.engine.conversation import Conversation, conversation, words
from tests.engine.scripted import DRAFT, QUESTION, answers, as_json, catalogue
from tests.pictures import png

pytestmark = pytest.mark.anyio


async def begin(talk: Conversation, route: str = "report") -> TurnFinished:
    await talk.send(SendMessage(text=QUESTION, route=route))
    return await talk.until(TurnFinished)


@pytest.mark.promise("RUN-4")
async def test_whoever_says_what_a_word_means_is_told_what_the_run_is_about_and_what_it_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "sk-0123456789")
    async with conversation(tmp_path, answers(), mode="edit", catalogue=catalogue()) as talk:
        await begin(talk)
        await talk.turn("also look at sk-0123456789")
        (asked,) = [each for each in talk.requests if "The user's message:" in words(each)]
    told = words(asked)
    assert f"The run is about:\n{QUESTION}\n\nIt asked:\ntopics:\n- costs\n" in told
    assert "1. Go on\n2. Do this step again\n3. Leave this run" in told
    assert told.endswith("The user's message:\nalso look at [secret SHOP_TOKEN]")
    assert len(asked.messages) == 1
    assert asked.tools == ()


@pytest.mark.promise("RUN-4")
@pytest.mark.parametrize(
    ("answer", "sent", "shown"),
    [("yes", [], ["first"]), ("1", [], ["first"]), ("list what you see here", ["second"], ["second"])],
)
async def test_the_pictures_of_the_message_that_is_answered_go_with_it(
    tmp_path: Path, answer: str, sent: list[str], shown: list[str]
) -> None:
    pictures = {name: png(seed=name.encode()) for name in ("first", "second")}
    for name, data in pictures.items():
        (tmp_path / f"{name}.png").write_bytes(data)
    script = answers({"when": "", "text": "A picture."})
    async with conversation(tmp_path, script, images=True, catalogue=catalogue()) as talk:
        images = {name: talk.app.images.named(tmp_path / f"{name}.png") for name in pictures}
        await begin(talk)
        left = SendMessage(text="never mind, what is in this picture?", images=(images["first"],))
        await talk.send(left)
        await talk.until(TurnFinished)
        await talk.send(SendMessage(text=answer, images=tuple(images[name] for name in sent)))
        assert (await talk.until(TurnFinished)).reason == "answered"
        assert [event.pipeline for event in talk.all(RunStarted)] == ["report", "agent"]
        assert talk.all(UserMessage)[-1].images == tuple(images[name] for name in shown)
    last = talk.requests[-1].messages[-1]
    assert isinstance(last, UserTurn)
    assert [image.data for image in last.images] == [pictures[name] for name in shown]


@pytest.mark.promise("SESS-4")
@pytest.mark.parametrize("stands", ["paused", "leaving", "under way"])
async def test_a_run_of_an_imported_session_does_not_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stands: str
) -> None:
    workspace, file = tmp_path / "work", tmp_path / "session.jsonl"
    workspace.mkdir()
    script = answers({"when": "", "text": "Well."})
    async with conversation(workspace, script, mode="edit", catalogue=catalogue()) as talk:
        if stands == "under way":
            talk.held.hold(0, 0)
            await talk.send(SendMessage(text=QUESTION, route="report"))
            await talk.held.reached(0, 0)
        else:
            await begin(talk)
        if stands == "leaving":
            await talk.turn("3")
        runs = talk.app.state(talk.id).runs
        assert runs.current if stands == "under way" else runs.paused
        talk.app.export(talk.id, file)
    monkeypatch.setenv("HANDRAIL_HOME", str(tmp_path / "other"))
    async with conversation(workspace, script, mode="edit", catalogue=catalogue()) as other:
        session_id = other.app.import_session(file)
        runs = Session(other.app.log, session_id).load().state.runs
        assert (runs.current, runs.paused) == (None, None)
        after = other.app.last_seq(session_id)
    async with conversation(
        workspace, script, session=session_id, after=after, mode="edit", catalogue=catalogue()
    ) as there:
        assert (await there.turn("1")).reason == "answered"
        assert there.all(RunResumed) == []
        assert [event.pipeline for event in there.all(RunStarted)] == ["agent"]
    assert list(workspace.iterdir()) == []


@pytest.mark.promise("RUN-4")
async def test_a_run_remembers_the_last_words_of_the_user_and_the_beginning_of_long_ones(
    tmp_path: Path,
) -> None:
    async def nothing(_work: StepContext) -> Output:
        return {}

    names = [f"step{number}" for number in range(MAX_FEEDBACK + 2)]
    pipeline = Pipeline(
        "long",
        stages=(
            *(Stage(name, "code", step="nothing") for name in names),
            Stage("draft", "ask", prompt="Write.", schema=DRAFT),
        ),
        pauses=tuple(Pause(name) for name in names),
    )
    pipelines = Catalogue({"agent": AGENT, "long": pipeline}, steps={"nothing": nothing})
    script = [
        as_json("The user's message:", {"means": "pipeline_response", "confidence": 0.9}),
        as_json("The user says:", {"findings": [], "score": 1}),
    ]
    async with conversation(tmp_path, script, catalogue=pipelines) as talk:
        await begin(talk, "long")
        for number in range(len(names) - 1):
            assert (await talk.turn(f"also look at note {number}")).reason == "waiting"
        assert (await talk.turn(f"last, {'x' * (FEEDBACK_LENGTH + 1_000)}")).reason == "answered"
        told = words(talk.requests[-1])
    notes = range(len(names) - MAX_FEEDBACK, len(names) - 1)
    kept = "\n".join(f"- also look at note {number}" for number in notes)
    assert f"The user says:\n{kept}\n- last, xxx" in told
    assert f"note {notes[0] - 1}" not in told
    assert told.count("x") < FEEDBACK_LENGTH + 100
    assert "1,006 more characters left out" in told
