"""Budgets of runs and stages: kept over a restart, and never passed by a request."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.context.token_budget import max_request_tokens
from handrail.engine.limits import NO_BUDGET, Budget, BudgetShare, fit_to_budget
from handrail.models.model import Request, UserTurn
from handrail.protocol.commands import Compact, SendMessage
from handrail.protocol.errors import BudgetReached
from handrail.protocol.events import (
    Compacted,
    Recorded,
    RunFailed,
    RunResumed,
    RunStarted,
    SideAnswered,
    SideAsked,
    TurnFinished,
)
from handrail.protocol.values import Usage
from handrail.sessions.run_state import Runs, RunState
from tests.engine.conversation import conversation
from tests.engine.scripted import QUESTION, answers, catalogue, report
from tests.models.fake_server import FakeServer, Reply, Said, body_for
from tests.models.fake_server import Recorded as Sent

NOTES = "Goal: a\nConstraints: b\nDecisions: c\nFailed attempts: d\nState: e"
SETTINGS = """
[connections.mine]
base_url = "{url}/v1"
price = {{ input = 10.0, output = 100.0 }}
"""


def answering(tokens: int) -> Callable[[Sent], Reply]:
    """A server whose every answer is billed with so many tokens of output."""

    def answer(request: Sent) -> Reply:
        told = request.json["messages"][-1]["content"]
        draft = {"findings": ["Costs rose."], "score": 0.9}
        text = json.dumps(draft if "Output of gather" in told else {"topics": ["costs"]})
        said = Said(text=(text,), input_tokens=1_000, cached_tokens=0, output_tokens=tokens)
        return Reply(body_for(request.path, said))

    return answer


@pytest.mark.promise("RUN-7")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("budget", "sent"),
    [
        (Budget(usd=0.13), 1),
        (Budget(usd=1.0), 2),
        (Budget(tokens=2_200), 1),
        (Budget(tokens=20_000), 2),
        (Budget(tokens=50), 0),
    ],
)
async def test_the_request_that_would_pass_a_budget_is_not_sent_also_after_a_restart(
    tmp_path: Path, budget: Budget, sent: int
) -> None:
    with FakeServer(answering(1_000)) as server:
        settings = SETTINGS.format(url=server.url)
        pipelines = catalogue(report(run=budget))
        async with conversation(
            tmp_path, None, settings=settings, model="mine/m", mode="edit", catalogue=pipelines
        ) as talk:
            await talk.send(SendMessage(text=QUESTION, route="report"))
            finished = await talk.until(TurnFinished)
            session_id, after = talk.id, talk.app.last_seq(talk.id)
        async with conversation(
            tmp_path, None, model="mine/m", mode="edit", session=session_id, after=after, catalogue=pipelines
        ) as talk:
            if finished.reason == "waiting":
                finished = await talk.turn("1")
        asked = [each for each in server.requests if each.path.endswith("completions")]
        assert len(asked) == sent
        assert finished.reason == ("answered" if sent == 2 else "budget")
        if sent == 1:
            (failed,) = talk.all(RunFailed)
            assert "budget of the run of report" in failed.detail
            assert "plan, gather" in failed.summary
            assert (tmp_path / "first-1.txt").exists()
        if sent == 2:
            assert all(each.json["max_tokens"] <= 4_096 for each in asked)


@pytest.mark.promise("RUN-7")
@pytest.mark.anyio
async def test_a_stage_has_a_budget_of_its_own(tmp_path: Path) -> None:
    with FakeServer(answering(1_000)) as server:
        async with conversation(
            tmp_path,
            None,
            settings=SETTINGS.format(url=server.url),
            model="mine/m",
            mode="edit",
            catalogue=catalogue(report(draft=Budget(usd=0.01))),
        ) as talk:
            await talk.send(SendMessage(text=QUESTION, route="report"))
            await talk.until(TurnFinished)
            finished = await talk.turn("1")
    assert finished.reason == "budget"
    assert "budget of the stage draft" in finished.detail


@pytest.mark.promise("RUN-7")
@pytest.mark.anyio
async def test_a_run_that_cannot_pay_for_asking_what_a_word_means_does_not_go_on_unasked(
    tmp_path: Path,
) -> None:
    with FakeServer(answering(1_000)) as server:
        async with conversation(
            tmp_path,
            None,
            settings=SETTINGS.format(url=server.url),
            model="mine/m",
            mode="edit",
            catalogue=catalogue(report(run=Budget(tokens=2_200))),
        ) as talk:
            await talk.send(SendMessage(text=QUESTION, route="report"))
            await talk.until(TurnFinished)
            finished = await talk.turn("how is this project installed?")
            paused = talk.app.state(talk.id).paused
            assert (finished.reason, talk.all(RunResumed)) == ("waiting", [])
            assert paused
            assert paused.leaving
            assert "2,000 of 2,200 tokens" in paused.leaving.text
            assert not (tmp_path / "first-1.txt").exists()
            await talk.turn("1")
    assert [event.pipeline for event in talk.all(RunStarted)] == ["report", "agent"]


@pytest.mark.promise("RUN-7")
@pytest.mark.anyio
async def test_a_compaction_while_a_run_is_paused_is_not_paid_by_the_run(tmp_path: Path) -> None:
    told = {"text": "word " * 3_000, "usage": {"input_tokens": 4_000, "output_tokens": 3_000}}
    notes = {"when": "about to be shortened", "text": NOTES, "usage": {"input_tokens": 30_000}}
    pipelines = catalogue(report(run=Budget(tokens=20_000)))
    async with conversation(
        tmp_path, answers(notes, told, told, told), mode="edit", catalogue=pipelines
    ) as talk:
        for number in range(3):
            await talk.turn(f"tell {number}")
        await talk.send(SendMessage(text=QUESTION, route="report"))
        await talk.until(TurnFinished)
        before = talk.app.state(talk.id).paused
        assert before
        spent = before.tokens()
        await talk.send(Compact())
        await talk.until(Compacted)
        assert talk.all(SideAnswered)[-1].usage.input_tokens == 30_000
        after = talk.app.state(talk.id).paused
        assert after
        assert after.tokens() == spent
        assert (await talk.turn("1")).reason == "answered"


@pytest.mark.promise("RUN-7")
def test_a_question_to_a_paused_run_that_was_cut_off_counts_as_it_may_have_cost() -> None:
    runs = Runs(paused=RunState(run_id="run_1", pipeline="report"))
    cut = SideAnswered(request_id="r_1", problem="Handrail ended first.")
    asked = SideAsked(request_id="r_1", purpose="breakout", model="m", most_tokens=400, most_usd=0.1)
    runs.apply(Recorded("session:s_1", 1, 0.0, asked))
    runs.apply(Recorded("session:s_1", 2, 0.0, cut))
    assert runs.paused
    assert (runs.paused.tokens(), runs.paused.usd()) == (400, 0.1)


@pytest.mark.promise("RUN-7")
@pytest.mark.anyio
async def test_a_run_that_reached_a_limit_of_the_turn_is_over_and_says_so(tmp_path: Path) -> None:
    pipelines = catalogue(report()._replace(pauses=()))
    settings = "[limits]\nsteps = 1\n"
    async with conversation(tmp_path, answers(), mode="edit", catalogue=pipelines, settings=settings) as talk:
        await talk.send(SendMessage(text=QUESTION, route="report"))
        finished = await talk.until(TurnFinished)
    assert finished.reason == "budget"
    assert "limits.steps). The run is over" in finished.detail
    assert "go on" not in finished.detail


def request(text: str, output: int = 1_000) -> Request:
    return Request("", (UserTurn(text),), max_output_tokens=output)


@pytest.mark.promise("RUN-7")
def test_an_answer_may_be_no_longer_than_can_be_paid_for() -> None:
    def price(usage: Usage) -> float:
        return usage.output_tokens / 1_000

    rest = BudgetShare("the run", Budget(usd=1.0), tokens=0, usd=0.4)
    afforded = fit_to_budget(request("hi"), [rest], price)
    assert afforded.request.max_output_tokens == 600
    assert afforded.usd == pytest.approx(0.6)
    with pytest.raises(BudgetReached, match=r"\$0.90 of \$1.00"):
        fit_to_budget(request("hi"), [rest._replace(usd=0.9)], price)


@pytest.mark.promise("RUN-7")
def test_what_a_provider_takes_for_keeping_the_question_counts() -> None:
    def price(usage: Usage) -> float:
        return (usage.input_tokens + usage.cache_write_tokens / 4) / 1_000

    asked = max_request_tokens(request("hi"))
    rest = BudgetShare("the run", Budget(usd=asked * 1.2 / 1_000), tokens=0, usd=0.0)
    with pytest.raises(BudgetReached):
        fit_to_budget(request("hi"), [rest], price)
    enough = rest._replace(budget=Budget(usd=asked * 1.3 / 1_000))
    assert fit_to_budget(request("hi"), [enough], price).usd == pytest.approx(asked * 1.25 / 1_000)


def test_without_a_budget_a_request_is_sent_as_it_is() -> None:
    asked = request("hi")
    assert (
        fit_to_budget(asked, [BudgetShare("the run", NO_BUDGET, 10**9, 10**9)], lambda _: None).request
        is asked
    )


def test_a_price_that_nobody_knows_leaves_the_limit_of_tokens() -> None:
    share = BudgetShare("the run", Budget(tokens=400, usd=0.01), tokens=0, usd=0.0)
    assert fit_to_budget(request("hi"), [share], lambda _: None).request.max_output_tokens < 400
    with pytest.raises(BudgetReached):
        fit_to_budget(request("hi " * 2_000), [share], lambda _: None)
    with pytest.raises(BudgetReached):
        fit_to_budget(request("価格" * 300), [share._replace(budget=Budget(tokens=1_000))], lambda _: None)
