"""Reading an answer that comes as message events."""

import json
from collections.abc import Iterator
from typing import Any

from handrail.models.arguments import read_call, readable
from handrail.models.base import Blocked, CallPart, Finish, Finished, Opaque, Part, Text, Thinking, UsagePart
from handrail.models.incoming import StreamRefused
from handrail.models.sendable import given_back, joined, tokens, word
from handrail.models.sse import ServerEvent
from handrail.protocol.values import Usage

EVENTS = {"message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop"}
FINISHES: dict[str, Finish] = {
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
        self._begun = False
        self._done = False

    @property
    def begun(self) -> bool:
        return self._begun

    @property
    def finished(self) -> bool:
        return self._done

    def read(self, event: ServerEvent) -> Iterator[Part]:
        data = json.loads(event.data)
        if not isinstance(data, dict):
            raise json.JSONDecodeError("an event that is no object", event.data[:80], 0)
        kind = data.get("type") or event.name
        self._begun |= kind in EVENTS
        match kind:
            case "message_start":
                yield from self._counted(data["message"].get("usage"))
            case "content_block_start":
                self._blocks[data["index"]] = {**data["content_block"], "pieces": []}
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
        self._usage |= {key: tokens(value) for key, value in usage.items()}
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
        calls, cut = [], []
        order: list[dict[str, Any]] = []
        for index in sorted(self._blocks):
            block = self._blocks[index]
            whole = "".join(block["pieces"])
            match block.get("type"):
                case "text":
                    order.append({"text": len(whole)})
                case "tool_use":
                    calls.append(read_call(word(block.get("id")), word(block.get("name")), whole))
                    order.append({"call": calls[-1].id})
                    cut.append(readable(calls[-1].name, whole))
                case "thinking":
                    thought = {"type": "thinking", "thinking": whole, "signature": block.get("signature", "")}
                    order.append({"block": thought})
                case "redacted_thinking":
                    order.append({"block": {"type": "redacted_thinking", "data": block.get("data", "")}})
        complete = reason in {"stop", "tool_calls"}
        if complete and any("block" in each for each in order):
            # The turn can also be given back without its thinking, so what is unfit is left out.
            kept = given_back({"anthropic": self._model, "order": order})
            if kept is not None:
                yield Opaque(kept)
        for call in calls if complete else ():
            yield CallPart(call)
        if cut and not complete:
            yield Blocked(tuple(cut))
        yield Finished(("tool_calls" if calls else "stop") if complete else reason)
