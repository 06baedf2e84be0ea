"""Anthropic's messages protocol, with cache marks, and thinking given back exactly as it came."""

import base64
import json
import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from typing import Any

from handrail.models.base import (
    AssistantTurn,
    CallPart,
    Capabilities,
    Finish,
    Finished,
    Message,
    Opaque,
    Part,
    Request,
    Text,
    Thinking,
    ToolResult,
    UsagePart,
    UserTurn,
)
from handrail.models.connections import Connection
from handrail.models.reading import joined, read_call
from handrail.models.refusals import Asked
from handrail.models.sse import ServerEvent
from handrail.models.wire import StreamRefused, Wire
from handrail.models.written_tools import with_written_tools
from handrail.protocol.values import Usage

CACHE_MARK = {"type": "ephemeral"}
MARKED_MESSAGES = 2
"""With the last tool and the system text this makes the four marks that a request may carry."""

NO_SAMPLING = re.compile(r"claude-(opus-4-[7-9]|[a-z]+-[5-9])")
THINKS_BY_ITSELF = re.compile(r"claude-[a-z]+-[5-9]")
"""Models that think unless told otherwise, and keep silent about it unless asked to show it."""
BINDS_THINKING = re.compile(r"claude-[a-z]+-(5-[1-9]|[6-9])(?!\d{6})")
"""Models that refuse their own earlier thinking once anything before it has changed (compaction does)."""
BINDING_BETA = "thinking-binding-controls-2026-08-01"

FINISHES: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filtered",
}


class AnthropicModel:
    """A model behind the messages protocol."""

    def __init__(self, connection: Connection, model: str, key: str, capabilities: Capabilities) -> None:
        if BINDS_THINKING.match(model):
            beta = ",".join(filter(None, (connection.headers.get("anthropic-beta"), BINDING_BETA)))
            connection = replace(connection, headers={**connection.headers, "anthropic-beta": beta})
        self._connection = connection
        self._model = model
        self._capabilities = capabilities
        self._wire = Wire(connection, key)

    @property
    def name(self) -> str:
        return f"{self._connection.name}/{self._model}"

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        if not self._capabilities.native_tools:
            request = with_written_tools(request)
        asked = Asked(self._connection.name, self._model, self._connection.key_env, self._connection.local)
        body = request_body(self._model, request)
        return self._wire.answer("/v1/messages", body, request.deadlines, MessageReader(self._model), asked)

    async def aclose(self) -> None:
        await self._wire.aclose()


