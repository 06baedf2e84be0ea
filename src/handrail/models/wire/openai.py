"""OpenAI-compatible chat completions: OpenAI, xAI, OpenRouter, Gemini, Azure, local servers.

Prompt caching needs nothing here: these servers cache by stable prefix.
"""

import base64
import json
import re
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from handrail.models.model import AssistantTurn, Image, Message, Request, ToolResult, UserTurn
from handrail.models.providers import Connection
from handrail.models.wire.transport import HttpModel
from handrail.protocol.values import ToolCall

if TYPE_CHECKING:
    from handrail.models.wire.sse import AnswerReader

NO_SAMPLING = re.compile(r"(.*/)?(o\d|gpt-[5-9])")
"""Reasoning models that refuse a temperature."""

NO_REASONING_WITH_TOOLS = re.compile(r"(.*/)?gpt-(5\.[6-9]|6-(sol|luna)|6\.\d-(terra|luna))")
"""Models whose chat completions take function tools only without reasoning."""

RESULT_IMAGES = "[The images of the results above, in order.]"


class OpenAIModel(HttpModel):
    path = "/chat/completions"
    json_mode = MappingProxyType({"response_format": {"type": "json_object"}})

    def body(self, request: Request) -> dict[str, Any]:
        return request_body(self._connection, self._model, request)

    def reader(self, tools: set[str]) -> "AnswerReader":
        from handrail.models.wire.openai_stream import ChatReader

        return ChatReader(self.name, tools)


def request_body(connection: Connection, model: str, request: Request) -> dict[str, Any]:
    """The JSON that is sent. Stable parts come first, so that equal prefixes stay equal bytes."""
    body: dict[str, Any] = {"model": model}
    if request.tools:
        functions = (
            {"name": tool.name, "description": tool.description, "parameters": tool.schema}
            for tool in request.tools
        )
        body["tools"] = [{"type": "function", "function": each} for each in functions]
    system = [{"role": "system", "content": request.system}] if request.system else []
    body["messages"] = [*system, *_messages(f"{connection.name}/{model}", request.messages)]
    if request.prefill:
        body["messages"].append({"role": "assistant", "content": request.prefill})
    if request.stop:
        body["stop"] = list(request.stop)
    if request.alternatives:
        body |= {"logprobs": True, "top_logprobs": request.alternatives}
    body[connection.output_limit] = request.max_output_tokens
    if request.temperature is not None and not NO_SAMPLING.match(model):
        body["temperature"] = request.temperature
    if request.tools and NO_REASONING_WITH_TOOLS.match(model):
        body["reasoning_effort"] = "none"
    elif request.effort:
        body["reasoning_effort"] = request.effort
    if request.output_schema is not None:
        wanted = {"name": "answer", "schema": request.output_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": wanted}
    body["stream"] = True
    if connection.stream_usage:
        body["stream_options"] = {"include_usage": True}
    if connection.prompt_progress:
        body["return_progress"] = True
    return body


def _messages(name: str, messages: tuple[Message, ...]) -> Iterator[dict[str, Any]]:
    """The messages in order. Tool results hold only text here, so their images follow the last result."""
    images: list[Image] = []
    for message in messages:
        if images and not isinstance(message, ToolResult):
            yield _user(RESULT_IMAGES, images)
            images = []
        yield _message(name, message)
        images += message.images if isinstance(message, ToolResult) else ()
    if images:
        yield _user(RESULT_IMAGES, images)


def _user(text: str, images: Sequence[Image]) -> dict[str, Any]:
    if not images:
        return {"role": "user", "content": text}
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text.strip() else []
    for image in images:
        url = f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"
        content.append({"type": "image_url", "image_url": {"url": url}})
    return {"role": "user", "content": content}


def _message(name: str, message: Message) -> dict[str, Any]:
    match message:
        case UserTurn(text, images):
            return _user(text, images)
        case AssistantTurn(text, calls, opaque):
            turn: dict[str, Any] = {"role": "assistant", "content": text}
            if calls:
                # With what this model wants back: its reasoning, and marks on its calls.
                kept: dict[str, Any] = next((each for each in opaque if each.get("openai") == name), {})
                marks = kept.get("calls", {})
                turn |= kept.get("message", {})
                turn["tool_calls"] = [_call(call) | marks.get(call.id, {}) for call in calls]
            return turn
        case ToolResult():
            return {"role": "tool", "tool_call_id": message.call_id, "content": message.content}


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
