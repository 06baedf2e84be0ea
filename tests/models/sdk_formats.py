"""Answers as the providers of the extra `providers` stream them."""

import binascii
import json
import struct
from typing import Any

from tests.models.fake_server import Said


def lines(chunks: list[dict[str, Any]], newline: str, *, end: str = "") -> bytes:
    texts = [json.dumps(chunk, ensure_ascii=False) for chunk in chunks] + ([end] if end else [])
    return "".join(f"data: {text}{newline}{newline}" for text in texts).encode()


def groq_bytes(said: Said, newline: str = "\n") -> bytes:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning": piece} for piece in said.thinking]
    deltas += [{"content": piece} for piece in said.text]
    for index, (call_id, name, arguments) in enumerate(said.calls):
        function = {"name": name, "arguments": arguments}
        deltas.append(
            {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}
        )
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "test-model"}
    chunks = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    names = {"": "tool_calls" if said.calls else "stop", "filtered": "content_filter"}
    usage = {
        "prompt_tokens": said.input_tokens,
        "completion_tokens": said.output_tokens,
        "total_tokens": said.input_tokens + said.output_tokens,
        "prompt_tokens_details": {"cached_tokens": said.cached_tokens},
    }
    last = {"index": 0, "delta": {}, "finish_reason": names.get(said.finish, said.finish)}
    chunks.append({**base, "choices": [last], "x_groq": {"id": "r1", "usage": usage}})
    return lines(chunks, newline, end="[DONE]")


def mistral_bytes(said: Said, newline: str = "\n") -> bytes:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": piece}]}]}
        for piece in said.thinking
    ]
    deltas += [{"content": piece} for piece in said.text]
    calls = [
        {"id": call_id, "index": index, "function": {"name": name, "arguments": arguments}}
        for index, (call_id, name, arguments) in enumerate(said.calls)
    ]
    names = {"": "tool_calls" if said.calls else "stop", "filtered": "error"}
    last = {"index": 0, "delta": {"content": ""}, "finish_reason": names.get(said.finish, said.finish)}
    if calls:
        last["delta"] = {"content": "", "tool_calls": calls}
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "test-model"}
    chunks = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    usage = {
        "prompt_tokens": said.input_tokens,
        "completion_tokens": said.output_tokens,
        "total_tokens": said.input_tokens + said.output_tokens,
        "prompt_tokens_details": {"cached_tokens": said.cached_tokens},
    }
    chunks.append({**base, "choices": [last], "usage": usage})
    return lines(chunks, newline, end="[DONE]")


def cohere_bytes(said: Said, newline: str = "\n") -> bytes:
    events: list[dict[str, Any]] = [
        {"type": "message-start", "id": "m1", "delta": {"message": {"role": "assistant"}}}
    ]
    index = 0
    for kind, pieces in (("thinking", said.thinking), ("text", said.text)):
        if not pieces:
            continue
        start = {"message": {"content": {"type": kind, kind: ""}}}
        events.append({"type": "content-start", "index": index, "delta": start})
        for piece in pieces:
            delta = {"message": {"content": {kind: piece}}}
            events.append({"type": "content-delta", "index": index, "delta": delta})
        events.append({"type": "content-end", "index": index})
        index += 1
    for at, (call_id, name, arguments) in enumerate(said.calls):
        function: dict[str, str] = {"name": name, "arguments": ""}
        call = {"id": call_id, "type": "function", "function": function}
        events.append({"type": "tool-call-start", "index": at, "delta": {"message": {"tool_calls": call}}})
        for cut in range(0, len(arguments), 5):
            part = {"function": {"arguments": arguments[cut : cut + 5]}}
            events.append(
                {"type": "tool-call-delta", "index": at, "delta": {"message": {"tool_calls": part}}}
            )
        events.append({"type": "tool-call-end", "index": at})
    names = {"": "TOOL_CALL" if said.calls else "COMPLETE", "length": "MAX_TOKENS", "filtered": "ERROR_TOXIC"}
    usage = {
        "billed_units": {"input_tokens": said.input_tokens, "output_tokens": said.output_tokens},
        "tokens": {"input_tokens": said.input_tokens, "output_tokens": said.output_tokens},
        "cached_tokens": said.cached_tokens,
    }
    end = {"finish_reason": names.get(said.finish, said.finish), "usage": usage}
    events.append({"type": "message-end", "delta": end})
    return "".join(
        f"event: {event['type']}{newline}data: {json.dumps(event, ensure_ascii=False)}{newline}{newline}"
        for event in events
    ).encode()


