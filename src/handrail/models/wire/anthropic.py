"""Anthropic's messages protocol: requests with cache marks, and reading the streamed answer."""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from handrail.models.model import (
    AssistantTurn,
    BlockedCalls,
    CallPart,
    Capabilities,
    Finished,
    Image,
    Message,
    Opaque,
    Part,
    Request,
    StopReason,
    Text,
    Thinking,
    ToolResult,
    UsagePart,
    UserTurn,
)
from handrail.models.providers import Connection
from handrail.models.reading.sanitize import join_surrogates, read_name, read_token_count, returnable_block
from handrail.models.reading.tool_calls import describe_cut_call, read_call
from handrail.models.structured_output import StructuredOutput
from handrail.models.wire.sse import ServerEvent, StreamError
from handrail.models.wire.transport import HttpModel
from handrail.protocol.values import Usage

EVENT_NAMES = {"message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop"}
STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filtered",
}


class MessageReader:
    """Reads the events of one answer. Calls are given only after `message_stop`."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._blocks: dict[int, dict[str, Any]] = {}
        self._usage: dict[str, int] = {}
        self._stop = ""
        self.started = self.finished = False

    def read(self, event: ServerEvent) -> Iterator[Part]:
        data = json.loads(event.data)
        if not isinstance(data, dict):
            raise json.JSONDecodeError("an event that is no object", event.data[:80], 0)
        kind = data.get("type") or event.name
        self.started |= kind in EVENT_NAMES
        match kind:
            case "message_start":
                yield from self._counted(data["message"].get("usage"))
            case "content_block_start":
                self._blocks[data["index"]] = {**data["content_block"], "pieces": []}
                yield from self._piece(data["index"], data["content_block"].get("text", ""), kind="text")
            case "content_block_delta":
                index, delta = data["index"], data["delta"]
                match delta.get("type"):
                    case "text_delta":
                        yield from self._piece(index, delta["text"], kind="text")
                    case "thinking_delta":
                        yield from self._piece(index, delta["thinking"], kind="thinking")
                    case "input_json_delta":
                        self._blocks[index]["pieces"].append(delta["partial_json"])
                    case "signature_delta":
                        self._blocks[index]["signature"] = delta["signature"]
            case "message_delta":
                self._stop = data["delta"].get("stop_reason") or self._stop
                yield from self._counted(data.get("usage"))
            case "message_stop":
                self.finished = True
            case "error":
                raise StreamError(data.get("error") or data)

    def _piece(self, index: int, text: str, *, kind: str) -> Iterator[Part]:
        if text:
            text = join_surrogates(text)
            self._blocks[index]["pieces"].append(text)
            yield Text(text) if kind == "text" else Thinking(text)

    def _counted(self, usage: dict[str, Any] | None) -> Iterator[Part]:
        if not usage:
            return
        self._usage |= {key: read_token_count(value) for key, value in usage.items()}
        read = self._usage.get("cache_read_input_tokens", 0)
        written = self._usage.get("cache_creation_input_tokens", 0)
        fresh, output = self._usage.get("input_tokens", 0), self._usage.get("output_tokens", 0)
        yield UsagePart(Usage(fresh + read + written, output, read, written))

    def end(self) -> Iterator[Part] | None:
        return self._last() if self.finished and self._stop else None

    def _last(self) -> Iterator[Part]:
        reason = STOP_REASONS.get(self._stop, "cut")
        calls, cut = [], []
        order: list[dict[str, Any]] = []
        for index in sorted(self._blocks):
            block = self._blocks[index]
            whole = "".join(block["pieces"])
            match block.get("type"):
                case "text":
                    order.append({"text": len(whole)})
                case "tool_use":
                    calls.append(read_call(read_name(block.get("id")), read_name(block.get("name")), whole))
                    order.append({"call": calls[-1].id})
                    cut.append(describe_cut_call(calls[-1].name, whole))
                case "thinking":
                    thought = {"type": "thinking", "thinking": whole, "signature": block.get("signature", "")}
                    order.append({"block": thought})
                case "redacted_thinking":
                    order.append({"block": {"type": "redacted_thinking", "data": block.get("data", "")}})
        complete = reason in {"stop", "tool_calls"}
        if complete and any("block" in each for each in order):
            # What cannot be stored is left out: the turn can be sent back without its thinking.
            kept = returnable_block({"anthropic": self._model, "order": order})
            if kept is not None:
                yield Opaque(kept)
        for call in calls if complete else ():
            yield CallPart(call)
        if cut and not complete:
            yield BlockedCalls(tuple(cut))
        yield Finished(("tool_calls" if calls else "stop") if complete else reason)


CACHE_MARK = {"type": "ephemeral"}
MARKED_MESSAGES = 2
"""With the last tool and the system prompt these are the four cache marks that a request may have."""

NO_SAMPLING = re.compile(r"claude-(opus-4-[7-9]|[a-z]+-[5-9])")
ALWAYS_THINKS = re.compile(r"claude-[a-z]+-[5-9]")
"""Models that think by default, but show it only on request."""
BINDS_THINKING = re.compile(r"claude-[a-z]+-(5-[1-9]|[6-9])(?!\d{6})")
"""Models that refuse their own earlier thinking if anything before it changed, as compaction does."""
BINDING_BETA = "thinking-binding-controls-2026-08-01"


class AnthropicModel(HttpModel):
    path = "/v1/messages"

    def __init__(
        self,
        connection: Connection,
        model: str,
        key: str,
        capabilities: Capabilities,
        structured: StructuredOutput | None = None,
    ) -> None:
        if BINDS_THINKING.match(model):
            beta = ",".join(filter(None, (connection.headers.get("anthropic-beta"), BINDING_BETA)))
            connection = replace(connection, headers={**connection.headers, "anthropic-beta": beta})
        super().__init__(connection, model, key, capabilities, structured)

    def body(self, request: Request) -> dict[str, Any]:
        return request_body(self._model, request)

    def reader(self, tools: set[str]) -> MessageReader:
        return MessageReader(self._model)


def request_body(model: str, request: Request) -> dict[str, Any]:
    """The JSON that is sent, with cache marks after everything that stays the same."""
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
    if ALWAYS_THINKS.match(model):
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
        if BINDS_THINKING.match(model):
            body["thinking"]["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
    if request.effort:
        body["output_config"] = {"effort": request.effort}
    if request.output_schema is not None:
        wanted = {"type": "json_schema", "schema": closed_schema(request.output_schema)}
        body["output_config"] = {**body.get("output_config", {}), "format": wanted}
    return body


def _messages(model: str, messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Messages that alternate between user and assistant: neighbours of one side become one."""
    result: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if isinstance(message, AssistantTurn) else "user"
        blocks = _blocks(model, message)
        if blocks and result and result[-1]["role"] == role:
            result[-1]["content"].extend(blocks)
        elif blocks:
            result.append({"role": role, "content": blocks})
    for message_sent in [each for each in result if each["role"] == "user"][-MARKED_MESSAGES:]:
        message_sent["content"][-1]["cache_control"] = CACHE_MARK
    return result


