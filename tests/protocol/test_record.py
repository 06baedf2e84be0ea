from typing import Any

import pytest

from handrail.protocol.record import Record


class Said(Record):
    text: str
    by: str = "user"


class Thought(Record):
    text: str
    by: str = "user"


class Signed(Said):
    key: tuple[str, ...] = ()


def test_fields_are_given_by_place_by_name_or_by_default() -> None:
    assert Said("a") == Said(text="a", by="user") == Said("a", "user")
    assert Signed("a", "b", ("k",)) == Signed("a", key=("k",), by="b")
    assert repr(Signed("a")) == "Signed(text='a', by='user', key=())"


def test_equal_fields_of_another_kind_are_not_equal() -> None:
    assert Said("a") != Thought("a")
    assert {Said("a"), Said("a"), Thought("a")} == {Said("a"), Thought("a")}


@pytest.mark.parametrize(
    ("values", "named"), [((), {}), (("a", "b", "c"), {}), (("a",), {"text": "b"}), (("a",), {"seen": True})]
)
def test_what_is_no_value_of_the_fields_is_refused(values: tuple[str, ...], named: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="has the fields text, by"):
        Said(*values, **named)


def test_a_record_stays_as_it_was_made() -> None:
    said = Said("a")
    with pytest.raises(AttributeError, match="frozen"):
        said.text = "b"  # type: ignore[misc]
    assert said.changed(text="b") == Said("b")
    assert said == Said("a")


def test_a_record_is_matched_by_its_fields() -> None:
    match Signed("a", key=("k",)):
        case Signed(text, by, (key,)):
            assert (text, by, key) == ("a", "user", "k")


def test_a_field_cannot_take_the_place_of_what_every_record_has() -> None:
    with pytest.raises(TypeError, match="changed"):

        class Diff(Record):
            changed: int  # type: ignore[assignment]
