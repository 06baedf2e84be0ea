"""Model output is read whole or not at all."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.models.model import CallPart, Text, Thinking
from handrail.models.reading.collector import AnswerCollector, ThinkTagSplitter
from handrail.models.reading.tool_calls import describe_cut_call, read_arguments, read_call
from handrail.protocol.events import Answered
from handrail.protocol.upcast import dump_event, load_event

TOOLS = {"read", "edit"}


@pytest.mark.parametrize(
    "text",
    [
        '{"path": "a"}',
        ' \n{"path": "a"}\n',
        '```json\n{"path": "a"}\n```',
        'Here you go:\n```\n{"path": "a"}\n```\nDone.',
        'The arguments are {"path": "a"} as asked.',
        '"{\\"path\\": \\"a\\"}"',
        '<think>a</think>\n<think>{}</think>\n{"path": "a"}',
        "<think></think>" * 50_000 + '{"path": "a"}',
    ],
)
def test_one_whole_object_is_found(text: str) -> None:
    assert read_arguments(text) == ({"path": "a"}, "", "whole")


@pytest.mark.promise("MOD-4")
@pytest.mark.parametrize(
    "text",
    [
        '{"path": "a"',
        '{"outer": {"path": "a"}, ',
        '{"path": "a"} {"path": "b"}',
        "[1, 2]",
        "path=a",
        '{"size": NaN}',
        '{"path": "a", "path": "b"}',
        '{"path": "a" /* and some words */}',
        '"text"',
        "{" * 5000,
        '{"a":' * 100_000,
        '{"half": "\\ud83d"}',
        '{"seconds": 1e999}',
        '{"seconds": [-1e999]}',
        '{"a":' + "[" * 32 + "]" * 32 + "}",
        '{"a":' + "[" * 210 + "]" * 210 + "}",
    ],
)
def test_anything_else_is_a_problem_and_never_a_guess(text: str) -> None:
    values, problem, _ = read_arguments(text)
    assert values == {}
    assert problem


@pytest.mark.promise("MOD-19")
@pytest.mark.parametrize(
    "text",
    [
        '{"path": "a", "text": "b\\nc",}',
        "{'path': 'a', 'text': 'b\\nc'}",
        '{"path": "a", "text": "b\nc"}',
        '{path: "a", text: "b\\nc"}',
        'Here:\n{"path": "a" "text": "b\\nc"}\nDone.',
    ],
)
def test_malformed_arguments_are_repaired_and_marked_where_nothing_is_lost(text: str) -> None:
    assert read_arguments(text) == ({"path": "a", "text": "b\nc"}, "", "repaired")


@pytest.mark.promise("MOD-20")
@pytest.mark.parametrize(
    "text",
    ['{"path": "a", "text": "b', '{"path": "a"', "{'path': 'a', 'text': [1, 2", '```json\n{"path": "a"\n```'],
)
def test_what_was_left_open_is_cut_and_not_repaired(text: str) -> None:
    values, problem, read = read_arguments(text)
    assert (values, read) == ({}, "cut")
    assert problem


@pytest.mark.promise("MOD-20")
def test_one_call_that_breaks_off_blocks_all_calls_of_its_answer() -> None:
    collector = AnswerCollector()
    for text in ('{"path": "a"}', '{"path": "b"'):
        collector.add(CallPart(read_call("", "read", text)))
    assert [(call.read, bool(call.problem)) for call in collector.answer().calls] == [("cut", True)] * 2


@pytest.mark.promise("MOD-4")
@settings(deadline=None)
@given(
    st.dictionaries(
        st.text(), st.recursive(st.integers() | st.text() | st.booleans(), st.lists, max_leaves=5)
    )
)
def test_no_prefix_of_arguments_is_taken_for_the_whole(values: dict[str, object]) -> None:
    whole = json.dumps(values)
    assert read_arguments(whole).values == values
    for end in range(1, len(whole)):
        got = read_arguments(whole[:end])
        assert got.problem
        assert got.values == {}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"path": "src/cart.py", "edits": [{"search": "a', "edit src/cart.py"),
        ('{"path": "src/ca', "edit src/ca"),
        ('{"command": "make\\n  test"', "edit make test"),
        ("", "edit"),
        ("{{{", "edit"),
        ('{"path": "' + "x" * 500, "edit " + "x" * 195),
    ],
)
def test_of_a_call_that_breaks_off_a_person_is_told_what_it_was_about(arguments: str, told: str) -> None:
    assert describe_cut_call("edit", arguments) == told


def test_deepest_arguments_that_are_taken_can_be_stored_and_read_again() -> None:
    call = read_call("c", "read", '{"a":' + "[" * 31 + "]" * 31 + "}")
    assert call.problem == ""
    event = Answered(
        turn_id="t", request_id="r", message_id="m", model="x/y", text="", calls=(call,), end="stop"
    )
    assert load_event(1, dump_event(event)) == event


def test_no_arguments_are_an_empty_object() -> None:
    assert read_arguments("  ") == ({}, "", "whole")


def test_characters_sent_in_halves_are_joined() -> None:
    assert read_arguments('{"a": "' + "\ud83c" + "\udf0d" + '"}').values == {"a": "🌍"}


def test_call_without_id_gets_one_and_without_name_has_a_problem() -> None:
    assert read_call("", "read", "{}").id
    assert read_call("c", "", "{}").problem


def split(text: str, size: int) -> tuple[str, str]:
    reader = ThinkTagSplitter()
    parts = [part for at in range(0, len(text), size) for part in reader.feed(text[at : at + size])]
    parts += reader.end()
    thinking = "".join(part.text for part in parts if isinstance(part, Thinking))
    return thinking, "".join(part.text for part in parts if isinstance(part, Text))


@pytest.mark.parametrize(
    ("text", "thinking", "shown"),
    [
        ("<think>hm</think>\n\nHi", "hm", "Hi"),
        ("\n <think>a </thin b</think>c", "a </thin b", "c"),
        ("<think>never closed", "never closed", ""),
        ("Use <think> tags", "", "Use <think> tags"),
        ("<thin", "", "<thin"),
        ("  \n", "", "  \n"),
        ("", "", ""),
        ("a\ud83c\udf0db", "", "a🌍b"),
        ("half \ud83c", "", "half \ufffd"),
        ("<think>\ud83c\udf0d</think>ok", "🌍", "ok"),
    ],
)
def test_thinking_in_tags_is_split_off_whatever_the_chunks(text: str, thinking: str, shown: str) -> None:
    for size in range(1, len(text) + 2):
        assert split(text, size) == (thinking, shown)


def test_text_is_shown_at_once_when_it_cannot_be_a_tag() -> None:
    assert ThinkTagSplitter().feed("Hello <") == [Text("Hello <")]
