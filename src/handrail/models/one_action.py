"""One action at a time: a small model answers with one JSON object of a closed schema, or rewrites one thing.

The tools of a request become actions with flat fields, and `answer` is the action that ends the turn. The
schema is a grammar for the server, so what comes is always readable; paths can only be ones that there are.
Code is not written well inside of JSON: a request to rewrite a part of a file is answered by a code block.
"""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
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
from handrail.protocol.values import Excerpt, ToolCall

HOW = "\nAnswer with one JSON object, one of:\n{actions}"
ANSWER, WHY = "answer", "why"
THOUGHT = {"type": "string", "maxLength": 200}
FENCE = "```"
LANGUAGES = {"py": "python", "js": "javascript", "mjs": "javascript", "cjs": "javascript", "ts": "typescript"}
LONGEST_REWRITE = 800
"""Tokens: what a small model goes on writing after that is not the code it was asked for."""


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
        reader = ActionReader() if request.rewrite is None else RewriteReader(request.rewrite)
        asked = as_one_action(request) if request.rewrite is None else as_rewriting(request, request.rewrite)
        async with aclosing(self._inner.stream(asked)) as parts:
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
    shapes.append(f'{{"action": "{ANSWER}", "text": "..."}}')
    return request.changed(
        system=request.system + HOW.format(actions="\n".join(shapes)),
        messages=tuple(_as_text(message) for message in request.messages),
        tools=(),
        output_schema=schema_of(request),
    )


def as_rewriting(request: Request, excerpt: Excerpt) -> Request:
    """The same request, its answer begun with the lines that stay, in a code block that ends it."""
    return request.changed(
        begun=f"{FENCE}{code_language(excerpt.path)}\n{excerpt.kept}",
        stop=(FENCE,),
        max_output_tokens=min(request.max_output_tokens, LONGEST_REWRITE),
    )


def schema_of(request: Request) -> dict[str, Any]:
    """What an answer can be: an action with its fields, in this order."""
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

    def __init__(self) -> None:
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
        arguments = {field: value for field, value in action.items() if field not in ("action", WHY)}
        if isinstance(arguments.get("text"), str):
            arguments["text"] = _without_fence(arguments["text"])
        yield CallPart(ToolCall(id=new_id("call"), name=str(action["action"]), arguments=arguments))
        yield Finished("tool_calls")

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


class RewriteReader:
    """Reads the code that goes on from the lines that stay; nothing of it is shown before it is an edit."""

    def __init__(self, excerpt: Excerpt) -> None:
        self._excerpt = excerpt
        self._written = ""

    def feed(self, piece: str) -> str:
        self._written += piece
        return ""

    def end(self, reason: Finish) -> Iterator[Part]:
        """The edit, and how it ended; code that was cut off is only words."""
        body = self._written.partition(FENCE)[0].rstrip()
        if reason != "stop" or not body:
            yield Text(self._written)
            yield Finished(reason)
            return
        break_ = "\n" if self._excerpt.text.endswith("\n") else ""
        edit = {"search": self._excerpt.text, "replace": f"{self._excerpt.kept}{body}{break_}"}
        arguments = {"path": self._excerpt.path, "edits": [edit]}
        yield CallPart(ToolCall(id=new_id("call"), name="edit", arguments=arguments))
        yield Finished("tool_calls")


def code_language(path: str) -> str:
    """What a code block of this file is called."""
    ending = path.rpartition(".")[2]
    return LANGUAGES.get(ending, ending if ending.isalnum() and ending != path else "")


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
