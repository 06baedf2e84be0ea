"""The JSON Schemas that a definition may give its answers: what `models/reading.py` holds answers to."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

TYPES = ("object", "array", "string", "number", "integer", "boolean")
NUMBERS = ("minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum")
KEYS = (
    "type",
    "description",
    "properties",
    "required",
    "items",
    "enum",
    "additionalProperties",
    *NUMBERS,
)
DEEPEST, MOST = 6, 200
"""Levels of a schema, and parts of it."""


class Wrong(NamedTuple):
    path: tuple[str, ...]
    said: str


def wrong_in(schema: Mapping[str, Any]) -> Iterator[Wrong]:
    """What an answer could not be held to; nothing where all is well."""
    if schema.get("type") != "object":
        yield Wrong(("type",), 'should be "object", since an answer is one')
    left = [MOST]
    yield from _wrong(schema, (), left)


def _wrong(schema: Any, path: tuple[str, ...], left: list[int]) -> Iterator[Wrong]:
    left[0] -= 1
    if left[0] < 0:
        if left[0] == -1:
            yield Wrong(path, f"has more than {MOST} parts; make it smaller")
        return
    if not isinstance(schema, Mapping):
        yield Wrong(path, "should be a table with a type")
        return
    if len(path) > DEEPEST * 2:
        yield Wrong(path, f"is nested deeper than {DEEPEST} levels; make it flatter")
        return
    if schema.get("type") not in TYPES:
        yield Wrong((*path, "type"), f"should be one of: {', '.join(TYPES)}")
    for key in schema:
        if key not in KEYS:
            yield Wrong((*path, key), f"unknown; answers can be held to: {', '.join(KEYS)}")
    yield from _limits(schema, path)
    yield from _inner(schema, path, left)


def _limits(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Wrong]:
    for key in NUMBERS:
        value = schema.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield Wrong((*path, key), "should be a number")
    choices = schema.get("enum", [0])
    if not isinstance(choices, list) or not choices:
        yield Wrong((*path, "enum"), "should be a list that is not empty")


def _inner(schema: Mapping[str, Any], path: tuple[str, ...], left: list[int]) -> Iterator[Wrong]:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        yield Wrong(path, "properties should be a table, and required a list of their names")
        return
    for name in required:
        if name not in properties:
            yield Wrong((*path, "required"), f"{name!r} is none of the properties")
    if schema.get("type") == "object" and not properties:
        yield Wrong(path, "should say its properties")
    if schema.get("type") == "array" and "items" not in schema:
        yield Wrong(path, "should say its items")
    for name, inner in properties.items():
        yield from _wrong(inner, (*path, "properties", str(name)), left)
    if "items" in schema:
        yield from _wrong(schema["items"], (*path, "items"), left)
