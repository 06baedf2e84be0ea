"""What a JavaScript or TypeScript module imports, exports and uses, from its syntax tree."""

import os
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from handrail.tools.files.syntax_check import GRAMMARS

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

ENDINGS = tuple(ending for ending, (module, _) in GRAMMARS.items() if module == "tree_sitter_typescript")
QUERY = """
(import_statement) @import
(export_statement) @export
(call_expression function: [(import) (identifier)] @called arguments: (arguments . (string) @source))
(predefined_type) @type
(namespace_import (identifier) @namespace)
(member_expression object: (identifier) @object property: (property_identifier) @property)
(nested_type_identifier module: (identifier) @object name: (type_identifier) @property)
(assignment_expression left: (member_expression) @assigned)
(ambient_declaration (module name: (string) @ambient))
"""
OPTIONAL = {"try_statement", "if_statement", "ternary_expression", "binary_expression", "switch_statement"}
USES = """
[(identifier) (type_identifier) (shorthand_property_identifier) (shorthand_property_identifier_pattern)] @use
"""
BINDING_FIELDS = {"name", "pattern", "parameter", "alias", "left"}
BINDING_PARENTS = {
    *("variable_declarator", "function_declaration", "generator_function_declaration", "class_declaration"),
    *("function_expression", "class", "enum_declaration", "interface_declaration", "type_alias_declaration"),
    *("abstract_class_declaration", "internal_module", "module", "function_signature", "required_parameter"),
    *(
        "optional_parameter",
        "catch_clause",
        "arrow_function",
        "import_specifier",
        "type_parameter",
        "for_in_statement",
    ),
    *("import_alias", "assignment_pattern"),
}
ALWAYS_BINDING = {
    "import_clause",
    "namespace_import",
    "array_pattern",
    "rest_pattern",
    "pair_pattern",
    "formal_parameters",
}
ALWAYS_BINDING |= {"import_require_clause", "object_assignment_pattern", "infer_type", "mapped_type_clause"}


class JsImport(NamedTuple):
    source: str
    names: tuple[str, ...]
    """Names that must be exports of the source; `default` for the default import."""
    line: int
    is_type: bool = False
    is_optional: bool = False
    """A call of `require` or `import` in a condition, or where its failure is caught."""
    is_reexport: bool = False
    namespace: str = ""


class JsModule(NamedTuple):
    imports: tuple[JsImport, ...]
    exports: frozenset[str]
    stars: tuple[str, ...]
    """Sources of `export *`."""
    is_open: bool
    """It may export other names too, as modules of CommonJS do."""
    any_lines: tuple[int, ...]
    members: tuple[tuple[str, str, int], ...]
    """Namespace import, member of it, line."""
    ambient: frozenset[str]
    """Modules that it declares."""
    declared: frozenset[str]
    """Names of its own at its top level, exported or not."""
    imports_end: int
    """The last line of the imports at the top; 0 if there are none."""


def is_javascript(path: str) -> bool:
    return os.path.splitext(path)[1].lower() in ENDINGS


def read_module(path: str, data: bytes) -> JsModule | None:
    """The module; None if its syntax is broken, or not known here."""
    from tree_sitter import QueryCursor

    parser, query = _grammar(os.path.splitext(path)[1].lower(), QUERY)
    root = parser.parse(data).root_node
    if root.has_error:
        return None
    found: dict[str, list[Node]] = {}
    pairs = []
    for _, captured in QueryCursor(query).matches(root):
        if len(captured) == 2:  # captured in one match: what belongs together
            pairs.append({name: nodes[0] for name, nodes in captured.items()})
        else:
            for name, nodes in captured.items():
                found.setdefault(name, []).extend(nodes)
    return _Reader(path, found, pairs).module(root)


def uses_of(path: str, data: bytes, names: Iterable[str]) -> dict[str, int]:
    """The first line on which each of these names is used, without those that the file binds anywhere."""
    from tree_sitter import QueryCursor

    wanted = set(names)
    parser, query = _grammar(os.path.splitext(path)[1].lower(), USES)
    used: dict[str, int] = {}
    for node in QueryCursor(query).captures(parser.parse(data).root_node).get("use", []):
        name = _text(node)
        if name in wanted:
            if _is_binding(node):
                wanted.discard(name)
                used.pop(name, None)
            else:
                used[name] = min(used.get(name, 1 << 30), _line(node))
    return used


@cache
def _grammar(ending: str, query: str) -> "tuple[Parser, Query]":
    from tree_sitter import Language, Parser, Query

    module, function = GRAMMARS[ending]
    grammar = Language(getattr(import_module(module), function)())
    return Parser(grammar), Query(grammar, query)


