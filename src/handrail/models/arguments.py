"""Arguments of a call out of what a model wrote.

What is not one whole JSON object, and cannot be repaired into one with nothing lost, is a `problem` that says
why.
"""

from typing import Any, Literal, NamedTuple

from pydantic_core import from_json

from handrail.models.reading import read_object
from handrail.models.sendable import fault, joined
from handrail.protocol.ids import new_id
from handrail.protocol.values import ToolCall

ABOUT = ("path", "command", "url", "question", "todos")
LONGEST_ABOUT = 200


class Arguments(NamedTuple):
    """What was read, or why nothing could be."""

    values: dict[str, Any]
    problem: str = ""
    read: Literal["whole", "repaired", "cut"] = "whole"


def read_arguments(text: str) -> Arguments:
    """The one JSON object in a call's arguments: alone, in a fence, first in other words, or repaired."""
    text = joined(text).strip()
    if not text:
        return Arguments({})
    value, how, problem, _ = read_object(text)
    if value is None:
        return Arguments({}, problem, "cut" if how == "cut" else "whole")
    return sendable(value)._replace(read="repaired" if how == "repaired" else "whole")


def sendable(value: dict[str, Any]) -> Arguments:
    """The values, or why they cannot be kept."""
    found = fault(value)
    return Arguments({}, f"the arguments hold {found}") if found else Arguments(value)


def readable(name: str, arguments: str) -> str:
    """What a person can be told of a call that breaks off: the tool, and what it was about."""
    try:
        value = from_json(arguments, allow_partial="trailing-strings")
    except ValueError:
        value = None
    about = next((str(value[key]) for key in ABOUT if key in value), "") if isinstance(value, dict) else ""
    return " ".join(f"{name} {about}".split())[:LONGEST_ABOUT]


def read_call(call_id: str, name: str, arguments: str) -> ToolCall:
    """A native call as a value; a call without an id gets one."""
    values, problem, read = read_arguments(arguments)
    if not name:
        problem = "the call names no tool"
    return ToolCall(id=call_id or new_id("call"), name=name, arguments=values, problem=problem, read=read)
