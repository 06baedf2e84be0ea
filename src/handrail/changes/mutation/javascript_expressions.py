"""Expressions and patterns of JavaScript and TypeScript as trees."""

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import TYPE_CHECKING

from handrail.changes.mutation.javascript_names import FUNCTIONS, Scope, named, text_of
from handrail.changes.mutation.javascript_text import joined_text, number, string_of, template
from handrail.changes.mutation.strings import folded
from handrail.changes.mutation.tree import NOTHING, Node, const

if TYPE_CHECKING:
    from tree_sitter import Node as Syntax

COMPARED = frozenset(("===", "!==", "==", "!=", "<", "<=", ">", ">=", "in", "instanceof"))
JOINED = {"&&": "and", "||": "or", "??": "coalesce"}
WRAPPED = frozenset(
    ("parenthesized_expression", "as_expression", "satisfies_expression", "non_null_expression")
)
LINKS = ("member_expression", "subscript_expression", "call_expression", "non_null_expression")


class Expressions(ABC):
    """Reads expressions; what is made of statements is for whoever has them."""

    _scope: Scope
    _privates: list[set[str]]

    @abstractmethod
    def _function(self, one: "Syntax") -> Node: ...

    @abstractmethod
    def _class(self, one: "Syntax") -> Node: ...

    @abstractmethod
    def _statement(self, one: "Syntax") -> list[Node]: ...

    @abstractmethod
    def _block(self, node: "Syntax | None") -> Node: ...

    def _name(self, word: str) -> Node:
        found = self._scope.find(word)
        if isinstance(found, str):
            return Node("ref", text=found)
        if found is None and word in ("undefined", "arguments"):
            return const(word) if word == "undefined" else Node("arguments")
        return Node("name", text="" if found else word, binding=found)

    def _pattern(self, node: "Syntax | None") -> Node:
        if node is None:
            return NOTHING
        match node.type:
            case "object_pattern":
                return Node("dict", tuple(self._pattern(each) for each in named(node)))
            case "array_pattern":
                return Node(
                    "tuple",
                    tuple(self._pattern(each) for each in named(node)),
                    _holes(node),
                )
            case "shorthand_property_identifier_pattern":
                return Node("pair", (Node("key", text=text_of(node)), self._name(text_of(node))))
            case "pair_pattern":
                key, value = node.child_by_field_name("key"), node.child_by_field_name("value")
                return Node("pair", (self._key(key), self._pattern(value)))
            case "assignment_pattern" | "object_assignment_pattern":
                left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
                return Node("default", (self._pattern(left), self._expression(right)))
            case "rest_pattern":
                return Node("spread", tuple(self._pattern(each) for each in named(node)))
            case _:
                return self._expression(node)

    def _key(self, node: "Syntax | None") -> Node:
        if node is not None and node.type == "computed_property_name":
            return Node("computed", tuple(self._expression(each) for each in named(node)))
        return Node("key", text=string_of(text_of(node)))

    def _expression(self, node: "Syntax | None") -> Node:
        if node is None:
            return NOTHING
        return self._plain(node) or self._operation(node) or self._value(node) or self._other(node)

    def _plain(self, node: "Syntax") -> Node | None:
        match node.type:
            case kind if kind in WRAPPED:
                return self._expression(named(node)[0])
            case "identifier":
                return self._name(text_of(node))
            case "undefined":
                return self._name("undefined")
            case "this" | "super":
                return Node(node.type)
            case "number":
                return const(number(text_of(node)))
            case "string":
                return const(repr(string_of(text_of(node))))
            case "true" | "false":
                return const(node.type.title())
            case "null":
                return const("null")
            case "template_string":
                return template(node, self._expression)
            case _:
                return None

    def _operation(self, node: "Syntax") -> Node | None:
        field = node.child_by_field_name
        match node.type:
            case "member_expression":
                return self._access(node, "attr", (), text_of(field("property")))
            case "subscript_expression":
                return self._access(node, "index", (self._expression(field("index")),), "")
            case "call_expression":
                return self._call(node)
            case "new_expression":
                given = field("arguments")
                arguments = [self._expression(each) for each in named(given)] if given is not None else []
                return Node("new", (self._expression(field("constructor")), *arguments))
            case "binary_expression":
                return self._binary(node)
            case "unary_expression":
                return self._unary(text_of(field("operator")), self._expression(field("argument")))
            case "ternary_expression":
                parts = (field("condition"), field("consequence"), field("alternative"))
                return Node("ifexp", tuple(map(self._expression, parts)))
            case "assignment_expression":
                return Node("named", (self._pattern(field("left")), self._expression(field("right"))))
            case "augmented_assignment_expression" | "update_expression":
                target = self._pattern(field("left") or field("argument"))
                prefix = "prefix" if node.children[0].type in ("++", "--") else ""
                parts3 = (Node("bind", (target,)), target, self._expression(field("right")))
                return Node("other", parts3, f"{text_of(field('operator'))}{prefix}")
            case _:
                return None

    def _unary(self, sign: str, inner: Node) -> Node:
        match sign:
            case "!":
                return Node("not", (inner,))
            case "typeof":
                return Node("typeof", (inner,))
            case "-" | "+" | "~":
                return folded(Node("unary", (inner,), sign))
            case _:
                return Node("other", (inner,), sign)

    def _value(self, node: "Syntax") -> Node | None:
        match node.type:
            case "array":
                return Node("list", tuple(map(self._expression, named(node))), _holes(node))
            case "object":
                return Node("dict", tuple(map(self._pair, named(node))))
            case "spread_element":
                return Node("spread", tuple(map(self._expression, named(node))))
            case "await_expression":
                return Node("await", tuple(map(self._expression, named(node))))
            case "yield_expression":
                text = "*" if any(child.type == "*" for child in node.children) else ""
                return Node("yield", tuple(map(self._expression, named(node))), text)
            case kind if kind in FUNCTIONS:
                return self._function(node)
            case "class":
                return self._class(node)
            case _:
                return None

    def _access(self, node: "Syntax", kind: str, more: tuple[Node, ...], text: str) -> Node:
        inner = node.child_by_field_name("object")
        optional = any(child.type == "optional_chain" for child in node.children)
        # What follows `?.` is left out with it: it is no access of its own.
        kind = "optional" + kind if optional else "chained" + kind if _is_chained(inner) else kind
        value = self._expression(inner)
        if kind == "attr" and value.kind == "ref" and value.text.endswith("#*"):
            return Node("ref", text=f"{value.text[:-1]}{text}")
        word = self._private_word(text) if kind == "attr" and value.kind == "this" else text
        return Node(kind, (value, *more), word)

    def _private_word(self, word: str) -> str:
        """A private member of the class at hand, told apart from members of others with the same name."""
        return f"~{word}" if self._privates and word in self._privates[-1] else word

    def _call(self, node: "Syntax") -> Node:
        function, given = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        optional = any(child.type == "optional_chain" for child in node.children)
        if given is None or given.type != "arguments":
            return self._other(node)
        kind = "optionalcall" if optional else "chainedcall" if _is_chained(function) else "call"
        called = self._expression(function)
        # A function that is called by a name has another `this` than one called on an object.
        on = "on" if called.kind in ("attr", "index") else ""
        return Node(kind, (called, *map(self._expression, named(given))), on)

    def _binary(self, node: "Syntax") -> Node:
        sign = text_of(node.child_by_field_name("operator"))
        sides = tuple(self._expression(node.child_by_field_name(side)) for side in ("left", "right"))
        if sign in JOINED:
            return Node(JOINED[sign], sides)
        if sign in COMPARED:
            return Node("compare", sides, sign)
        if sign == "+":
            return joined_text(*sides)
        return folded(Node("binop", sides, sign))

    def _pair(self, one: "Syntax") -> Node:
        match one.type:
            case "shorthand_property_identifier":
                return Node("pair", (Node("key", text=text_of(one)), self._name(text_of(one))))
            case "pair":
                key, value = one.child_by_field_name("key"), one.child_by_field_name("value")
                return Node("pair", (self._key(key), self._expression(value)))
            case "method_definition":
                return Node(
                    "pair", (self._key(one.child_by_field_name("name")), self._function(one)), "method"
                )
            case _:
                return self._expression(one)

    def _other(self, node: "Syntax") -> Node:
        """What has no form of its own: its kind, its signs, and its parts."""
        if not node.named_children:
            return Node("other", text=f"{node.type} {' '.join(text_of(node).split())}")
        signs = [child.type for child in node.children if not child.is_named and child.type not in (";", ",")]
        parts: list[Node] = []
        for child in named(node):
            made = (
                self._statement(child)
                if child.type.endswith(("_statement", "_declaration"))
                else [self._expression(child)]
            )
            parts += [self._block(child)] if child.type == "statement_block" else made
        return Node("other", tuple(parts), f"{node.type} {' '.join(signs)}")


def _is_chained(node: "Syntax | None") -> bool:
    while node is not None and node.type in LINKS:
        if any(child.type == "optional_chain" for child in node.children):
            return True
        node = node.child_by_field_name("object") or node.child_by_field_name("function")
    return False


def _holes(node: "Syntax") -> str:
    """How many elements of an array are left out."""
    signs = [child.type for child in node.children if child.type != "comment"]
    found = sum(one in (",", "[") and other == "," for one, other in pairwise(signs))
    return str(found or "")
