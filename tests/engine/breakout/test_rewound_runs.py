"""Rewinding a session with runs: each stands where it stood at the point that is kept; money stays spent."""

from pathlib import Path

import pytest

from handrail.engine.admin.history import plan_rewind_command
from handrail.engine.pipeline import Pause
from handrail.protocol.commands import Redo, RunCommand, SendMessage, SetRoute
from handrail.protocol.events import (
    Redone,
    Rewound,
    Routed,
    RouteSet,
    RunPaused,
    RunResumed,
    RunStarted,
    StageStarted,
    TurnFinished,
    TurnStarted,
    UserMessage,
)
from handrail.sessions.export_import import export_lines, import_lines
from handrail.sessions.past_runs import past_runs
from handrail.sessions.run_state import RunState
from handrail.sessions.session import Session
from tests.engine.commits import is_idle
from tests.engine.conversation import Conversation, conversation, eventually
from tests.engine.scripted import QUESTION, answers, as_json, catalogue, report

pytestmark = pytest.mark.anyio
TWICE = report()._replace(pauses=(Pause("plan"), Pause("gather")))


async def begin(talk: Conversation) -> None:
    await talk.send(SendMessage(text=QUESTION, route="report"))
    await talk.until(TurnFinished)


async def rewind(talk: Conversation, turn: int) -> RunState | None:
    """The run that waits after a rewind to before the turn, by whoever opens the session."""
    await talk.send(talk.app.history.before_turn(talk.id, turn))
    await talk.until(Rewound)
    return waiting(talk)


def waiting(talk: Conversation) -> RunState | None:
    state = talk.app.state(talk.id)
    opened = Session(talk.app.log, talk.id).load().state
    assert (opened.runs, opened.routes) == (state.runs, state.routes)
    return state.paused


@pytest.mark.promise("RUN-8")
async def test_a_question_whether_to_leave_is_gone_with_the_turn_that_asked_it(tmp_path: Path) -> None:
    async with conversation(tmp_path, answers(), mode="edit", catalogue=catalogue()) as talk:
        await begin(talk)
        await talk.turn("3")
        paused = waiting(talk)
        assert paused
        assert paused.leaving
        paused = await rewind(talk, 2)
        assert paused
        assert paused.leaving is None
        shown = await talk.until(RunPaused)
        assert shown == paused.pause, "numbers mean a menu that is not the last that was shown"
        finished = await talk.turn("1")
    assert finished.reason == "answered"
    assert talk.all(RunResumed), "1 has left the run: it meant a menu that is not there any more"


@pytest.mark.promise("RUN-8")
async def test_stages_that_were_taken_back_are_done_again(tmp_path: Path) -> None:
    async with conversation(tmp_path, answers(), mode="edit", catalogue=catalogue(TWICE)) as talk:
        await begin(talk)
        await talk.turn("1")
        assert (tmp_path / "first-1.txt").exists()
        paused = await rewind(talk, 2)
        assert paused
        assert paused.last == "plan"
        assert not (tmp_path / "first-1.txt").exists()
        await talk.turn("1")
        assert (tmp_path / "first-1.txt").exists()
    assert [event.stage for event in talk.all(StageStarted)] == ["plan", "gather", "gather"]


@pytest.mark.promise("RUN-8")
async def test_a_run_that_had_ended_waits_again_and_has_spent_what_it_has_spent(tmp_path: Path) -> None:
    priced = [{**each, "usage": {"input_tokens": 100, "output_tokens": 10}} for each in answers()]
    async with conversation(tmp_path, priced, mode="edit", catalogue=catalogue()) as talk:
        await begin(talk)
        await talk.turn("1")
        assert waiting(talk) is None
        paused = await rewind(talk, 2)
        assert paused
        assert paused.pause
        assert (paused.last, paused.tokens()) == ("plan", 330)
        assert talk.app.state(talk.id).runs.ended == []
        assert [run.end for run in past_runs(talk.app.log)] == ["waiting"]
        await talk.send(Redo())
        await talk.until(Redone)
        assert waiting(talk) is None
        assert len(talk.app.state(talk.id).runs.ended) == 1
        assert await rewind(talk, 2)
        await talk.turn("1")
        (run,) = past_runs(talk.app.log)
        assert (run.end, run.tokens) == ("finished", 550)


@pytest.mark.promise("RUN-8")
async def test_a_run_that_was_rewound_as_a_whole_is_gone(tmp_path: Path) -> None:
    script = answers({"text": "Hello."}, {"text": "Hello again."})
    async with conversation(tmp_path, script, mode="edit", catalogue=catalogue()) as talk:
        await talk.turn("hello")
        await begin(talk)
        assert await rewind(talk, 2) is None
        assert [run.end for run in past_runs(talk.app.log)] == ["left"]
        finished = await talk.turn("hello again")
    assert finished.reason == "answered"
    assert not talk.all(RunResumed)


@pytest.mark.promise("RUN-8")
async def test_a_question_what_is_wanted_is_gone_with_its_turn_and_a_chosen_route_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDRAIL_AUTO_ROUTE", "on")
    unsure = as_json("The user's message:", {"decision": "clarify", "confidence": 0.9})
    async with conversation(tmp_path, [unsure, {"text": "Done."}], catalogue=catalogue()) as talk:
        await talk.turn("the cart, perhaps")
        assert talk.app.state(talk.id).routes.asked
        await talk.send(SetRoute(route="agent"))
        await talk.until(RouteSet)
        await rewind(talk, 1)
        routes = talk.app.state(talk.id).routes
        assert (routes.asked, routes.chosen) == (None, "agent")
        await talk.turn("2")
    assert [routed.by for routed in talk.all(Routed)] == ["model"], "2 has answered a question that is gone"


