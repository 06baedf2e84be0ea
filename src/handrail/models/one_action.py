"""One action at a time: a small model answers with one JSON object of a closed schema.

The tools of a request become actions with flat fields, and `answer` is the action that ends the turn. The
schema is a grammar for the server, so what comes is always readable; paths can only be ones that there are.
"""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from handrail.models.base import (
    AssistantTurn,
    CallPart,
    Capabilities,
    Finish,
    Finished,
    Message,
    Model,
    Part,
    Request,
    Text,
    ToolResult,
    ToolSpec,
    UserTurn,
)
from handrail.protocol.ids import new_id
from handrail.protocol.values import ToolCall

HOW = "\nAnswer with one JSON object, one of:\n{actions}"
ANSWER, WHY, FIX = "answer", "why", "fix"
THOUGHT = {"type": "string", "maxLength": 200}
FIX_SHAPE = '{"action": "fix", "why": "...", "line": "...", "new": "..."}: Replace one wrong line.'


class OneActionModel:
    """A model that is asked for one action at a time."""

    def __init__(self, inner: Model) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities._replace(one_action=True)

    async def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        reader = ActionReader({line: path for path, line in request.lines})
        async with aclosing(self._inner.stream(as_one_action(request))) as parts:
            async for part in parts:
                match part:
                    case Text(text):
                        if shown := reader.feed(text):
                            yield Text(shown)
                    case Finished(reason):
                        for last in reader.end(reason):
                            yield last
                    case _:
                        yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


def as_one_action(request: Request) -> Request:
    """The same request, its tools as actions of one schema and its calls and results as plain words."""
    shapes = [_shape(tool) for tool in request.tools]
    if request.lines:
        shapes.append(FIX_SHAPE)
    else:
        shapes.append(f'{{"action": "{ANSWER}", "text": "..."}}')
    return replace(
        request,
        system=request.system + HOW.format(actions="\n".join(shapes)),
        messages=tuple(_as_text(message) for message in request.messages),
        tools=(),
        output_schema=schema_of(request),
    )


def schema_of(request: Request) -> dict[str, Any]:
    """What an answer can be: an action with its fields, in this order."""
    if request.lines:
        lines = {"enum": [line for _, line in request.lines]}
        return _object(FIX, {WHY: THOUGHT, "line": lines, "new": {"type": "string"}})
    actions = [_action(tool, request) for tool in request.tools]
    actions.append(_object(ANSWER, {"text": {"type": "string"}}))
    return {"oneOf": actions}


def _action(tool: ToolSpec, request: Request) -> dict[str, Any]:
    # A thought before a change makes small models better at it; it is not part of the call.
    fields: dict[str, Any] = {WHY: THOUGHT} if tool.name in request.writing else {}
    for name in tool.schema.get("required", ()):
        paths = request.writable if tool.name in request.writing else request.paths
        fields[name] = {"enum": list(paths)} if name == "path" and paths else {"type": "string"}
    return _object(tool.name, fields)


def _object(action: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"action": {"const": action}, **fields},
        "required": ["action", *fields],
        "additionalProperties": False,
    }


def _shape(tool: ToolSpec) -> str:
    fields = {"action": tool.name} | dict.fromkeys(tool.schema.get("required", ()), "...")
    return f"{json.dumps(fields)}: {tool.description}"


def _as_text(message: Message) -> Message:
    match message:
        case AssistantTurn(text, calls) if calls:
            return AssistantTurn(json.dumps({"action": calls[0].name, **calls[0].arguments}))
        case AssistantTurn(text):
            return AssistantTurn(json.dumps({"action": ANSWER, "text": text}))
        case ToolResult():
            word = "Error from" if message.is_error else "Result of"
            return UserTurn(f"{word} {message.tool}:\n{message.content}", message.images)
        case _:
            return message


class ActionReader:
    """Reads the object as it comes: the words of an answer can be shown at once, all else is for the end."""

    OPENING = f'{{"action":"{ANSWER}","text":"'

    def __init__(self, lines: Mapping[str, str] = MappingProxyType({})) -> None:
        """`lines` says in which file each line stands that can be replaced."""
        self._lines = lines
        self._written = ""
        self._shown = 0

    def feed(self, piece: str) -> str:
        """What of an answer's words can be shown now."""
        self._written += piece
        words = self._words()
        new, self._shown = words[self._shown :], len(words)
        return new

    def end(self, reason: Finish) -> Iterator[Part]:
        """The call, or the rest of the words, and how it ended."""
        action = self._action() if reason != "length" else None
        if action is None or action.get("action") == ANSWER:
            said = (
                self._written if action is None and not self._shown else str((action or {}).get("text", ""))
            )
            if said[self._shown :]:
                yield Text(said[self._shown :])
            yield Finished(reason)
            return
        if action["action"] == FIX:
            yield CallPart(self._fix(str(action.get("line", "")), str(action.get("new", ""))))
            yield Finished("tool_calls")
            return
        arguments = {field: value for field, value in action.items() if field not in ("action", WHY)}
        if isinstance(arguments.get("text"), str):
            arguments["text"] = _without_fence(arguments["text"])
        yield CallPart(ToolCall(id=new_id("call"), name=str(action["action"]), arguments=arguments))
        yield Finished("tool_calls")

    def _fix(self, line: str, new: str) -> ToolCall:
        """The edit that replaces a line; what a model forgets most is how far it was indented."""
        indent = line[: len(line) - len(line.lstrip())]
        # With the breaks around it, a line is not found again inside another one.
        edits = [{"search": f"\n{line}\n", "replace": f"\n{indent}{new.strip()}\n"}]
        return ToolCall(
            id=new_id("call"), name="edit", arguments={"path": self._lines.get(line, ""), "edits": edits}
        )

    def _action(self) -> dict[str, Any] | None:
        try:
            value = json.loads(self._written)
        except ValueError:
            return None
        return value if isinstance(value, dict) and isinstance(value.get("action"), str) else None

    def _words(self) -> str:
        """The words of an answer so far, as far as they are whole characters."""
        head, _, text = self._written.partition('"text"')
        if "".join(head.split()) != self.OPENING.partition('"text"')[0] or ":" not in text:
            return ""
        opened = text.partition(":")[2].lstrip()
        if not opened.startswith('"'):
            return ""
        return _unescaped(opened[1:])


def _without_fence(text: str) -> str:
    """The text without the fence that models are used to put around code."""
    lines = text.strip().splitlines()
    if len(lines) > 1 and lines[0].startswith("```") and lines[-1].startswith("```"):
        return "\n".join(lines[1:-1]) + "\n"
    return text


def _unescaped(text: str) -> str:
    """The decoded start of a JSON string whose end may not have come yet."""
    end = 0
    while end < len(text) and text[end] != '"':
        step = 1 if text[end] != "\\" else 6 if text[end : end + 2] == "\\u" else 2
        if end + step > len(text):
            break
        end += step
    decoded: str = json.loads(f'"{text[:end]}"', strict=False)
    # Half of a pair is not shown before the other half has come.
    return decoded[:-1] if decoded and "\ud800" <= decoded[-1] <= "\udbff" else decoded
