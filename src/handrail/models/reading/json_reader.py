"""Reads the JSON object in a model's answer and fits it to a schema, in a fixed order of steps.

without thoughts and wrappers -> as it is -> in a fence -> first in prose -> repaired -> fitted to a schema

An object that is not closed was cut. It is never repaired: closing it would make a shorter text look whole.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from handrail.models.reading.sanitize import join_surrogates, why_unstorable
from handrail.protocol.values import ReadAs

MAX_PROBLEMS = 8
TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": int | float,
}
BOOLEAN_WORDS = {"true": True, "false": False}
NUMBERS = {
    "integer": re.compile(r"-?(?:0|[1-9][0-9]{0,17})"),
    "number": re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?"),
}
MAX_EXACT_INTEGER = 2**53
"""A float up to this value is exactly the integer that was written."""
MIN_SIMILARITY = 0.8
MIN_PART_LENGTH = 4
MAX_UNKNOWN_KEYS = 50
"""More are not compared with known names, because that takes time."""


class _Fitter:
    """Converts simple types, drops names that the schema does not have, and collects the other problems."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.dropped: list[str] = []
        self.converted = False
        self._near: dict[tuple[str, tuple[str, ...]], str] = {}

    def fit(self, value: Any, schema: Mapping[str, Any], where: str) -> Any:
        kind = schema.get("type")
        meant = _coerced(value, kind)
        self.converted = self.converted or meant is not value
        value = meant
        if not _has_type(value, kind):
            quoted = ": put it in quotes" if kind == "string" and isinstance(value, float) else ""
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
            found = f"`{where}` has {len(value)} characters"
            self._sized(len(value), schema, ("minLength", "maxLength"), found)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._sized(value, schema, ("minimum", "maximum"), f"`{where}` is {value}")
        return value

    def _object(self, value: dict[str, Any], schema: Mapping[str, Any], where: str) -> dict[str, Any]:
        known, required = schema.get("properties", {}), schema.get("required", ())
        place = f"{where}." if where else ""
        fields = {name: each for name, each in value.items() if each is not None or name in required}
        self.converted = self.converted or len(fields) < len(value)
        self.problems += [f"`{place}{name}` is missing" for name in required if name not in fields]
        if schema.get("additionalProperties") is False:
            for name in [name for name in fields if name not in known]:
                self._unknown(name, tuple(known), place)
                del fields[name]
        return {
            name: self.fit(each, known[name], f"{place}{name}") if name in known else each
            for name, each in fields.items()
        }

    def _unknown(self, name: str, known: tuple[str, ...], place: str) -> None:
        if (name, known) not in self._near:
            if len(self._near) == MAX_UNKNOWN_KEYS:
                self.problems.append(f"`{place}{name}` is not known, as {MAX_UNKNOWN_KEYS} others are not")
                return
            self._near[name, known] = nearest_name(name, known)
        if meant := self._near[name, known]:
            self.problems.append(f"`{place}{name}` is not known: is it `{meant}`?")
        else:
            self.dropped.append(f"{place}{name}")

    def _sized(self, size: float, schema: Mapping[str, Any], limits: tuple[str, str], found: str) -> None:
        least, most = (schema.get(limit) for limit in limits)
        if least is not None and size < least:
            self.problems.append(f"{found}, at least {least} are wanted")
        if most is not None and size > most:
            self.problems.append(f"{found}, at most {most} are wanted")


class FittedValue(NamedTuple):
    value: Any
    problems: list[str]


def fit_value(value: Any, schema: Mapping[str, Any]) -> FittedValue:
    """A part of an answer by its own schema."""
    fitter = _Fitter()
    return FittedValue(fitter.fit(value, schema, ""), fitter.problems)


def nearest_name(name: str, known: Iterable[str]) -> str:
    """The known name that this one probably means; empty if there is none."""
    from difflib import SequenceMatcher  # imported here: hardly ever needed

    plain = _normalized(name)
    for each in known:
        short, long = sorted((plain, _normalized(each)), key=len)
        if len(short) >= MIN_PART_LENGTH and short in long:
            return each
        if SequenceMatcher(None, short, long).ratio() >= MIN_SIMILARITY:
            return each
    return ""


