"""A JavaScript or TypeScript file as a tree; its types are no part of it."""

import re
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from handrail.changes.mutation import javascript_names as names
from handrail.changes.mutation.javascript_functions import Functions
from handrail.changes.mutation.javascript_names import (
    BUILTIN_MODULES,
    CLASSES,
    FUNCTIONS,
    TYPES,
    Scope,
    named,
    text_of,
)
from handrail.changes.mutation.javascript_text import joined_text, string_of
from handrail.changes.mutation.javascript_types import declared_types
from handrail.changes.mutation.tree import EMPTY, NOTHING, Binding, Node, assign, block, const

if TYPE_CHECKING:
    from tree_sitter import Node as Syntax

OWN_NAMES = re.compile(r"\(\s*this\s*[,)]|\.\.\.\s*this\b|\bin\s+this\b|\[\s*[\"'`]_|this\s*\[")
"""Where the names of an object's own members are read as text."""
MEMBER = re.compile(r"#\w+|_\w*[A-Za-z0-9]")


class Script(NamedTuple):
    tree: Node
    private: frozenset[str]
    """Names of members that only the file itself may use."""
    types: dict[str, str]
    """Those that it promises to others."""


def read_javascript(path: str, text: str) -> Script:
    """The tree of a file; raises SyntaxError."""
    from tree_sitter import Language, Parser

    typed = path.endswith((".ts", ".mts", ".cts"))
    grammar = import_module("tree_sitter_typescript")
    language = grammar.language_typescript() if typed else grammar.language_tsx()
    root = Parser(Language(language)).parse(text.encode()).root_node
    if root.has_error:
        raise SyntaxError("the text does not fit the grammar")
    return _Reader(root, elides=path.endswith((".ts", ".tsx", ".mts", ".cts"))).read()


