"""What each adapter sends."""

import json
from typing import Any

import pytest

from handrail.models.model import AssistantTurn, Image, Message, Opaque, Request, ToolResult, UserTurn
from handrail.models.providers import BUILT_IN_CONNECTIONS
from handrail.models.reading.collector import collect_answer
from handrail.models.reading.tool_calls import with_written_tools
from handrail.models.wire.anthropic import closed_schema
from handrail.models.wire.anthropic import request_body as anthropic_body
from handrail.models.wire.openai import request_body as openai_body
from handrail.models.wire.openai_stream import ChatReader, read_usage
from handrail.models.wire.sse import ServerEvent
from handrail.protocol.values import ToolCall
from tests.models.fake_server import FakeServer, Recorded, Reply, Said, anthropic_bytes
from tests.models.wires import CALL, FORMATS, KEY, TOOLS, model_at, request

READ = ToolCall(id="c1", name="read", arguments={"path": "a"})
LIST = ToolCall(id="c2", name="list")
TALK: tuple[Message, ...] = (
    UserTurn("Look", images=(Image("image/png", b"png"),)),
    AssistantTurn("Sure.", calls=(READ, LIST), opaque=({"anthropic": "other"},)),
    ToolResult("c1", "read", "text of a"),
    ToolResult("c2", "list", "no such folder", is_error=True),
    UserTurn("And quickly"),
    AssistantTurn(""),
)


def asked(**changes: Any) -> Request:
    return Request(**({"system": "Be brief.", "messages": TALK, "tools": TOOLS} | changes))


def test_openai_messages_carry_calls_results_and_images() -> None:
    body = openai_body(BUILT_IN_CONNECTIONS["xai"], "grok-4.7", asked(temperature=0.2))
    system, look, sure, first, second, quickly, _ = body["messages"]
    assert system == {"role": "system", "content": "Be brief."}
    assert look["content"][1]["image_url"]["url"] == "data:image/png;base64,cG5n"
    assert [call["id"] for call in sure["tool_calls"]] == ["c1", "c2"]
    assert json.loads(sure["tool_calls"][0]["function"]["arguments"]) == {"path": "a"}
    assert (first["tool_call_id"], second["content"]) == ("c1", "no such folder")
    assert quickly == {"role": "user", "content": "And quickly"}
    assert body["stream_options"] == {"include_usage": True}
    assert (body["temperature"], body["max_tokens"]) == (0.2, 16_384)


@pytest.mark.promise("IMG-3")
def test_pictures_of_results_stand_where_each_wire_takes_them() -> None:
    shot = Image("image/webp", b"webp")
    results = (ToolResult("c1", "read", "a picture", images=(shot,)), ToolResult("c2", "list", "text"))
    talk = (UserTurn("Look"), AssistantTurn("", calls=(READ, LIST)), *results)
    for after in ((), (AssistantTurn("Nice."),)):
        *_, first, second, pictures = openai_body(
            BUILT_IN_CONNECTIONS["xai"], "grok-4.7", asked(messages=(*talk, *after))
        )["messages"][:6]
        assert (first["tool_call_id"], second["tool_call_id"]) == ("c1", "c2")
        assert pictures["role"] == "user"
        assert pictures["content"][1]["image_url"]["url"] == "data:image/webp;base64,d2VicA=="
    blocks = anthropic_body("claude-sonnet-5-5", asked(messages=talk))["messages"][-1]["content"]
    assert [block["type"] for block in blocks[0]["content"]] == ["text", "image"]
    source = {"type": "base64", "media_type": "image/webp", "data": "d2VicA=="}
    assert blocks[0]["content"][1]["source"] == source
    assert blocks[1]["content"] == "text"
    written = with_written_tools(asked(messages=talk)).messages[2]
    assert isinstance(written, UserTurn)
    assert written.images == (shot,)


