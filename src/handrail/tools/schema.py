"""JSON Schema of a tool's arguments, in as few bytes as say it.

Every start needs those of all tools, so they are read off the fields: pydantic would build each model first,
and take ten times as long. A test compares both.
"""

from collections.abc import Collection
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, MaxLen, MinLen
from pydantic.fields import FieldInfo
from pydantic.types import Strict

from handrail.protocol.values import Value


class Unsaid:
    """Marks a field that a model may give and is not told of, unless somebody asks for it by name."""

    def __get_pydantic_json_schema__(self, _core: Any, _handler: Any) -> Any:
        from pydantic_core import PydanticOmit

        raise PydanticOmit


PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema_of(arguments: type[Value], told: Collection[str] = ()) -> dict[str, Any]:
    """The schema, nested values inlined, without titles and defaults; `told` are unsaid fields to say."""
    fields = {
        name: field
        for name, field in arguments.model_fields.items()
        if name in told or not any(isinstance(each, Unsaid) for each in field.metadata)
    }
    schema: dict[str, Any] = {"properties": {name: _field(field) for name, field in fields.items()}}
    if required := [name for name, field in fields.items() if field.is_required()]:
        schema["required"] = required
    return schema | {"type": "object"}


def _field(field: FieldInfo) -> dict[str, Any]:
    schema = _type(field.annotation)
    if field.description:
        schema["description"] = field.description
    for limit in field.metadata:
        schema |= _limit(limit, array=schema["type"] == "array")
    return dict(sorted(schema.items()))


def _type(annotation: Any) -> dict[str, Any]:
    if annotation in PLAIN:
        return {"type": PLAIN[annotation]}
    if get_origin(annotation) is tuple:
        return {"type": "array", "items": _type(get_args(annotation)[0])}
    if isinstance(annotation, type) and issubclass(annotation, Value):
        return schema_of(annotation)
    if get_origin(annotation) is Literal:
        return {"enum": list(get_args(annotation)), "type": "string"}
    raise TypeError(f"There is no rule here for the JSON Schema of {annotation}: add one.")


def _limit(limit: Any, *, array: bool) -> dict[str, Any]:
    match limit:
        case Strict() | Unsaid():
            return {}
        case Ge(ge=least):
            return {"minimum": least}
        case Gt(gt=less):
            return {"exclusiveMinimum": less}
        case Le(le=most):
            return {"maximum": most}
        case MinLen(min_length=least):
            return {"minItems" if array else "minLength": least}
        case MaxLen(max_length=most):
            return {"maxItems" if array else "maxLength": most}
        case _:
            raise TypeError(f"There is no rule here for the JSON Schema of {limit}: add one.")
