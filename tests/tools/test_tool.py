from typing import Annotated, Any

import pytest
from msgspec import Meta
from msgspec.json import schema

from handrail.protocol.values import Value
from handrail.tools.tool import argument_schema
from handrail.tools.toolbox import Toolbox

LIMITS = ("minimum", "exclusiveMinimum", "minLength", "maxLength", "minItems", "maxItems")
NOISE = ("title", "default", "additionalProperties", "$defs", *LIMITS)


def slim(node: Any, definitions: dict[str, Any]) -> Any:
    """msgspec's schema with its references inlined and what says nothing to a model left out."""
    if isinstance(node, list):
        return [slim(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        found = dict(definitions[node["$ref"].rpartition("/")[2]])
        found.pop("description", "")  # a class's docstring, which is for us
        return slim(found, definitions)
    named = {name: slim(inner, definitions) for name, inner in node.get("properties", {}).items()}
    rest = {key: slim(inner, definitions) for key, inner in node.items() if key not in (*NOISE, "properties")}
    rest = {"properties": named, **rest} if named else rest
    rest |= {"type": "string"} if "enum" in rest else {}
    return {key: sorted(inner) if key == "enum" else inner for key, inner in rest.items() if inner != []}


@pytest.mark.parametrize("name", Toolbox().names("auto"))
def test_the_schema_says_what_msgspec_would_say(name: str) -> None:
    tool = Toolbox().find(name)
    assert tool
    said = schema(tool.arguments)
    told = tool.arguments.__struct_fields__
    assert slim(argument_schema(tool.arguments, told), {}) == slim(said, said["$defs"])


def test_what_has_no_rule_is_an_error_and_not_a_schema_that_says_too_little() -> None:
    class Named(Value):
        names: set[str]

    class Even(Value):
        number: Annotated[int, Meta(multiple_of=2)]

    for arguments in (Named, Even):
        with pytest.raises(TypeError, match="Add one"):
            argument_schema(arguments)
