"""What a source file defines and which names it uses, by language, from its syntax tree."""

import json
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query


# `c` names what holds others (a class), `f` what holds nothing worth showing (a function, a constant), `r`
# any name at all. A definition inside a function is nobody's business but the function's.
PYTHON = """
(class_definition name: (_) @c)
(function_definition name: (_) @f)
(module (expression_statement (assignment left: (identifier) @f)))
(identifier) @r
"""
TYPESCRIPT = """
[(class_declaration name: (_) @c) (abstract_class_declaration name: (_) @c)
 (interface_declaration name: (_) @c) (enum_declaration name: (_) @c) (internal_module name: (_) @c)]
[(function_declaration name: (_) @f) (generator_function_declaration name: (_) @f)
 (function_signature name: (_) @f) (method_definition name: (_) @f) (abstract_method_signature name: (_) @f)
 (method_signature name: (_) @f) (type_alias_declaration name: (_) @f)]
(program [(lexical_declaration (variable_declarator name: (identifier) @f))
          (variable_declaration (variable_declarator name: (identifier) @f))
          (export_statement (lexical_declaration (variable_declarator name: (identifier) @f)))])
[(identifier) (type_identifier) (property_identifier) (shorthand_property_identifier)] @r
"""
GO = """
(type_spec name: (_) @f)
[(function_declaration name: (_) @f) (method_declaration name: (_) @f)]
(source_file [(const_declaration (const_spec name: (_) @f)) (var_declaration (var_spec name: (_) @f))])
[(identifier) (type_identifier) (field_identifier)] @r
"""
RUST = """
[(trait_item name: (_) @c) (mod_item name: (_) @c) (impl_item type: (type_identifier) @c)
 (impl_item type: (generic_type type: (type_identifier) @c))]
[(struct_item name: (_) @f) (enum_item name: (_) @f) (union_item name: (_) @f) (type_item name: (_) @f)
 (const_item name: (_) @f) (static_item name: (_) @f) (macro_definition name: (_) @f)]
[(function_item name: (_) @f) (function_signature_item name: (_) @f)]
[(identifier) (type_identifier) (field_identifier)] @r
"""
JAVA = """
[(class_declaration name: (_) @c) (interface_declaration name: (_) @c) (enum_declaration name: (_) @c)
 (record_declaration name: (_) @c) (annotation_type_declaration name: (_) @c)]
[(method_declaration name: (_) @f) (constructor_declaration name: (_) @f)]
[(identifier) (type_identifier)] @r
"""
CPP = """
[(class_specifier name: (_) @c body: (_)) (struct_specifier name: (_) @c body: (_))
 (namespace_definition name: (_) @c)]
[(enum_specifier name: (_) @f body: (_)) (union_specifier name: (_) @f body: (_))
 (type_definition declarator: (type_identifier) @f) (preproc_function_def name: (_) @f)]
(function_definition declarator: [
  (function_declarator declarator: [(identifier) (field_identifier)] @f)
  (function_declarator declarator: (qualified_identifier name: (identifier) @f))
  (pointer_declarator declarator: (function_declarator declarator: (identifier) @f))])
(field_declaration declarator: (function_declarator declarator: (field_identifier) @f))
[(identifier) (type_identifier) (field_identifier)] @r
"""
RUBY = """
[(class name: (constant) @c) (class name: (scope_resolution name: (_) @c))
 (module name: (constant) @c) (module name: (scope_resolution name: (_) @c))]
[(method name: (_) @f) (singleton_method name: (_) @f) (program (assignment left: (constant) @f))]
[(identifier) (constant)] @r
"""
C_SHARP = """
[(class_declaration name: (_) @c) (interface_declaration name: (_) @c) (struct_declaration name: (_) @c)
 (enum_declaration name: (_) @c) (record_declaration name: (_) @c)]
[(method_declaration name: (_) @f) (constructor_declaration name: (_) @f) (property_declaration name: (_) @f)]
(identifier) @r
"""


class Language(NamedTuple):
    """A grammar: its module, the query to run, and the function that returns it."""

    module: str
    query: str
    grammar: str = "language"


BY_ENDINGS = {
    ".py .pyi": Language("tree_sitter_python", PYTHON),
    # The grammar for TypeScript with elements reads JavaScript too.
    ".js .jsx .mjs .cjs .tsx": Language("tree_sitter_typescript", TYPESCRIPT, "language_tsx"),
    ".ts .mts .cts": Language("tree_sitter_typescript", TYPESCRIPT, "language_typescript"),
    ".go": Language("tree_sitter_go", GO),
    ".rs": Language("tree_sitter_rust", RUST),
    ".java": Language("tree_sitter_java", JAVA),
    ".c .h .cc .cpp .cxx .hh .hpp": Language("tree_sitter_cpp", CPP),
    ".rb .rake": Language("tree_sitter_ruby", RUBY),
    ".cs": Language("tree_sitter_c_sharp", C_SHARP),
}
LANGUAGES = {ending: language for endings, language in BY_ENDINGS.items() for ending in endings.split()}