class _Reader:
    def __init__(self, path: str, found: "dict[str, list[Node]]", pairs: "list[dict[str, Node]]") -> None:
        self._found = found
        self._pairs = pairs
        self._declares = path.endswith((".d.ts", ".d.mts", ".d.cts"))
        self.imports: list[JsImport] = []
        self.exports: set[str] = set()
        self.stars: list[str] = []
        self.is_open = False

    def module(self, root: "Node") -> JsModule:
        imported = self._found.get("import", [])
        for node in imported:
            self._import(node)
        for node in self._found.get("export", []):
            # Exports inside a declared module or a namespace are not those of the file.
            if node.parent is not None and node.parent.type == "program":
                self._export(node)
        for pair in self._pairs:
            if "called" in pair and _text(pair["called"]) in ("require", "import"):
                source = pair["source"]
                found = JsImport(_string(source), (), _line(source), is_optional=_is_optional(source))
                self.imports.append(found)
        assigned = [_text(node) for node in self._found.get("assigned", [])]
        is_commonjs = any(each.startswith(("module.exports", "exports.")) for each in assigned)
        self.is_open = self.is_open or is_commonjs or not self._found.get("export")
        declared = {name for node in root.named_children for name in _declared(node)}
        if self._declares:
            self.exports |= declared
        return JsModule(
            tuple(self.imports),
            frozenset(self.exports),
            tuple(self.stars),
            self.is_open,
            tuple(sorted(_line(node) for node in self._found.get("type", []) if _text(node) == "any")),
            tuple(self._members()),
            frozenset(map(_string, self._found.get("ambient", []))),
            frozenset(declared),
            max((node.end_point[0] + 1 for node in imported if node.parent == root), default=0),
        )

    def _members(self) -> Iterator[tuple[str, str, int]]:
        namespaces = {_text(node) for node in self._found.get("namespace", [])}
        for pair in self._pairs if namespaces else ():
            if "object" in pair and _text(pair["object"]) in namespaces:
                yield _text(pair["object"]), _text(pair["property"]), _line(pair["object"])

    def _import(self, node: "Node") -> None:
        source = node.child_by_field_name("source")
        if source is None:
            clauses = [each for each in node.named_children if each.type == "import_require_clause"]
            inner = clauses[0].child_by_field_name("source") if clauses else None
            if inner is not None:
                self.imports.append(JsImport(_string(inner), (), _line(inner), _is_type(node)))
            return
        names: list[str] = []
        namespace = ""
        for clause in node.named_children:
            for each in clause.named_children if clause.type == "import_clause" else ():
                if each.type == "identifier":
                    names.append("default")
                elif each.type == "namespace_import":
                    namespace = _text(each.named_children[0])
                elif each.type == "named_imports":
                    names += [_name(item) for item in each.named_children if item.type == "import_specifier"]
        found = JsImport(_string(source), tuple(names), _line(node), _is_type(node), namespace=namespace)
        self.imports.append(found)

    def _export(self, node: "Node") -> None:
        source, declaration = node.child_by_field_name("source"), node.child_by_field_name("declaration")
        words = [each.type for each in node.children]
        if "=" in words:
            self.is_open = True
        if "default" in words:
            self.exports.add("default")
        if declaration is not None and "default" not in words:
            self.exports.update(_declared(declaration))
        names: list[str] = []
        is_all = True
        for each in node.named_children:
            if each.type == "namespace_export":
                self.exports.add(_string(each.named_children[0]))
                is_all = False
            elif each.type == "export_clause":
                is_all = False
                for item in each.named_children:
                    if item.type == "export_specifier":
                        names.append(_name(item))
                        alias = item.child_by_field_name("alias")
                        self.exports.add(_string(alias) if alias is not None else names[-1])
        if source is not None:
            if is_all:
                self.stars.append(_string(source))
            found = JsImport(_string(source), tuple(names), _line(node), _is_type(node), is_reexport=True)
            self.imports.append(found)


def _declared(node: "Node") -> Iterator[str]:
    """The names that a statement declares."""
    if node.type in (
        "ambient_declaration",
        "lexical_declaration",
        "variable_declaration",
        "export_statement",
    ):
        for each in node.named_children:
            yield from _declared(each)
        return
    if node.type == "variable_declarator":
        name = node.child_by_field_name("name")
        waiting = [name] if name is not None else []
        while waiting:
            part = waiting.pop()
            if part.type in ("identifier", "shorthand_property_identifier_pattern"):
                yield _text(part)
            waiting += [each for each in part.named_children if each.type != "property_identifier"]
        return
    if node.type == "import_alias":
        yield _text(node.named_children[0])
        return
    name = node.child_by_field_name("name")
    if name is not None and node.type != "module":
        yield _text(name).partition(".")[0]


def _is_binding(node: "Node") -> bool:
    parent = node.parent
    if parent is None or node.type == "shorthand_property_identifier_pattern":
        return True
    if parent.type in ALWAYS_BINDING:
        return True
    if parent.type not in BINDING_PARENTS:
        return False
    return any(
        each == node and parent.field_name_for_child(number) in BINDING_FIELDS
        for number, each in enumerate(parent.children)
    )


def _is_optional(node: "Node") -> bool:
    inner, outer = node, node.parent
    while outer is not None:
        if outer.type in OPTIONAL or (outer.type == "member_expression" and _text(outer).endswith(".catch")):
            return True
        inner, outer = outer, outer.parent
    return inner.type != "program"


def _is_type(node: "Node") -> bool:
    return len(node.children) > 1 and node.children[1].type in ("type", "typeof")


def _name(specifier: "Node") -> str:
    name = specifier.child_by_field_name("name")
    return _string(name) if name is not None else ""


def _text(node: "Node") -> str:
    return (node.text or b"").decode(errors="replace")


def _string(node: "Node") -> str:
    return _text(node).strip("'\"`")


def _line(node: "Node") -> int:
    return node.start_point[0] + 1