def google_bytes(said: Said, newline: str = "\n") -> bytes:
    parts: list[dict[str, Any]] = [{"text": piece, "thought": True} for piece in said.thinking]
    parts += [{"text": piece} for piece in said.text]
    parts += [
        {"functionCall": {"id": call_id, "name": name, "args": json.loads(arguments or "{}")}}
        for call_id, name, arguments in said.calls
    ]
    usage = {
        "promptTokenCount": said.input_tokens,
        "candidatesTokenCount": said.output_tokens,
        "cachedContentTokenCount": said.cached_tokens,
        "totalTokenCount": said.input_tokens + said.output_tokens,
    }
    chunks: list[dict[str, Any]] = [
        {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]} for part in parts
    ]
    names = {"": "STOP", "length": "MAX_TOKENS", "filtered": "SAFETY"}
    end = {"index": 0, "content": {"role": "model", "parts": [{"text": ""}]}}
    end["finishReason"] = names.get(said.finish, said.finish)
    chunks.append(
        {"candidates": [end], "usageMetadata": usage, "modelVersion": "test-model", "responseId": "r"}
    )
    return lines(chunks, newline)


def bedrock_bytes(said: Said, _newline: str = "") -> bytes:
    events: list[tuple[str, dict[str, Any]]] = [("messageStart", {"role": "assistant"})]
    index = 0
    if said.thinking:
        for piece in said.thinking:
            delta: dict[str, Any] = {"reasoningContent": {"text": piece}}
            events.append(("contentBlockDelta", {"contentBlockIndex": index, "delta": delta}))
        delta = {"reasoningContent": {"signature": said.signature}}
        events.append(("contentBlockDelta", {"contentBlockIndex": index, "delta": delta}))
        events.append(("contentBlockStop", {"contentBlockIndex": index}))
        index += 1
    if said.text:
        texts = ({"contentBlockIndex": index, "delta": {"text": piece}} for piece in said.text)
        events += [("contentBlockDelta", each) for each in texts]
        events.append(("contentBlockStop", {"contentBlockIndex": index}))
        index += 1
    for call_id, name, arguments in said.calls:
        start = {"toolUse": {"toolUseId": call_id, "name": name}}
        events.append(("contentBlockStart", {"contentBlockIndex": index, "start": start}))
        for cut in range(0, len(arguments), 5):
            delta = {"toolUse": {"input": arguments[cut : cut + 5]}}
            events.append(("contentBlockDelta", {"contentBlockIndex": index, "delta": delta}))
        events.append(("contentBlockStop", {"contentBlockIndex": index}))
        index += 1
    names = {
        "": "tool_use" if said.calls else "end_turn",
        "length": "max_tokens",
        "filtered": "content_filtered",
    }
    events.append(("messageStop", {"stopReason": names.get(said.finish, said.finish)}))
    usage = {
        "inputTokens": said.input_tokens - said.cached_tokens,
        "outputTokens": said.output_tokens,
        "totalTokens": said.input_tokens + said.output_tokens,
        "cacheReadInputTokens": said.cached_tokens,
    }
    events.append(("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}))
    return b"".join(binary_event(name, body) for name, body in events)


def binary_event(name: str, body: dict[str, Any], kind: str = "event") -> bytes:
    """One message of Amazon's event streams."""
    headers = b"".join(
        struct.pack("!B", len(key)) + key.encode() + b"\x07" + struct.pack("!H", len(value)) + value.encode()
        for key, value in (
            (f":{kind}-type", name),
            (":content-type", "application/json"),
            (":message-type", kind),
        )
    )
    payload = json.dumps(body).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    start = prelude + struct.pack("!I", binascii.crc32(prelude)) + headers + payload
    return start + struct.pack("!I", binascii.crc32(start))
