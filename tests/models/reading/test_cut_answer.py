"""What is kept of a cut answer: exactly the items that are complete, wherever it was cut."""

import json
from typing import Any

import pytest

from handrail.models.reading.cut_answer import merge_answers, recover_answer
from handrail.models.reading.structured_answer import StructuredReader, _reading_schema, answer_schema
from handrail.protocol.values import AnswerTodo, NextStep, StructuredAnswer, to_dict

SCHEMA = _reading_schema(answer_schema(changing=True))
WHOLE: dict[str, Any] = {
    "summary": 'Adds "tax", \\ and more.',
    "sections": [{"title": "How", "text": "By {sum}, [1] \u00e9 \U0001f600."}],
    "todos": [
        {"text": "write it", "done": False, "command": "true"},
        {"text": "test it", "done": False, "command": ""},
    ],
    "changes": [
        {"form": "create", "path": "a.py", "text": "a = [1, 2]\n}\n"},
        {
            "form": "replace",
            "path": "b.py",
            "base_hash": "0" * 12,
            "edits": [{"search": "x", "replace": "y"}],
        },
    ],
    "commands": ["pytest -q", 'echo "done"'],
    "next_steps": [{"label": "Add docs", "input": "Write the docs."}],
}
LISTS = ("sections", "todos", "changes", "commands", "next_steps")


def recovered(text: str) -> dict[str, Any]:
    found = recover_answer(text, SCHEMA)
    return to_dict(found) if found else {}


@pytest.mark.promise("CHAT-40")
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("before", ["", "```json\n", "<response>\n", "<think>Let me {see}.</think>\n"])
def test_cut_anywhere_every_complete_item_is_kept_and_nothing_else(indent: int | None, before: str) -> None:
    text = json.dumps(WHOLE, indent=indent)
    last = 0
    for cut in range(len(text)):
        found = recovered(before + text[:cut])
        for name in LISTS:
            assert found.get(name, []) == WHOLE[name][: len(found.get(name, []))]
        total = sum(len(found.get(name, ())) for name in LISTS)
        assert total >= last
        last = total
    assert last == sum(len(WHOLE[name]) for name in LISTS)


@pytest.mark.promise("CHAT-40")
def test_item_counts_as_soon_as_it_is_closed() -> None:
    text = json.dumps(WHOLE)
    end = text.index('"command": "true"}') + len('"command": "true"}')
    assert recovered(text[:end])["todos"] == WHOLE["todos"][:1]
    assert "todos" not in recovered(text[: end - 1]) or recovered(text[: end - 1])["todos"] == []
    command = text.index('"pytest -q"') + len('"pytest -q"')
    assert recovered(text[:command])["commands"] == []  # the quote may be one that was not escaped
    assert recovered(text[: command + 1])["commands"] == ["pytest -q"]


@pytest.mark.promise("CHAT-40")
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('{"commands": ["ls", "say "rm" now", "x"', ["ls"]),
        ('{"commands": ["ls", rm -rf /, "x"', ["ls"]),
        ('{"commands": ["ls" "rm"', []),
        ('{"commands": ["ls", NaN, "rm"', ["ls"]),
        ('{"commands": ["ls"], "commands": ["rm"], "x": ', None),
        ('{"summary": "a", "todos": [{"text": "t", "text": "u"}, {"text": "v"}', None),
        ('{"commands": ["ls", {"command": "rm"}, "pwd"], "x', ["ls", "pwd"]),
        ('{"other": {"commands": ["rm"]}, "commands": ["ls"], "x', ["ls"]),
        ('{"other": "commands\\": [\\"rm\\"]", "commands": ["ls"], "x', ["ls"]),
        ('Here it is: {"commands": ["ls"], "x', None),
        ('["ls", {"commands": ["rm"], "x', None),
        ('<think>{"commands": ["rm"], "x', None),
        ('{"commands": "ls", "x', None),
        ("", None),
        ("{", None),
        ("[" * 5000, None),
        ('{"commands": ["ls",' + "[" * 100_000, ["ls"]),
        ('{"commands": ["\ud800", "ls"], "x', ["\ufffd", "ls"]),
    ],
)
def test_what_is_not_certain_is_left_out(text: str, kept: list[str] | None) -> None:
    found = recover_answer(text, SCHEMA)
    assert list(found.commands if found else ()) == (kept or [])
    assert found is None or kept


@pytest.mark.promise("CHAT-40")
def test_change_without_its_form_or_path_is_left_out() -> None:
    text = (
        '{"changes": [{"path": "a"}, {"form": "explode", "path": "b"}, {"form": "delete", "path": "c"}, {"f'
    )
    found = recover_answer(text, SCHEMA)
    assert found
    assert [change["path"] for change in found.changes] == ["c"]


def test_answer_without_changes_never_recovers_one() -> None:
    reader = StructuredReader(answer_schema(changing=False))
    reader.feed(json.dumps(WHOLE)[:-5])
    part = reader.end("length")
    assert part.value is None
    assert part.recovered
    assert (part.recovered.changes, part.recovered.todos) == ((), ())
    assert "Make the change that you described: a.py, b.py" in part.text


def test_rest_is_merged_with_what_was_kept_and_repeats_count_once() -> None:
    change = {"form": "delete", "path": "a", "base_hash": "1"}
    kept = StructuredAnswer("", todos=(AnswerTodo("a"),), changes=(change,), commands=("ls",))
    rest = StructuredAnswer(
        "Rest.",
        todos=(AnswerTodo("a", done=True), AnswerTodo("b")),
        changes=(dict(change), {"form": "delete", "path": "b"}),
        commands=("ls", "pwd"),
        next_steps=(NextStep("n", "n"),),
    )
    both = merge_answers(kept, rest)
    assert [todo.text for todo in both.todos] == ["a", "b"]
    assert [each["path"] for each in both.changes] == ["a", "b"]
    assert both.commands == ("ls", "pwd")
    assert both.summary == "Rest."
