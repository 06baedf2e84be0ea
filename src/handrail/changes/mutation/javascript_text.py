"""Numbers and texts of JavaScript as constants."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from handrail.changes.mutation.strings import folded, joined
from handrail.changes.mutation.tree import Node, const

if TYPE_CHECKING:
    from tree_sitter import Node as Syntax

ESCAPE = re.compile(r"\\([\s\S])")
PLAIN_ESCAPES = {
    "'": "'",
    '"': '"',
    "`": "`",
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "\\": "\\",
    "\n": "",
    "$": "$",
}


def string_of(text: str) -> str:
    """What a string says; an escape that is not common stays as it is written."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return _decoded(text[1:-1])
    return text


def _decoded(text: str) -> str:
    return ESCAPE.sub(lambda found: PLAIN_ESCAPES.get(found[1], found[0]), text)


def number(text: str) -> str:
    """A number in its shortest way."""
    plain = text.replace("_", "").lower()
    try:
        if plain.startswith(("0x", "0o", "0b")):
            return repr(int(plain, 0))
        value = float(plain)
    except ValueError:
        return text
    return repr(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def template(node: "Syntax", read: Callable[["Syntax"], Node]) -> Node:
    """A template, its texts and its parts."""
    parts: list[Node] = []
    text = (node.text or b"").decode(errors="replace")
    data = text.encode()
    at, start = 1, node.start_byte
    for child in node.named_children:
        if child.type != "template_substitution":
            continue
        before = data[at : child.start_byte - start].decode()
        parts += [const(repr(_decoded(before)))] if before else []
        inner = [each for each in child.named_children if each.type != "comment"]
        parts.append(Node("format", tuple(read(each) for each in inner)))
        at = child.end_byte - start
    rest = data[at:-1].decode()
    parts += [const(repr(_decoded(rest)))] if rest else []
    if not parts:
        return const(repr(""))
    return parts[0] if len(parts) == 1 and parts[0].kind == "const" else joined(parts)


def joined_text(left: Node, right: Node) -> Node:
    """A sum; where one side is a text, it is a text put together."""
    if not (_is_text(left) or _is_text(right)):
        return folded(Node("binop", (left, right), "+"))
    parts = [part if _is_text(part) else Node("format", (part,)) for part in (left, right)]
    made = joined(parts)
    return made.parts[0] if len(made.parts) == 1 and made.parts[0].kind == "const" else made


def _is_text(node: Node) -> bool:
    return node.kind == "fstring" or (node.kind == "const" and node.text[:1] in ("'", '"'))
