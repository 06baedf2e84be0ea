"""Answers of the fake model in the four forms that agents ask for, streamed or whole."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple


class Said(NamedTuple):
    """One answer: words, or one call. Arguments that are text go to a tool that takes text (of codex)."""

    text: str = ""
    tool: str = ""
    arguments: dict[str, Any] | str = ""


class Encoded(NamedTuple):
    content_type: str
    body: bytes


STREAM = "text/event-stream"
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def encode(path: str, request: dict[str, Any], said: Said, number: int) -> Encoded:
    """The answer in the form of the address that was asked, whole where no stream was wanted."""
    place = path.partition("?")[0]
    if place.endswith("/responses"):
        return Encoded(STREAM, _events(_responses(said, number)))
    if place.endswith("/messages"):
        return Encoded(STREAM, _events(_messages(said, number)))
    if not request.get("stream"):
        return Encoded("application/json", json.dumps(_whole(said, number)).encode())
    return Encoded(STREAM, _chunks(said, number))


def _call_id(number: int) -> str:
    return f"call_{number}"


def _text_of(arguments: dict[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _function(said: Said, number: int) -> dict[str, Any]:
    function = {"name": said.tool, "arguments": _text_of(said.arguments)}
    return {"id": _call_id(number), "type": "function", "function": function}


def _whole(said: Said, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
    if said.tool:
        message["tool_calls"] = [_function(said, number)]
    finish = "tool_calls" if said.tool else "stop"
    return {
        "id": f"answer_{number}",
        "object": "chat.completion",
        "created": 0,
        "model": "test-model",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": USAGE,
    }


def _chunks(said: Said, number: int) -> bytes:
    delta: dict[str, Any] = {"role": "assistant", "content": said.text}
    if said.tool:
        delta["tool_calls"] = [{"index": 0, **_function(said, number)}]
    finish = "tool_calls" if said.tool else "stop"
    head = {"id": f"answer_{number}", "object": "chat.completion.chunk", "created": 0, "model": "test-model"}
    chunks = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        {**head, "choices": [], "usage": USAGE},
    ]
    lines = [*(json.dumps(chunk) for chunk in chunks), "[DONE]"]
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def _responses(said: Said, number: int) -> Iterable[dict[str, Any]]:
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 110,
    }
    response = {"id": f"answer_{number}"}
    yield {"type": "response.created", "response": response}
    yield {"type": "response.output_item.done", "output_index": 0, "item": _item(said, number)}
    yield {"type": "response.completed", "response": {**response, "usage": usage}}


def _item(said: Said, number: int) -> dict[str, Any]:
    if not said.tool:
        words = [{"type": "output_text", "text": said.text}]
        return {"type": "message", "role": "assistant", "id": f"message_{number}", "content": words}
    if isinstance(said.arguments, str):
        call = {"type": "custom_tool_call", "input": said.arguments}
    else:
        call = {"type": "function_call", "arguments": json.dumps(said.arguments)}
    return {**call, "id": f"item_{number}", "call_id": _call_id(number), "name": said.tool}


def _messages(said: Said, number: int) -> Iterable[dict[str, Any]]:
    usage = {"input_tokens": 100, "output_tokens": 10}
    start = {"id": f"answer_{number}", "role": "assistant", "content": [], "usage": usage}
    yield {"type": "message_start", "message": start}
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": said.text}
    if said.tool:
        block = {"type": "tool_use", "id": _call_id(number), "name": said.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": _text_of(said.arguments)}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = "tool_use" if said.tool else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}
    yield {"type": "message_stop"}


def _events(events: Iterable[dict[str, Any]]) -> bytes:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
