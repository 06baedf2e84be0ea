"""Edit the text of the intents file; comments, order and everything else stay.

Every new text is parsed and compared before it is written.
"""

import json
import re
import textwrap
from collections.abc import Mapping, Sequence

from handrail.protocol.errors import IntentsProblem
from handrail.workspace.intents_document import (
    ID_PATTERN,
    ID_RULE,
    IntentsDocument,
    LocatedIntent,
    YamlList,
    YamlMap,
    YamlNode,
    YamlText,
    parse_intents,
)

PLAIN_SCALAR = re.compile(r"[A-Za-z0-9_./][\w./*-]*( [\w./()-]+)*", re.ASCII)
RESERVED_SCALAR = re.compile(r"(true|false|yes|no|on|off|null|y|n|[-+.\d_]+|\d+e\d+)", re.IGNORECASE)
EDIT_BY_HAND = "Change it in the file by hand."
ID_IS_FIXED = "An id cannot change, since the trace names it. Make a new intent instead."


def set_field(document: IntentsDocument, intent_id: str, key: str, value: str) -> IntentsDocument:
    """The document with one line of text as the value of a key of an intent."""
    located = _find_intent(document, intent_id)
    node = located.node.get(key)
    if node is None:
        source = _add_key(document, located, key, yaml_quoted(value))
    elif isinstance(node, YamlText):
        source = _replace_value(document, node, yaml_quoted(value))
    else:
        raise IntentsProblem(f"line {node.line}: `{key}` is a list or a map. {EDIT_BY_HAND}", node.line)
    return _check_others_unchanged(document, source, intent_id)


def add_entries(
    document: IntentsDocument, intent_id: str, key: str, entries: Sequence[str]
) -> IntentsDocument:
    located = _find_intent(document, intent_id)
    node, source = located.node.get(key), document.source
    match node:
        case YamlList(flow=False) if node.values:
            end = _line_end(source, _content_end(source, node))
            indent = _newline(source) + " " * node.column
            added = "".join(f"{indent}- {yaml_quoted(each)}" for each in entries)
            source = source[:end] + added + source[end:]
        case YamlList():
            inside = source[node.start + 1 : node.end - 1].rstrip()
            comma = ", " if node.values and not inside.endswith(",") else " " if node.values else ""
            at = node.start + 1 + len(inside)
            source = source[:at] + comma + ", ".join(map(yaml_quoted, entries)) + source[at:]
        case None:
            source = _add_key(document, located, key, _flow_list(entries))
        case YamlText():
            known = [] if node.empty else [each.strip() for each in node.value.splitlines() if each.strip()]
            source = _replace_value(document, node, _flow_list([*known, *entries]))
        case _:
            raise IntentsProblem(f"line {node.line}: `{key}` is a map. {EDIT_BY_HAND}", node.line)
    return _check_others_unchanged(document, source, intent_id)


def set_list_field(
    document: IntentsDocument, intent_id: str, key: str, entries: Sequence[str]
) -> IntentsDocument:
    """The document with these entries, and no others, in a list of an intent."""
    located = _find_intent(document, intent_id)
    node, source = located.node.get(key), document.source
    if node is None:
        source = _add_key(document, located, key, _flow_list(entries))
    elif isinstance(node, YamlList) and not node.flow and entries:
        indent = _newline(source) + " " * node.column
        items = indent.join(f"- {yaml_quoted(each)}" for each in entries)
        source = source[: node.start] + items + source[_content_end(source, node) :]
    else:
        source = _replace_value(document, node, _flow_list(entries))
    return _check_others_unchanged(document, source, intent_id)


def set_intent_text(document: IntentsDocument, intent_id: str, text: str) -> IntentsDocument:
    """The document with this as an intent's text, in the form of `Intent.text`."""
    located, source = _find_intent(document, intent_id), document.source
    old = source[located.start : located.end]
    indent = old[: len(old) - len(old.lstrip(" "))]
    new = textwrap.indent(textwrap.dedent(text).strip("\n"), indent).replace("\n", _newline(source))
    source = source[: located.start] + new + source[located.end :]
    return _check_others_unchanged(document, source, intent_id)


