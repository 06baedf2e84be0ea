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
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import anyio
from msgspec import ValidationError, convert, field, to_builtins
from msgspec.structs import replace

from handrail.models.model import (
    AssistantTurn,
    BlockedCalls,
    CallPart,
    Capabilities,
    EndOfBytes,
    Finished,
    Part,
    RawBytes,
    Request,
    RequestBytes,
    StopReason,
    Text,
    Thinking,
    ToolResult,
    UsagePart,
    UserTurn,
)
from handrail.models.providers import LOCAL_PRICE, SCRIPTED
from handrail.models.reading.tool_calls import describe_cut_call
from handrail.protocol.errors import Authenticate, FixRequest, GiveUp, ModelProblem, RetryLater, UsageProblem
from handrail.protocol.problems import Problem, problems_in
from handrail.protocol.values import ToolCall, Usage, Value


class ScriptedCall(Value):
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str = ""
    problem: str = ""


class ScriptedError(Value):
    kind: Literal["retry_later", "fix_request", "authenticate", "give_up"]
    message: str = "as the script says"
    delay: float | None = None
    after_chunks: int = 0
    times: int | None = None

    def problem(self) -> ModelProblem:
        if self.kind == "retry_later":
            return RetryLater(self.message, self.delay, billed=self.after_chunks > 0)
        kinds: dict[str, type[ModelProblem]]
        kinds = {"fix_request": FixRequest, "authenticate": Authenticate, "give_up": GiveUp}
        return kinds[self.kind](self.message)


class ScriptedAnswer(Value):
    text: str | tuple[str, ...] = ""
    thinking: str | tuple[str, ...] = ""
    calls: tuple[ScriptedCall, ...] = ()
    usage: Usage = Usage(input_tokens=10, output_tokens=5)
    finish: StopReason | None = None
    chunk_delay_ms: float = 0
    error: ScriptedError | None = None
    when: str | None = None

    def chunks(self) -> list[Text | Thinking]:
        return [*map(Thinking, _chunks(self.thinking)), *map(Text, _chunks(self.text))]


class Script(Value):
    answers: tuple[ScriptedAnswer, ...]
    context_window: int = 100_000
    native_tools: bool = True
    images: bool = False


BeforeChunk = Callable[[int, int], Awaitable[None]]


class ScriptedModel:
    """Answers from a script. `requests` records what it was asked, for tests."""

    def __init__(
        self,
        script: Script | Sequence[ScriptedAnswer | Mapping[str, Any]],
        name: str = f"{SCRIPTED}/test",
        before_chunk: BeforeChunk | None = None,
    ) -> None:
        """`before_chunk(answer number, chunk number)` is awaited before each chunk: tests need no sleeps."""
        if not isinstance(script, Script):
            script = convert({"answers": tuple(script)}, Script)
        self._script = script
        self._name = name
        self._before_chunk = before_chunk
        self._failures: Counter[ScriptedError] = Counter()
        self.requests: list[Request] = []

    @classmethod
    def load(cls, path: str) -> "ScriptedModel":
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
        content = written if isinstance(written, dict) else {"answers": written}
        try:
            script = convert(content, Script)
        except ValidationError as error:
            first = problems_in(content, Script)[0]
            raise UsageProblem(f"the script {path} is wrong at {_place(first)}: it {first.should}") from error
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
        number = sum(isinstance(each, AssistantTurn) for each in request.messages)
        if request.received is not None:
            whole = json.loads(request.received.splitlines()[-1])
            for part in self._parts(convert(whole, ScriptedAnswer), number):
                yield part
            return
        self.requests.append(request)
        yield RequestBytes(_pieces(request))
        answer = self._answer(request, number)
        chunks = answer.chunks()
        for at, chunk in enumerate(chunks):
            await self._pause(answer, number, at)
            self._fail(answer, at)
            yield RawBytes(json.dumps(chunk.text).encode() + b"\n")
            yield chunk
        await self._pause(answer, number, len(chunks))
        self._fail(answer, None)
        yield RawBytes(json.dumps(to_builtins(answer)).encode())
        yield EndOfBytes()
        for part in self._parts(replace(answer, text="", thinking=""), number):
            yield part

    def _parts(self, answer: ScriptedAnswer, number: int) -> Iterator[Part]:
        yield from answer.chunks()
        yield UsagePart(answer.usage)
        finish = answer.finish or ("tool_calls" if answer.calls else "stop")
        if finish in {"stop", "tool_calls"}:
            for at, call in enumerate(answer.calls):
                call_id = call.id or f"call_{number}_{at}"
                yield CallPart(ToolCall(call_id, call.name, call.arguments, problem=call.problem))
        elif answer.calls:
            cut = (describe_cut_call(call.name, json.dumps(call.arguments)) for call in answer.calls)
            yield BlockedCalls(tuple(cut))
        yield Finished(finish)

    def _answer(self, request: Request, number: int) -> ScriptedAnswer:
        text = ""
        match request.messages[-1:]:
            case (UserTurn(text=words) | ToolResult(content=words),):
                text = words
        for answer in self._script.answers:
            if answer.when is not None and answer.when in text:
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


def _pieces(request: Request) -> tuple[bytes, ...]:
    """The request as JSON. Nothing is sent, but it is on record as the requests of other models are."""
    tools = [tool._asdict() for tool in request.tools]
    start = f'{{"system":{json.dumps(request.system)},"tools":{json.dumps(tools)},"messages":['
    messages = [json.dumps(to_builtins(each)) for each in request.messages]
    pieces = (start, *messages[:1], *(f",{each}" for each in messages[1:]), "]}")
    return tuple(piece.encode() for piece in pieces)


def _place(problem: Problem) -> str:
    return "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in problem.path).lstrip(".")


def _chunks(text: str | tuple[str, ...]) -> Sequence[str]:
    return re.findall(r"\s*\S+\s*", text) or [text][: len(text)] if isinstance(text, str) else text