@pytest.mark.promise("RUN-8")
async def test_a_menu_that_a_kill_kept_from_being_shown_is_shown_when_the_session_opens(
    tmp_path: Path,
) -> None:
    async with conversation(tmp_path, answers(), mode="edit", catalogue=catalogue()) as talk:
        await begin(talk)
        await talk.turn("1")
        session_id, keep = talk.id, talk.app.history.before_turn(talk.id, 2)
    async with conversation(tmp_path, answers(), catalogue=catalogue()) as talk:
        left = Session(talk.app.log, session_id).load()
        assert left.try_hold()
        _, rewound = plan_rewind_command(left, talk.app.workspace, keep)
        left.append(rewound)
        left.release()
        after = left.seq
    for route, shown in (("agent", 1), ("report", 0)):
        async with conversation(
            tmp_path, answers(), session=session_id, after=after, mode="edit", catalogue=catalogue()
        ) as talk:
            await eventually(lambda: is_idle(talk.app, session_id))
            assert waiting(talk)
            await talk.send(SetRoute(route=route))
            await talk.until(RouteSet)
            assert len(talk.all(RunPaused)) == shown
            after = talk.seen[-1].seq


@pytest.mark.promise("SESS-4")
async def test_neither_a_rewind_nor_a_redo_wakes_a_run_of_an_imported_session(tmp_path: Path) -> None:
    script = answers({"text": "Hello."})
    async with conversation(tmp_path, script, mode="edit", catalogue=catalogue()) as talk:
        await begin(talk)
        await talk.turn("3")
        earlier = import_lines(talk.app.log, export_lines(talk.app.log, talk.id))
        assert await rewind(talk, 1) is None
        rewound = import_lines(talk.app.log, export_lines(talk.app.log, talk.id))
    async with conversation(tmp_path, script, session=earlier, mode="edit", catalogue=catalogue()) as talk:
        assert await rewind(talk, 2) is None, "somebody else's run waits here"
        await talk.turn("1")
        assert not talk.all(RunResumed)
    async with conversation(tmp_path, script, session=rewound, mode="edit", catalogue=catalogue()) as talk:
        await talk.send(Redo())
        await talk.until(Redone)
        assert waiting(talk) is None, "somebody else's run waits here"
    assert not list(tmp_path.glob("*.txt"))


@pytest.mark.promise("SESS-4")
async def test_a_rewind_does_not_ask_again_what_was_asked_before_an_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDRAIL_AUTO_ROUTE", "on")
    unsure = as_json("The user's message:", {"decision": "clarify", "confidence": 0.9})
    async with conversation(tmp_path, [unsure, {"text": "Hello."}], catalogue=catalogue()) as talk:
        await talk.turn("the deploy keys, perhaps")
        await talk.turn("hello there, fix the typo in a.py")
        imported = import_lines(talk.app.log, export_lines(talk.app.log, talk.id))
    async with conversation(tmp_path, [], session=imported, catalogue=catalogue()) as talk:
        await rewind(talk, 2)
        assert talk.app.state(imported).routes.asked is None


@pytest.mark.promise("RUN-8")
@pytest.mark.parametrize("went", ["to the agent", "to the router", "to another run"])
async def test_a_session_that_went_on_without_the_run_after_a_rewind_does_not_wake_it(
    tmp_path: Path, went: str
) -> None:
    """Versions that rewound without heeding runs have left such logs."""
    script = answers({"text": "Hello."})
    async with conversation(tmp_path, script, mode="edit", catalogue=catalogue()) as talk:
        await begin(talk)
        await talk.turn("1")
        assert await rewind(talk, 2)
        session_id = talk.id
    other, unrouted = "run_2" * (went == "to another run"), went == "to the router"
    began = RunStarted(run_id="run_1", turn_id="t_1", pipeline="agent", conversational=True)
    async with conversation(tmp_path, script, catalogue=catalogue()) as talk:
        left = Session(talk.app.log, session_id).load()
        assert left.try_hold()
        left.append(
            UserMessage(message_id="m_1", turn_id="t_1", text="hello there", run_id=other),
            TurnStarted(turn_id="t_1", number=3, model="m", mode="edit", run_id=other, unrouted=unrouted),
            *([began] if went == "to the agent" else []),
            TurnFinished(turn_id="t_1", reason="answered", cost_usd=0.0),
        )
        left.release()
        assert "waiting" not in [run.end for run in past_runs(talk.app.log)]
    async with conversation(tmp_path, script, session=session_id, mode="edit", catalogue=catalogue()) as talk:
        assert waiting(talk) is None


async def test_a_run_waits_on_while_commands_of_an_answer_run(tmp_path: Path) -> None:
    async with conversation(tmp_path, answers(), mode="auto", catalogue=catalogue()) as talk:
        await begin(talk)
        await talk.send(RunCommand(command="true"))
        await talk.until(TurnFinished)
        assert waiting(talk)
        assert [run.end for run in past_runs(talk.app.log)] == ["waiting"]
