"""All reading of what models write as JSON, in a fixed order.

without thoughts and wrappers -> as it is -> in a fence -> first in words -> repaired -> fitted to a schema

What has something left open is cut, whatever else can be said of it: it is never repaired, because closing
what was left open makes a shorter text look whole.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from handrail.models.fitting import fitted
from handrail.models.mending import mended
from handrail.models.sendable import fault, joined
from handrail.protocol.values import ReadAs

FENCE_OPEN = re.compile(r"^[ \t]{0,16}```[\w-]{0,40}[ \t\r]{0,16}\n", re.MULTILINE)
FENCE_CLOSE = re.compile(r"\n[ \t]{0,16}```[ \t\r]{0,16}(?=\n|\Z)")
PARTS = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]"]', re.DOTALL)
DEBRIS = re.compile(r'[}\\]|"\s*:')
"""What stands in JSON, and hardly in words: a quote that was not escaped ends an object before its end."""
GOES_ON = ('"', ",", ":", "]")
COURTESIES = """\
    sure so ok okay yes certainly of course done here's here is it you go the my your as for in json answer
    object response result asked requested following below hope this that helps let me know if have any
    questions need anything else"""
"""Words that can neither deny nor quote what they stand around."""
COURTESY = re.compile(rf"(?:[\s`~.,:;!<>/*#-]|\b(?:{'|'.join(COURTESIES.split())})\b)*+", re.IGNORECASE)
LONGEST_COURTESY = 200
NOT_ALONE = "words stand around the JSON object"
BROKEN = "around its JSON object stands what seems to be a part of it: perhaps a quote is not escaped"
WRAPPER = ("<response>", "</response>")
THINKING = ("<think>", "</think>")
THOUGHT = re.compile(rf"\s*{THINKING[0]}")

How = ReadAs | Literal["cut", "unreadable"]


class Read(NamedTuple):
    """An object, how it was found, and where it was not, why."""

    value: dict[str, Any] | None
    how: How
    problem: str = ""
    around: str = ""
    """The words before and after it."""


class Block(NamedTuple):
    """What stands in a fence, and where the fence is."""

    text: str
    start: int
    end: int


class Shaped(NamedTuple):
    """The object that a schema asks for, or what is wrong with the answer."""

    value: dict[str, Any] | None
    problems: tuple[str, ...] = ()
    read: tuple[ReadAs, ...] = ()
    """How it was found, whether its types had to be mended, and whether something was left out."""


class NotJson(ValueError):
    """Something that parsers let pass and that is not clear; no repair makes it so."""


def shaped(text: str, schema: Mapping[str, Any], *, alone: bool = False) -> Shaped:
    """What an answer means by the schema; `alone`: words around it could say that it is not meant."""
    found = read_object(text)
    if found.value is None or found.how == "cut" or found.how == "unreadable":  # noqa: PLR1714 narrows
        return Shaped(None, (found.problem,))
    if unfit := fault(found.value):
        return Shaped(None, (f"it holds {unfit}",))
    if alone and not courteous(found.around):
        return Shaped(None, (NOT_ALONE,))
    value, problems, dropped, mended_types = fitted(found.value, schema)
    if dropped and found.how == "repaired":
        # A name that nobody asked for is a sign that the repair found something else than was meant.
        problems += tuple(f"`{name}` is not known" for name in dropped)
    if problems:
        return Shaped(None, problems)
    coerced: tuple[ReadAs, ...] = ("coerced",) if mended_types else ()
    trimmed: tuple[ReadAs, ...] = ("trimmed",) if dropped else ()
    return Shaped(value, read=(found.how, *coerced, *trimmed))


def courteous(words: str) -> bool:
    """Whether the words around an object say no more than that it comes."""
    return len(words) <= LONGEST_COURTESY and COURTESY.fullmatch(words) is not None


def unwrapped(text: str) -> str | None:
    """The answer without thoughts before it and a wrapper around it; None where a thought does not end."""
    text = joined(text).strip()
    at = 0
    while thought := THOUGHT.match(text, at):
        at = text.find(THINKING[1], thought.end()) + len(THINKING[1])
        if at < thought.end():
            return None
    text = text[at:].strip()
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
    if len(blocks) == 1 and isinstance(value := parsed(blocks[0].text), dict):
        return _among(text, value, "fenced", blocks[0].start, blocks[0].end)
    start = text.find("{")
    if start < 0:
        return Read(None, "unreadable", "it is not a JSON object")
    # Only the first brace counts: an inner object of a broken outer one would be a guess.
    try:
        value, end = DECODER.raw_decode(text, start)
    except NotJson as error:
        return Read(None, "unreadable", str(error))
    except (ValueError, RecursionError) as error:
        return _repaired(text, start, f"it is not valid JSON: {error}")
    return _among(text, value, "first_object", start, end)


def _among(text: str, value: dict[str, Any], how: ReadAs, start: int, end: int) -> Read:
    """The object with the words around it; none where they may be a part of it."""
    before, after = text[:start].strip(), text[end:].strip()
    if "{" in before or "{" in after:
        return Read(None, "unreadable", "it holds more than one JSON object")
    if before.endswith("[") or after.startswith(GOES_ON) or DEBRIS.search(before) or DEBRIS.search(after):
        return Read(None, "unreadable", BROKEN)
    return Read(value, how, around=f"{before} {after}".strip())


def _repaired(text: str, start: int, problem: str) -> Read:
    if _end(text, start) is None:
        return Read(None, "cut", "the answer was cut: something in it was opened and not closed")
    mend = mended(text, start)
    value = parsed(mend.json) if mend else None
    if mend is None or not isinstance(value, dict) or not value:
        return Read(None, "unreadable", problem)
    return _among(text, value, "repaired", start, mend.end)


def _end(text: str, start: int) -> int | None:
    """Where the object ends that begins there; None where it does not."""
    depth = 0
    for found in PARTS.finditer(text, start):
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
        return DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def fenced(text: str) -> list[Block]:
    """What stands in the fences of a text."""
    blocks = []
    at = 0
    while opened := FENCE_OPEN.search(text, at):
        closed = FENCE_CLOSE.search(text, opened.end() - 1)
        if closed is None:
            break
        blocks.append(Block(text[opened.end() : closed.start()], opened.start(), closed.end()))
        at = closed.end()
    return blocks


def _refuse(constant: str) -> None:
    raise NotJson(f"{constant} is not JSON")


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise NotJson("a key stands twice in one object")
    return values


DECODER = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_without_doubles)
