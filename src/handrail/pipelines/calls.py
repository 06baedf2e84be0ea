"""What came of calls, as data."""

import json
import re
from typing import NamedTuple

from handrail.engine.pipeline.definition import CallEnd


class Hit(NamedTuple):
    path: str
    line: int
    text: str


def hits_of(end: CallEnd) -> list[Hit]:
    """The hits of a search that was asked for `rows`; notes, and a row that was cut off, are none.

    In the text that models are shown, names of files may hold colons, or look like another hit.
    """
    found = []
    for line in end.content.split("\n") if end.ok else ():
        try:
            path, number, text = json.loads(line)
        except ValueError:
            continue
        found.append(Hit(path, number, text))
    return found


class WhyNot(NamedTuple):
    reason: str = ""
    message: str = ""


def why_not(end: CallEnd) -> WhyNot:
    """Why a call was not done; nothing where it was."""
    if end.ok:
        return WhyNot()
    try:
        told = json.loads(end.content)
    except ValueError:
        told = None
    said = told if isinstance(told, dict) else {}
    return WhyNot(str(said.get("reason", "")), squeezed(said.get("message", end.content)))


def squeezed(text: object) -> str:
    """The text with one space for each run of blanks and line ends, which wrapping alone changes."""
    return re.sub(r"\s+", " ", str(text)).strip()
