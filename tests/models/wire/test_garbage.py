"""Whatever a server sends becomes an answer that can be stored and sent again, or an error of ours."""

import json
from typing import Any

import pytest

from handrail.models.model import AssistantTurn, Request, UserTurn
from handrail.models.reading.collector import Answer, collect_answer
from handrail.models.reading.sanitize import MAX_TOKENS
from handrail.protocol.errors import FixRequest, GiveUp, RetryLater
from handrail.protocol.events import Answered
from handrail.protocol.upcast import dump_event, load_event
from handrail.protocol.values import ToolCall, Usage
from tests.models.fake_server import FakeServer, Reply, Said
from tests.models.wires import FORMATS, WireFormat, model_at, request

pytestmark = pytest.mark.anyio

OPENAI, ANTHROPIC = FORMATS
DEEP = json.loads("[" * 300 + "]" * 300)


def events(*sent: dict[str, Any]) -> bytes:
    """Events with every character beyond ASCII escaped, so that halves of characters can be sent."""
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in sent)


def chunks(*deltas: dict[str, Any], **last: Any) -> bytes:
    begun = [{"choices": [{"delta": delta}]} for delta in deltas]
    return events(*begun, {"choices": [{"delta": {}, "finish_reason": "stop"}], **last}) + b"data: [DONE]\n\n"


def call(**changes: Any) -> dict[str, Any]:
    function = {"name": "read", "arguments": "{}"}
    return {"tool_calls": [{"index": 0, "id": "c1", "function": function, **changes}]}


def message(
    *blocks: tuple[Any, dict[str, Any], list[dict[str, Any]]], usage: dict[str, Any] | None = None
) -> bytes:
    sent: list[dict[str, Any]] = [{"type": "message_start", "message": {"usage": usage or {}}}]
    for index, block, deltas in blocks:
        sent.append({"type": "content_block_start", "index": index, "content_block": block})
        sent += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    sent.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage or {}})
    return events(*sent, {"type": "message_stop"})


TOOL_USE = {"type": "tool_use", "id": "a", "name": "read"}
THINKING = {"type": "thinking", "thinking": ""}


async def answered(wire: WireFormat, body: bytes) -> Answer:
    with FakeServer([Reply(body)]) as server:
        async with model_at(server, wire) as model:
            got = await collect_answer(model.stream(request()))
    event = Answered(
        turn_id="t",
        request_id="r",
        message_id="m",
        model="mine/m",
        text=got.text,
        thinking=got.thinking,
        opaque=got.opaque,
        calls=got.calls,
        end="stop",
        usage=got.usage,
    )
    assert load_event(1, dump_event(event)) == event
    return got


@pytest.mark.promise("MOD-6")
@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (OPENAI, chunks(call(id=5))),
        (OPENAI, chunks(call(function={"name": 5, "arguments": "{}"}))),
        (OPENAI, chunks(call(function={"name": "read", "arguments": [1]}))),
        (ANTHROPIC, message((0, {**TOOL_USE, "id": 5}, []))),
        (ANTHROPIC, message((0, {**TOOL_USE, "name": ["read"]}, []))),
        (ANTHROPIC, message((0, TOOL_USE, [{"type": "input_json_delta", "partial_json": 5}]))),
        (ANTHROPIC, message((None, TOOL_USE, []), (0, TOOL_USE, []))),
    ],
)
async def test_call_of_an_impossible_shape_means_retry(wire: WireFormat, body: bytes) -> None:
    with pytest.raises(RetryLater, match="cannot be read"):
        await answered(wire, body)


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (OPENAI, chunks(call(function={"name": "\ud800", "arguments": "{}"}))),
        (OPENAI, chunks(call(id="\ud800"))),
        (OPENAI, chunks({"reasoning_details": [{"index": 0, "data": "\ud800"}]}, call())),
        (OPENAI, chunks({"reasoning_details": [{"index": 0, "data": DEEP}]}, call())),
        (ANTHROPIC, message((0, {**TOOL_USE, "name": "\ud800"}, []))),
        (ANTHROPIC, message((0, {**TOOL_USE, "pieces": 7}, []))),
        (ANTHROPIC, message((0, {"type": "redacted_thinking", "data": "\ud800"}, []), (1, TOOL_USE, []))),
        (
            ANTHROPIC,
            message((0, THINKING, [{"type": "signature_delta", "signature": DEEP}]), (1, TOOL_USE, [])),
        ),
    ],
)
async def test_what_is_broken_beside_a_call_does_not_get_into_the_log(wire: WireFormat, body: bytes) -> None:
    got = await answered(wire, body)
    assert len(got.calls) == 1
    assert got.opaque == ()


@pytest.mark.parametrize("mark", [{"s": "\ud83d"}, DEEP, {"n": 10**5 * 1e304}])
async def test_signature_that_cannot_be_given_back_ends_the_request(mark: object) -> None:
    body = chunks(call(extra_content=mark)).replace(b"Infinity", b"1e999")
    with pytest.raises(GiveUp, match="cannot be stored"):
        await answered(OPENAI, body)


async def test_reasoning_whose_characters_come_in_halves_is_given_back_whole() -> None:
    halves = [
        {"reasoning_details": [{"index": 0, "type": "t", "text": half}]} for half in ("\ud83d", "\ude00")
    ]
    got = await answered(OPENAI, chunks(*halves, call()))
    assert got.opaque[0]["message"] == {"reasoning_details": [{"index": 0, "type": "t", "text": "😀"}]}


@pytest.mark.promise("MOD-15")
async def test_tokens_are_counted_within_bounds() -> None:
    huge = {"prompt_tokens": 10**400, "completion_tokens": -(10**9)}
    assert (await answered(OPENAI, chunks(usage=huge))).usage == Usage(input_tokens=MAX_TOKENS)
    less = {"input_tokens": -(10**9), "output_tokens": -5, "cache_read_input_tokens": 7}
    got = await answered(ANTHROPIC, message(usage=less))
    assert got.usage == Usage(input_tokens=7, cache_read_tokens=7)


@pytest.mark.parametrize("wire", FORMATS, ids=lambda wire: wire.protocol)
async def test_error_with_half_a_character_can_be_told(wire: WireFormat) -> None:
    with pytest.raises(FixRequest) as caught:
        await answered(wire, events({"type": "error", "error": {"code": 400, "message": "oh \ud83d"}}))
    assert str(caught.value).encode()


async def test_number_that_is_no_json_is_not_sent() -> None:
    turn = AssistantTurn("", (ToolCall(id="c", name="read", arguments={"n": float("inf")}),))
    with FakeServer([Said()]) as server:
        async with model_at(server, ANTHROPIC) as model:
            with pytest.raises(FixRequest, match="number"):
                await collect_answer(model.stream(Request("", (UserTurn("Hi"), turn))))
        assert server.requests == []
