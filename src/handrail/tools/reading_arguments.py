"""A model's arguments as a tool's values, or a refusal that says what is wrong with them."""

from typing import Any, TypeVar

from pydantic import ValidationError

from handrail.protocol.errors import ToolError, ToolRefused
from handrail.protocol.values import ToolCall, Value

NAMED_PROBLEMS = 4

Arguments = TypeVar("Arguments", bound=Value)


def read_arguments(call: ToolCall, kind: type[Arguments]) -> Arguments:
    """The arguments; a null stands for one that was left out."""
    if call.read == "cut":
        message = "The answer was cut off, so nothing of it was done. Send the calls again, in smaller parts."
        raise ToolRefused(ToolError(tool=call.name, reason="truncated", message=message))
    if call.problem:
        raise _refused(call, f"The arguments could not be read: {call.problem}.")
    given = {name: value for name, value in call.arguments.items() if value is not None}
    if not _is_text(given):
        raise _refused(call, "The arguments hold characters that are no text (NUL or half a surrogate pair).")
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        problems = [_words(problem, kind) for problem in error.errors()[:NAMED_PROBLEMS]]
        raise _refused(call, "; ".join(problems) + ".") from error


def _words(problem: Any, kind: type[Value]) -> str:
    where = ".".join(str(part) for part in problem["loc"])
    match problem["type"]:
        case "missing":
            return f"`{where}` is missing"
        case "extra_forbidden":
            return f"`{where}` is not known; there are: {', '.join(kind.model_fields)}"
        case _:
            return f"`{where}`: {problem['msg']}"


def _is_text(value: object) -> bool:
    match value:
        case str():
            return "\0" not in value and not any("\ud800" <= character <= "\udfff" for character in value)
        case dict():
            return all(_is_text(key) and _is_text(inner) for key, inner in value.items())
        case list() | tuple():
            return all(_is_text(inner) for inner in value)
        case _:
            return True


def _refused(call: ToolCall, message: str) -> ToolRefused:
    error = ToolError(tool=call.name, reason="invalid_arguments", message=f"{message} Correct the call.")
    return ToolRefused(error)
