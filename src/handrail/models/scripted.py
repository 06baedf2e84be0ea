"""A model that answers from a script, for tests and demonstrations: `scripted/PATH` of a JSON file.

The file is a list of answers, or an object `{"context_window": 8000, "answers": [...]}`. An answer:

    {
      "text": "Hello there",            or a list of chunks; a string is streamed word by word
      "thinking": "Let me see",         likewise
      "calls": [{"name": "read", "arguments": {"path": "a.py"}}],
      "usage": {"input_tokens": 10, "output_tokens": 3},
      "finish": "stop",                 default: "tool_calls" with calls, else "stop"
      "chunk_delay_ms": 20,             a pause before every chunk
      "error": {"kind": "retry_later", "message": "busy", "delay": 1.5, "after_chunks": 2, "times": 1},
      "when": "tests failed"            only where the last message holds these words
    }

Answers with `when` are tried first, in order. Of the others the n-th answers the n-th request of the
conversation, counted by the assistant's turns in the request, so that a fresh process goes on where a killed
one stopped. An error is raised after so many chunks, and only on the first `times` attempts in this process
when that is given; then the answer follows. Kinds: retry_later, fix_request, authenticate, give_up.
"""

import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import anyio
from pydantic import Field, ValidationError

from handrail.models.arguments import readable
from handrail.models.base import (
    AssistantTurn,
    Blocked,
    CallPart,
    Capabilities,
    Finish,
    Finished,
    Part,
    RawBytes,
    Request,
    Text,
    Thinking,
    ToolResult,
    UsagePart,
    UserTurn,
)
from handrail.models.connections import LOCAL_PRICE, SCRIPTED
from handrail.protocol.errors import (
    Authenticate,
    FixRequest,
    GiveUp,
    ModelProblem,
    RetryLater,
    UsageProblem,
)
from handrail.protocol.values import ToolCall, Usage, Value


class ScriptedCall(Value):
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    id: str = ""
    problem: str = ""


class ScriptedError(Value):
    kind: Literal["retry_later", "fix_request", "authenticate", "give_up"]
    message: str = "as the script says"
    delay: float | None = None
    after_chunks: int = 0
    times: int | None = None

    def problem(self) -> ModelProblem:
        match self.kind:
            case "retry_later":
                return RetryLater(self.message, self.delay, billed=self.after_chunks > 0)
            case "fix_request":
                return FixRequest(self.message)
            case "authenticate":
                return Authenticate(self.message)
            case "give_up":
                return GiveUp(self.message)


class ScriptedAnswer(Value):
    text: str | tuple[str, ...] = ""
    thinking: str | tuple[str, ...] = ""
    calls: tuple[ScriptedCall, ...] = ()
    usage: Usage = Usage(input_tokens=10, output_tokens=5)
    finish: Finish | None = None
    chunk_delay_ms: float = 0
    error: ScriptedError | None = None
    when: str | None = None

    def chunks(self) -> list[Part]:
        thoughts: list[Part] = [Thinking(piece) for piece in _pieces(self.thinking)]
        return [*thoughts, *(Text(piece) for piece in _pieces(self.text))]


class Script(Value):
    """A script file as a whole."""

    answers: tuple[ScriptedAnswer, ...]
    context_window: int = 100_000
    native_tools: bool = True
    images: bool = False


BeforeChunk = Callable[[int, int], Awaitable[None]]


