"""JSON Schema of a tool's arguments, in as few bytes as say it."""

from typing import Any

from handrail.protocol.values import Value

NOISE = ("title", "default", "additionalProperties")


def schema_of(arguments: type[Value]) -> dict[str, Any]:
    """The schema with definitions inlined, and without titles and defaults."""
    schema = arguments.model_json_schema()
    definitions = schema.pop("$defs", {})
    slim: dict[str, Any] = _slim(schema, definitions)
    return slim


def _slim(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_slim(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _slim(definitions[node["$ref"].rpartition("/")[2]], definitions)
    slim = {}
    for key, value in node.items():
        if key == "properties":
            slim[key] = {name: _slim(schema, definitions) for name, schema in value.items()}
        elif key not in NOISE and not (key == "description" and "properties" in node):
            slim[key] = _slim(value, definitions)
    return slim
