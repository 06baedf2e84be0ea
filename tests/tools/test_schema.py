from typing import Annotated, Any

import pytest
from pydantic import Field

from handrail.protocol.values import Value
from handrail.tools.schema import schema_of
from handrail.tools.toolbox import Toolbox

NOISE = ("title", "default", "additionalProperties", "$defs")


def slim(node: Any, definitions: dict[str, Any]) -> Any:
    """pydantic's schema with its references inlined and what says nothing to a model left out."""
    if isinstance(node, list):
        return [slim(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return slim(definitions[node["$ref"].rpartition("/")[2]], definitions)
    named = {name: slim(inner, definitions) for name, inner in node.get("properties", {}).items()}
    rest = {key: slim(inner, definitions) for key, inner in node.items() if key not in (*NOISE, "properties")}
    return {"properties": named, **rest} if named else rest


@pytest.mark.parametrize("name", Toolbox().names("auto"))
def test_the_schema_says_what_pydantic_would_say(name: str) -> None:
    tool = Toolbox().find(name)
    assert tool
    said = tool.arguments.model_json_schema()
    assert schema_of(tool.arguments) == slim(said, said.get("$defs", {}))


def test_what_has_no_rule_is_an_error_and_not_a_schema_that_says_too_little() -> None:
    class Named(Value):
        names: dict[str, int]

    class Even(Value):
        number: Annotated[int, Field(multiple_of=2)]

    for arguments in (Named, Even):
        with pytest.raises(TypeError, match="add one"):
            schema_of(arguments)
