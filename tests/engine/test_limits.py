"""Budgets are checked before each request; a model in circles is told once, then stopped."""

from pathlib import Path
from typing import Any

import pytest

from handrail.protocol.events import Nudged, RequestStarted, ToolFinished
from tests.engine.conversation import call, calls, conversation, run, words
from tests.models.fake_server import FakeServer, Said

pytestmark = pytest.mark.anyio


def reads(count: int, **more: Any) -> list[dict[str, Any]]:
    """Answers that each read another file, so that nothing repeats."""
    return [call("read", path=f"file{number}") | more for number in range(count)]


@pytest.mark.promise("ENG-13")
async def test_no_request_is_sent_beyond_the_limit_of_steps(tmp_path: Path) -> None:
    async with conversation(tmp_path, [*reads(5), {"text": "no"}], max_steps=3) as talk:
        finished = await talk.turn("read")
        assert (finished.reason, finished.steps) == ("budget", 3)
        assert "limits.steps" in finished.detail
        assert "Send a message to go on" in finished.detail
        assert len(talk.requests) == 3
        assert len(talk.all(ToolFinished)) == 3
        assert (await talk.turn("go on")).reason == "answered"


@pytest.mark.promise("ENG-13")
async def test_no_request_is_sent_beyond_the_limit_of_tokens(tmp_path: Path) -> None:
    answers = [*reads(5, usage={"input_tokens": 90, "output_tokens": 10}), {"text": "no"}]
    settings = "[limits]\nturn_tokens = 200\n"
    async with conversation(tmp_path, answers, settings=settings) as talk:
        finished = await talk.turn("read")
        assert (finished.reason, finished.steps) == ("budget", 2)
        assert "limits.turn_tokens" in finished.detail
        assert len(talk.requests) == 2


@pytest.mark.promise("ENG-13")
async def test_no_request_is_sent_beyond_the_limit_of_money(tmp_path: Path) -> None:
    answer = Said(calls=(("c", "list", '{"path": "."}'),), input_tokens=1, cached_tokens=0, output_tokens=0)
    with FakeServer([answer]) as server:
        settings = f"""
[connections.mine]
base_url = "{server.url}/v1"
price = {{ input = 600000.0, output = 0.0 }}
"""
        async with conversation(
            tmp_path, None, settings=settings, model="mine/test-model", max_usd=1.0
        ) as talk:
            finished = await talk.turn("list")
    assert finished.reason == "budget"
    assert finished.cost_usd == pytest.approx(1.2)
    assert "limits.usd" in finished.detail
    assert len(talk.all(RequestStarted)) == 2


@pytest.mark.promise("ENG-13")
async def test_no_request_is_sent_beyond_the_limit_of_time(tmp_path: Path) -> None:
    settings = "[limits]\nturn_seconds = 0.000001\n"
    async with conversation(tmp_path, [{"text": "no"}], settings=settings) as talk:
        finished = await talk.turn("hi")
        assert finished.reason == "budget"
        assert "limits.turn_seconds" in finished.detail
        assert not talk.requests


@pytest.mark.promise("ENG-14")
async def test_same_call_with_the_same_result_is_told_once_and_then_ends_the_turn(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    async with conversation(tmp_path, [*[call("read", path="a")] * 6, {"text": "later"}]) as talk:
        finished = await talk.turn("read")
        assert finished.reason == "stuck"
        assert "same call" in finished.detail
        assert len(talk.all(Nudged)) == 1
        assert len(talk.requests) == 4
        assert "same call 3 times" not in words(talk.requests[2])
        assert "same call 3 times" in words(talk.requests[3])
        assert talk.app.state(talk.id).turn is None


@pytest.mark.promise("ENG-14")
async def test_model_that_heeds_the_warning_goes_on(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    (tmp_path / "b").write_text("b\n")
    answers = [*[call("read", path="a")] * 3, call("read", path="b"), {"text": "done"}]
    async with conversation(tmp_path, answers) as talk:
        assert (await talk.turn("read")).reason == "answered"
        assert len(talk.all(Nudged)) == 1


@pytest.mark.promise("ENG-14")
async def test_alternating_failures_end_the_turn(tmp_path: Path) -> None:
    both = [run("false"), call("read", path="missing")]
    answers = [*(both * 5), {"text": "later"}]
    async with conversation(tmp_path, answers, mode="auto", allow=("false",)) as talk:
        finished = await talk.turn("try")
    assert finished.reason == "stuck", talk.types
    assert len(talk.all(Nudged)) == 1


@pytest.mark.promise("ENG-14")
async def test_result_that_differs_only_in_how_long_it_took_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "times").touch()
    (tmp_path / "slower.sh").write_text("echo x >> times; echo 3 failed in 1.$(wc -l < times)s; exit 1\n")
    answers = [*[run("sh slower.sh")] * 6, {"text": "later"}]
    async with conversation(tmp_path, answers, mode="auto", allow=("sh",)) as talk:
        assert (await talk.turn("try")).reason == "stuck"
    assert len(talk.requests) == 4


async def test_several_calls_of_one_answer_run_in_order(tmp_path: Path) -> None:
    answers = [calls(run("sh add.sh 1"), run("sh add.sh 2"), run("sh add.sh 3")), {"text": "done"}]
    (tmp_path / "add.sh").write_text("echo $1 >> order\n")
    async with conversation(tmp_path, answers, mode="auto", allow=("sh",)) as talk:
        assert (await talk.turn("run")).reason == "answered"
    assert (tmp_path / "order").read_text() == "1\n2\n3\n"
    assert len(talk.requests) == 2
