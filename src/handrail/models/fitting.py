"""A value as a JSON Schema asks for it: simple types are mended, everything else is told."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

PROBLEMS = 8
WORDS = {"true": True, "false": False}
NUMBERS = {
    "integer": re.compile(r"-?(?:0|[1-9][0-9]{0,17})"),
    "number": re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?"),
}
EXACT = 2**53
"""A float up to here is the whole number that was written."""
ALIKE = 0.8
SHORTEST_PART = 4
MOST_UNKNOWN = 50
"""Names that are looked at: it takes time to see what each could be meant for."""


class Fitted(NamedTuple):
    value: Any
    problems: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    """What nobody asked for."""
    mended: bool = False


def fitted(value: Any, schema: Mapping[str, Any]) -> Fitted:
    """The value with its simple types mended and without what nobody asked for, and what is wrong with it."""
    fitting = _Fitting()
    value = fitting.fit(value, schema, "")
    return Fitted(value, tuple(fitting.problems[:PROBLEMS]), tuple(fitting.dropped), fitting.mended)


class _Fitting:
    def __init__(self) -> None:
        self.problems: list[str] = []
        self.dropped: list[str] = []
        self.mended = False
        self._near: dict[tuple[str, tuple[str, ...]], str] = {}

    def fit(self, value: Any, schema: Mapping[str, Any], where: str) -> Any:
        kind = schema.get("type")
        meant = _meant(value, kind)
        self.mended = self.mended or meant is not value
        value = meant
        if not _is(value, kind):
            quoted = ": it has to stand in quotes" if kind == "string" and isinstance(value, float) else ""
            self.problems.append(f"`{where or 'answer'}` is not of type {kind}{quoted}")
            return value
        if "enum" in schema and value not in schema["enum"]:
            self.problems.append(f"`{where}` is none of: {', '.join(map(str, schema['enum']))}")
        if isinstance(value, dict):
            return self._object(value, schema, where)
        if isinstance(value, list):
            self._sized(len(value), schema, ("minItems", "maxItems"), f"`{where}` has {len(value)} items")
            inner = schema.get("items", {})
            return [self.fit(each, inner, f"{where}[{at}]") for at, each in enumerate(value)]
        if isinstance(value, str):
            told = f"`{where}` has {len(value)} characters"
            self._sized(len(value), schema, ("minLength", "maxLength"), told)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._sized(value, schema, ("minimum", "maximum"), f"`{where}` is {value}")
        return value

    def _object(self, value: dict[str, Any], schema: Mapping[str, Any], where: str) -> dict[str, Any]:
        known, required = schema.get("properties", {}), schema.get("required", ())
        place = f"{where}." if where else ""
        given = {name: each for name, each in value.items() if each is not None or name in required}
        self.mended = self.mended or len(given) < len(value)
        self.problems += [f"`{place}{name}` is missing" for name in required if name not in given]
        if schema.get("additionalProperties") is False:
            for name in [name for name in given if name not in known]:
                self._unknown(name, tuple(known), place)
                del given[name]
        return {
            name: self.fit(each, known[name], f"{place}{name}") if name in known else each
            for name, each in given.items()
        }

    def _unknown(self, name: str, known: tuple[str, ...], place: str) -> None:
        if (name, known) not in self._near:
            if len(self._near) == MOST_UNKNOWN:
                self.problems.append(f"`{place}{name}` is not known, as {MOST_UNKNOWN} others are not")
                return
            self._near[name, known] = nearest(name, known)
        if meant := self._near[name, known]:
            self.problems.append(f"`{place}{name}` is not known: is it `{meant}`?")
        else:
            self.dropped.append(f"{place}{name}")

    def _sized(self, size: float, schema: Mapping[str, Any], limits: tuple[str, str], told: str) -> None:
        least, most = (schema.get(limit) for limit in limits)
        if least is not None and size < least:
            self.problems.append(f"{told}, at least {least} are wanted")
        if most is not None and size > most:
            self.problems.append(f"{told}, at most {most} are wanted")


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that this one may be meant for; empty where it is something else."""
    from difflib import SequenceMatcher  # imported here: hardly ever needed

    plain = _plain(name)
    for each in known:
        short, long = sorted((plain, _plain(each)), key=len)
        if len(short) >= SHORTEST_PART and short in long:
            return each
        if SequenceMatcher(None, short, long).ratio() >= ALIKE:
            return each
    return ""


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _meant(value: Any, kind: Any) -> Any:
    """What small models write for a number, a truth or a text, as what they mean.

    Not a text for a float: which digits were written is not known of one, and `1.10` is not `1.1`.
    """
    match value:
        case str() if kind == "boolean":
            return WORDS.get(value.strip().lower(), value)
        case str() if kind in NUMBERS and NUMBERS[kind].fullmatch(value.strip()):
            number = int(value) if kind == "integer" else float(value)
            return number if math.isfinite(number) else value
        case float() if kind == "integer" and value.is_integer() and abs(value) <= EXACT:
            return int(value)
        case int() if kind == "string" and not isinstance(value, bool):
            return str(value)
        case _:
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