def request_body(model: str, request: Request) -> dict[str, Any]:
    """The JSON that is sent, with cache marks at the end of everything that stays."""
    body: dict[str, Any] = {"model": model, "max_tokens": request.max_output_tokens, "stream": True}
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
            for tool in request.tools
        ]
        body["tools"][-1]["cache_control"] = CACHE_MARK
    if request.system:
        body["system"] = [{"type": "text", "text": request.system, "cache_control": CACHE_MARK}]
    body["messages"] = _messages(model, request.messages)
    if request.temperature is not None and not NO_SAMPLING.match(model):
        body["temperature"] = request.temperature
    if THINKS_BY_ITSELF.match(model):
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
        if BINDS_THINKING.match(model):
            body["thinking"]["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
    if request.output_schema is not None:
        wanted = {"type": "json_schema", "schema": closed(request.output_schema)}
        body["output_config"] = {"format": wanted}
    return body


def _messages(model: str, messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Turns that alternate: what follows one another on the same side becomes one message."""
    result: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if isinstance(message, AssistantTurn) else "user"
        blocks = _blocks(model, message)
        if not blocks:
            continue
        if result and result[-1]["role"] == role:
            result[-1]["content"].extend(blocks)
        else:
            result.append({"role": role, "content": blocks})
    for message_sent in [each for each in result if each["role"] == "user"][-MARKED_MESSAGES:]:
        message_sent["content"][-1]["cache_control"] = CACHE_MARK
    return result


def _blocks(model: str, message: Message) -> list[dict[str, Any]]:
    match message:
        case UserTurn(text, images):
            pictures = [
                {
                    "type": "image",
                    "source": {
                        "type": "base64",
                        "media_type": image.media_type,
                        "data": base64.b64encode(image.data).decode(),
                    },
                }
                for image in images
            ]
            return [*pictures, *_text_block(text)]
        case AssistantTurn():
            return _restored(model, message) or [*_text_block(message.text), *_call_blocks(message).values()]
        case ToolResult():
            result = {"type": "tool_result", "tool_use_id": message.call_id, "content": message.content}
            return [result | ({"is_error": True} if message.is_error else {})]


def _text_block(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _call_blocks(turn: AssistantTurn) -> dict[str, dict[str, Any]]:
    return {
        call.id: {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
        for call in turn.calls
    }


def _restored(model: str, turn: AssistantTurn) -> list[dict[str, Any]]:
    """The turn block by block as this model gave it; empty when it is not this model's or was changed."""
    calls = _call_blocks(turn)
    for opaque in turn.opaque:
        if opaque.get("anthropic") != model:
            continue
        blocks: list[dict[str, Any]] = []
        at = 0
        for each in opaque["order"]:
            if "text" in each:
                blocks += _text_block(turn.text[at : at + each["text"]])
                at += each["text"]
            elif "call" in each:
                blocks.append(calls.pop(each["call"], {}))
            else:
                blocks.append(each["block"])
        if at == len(turn.text) and not calls and all(blocks):
            return blocks
    return []


def closed(schema: Any) -> Any:
    """The schema in the form that is taken here: objects closed, limits on numbers and lengths left out."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    dropped = {"minimum", "maximum", "minLength", "maxLength", "multipleOf", "maxItems", "minItems"}
    result = {
        key: {name: closed(each) for name, each in value.items()}
        if key in {"properties", "$defs"}
        else closed(value)
        for key, value in schema.items()
        if key not in dropped
    }
    if schema.get("type") == "object":
        result["additionalProperties"] = False
    return result


class MessageReader:
    """Reads the events of one answer. Calls are given only after `message_stop`."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._blocks: dict[int, dict[str, Any]] = {}
        self._usage: dict[str, int] = {}
        self._stop = ""
        self._done = False

    @property
    def finished(self) -> bool:
        return self._done

    def read(self, event: ServerEvent) -> Iterator[Part]:
        data = json.loads(event.data)
        if not isinstance(data, dict):
            raise json.JSONDecodeError("an event that is no object", event.data[:80], 0)
        match data.get("type") or event.name:
            case "message_start":
                yield from self._counted(data["message"].get("usage"))
            case "content_block_start":
                self._blocks[data["index"]] = {"pieces": [], **data["content_block"]}
                yield from self._piece(data["index"], data["content_block"].get("text", ""), kind="text")
            case "content_block_delta":
                yield from self._delta(data["index"], data["delta"])
            case "message_delta":
                self._stop = data["delta"].get("stop_reason") or self._stop
                yield from self._counted(data.get("usage"))
            case "message_stop":
                self._done = True
            case "error":
                raise StreamRefused(data.get("error") or data)

    def _delta(self, index: int, delta: dict[str, Any]) -> Iterator[Part]:
        match delta.get("type"):
            case "text_delta":
                yield from self._piece(index, delta["text"], kind="text")
            case "thinking_delta":
                yield from self._piece(index, delta["thinking"], kind="thinking")
            case "input_json_delta":
                self._blocks[index]["pieces"].append(delta["partial_json"])
            case "signature_delta":
                self._blocks[index]["signature"] = delta["signature"]

    def _piece(self, index: int, text: str, *, kind: str) -> Iterator[Part]:
        if text:
            text = joined(text)
            self._blocks[index]["pieces"].append(text)
            yield Text(text) if kind == "text" else Thinking(text)

    def _counted(self, usage: dict[str, Any] | None) -> Iterator[Part]:
        if not usage:
            return
        self._usage |= {key: value for key, value in usage.items() if isinstance(value, int)}
        read = self._usage.get("cache_read_input_tokens", 0)
        written = self._usage.get("cache_creation_input_tokens", 0)
        yield UsagePart(
            Usage(
                input_tokens=self._usage.get("input_tokens", 0) + read + written,
                output_tokens=self._usage.get("output_tokens", 0),
                cache_read_tokens=read,
                cache_write_tokens=written,
            )
        )

    def end(self) -> Iterator[Part] | None:
        return self._last() if self._done and self._stop else None

    def _last(self) -> Iterator[Part]:
        reason = FINISHES.get(self._stop, "stop")
        calls = []
        order: list[dict[str, Any]] = []
        for index in sorted(self._blocks):
            block = self._blocks[index]
            whole = "".join(block["pieces"])
            match block.get("type"):
                case "text":
                    order.append({"text": len(whole)})
                case "tool_use":
                    calls.append(read_call(block.get("id", ""), block.get("name", ""), whole))
                    order.append({"call": calls[-1].id})
                case "thinking":
                    kept = {"type": "thinking", "thinking": whole, "signature": block.get("signature", "")}
                    order.append({"block": kept})
                case "redacted_thinking":
                    order.append({"block": {"type": "redacted_thinking", "data": block.get("data", "")}})
        complete = reason in {"stop", "tool_calls"}
        if complete and any("block" in each for each in order):
            yield Opaque({"anthropic": self._model, "order": order})
        for call in calls if complete else ():
            yield CallPart(call)
        yield Finished(("tool_calls" if calls else "stop") if complete else reason)
