"""One slip in a whole answer, at every place: read right or refused, and never read as something else."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from handrail.models.reading.json_reader import parse_answer
from handrail.models.reading.tool_calls import read_arguments
from tests.models.reading.test_malformed import TEXT, TRUTH, Value, many, of

CASES: list[tuple[Value, Value]] = [
    (
        of(("path", "text"), path=TEXT, text=TEXT, base_hash=TEXT),
        {"path": "a.js", "text": 'const s = "}" + x; // "fine"\n', "base_hash": "abc"},
    ),
    (
        of(("path", "text"), path=TEXT, text=TEXT),
        {"path": "src/a.py", "text": 'def f(x):\n    return {"a": "}", "b": x} if x else "y"\n'},
    ),
    (
        of(("path", "edits"), path=TEXT, edits=many(of((), search=TEXT, replace=TEXT)), base_hash=TEXT),
        {
            "path": "x.py",
            "edits": [{"search": "x = 1", "replace": "x = 2"}, {"search": "y = {", "replace": "y = ["}],
            "base_hash": "h1",
        },
    ),
    (
        of(("command",), command=TEXT, why=TEXT, network=TRUTH),
        {"command": 'git commit -m "a, b"', "why": "to save", "network": False},
    ),
    (
        of(("path", "text"), path=TEXT, text=TEXT),
        {"path": "README.md", "text": 'Run:\n```json\n{"path": "b.md", "text": "c"}\n```\nDone.\n'},
    ),
    (
        of(("sizes",), sizes=many({"type": "integer"}), done=TRUTH, words=many(TEXT)),
        {"sizes": [1, 20, 3], "done": True, "words": ["a", " ", 'echo " "']},
    ),
]
OTHER = {"{": "[", "[": "{", "}": "]", "]": "}"}


def slips(text: str) -> Iterator[str]:
    """The text with one slip of a model's: something forgotten, doubled, swapped or of the other kind."""
    for at, mark in enumerate(text):
        before, after = text[:at], text[at + 1 :]
        if mark == "\\":
            yield before + {"n": "\n"}.get(after[0], after[0]) + after[1:]
        if mark in '{}[],:"':
            yield before + after
            yield before + mark + mark + after
            yield before + after[:1].strip() + mark + after[1:]
        if mark in OTHER:
            yield before + OTHER[mark] + after
        if mark == '"':
            yield f"{before}'{after}"
        if mark == ":":
            for made_up in ("!", "-", "not ", "~"):
                yield f"{before}: {made_up}{after.lstrip()}"
    yield text.replace('\\"', '"')
    yield text.replace("\\n", "\n")
    yield text.replace("\\n", "\n").replace('\\"', '"')
    yield f"{text[:-1]}, }}"


def without_one_value(text: str, value: Value) -> Iterator[str]:
    for name, inner in value.items():
        yield text.replace(f'"{name}": {json.dumps(inner)}', f'"{name}": ')


def malformed(value: Value) -> list[str]:
    """What is no JSON: what is says what it says."""
    found: dict[str, None] = {}
    for text in (json.dumps(value), json.dumps(value, indent=1)):
        found |= dict.fromkeys((*slips(text), *without_one_value(text, value)))
    return [text for text in found if not _is_json(text)]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def opened(schema: Any) -> Any:
    """The schema, with room for more at every place."""
    if isinstance(schema, dict):
        return {name: opened(inner) for name, inner in schema.items() if name != "additionalProperties"}
    return schema


@pytest.mark.promise("MOD-22")
def test_an_answer_with_one_slip_is_read_right_or_refused() -> None:
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for schema, value in CASES:
        for text in malformed(value):
            for each in (schema, opened(schema)):
                read = parse_answer(text, each).value
                counts["refused" if read is None else "right"] += 1
                if read is not None and read != value:
                    wrong.append(f"{text!r} was read as {read}")
    assert not wrong, "\n".join(wrong)
    assert counts["right"] >= 60, counts
    assert counts.total() >= 1_000, counts


@pytest.mark.promise("MOD-4")
@pytest.mark.parametrize(
    "text",
    [
        '{"path": "a.js", "text": "const s = "}" + x;\\nlast();\\n"}',
        '{"path": "a.py", "text": "d = {\\"a\\": \\"b"} if x else y\\n"}',
        '{"path": "a.py", "text": "x"}, "base_hash": "abc"}',
        '{"path": "a.py", "text": "x"}}',
        '{"path": "a.py", "text": "x"} "base_hash": "abc"',
        '{"path": "a.py", "text": "x"}\\n"',
        '"path": "a.py", "edits": {"search": "x", "replace": "y"}',
        '[{"path": "a.py", "text": "x"}]',
        '[{"path": "a.py", "text": "x"}',
    ],
)
def test_what_goes_on_around_an_object_is_not_dropped(text: str) -> None:
    values, problem, _ = read_arguments(text)
    assert values == {}
    assert problem


@pytest.mark.promise("MOD-19")
@pytest.mark.parametrize(
    "text",
    [
        '{"path": "a.py", "text": }',
        '{"path": "a.py", "edits": [{"search": "abc", "replace": }]}',
        '{"path": , "text": "x"}',
        '{"done": !true, "path": "a"}',
        '{"size": - 5, "path": "a"}',
        '{"size": 1 5, "path": "a"}',
        '{"size": 1,000, "path": "a"}',
        '{"size": 0x10, "path": "a"}',
        '{"path": "a", "words": ["b" "c"]}',
        '{"path": "a", "words": ["b",, "c"]}',
        '{"path": "a," "text": "b"}',
        '{"path": "a" + "b"}',
        '{"path": a}',
        '{"path": "a", ...}',
        '{"path": "a", // closes }\n "text": "x"}',
        '{"path": "a", "text": "b\\\nc"}',
        '{"pa\nth": "a"}',
        "{'path': 'a\\/b'}",
    ],
)
def test_a_repair_makes_nothing_up_and_leaves_nothing_out(text: str) -> None:
    values, problem, _ = read_arguments(text)
    assert values == {}
    assert problem
