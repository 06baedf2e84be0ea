"""Asking a model: retries, fallbacks, what a failure leaves behind, and what it costs."""

from pathlib import Path
from typing import Any

import pytest

from handrail.models.model import UserTurn
from handrail.protocol.events import Answered, Compacted, RequestFailed, RequestStarted, TurnFinished
from tests.engine.conversation import conversation, script_file, words
from tests.models.fake_server import FakeServer, Reply, Said, openai_bytes

pytestmark = pytest.mark.anyio

PRICED = """
[retries]
count = {retries}
[connections.mine]
base_url = "{url}/v1"
context_window = 32000
price = {{ input = 1000000.0, output = 2000000.0 }}
"""


def priced(server: FakeServer, *, retries: int = 2) -> str:
    """Settings for a server that takes 1 USD for a token in and 2 for a token out."""
    return PRICED.format(url=server.url, retries=retries)


def failing(kind: str, **more: Any) -> dict[str, Any]:
    return {"text": "one two three", "error": {"kind": kind, "message": "as told", **more}}


@pytest.mark.promise("ENG-7")
async def test_delay_that_the_server_names_is_kept_and_each_attempt_is_an_event(tmp_path: Path) -> None:
    async with conversation(tmp_path, [failing("retry_later", delay=0.01, times=2)]) as talk:
        assert (await talk.turn("hi")).reason == "answered"
    assert [failed.retry_in for failed in talk.all(RequestFailed)] == [0.01, 0.01]
    assert [started.attempt for started in talk.all(RequestStarted)] == [1, 2, 3]
    assert talk.all(TurnFinished)[0].steps == 1


@pytest.mark.promise("ENG-7")
async def test_without_a_named_delay_there_is_one_that_is_neither_nothing_nor_for_ever(
    tmp_path: Path,
) -> None:
    async with conversation(tmp_path, [failing("retry_later", times=1)]) as talk:
        assert (await talk.turn("hi")).reason == "answered"
    (failed,) = talk.all(RequestFailed)
    assert failed.retry_in
    assert 0.1 < failed.retry_in <= 60


@pytest.mark.promise("ENG-7")
async def test_retries_end_and_the_session_goes_on(tmp_path: Path) -> None:
    answers = [failing("retry_later", delay=0.0, times=3), {"text": "not reached"}]
    async with conversation(tmp_path, answers, settings="[retries]\ncount = 2\n") as talk:
        finished = await talk.turn("hi")
        assert (finished.reason, finished.detail) == ("failed", "as told")
        assert [failed.retry_in for failed in talk.all(RequestFailed)] == [0.0, 0.0, None]
        assert (await talk.turn("again")).reason == "answered"
    assert "hi" in words(talk.requests[-1])


@pytest.mark.promise("ENG-7")
async def test_delay_beyond_all_patience_is_not_waited_for(tmp_path: Path) -> None:
    async with conversation(tmp_path, [failing("retry_later", delay=100_000.0, times=1)]) as talk:
        assert (await talk.turn("hi")).reason == "failed"
    assert [failed.retry_in for failed in talk.all(RequestFailed)] == [None]


@pytest.mark.promise("ENG-8")
async def test_words_of_a_failed_attempt_are_in_no_answer_and_no_request(tmp_path: Path) -> None:
    cut = {"kind": "retry_later", "delay": 0.0, "after_chunks": 1, "times": 1}
    answers: list[dict[str, Any]] = [
        {"text": ["fragment ", "whole"], "error": cut},
        {"text": "second"},
    ]
    async with conversation(tmp_path, answers) as talk:
        await talk.turn("hi")
        assert not talk.app.log.partials(f"session:{talk.id}")
        await talk.turn("and?")
    assert talk.all(Answered)[0].text == "fragment whole"
    assert words(talk.requests[2]).count("fragment") == 1
    first, second, *_ = talk.all(RequestStarted)
    assert first.message_id != second.message_id
    assert {delta.message_id for delta in talk.deltas} >= {first.message_id, second.message_id}


@pytest.mark.promise("ENG-9")
@pytest.mark.parametrize("kind", ["authenticate", "fix_request", "give_up"])
async def test_what_trying_again_cannot_mend_is_not_tried_again(tmp_path: Path, kind: str) -> None:
    async with conversation(tmp_path, [failing(kind, times=1)]) as talk:
        finished = await talk.turn("hi")
        assert (finished.reason, finished.detail) == ("failed", "as told")
        assert [failed.kind for failed in talk.all(RequestFailed)] == [kind]
        assert (await talk.turn("again")).reason == "answered"


@pytest.mark.promise("ENG-9")
async def test_missing_key_ends_the_turn_with_the_name_of_the_variable_and_the_session_goes_on(
    tmp_path: Path,
) -> None:
    async with conversation(tmp_path, None, model="anthropic/claude-test") as talk:
        finished = await talk.turn("hi")
        assert finished.reason == "failed"
        assert "ANTHROPIC_API_KEY" in finished.detail
        finished = await talk.turn("again")
        assert "ANTHROPIC_API_KEY" in finished.detail
        assert talk.app.state(talk.id).turn is None


@pytest.mark.promise("ENG-9")
async def test_refused_key_ends_the_turn_with_what_to_do(tmp_path: Path) -> None:
    refusal = Reply(
        b'{"error": {"message": "Incorrect API key"}}', status=401, content_type="application/json"
    )
    with FakeServer([refusal]) as server:
        async with conversation(tmp_path, None, settings=priced(server), model="mine/test-model") as talk:
            finished = await talk.turn("hi")
    assert finished.reason == "failed"
    assert "key" in finished.detail
    assert finished.cost_usd == 0
    assert len([one for one in server.requests if one.method == "POST" and "chat" in one.path]) == 1


