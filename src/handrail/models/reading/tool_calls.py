"""Tool calls in model output: native arguments, and calls written as text.

What is not one whole JSON object, and cannot be repaired into one with nothing lost, is a `problem` that says
why.

They count at the very end of an answer, one after another with nothing but white space or closing tags
between and after them; followed by prose they are quotations. The answer is read as it streams, each
character once, and what may become such calls is held back until it is one or is text.
"""

import json
import re
from collections.abc import Collection
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from handrail.models.model import AssistantTurn, Message, Request, ToolResult, UserTurn
from handrail.models.reading.json_reader import FENCE_CLOSE, parse_json, read_object
from handrail.models.reading.sanitize import join_surrogates, why_unstorable
from handrail.protocol.ids import new_id
from handrail.protocol.values import ToolCall

BEGUN = re.compile(r'"(\w+)"\s*:\s*"((?:[^"\\]|\\.)*)', re.DOTALL)
"""A name and its string value, whose end may be missing."""


class ReadArguments(NamedTuple):
    """The arguments, or why they could not be read."""

    values: dict[str, Any]
    problem: str = ""
    read: Literal["whole", "repaired", "cut"] = "whole"


def read_arguments(text: str) -> ReadArguments:
    """The one JSON object in a call's arguments: alone, in a fence, first in prose, or repaired."""
    text = join_surrogates(text).strip()
    if not text:
        return ReadArguments({})
    value, how, problem, _ = read_object(text)
    if value is None:
        return ReadArguments({}, problem, "cut" if how == "cut" else "whole")
    return checked_arguments(value)._replace(read="repaired" if how == "repaired" else "whole")


def checked_arguments(value: dict[str, Any]) -> ReadArguments:
    """The arguments, or why they cannot be stored."""
    found = why_unstorable(value)
    return ReadArguments({}, f"the arguments hold {found}") if found else ReadArguments(value)


def describe_cut_call(name: str, arguments: str) -> str:
    """A short description of a call that was cut: the tool, and its main argument."""
    values = dict(BEGUN.findall(arguments))
    about = next((values[key] for key in ("path", "command", "url", "question") if key in values), "")
    with suppress(ValueError):  # a text that ends within an escape is shown as it is
        about = json.loads(f'"{about}"')
    return " ".join(f"{name} {about}".split())[:200]


def read_call(call_id: str, name: str, arguments: str) -> ToolCall:
    """A native tool call; it gets an id if it has none."""
    values, problem, read = read_arguments(arguments)
    if not name:
        problem = "the call names no tool"
    return ToolCall(id=call_id or new_id("call"), name=name, arguments=values, problem=problem, read=read)


NAME_KEYS = ("name", "tool", "function")
ARGUMENT_KEYS = ("arguments", "args", "parameters", "input")

FENCE, TAG, TAG_END = "```", "<tool_call>", "</tool_call>"
MARKS = (FENCE, TAG, "{", "[")
START = re.compile(r"(?<=\n)[ \t]{0,16}(```|[{\[])|(<tool_call>)")
HALF_START = re.compile(r"[ \t]{0,16}`{0,2}")
BETWEEN = re.compile(r"(?:\s|</\w{1,40}>)*")
HALF_BETWEEN = re.compile(r"</?\w{0,40}")
INFO = re.compile(r"[\w-]{0,40}[ \t\r]{0,16}")
OBJECT = re.compile(r'\s{0,200}(?:\[\s{0,200})?\{\s{0,200}"')
HALF_OBJECT = re.compile(r"\s{0,200}(?:\[\s{0,200})?(?:\{\s{0,200})?\Z")
HALF_CLOSE = re.compile(r"[ \t]{0,16}`{0,3}[ \t\r]{0,16}")
MAX_CLOSE = 40
BRACKETS = re.compile(r'[{}\[\]"\\\n]')


class TextAndCalls(NamedTuple):
    """The remaining text of an answer, and the calls at its end."""

    text: str
    calls: tuple[ToolCall, ...]


