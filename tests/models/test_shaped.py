"""Answers as objects of a schema: simple types are mended, everything else is told."""

from typing import Any

import pytest

from handrail.models.reading import shaped

SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "share": {"type": "number"},
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
    assert shaped(text, SCHEMA).value == value


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
        ('{"title": "x", "other": 1}', "`other` is not known"),
    ],
)
def test_what_is_not_of_the_schema_is_told_and_not_guessed(text: str, problem: str) -> None:
    found = shaped(text, SCHEMA)
    assert found.value is None
    assert problem in "; ".join(found.problems)
