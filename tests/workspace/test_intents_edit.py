"""Whatever is changed in the file of intents, all else in it stays as it is, to the byte."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from handrail.protocol.errors import IntentsProblem
from handrail.workspace.intents_document import IntentsDocument, parse_intents
from handrail.workspace.intents_edit import (
    add_entries,
    add_intent,
    set_field,
    set_intent_text,
    set_list_field,
)

BLOCK = """# All intents.
active_intents:
  # the first
  - id: INT-1   # stays
    name: "Totals"
    owned_scope:
      - src/cart/**    # cart
      # more to come
    status: active

    ticket: {nr: 42}
  - id: INT-2
    owned_scope: [src/tax.py, 'docs/*.md' , ]
    notes: |
      two
      lines

  # the last
  - id: INT-3
    status:
trailer: kept
"""
MAP = "A:\n    owned_scope:\n    - x\n    status: active # why\nB: {name: b, owned_scope: []}\n"


def changed(before: IntentsDocument, after: IntentsDocument) -> list[str]:
    lines = difflib.ndiff(before.source.splitlines(), after.source.splitlines())
    return [line for line in lines if line[0] in "+-"]


@pytest.mark.promise("INTENT-7")
@pytest.mark.parametrize(
    ("text", "intent", "told"),
    [
        (BLOCK, "INT-1", ["+       - tests/**"]),
        (
            BLOCK,
            "INT-2",
            [
                "-     owned_scope: [src/tax.py, 'docs/*.md' , ]",
                "+     owned_scope: [src/tax.py, 'docs/*.md' , tests/** ]",
            ],
        ),
        (BLOCK, "INT-3", ["+     owned_scope: [tests/**]"]),
        (MAP, "A", ["+     - tests/**"]),
        (
            MAP,
            "B",
            ["- B: {name: b, owned_scope: []}", "+ B: {name: b, owned_scope: [tests/**]}"],
        ),
    ],
)
def test_a_path_more_changes_one_line(text: str, intent: str, told: list[str]) -> None:
    before = parse_intents(text)
    after = add_entries(before, intent, "owned_scope", ["tests/**"])
    assert changed(before, after) == told
    found = after.find(intent)
    assert found
    assert found.intent.scope[-1] == "tests/**"


@pytest.mark.parametrize(
    ("text", "intent", "told"),
    [
        (BLOCK, "INT-1", ["-     status: active", "+     status: done"]),
        (BLOCK, "INT-2", ["+     status: done"]),
        (BLOCK, "INT-3", ["-     status:", "+     status: done"]),
        (MAP, "A", ["-     status: active # why", "+     status: done # why"]),
        (
            MAP,
            "B",
            ["- B: {name: b, owned_scope: []}", "+ B: {name: b, owned_scope: [], status: done}"],
        ),
    ],
)
def test_done_changes_one_line(text: str, intent: str, told: list[str]) -> None:
    before = parse_intents(text)
    after = set_field(before, intent, "status", "done")
    assert changed(before, after) == told
    found = after.find(intent)
    assert found
    assert found.intent.done


def test_a_list_is_replaced_where_it_stands() -> None:
    before = parse_intents(BLOCK)
    after = set_list_field(before, "INT-1", "owned_scope", ["src/**", "!src/x"])
    assert changed(before, after) == [
        "-       - src/cart/**    # cart",
        "+       - src/**",
        '+       - "!src/x"    # cart',
    ]


@pytest.mark.parametrize(
    "text", [BLOCK, MAP, "", "# none\n", "intents:\n# none\n", "- id: X", "intents: # c"]
)
def test_a_new_intent_comes_last_and_the_rest_stays(text: str) -> None:
    before = parse_intents(text)
    after = add_intent(before, "NEW-1", {"name": "a: b", "owned_scope": ["src/**", "*.py"]})
    assert after.intents[:-1] == before.intents
    assert replace(after.intents[-1], text="") == type(after.intents[-1])(
        "NEW-1", name="a: b", scope=("src/**", "*.py")
    )
    assert all(line[0] == "+" for line in changed(before, after))


def test_a_new_intent_may_have_no_id_that_is_taken_or_unfit() -> None:
    for intent_id, told in [("INT-1", "exists"), ("a b", "not an id")]:
        with pytest.raises(IntentsProblem, match=told):
            add_intent(parse_intents(BLOCK), intent_id, {})


def test_a_text_that_was_edited_takes_the_place_of_the_old_one() -> None:
    before = parse_intents(BLOCK)
    old = before.intents[1]
    after = set_intent_text(before, "INT-2", old.text.replace("two\n", "three\n"))
    assert changed(before, after) == ["-       two", "+       three"]
    assert set_intent_text(before, "INT-2", old.text).source == BLOCK


@pytest.mark.parametrize("text", ["- id: OTHER\n", "nonsense", "- id: INT-2\n- id: INT-1\n", ""])
def test_an_edit_of_one_intent_cannot_rename_it_or_touch_another(text: str) -> None:
    with pytest.raises(IntentsProblem):
        set_intent_text(parse_intents(BLOCK), "INT-2", text)


@given(st.text(min_size=1, max_size=30), st.sampled_from(["INT-1", "INT-2", "INT-3"]))
def test_any_words_come_back_as_they_were_set_or_are_refused(value: str, intent: str) -> None:
    before = parse_intents(BLOCK)
    try:
        after = set_field(before, intent, "name", value)
    except IntentsProblem:
        assert not value.isprintable()
        return
    found = after.find(intent)
    assert found
    assert found.intent.name == " ".join(value.split())


def test_a_list_that_is_emptied_stands_beside_its_key() -> None:
    before = parse_intents("- id: A\n  depends_on:\n    - B # first\n    - C\n  name: x\n")
    assert set_list_field(before, "A", "depends_on", []).source == "- id: A\n  depends_on: []\n  name: x\n"


def test_windows_line_endings_stay() -> None:
    after = add_entries(parse_intents(BLOCK.replace("\n", "\r\n")), "INT-1", "owned_scope", ["x"])
    assert after.source.replace("\r\n", "").count("\n") == 0
