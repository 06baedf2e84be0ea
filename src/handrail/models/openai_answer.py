"""Reading an answer that comes as chat completion chunks."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from handrail.models.answer import TextReader
from handrail.models.arguments import read_call, readable
from handrail.models.base import (
    Blocked,
    CallPart,
    Finish,
    Finished,
    Opaque,
    Part,
    Progress,
    Text,
    Thinking,
    UsagePart,
)
from handrail.models.incoming import StreamRefused
from handrail.models.sendable import given_back, joined, tokens, word
from handrail.models.sse import ServerEvent
from handrail.models.written_calls import WrittenCalls
from handrail.protocol.errors import GiveUp
from handrail.protocol.values import ToolCall, Usage

FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "filtered",
}


@dataclass(slots=True)
class _Draft:
    """A call as its pieces come."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    mark: dict[str, Any] = field(default_factory=dict)
    """What the provider wants back with the call, such as Gemini's signature of its thinking."""

    def read(self) -> ToolCall:
        return read_call(self.id, self.name, "".join(self.arguments))


class ChatReader:
    """Reads the chunks of one answer. Calls are given only after finish reason and end of stream."""

    def __init__(self, name: str, tools: set[str]) -> None:
        self._name = name
        self._reasoning: dict[str, list[str]] = {}
        self._details: dict[tuple[Any, Any], dict[str, Any]] = {}
        self._text = TextReader()
        self._written = WrittenCalls(tools)
        self._drafts: dict[int, _Draft] = {}
        self._finish: str = ""
        self._begun = False
        self._done = False

    @property
    def begun(self) -> bool:
        return self._begun

    @property
    def finished(self) -> bool:
        return self._done

    def read(self, event: ServerEvent) -> Iterator[Part]:
        if event.data.strip() == "[DONE]":
            self._begun = self._done = True
            return
        chunk = json.loads(event.data)
        if not isinstance(chunk, dict):
            raise json.JSONDecodeError("a chunk that is no object", event.data[:80], 0)
        if chunk.get("error") or event.name == "error":
            raise StreamRefused(chunk.get("error") or chunk)
        choices = chunk.get("choices")
        self._begun |= isinstance(choices, list)
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            yield from self._choice(choices[0])
        if isinstance(chunk.get("usage"), dict):
            yield UsagePart(read_usage(chunk["usage"]))
        if isinstance(chunk.get("prompt_progress"), dict):
            yield read_progress(chunk["prompt_progress"])

    def _choice(self, choice: dict[str, Any]) -> Iterator[Part]:
        delta = choice.get("delta")
        if isinstance(delta, dict):
            for key in ("reasoning_content", "reasoning"):
                if isinstance(delta.get(key), str) and delta[key]:
                    self._reasoning.setdefault(key, []).append(delta[key])
                    yield Thinking(joined(delta[key]))
                    break
            for piece in delta.get("reasoning_details") or ():
                self._detail(piece)
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
            if isinstance(part, Thinking):
                yield part
            elif shown := self._written.feed(part.text):
                yield Text(shown)

    def _detail(self, piece: dict[str, Any]) -> None:
        whole = self._details.setdefault((piece.get("index"), piece.get("type")), {})
        for key, value in piece.items():
            if key in {"text", "summary", "data"} and isinstance(value, str):
                whole[key] = whole.get(key, "") + value
            elif value is not None:
                whole[key] = value

    def _draft(self, piece: dict[str, Any]) -> None:
        index = piece.get("index")
        call_id = word(piece.get("id"))
        if not isinstance(index, int):
            index = len(self._drafts) if call_id or not self._drafts else max(self._drafts)
        elif call_id and index in self._drafts and self._drafts[index].id not in {"", call_id}:
            # Some servers number every call 0 and tell them apart by id alone.
            index = max(self._drafts) + 1
        draft = self._drafts.setdefault(index, _Draft())
        function = piece.get("function") or {}
        draft.id = draft.id or call_id
        draft.name = draft.name or word(function.get("name"))
        if piece.get("extra_content"):
            draft.mark = {"extra_content": _mark(piece["extra_content"])}
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments)
        draft.arguments.append(arguments or "")

    def end(self) -> Iterator[Part] | None:
        return self._last() if self._finish else None

    def _last(self) -> Iterator[Part]:
        yield from self._shown(self._text.end())
        reason = FINISHES.get(self._finish, "stop")
        complete = reason in {"stop", "tool_calls"}
        rest, written = self._written.end(calls_count=complete and not self._drafts)
        if rest:
            yield Text(rest)
        calls: list[ToolCall] = []
        if complete:
            drafts = [self._drafts[index] for index in sorted(self._drafts)]
            calls = [draft.read() for draft in drafts]
            yield from self._wanted_back(calls, drafts)
            calls = calls or list(written)
            reason = "tool_calls" if calls else "stop"
        elif self._drafts:
            drafts = [self._drafts[index] for index in sorted(self._drafts)]
            yield Blocked(tuple(readable(draft.name, "".join(draft.arguments)) for draft in drafts))
        for call in calls:
            yield CallPart(call)
        yield Finished(reason)

    def _wanted_back(self, calls: list[ToolCall], drafts: list[_Draft]) -> Iterator[Part]:
        """Reasoning that led to calls: several providers refuse the next request without it."""
        marks = {call.id: draft.mark for call, draft in zip(calls, drafts, strict=True) if draft.mark}
        message: dict[str, Any] = {key: joined("".join(each)) for key, each in self._reasoning.items()}
        # What is unfit is left out: the calls can be given back without their reasoning.
        if self._details and (details := given_back(list(self._details.values()))) is not None:
            message = {"reasoning_details": details}
        if calls and (marks or message):
            yield Opaque({"openai": self._name, "message": message, "calls": marks})


def _mark(sent: Any) -> Any:
    mark = given_back(sent)
    if mark is None:
        raise GiveUp(
            "The call is signed with something that cannot be given back. Choose another model with --model."
        )
    return mark


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


def read_progress(progress: dict[str, Any]) -> Progress:
    """Tokens of the request that were read, those apart that the server had in its cache."""
    cached = _count(progress, "cache")
    done, total = _count(progress, "processed") - cached, _count(progress, "total") - cached
    return Progress("reading", max(0, done), max(0, total))


def _count(values: dict[str, Any], key: str) -> int:
    return tokens(values.get(key))
