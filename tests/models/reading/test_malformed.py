"""300 answers made malformed in known ways: read right or refused, and never read as something else."""

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from handrail.models.reading.json_reader import parse_answer

Value = dict[str, Any]
TEXT, WHOLE, NUMBER, TRUTH = {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}


def of(required: tuple[str, ...] = (), **properties: Any) -> Value:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def many(items: Value) -> Value:
    return {"type": "array", "items": items}


CASES: list[tuple[Value, Value]] = [
    (
        of(("route",), route={"enum": ["chat", "agent"], "type": "string"}, why=TEXT),
        {"route": "chat", "why": "a question, it's short"},
    ),
    (
        of(("steps",), steps=many(TEXT), done=TRUTH),
        {"steps": ["read a.py", "run {tests}", 'say "hi"'], "done": False},
    ),
    (of(("score",), score=NUMBER, count=WHOLE, ok=TRUTH), {"score": 12.5, "count": 1234, "ok": True}),
    (
        of(("quotes",), quotes=many(of(("text",), text=TEXT, line=WHOLE))),
        {"quotes": [{"text": "one: two", "line": 10}, {"text": "x, y", "line": 2}]},
    ),
    (
        of(("path", "text"), path=TEXT, text=TEXT),
        {"path": "src/a.py", "text": "def f(x):\n    return {'a': x}\n"},
    ),
    (
        of(("plan",), plan=of(("name",), name=TEXT, size=WHOLE), tags=many(TEXT)),
        {"plan": {"name": "größer <b>", "size": 7}, "tags": ["a", "b"]},
    ),
]
DECOY = '<think>Perhaps {"route": "agent", "score": 1, "path": "b"}? No.</think>\n'


def truncated(value: Value, dice: random.Random) -> str:
    text = json.dumps(value)
    return text[: dice.randrange(12, len(text))]


def fenced(value: Value, dice: random.Random) -> str:
    return f"Here it is:\n```{dice.choice(('json', '', 'JSON'))}\n{json.dumps(value, indent=2)}\n```\nDone."


def cut_in_fence(value: Value, dice: random.Random) -> str:
    return f"```json\n{truncated(value, dice)}"


def after_thinking(value: Value, dice: random.Random) -> str:
    return DECOY + json.dumps(value)


def wrapped(value: Value, dice: random.Random) -> str:
    return f"<response>\n{json.dumps(value)}\n</response>"


def in_prose(value: Value, dice: random.Random) -> str:
    before = dice.choice(("Sure! ", "I use {braces} like this: ", "The answer:\n"))
    return before + json.dumps(value) + dice.choice(("", "\nHope that helps.", " {end}"))


def single_quotes(value: Value, dice: random.Random) -> str:
    return repr(value)


def trailing_commas(value: Value, dice: random.Random) -> str:
    return re.sub(r"(\n\s*[}\]])", r",\1", json.dumps(value, indent=1))


def two_objects(value: Value, dice: random.Random) -> str:
    other = dict(reversed(list(value.items()))) | {next(iter(value)): "other"}
    return f"{json.dumps(value)}\n{json.dumps(other)}"


def wrong_types(value: Value, dice: random.Random) -> str:
    def said(inner: Any) -> Any:
        match inner:
            case bool():
                return str(inner).lower()
            case int() | float():
                return str(inner)
            case dict():
                return {key: said(each) for key, each in inner.items()}
            case list():
                return [said(each) for each in inner]
            case _:
                return inner

    return json.dumps(said(value))


def bare_keys(value: Value, dice: random.Random) -> str:
    text = json.dumps(value)
    for key in value:
        text = text.replace(f'"{key}":', f"{key}:")
    return text


def no_commas(value: Value, dice: random.Random) -> str:
    return json.dumps(value, indent=1).replace(",\n", "\n")


def open_end(value: Value, dice: random.Random) -> str:
    return json.dumps(value).rstrip("}]")


def cut_thinking(value: Value, dice: random.Random) -> str:
    return DECOY.partition("</think>")[0] + json.dumps(value)


MUTATIONS: tuple[Callable[[Value, random.Random], str], ...] = (
    truncated, fenced, cut_in_fence, after_thinking, wrapped, in_prose, single_quotes, trailing_commas,
    two_objects, wrong_types, bare_keys, no_commas, open_end, cut_thinking,
)  # fmt: skip
ANSWERS = 300
NEVER = {truncated, cut_in_fence, two_objects, open_end, cut_thinking}
"""What can only be refused."""
ALWAYS = {fenced, after_thinking, wrapped, wrong_types, trailing_commas}
"""What leaves no doubt; of the others some do."""


def varied(value: Any, number: int) -> Any:
    """The same with other words and numbers."""
    match value:
        case bool() | "chat":
            return value
        case int() | float():
            return value + number
        case str():
            return f"{value} {number}"
        case dict():
            return {key: varied(each, number) for key, each in value.items()}
        case _:
            return [varied(each, number) for each in value]


@pytest.mark.promise("MOD-22")
def test_a_malformed_answer_is_read_right_or_refused() -> None:
    dice = random.Random(7)
    right: Counter[str] = Counter()
    wrong: list[str] = []
    texts: set[str] = set()
    for number in count():
        if len(texts) == ANSWERS:
            break
        mutate = MUTATIONS[number % len(MUTATIONS)]
        schema, plain = CASES[number // len(MUTATIONS) % len(CASES)]
        value = varied(plain, number)
        if (text := mutate(value, dice)) in texts:
            continue
        texts.add(text)
        read = parse_answer(text, schema).value
        right[mutate.__name__] += read == value
        silently = read is not None and (read != value or mutate in NEVER)
        if silently or (read is None and mutate in ALWAYS):
            wrong.append(f"{mutate.__name__}: {text!r} was read as {read}")
    assert not wrong, "\n".join(wrong)
    assert {kind.__name__ for kind in MUTATIONS if right[kind.__name__] == 0} == {
        kind.__name__ for kind in NEVER
    }
    assert right.total() >= ANSWERS * 0.5, right
