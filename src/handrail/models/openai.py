"""OpenAI-compatible chat completions: OpenAI, xAI, OpenRouter, Gemini, Azure, and the local servers.

Prompt caching needs nothing here: these servers cache by stable prefix.
"""

import base64
import json
import re
from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from handrail.models.base import (
    AssistantTurn,
    CallPart,
    Capabilities,
    Finish,
    Finished,
    Message,
    Part,
    Request,
    Text,
    Thinking,
    ToolResult,
    ToolSpec,
    UsagePart,
    UserTurn,
)
from handrail.models.connections import Connection
from handrail.models.reading import TextReader, calls_in_text, joined, read_call
from handrail.models.refusals import Asked
from handrail.models.sse import ServerEvent
from handrail.models.wire import StreamRefused, Wire
from handrail.models.written_tools import with_written_tools
from handrail.protocol.values import ToolCall, Usage

NO_SAMPLING = re.compile(r"(.*/)?(o\d|gpt-[5-9])")
"""Reasoning models that refuse a temperature."""

NO_REASONING_WITH_TOOLS = re.compile(r"(.*/)?gpt-(5\.[6-9]|6-(sol|luna)|6\.\d-(terra|luna))")
"""Models whose chat completions take function tools only without reasoning."""

FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "filtered",
}


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
        if not self._capabilities.native_tools:
            request = with_written_tools(request)
        asked = Asked(self._connection.name, self._model, self._connection.key_env, self._connection.local)
        body = request_body(self._connection, self._model, request)
        return self._wire.answer("/chat/completions", body, request.deadlines, ChatReader(names), asked)

    async def aclose(self) -> None:
        await self._wire.aclose()


def request_body(connection: Connection, model: str, request: Request) -> dict[str, Any]:
    """The JSON that is sent. Stable parts come first, so that equal prefixes stay equal bytes."""
    body: dict[str, Any] = {"model": model}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    system = [{"role": "system", "content": request.system}] if request.system else []
    body["messages"] = [*system, *(_message(each) for each in request.messages)]
    body[connection.output_limit] = request.max_output_tokens
    if request.temperature is not None and not NO_SAMPLING.match(model):
        body["temperature"] = request.temperature
    if request.tools and NO_REASONING_WITH_TOOLS.match(model):
        body["reasoning_effort"] = "none"
    if request.output_schema is not None:
        wanted = {"name": "answer", "schema": request.output_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": wanted}
    body["stream"] = True
    if connection.stream_usage:
        body["stream_options"] = {"include_usage": True}
    return body


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}


def _message(message: Message) -> dict[str, Any]:
    match message:
        case UserTurn(text, images) if images:
            pictures = [
                {
                    "type": "image_url",
                    "image_url": {
                        "url": f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"
                    },
                }
                for image in images
            ]
            return {"role": "user", "content": [{"type": "text", "text": text}, *pictures]}
        case UserTurn(text):
            return {"role": "user", "content": text}
        case AssistantTurn(text, calls):
            turn: dict[str, Any] = {"role": "assistant", "content": text}
            if calls:
                turn["tool_calls"] = [_call(call) for call in calls]
            return turn
        case ToolResult():
            return {"role": "tool", "tool_call_id": message.call_id, "content": message.content}


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


@dataclass(slots=True)
class _Draft:
    """A call as its pieces come."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class ChatReader:
    """Reads the chunks of one answer. Calls are given only after finish reason and end of stream."""

    def __init__(self, tools: set[str]) -> None:
        self._tools = tools
        self._text = TextReader()
        self._written: list[str] = []
        self._drafts: dict[int, _Draft] = {}
        self._finish: str = ""
        self._done = False

    @property
    def finished(self) -> bool:
        return self._done

    def read(self, event: ServerEvent) -> Iterator[Part]:
        if event.data.strip() == "[DONE]":
            self._done = True
            return
        chunk = json.loads(event.data)
        if not isinstance(chunk, dict):
            raise json.JSONDecodeError("a chunk that is no object", event.data[:80], 0)
        if chunk.get("error") or event.name == "error":
            raise StreamRefused(chunk.get("error") or chunk)
        choices = chunk.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            yield from self._choice(choices[0])
        if isinstance(chunk.get("usage"), dict):
            yield UsagePart(read_usage(chunk["usage"]))

    def _choice(self, choice: dict[str, Any]) -> Iterator[Part]:
        delta = choice.get("delta")
        if isinstance(delta, dict):
            for key in ("reasoning_content", "reasoning"):
                if isinstance(delta.get(key), str) and delta[key]:
                    yield Thinking(joined(delta[key]))
                    break
            for key in ("content", "refusal"):
                if isinstance(delta.get(key), str) and delta[key]:
                    yield from self._shown(self._text.feed(delta[key]))
            for piece in delta.get("tool_calls") or ():
                self._draft(piece)
        if choice.get("finish_reason"):
            self._finish = str(choice["finish_reason"])
            if self._finish == "error":
                raise StreamRefused(choice.get("error") or {"message": "the provider broke off"})

    def _shown(self, parts: Iterable[Text | Thinking]) -> Iterator[Part]:
        for part in parts:
            if isinstance(part, Text):
                self._written.append(part.text)
            yield part

    def _draft(self, piece: dict[str, Any]) -> None:
        index = piece.get("index")
        call_id = piece.get("id") or ""
        if not isinstance(index, int):
            index = len(self._drafts) if call_id or not self._drafts else max(self._drafts)
        elif call_id and index in self._drafts and self._drafts[index].id not in {"", call_id}:
            # Some servers number every call 0 and tell them apart by id alone.
            index = max(self._drafts) + 1
        draft = self._drafts.setdefault(index, _Draft())
        function = piece.get("function") or {}
        draft.id = draft.id or call_id
        draft.name = draft.name or function.get("name") or ""
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments)
        draft.arguments.append(arguments or "")

    def end(self) -> Iterator[Part] | None:
        return self._last() if self._finish else None

    def _last(self) -> Iterator[Part]:
        yield from self._shown(self._text.end())
        reason = FINISHES.get(self._finish, "stop")
        calls: list[ToolCall] = []
        if reason in {"stop", "tool_calls"}:
            drafts = (self._drafts[index] for index in sorted(self._drafts))
            calls = [read_call(draft.id, draft.name, "".join(draft.arguments)) for draft in drafts]
            calls = calls or list(calls_in_text("".join(self._written), self._tools))
            reason = "tool_calls" if calls else "stop"
        for call in calls:
            yield CallPart(call)
        yield Finished(reason)


def read_usage(usage: dict[str, Any]) -> Usage:
    """Tokens as counted. Where reasoning is left out of the output count, the total still has it."""
    details = usage.get("prompt_tokens_details") or {}
    given = _count(usage, "prompt_tokens")
    return Usage(
        input_tokens=given,
        output_tokens=max(_count(usage, "completion_tokens"), _count(usage, "total_tokens") - given),
        cache_read_tokens=_count(details, "cached_tokens"),
        cache_write_tokens=_count(details, "cache_write_tokens"),
    )


def _count(values: dict[str, Any], key: str) -> int:
    value = values.get(key)
    return value if isinstance(value, int) and value > 0 else 0
