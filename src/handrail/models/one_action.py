"""One action at a time: a small model answers with one JSON object of a closed schema, or rewrites one thing.

The tools of a request become actions with flat fields, and `answer` is the action that ends the turn. The
schema is a grammar for the server, so what comes is always readable; paths can only be ones that there are.
Code is not written well inside of JSON: the text of a file, or of a part of it, is a code block of its own.
"""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from handrail.models.base import (
    AssistantTurn,
    CallPart,
    Capabilities,
    Finished,
    Message,
    Model,
    Part,
    Progress,
    Request,
    Text,
    ToolResult,
    ToolSpec,
    UsagePart,
    UserTurn,
)
from handrail.models.small_answers import ANSWER, FENCE, ActionReader, FileReader, Reader, RewriteReader
from handrail.protocol.intent import REQUEST, SELECT
from handrail.protocol.values import Excerpt, ToolCall, Usage

HOW = "\nAnswer with one JSON object, one of:\n{actions}"
WRITER = "You are a careful programmer. Make the change that is asked for and keep everything else as it is."
TEXT = "Answer with the whole new {path} in one code block."
WHY, CONTENT = "why", "text"
THOUGHT = {"type": "string", "maxLength": 120}
LANGUAGES = {"py": "python", "js": "javascript", "mjs": "javascript", "cjs": "javascript", "ts": "typescript"}
LINE_NUMBER = re.compile(r"^\d+\t", re.MULTILINE)
LONGEST_REWRITE = 800
"""Tokens: what a small model goes on writing after that is not the code it was asked for."""
LONGEST_FILE = 2_400


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
        if request.rewrite is not None:
            answers = self._read(as_rewriting(request, request.rewrite), RewriteReader(request.rewrite))
        elif request.output_schema is not None:
            plain = tuple(_as_text(message) for message in request.messages)
            answers = self._inner.stream(request.changed(messages=plain, tools=()))
        else:
            answers = self._act(request)
        async with aclosing(answers) as parts:
            async for part in parts:
                yield part

    async def _act(self, request: Request) -> AsyncGenerator[Part, None]:
        """An action; where it is to write a file, the text of that file is asked for next."""
        writing: ToolCall | None = None
        spent = Usage()
        async with aclosing(self._read(as_one_action(request), ActionReader())) as parts:
            async for part in parts:
                match part:
                    case CallPart(call) if call.name in request.writing:
                        writing = call
                        break  # only the end of the answer would follow
                    case UsagePart(usage):
                        spent = usage
                yield part
        if writing is None:
            return
        async with aclosing(self._read(as_writing(request, writing), FileReader(writing))) as parts:
            async for part in parts:
                yield UsagePart(spent + part.usage) if isinstance(part, UsagePart) else part

    async def _read(self, request: Request, reader: Reader) -> AsyncGenerator[Part, None]:
        pieces = 0
        async with aclosing(self._inner.stream(request)) as parts:
            async for part in parts:
                match part:
                    case Text(text):
                        pieces += 1
                        if shown := reader.feed(text):
                            yield Text(shown)
                        elif request.begun:
                            yield Progress("writing", pieces)
                    case Finished(reason):
                        for last in reader.end(reason):
                            yield last
                    case _:
                        yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


def as_one_action(request: Request) -> Request:
    """The same request, its tools as actions of one schema and its calls and results as plain words."""
    shapes = [_shape(tool, request) for tool in request.tools]
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


def as_writing(request: Request, call: ToolCall) -> Request:
    """The text of the file, asked for in a code block, with nothing else to think of."""
    path = str(call.arguments.get("path", ""))
    said = [message for message in request.messages if isinstance(message, UserTurn)]
    asked = [UserTurn(f"{said[-1].text}\n\n{TEXT.format(path=path)}")] if said else []
    results = [message for message in request.messages if isinstance(message, ToolResult)]
    # Of an intent it would write into the file what it was told.
    files = [result for result in results if not result.is_error and result.tool not in (SELECT, REQUEST)]
    shown = [_as_text(result) for result in files]
    return request.changed(
        system=WRITER,
        messages=(*shown, *asked),
        tools=(),
        begun=f"{FENCE}{code_language(path)}\n",
        stop=(FENCE,),
        max_output_tokens=min(request.max_output_tokens, LONGEST_FILE),
    )


def code_language(path: str) -> str:
    """What a code block of this file is called."""
    ending = path.rpartition(".")[2]
    return LANGUAGES.get(ending, ending if ending.isalnum() and ending != path else "")


def schema_of(request: Request) -> dict[str, Any]:
    """What an answer can be: an action with its fields, in this order."""
    now = request.actions
    actions = [_action(tool, request) for tool in request.tools if now is None or tool.name in now]
    actions.append(_object(ANSWER, {"text": {"type": "string"}}))
    return {"oneOf": actions}


def _action(tool: ToolSpec, request: Request) -> dict[str, Any]:
    writes = tool.name in request.writing
    # A thought before a change makes small models better at it; it is not part of the call.
    fields: dict[str, Any] = {WHY: THOUGHT} if writes else {}
    for name in _fields(tool, request):
        paths = request.writable if writes else request.paths
        text = {"enum": list(paths)} if name == "path" and paths else {"type": "string"}
        fields[name] = request.fields.get(name, text)
    return _object(tool.name, fields)


def _fields(tool: ToolSpec, request: Request) -> list[str]:
    """The fields that a call has to have; the text of a file is asked for when the action is taken."""
    required: list[str] = tool.schema.get("required", [])
    return [name for name in required if not (tool.name in request.writing and name == CONTENT)]


def _object(action: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"action": {"const": action}, **fields},
        "required": ["action", *fields],
        "additionalProperties": False,
    }


def _shape(tool: ToolSpec, request: Request) -> str:
    fields = {"action": tool.name} | dict.fromkeys(_fields(tool, request), "...")
    return f"{json.dumps(fields)}: {tool.description}"


def _as_text(message: Message) -> Message:
    match message:
        case AssistantTurn(text, calls) if calls:
            return AssistantTurn(_action_text(calls[0]))
        case AssistantTurn(text):
            return AssistantTurn(json.dumps({"action": ANSWER, "text": text}))
        case ToolResult():
            word = "Error from" if message.is_error else "Result of"
            # A small model copies line numbers into what it writes.
            content = LINE_NUMBER.sub("", message.content) if message.tool == "read" else message.content
            return UserTurn(f"{word} {message.tool}:\n{content}", message.images)
        case _:
            return message


def _action_text(call: ToolCall) -> str:
    """A call as the model wrote it: the action, and the code that it wrote for it."""
    plain = {field: value for field, value in call.arguments.items() if isinstance(value, str)}
    code = plain.pop(CONTENT, "") if call.name != ANSWER else ""
    action = json.dumps({"action": call.name, **plain})
    path = plain.get("path", "")
    return f"{action}\n{FENCE}{code_language(path)}\n{code.rstrip()}\n{FENCE}" if code else action
