"""Answers as objects of a schema: simple types are mended, everything else is told."""

import json
from typing import Any

import pytest

from handrail.models.reading.json_reader import parse_answer

SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "share": {"type": "number", "minimum": 0, "maximum": 1},
        "done": {"type": "boolean"},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "items": {"type": "array", "maxItems": 2, "items": {"type": "object", "required": ["id"]}},
    },
    "required": ["title"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"title": "x"}', {"title": "x"}),
        ('```json\n{"title": "x", "count": "3"}\n```', {"title": "x", "count": 3}),
        ('<response>{"title": "x", "done": "True"}</response>', {"title": "x", "done": True}),
        ('Sure: {"title": 7, "share": "0.5"}', {"title": "7", "share": 0.5}),
        ('{"title": "x", "count": 3.0, "kind": null}', {"title": "x", "count": 3}),
        ('{"title": "x", "items": [{"id": 1}]}', {"title": "x", "items": [{"id": 1}]}),
    ],
)
def test_what_is_meant_is_read(text: str, value: dict[str, Any]) -> None:
    assert parse_answer(text, SCHEMA).value == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no object here", "not a JSON object"),
        ('{"title": "x"', "cut"),
        ("{}", "`title` is missing"),
        ('{"title": null}', "`title` is not of type string"),
        ('{"title": ""}', "at least 1"),
        ('{"title": "x", "count": "many"}', "`count` is not of type integer"),
        ('{"title": "x", "count": 3.5}', "`count` is not of type integer"),
        ('{"title": "x", "count": true}', "`count` is not of type integer"),
        ('{"title": "x", "count": 10}', "at most 9"),
        ('{"title": "x", "kind": "c"}', "none of: a, b"),
        ('{"title": "x", "items": {}}', "`items` is not of type array"),
        ('{"title": "x", "items": [{}]}', "`items[0].id` is missing"),
        ('{"title": "x", "items": [{"id": 1}, {"id": 2}, {"id": 3}]}', "at most 2"),
        ('{"title": "x", "titel": "y"}', "`titel` is not known: is it `title`?"),
        ('{"title": "x", "item_count": 1}', "is it `count`?"),
        ('{"title": "x", "Done": true}', "is it `done`?"),
        ("{'title': 'x', 'other': 1}", "`other` is not known"),
        ('{"title": 1.10}', "`title` is not of type string: put it in quotes"),
        ('{"title": "x", "share": "nan"}', "`share` is not of type number"),
        ('{"title": "x", "share": "-inf"}', "`share` is not of type number"),
        ('{"title": "x", "share": "1e999"}', "`share` is not of type number"),
        ('{"title": "x", "share": "0.5.1"}', "`share` is not of type number"),
        ('{"title": "x", "count": "0_3"}', "`count` is not of type integer"),
        ('{"title": "x", "count": "\u0663"}', "`count` is not of type integer"),
        ('{"title": "x", "share": "7"}', "at most 1"),
    ],
)
def test_what_is_not_of_the_schema_is_told_and_not_guessed(text: str, problem: str) -> None:
    found = parse_answer(text, SCHEMA)
    assert found.value is None
    assert problem in "; ".join(found.problems)


@pytest.mark.promise("MOD-24")
@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('{"title": "x", "remarks": [1], "sure": 0.9}', ("as_is", "trimmed")),
        ('```\n{"title": "x", "remarks": {}, "kind": null}\n```', ("fenced", "coerced", "trimmed")),
    ],
)
def test_what_nobody_asked_for_is_left_out_and_that_is_on_record(text: str, read: tuple[str, ...]) -> None:
    found = parse_answer(text, SCHEMA)
    assert (found.value, found.read) == ({"title": "x"}, read)


def test_names_without_end_that_nobody_asked_for_are_refused() -> None:
    found = parse_answer(
        json.dumps({"title": "x"} | {f"note {number}": 1 for number in range(2_000)}), SCHEMA
    )
    assert found.value is None
    assert "as 50 others are not" in found.problems[0]


@pytest.mark.promise("MOD-25")
@pytest.mark.parametrize(
    "around",
    [
        ("Sure, here is the JSON you asked for:\n", ""),
        ("", "\nHope this helps! Let me know if you have any questions."),
        ("Here's my answer:\n```json\n", "\n```\nDone."),
        ("<response>\n", "\n</response>"),
    ],
)
def test_courtesies_around_an_answer_do_not_count(around: tuple[str, str]) -> None:
    text = f'{around[0]}{{"title": "x"}}{around[1]}'
    assert parse_answer(text, SCHEMA, alone=True).value == {"title": "x"}


@pytest.mark.promise("MOD-25")
@pytest.mark.parametrize(
    "text",
    [
        'I will not do this. a.py holds an injection, which reads:\n\n```json\n{"title": "x"}\n```\n',
        'a.py says {"title": "x"}',
        '{"title": "x"}\n\nBut do not do that.',
        'Das mache ich nicht:\n{"title": "x"}',
        f'{"Here it is. " * 30}{{"title": "x"}}',
    ],
)
def test_what_words_may_quote_or_deny_is_no_answer(text: str) -> None:
    assert parse_answer(text, SCHEMA, alone=True).problems == ("there is text around the JSON object",)


@pytest.mark.promise("MOD-25")
@pytest.mark.parametrize(
    "text",
    [
        '{"title": "a"}\n```json\n{"title": "b"}\n```',
        '```json\n{"title": "b"}\n```\nor rather {"title": "a"}',
        '{"title": "# Title\n```json\n{"title": "b"}\n```\nend"}',
        '"title": "a", "kind":\n```json\n{"title": "b"}\n```\n}',
        '```\n{"title": "a"}\n```\n```\n{"title": "b"}\n```',
    ],
)
def test_a_fence_does_not_win_over_what_stands_beside_it(text: str) -> None:
    assert parse_answer(text, SCHEMA).value is None


def test_a_text_with_raw_line_breaks_and_a_fence_in_it_is_read_as_a_whole() -> None:
    found = parse_answer('{"title": "a\n```json\n{\\"title\\": \\"b\\"}\n```\n"}', SCHEMA)
    assert found.value == {"title": 'a\n```json\n{"title": "b"}\n```\n'}
    assert found.read == ("repaired",)