class WrittenCallReader:
    """Reads calls of these tools that are written as text. Feed it text; it returns what can be shown."""

    def __init__(self, tools: Collection[str]) -> None:
        self._tools = tools
        self._buffer = "\n"
        """The last character shown, to know where lines start, then everything not shown yet."""
        self._at = 1
        """The position up to which the buffer was read."""
        self._shown = 1
        """The position up to which text can be shown."""
        self._content = 1
        self._depth = 0
        self._quoted = False
        self._ended = False
        self._calls: list[ToolCall] = []
        self._step = self._in_text

    def feed(self, text: str) -> str:
        """Text that can be shown now."""
        if not self._tools:
            return text
        # A string with a single reference grows in place.
        buffer, self._buffer = self._buffer, ""
        buffer += text
        self._buffer = buffer
        return self._advance()

    def end(self, *, calls_count: bool) -> TextAndCalls:
        """The rest. If calls do not count, because the answer has others or was cut, all of it is text."""
        self._ended = True
        text = self._advance()
        if calls_count and self._calls:
            return TextAndCalls(text, tuple(self._calls))
        return TextAndCalls(text + self._buffer[1:], ())

    def _advance(self) -> str:
        while self._step():
            pass
        text = self._buffer[1 : self._shown]
        if text:
            self._buffer = self._buffer[len(text) :]
            self._at -= len(text)
            self._content -= len(text)
            self._shown = 1
        return text

    def _in_text(self) -> bool:
        if self._calls:
            return self._after_call()
        found = START.search(self._buffer, self._at)
        if found is None:
            self._at = self._shown = self._plain_end()
            return False
        self._shown = found.start()
        return self._open(found[1] or found[2], found.end())

    def _plain_end(self) -> int:
        """The end of the text that cannot be the start of a mark."""
        end = len(self._buffer)
        line = self._buffer.rfind("\n") + 1
        if self._ended:
            return end
        if HALF_START.fullmatch(self._buffer, line):
            return line
        return end - next((n for n in range(len(TAG) - 1, 0, -1) if self._buffer.endswith(TAG[:n])), 0)

    def _after_call(self) -> bool:
        between = BETWEEN.match(self._buffer, self._at)
        self._at = between.end() if between else self._at
        rest = self._buffer[self._at : self._at + MAX_CLOSE + 2]
        if not rest:
            return False
        for mark in MARKS:
            if rest.startswith(mark):
                return self._open(mark, self._at + len(mark))
        if not self._ended and (HALF_BETWEEN.fullmatch(rest) or any(each.startswith(rest) for each in MARKS)):
            return False
        return self._is_text(self._at)

    def _open(self, mark: str, end: int) -> bool:
        self._at = self._content = end
        self._step = {FENCE: self._in_fence, TAG: self._in_tag}.get(mark, self._in_json)
        if self._step == self._in_json:
            self._at = self._content = end - 1
            self._depth, self._quoted = 0, False
        return True

    def _is_text(self, end: int) -> bool:
        """What was held back up to `end` is text, and so are the calls before it: they were quoted."""
        self._calls.clear()
        self._at = self._shown = end
        self._step = self._in_text
        return True

    def _closed(self, written: str, end: int) -> bool:
        calls = _written_calls(written, self._tools)
        if not calls:
            return self._is_text(end)
        self._calls += calls
        self._at = end
        self._step = self._in_text
        return True

    def _wait(self, at: int) -> bool:
        """Continue here when more text comes; if none does, the rest is text."""
        self._at = max(self._at, at)
        return self._ended and self._is_text(len(self._buffer))

    def _in_fence(self) -> bool:
        info = INFO.match(self._buffer, self._content)
        line = info.end() if info else self._content
        if line == len(self._buffer):
            return self._wait(self._content)
        if self._buffer[line] != "\n":
            return self._is_text(self._content)
        if not OBJECT.match(self._buffer, line + 1):
            if HALF_OBJECT.match(self._buffer, line + 1):
                return self._wait(self._content)
            self._is_text(line)
            self._step = self._in_code
            return True
        closed = FENCE_CLOSE.search(self._buffer, max(line, self._at))
        if closed is None or (closed.end() == len(self._buffer) and not self._ended):
            return self._wait(len(self._buffer) - MAX_CLOSE)
        return self._closed(self._buffer[line + 1 : closed.start()], closed.end())

    def _in_code(self) -> bool:
        """A fence without a call: it is shown, and nothing in it counts."""
        end = len(self._buffer)
        closed = FENCE_CLOSE.search(self._buffer, self._at)
        if closed and (self._ended or closed.end() < end):
            return self._is_text(closed.end())
        line = self._buffer.rfind("\n") + 1
        if not self._ended and line and HALF_CLOSE.fullmatch(self._buffer, line):
            self._at, self._shown = line - 1, max(1, line)
        else:
            self._at = self._shown = end
        return False

    def _in_tag(self) -> bool:
        if not OBJECT.match(self._buffer, self._content):
            if HALF_OBJECT.match(self._buffer, self._content):
                return self._wait(self._content)
            return self._is_text(self._content)
        closed = self._buffer.find(TAG_END, self._at)
        if closed < 0:
            return self._wait(len(self._buffer) - len(TAG_END))
        return self._closed(self._buffer[self._content : closed], closed + len(TAG_END))

    def _in_json(self) -> bool:
        if not OBJECT.match(self._buffer, self._content):
            if HALF_OBJECT.match(self._buffer, self._content):
                return self._wait(self._content)
            return self._is_text(self._content + 1)
        while found := BRACKETS.search(self._buffer, self._at):
            self._at = found.end()
            match found[0]:
                case '"':
                    self._quoted = not self._quoted
                case "\\":
                    self._at += 1
                case "\n" if self._quoted:
                    return self._is_text(found.start())
                case "{" | "[" if not self._quoted:
                    self._depth += 1
                case "}" | "]" if not self._quoted:
                    self._depth -= 1
                    if self._depth == 0:
                        return self._closed(self._buffer[self._content : self._at], self._at)
        return self._wait(len(self._buffer))


