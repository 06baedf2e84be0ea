"""Reads an answer that streams as OpenAI chat completion chunks."""

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, field

from handrail.models.model import (
    Alternatives,
    BlockedCalls,
    CallPart,
    Finished,
    Opaque,
    Part,
    Progress,
    StopReason,
    Text,
    Thinking,
    UsagePart,
)
from handrail.models.reading.collector import ThinkTagSplitter
from handrail.models.reading.sanitize import join_surrogates, read_name, read_token_count, returnable_block
from handrail.models.reading.tool_calls import WrittenCallReader, describe_cut_call, read_call
from handrail.models.wire.sse import ServerEvent, StreamError
from handrail.protocol.errors import GiveUp
from handrail.protocol.values import ToolCall, Usage

FINISH_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "end_turn": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "filtered",
}


class _PartialCall(Struct):
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    mark: dict[str, Any] = field(default_factory=dict)
    """Sent back with the call, such as Gemini's signature of its thinking."""


class ChatReader:
    """Reads the chunks of one answer. Calls come only after finish reason and end of stream."""

    def __init__(self, name: str, tools: set[str]) -> None:
        self._name = name
        self._reasoning: dict[str, list[str]] = {}
        self._details: dict[tuple[Any, Any], dict[str, Any]] = {}
        self._text = ThinkTagSplitter()
        self._written = WrittenCallReader(tools)
        self._drafts: dict[int, _PartialCall] = {}
        self._finish: str = ""
        self.started = self.finished = False

    def read(self, event: ServerEvent) -> Iterator[Part]:
        if event.data.strip() == "[DONE]":
            self.started = self.finished = True
            return
        chunk = json.loads(event.data)
        if not isinstance(chunk, dict):
            raise json.JSONDecodeError("a chunk that is no object", event.data[:80], 0)
        if chunk.get("error") or event.name == "error":
            raise StreamError(chunk.get("error") or chunk)
        choices = chunk.get("choices")
        self.started |= isinstance(choices, list)
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            yield from self._choice(choices[0])
        if isinstance(chunk.get("usage"), dict):
            yield UsagePart(read_usage(chunk["usage"]))
        if isinstance(progress := chunk.get("prompt_progress"), dict):
            cached = _count(progress, "cache")  # what the server need not read
            done, total = _count(progress, "processed") - cached, _count(progress, "total") - cached
            yield Progress("reading", max(0, done), max(0, total))

    def _choice(self, choice: dict[str, Any]) -> Iterator[Part]:
        delta = choice.get("delta")
        if isinstance(delta, dict):
            for key in ("reasoning_content", "reasoning"):
                if isinstance(delta.get(key), str) and delta[key]:
                    self._reasoning.setdefault(key, []).append(delta[key])
                    yield Thinking(join_surrogates(delta[key]))
                    break
            for piece in delta.get("reasoning_details") or ():
                whole = self._details.setdefault((piece.get("index"), piece.get("type")), {})
                for key, value in piece.items():
                    if key in {"text", "summary", "data"} and isinstance(value, str):
                        whole[key] = whole.get(key, "") + value
                    elif value is not None:
                        whole[key] = value
            for key in ("content", "refusal"):
                if isinstance(delta.get(key), str) and delta[key]:
                    yield from self._shown(self._text.feed(delta[key]))
            for piece in delta.get("tool_calls") or ():
                self._draft(piece)
        if options := _alternatives(choice.get("logprobs")):
            yield Alternatives(options)
        if choice.get("finish_reason"):
            self._finish = str(choice["finish_reason"])
            if self._finish == "error":
                raise StreamError(choice.get("error") or {"message": "the provider broke off"})

    def _shown(self, parts: Iterable[Text | Thinking]) -> Iterator[Part]:
        for part in parts:
            if isinstance(part, Thinking):
                yield part
            elif shown := self._written.feed(part.text):
                yield Text(shown)

    def _draft(self, piece: dict[str, Any]) -> None:
        index = piece.get("index")
        call_id = read_name(piece.get("id"))
        if not isinstance(index, int):
            index = len(self._drafts) if call_id or not self._drafts else max(self._drafts)
        elif call_id and index in self._drafts and self._drafts[index].id not in {"", call_id}:
            # Some servers number every call 0 and tell them apart by id alone.
            index = max(self._drafts) + 1
        draft = self._drafts.setdefault(index, _PartialCall())
        function = piece.get("function") or {}
        draft.id = draft.id or call_id
        draft.name = draft.name or read_name(function.get("name"))
        if piece.get("extra_content"):
            mark = returnable_block(piece["extra_content"])
            if mark is None:
                raise GiveUp("The signature of a call cannot be stored. Choose another model with --model.")
            draft.mark = {"extra_content": mark}
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments)
        draft.arguments.append(arguments or "")

    def end(self) -> Iterator[Part] | None:
        return self._last() if self._finish else None

    def _last(self) -> Iterator[Part]:
        yield from self._shown(self._text.end())
        reason = FINISH_REASONS.get(self._finish.lower(), "cut")
        complete = reason in {"stop", "tool_calls"}
        rest, written = self._written.end(calls_count=complete and not self._drafts)
        if rest:
            yield Text(rest)
        drafts = [self._drafts[index] for index in sorted(self._drafts)]
        if complete:
            calls = [read_call(draft.id, draft.name, "".join(draft.arguments)) for draft in drafts]
            yield from self._wanted_back(calls, drafts)
            calls = calls or list(written)
            reason = "tool_calls" if calls else "stop"
            for call in calls:
                yield CallPart(call)
        elif drafts:
            cut = (describe_cut_call(draft.name, "".join(draft.arguments)) for draft in drafts)
            yield BlockedCalls(tuple(cut))
        yield Finished(reason)

    def _wanted_back(self, calls: list[ToolCall], drafts: list[_PartialCall]) -> Iterator[Part]:
        """Reasoning that led to calls: several providers refuse the next request without it."""
        marks = {call.id: draft.mark for call, draft in zip(calls, drafts, strict=True) if draft.mark}
        message: dict[str, Any] = {
            key: join_surrogates("".join(each)) for key, each in self._reasoning.items()
        }
        # What cannot be stored is left out: calls can be sent back without their reasoning.
        if self._details and (details := returnable_block(list(self._details.values()))) is not None:
            message = {"reasoning_details": details}
        if calls and (marks or message):
            yield Opaque({"openai": self._name, "message": message, "calls": marks})


def read_usage(usage: dict[str, Any]) -> Usage:
    """Token counts. If reasoning is missing from the output count, the total still includes it."""
    details = usage.get("prompt_tokens_details") or {}
    input_tokens = _count(usage, "prompt_tokens")
    return Usage(
        input_tokens=input_tokens,
        output_tokens=max(_count(usage, "completion_tokens"), _count(usage, "total_tokens") - input_tokens),
        cache_read_tokens=_count(details, "cached_tokens"),
        cache_write_tokens=_count(details, "cache_write_tokens"),
    )


def _alternatives(logprobs: Any) -> tuple[tuple[str, float], ...]:
    """The tokens that could have come in place of the first one of a chunk; none where they are unknown."""
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    first = tokens[0] if isinstance(tokens, list) and tokens else None
    listed = first.get("top_logprobs") if isinstance(first, dict) else None
    options = [each for each in listed or () if isinstance(each, dict)]
    return tuple(
        (join_surrogates(str(each.get("token", ""))), math.exp(min(0.0, value)))
        for each in options
        if isinstance(value := each.get("logprob"), int | float)
    )


def _count(values: dict[str, Any], key: str) -> int:
    return read_token_count(values.get(key))
