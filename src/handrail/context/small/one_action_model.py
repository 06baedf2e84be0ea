"""A small model answers with one action as a JSON object, or with one code block.

The tools of a request become actions with flat fields, and the action `answer` ends the turn. The server
enforces the schema, so answers can always be read and paths are those of existing files. Small models write
code badly inside JSON, so the text of a file, or of a part of it, is a code block of its own.
"""

import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from functools import partial
from typing import Any

from msgspec.structs import replace

from handrail.models.model import (
    ActionChoices,
    Alternatives,
    AssistantTurn,
    CallPart,
    Capabilities,
    Finished,
    Message,
    Model,
    Part,
    Progress,
    Request,
    StopReason,
    Text,
    ToolResult,
    ToolSpec,
    UsagePart,
    UserTurn,
)
from handrail.models.reading.json_reader import parse_json
from handrail.models.reading.streamed_json import StreamedJsonReader
from handrail.protocol.ids import new_id
from handrail.protocol.intent import REQUEST_SCOPE, SELECT_INTENT
from handrail.protocol.values import ToolCall, Usage

ANSWER_ACTION, WRITE_TOOL = "answer", "write"
FENCE = "```"


class ActionReader:
    """Reads one JSON action. Only the text of an answer can be shown while it streams."""

    def __init__(self) -> None:
        self._written: list[str] = []
        self._json = StreamedJsonReader()
        self._action = ""
        self._shown = False

    def feed(self, piece: str) -> str:
        self._written.append(piece)
        new = ""
        for path, text, first in self._json.feed(piece):
            if path == ("action",):
                self._action = text if first else self._action + text
            elif path == ("text",) and self._action == ANSWER_ACTION:
                new += text
        self._shown = self._shown or bool(new)
        return new

    def end(self, reason: StopReason) -> Iterator[Part]:
        """The call, or the text that was not shown yet; what is not an action is text."""
        written = "".join(self._written)
        value = parse_json(written) if reason not in ("length", "cut") else None
        action = value if isinstance(value, dict) and isinstance(value.get("action"), str) else None
        if action and action["action"] != ANSWER_ACTION:
            arguments = {field: value for field, value in action.items() if field != "action"}
            yield CallPart(ToolCall(id=new_id("call"), name=str(action["action"]), arguments=arguments))
            yield Finished("tool_calls")
            return
        text = written if action is None else str(action.get("text", ""))
        if text and not self._shown:
            yield Text(text)
        yield Finished(reason)


class CodeReader:
    """Reads the rest of a code block, which becomes a call; nothing is shown while it streams."""

    def __init__(self, make_call: Callable[[str], ToolCall]) -> None:
        self._make_call = make_call
        self._written = ""

    def feed(self, piece: str) -> str:
        self._written += piece
        return ""

    def end(self, reason: StopReason) -> Iterator[Part]:
        """The call; code that was cut off is only text."""
        code = self._written.partition(FENCE)[0].rstrip()
        if reason != "stop" or not code:
            yield Text(self._written)
            yield Finished(reason)
            return
        yield CallPart(self._make_call(code))
        yield Finished("tool_calls")


def _write_call(action: ToolCall, code: str) -> ToolCall:
    """The `write` action with the text of its file."""
    first, _, rest = code.partition("\n")
    text = rest.lstrip("\n") if "[hash: " in first else code  # a heading of ours, copied
    return replace(action, arguments={"path": action.arguments.get("path", ""), "text": f"{text}\n"})


WRITER_PROMPT = (
    "You are a careful programmer. Make the change that is asked for and keep everything else as it is."
)
LANGUAGES = {"py": "python", "js": "javascript", "mjs": "javascript", "cjs": "javascript", "ts": "typescript"}
LINE_NUMBER = re.compile(r"^\d+\t", re.MULTILINE)
MAX_ALTERNATIVES = 8
MAX_FILE_TOKENS = 2_400


class OneActionModel:
    """A small model: tools become actions of a closed JSON schema, one per answer."""

    def __init__(self, inner: Model) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities._replace(one_action=True, native_tools=True)

    async def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        if request.weighs:
            answers = self._weigh(request)
        elif request.prefill:  # the beginning of the answer says what form it has
            answers = self._inner.stream(request)
        elif request.output_schema is not None:
            plain = tuple(_message_as_text(message) for message in request.messages)
            answers = self._inner.stream(replace(request, messages=plain, tools=()))
        else:
            answers = self._act(request)
        async with aclosing(answers) as parts:
            async for part in parts:
                yield part

    async def _act(self, request: Request) -> AsyncGenerator[Part, None]:
        """One action; for `write`, the text of the file is requested next."""
        writing: ToolCall | None = None
        spent = Usage()
        async with aclosing(self._read(as_action_request(request), ActionReader())) as parts:
            async for part in parts:
                match part:
                    case CallPart(call) if call.name == WRITE_TOOL:
                        writing = call
                        break  # only the end of the answer would follow
                    case UsagePart(usage):
                        spent = usage
                yield part
        if writing is None:
            return
        reader = CodeReader(partial(_write_call, writing))
        async with aclosing(self._read(as_file_request(request, writing), reader)) as parts:
            async for part in parts:
                yield UsagePart(spent + part.usage) if isinstance(part, UsagePart) else part

    async def _weigh(self, request: Request) -> AsyncGenerator[Part, None]:
        """How the answer could go on after each continuation; one token is asked for at a time."""
        found: list[tuple[str, list[tuple[str, float]]]] = []
        spent = Usage()
        for number, words in enumerate(request.weighs, 1):
            short = replace(
                request,
                weighs=(),
                prefill=f"{request.prefill}{words}",
                max_output_tokens=1,
                alternatives=MAX_ALTERNATIVES,
            )
            async with aclosing(self._inner.stream(short)) as parts:
                async for part in parts:
                    match part:
                        case Alternatives(options):
                            found.append((words, list(options)))
                        case UsagePart(usage):
                            spent = spent + usage
                        case Text() | Finished() | Progress():
                            pass
                        case _:
                            yield part
            if not found:
                break  # this server cannot say it
            yield Progress("weighing", number, len(request.weighs))
        yield Text(json.dumps(found))
        yield UsagePart(spent)
        yield Finished("stop")

    async def _read(self, request: Request, reader: ActionReader | CodeReader) -> AsyncGenerator[Part, None]:
        pieces = 0
        async with aclosing(self._inner.stream(request)) as parts:
            async for part in parts:
                match part:
                    case Text(text):
                        pieces += 1
                        if shown := reader.feed(text):
                            yield Text(shown)
                        elif request.prefill:
                            yield Progress("writing", pieces)
                    case Finished(reason):
                        for last in reader.end(reason):
                            yield last
                    case _:
                        yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


