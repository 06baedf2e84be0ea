"""All reading of what models write as JSON, in a fixed order.

without thoughts and wrappers -> as it is -> in a fence -> first in words -> repaired -> fitted to a schema

What has something left open is cut, whatever else can be said of it: it is never repaired, because closing
what was left open makes a shorter text look whole.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from handrail.models.fitting import fitted
from handrail.models.sendable import fault, joined
from handrail.protocol.values import ReadAs

FENCE_OPEN = re.compile(r"^[ \t]{0,16}```[\w-]{0,40}[ \t\r]{0,16}\n", re.MULTILINE)
FENCE_CLOSE = re.compile(r"\n[ \t]{0,16}```[ \t\r]{0,16}(?=\n|\Z)")
PARTS = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]"]', re.DOTALL)
LETTER = re.compile(r"[a-z0-9]")
ESCAPED = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)")
WRAPPER = ("<response>", "</response>")
THINKING = ("<think>", "</think>")
MOST_REPAIRED = 200_000
"""Characters that the library is given: its time is not proportional to them."""

How = ReadAs | Literal["cut", "unreadable"]


class Read(NamedTuple):
    """An object, how it was found, and where it was not, why."""

    value: dict[str, Any] | None
    how: How
    problem: str = ""


class Shaped(NamedTuple):
    """The object that a schema asks for, or what is wrong with the answer."""

    value: dict[str, Any] | None
    problems: tuple[str, ...] = ()
    read: tuple[ReadAs, ...] = ()
    """How it was found, and whether its types had to be mended."""


class NotJson(ValueError):
    """Something that parsers let pass and that is not clear; no repair makes it so."""


def shaped(text: str, schema: Mapping[str, Any]) -> Shaped:
    """What an answer means by the schema."""
    found = read_object(text)
    if found.value is None or found.how == "cut" or found.how == "unreadable":  # noqa: PLR1714 narrows
        return Shaped(None, (found.problem,))
    if unfit := fault(found.value):
        return Shaped(None, (f"it holds {unfit}",))
    value, problems = fitted(found.value, schema)
    if problems:
        return Shaped(None, problems)
    # By their text: in Python 1, 1.0 and True are the same.
    coerced = json.dumps(value) != json.dumps(found.value)
    return Shaped(value, read=(found.how, "coerced") if coerced else (found.how,))


def unwrapped(text: str) -> str | None:
    """The answer without thoughts before it and a wrapper around it; None where a thought does not end."""
    text = joined(text).strip()
    while text.startswith(THINKING[0]):
        _, ended, text = text.partition(THINKING[1])
        text = text.strip()
        if not ended:
            return None
    return text.removeprefix(WRAPPER[0]).removesuffix(WRAPPER[1]) if text.startswith(WRAPPER[0]) else text


def read_object(text: str) -> Read:
    """The one JSON object in a text."""
    bare = unwrapped(text)
    if bare is None:
        return Read(None, "cut", "it is a thought that does not end")
    text = bare.strip()
    if isinstance(value := parsed(text), dict):
        return Read(value, "as_is")
    if isinstance(value, str) and isinstance(inner := parsed(value), dict):
        return Read(inner, "as_is")
    blocks = fenced(text)
    if len(blocks) == 1 and isinstance(value := parsed(blocks[0]), dict):
        return Read(value, "fenced")
    start = text.find("{")
    if start < 0:
        return Read(None, "unreadable", "it is not a JSON object")
    # Only the first brace counts: an inner object of a broken outer one would be a guess.
    try:
        decoder = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_without_doubles)
        value, end = decoder.raw_decode(text, start)
    except NotJson as error:
        return Read(None, "unreadable", str(error))
    except (ValueError, RecursionError) as error:
        return _repaired(text[start:], f"it is not valid JSON: {error}")
    if "{" in text[end:]:
        return Read(None, "unreadable", "it holds more than one JSON object")
    return Read(value, "first_object")


def _repaired(text: str, problem: str) -> Read:
    end = _end(text)
    if end is None:
        return Read(None, "cut", "the answer was cut: something in it was opened and not closed")
    if "{" in text[end:]:
        return Read(None, "unreadable", "it holds more than one JSON object")
    if end > MOST_REPAIRED:
        return Read(None, "unreadable", problem)
    from json_repair import loads  # imported here: the last resort, and slow to import

    try:
        value = loads(text[:end], skip_json_loads=True)
    except (ValueError, RecursionError):
        return Read(None, "unreadable", problem)
    if not isinstance(value, dict) or not value or _letters(text[:end]) != _letters(json.dumps(value)):
        return Read(None, "unreadable", problem)
    if not all(_stands_in(text[:end], each) for each in _texts(value)):
        return Read(None, "unreadable", problem)
    return Read(value, "repaired")


def _texts(value: Any) -> Iterator[str]:
    """The texts in a value, without the names of its fields."""
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)


def _stands_in(written: str, text: str) -> bool:
    """Whether a text is in the answer from quote to quote: a repair may not leave out a comma or a break."""
    escaped = json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]
    said = {text, *escaped, *(each.replace('\\"', '"').replace("'", "\\'") for each in escaped)}
    said |= {each.replace('\\"', '"') for each in escaped}
    return not text or any(f"{quote}{each}{quote}" in written for quote in "\"'" for each in said)


def _letters(text: str) -> list[str]:
    """What must be the same before and after a repair, so that nothing is dropped or made up."""
    return LETTER.findall(ESCAPED.sub("", text.replace("None", "null")).lower())


def _end(text: str) -> int | None:
    """Where the object ends that the text begins with; None where it does not."""
    depth = 0
    for found in PARTS.finditer(text):
        match found[0]:
            case '"':
                return None  # a string that does not end
            case "{" | "[":
                depth += 1
            case "}" | "]":
                depth -= 1
                if depth == 0:
                    return found.end()
    return None


def parsed(text: str) -> Any:
    """The JSON value that the text is; None when it is none."""
    try:
        return json.loads(text, parse_constant=_refuse, object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError):
        return None


def fenced(text: str) -> list[str]:
    """What stands in the fences of a text."""
    blocks = []
    at = 0
    while opened := FENCE_OPEN.search(text, at):
        closed = FENCE_CLOSE.search(text, opened.end() - 1)
        if closed is None:
            break
        blocks.append(text[opened.end() : closed.start()])
        at = closed.end()
    return blocks


def _refuse(constant: str) -> None:
    raise NotJson(f"{constant} is not JSON")


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise NotJson("a key stands twice in one object")
    return values
