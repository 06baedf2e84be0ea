"""A model of any provider that pydantic-ai knows, behind our Protocol.

Only pydantic-ai's models are used, not its agents: turn, tools and retries are ours.
"""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from handrail.models.model import (
    BlockedCalls,
    CallPart,
    Capabilities,
    EndOfBytes,
    Finished,
    Opaque,
    Part,
    Request,
    StopReason,
    Text,
    Thinking,
    UsagePart,
)
from handrail.models.providers import Connection, RequestTarget
from handrail.models.pydantic_ai.clients import SdkModel, sdk_model
from handrail.models.pydantic_ai.exchange import EVENTS, Exchange
from handrail.models.reading.sanitize import join_surrogates, read_name, read_token_count
from handrail.models.reading.tool_calls import WrittenCallReader, describe_cut_call, read_call
from handrail.models.structured_output import StructuredOutput, WayMemory
from handrail.models.wire.sse import begins_like_events, cut_off, no_answer
from handrail.models.wire.transport import ServerModel
from handrail.protocol.values import StructuredWay, Usage

if TYPE_CHECKING:
    from pydantic_ai.models import StreamedResponse

STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "tool_call": "tool_calls",
    "length": "length",
    "content_filter": "filtered",
}


class PydanticAIModel(ServerModel):
    def __init__(
        self,
        connection: Connection,
        model: str,
        key: str,
        capabilities: Capabilities,
        memory: WayMemory | None = None,
    ) -> None:
        self._sdk: SdkModel = sdk_model(connection, model, key)
        profile = self._sdk.model.profile
        ways: tuple[StructuredWay, ...] = ("prompt",)
        if profile.get("supports_json_schema_output"):
            ways = ("schema", "prompt")
        super().__init__(connection, model, key, capabilities, StructuredOutput(ways, memory))

    def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        tools = {tool.name for tool in request.tools}
        request, asked = self.adapted(request)
        answer = partial(self._answer, request, tools)
        if request.output_schema is None or request.received is not None:
            return answer("prompt", asked=asked)
        return self.by_schema(request.output_schema, partial(answer, asked=asked._replace(structured=True)))

    async def _answer(
        self, request: Request, tools: set[str], way: StructuredWay, asked: RequestTarget
    ) -> AsyncGenerator[Part, None]:
        from handrail.models.pydantic_ai.errors import map_sdk_error, sdk_errors

        exchange = Exchange(self._transport, request, asked, self._sdk.answers)
        reader = _AnswerReader(self.name, tools)
        with self._transport.without_key():
            try:
                async with aclosing(self._events(request, way, exchange, reader)) as parts:
                    async for part in parts:
                        yield part
            except sdk_errors() as error:
                for part in exchange.new_parts():
                    yield part
                raise map_sdk_error(error, exchange, asked, begun=reader.begun) from error
            if not reader.ended:
                if reader.begun or begins_like_events(exchange.head) or self._sdk.answers != EVENTS:
                    raise cut_off(exchange.host)
                raise no_answer(exchange.host, asked.connection, exchange.head)
            yield EndOfBytes()
            for part in reader.last():
                yield part

    async def _events(
        self, request: Request, way: StructuredWay, exchange: Exchange, reader: "_AnswerReader"
    ) -> AsyncGenerator[Part, None]:
        from handrail.models.pydantic_ai import messages

        conversation = messages.to_messages(self.name, request)
        settings = messages.to_settings(request, self._sdk.model.unsupported_settings)
        parameters = messages.to_parameters(request, by_schema=way == "schema")
        async with aclosing(exchange), AsyncExitStack() as stack:
            # Only around what the library does: between two parts, somebody else's code runs.
            with exchange.in_use():
                opening = self._sdk.model.request_stream(conversation, settings, parameters)
                response = await stack.enter_async_context(opening)
                events = aiter(response)
            while True:
                with exchange.in_use():
                    event = await anext(events, None)
                for part in exchange.new_parts():
                    yield part
                if event is None:
                    break
                for part in reader.read(event, response):
                    yield part
            reader.end(response)
            await exchange.drain()


class _AnswerReader:
    """Reads pydantic-ai's events. Calls come only from a whole answer."""

    def __init__(self, name: str, tools: set[str]) -> None:
        self._name = name
        self._written = WrittenCallReader(tools)
        self._usage = Usage()
        self._response: Any = None
        self.begun = False

    @property
    def ended(self) -> bool:
        """The provider said why the answer ended."""
        details = self._response.provider_details or {} if self._response is not None else {}
        return bool(self._response and (self._response.finish_reason or details.get("finish_reason")))

    def read(self, event: Any, response: "StreamedResponse") -> Iterator[Part]:
        self.begun = True
        usage = _usage(response)
        if usage != self._usage:
            self._usage = usage
            yield UsagePart(usage)
        # A FinalResultEvent says that text has begun, not that it has ended.
        piece = event.part if event.event_kind == "part_start" else getattr(event, "delta", None)
        kind = getattr(piece, "part_kind", None) or getattr(piece, "part_delta_kind", None)
        content = getattr(piece, "content_delta", None) or getattr(piece, "content", None)
        if not isinstance(content, str) or not content:
            return
        if kind == "thinking":
            yield Thinking(join_surrogates(content))
        elif kind == "text" and (shown := self._written.feed(join_surrogates(content))):
            yield Text(shown)

    def end(self, response: "StreamedResponse") -> None:
        self._usage = _usage(response)
        self._response = response.get()

    def last(self) -> Iterator[Part]:
        from pydantic_ai.messages import ToolCallPart

        from handrail.models.pydantic_ai.messages import to_return

        if self._usage != Usage():
            yield UsagePart(self._usage)
        reason = STOP_REASONS.get(self._response.finish_reason or "", "cut")
        complete = reason in {"stop", "tool_calls"}
        drafts = [part for part in self._response.parts if isinstance(part, ToolCallPart)]
        rest, written = self._written.end(calls_count=complete and not drafts)
        if rest:
            yield Text(rest)
        if complete:
            if (block := to_return(self._name, self._response)) is not None:
                yield Opaque(block)
            calls = [
                read_call(read_name(each.tool_call_id), each.tool_name, _arguments(each)) for each in drafts
            ]
            calls = calls or list(written)
            reason = "tool_calls" if calls else "stop"
            for call in calls:
                yield CallPart(call)
        elif drafts:
            yield BlockedCalls(tuple(describe_cut_call(each.tool_name, _arguments(each)) for each in drafts))
        yield Finished(reason)


def _arguments(call: Any) -> str:
    return call.args if isinstance(call.args, str) else json.dumps(call.args or {})


def _usage(response: "StreamedResponse") -> Usage:
    usage = response.usage
    return Usage(
        input_tokens=read_token_count(usage.input_tokens),
        output_tokens=read_token_count(usage.output_tokens),
        cache_read_tokens=read_token_count(usage.cache_read_tokens),
        cache_write_tokens=read_token_count(usage.cache_write_tokens),
    )