class ScriptedModel:
    """Answers as its script says. `requests` keeps what it was asked, for tests to look at."""

    def __init__(
        self,
        script: Script | Sequence[ScriptedAnswer | Mapping[str, Any]],
        name: str = f"{SCRIPTED}/test",
        before_chunk: BeforeChunk | None = None,
    ) -> None:
        """`before_chunk(answer number, chunk number)` is awaited before each chunk: tests need no sleeps."""
        if not isinstance(script, Script):
            script = Script.model_validate({"answers": tuple(script)})
        self._script = script
        self._name = name
        self._before_chunk = before_chunk
        self._failures: Counter[ScriptedError] = Counter()
        self.requests: list[Request] = []

    @classmethod
    def load(cls, path: str) -> "ScriptedModel":
        """The model of a script file."""
        try:
            written = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageProblem(f"the script {path} cannot be read: {error.strerror}") from error
        except json.JSONDecodeError as error:
            place = f"line {error.lineno}, column {error.colno}"
            raise UsageProblem(f"the script {path} is not JSON at {place}: {error.msg}") from error
        except (ValueError, RecursionError) as error:
            raise UsageProblem(f"the script {path} is not JSON in UTF-8") from error
        if not isinstance(written, list | dict):
            raise UsageProblem(f"the script {path} is not a list of answers")
        try:
            script = Script.model_validate(written if isinstance(written, dict) else {"answers": written})
        except ValidationError as error:
            raise UsageProblem(f"the script {path} is wrong at {_first_mistake(error)}") from error
        return cls(script, f"{SCRIPTED}/{path}")

    @property
    def name(self) -> str:
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            context_window=self._script.context_window,
            native_tools=self._script.native_tools,
            schema_output=True,
            images=self._script.images,
            price=LOCAL_PRICE,
        )

    async def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        self.requests.append(request)
        number = sum(isinstance(each, AssistantTurn) for each in request.messages)
        answer = self._answer(request, number)
        chunks = answer.chunks()
        for at, chunk in enumerate(chunks):
            await self._pause(answer, number, at)
            self._fail(answer, at)
            if isinstance(chunk, Text | Thinking):
                yield RawBytes(json.dumps(chunk.text).encode() + b"\n")
            yield chunk
        await self._pause(answer, number, len(chunks))
        self._fail(answer, None)
        yield UsagePart(answer.usage)
        finish = answer.finish or ("tool_calls" if answer.calls else "stop")
        if finish in {"stop", "tool_calls"}:
            for at, call in enumerate(answer.calls):
                yield CallPart(_call(call, f"call_{number}_{at}"))
        elif answer.calls:
            yield Blocked(tuple(readable(call.name, json.dumps(call.arguments)) for call in answer.calls))
        yield Finished(finish)

    def _answer(self, request: Request, number: int) -> ScriptedAnswer:
        last = _last_words(request)
        for answer in self._script.answers:
            if answer.when is not None and answer.when in last:
                return answer
        ordered = [answer for answer in self._script.answers if answer.when is None]
        if number >= len(ordered):
            raise GiveUp(f"the script of {self._name} has no answer number {number + 1}")
        return ordered[number]

    async def _pause(self, answer: ScriptedAnswer, number: int, at: int) -> None:
        if self._before_chunk is not None:
            await self._before_chunk(number, at)
        await anyio.sleep(answer.chunk_delay_ms / 1000)

    def _fail(self, answer: ScriptedAnswer, at: int | None) -> None:
        error = answer.error
        if error is None or (at is not None and at < error.after_chunks):
            return
        if error.times is not None and self._failures[error] >= error.times:
            return
        self._failures[error] += 1
        raise error.problem()

    async def aclose(self) -> None:
        return None


def _first_mistake(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    place = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in first["loc"])
    return f"{place.lstrip('.')}: {first['msg']}"


def _pieces(text: str | tuple[str, ...]) -> Sequence[str]:
    return re.findall(r"\s*\S+\s*", text) or [text][: len(text)] if isinstance(text, str) else text


def _call(call: ScriptedCall, otherwise: str) -> ToolCall:
    return ToolCall(id=call.id or otherwise, name=call.name, arguments=call.arguments, problem=call.problem)


def _last_words(request: Request) -> str:
    match request.messages[-1] if request.messages else None:
        case UserTurn(text):
            return text
        case ToolResult() as result:
            return result.content
        case _:
            return ""