@pytest.mark.promise("ENG-10")
async def test_fallback_answers_when_the_first_model_has_given_up(tmp_path: Path) -> None:
    first = script_file(tmp_path, [failing("retry_later", delay=0.0), failing("authenticate")], "first.json")
    other = script_file(tmp_path, [{"text": "from the other"}, {"text": "again"}], "other.json")
    settings = f'[models]\nmain = "{first}"\nfallback.main = ["{other}"]\n[retries]\ncount = 1\n'
    async with conversation(tmp_path, None, settings=settings) as talk:
        assert (await talk.turn("hi")).reason == "answered"
        assert (await talk.turn("more")).reason == "answered"
    assert [answered.model for answered in talk.all(Answered)] == [other, other]
    assert [started.model for started in talk.all(RequestStarted)] == [first, first, other, first, other]


@pytest.mark.promise("ENG-10")
async def test_when_every_model_fails_the_turn_says_why(tmp_path: Path) -> None:
    first = script_file(tmp_path, [failing("authenticate")], "first.json")
    other = script_file(tmp_path, [failing("give_up", message="the other is lost")], "other.json")
    settings = f'[models]\nmain = "{first}"\nfallback.main = ["{other}"]\n'
    async with conversation(tmp_path, None, settings=settings) as talk:
        finished = await talk.turn("hi")
    assert (finished.reason, finished.detail) == ("failed", "the other is lost")


@pytest.mark.promise("ENG-11")
async def test_cost_is_counted_once_for_each_request_that_was_billed(tmp_path: Path) -> None:
    whole = openai_bytes(Said(text=("done",), input_tokens=10, cached_tokens=0, output_tokens=3))
    busy = Reply(b'{"error": {"message": "overloaded"}}', status=503, headers=(("retry-after", "0"),))
    with FakeServer([busy, Reply(whole)]) as server:
        async with conversation(tmp_path, None, settings=priced(server), model="mine/test-model") as talk:
            finished = await talk.turn("hi")
            again = await talk.turn("more")
            assert talk.app.state(talk.id).cost_usd == pytest.approx(32)
            assert talk.app.sessions()[0].cost_usd == pytest.approx(32)
    assert finished.cost_usd == pytest.approx(16)
    assert again.cost_usd == pytest.approx(16)
    assert [failed.cost_usd for failed in talk.all(RequestFailed)] == [0.0]


@pytest.mark.promise("ENG-11")
async def test_answer_cut_before_its_tokens_were_told_has_no_known_cost(tmp_path: Path) -> None:
    whole = openai_bytes(Said(text=("some ", "words"), input_tokens=10, cached_tokens=0, output_tokens=3))
    with FakeServer([Reply(whole, cut=len(whole) // 3)]) as server:
        settings = priced(server, retries=0)
        async with conversation(tmp_path, None, settings=settings, model="mine/test-model") as talk:
            finished = await talk.turn("hi")
    (failed,) = talk.all(RequestFailed)
    assert failed.cost_usd is None
    assert finished.cost_usd is None


@pytest.mark.promise("ENG-12")
async def test_conversation_that_the_provider_calls_too_long_is_compacted_and_asked_again(
    tmp_path: Path,
) -> None:
    too_long = Reply(b'{"error": {"code": "context_length_exceeded", "message": "too long"}}', status=400)
    answers = [Said(text=(f"answer {number} " + "word " * 400,)) for number in range(6)]
    with FakeServer([*answers, too_long, Said(text=("fits now",))]) as server:
        settings = priced(server) + "[limits]\nusd = 1000000\n"
        async with conversation(tmp_path, None, settings=settings, model="mine/test-model") as talk:
            for number in range(6):
                await talk.turn(f"message {number}")
            assert not talk.all(Compacted)
            assert (await talk.turn("last")).reason == "answered"
    (compacted,) = talk.all(Compacted)
    assert compacted.tokens_after < compacted.tokens_before
    before, after = [one.body for one in server.requests if one.path.endswith("/chat/completions")][-2:]
    assert len(after) < len(before)
    assert b"message 0" in after
    assert b"last" in after


@pytest.mark.promise("ENG-12")
async def test_message_that_is_too_long_by_itself_ends_the_turn_and_the_session_goes_on(
    tmp_path: Path,
) -> None:
    too_long = Reply(b'{"error": {"code": "context_length_exceeded", "message": "too long"}}', status=400)
    with FakeServer([too_long, Said(text=("fine",))]) as server:
        async with conversation(tmp_path, None, settings=priced(server), model="mine/test-model") as talk:
            finished = await talk.turn("word " * 2000)
            assert finished.reason == "failed"
            assert "too long" in finished.detail
            assert (await talk.turn("short")).reason == "answered"


@pytest.mark.promise("ENG-12")
async def test_still_too_long_after_compaction_is_not_tried_for_ever(tmp_path: Path) -> None:
    too_long = Reply(b'{"error": {"code": "context_length_exceeded", "message": "too long"}}', status=400)
    with FakeServer([Said(text=("word " * 400,)), too_long]) as server:
        settings = priced(server) + "[limits]\nusd = 1000000\n"
        async with conversation(tmp_path, None, settings=settings, model="mine/test-model") as talk:
            await talk.turn("one")
            assert (await talk.turn("two")).reason == "failed"
    assert len(talk.all(RequestFailed)) == 2


async def test_prompt_of_the_next_turn_begins_with_the_same_messages(tmp_path: Path) -> None:
    async with conversation(tmp_path, [{"text": "one"}, {"text": "two"}]) as talk:
        await talk.turn("first")
        await talk.turn("second")
    first, second = talk.requests
    assert second.messages[: len(first.messages)] == first.messages
    assert (second.system, second.tools) == (first.system, first.tools)
    assert isinstance(second.messages[-1], UserTurn)
