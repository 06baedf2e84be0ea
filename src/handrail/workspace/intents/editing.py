"""Changing the text of the intents file: only what is meant changes; comments, order and the rest stay.

Every change is read again and compared before anybody writes it.
"""

import json
import re
import textwrap
from collections.abc import Mapping, Sequence

from handrail.protocol.errors import IntentsProblem
from handrail.protocol.intent import Intent
from handrail.workspace.intents.document import ID, ID_TOLD, IntentsDocument, Placed, read_intents
from handrail.workspace.intents.yaml_tree import Fields, Items, Node, Text

PLAIN = re.compile(r"[A-Za-z0-9_./][\w./*-]*( [\w./()-]+)*", re.ASCII)
RESERVED = re.compile(r"(true|false|yes|no|on|off|null|y|n|[-+.\d_]+|\d+e\d+)", re.IGNORECASE)
BY_HAND = "Change it in the file by hand."
ID_STAYS = "An id stays as it is: the trace names it. Make a new intent instead."


def with_value(document: IntentsDocument, intent_id: str, key: str, value: str) -> IntentsDocument:
    """The text with one line of text as the value of a key of an intent."""
    placed = _found(document, intent_id)
    node = placed.node.get(key)
    if node is None:
        return _checked(document, _with_key(document, placed, key, quoted(value)), intent_id)
    if isinstance(node, Text):
        return _checked(document, _replaced(document, node, quoted(value)), intent_id)
    raise IntentsProblem(f"line {node.line}: `{key}` is a list or a map. {BY_HAND}", node.line)


def with_entries(
    document: IntentsDocument, intent_id: str, key: str, entries: Sequence[str]
) -> IntentsDocument:
    """The text with further entries at the end of a list of an intent."""
    placed = _found(document, intent_id)
    node = placed.node.get(key)
    match node:
        case Items(flow=False) if node.values:
            source = _more_items(document, node, entries)
        case Items():
            close = node.end - 1
            inside = document.source[node.start + 1 : close].rstrip()
            comma = ", " if node.values and not inside.endswith(",") else " " if node.values else ""
            at = node.start + 1 + len(inside)
            source = document.source[:at] + comma + ", ".join(map(quoted, entries)) + document.source[at:]
        case None:
            source = _with_key(document, placed, key, _flow(entries))
        case Text():
            known = [] if node.empty else [each.strip() for each in node.value.splitlines() if each.strip()]
            source = _replaced(document, node, _flow([*known, *entries]))
        case _:
            raise IntentsProblem(f"line {node.line}: `{key}` is a map. {BY_HAND}", node.line)
    return _checked(document, source, intent_id)


def with_list(document: IntentsDocument, intent_id: str, key: str, entries: Sequence[str]) -> IntentsDocument:
    """The text with these entries, and no others, in a list of an intent."""
    placed = _found(document, intent_id)
    node = placed.node.get(key)
    if node is None:
        source = _with_key(document, placed, key, _flow(entries))
    elif isinstance(node, Items) and not node.flow and entries:
        indent = _newline(document.source) + " " * node.column
        source = (
            document.source[: node.start]
            + indent.join(f"- {quoted(each)}" for each in entries)
            + document.source[_content_end(document.source, node) :]
        )
    else:
        source = _replaced(document, node, _flow(entries))
    return _checked(document, source, intent_id)


def with_text(document: IntentsDocument, intent_id: str, text: str) -> IntentsDocument:
    """The text in which an intent reads as given, as `Intent.text` gave it before."""
    placed = _found(document, intent_id)
    old = document.source[placed.start : placed.end]
    first = old[: len(old) - len(old.lstrip(" "))]
    new = textwrap.indent(textwrap.dedent(text).strip("\n"), first).replace("\n", _newline(document.source))
    source = document.source[: placed.start] + new + document.source[placed.end :]
    return _checked(document, source, intent_id)


