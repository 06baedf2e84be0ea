"""What can be kept of a structured answer that was cut: every item that is complete, and nothing else."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import ValidationError, convert
from msgspec.structs import replace

from handrail.models.reading.json_reader import DECODER, fit_value, unwrap_answer
from handrail.models.reading.sanitize import why_unstorable
from handrail.protocol.values import StructuredAnswer

OBJECT_START = re.compile(r"\s*(?:<response>\s*)?(?:```\w*\s*)?\{")
BLANK = re.compile(r"\s*")


class _Cut(Exception):
    """The text ends here, or cannot be read from here on."""


class Found(NamedTuple):
    value: Any
    end: int


def recover_answer(text: str, schema: Mapping[str, Any]) -> StructuredAnswer | None:
    """The complete parts of an answer by the schema; None if there are none, or their meaning is unclear."""
    bare = unwrap_answer(text)
    opened = OBJECT_START.match(bare) if bare else None
    if bare is None or opened is None:
        return None
    known, found = schema["properties"], dict[str, Any]()
    at, names = opened.end(), set[str]()
    try:
        while True:
            name, at = _name(bare, at)
            if name in names:
                return None  # which of the two counts is not clear
            names.add(name)
            wanted = known.get(name, {})
            if wanted.get("type") == "array" and bare[at : at + 1] == "[":
                items: list[Any] = []
                if name in known:
                    found[name] = items
                at = _items(bare, at + 1, wanted.get("items", {}), items)
            else:
                value, at = _value(bare, at)
                if name in known and not fit_value(value, wanted).problems:
                    found[name] = value
            if bare[at : at + 1] != ",":
                break
            at += 1
    except _Cut:
        pass
    try:
        answer = convert({"summary": "", **found}, StructuredAnswer)
    except ValidationError:
        return None
    return answer if offers(answer) else None


def offers(answer: StructuredAnswer) -> bool:
    """Whether there is anything in the answer besides its summary."""
    return any((answer.sections, answer.todos, answer.changes, answer.commands, answer.next_steps))


def _name(text: str, at: int) -> Found:
    """A name and where its value starts."""
    at = _skip_blank(text, at)
    if text[at : at + 1] != '"':
        raise _Cut
    name, at = _decoded(text, at)
    at = _skip_blank(text, at)
    if text[at : at + 1] != ":":
        raise _Cut
    return Found(name, _skip_blank(text, at + 1))


def _items(text: str, at: int, schema: Mapping[str, Any], items: list[Any]) -> int:
    """Add the complete items of a list that fit the schema; returns where the list has ended."""
    at = _skip_blank(text, at)
    if text[at : at + 1] == "]":
        return _skip_blank(text, at + 1)
    while True:
        value, at = _value(text, at)
        fitted = fit_value(value, schema)
        if not fitted.problems and not why_unstorable(fitted.value):
            items.append(fitted.value)
        if text[at : at + 1] == "]":
            return _skip_blank(text, at + 1)
        if text[at : at + 1] != ",":
            raise _Cut
        at = _skip_blank(text, at + 1)


def _value(text: str, at: int) -> Found:
    """A value that is certainly complete: an object that is closed, or one that a comma or bracket follows.

    A quote alone does not end a text: it may be one of its own that was not escaped.
    """
    value, end = _decoded(text, at)
    end = _skip_blank(text, end)
    if not isinstance(value, dict) and text[end : end + 1] not in (",", "]", "}"):
        raise _Cut
    return Found(value, end)


def _decoded(text: str, at: int) -> Found:
    try:
        return Found(*DECODER.raw_decode(text, at))
    except (ValueError, RecursionError) as error:
        raise _Cut from error


def _skip_blank(text: str, at: int) -> int:
    found = BLANK.match(text, at)
    return found.end() if found else at


def merge_answers(kept: StructuredAnswer | None, rest: StructuredAnswer) -> StructuredAnswer:
    """The rest of an answer with the parts that were kept of its beginning; the text is that of the rest."""
    if kept is None:
        return rest
    texts = {todo.text for todo in kept.todos}
    steps = {step.input for step in rest.next_steps}
    return replace(
        rest,
        todos=(*kept.todos, *(todo for todo in rest.todos if todo.text not in texts)),
        changes=(*kept.changes, *(change for change in rest.changes if change not in kept.changes)),
        commands=tuple(dict.fromkeys((*kept.commands, *rest.commands))),
        next_steps=(*(step for step in kept.next_steps if step.input not in steps), *rest.next_steps),
    )


def recovered_as_markdown(answer: StructuredAnswer) -> list[str]:
    """The recovered todos and changes; commands and next steps are shown as in every answer."""
    parts = []
    if answer.todos:
        parts.append("**Todos**\n\n" + "\n".join(f"- {' '.join(todo.text.split())}" for todo in answer.todos))
    if answer.changes:
        named = (
            f"- {change.get('form')} {' '.join(str(change.get('path')).split())}" for change in answer.changes
        )
        parts.append("**Changes, not made because the answer was cut**\n\n" + "\n".join(named))
    return parts


def count_parts(answer: StructuredAnswer) -> str:
    """`2 todos, 1 command, 1 change`."""
    counts = {
        "section": len(answer.sections),
        "todo": len(answer.todos),
        "change": len(answer.changes),
        "command": len(answer.commands),
        "next step": len(answer.next_steps),
    }
    return ", ".join(f"{count} {name}{'s' * (count > 1)}" for name, count in counts.items() if count)
