import json

import pytest

from handrail.protocol.values import Mode
from handrail.tools.toolbox import Toolbox


def told(mode: Mode) -> str:
    return json.dumps([spec._asdict() for spec in Toolbox().specs(mode)])


@pytest.mark.promise("TOOL-11")
def test_a_model_is_told_of_the_tools_in_few_bytes_and_always_the_same() -> None:
    assert len(told("ask")) < 5_000
    assert told("ask") == told("auto") == told("edit")
    assert "$defs" not in told("ask")
    assert "title" not in told("ask")


def test_modes_that_only_read_are_not_offered_tools_that_write() -> None:
    names = [spec.name for spec in Toolbox().specs("explore")]
    looks = ["read", "list", "glob", "search", "run", "background", "fetch"]
    assert names == [*looks, "todos", "ask_user", "next_steps"]


def test_the_schema_names_what_is_required() -> None:
    specs = {spec.name: spec.schema for spec in Toolbox().specs("ask")}
    assert specs["edit"]["required"] == ["path"]
    assert specs["edit"]["properties"]["edits"]["items"]["required"] == ["search", "replace"]
