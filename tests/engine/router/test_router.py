"""Where the messages of a session go, from the user's words to the pipeline that runs."""

import json
import os
from pathlib import Path

import pytest

from handrail.engine.pipeline import Catalogue, Pipeline, Stage
from handrail.engine.router.confidence import CLARIFY_QUESTION
from handrail.pipelines.load import AGENT
from handrail.protocol.commands import SendMessage, SetRoute
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import Routed, RouteSet, RunStarted, SideAsked, TurnFinished
from tests.engine.conversation import Conversation, conversation, words
from tests.engine.scripted import QUESTION, as_json, catalogue

pytestmark = pytest.mark.anyio

CHAT = Pipeline("chat", stages=(Stage("work", "work"),))
TWO = Catalogue({"agent": AGENT, "chat": CHAT})
DONE = {"text": "Done."}


@pytest.fixture(autouse=True)
def auto_route(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("HANDRAIL_AUTO_ROUTE", "on")


def said(**decision: object) -> dict[str, str]:
    return {"text": json.dumps(decision), "when": "The user's message:"}


def ran(talk: Conversation) -> list[str]:
    return [started.pipeline for started in talk.all(RunStarted)]


def after(talk: Conversation) -> int:
    return talk.seen[-1].seq


@pytest.mark.promise("ROUTE-2")
async def test_words_that_are_clear_cost_no_model_call(tmp_path: Path) -> None:
    async with conversation(tmp_path, [DONE, DONE, DONE], catalogue=TWO) as talk:
        await talk.turn("why does the test fail?")
        await talk.turn("fix the test in cart.py")
        await talk.turn("thanks!")

    assert ran(talk) == ["chat", "agent", "chat"]
    assert [routed.by for routed in talk.all(Routed)] == ["rules"] * 3
    assert talk.all(SideAsked) == []
    assert len(talk.requests) == 3


async def test_what_words_leave_open_is_asked_of_a_model_and_recorded(tmp_path: Path) -> None:
    decision = said(decision="agent", confidence=0.9, entities={"files": ["cart.py"]})
    async with conversation(tmp_path, [decision, DONE], catalogue=TWO) as talk:
        finished = await talk.turn("cart.py, the rounding")

    (routed,) = talk.all(Routed)
    assert finished.reason == "answered"
    assert ran(talk) == ["agent"]
    assert (routed.by, routed.route, routed.decision.confidence) == ("model", "agent", 0.9)
    assert [asked.purpose for asked in talk.all(SideAsked)] == ["route"]


async def test_a_verb_without_an_object_is_about_what_was_said_before(tmp_path: Path) -> None:
    async with conversation(tmp_path, [DONE, DONE], catalogue=TWO) as talk:
        await talk.turn("why does the test fail?")
        await talk.turn("fix it")

    assert ran(talk) == ["chat", "agent"]
    assert talk.all(SideAsked) == []


async def test_a_decision_that_cannot_be_read_does_nothing_but_answer(tmp_path: Path) -> None:
    garbage = {"text": "I think it is work", "when": "The user's message:"}
    async with conversation(tmp_path, [garbage, DONE], catalogue=TWO) as talk:
        await talk.turn("cart.py, the rounding")

    (routed,) = talk.all(Routed)
    assert (routed.by, routed.decision.confidence) == ("fallback", 0.0)
    assert ran(talk) == ["chat"]


@pytest.mark.promise("ROUTE-3")
async def test_an_answer_to_the_question_is_read_in_its_light(tmp_path: Path) -> None:
    unsure = said(decision="agent", confidence=0.2)
    async with conversation(tmp_path, [unsure, DONE], catalogue=TWO) as talk:
        asked = await talk.turn("clean up")
        assert ran(talk) == []
        await talk.turn("2")

    first, second = talk.all(Routed)
    assert asked.reason == "waiting"
    assert (first.route, first.decision.question) == ("", CLARIFY_QUESTION)
    assert (second.by, second.route, second.message) == ("answer", "agent", "clean up")
    assert ran(talk) == ["agent"]
    assert "The user chose: do it in the files." in words(talk.requests[-1])


OPTIONS = [{"id": "a", "title": "cart.py"}, {"id": "b", "title": "shop.py"}]


@pytest.mark.promise("ROUTE-3")
@pytest.mark.parametrize(
    ("message", "answer", "goes"),
    [
        ("the rounding in the cart", "2", "chat"),
        ("the rounding in the cart", "shop.py!", "chat"),
        ("clean up", "2", "agent"),
        ("clean up", "all of them", "agent"),
        ("the rounding in the cart", "just fix it", "agent"),
    ],
)
async def test_an_answer_of_any_kind_goes_on_with_the_message_it_is_about(
    tmp_path: Path, message: str, answer: str, goes: str
) -> None:
    unsure = said(decision="clarify", confidence=0.9, question="Which file?", options=OPTIONS)
    async with conversation(tmp_path, [unsure, DONE], catalogue=TWO) as talk:
        await talk.turn(message)
        assert (await talk.turn(answer)).reason == "answered"

    assert [(routed.by, routed.route, routed.message) for routed in talk.all(Routed)][1:] == [
        ("answer", goes, message)
    ]
    assert f"Which file? The user chose: {'shop.py' if goes == 'chat' else ''}" in words(talk.requests[-1])


async def test_a_decision_is_kept_in_bounds(tmp_path: Path) -> None:
    names = {"names": ["x"] * 5_000, "others": ["y" * 100_000]}
    script = [said(decision="agent", confidence=0.9, entities=names), DONE]
    async with conversation(tmp_path, script, catalogue=TWO) as talk:
        await talk.turn("cart.py, the rounding")

    (routed,) = talk.all(Routed)
    assert routed.decision.entities == {"names": ["x"] * 20}


async def test_a_number_means_nothing_once_something_else_was_said(tmp_path: Path) -> None:
    unsure = said(decision="clarify", confidence=0.9)
    async with conversation(tmp_path, [unsure, DONE, DONE], catalogue=TWO) as talk:
        await talk.turn("clean up")
        await talk.turn("what does cart.py do?")
        await talk.turn("2")

    assert [routed.by for routed in talk.all(Routed)] == ["model", "rules", "model"]


async def test_the_question_is_still_asked_after_a_restart(tmp_path: Path) -> None:
    unsure = said(decision="clarify", confidence=0.9)
    async with conversation(tmp_path, [unsure, DONE], catalogue=TWO) as talk:
        await talk.turn("clean up")
    async with conversation(tmp_path, [DONE], catalogue=TWO, session=talk.id, after=after(talk)) as again:
        await again.turn("1")

    assert ran(again) == ["chat"]


async def test_the_users_own_route_holds_for_the_session_and_one_message_may_differ(tmp_path: Path) -> None:
    async with conversation(tmp_path, [DONE] * 4, catalogue=TWO) as talk:
        await talk.send(SetRoute(route="agent"))
        await talk.until(RouteSet)
        await talk.turn("why does it fail?")
        await talk.send(SendMessage(text="why does it fail?", route="chat"))
        await talk.until(TurnFinished)
        await talk.turn("and why not?")

    assert ran(talk) == ["agent", "chat", "agent"]
    assert talk.all(Routed) == []


async def test_a_route_that_nobody_knows_is_told_at_once(tmp_path: Path) -> None:
    async with conversation(tmp_path, [DONE], catalogue=TWO) as talk:
        with pytest.raises(UsageProblem, match="no route 'nonsense'"):
            await talk.send(SetRoute(route="nonsense"))
        with pytest.raises(UsageProblem, match="no route 'nonsense'"):
            await talk.send(SendMessage(text="hi", route="nonsense"))


async def test_where_nobody_can_be_asked_an_unclear_message_is_work(tmp_path: Path) -> None:
    async with conversation(tmp_path, [DONE], catalogue=TWO, answerable=False) as talk:
        await talk.turn("cart.py, the rounding")

    assert ran(talk) == ["agent"]


async def test_switched_off_every_message_is_work(tmp_path: Path) -> None:
    off = os.environ | {"HANDRAIL_AUTO_ROUTE": "off"}
    async with conversation(tmp_path, [DONE], catalogue=TWO, environ=off) as talk:
        await talk.turn("why?")

    assert ran(talk) == ["agent"]
    assert talk.all(Routed) == []


async def test_a_kill_before_the_decision_costs_no_message(tmp_path: Path) -> None:
    script = [said(decision="agent", confidence=0.9), DONE]
    async with conversation(tmp_path, script, catalogue=TWO) as talk:
        talk.held.hold(0, 0)
        await talk.say("cart.py, the rounding")
        await talk.until(SideAsked)
    async with conversation(tmp_path, script, catalogue=TWO, session=talk.id, after=after(talk)) as again:
        await again.until(TurnFinished)

    assert [end.reason for end in again.all(TurnFinished)] == ["answered"]
    assert [routed.route for routed in again.all(Routed)] == ["agent"]
    assert ran(again) == ["agent"]


async def test_a_message_that_a_run_was_left_for_takes_its_way_after_a_kill(tmp_path: Path) -> None:
    known = catalogue()
    known = known._replace(pipelines={**known.pipelines, "chat": CHAT})
    plan = as_json(f"Question:\n{QUESTION}", {"topics": ["costs"]})
    script = [plan, said(decision="chat", confidence=0.9), DONE]
    async with conversation(tmp_path, script, catalogue=known) as talk:
        await talk.send(SendMessage(text=QUESTION, route="report"))
        await talk.until(TurnFinished)
        await talk.turn("never mind, the cart, perhaps")
        talk.held.hold(1, 0)
        await talk.say("yes")
        await talk.until(SideAsked)
    async with conversation(tmp_path, script, catalogue=known, session=talk.id, after=after(talk)) as again:
        await again.until(TurnFinished)

    assert [end.reason for end in again.all(TurnFinished)] == ["answered"]
    assert ran(again) == ["chat"]
    assert "the cart, perhaps" in words(again.requests[-1])