def _normalized(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _coerced(value: Any, kind: Any) -> Any:
    """The number, boolean or string that a small model means with a value of another type.

    A float does not become a string: its digits are not known any more, and `1.10` is not `1.1`.
    """
    match value:
        case str() if kind == "boolean":
            return BOOLEAN_WORDS.get(value.strip().lower(), value)
        case str() if kind in NUMBERS and NUMBERS[kind].fullmatch(value.strip()):
            number = int(value) if kind == "integer" else float(value)
            return number if math.isfinite(number) else value
        case float() if kind == "integer" and value.is_integer() and abs(value) <= MAX_EXACT_INTEGER:
            return int(value)
        case int() if kind == "string" and not isinstance(value, bool):
            return str(value)
        case _:
            return value


def _has_type(value: Any, kind: Any) -> bool:
    wanted = TYPES.get(kind) if isinstance(kind, str) else None
    # In Python a bool is an int, in JSON it is not.
    return wanted is None or (isinstance(value, wanted) and isinstance(value, bool) == (kind == "boolean"))


FENCE_OPEN = re.compile(r"^[ \t]{0,16}```[\w-]{0,40}[ \t\r]{0,16}\n", re.MULTILINE)
FENCE_CLOSE = re.compile(r"\n[ \t]{0,16}```[ \t\r]{0,16}(?=\n|\Z)")
JSON_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]"]', re.DOTALL)
LEFTOVERS = re.compile(r'[}\\]|"\s*:')
"""Signs of JSON that hardly occur in prose: an unescaped quote ends an object too early."""
CONTINUES = ('"', ",", ":", "]")
COURTESIES = """\
    sure so ok okay yes certainly of course done here's here is it you go the my your as for in json answer
    object response result asked requested following below hope this that helps let me know if have any
    questions need anything else"""
"""Words that can neither deny nor quote the object next to them."""
COURTESY = re.compile(rf"(?:[\s`~.,:;!<>/*#-]|\b(?:{'|'.join(COURTESIES.split())})\b)*+", re.IGNORECASE)
MAX_COURTESY = 200
WRAPPER = ("<response>", "</response>")
THINKING = ("<think>", "</think>")
THINKING_START = re.compile(rf"\s*{THINKING[0]}")

HowRead = ReadAs | Literal["cut", "unreadable"]


class FoundObject(NamedTuple):
    """The object and how it was found, or why there is none."""

    value: dict[str, Any] | None
    how: HowRead
    problem: str = ""
    around: str = ""


class ParsedAnswer(NamedTuple):
    """The object that the schema asks for, or the problems with the answer."""

    value: dict[str, Any] | None
    problems: tuple[str, ...] = ()
    read: tuple[ReadAs, ...] = ()
    """How it was found, whether types were converted, and whether names were dropped."""


class AmbiguousJson(ValueError):
    """Something that JSON parsers accept although its meaning is unclear."""


def parse_answer(text: str, schema: Mapping[str, Any], *, alone: bool = False) -> ParsedAnswer:
    """The object by the schema; with `alone`, prose around it is a problem."""
    found = read_object(text)
    if found.value is None or found.how == "cut" or found.how == "unreadable":  # noqa: PLR1714 narrows
        return ParsedAnswer(None, (found.problem,))
    if problem := why_unstorable(found.value):
        return ParsedAnswer(None, (f"it contains {problem}",))
    if alone and (len(found.around) > MAX_COURTESY or not COURTESY.fullmatch(found.around)):
        return ParsedAnswer(None, ("there is text around the JSON object",))
    fitter = _Fitter()
    value = fitter.fit(found.value, schema, "")
    problems = fitter.problems[:MAX_PROBLEMS]
    if found.how == "repaired":
        # An unknown name suggests that the repair changed the meaning.
        problems += [f"`{name}` is not known" for name in fitter.dropped]
    if problems:
        return ParsedAnswer(None, tuple(problems))
    coerced: tuple[ReadAs, ...] = ("coerced",) if fitter.converted else ()
    trimmed: tuple[ReadAs, ...] = ("trimmed",) if fitter.dropped else ()
    return ParsedAnswer(value, read=(found.how, *coerced, *trimmed))


