"""Budgets of runs and stages: kept over a restart, and never passed by a request."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.engine.limits import NO_BUDGET, Budget, Share, afford
from handrail.models.base import Request, UserTurn
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import BudgetReached
from handrail.protocol.events import RunFailed, TurnFinished
from handrail.protocol.values import Usage
from tests.engine.conversation import conversation
from tests.engine.pipeline.scripted import QUESTION, catalogue, report
from tests.models.fake_server import FakeServer, Recorded, Reply, Said, body_for

SETTINGS = """
[connections.mine]
base_url = "{url}/v1"
price = {{ input = 10.0, output = 100.0 }}
"""


def answering(tokens: int) -> Callable[[Recorded], Reply]:
    """A server whose every answer is billed with so many tokens of output."""

    def answer(request: Recorded) -> Reply:
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


def request(text: str, output: int = 1_000) -> Request:
    return Request("", (UserTurn(text),), max_output_tokens=output)


@pytest.mark.promise("RUN-7")
def test_an_answer_may_be_no_longer_than_can_be_paid_for() -> None:
    def price(usage: Usage) -> float:
        return usage.output_tokens / 1_000

    rest = Share("the run", Budget(usd=1.0), tokens=0, usd=0.4)
    afforded = afford(request("hi"), [rest], price)
    assert afforded.request.max_output_tokens == 600
    assert afforded.usd == pytest.approx(0.6)
    with pytest.raises(BudgetReached, match=r"\$0.90 of \$1.00"):
        afford(request("hi"), [rest._replace(usd=0.9)], price)


def test_without_a_budget_a_request_is_sent_as_it_is() -> None:
    asked = request("hi")
    assert afford(asked, [Share("the run", NO_BUDGET, 10**9, 10**9)], lambda _: None).request is asked


def test_a_price_that_nobody_knows_leaves_the_limit_of_tokens() -> None:
    share = Share("the run", Budget(tokens=400, usd=0.01), tokens=0, usd=0.0)
    assert afford(request("hi"), [share], lambda _: None).request.max_output_tokens < 400
    with pytest.raises(BudgetReached):
        afford(request("hi " * 2_000), [share], lambda _: None)
    with pytest.raises(BudgetReached):
        afford(request("価格" * 300), [share._replace(budget=Budget(tokens=1_000))], lambda _: None)
