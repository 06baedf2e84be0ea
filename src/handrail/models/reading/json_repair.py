"""Repairs unambiguous JSON mistakes; nothing is dropped, moved or invented.

Quotes of the other kind, names without quotes, raw line breaks in texts, a comma too many at an end, one too
few before a name or between two objects, the words of Python. All else that is wrong stays wrong.
"""

import json
import re
from typing import NamedTuple

TOKEN = re.compile(
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
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f]")
IN_SINGLE_QUOTES = re.compile(r"""\\.|"|[\x00-\x1f]""", re.DOTALL)
AMBIGUOUS_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\/")
"""In JSON a slash; in Python a backslash and a slash."""
ESCAPED_CONTROL_CHARACTER = re.compile(r"(?<!\\)(?:\\\\)*\\[\x00-\x1f]")
WORDS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}


class RepairedObject(NamedTuple):
    """Valid JSON, and where the original object ends."""

    json: str
    end: int


def repair_object(text: str, start: int) -> RepairedObject | None:
    """The object that starts there, repaired; None if that takes a guess, or it does not end."""
    written: list[str] = []
    last = ""
    depth, at = 0, start
    while found := TOKEN.match(text, at):
        at, kind, source = found.end(), found.lastgroup, found[0]
        if kind == "blank" or (source == "," and _ends_value(last) and CLOSING.match(text, at)):
            continue
        is_name = kind != "mark" and COLON.match(text, at) is not None
        new: str | None = source
        if kind == "word" and is_name:
            new = json.dumps(source) if NAME.fullmatch(source) else None
        elif kind == "word":
            new = source if NUMBER.fullmatch(source) else WORDS.get(source)
        elif kind != "mark":
            new = _json_string(source, is_name=is_name)
        if new is None:
            return None
        # Not between two strings, which may be one with a quote in it, or after one that contains the comma.
        before_name = is_name and kind != "word" and _ends_value(last) and not last.endswith(',"')
        if before_name or (last, new) in (("}", "{"), ("]", "[")):
            written.append(",")
        written.append(new)
        last = new
        depth += (new in ("{", "[")) - (new in ("}", "]"))
        if depth == 0:
            return RepairedObject(" ".join(written), at)
    return None


def _ends_value(source: str) -> bool:
    return source not in ("", "{", "[", ",", ":")


def _json_string(source: str, *, is_name: bool) -> str | None:
    if source[0] == "'" and AMBIGUOUS_ESCAPE.search(source):
        return None
    raw = CONTROL_CHARACTER.search(source)
    if raw and (is_name or ESCAPED_CONTROL_CHARACTER.search(source)):
        return None
    if source[0] == '"':
        return CONTROL_CHARACTER.sub(_escaped, source) if raw else source
    return f'"{IN_SINGLE_QUOTES.sub(_escaped, source[1:-1])}"'


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
