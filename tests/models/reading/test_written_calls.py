"""A call that a model writes as text is made when the answer ends with it, and shown to nobody as text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.models.model import AssistantTurn, CallPart, Part, Request, Text, ToolResult, UserTurn
from handrail.models.reading.collector import collect_answer
from handrail.models.reading.tool_calls import WrittenCallReader, calls_in_text
from tests.models.fake_server import FakeServer, Reply, Said, openai_bytes
from tests.models.wires import FORMATS, TOOLS, model_at, request

NAMES = {"read", "edit"}
READ = '{"name": "read", "arguments": {"path": "a"}}'
FENCED = f"```json\n{READ}\n```"
TAGGED = f"<tool_call>\n{READ}\n</tool_call>"


@pytest.mark.parametrize(
    "text",
    [
        f"I will look.\n{FENCED}",
        f"I will look.\n  {FENCED}\n\n",
        '```\n{"tool": "read", "args": {"path": "a"}}\n```',
        f"```json\r\n{READ}\r\n```\r\n",
        TAGGED,
        f"I will look. {TAGGED}\n</answer>\n",
        f"```python\nprint()\n```\nNow:\n{FENCED}",
        '{"name": "read", "parameters": {"path": "a"}}',
        f"I will look.\n{READ}\n",
        f'The settings are\n{{"a": [1]}}\nand so\n{READ}',
        json.dumps(json.loads(READ), indent=2),
        '{"type": "function", "function": {"name": "read", "arguments": "{\\"path\\": \\"a\\"}"}}',
        f"```json\n[{READ}]\n```",
    ],
)
def test_call_at_the_end_of_an_answer_is_understood(text: str) -> None:
    calls = calls_in_text(text, NAMES)
    assert [(call.name, call.arguments, call.problem) for call in calls] == [("read", {"path": "a"}, "")]


@pytest.mark.parametrize("between", ["\n", "\n\n  "])
@pytest.mark.parametrize("written", [FENCED, TAGGED, READ])
def test_calls_side_by_side_at_the_end_are_all_made(written: str, between: str) -> None:
    assert len(calls_in_text(f"Both.\n{written}{between}{written}", NAMES)) == 2


@pytest.mark.promise("MOD-5")
@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"name": "delete_everything", "arguments": {}}\n```',
        '```json\n{"name": "read"}\n```',
        '```json\n{"name": "read", "arguments": {"path": \n```',
        f"```json\n{READ}",
        f"<tool_call>{READ}",
        READ[:-1],
        f"Call it as {READ} please.",
        f"Call it as {READ}",
        '{"name": "read", "arguments": ["a"]}',
        f'```json\n[{READ}, {{"a": 1}}]\n```',
        "plain words",
        "",
    ],
)
def test_text_that_is_no_whole_call_of_an_offered_tool_is_text(text: str) -> None:
    assert calls_in_text(text, NAMES) == ()


@pytest.mark.promise("MOD-16")
@pytest.mark.parametrize("written", [FENCED, TAGGED, READ, f"{FENCED}\n{FENCED}"])
@pytest.mark.parametrize("after", ["It is only an example.", "<br>", '```python\n"x"\n```', '{"name": "x"}'])
def test_call_that_is_followed_by_anything_is_a_quotation(written: str, after: str) -> None:
    assert calls_in_text(f"The page shows:\n{written}\n{after}", NAMES) == ()


@pytest.mark.promise("MOD-16")
def test_call_inside_a_larger_block_of_code_is_a_quotation() -> None:
    assert calls_in_text(f"````md\n{FENCED}\n````", NAMES) == ()
    assert calls_in_text(f"```python\nx = 1\n{READ}\n```", NAMES) == ()
    assert calls_in_text(f"```\nUse\n{TAGGED}\n```", NAMES) == ()


def test_of_calls_with_words_between_only_the_last_is_at_the_end() -> None:
    other = FENCED.replace('"a"', '"b"')
    assert [call.arguments for call in calls_in_text(f"{FENCED}\nand\n{other}", NAMES)] == [{"path": "b"}]


MARKS = ["```", "```json\n", "```python\n", "`", "<tool_call>", "</tool_call>", "</b>", "<", "/"]
OTHERS = [
    "\n",
    "\r\n",
    " ",
    "word ",
    "{",
    '{"a',
    '"',
    "\\",
    "[",
    "]",
    "}",
    '{"b": 1}\n',
    READ,
    FENCED,
    TAGGED,
]
PIECES = st.sampled_from([*MARKS, *OTHERS])


def streamed(text: str, sizes: list[int]) -> tuple[str, list[tuple[str, object]]]:
    reader, shown, at = WrittenCallReader(NAMES), "", 0
    while at < len(text):
        size = sizes[at % len(sizes)]
        shown += reader.feed(text[at : at + size])
        at += size
    ending = reader.end(calls_count=True)
    return shown + ending.text, [(call.name, call.arguments) for call in ending.calls]


@given(st.lists(PIECES, max_size=12).map("".join), st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_answer_reads_the_same_however_it_is_split(text: str, sizes: list[int]) -> None:
    shown, calls = streamed(text, sizes)
    assert (shown, calls) == streamed(text, [len(text) + 1])
    assert text.startswith(shown)
    assert shown == text or calls


@pytest.mark.parametrize(
    "unit",
    ["```x\n", "<tool_call>", "```\n{\n", '{"a":\n', '<tool_call>{"', '```\n{"\n', "[\n", "</b>", "\n "],
)
def test_answer_of_nothing_but_beginnings_is_read_once(unit: str) -> None:
    text = unit * 100_000
    assert calls_in_text(text, NAMES) == ()


def test_words_are_shown_at_once_and_calls_are_held_back() -> None:
    reader = WrittenCallReader(NAMES)
    assert reader.feed("I look. <b") == "I look. <b"
    assert reader.feed("> a `x`\n```json\n{") == "> a `x`\n"
    assert reader.feed('"name": "rea') == ""
    assert reader.feed('d"}\n```\nno') == '```json\n{"name": "read"}\n```\nno'
    assert reader.feed("\n```python\nx =") == "\n```python\nx ="
    assert reader.feed(f" 1\n```\n{READ}") == " 1\n```\n"
    assert reader.feed(" is how") == f"{READ} is how"


def test_nothing_is_held_back_where_no_tool_was_offered() -> None:
    assert WrittenCallReader(()).feed(FENCED) == FENCED


@pytest.mark.anyio
@pytest.mark.promise("MOD-17")
@pytest.mark.parametrize("written", [FENCED, TAGGED, READ])
@pytest.mark.parametrize("step", [1, 4, 1000])
async def test_written_call_is_made_and_never_shown(written: str, step: int) -> None:
    text = f"I will look.\n{written}\n"
    said = Said(text=tuple(text[at : at + step] for at in range(0, len(text), step)))
    parts: list[Part] = []
    with FakeServer([said]) as server:
        async with model_at(server, FORMATS[0]) as model:
            parts = [part async for part in model.stream(request())]
    assert "".join(part.text for part in parts if isinstance(part, Text)) == "I will look.\n"
    assert [part.call.arguments for part in parts if isinstance(part, CallPart)] == [{"path": "a"}]


@pytest.mark.anyio
@pytest.mark.promise("MOD-17")
@pytest.mark.parametrize("finish", ["length", "filtered"])
async def test_written_call_of_a_cut_answer_is_text(finish: str) -> None:
    with FakeServer([Said(text=(FENCED,), finish=finish)]) as server:
        async with model_at(server, FORMATS[0]) as model:
            got = await collect_answer(model.stream(request()))
    assert (got.text, got.calls) == (FENCED, ())


@pytest.mark.anyio
async def test_text_beside_native_calls_stays_text() -> None:
    body = openai_bytes(Said(text=(FENCED,), calls=(("c", "list", "{}"),)))
    with FakeServer([Reply(body)]) as server:
        async with model_at(server, FORMATS[0]) as model:
            got = await collect_answer(model.stream(request()))
            assert got.text == FENCED
            assert [call.name for call in got.calls] == ["list"]


@pytest.mark.anyio
async def test_next_request_shows_a_written_call_as_a_call() -> None:
    with FakeServer([Said(text=(f"I look.\n{FENCED}",)), Said(text=("done",))]) as server:
        async with model_at(server, FORMATS[0]) as model:
            got = await collect_answer(model.stream(request()))
            said = AssistantTurn(got.text, got.calls, got.opaque)
            result = ToolResult(got.calls[0].id, "read", "text of a")
            await collect_answer(model.stream(Request("", (UserTurn("Hi"), said, result), TOOLS)))
        sent = server.requests[-1].json["messages"][1]
    assert sent["content"] == "I look.\n"
    assert [json.loads(call["function"]["arguments"]) for call in sent["tool_calls"]] == [{"path": "a"}]
