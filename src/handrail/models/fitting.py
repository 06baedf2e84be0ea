"""A value as a JSON Schema asks for it: simple types are mended, everything else is told."""

from collections.abc import Mapping
from typing import Any, NamedTuple

PROBLEMS = 8
WORDS = {"true": True, "false": False}


class Fitted(NamedTuple):
    value: Any
    problems: tuple[str, ...]


def fitted(value: Any, schema: Mapping[str, Any]) -> Fitted:
    """The value with its simple types mended, and what is wrong with it."""
    problems: list[str] = []
    return Fitted(_fitted(value, schema, "", problems), tuple(problems[:PROBLEMS]))


def _fitted(value: Any, schema: Mapping[str, Any], where: str, problems: list[str]) -> Any:
    value = _mended(value, schema.get("type"))
    if not _is(value, schema.get("type")):
        problems.append(f"`{where or 'answer'}` is not of type {schema['type']}")
        return value
    if "enum" in schema and value not in schema["enum"]:
        problems.append(f"`{where}` is none of: {', '.join(map(str, schema['enum']))}")
    if isinstance(value, dict):
        return _object(value, schema, where, problems)
    if isinstance(value, list):
        _sized(len(value), schema, ("minItems", "maxItems"), f"`{where}` has {len(value)} items", problems)
        inner = schema.get("items", {})
        return [_fitted(each, inner, f"{where}[{at}]", problems) for at, each in enumerate(value)]
    if isinstance(value, str):
        limits, told = ("minLength", "maxLength"), f"`{where}` has {len(value)} characters"
        _sized(len(value), schema, limits, told, problems)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _sized(value, schema, ("minimum", "maximum"), f"`{where}` is {value}", problems)
    return value


def _object(
    value: dict[str, Any], schema: Mapping[str, Any], where: str, problems: list[str]
) -> dict[str, Any]:
    known, required = schema.get("properties", {}), schema.get("required", ())
    place = f"{where}." if where else ""
    given = {name: each for name, each in value.items() if each is not None or name in required}
    problems += [f"`{place}{name}` is missing" for name in required if name not in given]
    if schema.get("additionalProperties") is False:
        problems += [f"`{place}{name}` is not known" for name in given if name not in known]
    return {
        name: _fitted(each, known[name], f"{place}{name}", problems) if name in known else each
        for name, each in given.items()
    }


def _mended(value: Any, kind: Any) -> Any:
    """What small models write for a number, a truth or a text, as what they mean."""
    if isinstance(value, str) and kind in ("integer", "number", "boolean"):
        word = value.strip()
        if kind == "boolean":
            return WORDS.get(word.lower(), value)
        try:
            return int(word) if kind == "integer" else float(word)
        except ValueError:
            return value
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value


def _is(value: Any, kind: Any) -> bool:
    match kind:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return True


def _sized(
    size: float, schema: Mapping[str, Any], limits: tuple[str, str], told: str, problems: list[str]
) -> None:
    least, most = (schema.get(limit) for limit in limits)
    if least is not None and size < least:
        problems.append(f"{told}, at least {least} are wanted")
    if most is not None and size > most:
        problems.append(f"{told}, at most {most} are wanted")