def with_new(
    document: IntentsDocument, intent_id: str, fields: Mapping[str, str | Sequence[str]]
) -> IntentsDocument:
    """The text with one intent more, at the end, in the shape that the file has."""
    if not ID.fullmatch(intent_id):
        raise IntentsProblem(f"{intent_id[:80]!r} is no id. {ID_TOLD}")
    if document.find(intent_id):
        raise IntentsProblem(f"{intent_id} exists already: `handrail intents edit {intent_id}` changes it.")
    container, source = document.container, document.source
    lines = [line for key, value in fields.items() for line in _lines(key, value)]
    if isinstance(container, Fields | Items) and container.flow:
        raise IntentsProblem(f"The intents are written on one line, in brackets. {BY_HAND}")
    if isinstance(container, Fields):
        indent = " " * container.column
        block = [f"{indent}{quoted(intent_id)}:", *(f"{indent}  {line}" for line in lines)]
    else:
        indent = " " * (container.column if container else 2)
        block = [f"{indent}- id: {quoted(intent_id)}", *(f"{indent}  {line}" for line in lines)]
    wanted = _newline(source).join(block)
    if container is None:
        return _checked(document, _in_empty(document, wanted), intent_id)
    end = len(source[: container.end].rstrip())
    end = _line_end(source, end)
    return _checked(document, source[:end] + _newline(source) + wanted + source[end:], intent_id)


def quoted(text: str) -> str:
    """A text as YAML, in quotes where it would be read as something else without."""
    if PLAIN.fullmatch(text) and not RESERVED.fullmatch(text):
        return text
    return json.dumps(text, ensure_ascii=False)


def _lines(key: str, value: str | Sequence[str]) -> list[str]:
    if isinstance(value, str):
        return [f"{key}: {quoted(value)}"]
    return [f"{key}:", *(f"  - {quoted(each)}" for each in value)] if value else [f"{key}: []"]


def _flow(entries: Sequence[str]) -> str:
    return f"[{', '.join(map(quoted, entries))}]"


def _more_items(document: IntentsDocument, node: Items, entries: Sequence[str]) -> str:
    end = _line_end(document.source, _content_end(document.source, node))
    indent = _newline(document.source) + " " * node.column
    added = "".join(f"{indent}- {quoted(each)}" for each in entries)
    return document.source[:end] + added + document.source[end:]


def _with_key(document: IntentsDocument, placed: Placed, key: str, value: str) -> str:
    source, node = document.source, placed.node
    if node.flow:
        at = node.end - 1
        comma = ", " if node.values else ""
        return f"{source[:at]}{comma}{key}: {value}{source[at:]}"
    end = _line_end(source, placed.end)
    return f"{source[:end]}{_newline(source)}{' ' * node.column}{key}: {value}{source[end:]}"


def _replaced(document: IntentsDocument, node: Node, value: str) -> str:
    source = document.source
    rest = source[max(_content_end(source, node), node.start) :]
    begin = source[: node.start]
    if "\n" in begin[len(begin.rstrip()) :] and begin.rstrip().endswith(":"):
        begin = begin.rstrip()  # what stood below its key fits beside it
    return begin + " " * begin.endswith(":") + value + rest


def _in_empty(document: IntentsDocument, block: str) -> str:
    source, newline = document.source, _newline(document.source)
    if document.wrapper:
        end = _line_end(source, source.index(":", document.wrapper.end) + 1)
        return source[:end] + newline + block + source[end:]
    body = source.rstrip()
    return f"{body}{newline * bool(body)}intents:{newline}{block}{newline}"


def _content_end(source: str, node: Node) -> int:
    return len(source[: node.end].rstrip()) if node.end > node.start else node.end


def _line_end(source: str, at: int) -> int:
    """The end of the line, a comment on it included."""
    found = source.find("\n", at)
    return len(source.rstrip("\n")) if found < 0 else found - (source[found - 1 : found] == "\r")


def _newline(source: str) -> str:
    return "\r\n" if "\r\n" in source else "\n"


def _found(document: IntentsDocument, intent_id: str) -> Placed:
    placed = document.find(intent_id)
    if placed is None:
        raise IntentsProblem(f"There is no intent {intent_id[:80]}. `handrail intents list` names them.")
    return placed


def _checked(document: IntentsDocument, source: str, intent_id: str) -> IntentsDocument:
    """The new text, if it differs from the old one in this intent alone."""
    new = read_intents(source)
    if new.find(intent_id) is None:
        raise IntentsProblem(f"There would be no intent {intent_id} any more. {ID_STAYS}")
    if _others(document, intent_id) != _others(new, intent_id):
        raise IntentsProblem(f"The change cannot be made without changing other intents. {BY_HAND}")
    return new


def _others(document: IntentsDocument, intent_id: str) -> list[Intent]:
    return [each for each in document.intents if each.id != intent_id]
