"""Functions and classes of JavaScript and TypeScript as trees."""

from typing import TYPE_CHECKING

from handrail.changes.mutation import javascript_names as names
from handrail.changes.mutation.javascript_expressions import Expressions
from handrail.changes.mutation.javascript_names import Scope, named, text_of
from handrail.changes.mutation.javascript_text import string_of
from handrail.changes.mutation.tree import EMPTY, NOTHING, Node, assign, block

if TYPE_CHECKING:
    from tree_sitter import Node as Syntax


class Functions(Expressions):
    _looks: bool
    """The code may read names as text."""
    _in_loop: int

    def _function(self, one: "Syntax") -> Node:
        field = one.child_by_field_name
        outer, scope = self._scope, Scope(self._scope, self._scope.depth + 1)
        self._scope = scope
        loops, self._in_loop = self._in_loop, 0
        given = named(parameters) if (parameters := field("parameters")) is not None else [field("parameter")]
        given = [each for each in given if each is not None and text_of(each) != "this"]
        body = field("body")
        for each in given:
            for word in names.pattern_names(each):
                scope.bind(word, fixed=self._looks)
        if one.type in ("function_expression", "generator_function") and (name := field("name")) is not None:
            scope.bind(text_of(name))
        if body is not None:
            for word in names.variables(body):
                scope.bind(word, fixed=self._looks)
        shown = tuple(self._parameter(each) for each in given)
        if body is not None and body.type == "statement_block":
            inner = self._block(body)
        else:
            inner = block(Node("return", (self._expression(body),))) if body is not None else EMPTY
        self._scope, self._in_loop = outer, loops
        words = {child.type for child in one.children}
        flags: list[str] = [word for word in ("async", "static", "get", "set") if word in words]
        flags += ["generator"] if "*" in words or "generator" in one.type else []
        flags += (
            ["own"] if one.type != "arrow_function" and body is not None and names.own_things(body) else []
        )
        fields = [
            assign(
                Node(
                    "attr", (Node("this"),), self._private_word(text_of(each.child_by_field_name("pattern")))
                ),
                Node("name", binding=made.binding),
            )
            for each, made in zip(given, shown, strict=True)
            if _is_property(each)
        ]
        inner = inner.with_parts(*fields, *inner.parts)
        return Node("function", (Node("params", shown), inner, Node("decorators")), " ".join(flags))

    def _parameter(self, one: "Syntax") -> Node:
        pattern = one.child_by_field_name("pattern") or one
        value = one.child_by_field_name("value")
        if pattern.type == "assignment_pattern":
            pattern, value = (
                pattern.child_by_field_name("left") or pattern,
                pattern.child_by_field_name("right"),
            )
        default = (self._expression(value),) if value is not None else ()
        if pattern.type == "identifier":
            return Node("param", default, "/", self._scope.names[text_of(pattern)])
        if pattern.type == "rest_pattern":
            return Node("param", (Node("bind", (self._pattern(pattern),)),), "*")
        return Node("param", (Node("bind", (self._pattern(pattern),)), *default), "pattern")

    def _class(self, one: "Syntax") -> Node:
        name = text_of(one.child_by_field_name("name"))
        heritage: list[Node] = []
        decorators = tuple(self._other(child) for child in one.named_children if child.type == "decorator")
        for child in one.named_children:
            if child.type == "class_heritage":
                for each in named(child):
                    heritage += map(
                        self._expression, named(each) if each.type == "extends_clause" else [each]
                    )
        body = one.child_by_field_name("body")
        self._privates.append(_privates(body))
        members = [
            node for child in (named(body) if body is not None else []) for node in self._member(child)
        ]
        self._privates.pop()
        binding = self._name(name).binding if one.type != "class" else None
        parts = (Node("heritage", tuple(heritage)), Node("decorators", decorators), block(*members))
        return Node("class", parts, binding=binding)

    def _member(self, one: "Syntax") -> list[Node]:
        name = one.child_by_field_name("name")
        if one.type == "method_definition" and name is not None and name.type != "computed_property_name":
            return [Node("method", (self._function(one),), self._private_word(string_of(text_of(name))))]
        if one.type in ("public_field_definition", "field_definition") and name is not None:
            if any(child.type == "declare" for child in one.children):
                return []
            value = one.child_by_field_name("value")
            kind = "static" if any(child.type == "static" for child in one.children) else ""
            given = self._expression(value) if value is not None else NOTHING
            return [Node("field", (Node("member", text=self._private_word(text_of(name))), given), kind)]
        return [self._other(one)]


def _privates(body: "Syntax | None") -> set[str]:
    """The names that a class says are its own."""
    found = set()
    for one in names.everything(body) if body is not None else ():
        if one.type == "accessibility_modifier" and text_of(one) == "private" and one.parent:
            found.add(
                text_of(one.parent.child_by_field_name("name") or one.parent.child_by_field_name("pattern"))
            )
    return found


def _is_property(one: "Syntax") -> bool:
    """Whether a parameter of a constructor is a field as well."""
    return any(child.type in ("accessibility_modifier", "readonly") for child in one.children)
