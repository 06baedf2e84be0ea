"""What a source file defines and which names it uses, read from its syntax tree."""

import json
import re
import zlib
from collections import Counter
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from handrail.context.map.languages import Language

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

LARGEST = 512_000
"""Bytes of a file that is read; larger ones are data or made by programs."""
LONGEST_LINE = 5_000
"""Bytes of a line on average, beyond which a file is taken for minified."""
MOST_DEFINITIONS, MOST_NAMES, SHORTEST_NAME, LONGEST_NAME = 400, 500, 3, 80
PLAIN = re.compile(r"[\w$]+[?!=]?")


class Definition(NamedTuple):
    name: str
    line: int
    """Counted from 1."""
    owner: str = ""
    """The class, trait or namespace that it belongs to."""


class Symbols(NamedTuple):
    """Definitions in the order of the file, and the other names that stand in it."""

    definitions: tuple[Definition, ...] = ()
    names: tuple[str, ...] = ()

    def pack(self) -> bytes:
        """As few bytes as will do."""
        return zlib.compress(json.dumps([self.definitions, " ".join(self.names)]).encode(), level=1)


def unpack(data: bytes) -> Symbols:
    """What `pack` was given."""
    definitions, names = json.loads(zlib.decompress(data))
    return Symbols(tuple(Definition(*each) for each in definitions), tuple(names.split()))


def read_symbols(data: bytes, language: Language) -> Symbols:
    """What can be read of the file, also where its syntax is broken; nothing of one that no person wrote."""
    if len(data) > LARGEST or len(data) > LONGEST_LINE * (data.count(b"\n") + 1) or b"\0" in data:
        return Symbols()
    return _read(data, language)


@cache
def _grammar(language: Language) -> "tuple[Parser, Query]":
    from tree_sitter import Language as Grammar
    from tree_sitter import Parser, Query

    grammar = Grammar(getattr(import_module(language.module), language.grammar)())
    return Parser(grammar), Query(grammar, language.query)


def _read(data: bytes, language: Language) -> Symbols:
    from tree_sitter import QueryCursor

    parser, query = _grammar(language)
    tree = parser.parse(data)
    found = QueryCursor(query).captures(tree.root_node)
    defined = found.get("c", []) + found.get("f", [])
    holders = {node.start_byte for node in found.get("c", [])}
    defined.sort(key=lambda node: node.start_byte)
    definitions = _definitions(defined, holders, lambda node: _plain(data[node.start_byte : node.end_byte]))
    names = Counter(data[node.start_byte : node.end_byte] for node in found.get("r", []))
    names.subtract(data[node.start_byte : node.end_byte] for node in defined)
    used = (_plain(name) for name, count in names.most_common(MOST_NAMES) if count > 0)
    return Symbols(definitions, tuple(name for name in used if len(name) >= SHORTEST_NAME))


def _definitions(
    nodes: "list[Node]", holders: set[int], name_of: "Callable[[Node], str]"
) -> tuple[Definition, ...]:
    """Those that others can reach: not what a function defines for itself."""
    found: dict[tuple[str, str], Definition] = {}
    open_: list[tuple[int, str, bool]] = []
    for node in nodes:
        while open_ and open_[-1][0] <= node.start_byte:
            open_.pop()
        name, holds = name_of(node), node.start_byte in holders
        owner = open_[-1][1] if open_ else ""
        if name and not (open_ and not open_[-1][2]):
            definition = Definition(name, node.start_point[0] + 1, owner)
            found.setdefault((owner, name), definition)
        body = node.parent
        if body is not None:
            open_.append((body.end_byte, name, holds))
        if len(found) == MOST_DEFINITIONS:
            break
    return tuple(found.values())


def _plain(name: bytes) -> str:
    """The name, or nothing where it is none that a person would look for."""
    text = name.decode(errors="replace")
    return text if len(text) <= LONGEST_NAME and PLAIN.fullmatch(text) else ""