@pytest.mark.promise("IMG-3")
def test_a_picture_without_words_is_sent_without_an_empty_text() -> None:
    alone = asked(messages=(UserTurn("", images=(Image("image/png", b"png"),)),))
    (sent,) = openai_body(BUILT_IN_CONNECTIONS["xai"], "grok-4.7", alone)["messages"][1:]
    assert [part["type"] for part in sent["content"]] == ["image_url"]
    (sent,) = anthropic_body("claude-sonnet-5-5", alone)["messages"]
    assert [block["type"] for block in sent["content"]] == ["image"]


def test_openais_own_models_get_what_they_accept() -> None:
    body = openai_body(BUILT_IN_CONNECTIONS["openai"], "gpt-6.1-terra", asked(temperature=0.2))
    assert "temperature" not in body
    assert "max_tokens" not in body
    assert body["max_completion_tokens"] == 16_384
    assert body["reasoning_effort"] == "none"
    assert "reasoning_effort" not in openai_body(
        BUILT_IN_CONNECTIONS["openai"], "gpt-6.1-terra", asked(tools=())
    )
    assert "reasoning_effort" not in openai_body(BUILT_IN_CONNECTIONS["openai"], "gpt-5.2", asked())


def test_output_schema_is_asked_for_natively() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}}
    body = openai_body(BUILT_IN_CONNECTIONS["llamacpp"], "m", asked(output_schema=schema))
    assert body["response_format"]["json_schema"]["schema"] == schema
    sent = anthropic_body("claude-sonnet-5-5", asked(output_schema=schema))["output_config"]["format"]
    assert sent["schema"] == {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "additionalProperties": False,
    }


def test_closing_a_schema_keeps_properties_that_look_like_keywords() -> None:
    schema = {"type": "object", "properties": {"minimum": {"type": "string", "maxLength": 3}}}
    assert closed_schema(schema)["properties"] == {"minimum": {"type": "string"}}


def test_anthropic_turns_alternate_and_results_come_together() -> None:
    look, sure, results = anthropic_body("claude-haiku-4-5", asked())["messages"]
    assert [block["type"] for block in look["content"]] == ["image", "text"]
    assert [block["type"] for block in sure["content"]] == ["text", "tool_use", "tool_use"]
    assert [block["type"] for block in results["content"]] == ["tool_result", "tool_result", "text"]
    assert results["content"][1]["is_error"] is True


@pytest.mark.promise("MOD-12")
def test_anthropic_prefix_is_marked_for_the_cache_at_most_four_times() -> None:
    turns: list[Message] = []
    for _ in range(5):
        turns += [UserTurn("a"), AssistantTurn("b")]
    body = anthropic_body("claude-sonnet-5-5", asked(messages=(*turns, UserTurn("c"))))
    assert "cache_control" in body["tools"][-1]
    assert "cache_control" in body["system"][-1]
    assert "cache_control" in body["messages"][-1]["content"][-1]
    assert json.dumps(body).count("cache_control") == 4


@pytest.mark.promise("MOD-12")
@pytest.mark.parametrize("which", ["openai", "anthropic"])
def test_prefix_is_byte_stable_when_the_conversation_grows(which: str) -> None:
    def sent(messages: tuple[Message, ...]) -> str:
        grown = asked(messages=messages)
        if which == "openai":
            return json.dumps(openai_body(BUILT_IN_CONNECTIONS["ollama"], "m", grown)["messages"])
        body = anthropic_body("claude-sonnet-5-5", grown)
        return json.dumps([body["tools"], body["system"], body["messages"]]).replace(
            ', "cache_control": {"type": "ephemeral"}', ""
        )

    shorter = sent(TALK[:1])
    assert sent((*TALK[:1], AssistantTurn("x"), UserTurn("y"))).startswith(shorter.rstrip("]"))


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("claude-haiku-4-5", None),
        ("claude-sonnet-4-6", None),
        ("claude-sonnet-5", {"type": "adaptive", "display": "summarized"}),
        (
            "claude-sonnet-5-5",
            {
                "type": "adaptive",
                "display": "summarized",
                "block_binding": {"prefix_mismatch_behavior": "drop_block"},
            },
        ),
    ],
)
def test_thinking_is_asked_for_as_each_generation_takes_it(model: str, thinking: object) -> None:
    body = anthropic_body(model, asked(temperature=0.5))
    assert body.get("thinking") == thinking
    assert ("temperature" in body) == (thinking is None)
    assert "tool_choice" not in body