def calls_in_text(text: str, tools: Collection[str]) -> tuple[ToolCall, ...]:
    """The calls of these tools at the end of a text."""
    reader = WrittenCallReader(tools)
    reader.feed(text)
    return reader.end(calls_count=True).calls


def _written_calls(written: str, tools: Collection[str]) -> list[ToolCall]:
    value = parse_json(written.strip())
    calls = [_written_call(each, tools) for each in (value if isinstance(value, list) else [value])]
    whole = [call for call in calls if call is not None]
    return whole if len(whole) == len(calls) else []


def _written_call(value: Any, tools: Collection[str]) -> ToolCall | None:
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name: str | None = next((value[key] for key in NAME_KEYS if isinstance(value.get(key), str)), None)
    arguments = next((value[key] for key in ARGUMENT_KEYS if key in value), None)
    if name is None or name not in tools:
        return None
    if isinstance(arguments, str):
        return read_call("", name, arguments)
    if isinstance(arguments, dict):
        values, problem, _ = checked_arguments(arguments)
        return ToolCall(id=new_id("call"), name=name, arguments=values, problem=problem)
    return None


WRITTEN_TOOLS_PROMPT = """

You can use these tools. To use one, end your answer with a block like this and nothing after it:
```json
{"name": "TOOL", "arguments": {...}}
```
The result comes in the next message. Tools:
"""


def with_written_tools(request: Request) -> Request:
    """The request with its tools, calls and results as text."""
    listed = "".join(
        f"- {tool.name}: {tool.description} Arguments: {json.dumps(tool.schema, ensure_ascii=False)}\n"
        for tool in request.tools
    )
    system = request.system + WRITTEN_TOOLS_PROMPT + listed if request.tools else request.system
    return replace(request, system=system, messages=tuple(map(_message_as_text, request.messages)), tools=())


def _message_as_text(message: Message) -> Message:
    match message:
        case AssistantTurn(text, calls) if calls:
            if calls_in_text(text, {call.name for call in calls}):
                return AssistantTurn(text)
            values = ({"name": call.name, "arguments": call.arguments} for call in calls)
            blocks = (f"```json\n{json.dumps(value, ensure_ascii=False)}\n```" for value in values)
            return AssistantTurn("\n\n".join([text, *blocks]).strip())
        case ToolResult():
            word = "Error from" if message.is_error else "Result of"
            return UserTurn(f"{word} {message.tool}:\n{message.content}", message.images)
        case _:
            return message
