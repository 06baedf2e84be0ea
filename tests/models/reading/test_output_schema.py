"""Answers by a schema of the user's."""

import json

import pytest

from handrail.models.reading.output_schema import read_output, schema_problem

OBJECT = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}
LIST = {"type": "array", "items": {"$ref": "#/$defs/item"}, "$defs": {"item": {"type": "string"}}}


@pytest.mark.parametrize(
    ("answer", "schema", "output"),
    [
        ('{"a": 1}', OBJECT, '{"a": 1}'),
        ('<think>{"a": 2}</think>{"a": 1}', OBJECT, '{"a": 1}'),
        ('Sure:\n```json\n{"a": 1}\n```', OBJECT, '{"a": 1}'),
        ('The answer is {"a": 1}.', OBJECT, '{"a": 1}'),
        ('["x"]', LIST, '["x"]'),
        ('```\n["x"]\n```', LIST, '["x"]'),
        ('"yes"', {"enum": ["yes", "no"]}, '"yes"'),
    ],
)
def test_the_value_is_found_and_printed_as_json(answer: str, schema: dict[str, object], output: str) -> None:
    assert read_output(answer, schema).json == output


@pytest.mark.parametrize(
    ("answer", "schema"),
    [
        ('{"a": "1"}', OBJECT),  # nothing is converted
        ('{"a": 1e999}', OBJECT),
        ('{"a": NaN}', OBJECT),
        ('{"a": 1', OBJECT),
        ('{"a": 1} or {"a": 2}', OBJECT),
        ("", OBJECT),
        ("[1]", LIST),
        ("yes", {"enum": ["yes", "no"]}),
        ('{"a": "\\ud800"}', {}),
    ],
)
def test_what_does_not_fit_is_no_output_and_the_problem_is_named(
    answer: str, schema: dict[str, object]
) -> None:
    found = read_output(answer, schema)
    assert found.json == ""
    assert all(found.problems)
    assert found.problems


def test_a_schema_with_every_common_keyword_is_accepted() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://example.org/order.json",
        "definitions": {"line": {"type": "object", "patternProperties": {"^x-": {}}}},
        "type": "object",
        "properties": {"lines": {"type": "array", "items": {"$ref": "#/definitions/line"}}},
        "oneOf": [{"required": ["lines"]}, {"required": ["none"]}],
    }
    assert schema_problem(schema) == ""
    assert read_output('{"lines": [{"x-a": 1}]}', schema).json == '{"lines": [{"x-a": 1}]}'
    assert schema_problem(json.loads('{"a":' * 150 + "{}" + "}" * 150)) == "it is nested too deeply"


def test_null_is_a_value_where_the_schema_allows_it() -> None:
    schema = {"type": ["object", "null"]}
    assert [read_output(text, schema).json for text in ("null", "```json\nnull\n```")] == ["null", "null"]
    assert read_output("nothing", schema).json == ""


def test_references_are_read_as_json_schema_has_them() -> None:
    inner = {"$id": "b", "properties": {"c": {"$ref": "#/$defs/d"}}, "$defs": {"d": {"type": "string"}}}
    schema = {"$id": "https://example.org/a", "properties": {"x": {"$ref": "b"}}, "$defs": {"b": inner}}
    assert schema_problem(schema) == ""
    assert read_output('{"x": {"c": 1}}', schema).problems
    assert schema_problem({"const": {"$ref": "a value, and no reference"}}) == ""


@pytest.mark.parametrize(
    "schema",
    [
        '{"type": "number", "maximum": NaN}',
        '{"maximum": 1e999}',
        '{"const": "\\ud800"}',
        '{"properties": {"a": {"$dynamicRef": "https://example.org/other"}}}',
        '{"$id": "http://["}',
        '{"title": "x", "properties": {"a": {"$ref": "#/title"}}}',
        '{"enum": [1], "properties": {"a": {"$ref": "#/enum/x"}}}',
    ],
)
def test_a_schema_by_which_no_answer_can_be_checked_is_refused(schema: str) -> None:
    assert schema_problem(json.loads(schema))


def test_a_hostile_answer_or_schema_neither_crashes_nor_stops_the_check() -> None:
    huge = read_output("1" + "0" * 400, {"multipleOf": 0.01})
    assert (huge.json, len(huge.problems)) == ("", 1)
    twice = {f"a{number}": {"allOf": [{"$ref": f"#/$defs/a{number + 1}"}] * 2} for number in range(60)}
    schema = {"$ref": "#/$defs/a0", "$defs": {**twice, "a60": {}}}
    assert "references" in schema_problem(schema)