@pytest.mark.anyio
@pytest.mark.promise("MOD-11")
async def test_signed_thinking_goes_back_unchanged_and_in_its_place() -> None:
    with FakeServer([CALL]) as server:
        async with model_at(server, FORMATS[1], model="claude-x") as model:
            got = await collect_answer(model.stream(request()))
            turn = AssistantTurn(got.text, got.calls, got.opaque)
            later = asked(messages=(UserTurn("Read"), turn, ToolResult("call_1", "read", "ok")))
            await collect_answer(model.stream(later))
            sent = server.requests[-1].json["messages"][1]["content"]
    assert [block["type"] for block in sent] == ["thinking", "text", "tool_use"]
    assert sent[0] == {"type": "thinking", "thinking": "Let me look…", "signature": "sig=="}
    other = anthropic_body("claude-y", later)["messages"][1]["content"]
    assert [block["type"] for block in other] == ["text", "tool_use"]
    changed = asked(messages=(UserTurn("Read"), AssistantTurn("Other words", got.calls, got.opaque)))
    assert [b["type"] for b in anthropic_body("claude-x", changed)["messages"][1]["content"]] == [
        "text",
        "tool_use",
    ]


@pytest.mark.anyio
@pytest.mark.parametrize("wire", FORMATS, ids=lambda wire: wire.protocol)
async def test_key_goes_into_its_header_and_nowhere_else(wire: Any) -> None:
    with FakeServer([CALL]) as server:
        async with model_at(server, wire, model="claude-sonnet-5-5") as model:
            await collect_answer(model.stream(request()))
        sent = server.requests[-1]
    header = {"openai": "authorization", "anthropic": "x-api-key"}[wire.protocol]
    holders = [name for name, value in sent.headers.items() if KEY in value]
    assert holders == [header]
    assert KEY.encode() not in sent.body
    assert ("anthropic-beta" in sent.headers) == (wire.protocol == "anthropic")


@pytest.mark.anyio
async def test_model_without_native_tools_calls_them_in_writing() -> None:
    words = 'Looking.\n```json\n{"name": "read", "arguments": {"path": "a"}}\n```'
    with FakeServer([Said(text=(words,))]) as server:
        async with model_at(server, FORMATS[0]) as model:
            got = await collect_answer(model.stream(request()))
    assert [(call.name, call.arguments) for call in got.calls] == [("read", {"path": "a"})]
    assert got.finish == "tool_calls"
    plain = with_written_tools(asked())
    body = openai_body(BUILT_IN_CONNECTIONS["ollama"], "m", plain)
    assert "tools" not in body
    assert "read: Read a file." in body["messages"][0]["content"]
    assert {message["role"] for message in body["messages"]} == {"system", "user", "assistant"}
    assert "Error from list:\nno such folder" in [message["content"] for message in body["messages"]]
    assert '{"name": "read", "arguments": {"path": "a"}}' in body["messages"][2]["content"]


def chunk(**delta: object) -> ServerEvent:
    return ServerEvent("", json.dumps({"choices": [{"delta": delta}]}))


def finished(reader: ChatReader, reason: str = "stop") -> list[ToolCall]:
    list(reader.read(ServerEvent("", json.dumps({"choices": [{"delta": {}, "finish_reason": reason}]}))))
    return [part.call for part in reader.end() or () if hasattr(part, "call")]


