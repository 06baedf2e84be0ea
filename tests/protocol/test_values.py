from typing import Any

import pytest
from msgspec import ValidationError, convert
from msgspec.structs import replace

from handrail.protocol.errors import ToolError
from handrail.protocol.events import HookSpoke, ModeSet
from handrail.protocol.upcast import DEEPEST, dump_event, is_storable
from handrail.protocol.values import Todo, Usage, is_deeper, tag_of, to_dict, to_json


def test_a_value_stays_as_it_was_made() -> None:
    todo = Todo(id="t1", text="a")
    with pytest.raises(AttributeError):
        todo.done = True  # type: ignore[misc]
    assert replace(todo, done=True) == Todo(id="t1", text="a", done=True)
    assert todo == Todo(id="t1", text="a")


def test_what_a_value_does_not_know_is_refused_with_its_path() -> None:
    with pytest.raises(ValidationError, match="unknown field `seen`"):
        convert({"id": "t1", "text": "a", "seen": True}, Todo)
    with pytest.raises(ValidationError, match=r"\$\.text"):
        convert({"id": "t1", "text": 3}, Todo)


def test_the_type_of_a_tagged_value_comes_first_in_json() -> None:
    event = ModeSet(mode="plan")
    assert event.type == tag_of(ModeSet) == "mode_set"
    assert to_json(event) == '{"type":"mode_set","mode":"plan"}'
    assert to_dict(ToolError(tool="x", reason="timeout", message="m"))["type"] == "tool_error"


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(UnicodeEncodeError):
        to_json(Todo(id="t1", text="\ud800"))


def test_an_event_that_would_not_come_back_is_not_storable() -> None:
    def spoke(inner: object) -> HookSpoke:
        return HookSpoke(turn_id="t", on="before_tool", hook="h", did="changed", arguments={"a": inner})

    deep: object = 1
    for _ in range(DEEPEST):
        deep = [deep]
    assert is_storable(spoke([1, 2.5, "x", None]))
    assert is_deeper(deep, 10)
    assert not any(map(is_storable, map(spoke, (deep, float("nan"), float("inf"), "\ud800", (1, 2)))))


def test_what_would_not_load_again_is_not_stored() -> None:
    mode: Any = "wild"
    with pytest.raises(ValidationError, match=r"\$\.mode"):
        dump_event(ModeSet(mode=mode))


def test_usage_adds_up() -> None:
    assert Usage(1, 2) + Usage(3, 4, 5, 6) == Usage(4, 6, 5, 6)
