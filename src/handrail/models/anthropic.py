"""Anthropic's messages protocol, with cache marks, and thinking given back exactly as it came."""

import base64
import re
from collections.abc import AsyncGenerator
from typing import Any

from handrail.models.anthropic_answer import MessageReader
from handrail.models.base import (
    AssistantTurn,
    Capabilities,
    Image,
    Message,
    Part,
    Request,
    ToolResult,
    UserTurn,
)
from handrail.models.connections import Asked, Connection
from handrail.models.wire import Wire
from handrail.models.written_tools import with_written_tools

CACHE_MARK = {"type": "ephemeral"}
MARKED_MESSAGES = 2
"""With the last tool and the system text this makes the four marks that a request may carry."""

NO_SAMPLING = re.compile(r"claude-(opus-4-[7-9]|[a-z]+-[5-9])")
THINKS_BY_ITSELF = re.compile(r"claude-[a-z]+-[5-9]")
"""Models that think unless told otherwise, and keep silent about it unless asked to show it."""
BINDS_THINKING = re.compile(r"claude-[a-z]+-(5-[1-9]|[6-9])(?!\d{6})")
"""Models that refuse their own earlier thinking once anything before it has changed (compaction does)."""
BINDING_BETA = "thinking-binding-controls-2026-08-01"


class AnthropicModel:
    """A model behind the messages protocol."""

    def __init__(self, connection: Connection, model: str, key: str, capabilities: Capabilities) -> None:
        if BINDS_THINKING.match(model):
            beta = ",".join(filter(None, (connection.headers.get("anthropic-beta"), BINDING_BETA)))
            connection = connection.changed(headers={**connection.headers, "anthropic-beta": beta})
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
        request = request.changed(effort=self._capabilities.effort_for(request))
        if not self._capabilities.native_tools:
            request = with_written_tools(request)
        name, key_env, local = self._connection.name, self._connection.key_env, self._connection.local
        asked = Asked(name, self._model, key_env, local, effort=request.effort is not None)
        body = request_body(self._model, request)
        return self._wire.answer(
            "/v1/messages", body, request.deadlines, lambda: MessageReader(self._model), asked
        )

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
    if request.effort:
        body["output_config"] = {"effort": request.effort}
    if request.output_schema is not None:
        wanted = {"type": "json_schema", "schema": closed(request.output_schema)}
        body["output_config"] = {**body.get("output_config", {}), "format": wanted}
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
            return [*map(_image_block, images), *_text_block(text)]
        case AssistantTurn():
            return _restored(model, message) or [*_text_block(message.text), *_call_blocks(message).values()]
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