@pytest.mark.parametrize(
    "pieces",
    [
        [
            {"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"}},
            {"index": 0, "id": "b", "function": {"name": "list", "arguments": "{}"}},
        ],
        [
            {"id": "a", "function": {"name": "read", "arguments": "{}"}},
            {"id": "b", "function": {"name": "list", "arguments": "{}"}},
        ],
        [
            {"index": 1, "id": "b", "function": {"name": "list", "arguments": {}}},
            {"index": 0, "id": "a", "function": {"name": "read", "arguments": {}}},
        ],
        [
            {"id": "a", "function": {"name": "read", "arguments": "{"}},
            {"function": {"arguments": "}"}},
            {"id": "b", "function": {"name": "list"}},
        ],
    ],
    ids=["all numbered 0", "no numbers", "out of order, objects", "pieces without number"],
)
def test_calls_are_put_together_however_servers_number_them(pieces: list[dict[str, Any]]) -> None:
    reader = ChatReader("gemini/m", {"read", "list"})
    for piece in pieces:
        list(reader.read(chunk(tool_calls=[piece])))
    assert [(call.id, call.name, call.arguments, call.problem) for call in finished(reader)] == [
        ("a", "read", {}, ""),
        ("b", "list", {}, ""),
    ]


@pytest.mark.promise("MOD-11")
@pytest.mark.parametrize(
    ("delta", "back"),
    [
        ({"reasoning_content": "hm"}, {"reasoning_content": "hm"}),
        ({"reasoning": "hm"}, {"reasoning": "hm"}),
        (
            {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "h"}]},
            {"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "hh", "signature": "s"}]},
        ),
    ],
)
def test_reasoning_and_marks_of_calls_go_back_to_the_same_model_only(
    delta: dict[str, Any], back: dict[str, Any]
) -> None:
    mark = {"google": {"thought_signature": "abc"}}
    piece = {"id": "c1", "extra_content": mark, "function": {"name": "read", "arguments": "{}"}}
    reader = ChatReader("gemini/m", {"read"})
    list(reader.read(chunk(**delta)))
    if "reasoning_details" in delta:
        more = {"type": "reasoning.text", "index": 0, "text": "h", "signature": "s"}
        list(reader.read(chunk(reasoning_details=[more])))
    list(reader.read(chunk(tool_calls=[piece])))
    list(reader.read(ServerEvent("", '{"choices": [{"finish_reason": "tool_calls"}]}')))
    opaque = [part.block for part in reader.end() or () if isinstance(part, Opaque)]
    turn = AssistantTurn("", calls=(READ,), opaque=tuple(opaque))
    sent = openai_body(BUILT_IN_CONNECTIONS["gemini"], "m", asked(messages=(turn,)))["messages"][1]
    assert {key: sent[key] for key in back} == back
    assert sent["tool_calls"][0]["extra_content"] == mark
    other = openai_body(BUILT_IN_CONNECTIONS["gemini"], "n", asked(messages=(turn,)))["messages"][1]
    assert set(other) == {"role", "content", "tool_calls"}
    assert "extra_content" not in other["tool_calls"][0]


def test_broken_arguments_become_a_call_with_a_problem() -> None:
    reader = ChatReader("gemini/m", {"read"})
    list(
        reader.read(
            chunk(tool_calls=[{"index": 0, "id": "a", "function": {"name": "read", "arguments": "{"}}])
        )
    )
    (call,) = finished(reader, "tool_calls")
    assert call.arguments == {}
    assert "cut" in call.problem


def test_reasoning_left_out_of_the_output_count_is_added() -> None:
    usage = read_usage({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 40})
    assert (usage.input_tokens, usage.output_tokens) == (10, 30)


@pytest.mark.anyio
async def test_redacted_thinking_is_kept_and_given_back() -> None:
    block = {"type": "redacted_thinking", "data": "xyz"}
    start = {"type": "content_block_start", "index": 7, "content_block": block}
    whole = anthropic_bytes(Said(text=("Hi",)))
    event = f"event: content_block_start\ndata: {json.dumps(start)}\n\n".encode()
    body = whole.replace(b"event: message_delta", event + b"event: message_delta")

    def reply(_request: Recorded) -> Reply:
        return Reply(body)

    with FakeServer(reply) as server:
        async with model_at(server, FORMATS[1], model="claude-x") as model:
            got = await collect_answer(model.stream(request()))
    turn = AssistantTurn(got.text, got.calls, got.opaque)
    sent = anthropic_body("claude-x", asked(messages=(UserTurn("a"), turn)))["messages"][1]["content"]
    assert sent == [{"type": "text", "text": "Hi"}, block]
