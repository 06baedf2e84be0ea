"""Arguments of a call out of what a model wrote.

Nothing here guesses. What is not one whole JSON object is a `problem` that says why.
"""

import json
import re
from typing import Any, NamedTuple

from handrail.models.sendable import fault, joined
from handrail.protocol.ids import new_id
from handrail.protocol.values import ToolCall

FENCE_OPEN = re.compile(r"^[ \t]{0,16}```[\w-]{0,40}[ \t\r]{0,16}\n", re.MULTILINE)
FENCE_CLOSE = re.compile(r"\n[ \t]{0,16}```[ \t\r]{0,16}(?=\n|\Z)")


class Arguments(NamedTuple):
    """What was read, or why nothing could be."""

    values: dict[str, Any]
    problem: str = ""


def read_arguments(text: str) -> Arguments:
    """The one JSON object in a call's arguments: alone, in a fence, or first in surrounding words."""
    text = joined(text).strip()
    if not text:
        return Arguments({})
    blocks = _fenced(text)
    for candidate in (text, *(blocks if len(blocks) == 1 else ())):
        value = parsed(candidate)
        if isinstance(value, str):
            value = parsed(value)
        if isinstance(value, dict):
            return sendable(value)
    return _first_object(text)


def _fenced(text: str) -> list[str]:
    blocks = []
    at = 0
    while opened := FENCE_OPEN.search(text, at):
        closed = FENCE_CLOSE.search(text, opened.end() - 1)
        if closed is None:
            break
        blocks.append(text[opened.end() : closed.start()])
        at = closed.end()
    return blocks


def _first_object(text: str) -> Arguments:
    start = text.find("{")
    if start < 0:
        return Arguments({}, "the arguments are not a JSON object")
    # Only the first brace counts: an inner object of a broken outer one would be a guess.
    try:
        value, end = json.JSONDecoder(parse_constant=_refuse).raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        return Arguments({}, f"the arguments are not valid JSON: {error}")
    if "{" in text[end:]:
        return Arguments({}, "the arguments hold more than one JSON object")
    return sendable(value)


def parsed(text: str) -> Any:
    """The JSON value that the text is; None when it is none."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def sendable(value: dict[str, Any]) -> Arguments:
    """The values, or why they cannot be kept."""
    found = fault(value)
    return Arguments({}, f"the arguments hold {found}") if found else Arguments(value)


def read_call(call_id: str, name: str, arguments: str) -> ToolCall:
    """A native call as a value; a call without an id gets one."""
    values, problem = read_arguments(arguments)
    if not name:
        problem = "the call names no tool"
    return ToolCall(id=call_id or new_id("call"), name=name, arguments=values, problem=problem)
