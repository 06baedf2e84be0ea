from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, ValidationError, convert

from handrail.protocol.problems import WrongField, problems_in
from handrail.protocol.values import Value


class Inner(Value):
    name: Annotated[str, Meta(min_length=1, max_length=3)]
    count: Annotated[int, Meta(ge=1, le=9)] | None = None


class Cat(Value, tag_field="kind", tag="cat"):
    lives: int


class Dog(Value, tag_field="kind", tag="dog"):
    tricks: tuple[str, ...] = ()


class Outer(Value):
    mode: Literal["a", "b", "c"]
    share: Annotated[float, Meta(gt=0, le=1)] = 0.5
    inner: Inner = Inner("x")
    list: Annotated[tuple[Inner | str, ...], Meta(max_length=2)] = ()
    pet: Cat | Dog | None = None
    named: dict[str, bool] = {}  # noqa: RUF012
    word: Annotated[str, Meta(pattern="^[a-z]+$")] = "a"
    any: Any = None

    def __post_init__(self) -> None:
        if self.mode == "c" and self.share < 0.2:
            raise WrongField("share", "must not be below 0.2 with mode c")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"mode": "d"}, ["mode should be 'a', 'b' or 'c'"]),
        ({"mode": 3, "share": "x"}, ["mode should be 'a', 'b' or 'c'", "share should be a valid number"]),
        ({"modes": "a"}, ["mode is missing", "modes is not known"]),
        ({"mode": "a", "share": 0}, ["share should be greater than 0"]),
        ({"mode": "a", "share": float("inf")}, ["share should be a finite number"]),
        ({"mode": "a", "inner": 3}, ["inner should be an object"]),
        ({"mode": "a", "inner": {"name": ""}}, ["inner.name should have at least 1 character"]),
        ({"mode": "a", "inner": {"name": "x", "count": True}}, ["inner.count should be a valid integer"]),
        (
            {"mode": "a", "inner": {"name": "x", "count": 10}},
            ["inner.count should be less than or equal to 9"],
        ),
        ({"mode": "a", "list": ["x", {"nam": "y"}]}, ["list.1.name is missing", "list.1.nam is not known"]),
        ({"mode": "a", "list": [3]}, ["list.0 should be a valid string"]),
        ({"mode": "a", "list": ["x", "y", "z"]}, ["list should have at most 2 items"]),
        ({"mode": "a", "list": "x"}, ["list should be a list"]),
        ({"mode": "a", "pet": {"kind": "cat", "lives": "9"}}, ["pet.lives should be a valid integer"]),
        ({"mode": "a", "pet": {"kind": "dog", "tricks": [1]}}, ["pet.tricks.0 should be a valid string"]),
        ({"mode": "a", "named": {"x": 1}}, ["named.x should be true or false"]),
        ({"mode": "a", "word": "A"}, ["word has characters that are not allowed, or is empty"]),
        ({"mode": "c", "share": 0.1}, ["share must not be below 0.2 with mode c"]),
        ([], [" should be an object"]),
    ],
)
def test_everything_wrong_is_named_with_its_path(data: Any, told: list[str]) -> None:
    assert [f"{each.where} {each.should}" for each in problems_in(data, Outer)] == told
    with pytest.raises(ValidationError):
        convert(data, Outer)


@pytest.mark.parametrize("pet", [{"kind": "cow"}, {"lives": 3}, 7])
def test_a_member_of_no_union_is_still_a_problem(pet: Any) -> None:
    (problem,) = problems_in({"mode": "a", "pet": pet}, Outer)
    assert problem.path == ("pet",)
    assert problem.should


def test_what_can_be_read_has_no_problems() -> None:
    data = {"mode": "b", "list": ["x", {"name": "y", "count": None}], "pet": None, "any": [1]}
    assert problems_in(data, Outer) == []
    assert convert(data, Outer).list == ("x", Inner("y"))
