"""OpenAI-compatible chat completions: OpenAI, xAI, OpenRouter, Gemini, Azure, and the local servers.

Prompt caching needs nothing here: these servers cache by stable prefix.
"""

import base64
import json
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from handrail.models.base import (
    AssistantTurn,
    Capabilities,
    Image,
    Message,
    Part,
    Request,
    ToolResult,
    ToolSpec,
    UserTurn,
)
from handrail.models.connections import Asked, Connection
from handrail.models.wire import Wire
from handrail.protocol.values import ToolCall

if TYPE_CHECKING:
    from handrail.models.incoming import Reader

NO_SAMPLING = re.compile(r"(.*/)?(o\d|gpt-[5-9])")
"""Reasoning models that refuse a temperature."""

NO_REASONING_WITH_TOOLS = re.compile(r"(.*/)?gpt-(5\.[6-9]|6-(sol|luna)|6\.\d-(terra|luna))")
"""Models whose chat completions take function tools only without reasoning."""

RESULT_IMAGES = "[The pictures of the results above, in their order.]"


class OpenAIModel:
    """A model behind the chat completions protocol."""

    def __init__(self, connection: Connection, model: str, key: str, capabilities: Capabilities) -> None:
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
        names = {tool.name for tool in request.tools}
        effort = self._capabilities.effort_for(request)
        if not self._capabilities.native_tools:
            from handrail.models.written_tools import with_written_tools

            request = with_written_tools(request)
        request = request.changed(effort=effort)
        name, key_env, local = self._connection.name, self._connection.key_env, self._connection.local
        asked = Asked(name, self._model, key_env, local, effort=request.effort is not None)
        body = request_body(self._connection, self._model, request)

        def reader() -> "Reader":
            from handrail.models.openai_answer import ChatReader

            return ChatReader(self.name, names)

        return self._wire.answer("/chat/completions", body, request.deadlines, reader, asked)

    async def aclose(self) -> None:
        await self._wire.aclose()


def request_body(connection: Connection, model: str, request: Request) -> dict[str, Any]:
    """The JSON that is sent. Stable parts come first, so that equal prefixes stay equal bytes."""
    body: dict[str, Any] = {"model": model}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    system = [{"role": "system", "content": request.system}] if request.system else []
    name = f"{connection.name}/{model}"
    body["messages"] = [*system, *_messages(name, request.messages)]
    if request.begun:
        body["messages"].append({"role": "assistant", "content": request.begun})
    if request.stop:
        body["stop"] = list(request.stop)
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


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}


def _messages(name: str, messages: tuple[Message, ...]) -> Iterator[dict[str, Any]]:
    """The messages in order. A result takes only text here: its images follow when all results are told."""
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
    words = [{"type": "text", "text": text}] if text.strip() else []
    return {"role": "user", "content": [*words, *map(_image, images)]}


def _image(image: Image) -> dict[str, Any]:
    data = base64.b64encode(image.data).decode()
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{data}"}}


def _message(name: str, message: Message) -> dict[str, Any]:
    match message:
        case UserTurn(text, images):
            return _user(text, images)
        case AssistantTurn():
            return _assistant(name, message)
        case ToolResult():
            return {"role": "tool", "tool_call_id": message.call_id, "content": message.content}


def _assistant(name: str, turn: AssistantTurn) -> dict[str, Any]:
    """A turn with what this very model wants back: its reasoning, and marks on its calls."""
    kept: dict[str, Any] = next((each for each in turn.opaque if each.get("openai") == name), {})
    message: dict[str, Any] = {"role": "assistant", "content": turn.text}
    if turn.calls:
        marks = kept.get("calls", {})
        message |= kept.get("message", {})
        message["tool_calls"] = [_call(call) | marks.get(call.id, {}) for call in turn.calls]
    return message


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
