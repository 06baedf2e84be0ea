"""Objects of slips that leave no doubt, written anew as JSON: nothing is dropped, moved or made up.

Quotes of the other kind, names without quotes, raw line breaks in texts, a comma too many at an end, one too
few before a name or between two objects, the words of Python. All else that is wrong stays wrong.
"""

import json
import re
from typing import NamedTuple

PART = re.compile(
    r"""(?P<blank>\s+)
    |(?P<text>"(?:[^"\\]|\\.)*+")
    |(?P<single>'(?:[^'\\]|\\.)*+')
    |(?P<mark>[{}\[\],:])
    |(?P<word>[\w$.+-]+)""",
    re.VERBOSE | re.DOTALL,
)
COLON = re.compile(r"\s*:")
CLOSING = re.compile(r"\s*[}\]]")
NAME = re.compile(r"[A-Za-z_$][\w$-]*")
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
RAW = re.compile(r"[\x00-\x1f]")
IN_SINGLE = re.compile(r"""\\.|"|[\x00-\x1f]""", re.DOTALL)
OF_TWO_MEANINGS = re.compile(r"(?<!\\)(?:\\\\)*\\/")
"""A slash in JSON; in a text of Python, a backslash and a slash."""
RAW_ESCAPED = re.compile(r"(?<!\\)(?:\\\\)*\\[\x00-\x1f]")
WORDS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}


class Mended(NamedTuple):
    """JSON, and where the object ends that it was."""

    json: str
    end: int


def mended(text: str, start: int) -> Mended | None:
    """The object that begins there; None where it takes a guess, or does not end."""
    written: list[str] = []
    last = ""
    depth, at = 0, start
    while found := PART.match(text, at):
        at, kind, said = found.end(), found.lastgroup, found[0]
        if kind == "blank" or (said == "," and _ends_value(last) and CLOSING.match(text, at)):
            continue
        is_name = kind != "mark" and COLON.match(text, at) is not None
        new = _anew(kind, said, is_name=is_name)
        if new is None:
            return None
        if _comma_is_missing(last, new, is_name=is_name and kind != "word"):
            written.append(",")
        written.append(new)
        last = new
        depth += (new in ("{", "[")) - (new in ("}", "]"))
        if depth == 0:
            return Mended(" ".join(written), at)
    return None


def _ends_value(said: str) -> bool:
    return said not in ("", "{", "[", ",", ":")


def _comma_is_missing(last: str, new: str, *, is_name: bool) -> bool:
    """Not between two texts, which may be one with a quote in it; nor after one that has swallowed it."""
    before_name = is_name and _ends_value(last) and not last.endswith(',"')
    return before_name or (last, new) in (("}", "{"), ("]", "["))


def _anew(kind: str | None, said: str, *, is_name: bool) -> str | None:
    match kind:
        case "mark":
            return said
        case "word":
            return _word(said, is_name=is_name)
        case _:
            return _text(said, is_name=is_name)


def _word(word: str, *, is_name: bool) -> str | None:
    if is_name:
        return json.dumps(word) if NAME.fullmatch(word) else None
    return word if NUMBER.fullmatch(word) else WORDS.get(word)


def _text(said: str, *, is_name: bool) -> str | None:
    if said[0] == "'" and OF_TWO_MEANINGS.search(said):
        return None
    raw = RAW.search(said)
    if raw and (is_name or RAW_ESCAPED.search(said)):
        return None
    if said[0] == '"':
        return RAW.sub(_escaped, said) if raw else said
    return f'"{IN_SINGLE.sub(_escaped, said[1:-1])}"'


def _escaped(found: re.Match[str]) -> str:
    match found[0]:
        case r"\'":
            return "'"
        case '"':
            return r"\""
        case escape if escape.startswith("\\"):
            return escape
        case raw:
            return json.dumps(raw)[1:-1]