def unwrap_answer(text: str) -> str | None:
    """The answer without leading thoughts and without a wrapper; None if a thought does not end."""
    text = join_surrogates(text).strip()
    at = 0
    while thought := THINKING_START.match(text, at):
        end = text.find(THINKING[1], thought.end())
        if end < 0:
            return None
        at = end + len(THINKING[1])
    text = text[at:].strip()
    return text.removeprefix(WRAPPER[0]).removesuffix(WRAPPER[1]) if text.startswith(WRAPPER[0]) else text


def read_value(text: str) -> Any:
    """The JSON value that a text is, or that its only fence holds; None where there is none."""
    bare = (unwrap_answer(text) or "").strip()
    value, fences = parse_json(bare), _fences(bare)
    if value is not None or len(fences) != 1:
        return value
    opened, closed = fences[0]
    return parse_json(bare[opened.end() : closed.start()])


def read_object(text: str) -> FoundObject:
    """The one JSON object in a text."""
    bare = unwrap_answer(text)
    if bare is None:
        return FoundObject(None, "cut", "it is a thought that does not end")
    text = bare.strip()
    if isinstance(value := parse_json(text), dict):
        return FoundObject(value, "as_is")
    if isinstance(value, str) and isinstance(inner := parse_json(value), dict):
        return FoundObject(inner, "as_is")
    if len(fences := _fences(text)) == 1:
        opened, closed = fences[0]
        if isinstance(value := parse_json(text[opened.end() : closed.start()]), dict):
            return _with_surrounding_text(text, value, "fenced", opened.start(), closed.end())
    start = text.find("{")
    if start < 0:
        return FoundObject(None, "unreadable", "it is not a JSON object")
    # Only the first brace counts: an inner object of a broken outer one would be a guess.
    try:
        value, end = DECODER.raw_decode(text, start)
    except AmbiguousJson as error:
        return FoundObject(None, "unreadable", str(error))
    except (ValueError, RecursionError) as error:
        return _repair(text, start, f"it is not valid JSON: {error}")
    return _with_surrounding_text(text, value, "first_object", start, end)


def _with_surrounding_text(
    text: str, value: dict[str, Any], how: ReadAs, start: int, end: int
) -> FoundObject:
    """The object with the text around it; no object if that text may be part of it."""
    before, after = text[:start].strip(), text[end:].strip()
    if "{" in before or "{" in after:
        return FoundObject(None, "unreadable", "it contains more than one JSON object")
    if before.endswith("[") or after.startswith(CONTINUES) or LEFTOVERS.search(f"{before}\0{after}"):
        problem = "the text around its JSON object seems to be part of it: perhaps a quote is not escaped"
        return FoundObject(None, "unreadable", problem)
    return FoundObject(value, how, around=f"{before} {after}".strip())


def _repair(text: str, start: int, problem: str) -> FoundObject:
    if not _is_closed(text, start):
        return FoundObject(None, "cut", "the answer was cut: something in it was opened and not closed")
    from handrail.models.reading.json_repair import repair_object

    repaired = repair_object(text, start)
    value = parse_json(repaired.json) if repaired else None
    if repaired is None or not isinstance(value, dict) or not value:
        return FoundObject(None, "unreadable", problem)
    return _with_surrounding_text(text, value, "repaired", start, repaired.end)


def _is_closed(text: str, start: int) -> bool:
    """Whether the object that starts there ends."""
    depth = 0
    for found in JSON_TOKENS.finditer(text, start):
        if found[0] == '"':
            return False  # a string that does not end
        depth += (found[0] in "{[") - (found[0] in "}]")
        if depth == 0:
            return True
    return False


def parse_json(text: str) -> Any:
    """The text as a JSON value; None if it is not JSON."""
    try:
        return DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _fences(text: str) -> list[tuple[re.Match[str], re.Match[str]]]:
    found, at = [], 0
    while opened := FENCE_OPEN.search(text, at):
        closed = FENCE_CLOSE.search(text, opened.end() - 1)
        if closed is None:
            break
        found.append((opened, closed))
        at = closed.end()
    return found


def _refuse_constant(constant: str) -> None:
    raise AmbiguousJson(f"{constant} is not JSON")


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise AmbiguousJson("a key stands twice in one object")
    return values


DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_refuse_duplicate_keys)