def language_of(path: str) -> Language | None:
    """The language of a file, by its name; None for files that are not in the map."""
    return LANGUAGES.get(os.path.splitext(path)[1].lower())


MAX_FILE_BYTES = 512_000
"""Larger files are data or generated."""
LONGEST_LINE = 5_000
"""Files with longer lines on average are minified."""
MAX_DEFINITIONS, MAX_NAMES, SHORTEST_NAME, LONGEST_NAME = 400, 500, 3, 80
PLAIN = re.compile(r"[\w$]+[?!=]?")


DEFINES = ("definition", "declaration", "_item", "_spec", "_specifier", "signature", "assignment", "method")
"""How the types of nodes end that are a whole definition."""
WRAPPERS = ("decorated_definition", "export_statement")


class Definition(NamedTuple):
    name: str
    line: int
    """From 1."""
    owner: str = ""


class Symbols(NamedTuple):
    """Definitions in file order, and the other names used."""

    definitions: tuple[Definition, ...] = ()
    names: tuple[str, ...] = ()

    def pack(self) -> bytes:
        return zlib.compress(json.dumps([self.definitions, " ".join(self.names)]).encode(), level=1)

    @staticmethod
    def unpack(data: bytes) -> "Symbols":
        definitions, names = json.loads(zlib.decompress(data))
        return Symbols(tuple(Definition(*each) for each in definitions), tuple(names.split()))


def read_symbols(data: bytes, language: Language) -> Symbols:
    """The symbols of a file, even if its syntax is broken; none for generated or binary files."""
    if len(data) > MAX_FILE_BYTES or len(data) > LONGEST_LINE * (data.count(b"\n") + 1) or b"\0" in data:
        return Symbols()
    from tree_sitter import QueryCursor

    parser, query = _grammar(language)
    found = QueryCursor(query).captures(parser.parse(data).root_node)
    defined = found.get("c", []) + found.get("f", [])
    holders = {node.start_byte for node in found.get("c", [])}
    defined.sort(key=lambda node: node.start_byte)
    definitions = _definitions(defined, holders, data)
    names = Counter(data[node.start_byte : node.end_byte] for node in found.get("r", []))
    names.subtract(data[node.start_byte : node.end_byte] for node in defined)
    used = (_plain_name(name) for name, count in names.most_common(MAX_NAMES) if count > 0)
    return Symbols(definitions, tuple(name for name in used if len(name) >= SHORTEST_NAME))


def definition_texts(data: bytes, language: Language, name: str, owner: str) -> Iterator[tuple[int, str]]:
    """Each definition of a name in a file: its first line's number, and its text as it is written.

    With an owner, only those right inside a class of that name.
    """
    defined = read_symbols(data, language).definitions
    places = {each.line for each in defined if each.name == name and owner in ("", each.owner)}
    if not places:
        return
    from tree_sitter import QueryCursor

    parser, query = _grammar(language)
    found = QueryCursor(query).captures(parser.parse(data).root_node)
    for node in found.get("c", []) + found.get("f", []):
        if node.start_point[0] + 1 in places and data[node.start_byte : node.end_byte] == name.encode():
            whole = node
            while whole.parent is not None and not whole.type.endswith(DEFINES):
                whole = whole.parent
            above = whole.parent
            whole = above if above is not None and above.type in WRAPPERS else whole
            start = data.rfind(b"\n", 0, whole.start_byte) + 1
            yield whole.start_point[0] + 1, data[start : whole.end_byte].decode(errors="replace")


@cache
def _grammar(language: Language) -> "tuple[Parser, Query]":
    from tree_sitter import Language as Grammar
    from tree_sitter import Parser, Query

    grammar = Grammar(getattr(import_module(language.module), language.grammar)())
    return Parser(grammar), Query(grammar, language.query)


def _definitions(nodes: "list[Node]", holders: set[int], data: bytes) -> tuple[Definition, ...]:
    """Definitions that other code can reach, so not those inside functions."""
    found: dict[tuple[str, str], Definition] = {}
    open_: list[tuple[int, str, bool]] = []
    for node in nodes:
        while open_ and open_[-1][0] <= node.start_byte:
            open_.pop()
        name, holds = _plain_name(data[node.start_byte : node.end_byte]), node.start_byte in holders
        owner = open_[-1][1] if open_ else ""
        if name and not (open_ and not open_[-1][2]):
            found.setdefault((owner, name), Definition(name, node.start_point[0] + 1, owner))
        if node.parent is not None:
            open_.append((node.parent.end_byte, name, holds))
        if len(found) == MAX_DEFINITIONS:
            break
    return tuple(found.values())


def _plain_name(name: bytes) -> str:
    """The name; empty if nobody would look for it."""
    text = name.decode(errors="replace")
    return text if len(text) <= LONGEST_NAME and PLAIN.fullmatch(text) else ""
