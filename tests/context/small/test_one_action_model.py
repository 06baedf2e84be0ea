"""One action at a time: what a small model may say, and how it is read."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from handrail.context.small.one_action_model import (
    ActionReader,
    OneActionModel,
    as_action_request,
)
from handrail.models.model import (
    ActionChoices,
    Alternatives,
    AssistantTurn,
    CallPart,
    Finished,
    Part,
    Progress,
    Request,
    Text,
    ToolResult,
    ToolSpec,
    UsagePart,
    UserTurn,
)
from handrail.models.providers import all_connections
from handrail.models.reading.collector import collect_answer
from handrail.models.scripted_model import ScriptedModel
from handrail.models.wire.openai import request_body
from handrail.protocol.values import ToolCall, Usage

pytestmark = pytest.mark.anyio

WANTED = "whole new a.py"
READ = ToolSpec("read", "Show a file.", {"properties": {"path": {}, "start": {}}, "required": ["path"]})
WRITE = ToolSpec("write", "Write a file.", {"properties": {}, "required": ["path", "text"]})


def request(*messages: Any) -> Request:
    return Request(
        system="Be brief.",
        messages=messages or (UserTurn("fix it"),),
        tools=(READ, WRITE),
        choices=ActionChoices(paths=("a.py", "test_a.py"), writable=("a.py",)),
    )


def test_schema_leaves_only_actions_and_paths_that_there_are() -> None:
    schema = as_action_request(request()).output_schema
    assert schema
    read, write, answer = schema["oneOf"]
    assert read["properties"] == {"action": {"const": "read"}, "path": {"enum": ["a.py", "test_a.py"]}}
    assert write["properties"]["path"] == {"enum": ["a.py"]}
    assert list(write["properties"]) == ["action", "why", "path"]
    assert answer["required"] == ["action", "text"]


def test_actions_that_make_no_sense_now_cannot_be_chosen_and_the_prompt_stays_the_same() -> None:
    asked = as_action_request(replace(request(), choices=ActionChoices(actions=("read",))))
    assert asked.output_schema
    names = [action["properties"]["action"]["const"] for action in asked.output_schema["oneOf"]]
    assert names == ["read", "answer"]
    assert asked.system == as_action_request(request()).system


def test_earlier_calls_and_results_are_words() -> None:
    call = ToolCall(id="c", name="read", arguments={"path": "a.py"})
    asked = as_action_request(
        request(
            UserTurn("fix it"),
            AssistantTurn("", (call,)),
            ToolResult("c", "read", "1\tx = 1\n2\ty = 2"),
            AssistantTurn("done"),
        )
    )
    assert asked.tools == ()
    assert [getattr(message, "text", "") for message in asked.messages] == [
        "fix it",
        '{"action": "read", "path": "a.py"}',
        "Result of read:\nx = 1\ny = 2",
        '{"action": "answer", "text": "done"}',
    ]


async def test_action_becomes_a_call_and_answer_becomes_text() -> None:
    acting = json.dumps({"action": "read", "path": "a.py"})
    model = OneActionModel(ScriptedModel([{"text": [acting[:20], acting[20:]]}]))
    answer = await collect_answer(model.stream(request()))
    assert (answer.text, answer.finish) == ("", "tool_calls")
    assert [(call.name, call.arguments) for call in answer.calls] == [("read", {"path": "a.py"})]
    model = OneActionModel(ScriptedModel([{"text": [json.dumps({"action": "answer", "text": "Hi"})]}]))
    answer = await collect_answer(model.stream(request()))
    assert (answer.text, answer.calls, answer.finish) == ("Hi", (), "stop")


async def test_text_of_a_file_is_asked_for_when_the_action_is_taken() -> None:
    acting = json.dumps({"action": "write", "why": "1 is wrong", "path": "a.py"})
    first, second = Usage(input_tokens=30, output_tokens=9), Usage(input_tokens=50, output_tokens=4)
    inner = ScriptedModel(
        [{"when": WANTED, "text": ["x = ", "2"], "usage": second}, {"text": [acting], "usage": first}]
    )
    answer = await collect_answer(OneActionModel(inner).stream(request()))
    assert [(call.name, call.arguments) for call in answer.calls] == [
        ("write", {"path": "a.py", "text": "x = 2\n"})
    ]
    assert answer.usage == first + second
    asked = inner.requests[-1]
    assert (asked.prefill, asked.output_schema) == ("```python\n", None)
    assert [str(getattr(said, "text", "")) for said in asked.messages] == [
        "fix it\n\nAnswer with the whole new a.py in one code block."
    ]


async def test_a_heading_of_ours_that_was_copied_is_not_written() -> None:
    acting = json.dumps({"action": "write", "why": "", "path": "a.py"})
    inner = ScriptedModel(
        [{"when": WANTED, "text": ["# a.py [hash: 0123456789ab]\n\nx = 2"]}, {"text": [acting]}]
    )
    answer = await collect_answer(OneActionModel(inner).stream(request()))
    assert answer.calls[0].arguments["text"] == "x = 2\n"


async def test_how_much_of_the_code_is_written_can_be_followed() -> None:
    acting = json.dumps({"action": "write", "why": "", "path": "a.py"})
    inner = ScriptedModel([{"when": WANTED, "text": ["    return", " 2"]}, {"text": [acting]}])
    model = OneActionModel(inner)
    progress = [part async for part in model.stream(request()) if isinstance(part, Progress)]
    assert [(each.what, each.done) for each in progress] == [("writing", 1), ("writing", 2)]


async def test_text_that_was_cut_off_writes_nothing() -> None:
    acting = json.dumps({"action": "write", "why": "", "path": "a.py"})
    inner = ScriptedModel([{"when": WANTED, "text": ["x = "], "finish": "length"}, {"text": [acting]}])
    answer = await collect_answer(OneActionModel(inner).stream(request()))
    assert (answer.calls, answer.finish) == ((), "length")


def test_what_was_written_is_shown_as_it_was_written() -> None:
    call = ToolCall(id="c", name="write", arguments={"path": "a.py", "text": "x = 2\n"})
    (said,) = as_action_request(request(AssistantTurn("", (call,)))).messages
    assert said.text == '{"action": "write", "path": "a.py"}\n```python\nx = 2\n```'  # type: ignore[union-attr]


BEGUN = replace(request(), tools=(), choices=None, prefill="```python\ndef f():\n", stop=("```",))


async def test_an_answer_that_is_begun_is_passed_on_as_it_is() -> None:
    body = request_body(all_connections({})["ollama"], "m", BEGUN)
    assert body["messages"][-1] == {"role": "assistant", "content": BEGUN.prefill}
    assert body["stop"] == ["```"]
    answer = await collect_answer(OneActionModel(ScriptedModel([{"text": "    return 2"}])).stream(BEGUN))
    assert (answer.text, answer.calls, answer.finish) == ("    return 2", (), "stop")


class Weighing(ScriptedModel):
    """Says how it could go on, one token at a time."""

    async def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        self.requests.append(request)
        yield Alternatives(((" +", 0.75), (" -", 0.25)))
        yield Text(" +")
        yield UsagePart(Usage(input_tokens=5, output_tokens=1))
        yield Finished("length")


async def test_weighing_tells_how_likely_each_way_to_go_on_is() -> None:
    inner = Weighing([])
    parts = OneActionModel(inner).stream(replace(BEGUN, weighs=("    ", "    return a")))
    answer = await collect_answer(parts)
    options = [[" +", 0.75], [" -", 0.25]]
    assert json.loads(answer.text) == [["    ", options], ["    return a", options]]
    assert (answer.finish, answer.usage) == ("stop", Usage(input_tokens=10, output_tokens=2))
    assert [each.prefill for each in inner.requests] == [
        "```python\ndef f():\n    ",
        "```python\ndef f():\n    return a",
    ]
    body = request_body(all_connections({})["ollama"], "m", inner.requests[0])
    assert (body["logprobs"], body["top_logprobs"], body["max_tokens"]) == (True, 8, 1)


async def test_a_model_that_cannot_say_it_is_asked_once() -> None:
    inner = ScriptedModel([{"text": "x"}])
    answer = await collect_answer(OneActionModel(inner).stream(replace(BEGUN, weighs=("a", "b", "c"))))
    assert (answer.text, len(inner.requests)) == ("[]", 1)


async def test_action_that_was_cut_off_is_no_call() -> None:
    cut = '{"action": "write", "path": "a.py", "text": "x ='
    model = OneActionModel(ScriptedModel([{"text": [cut], "finish": "length"}]))
    answer = await collect_answer(model.stream(request()))
    assert (answer.calls, answer.finish) == ((), "length")


@given(st.text(), st.integers(min_value=1, max_value=7), st.booleans())
def test_words_of_an_answer_stream_as_they_are(words: str, step: int, ascii_only: bool) -> None:
    words = words.encode("utf-8", "ignore").decode()
    written = json.dumps({"action": "answer", "text": words}, ensure_ascii=ascii_only)
    reader = ActionReader()
    shown = "".join(reader.feed(written[at : at + step]) for at in range(0, len(written), step))
    last: list[Part] = list(reader.end("stop"))
    text = shown + "".join(part.text for part in last if isinstance(part, Text))
    assert text == words
    assert last[-1] == Finished("stop")
    assert not any(isinstance(part, CallPart) for part in last)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ('{"action": "answer", "text": "use \\d+ here"}', "use \\d+ here"),
        ('{"action": "answer", "text": "\\u12G4 x"}', "\\u12G4 x"),
        ('{"action": "answer", "text": "one\ntwo"}', "one\ntwo"),
        ('{"text": "Hi", "action": "answer"}', "Hi"),
        ('{"action": "answer", "text": "Nothing is done.", "action": "run"}', "Nothing is done."),
        ('{"action": "run", "command": "\\d"}', '{"action": "run", "command": "\\d"}'),
        ("no action", "no action"),
    ],
)
def test_what_is_no_json_is_words_and_never_an_action(written: str, words: str) -> None:
    for step in range(1, len(written) + 1):
        reader = ActionReader()
        shown = "".join(reader.feed(written[at : at + step]) for at in range(0, len(written), step))
        *last, finished = reader.end("stop")
        assert shown + "".join(part.text for part in last if isinstance(part, Text)) == words
        assert finished == Finished("stop")