def add_intent(
    document: IntentsDocument, intent_id: str, fields: Mapping[str, str | Sequence[str]]
) -> IntentsDocument:
    """The document with one more intent at the end, in the file's own layout."""
    if not ID_PATTERN.fullmatch(intent_id):
        raise IntentsProblem(f"{intent_id[:80]!r} is not an id. {ID_RULE}")
    if document.find(intent_id):
        edit = f"handrail intents edit {intent_id}"
        raise IntentsProblem(f"{intent_id} already exists. Change it with `{edit}`.")
    container, source = document.container, document.source
    lines = [line for key, value in fields.items() for line in _field_lines(key, value)]
    if container and container.flow:
        raise IntentsProblem(f"The intents are written on one line, in brackets. {EDIT_BY_HAND}")
    indent, quoted = " " * (container.column if container else 2), yaml_quoted(intent_id)
    first = f"{quoted}:" if isinstance(container, YamlMap) else f"- id: {quoted}"
    added = _newline(source).join([indent + first, *(f"{indent}  {line}" for line in lines)])
    if container is None:
        source = _add_to_empty(document, added)
    else:
        end = _line_end(source, len(source[: container.end].rstrip()))
        source = source[:end] + _newline(source) + added + source[end:]
    return _check_others_unchanged(document, source, intent_id)


def yaml_quoted(text: str) -> str:
    """A text as YAML, quoted if YAML would read it as something else."""
    if PLAIN_SCALAR.fullmatch(text) and not RESERVED_SCALAR.fullmatch(text):
        return text
    return json.dumps(text, ensure_ascii=False)


def _field_lines(key: str, value: str | Sequence[str]) -> list[str]:
    if isinstance(value, str):
        return [f"{key}: {yaml_quoted(value)}"]
    return [f"{key}:", *(f"  - {yaml_quoted(each)}" for each in value)] if value else [f"{key}: []"]


def _flow_list(entries: Sequence[str]) -> str:
    return f"[{', '.join(map(yaml_quoted, entries))}]"


def _add_key(document: IntentsDocument, located: LocatedIntent, key: str, value: str) -> str:
    source, node = document.source, located.node
    if node.flow:
        at = node.end - 1
        comma = ", " if node.values else ""
        return f"{source[:at]}{comma}{key}: {value}{source[at:]}"
    end = _line_end(source, located.end)
    return f"{source[:end]}{_newline(source)}{' ' * node.column}{key}: {value}{source[end:]}"


def _replace_value(document: IntentsDocument, node: YamlNode, value: str) -> str:
    source = document.source
    rest = source[max(_content_end(source, node), node.start) :]
    begin = source[: node.start]
    if "\n" in begin[len(begin.rstrip()) :] and begin.rstrip().endswith(":"):
        begin = begin.rstrip()  # a value below its key moves beside it
    return begin + " " * begin.endswith(":") + value + rest


def _add_to_empty(document: IntentsDocument, block: str) -> str:
    source, newline = document.source, _newline(document.source)
    if document.wrapper:
        end = _line_end(source, source.index(":", document.wrapper.end) + 1)
        return source[:end] + newline + block + source[end:]
    body = source.rstrip()
    return f"{body}{newline * bool(body)}intents:{newline}{block}{newline}"


def _content_end(source: str, node: YamlNode) -> int:
    return len(source[: node.end].rstrip()) if node.end > node.start else node.end


def _line_end(source: str, at: int) -> int:
    """The end of the line, including a comment."""
    found = source.find("\n", at)
    return len(source.rstrip("\n")) if found < 0 else found - (source[found - 1 : found] == "\r")


def _newline(source: str) -> str:
    return "\r\n" if "\r\n" in source else "\n"


def _find_intent(document: IntentsDocument, intent_id: str) -> LocatedIntent:
    located = document.find(intent_id)
    if located is None:
        raise IntentsProblem(f"There is no intent {intent_id[:80]}. `handrail intents list` shows them.")
    return located


def _check_others_unchanged(document: IntentsDocument, source: str, intent_id: str) -> IntentsDocument:
    """The document of the new text, if only this intent differs."""
    new = parse_intents(source)
    if new.find(intent_id) is None:
        raise IntentsProblem(f"The intent {intent_id} would be removed. {ID_IS_FIXED}")
    before, after = ([each for each in one.intents if each.id != intent_id] for one in (document, new))
    if before != after:
        raise IntentsProblem(f"This change would also change other intents. {EDIT_BY_HAND}")
    return new