def _blocks(model: str, message: Message) -> list[dict[str, Any]]:
    match message:
        case UserTurn(text, images):
            return [*map(_image_block, images), *_text_block(text)]
        case AssistantTurn(text):
            return _original_blocks(model, message) or [*_text_block(text), *_call_blocks(message).values()]
        case ToolResult():
            content: str | list[dict[str, Any]] = message.content
            if message.images:
                content = [*_text_block(message.content), *map(_image_block, message.images)]
            result = {"type": "tool_result", "tool_use_id": message.call_id, "content": content}
            return [result | ({"is_error": True} if message.is_error else {})]


def _image_block(image: Image) -> dict[str, Any]:
    data = base64.b64encode(image.data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": data}}


def _text_block(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _call_blocks(turn: AssistantTurn) -> dict[str, dict[str, Any]]:
    return {
        call.id: {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
        for call in turn.calls
    }


def _original_blocks(model: str, turn: AssistantTurn) -> list[dict[str, Any]]:
    """The blocks of the turn as this model sent them; empty if another model did, or the turn changed."""
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


def closed_schema(schema: Any) -> Any:
    """The schema in the form that Anthropic takes: closed objects, no limits on numbers and lengths."""
    if isinstance(schema, list):
        return [closed_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    dropped = {"minimum", "maximum", "minLength", "maxLength", "multipleOf", "maxItems", "minItems"}
    result = {
        key: {name: closed_schema(each) for name, each in value.items()}
        if key in {"properties", "$defs"}
        else closed_schema(value)
        for key, value in schema.items()
        if key not in dropped
    }
    if schema.get("type") == "object":
        result["additionalProperties"] = False
    return result
