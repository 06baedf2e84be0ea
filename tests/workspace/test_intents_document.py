import pytest
from msgspec.structs import replace

from handrail.protocol.errors import IntentsProblem
from handrail.workspace.intents_document import parse_intents

ONE = """- id: INT-1
  name: Totals
  status: IN_PROGRESS
  owned_scope:
    - src/cart/**   # the cart
    - "!src/cart/old.py"
  constraints: [keep the public names]
  acceptance_criteria:
    - tests pass
  depends_on: INT-0
  ticket: 42
"""


@pytest.mark.parametrize(
    "text",
    [
        ONE,
        "active_intents:\n" + "".join(f"  {line}\n" for line in ONE.splitlines()),
        "version: 1\nintents:\n" + ONE,
        "intents:\n  INT-1:\n"
        + "".join(f"  {line}\n" for line in ONE.splitlines() if not line.startswith("-")),
        "INT-1:\n" + "".join(f"{line}\n" for line in ONE.splitlines() if not line.startswith("-")),
        ONE.replace("\n", "\r\n"),
    ],
    ids=["list", "active_intents", "intents", "map under a key", "map", "CRLF"],
)
def test_an_intent_reads_the_same_in_every_shape(text: str) -> None:
    (intent,) = parse_intents(text).intents
    assert replace(intent, text="") == type(intent)(
        "INT-1",
        name="Totals",
        status="IN_PROGRESS",
        scope=("src/cart/**", "!src/cart/old.py"),
        constraints=("keep the public names",),
        criteria=("tests pass",),
        depends_on=("INT-0",),
    )
    assert "# the cart" in intent.text
    assert "ticket: 42" in intent.text


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "intents:\n", "active_intents: []\n", "intents: {}"])
def test_a_file_without_intents_has_none(text: str) -> None:
    assert parse_intents(text).intents == ()


def test_ids_and_words_are_text_whatever_yaml_makes_of_them() -> None:
    (one, two) = parse_intents("- id: 007\n  name: yes\n- id: 2026-01-01\n  status: Done\n").intents
    assert (one.id, one.name, two.id, two.done) == ("007", "yes", "2026-01-01", True)


@pytest.mark.promise("INTENT-8")
@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("- id: A\n- id: B\n- id: A\n", 3, "line 1"),
        ("- id: A\n  name: x\n  name: y\n", 3, "line 2"),
        ("- id: A\n  x: &a [1]\n  y: *a\n", 2, "anchors"),
        ("a: *b\n", 1, "aliases"),
        ("- id: A\n  x: !!python/object/apply:os.system [id]\n", 2, "tag"),
        ("- id: A\n---\n- id: B\n", 3, "second document"),
        ("- id: A\n  x: [1\n", 3, "not YAML"),
        ("- id: A\n\tname: x\n", 2, "not YAML"),
        ("x: " + "[" * 5_000, 1, "nested"),
        ("- " * 400 + "x", 1, "nested"),
        ("- name: x\n", 1, "no id"),
        ("- id: two words\n", 1, "not an id"),
        ("- id: ''\n", 1, "not an id"),
        ("- A\n", 1, "not an intent"),
        ("just text", 1, "this is text"),
        ("intents: soon\n", 1, "text"),
        ("version: 1\nA:\n  name: x\n", 1, "not an intent"),
        ("A:\n  id: B\n", 2, "differs"),
        ("- id: A\n  owned_scope:\n    - src: x\n", 3, "owned_scope"),
        ("- id: A\n  owned_scope: {src: x}\n", 2, "map"),
        ("- id: A\n  name: [x]\n", 2, "name"),
        ("? [a]\n: b\n", 1, "key"),
        ("- id: \x01\n", 0, "not YAML"),
        ("#" * 1_000_001, 0, "characters"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line_and_what_to_do(text: str, line: int, told: str) -> None:
    with pytest.raises(IntentsProblem, match=told) as caught:
        parse_intents(text)
    assert caught.value.line == line
    assert str(caught.value).rstrip().endswith(".")
