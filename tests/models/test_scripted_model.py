"""The scripted model answers by place in the conversation, so that a fresh process goes on right."""

import json
from pathlib import Path

import anyio
import pytest

from handrail.models.connect import connect
from handrail.models.model import AssistantTurn, Message, Request, Text, ToolResult, UserTurn
from handrail.models.reading.collector import AnswerCollector, collect_answer
from handrail.models.scripted_model import ScriptedModel
from handrail.protocol.errors import Authenticate, FixRequest, GiveUp, ModelProblem, RetryLater, UsageProblem
from handrail.protocol.values import ToolCall, Usage

pytestmark = pytest.mark.anyio

FIRST = (UserTurn("hi"),)
SECOND: tuple[Message, ...] = (
    *FIRST,
    AssistantTurn("", (ToolCall(id="c", name="read"),)),
    ToolResult("c", "read", "x"),
)


def asked(*messages: Message) -> Request:
    return Request(system="", messages=messages)


async def test_file_answers_the_nth_request_of_a_conversation_in_any_process(tmp_path: Path) -> None:
    script = [
        {"thinking": "hm", "calls": [{"name": "read", "arguments": {"path": "a"}}]},
        {"text": "All done.", "usage": {"input_tokens": 3, "output_tokens": 2}},
    ]
    path = tmp_path / "script.json"
    path.write_text(json.dumps(script))
    for _ in range(2):
        model = await connect(f"scripted/{path}", environment={})
        second = await collect_answer(model.stream(asked(*SECOND)))
        first = await collect_answer(model.stream(asked(*FIRST)))
        assert first.calls == (ToolCall(id="call_0_0", name="read", arguments={"path": "a"}),)
        assert (first.thinking, first.finish) == ("hm", "tool_calls")
        assert (second.text, second.finish) == ("All done.", "stop")
        assert second.usage == Usage(input_tokens=3, output_tokens=2)
        assert second.raw


async def test_rules_come_first_and_look_at_the_last_message() -> None:
    model = ScriptedModel([{"text": "plain"}, {"when": "x", "text": "saw x"}])
    assert (await collect_answer(model.stream(asked(*SECOND)))).text == "saw x"
    assert (await collect_answer(model.stream(asked(*FIRST)))).text == "plain"
    assert len(model.requests) == 2


async def test_end_of_the_script_is_said() -> None:
    with pytest.raises(GiveUp, match="no answer number 2"):
        await collect_answer(ScriptedModel([{"text": "one"}]).stream(asked(*SECOND)))


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("retry_later", RetryLater),
        ("fix_request", FixRequest),
        ("authenticate", Authenticate),
        ("give_up", GiveUp),
    ],
)
async def test_errors_are_raised_as_often_as_the_script_says(kind: str, error: type[Exception]) -> None:
    script = [{"text": "a b c", "error": {"kind": kind, "after_chunks": 2, "times": 1, "delay": 3}}]
    model = ScriptedModel(script)
    collector = AnswerCollector()
    raised: ModelProblem | None = None
    try:
        async for part in model.stream(asked(*FIRST)):
            collector.add(part)
    except ModelProblem as problem:
        raised = problem
    assert isinstance(raised, error)
    assert collector.answer().text == "a b "
    if isinstance(raised, RetryLater):
        assert (raised.delay, raised.billed) == (3, True)
    assert (await collect_answer(model.stream(asked(*FIRST)))).text == "a b c"


async def test_test_can_hold_a_chunk_back() -> None:
    go = anyio.Event()

    async def before(_answer: int, at: int) -> None:
        if at == 1:
            await go.wait()

    stream = ScriptedModel([{"text": ["one", "two"]}], before_chunk=before).stream(asked(*FIRST))
    seen = [await anext(stream) for _ in range(3)]
    assert Text("one") in seen
    go.set()
    assert Text("two") in [part async for part in stream]


async def test_truncated_answer_has_no_calls() -> None:
    script = [{"text": "x", "calls": [{"name": "read"}], "finish": "length"}]
    got = await collect_answer(ScriptedModel(script).stream(asked(*FIRST)))
    assert (got.calls, got.finish) == ((), "length")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not JSON at line 1, column 1"),
        (b'[\n{"text": }]', "is not JSON at line 2, column 10"),
        (b"\xff", "is not JSON in UTF-8"),
        (b"[" * 100_000, "is not JSON in UTF-8"),
        (b"7", "is not a list of answers"),
        (b"{}", "is wrong at answers: it is missing"),
        (b"[1]", "is wrong at answers[0]: "),
        (b'[{"text": "a"}, {"txt": "a"}]', "is wrong at answers[1].txt: "),
        (b'{"answers": [{"calls": [{"name": 7}]}]}', "is wrong at answers[0].calls[0].name: "),
    ],
)
async def test_file_that_is_no_script_says_where_in_one_sentence(
    tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "script.json"
    path.write_bytes(content)
    with pytest.raises(UsageProblem) as caught:
        ScriptedModel.load(str(path))
    assert f"the script {path} {words}" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "http" not in str(caught.value)


async def test_missing_script_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="cannot be read"):
        await connect(f"scripted/{tmp_path}/none.json", environment={})
