"""Results of tool calls as data: search hits, and why a call was refused."""

import json
import re
from typing import NamedTuple

from handrail.engine.pipeline import CallResult


class SearchHit(NamedTuple):
    path: str
    line: int
    text: str


def search_hits(end: CallResult) -> list[SearchHit]:
    """The hits of a search with `rows`. Notes and a row that was cut off are left out.

    Rows are JSON, because in the plain form a file name with a colon could look like another hit.
    """
    found = []
    for line in end.content.split("\n") if end.ok else ():
        try:
            path, number, text = json.loads(line)
        except ValueError:
            continue
        found.append(SearchHit(path, number, text))
    return found


class CallRefusal(NamedTuple):
    reason: str = ""
    message: str = ""


def call_refusal(end: CallResult) -> CallRefusal:
    """Why a call was refused; empty where it was not."""
    if end.ok:
        return CallRefusal()
    try:
        error = json.loads(end.content)
    except ValueError:
        error = None
    error = error if isinstance(error, dict) else {}
    return CallRefusal(str(error.get("reason", "")), collapse_whitespace(error.get("message", end.content)))


def collapse_whitespace(text: object) -> str:
    """The text on one line, with single spaces."""
    return re.sub(r"\s+", " ", str(text)).strip()