def as_action_request(request: Request) -> Request:
    """The request with tools as actions of one schema, and calls and results as text."""
    shapes = [
        f"{json.dumps({'action': tool.name} | dict.fromkeys(_fields(tool), '...'))}: {tool.description}"
        for tool in request.tools
    ]
    shapes.append(f'{{"action": "{ANSWER_ACTION}", "text": "..."}}')
    choices = request.choices or ActionChoices()
    now = choices.actions
    actions = [_tool_action(tool, choices) for tool in request.tools if now is None or tool.name in now]
    return replace(
        request,
        system="\n".join([request.system, "Answer with one JSON object, one of:", *shapes]),
        messages=tuple(_message_as_text(message) for message in request.messages),
        tools=(),
        output_schema={"oneOf": [*actions, _object(ANSWER_ACTION, {"text": {"type": "string"}})]},
    )


def as_file_request(request: Request, call: ToolCall) -> Request:
    """A request for the text of the file in a code block, without the rest of the conversation."""
    path = str(call.arguments.get("path", ""))
    messages = [message for message in request.messages if isinstance(message, UserTurn)]
    ask = f"Answer with the whole new {path} in one code block."
    asked = [UserTurn(f"{messages[-1].text}\n\n{ask}")] if messages else []
    # It would copy what it was told about an intent into the file.
    results = [each for each in request.messages if isinstance(each, ToolResult) and not each.is_error]
    useful = [result for result in results if result.tool not in (SELECT_INTENT, REQUEST_SCOPE)]
    return as_whole_file(replace(request, messages=(*map(_message_as_text, useful), *asked)), path)


def as_whole_file(request: Request, path: str) -> Request:
    """The request with one code block as its answer: the whole text of the file."""
    return replace(
        request,
        system=WRITER_PROMPT,
        tools=(),
        output_schema=None,
        prefill=f"{FENCE}{code_language(path)}\n",
        stop=(FENCE,),
        max_output_tokens=min(request.max_output_tokens, MAX_FILE_TOKENS),
    )


def code_language(path: str) -> str:
    ending = path.rpartition(".")[2]
    return LANGUAGES.get(ending, ending if ending.isalnum() and ending != path else "")


def _tool_action(tool: ToolSpec, choices: ActionChoices) -> dict[str, Any]:
    writes = tool.name == WRITE_TOOL
    # Giving a reason first makes small models better at the change; it is not part of the call.
    fields: dict[str, Any] = {"why": {"type": "string", "maxLength": 120}} if writes else {}
    for name in _fields(tool):
        paths = choices.writable if writes else choices.paths
        text = {"enum": list(paths)} if name == "path" and paths else {"type": "string"}
        fields[name] = choices.fields.get(name, text)
    return _object(tool.name, fields)


def _fields(tool: ToolSpec) -> list[str]:
    """The required fields of a call; the text of a file is requested separately."""
    required: list[str] = tool.schema.get("required", [])
    return [name for name in required if not (tool.name == WRITE_TOOL and name == "text")]


def _object(action: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"action": {"const": action}, **fields},
        "required": ["action", *fields],
        "additionalProperties": False,
    }


def _message_as_text(message: Message) -> Message:
    match message:
        case AssistantTurn(text, calls) if calls:
            return AssistantTurn(_action_text(calls[0]))
        case AssistantTurn(text):
            return AssistantTurn(json.dumps({"action": ANSWER_ACTION, "text": text}))
        case ToolResult():
            word = "Error from" if message.is_error else "Result of"
            # A small model copies line numbers into what it writes.
            content = LINE_NUMBER.sub("", message.content) if message.tool == "read" else message.content
            return UserTurn(f"{word} {message.tool}:\n{content}", message.images)
        case _:
            return message


def _action_text(call: ToolCall) -> str:
    """A call as the model wrote it: the action, then its code."""
    plain = {field: value for field, value in call.arguments.items() if isinstance(value, str)}
    code = plain.pop("text", "") if call.name != ANSWER_ACTION else ""
    action = json.dumps({"action": call.name, **plain})
    path = plain.get("path", "")
    return f"{action}\n{FENCE}{code_language(path)}\n{code.rstrip()}\n{FENCE}" if code else action
