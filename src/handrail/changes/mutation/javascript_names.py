"""Which name of a JavaScript or TypeScript file means what."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from handrail.changes.mutation.tree import Binding

if TYPE_CHECKING:
    from tree_sitter import Node as Syntax

FUNCTIONS = frozenset(
    [
        "function_declaration",
        "generator_function_declaration",
        "function_expression",
        "generator_function",
        "arrow_function",
        "method_definition",
        "function",
    ]
)
CLASSES = frozenset(("class_declaration", "abstract_class_declaration", "class"))
NAMED = frozenset(("enum_declaration", "internal_module"))
TYPES = frozenset(
    [
        "interface_declaration",
        "type_alias_declaration",
        "ambient_declaration",
        "function_signature",
        "type_annotation",
        "type_arguments",
        "type_parameters",
        "implements_clause",
        "abstract_method_signature",
        "method_signature",
        "index_signature",
        "accessibility_modifier",
        "override_modifier",
        "comment",
        "html_comment",
        "readonly",
        "asserts_annotation",
        "type_predicate_annotation",
        "opting_type_annotation",
    ]
)
BUILTIN_MODULES = frozenset(
    [
        "assert",
        "buffer",
        "child_process",
        "cluster",
        "crypto",
        "dns",
        "events",
        "fs",
        "fs/promises",
        "http",
        "http2",
        "https",
        "net",
        "os",
        "path",
        "perf_hooks",
        "process",
        "querystring",
        "readline",
        "stream",
        "string_decoder",
        "timers",
        "tls",
        "tty",
        "url",
        "util",
        "v8",
        "vm",
        "worker_threads",
        "zlib",
    ]
)


def text_of(node: "Syntax | None") -> str:
    return (node.text or b"").decode(errors="replace") if node is not None else ""


def named(node: "Syntax") -> list["Syntax"]:
    """The children that mean something."""
    return [child for child in node.named_children if child.type not in TYPES]


class Scope:
    """Names of a block; those of `var` are in the block of their function."""

    def __init__(self, parent: "Scope | None", depth: int) -> None:
        self.parent = parent
        self.depth = depth
        self.names: dict[str, Binding] = {}
        self.refs: dict[str, str] = {}

    def bind(self, word: str, *, fixed: bool = False) -> None:
        self.names.setdefault(word, Binding(word, self.depth, fixed=fixed))

    def find(self, word: str) -> Binding | str | None:
        scope: Scope | None = self
        while scope:
            if word in scope.refs:
                return scope.refs[word]
            if word in scope.names:
                return scope.names[word]
            scope = scope.parent
        return None


def pattern_names(node: "Syntax | None") -> Iterator[str]:
    """The names that a pattern binds."""
    if node is None:
        return
    match node.type:
        case "identifier" | "shorthand_property_identifier_pattern":
            yield text_of(node)
        case "pair_pattern":
            yield from pattern_names(node.child_by_field_name("value"))
        case "assignment_pattern" | "object_assignment_pattern":
            yield from pattern_names(node.child_by_field_name("left"))
        case "required_parameter" | "optional_parameter":
            yield from pattern_names(node.child_by_field_name("pattern"))
        case "object_pattern" | "array_pattern" | "rest_pattern":
            for child in named(node):
                yield from pattern_names(child)


def block_names(statements: list["Syntax"]) -> Iterator[str]:
    """The names that statements bind in their own block."""
    for one in statements:
        if one.type == "export_statement":
            yield from block_names(named(one))
        elif one.type == "lexical_declaration":
            for each in named(one):
                yield from pattern_names(each.child_by_field_name("name"))
        elif one.type in CLASSES | FUNCTIONS | NAMED and (name := one.child_by_field_name("name")):
            yield text_of(name)


def variables(node: "Syntax") -> Iterator[str]:
    """The names that `var` binds in a function, wherever it stands."""
    for child in node.named_children:
        if child.type == "variable_declaration":
            for each in named(child):
                yield from pattern_names(each.child_by_field_name("name"))
        if child.type not in FUNCTIONS:
            yield from variables(child)


def everything(node: "Syntax") -> Iterator["Syntax"]:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += reversed(one.children)


def own_things(node: "Syntax") -> bool:
    """Whether a function looks at `this` or `arguments` of its own."""
    for child in node.children:
        if child.type in ("this", "super") or (child.type == "identifier" and text_of(child) == "arguments"):
            return True
        if child.type == "meta_property":
            return True
        inside = child.type == "arrow_function" or child.type not in FUNCTIONS | CLASSES
        if inside and own_things(child):
            return True
    return False