class _Reader(Functions):
    def __init__(self, root: "Syntax", *, elides: bool) -> None:
        self._root = root
        self._elides = elides
        self._scope = Scope(None, 0)
        self._in_loop = 0
        self._privates: list[set[str]] = []
        kinds = {one.type for one in root.children}
        text = text_of(root)
        self._is_module = (
            bool(kinds & {"import_statement", "export_statement"})
            or "require(" in text
            or "module.exports" in text
        )
        self._looks = "eval(" in text or "with (" in text

    def read(self) -> Script:
        top = named(self._root)
        exported = [each for one in top if one.type == "export_statement" for each in named(one)]
        public = set(names.block_names(exported)) if self._is_module else set()
        default = {
            text_of(each.child_by_field_name("name"))
            for one in top
            if one.type == "export_statement" and any(child.type == "default" for child in one.children)
            for each in named(one)
        }
        for word in (*names.block_names(top), *names.variables(self._root)):
            self._scope.bind(
                word, fixed=self._looks or not self._is_module or (word in public and word not in default)
            )
        for one in top:
            self._bind_imports(one)
        body = [node for one in top for node in self._statement(one)]
        tree = Node("module", (block(*self._hoisted(body)),))
        return Script(tree, self._private(), declared_types(self._root))

    def _private(self) -> frozenset[str]:
        found: set[str] = set()
        seen = OWN_NAMES.search(text_of(self._root)) is not None
        for one in names.everything(self._root):
            if one.type in ("property_identifier", "private_property_identifier") and MEMBER.fullmatch(
                text_of(one)
            ):
                found.add(text_of(one))
            if one.type == "accessibility_modifier" and text_of(one) == "private" and one.parent:
                name = one.parent.child_by_field_name("name") or one.parent.child_by_field_name("pattern")
                found.add(f"~{text_of(name)}")
        return frozenset(word for word in found if word.startswith("#") or not seen)

    # Imports and exports

    def _bind_imports(self, one: "Syntax") -> None:
        if one.type == "import_statement" and not any(child.type == "type" for child in one.children):
            source = string_of(text_of(one.child_by_field_name("source"))).removeprefix("node:")
            for each in names.everything(one):
                if each.type == "import_specifier":
                    name = text_of(each.child_by_field_name("name"))
                    self._scope.refs[text_of(each.child_by_field_name("alias")) or name] = f"{source}#{name}"
                elif each.type == "namespace_import":
                    self._scope.refs[text_of(named(each)[0])] = f"{source}#*"
                elif each.type == "import_clause":
                    for child in named(each):
                        if child.type == "identifier":
                            self._scope.refs[text_of(child)] = f"{source}#default"

    def _import(self, one: "Syntax") -> list[Node]:
        source = string_of(text_of(one.child_by_field_name("source"))).removeprefix("node:")
        if any(child.type == "type" for child in one.children):
            return []
        clause = [child for child in named(one) if child.type == "import_clause"]
        if clause and source in BUILTIN_MODULES:
            return []
        if clause and self._elides:
            bound = [word for word, ref in self._scope.refs.items() if ref.startswith(f"{source}#")]
            if not any(self._is_value(word) for word in bound):
                return []
        return [Node("import", text=f"{source}:")]

    def _is_value(self, word: str) -> bool:
        """Whether a name is used where types are not."""
        waiting = [child for child in self._root.children if child.type != "import_statement"]
        while waiting:
            one = waiting.pop()
            if one.type in TYPES or one.type == "predefined_type":
                continue
            if one.type in ("identifier", "shorthand_property_identifier") and text_of(one) == word:
                return True
            waiting += one.children
        return False

    def _export(self, one: "Syntax") -> list[Node]:
        source = one.child_by_field_name("source")
        default = any(child.type == "default" for child in one.children)
        if any(child.type == "type" for child in one.children):
            return []
        found: list[Node] = []
        for child in named(one):
            if child.type == "export_clause":
                for each in named(child):
                    name = text_of(each.child_by_field_name("name"))
                    public = text_of(each.child_by_field_name("alias")) or name
                    value = (
                        Node("ref", text=f"{string_of(text_of(source))}#{name}")
                        if source
                        else self._name(name)
                    )
                    found.append(Node("exports", (value,), public))
            elif child is not source and child.type != "string":
                if child.type in CLASSES or child.type in FUNCTIONS or child.type.endswith("_declaration"):
                    statements = self._statement(child)
                else:
                    statements = [Node("expr", (self._expression(child),))]
                found += [Node("export", (each,), "default" if default else "") for each in statements]
        if source and not any(child.type == "export_clause" for child in named(one)):
            found.append(Node("reexport", text=text_of(one)))
        return found or [self._other(one)] if one.named_children and not self._only_types(one) else []

    def _only_types(self, one: "Syntax") -> bool:
        return all(child.type in TYPES for child in one.named_children)

    # Statements

    def _block(self, node: "Syntax | None") -> Node:
        if node is None:
            return EMPTY
        if node.type != "statement_block":
            return block(*self._statement(node))
        outer, self._scope = self._scope, Scope(self._scope, self._scope.depth)
        statements = named(node)
        for word in names.block_names(statements):
            self._scope.bind(word, fixed=self._looks)
        found = [each for one in statements for each in self._statement(one)]
        self._scope = outer
        return block(*self._hoisted(found))

    def _hoisted(self, statements: list[Node]) -> list[Node]:
        """Functions first: that is where they are there from."""
        first = [one for one in statements if one.kind == "define" and one.text == "hoisted"]
        rest = [one for one in statements if not (one.kind == "define" and one.text == "hoisted")]
        early: list[Node] = []
        for one in list(rest):
            if one.kind != "define" or one.binding is None:
                continue
            before = rest[: rest.index(one)]
            if one.binding.depth and not any(_mentions(each, one.binding) for each in (*before, *first)):
                early.append(one)
                rest.remove(one)
        return [*first, *early, *rest]

    def _loop(self, node: "Syntax | None") -> Node:
        self._in_loop += 1
        body = self._block(node)
        self._in_loop -= 1
        return body

    def _statement(self, one: "Syntax") -> list[Node]:
        if one.type in TYPES or one.type in ("empty_statement", "hash_bang_line"):
            return []
        if (found := self._defining(one)) is not None:
            return found
        if (found := self._flow(one)) is not None:
            return found
        return [self._other(one)]

    def _defining(self, one: "Syntax") -> list[Node] | None:
        match one.type:
            case "import_statement":
                return self._import(one)
            case "export_statement":
                return self._export(one)
            case "lexical_declaration" | "variable_declaration":
                return self._declaration(one)
            case "function_declaration" | "generator_function_declaration":
                binding = self._name(text_of(one.child_by_field_name("name"))).binding
                return [Node("define", (self._function(one),), "hoisted", binding)]
            case "class_declaration" | "abstract_class_declaration":
                return [self._class(one)]
            case "expression_statement":
                return self._expression_statement(named(one)[0])
            case "statement_block":
                return [self._block(one)]
            case _:
                return None

    def _flow(self, one: "Syntax") -> list[Node] | None:
        field = one.child_by_field_name
        match one.type:
            case "if_statement":
                other = field("alternative")
                no = self._block(named(other)[0]) if other is not None else EMPTY
                return [
                    Node("if", (self._expression(field("condition")), self._block(field("consequence")), no))
                ]
            case "return_statement":
                return [Node("return", tuple(self._expression(each) for each in named(one)))]
            case "throw_statement":
                return [Node("raise", tuple(self._expression(each) for each in named(one)))]
            case "break_statement" | "continue_statement":
                return [Node(one.type.removesuffix("_statement"), text=text_of(field("label")))]
            case "while_statement" | "do_statement":
                parts = (self._expression(field("condition")), self._loop(field("body")), EMPTY)
                return [Node(one.type.removesuffix("_statement"), parts)]
            case "for_statement":
                return [self._for(one)]
            case "for_in_statement":
                return [self._for_each(one)]
            case "try_statement":
                return [self._try(one)]
            case _:
                return None

    def _declaration(self, one: "Syntax") -> list[Node]:
        found: list[Node] = []
        kept = one.type == "variable_declaration" and (self._in_loop > 0 or not self._is_module)
        for each in named(one):
            value = each.child_by_field_name("value")
            target = self._pattern(each.child_by_field_name("name"))
            if value is None:
                if self._in_loop and not kept:
                    found.append(assign(target, const("undefined")))
                continue
            given = self._expression(value)
            if given.kind == "function" and target.kind == "name":
                found.append(Node("define", (given,), "", target.binding))
            elif target.kind == "dict":
                found += _taken_apart(target, given)
            else:
                found.append(assign(target, given))
        return [Node("other", tuple(found), "var")] if kept and found else found

    def _expression_statement(self, one: "Syntax") -> list[Node]:
        while one.type == "parenthesized_expression":
            one = named(one)[0]
        match one.type:
            case "assignment_expression":
                left, right = one.child_by_field_name("left"), one.child_by_field_name("right")
                return [assign(self._pattern(left), self._expression(right))]
            case "augmented_assignment_expression":
                sign = text_of(one.child_by_field_name("operator")).removesuffix("=")
                left, right = one.child_by_field_name("left"), one.child_by_field_name("right")
                return [_augmented(self._pattern(left), sign, self._expression(right))]
            case "update_expression":
                target = self._pattern(one.child_by_field_name("argument"))
                sign = text_of(one.child_by_field_name("operator"))[0]
                return [_augmented(target, sign, const("1"), counts=True)]
            case "string":
                return [Node("directive", text=string_of(text_of(one)))]
            case _:
                return [Node("expr", (self._expression(one),))]

    def _for(self, one: "Syntax") -> Node:
        field = one.child_by_field_name
        outer, self._scope = self._scope, Scope(self._scope, self._scope.depth)
        start, condition, update = field("initializer"), field("condition"), field("increment")
        if start is not None and start.type == "lexical_declaration":
            for word in names.block_names([start]):
                self._scope.bind(word)
        self._in_loop += 1  # a `var` is one for all rounds
        begun = block(*self._statement(start)) if start is not None else EMPTY
        self._in_loop -= 1
        test = block(*self._statement(condition)) if condition is not None else EMPTY
        step = block(*self._expression_statement(update)) if update is not None else EMPTY
        made = Node("cfor", (begun, test, step, self._loop(field("body")), EMPTY))
        self._scope = outer
        return made

    def _for_each(self, one: "Syntax") -> Node:
        field = one.child_by_field_name
        outer, self._scope = self._scope, Scope(self._scope, self._scope.depth)
        source = self._expression(field("right"))
        kind, sign = text_of(field("kind")), text_of(field("operator"))
        if kind in ("const", "let"):
            for word in names.pattern_names(field("left")):
                self._scope.bind(word)
        text = "" if sign == "of" and kind in ("const", "let") else f"{kind} {sign}"
        text = f"await {text}" if any(child.type == "await" for child in one.children) else text
        made = Node("for", (self._pattern(field("left")), source, self._loop(field("body")), EMPTY), text)
        self._scope = outer
        return made

    def _try(self, one: "Syntax") -> Node:
        field = one.child_by_field_name
        handlers = []
        if (handler := field("handler")) is not None:
            outer, self._scope = self._scope, Scope(self._scope, self._scope.depth)
            parameter = handler.child_by_field_name("parameter")
            for word in names.pattern_names(parameter):
                self._scope.bind(word)
            caught = self._pattern(parameter) if parameter is not None else NOTHING
            body = self._block(handler.child_by_field_name("body"))
            if caught.kind == "name":
                used = _mentions(body, caught.binding)
                handlers.append(Node("handler", (NOTHING, body), binding=caught.binding if used else None))
            else:
                handlers.append(Node("handler", (Node("bind", (caught,)), body)))
            self._scope = outer
        final = field("finalizer")
        last = self._block(final.child_by_field_name("body")) if final is not None else EMPTY
        return Node("try", (self._block(field("body")), Node("handlers", tuple(handlers)), EMPTY, last))


def _mentions(node: Node, binding: Binding | None) -> bool:
    return node.binding is binding or any(_mentions(part, binding) for part in node.parts)


def _augmented(target: Node, sign: str, value: Node, *, counts: bool = False) -> Node:
    """`a += b` as `a = a + b`, which is the same in this language."""
    simple = target.kind == "name" or (target.kind == "attr" and target.parts[0].kind in ("name", "this"))
    if not simple or sign in ("&&", "||", "??"):
        return Node("augment", (target, value), sign)
    made = joined_text(target, value) if sign == "+" else Node("binop", (target, value), sign)
    return assign(target, Node("counted", (made,)) if counts else made)


def _taken_apart(target: Node, value: Node) -> list[Node]:
    """`const {a, b} = c` as `a = c.a` and `b = c.b`, where c may be looked at twice."""
    plain = all(
        each.kind == "pair" and each.parts[0].kind == "key" and each.parts[1].kind == "name"
        for each in target.parts
    )
    again = value.kind in ("name", "this", "ref") or (
        value.kind == "attr" and value.parts[0].kind in ("name", "this")
    )
    if not target.parts or not plain or not (again or len(target.parts) == 1):
        return [assign(target, value)]
    return [assign(each.parts[1], Node("attr", (value,), each.parts[0].text)) for each in target.parts]
