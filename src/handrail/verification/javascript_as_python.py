"""JavaScript and TypeScript as Python's syntax tree, as far as the rules about special cases read one.

So the same rules judge both languages. What no rule reads becomes a node that only holds its parts.
"""

import ast
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from handrail.tools.files.syntax_check import GRAMMARS

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

JAVASCRIPT = tuple(ending for ending, (module, _) in GRAMMARS.items() if module == "tree_sitter_typescript")
CONSTANTS = {"true": True, "false": False, "null": None, "undefined": None}
COMPARING = {"equal", "strictEqual", "deepEqual", "deepStrictEqual", "is", "toBe", "toEqual", "toStrictEqual"}
"""Methods of `assert`, `expect` and `Object` that compare two values."""


def python_tree(text: str) -> ast.Module:
    """The module, with its wrong parts left out; empty where it is nested too deeply."""
    try:
        return ast.Module([_read(_parser().parse(text.encode(errors="replace")).root_node)], [])
    except RecursionError:
        return ast.Module([], [])


@cache
def _parser() -> "Parser":
    from tree_sitter import Language, Parser

    module, function = GRAMMARS[".tsx"]
    return Parser(Language(getattr(import_module(module), function)()))


def _read(node: "Node | None") -> Any:
    if node is None:
        return ast.Module([], [])
    made: Any = READERS[node.type](node) if node.type in READERS else _held(node.named_children)
    made.lineno = node.start_point[0] + 1
    return made


def _held(nodes: "Iterable[Node]") -> ast.Module:
    return ast.Module([_read(node) for node in nodes], [])


def _field(node: "Node", name: str) -> Any:
    return _read(node.child_by_field_name(name))


def _text(node: "Node | None") -> str:
    return node.text.decode(errors="replace") if node and node.text else ""


def _inner(node: "Node") -> Any:
    return _read(node.named_children[0] if node.named_children else None)


def _declaration(node: "Node") -> Any:
    # One name alone stands where Python's assignment would: it is read before what uses it.
    return _inner(node) if node.named_child_count == 1 else _held(node.named_children)


def _block(node: "Node | None") -> list[Any]:
    """The statements of a block, or the only one where there is no block."""
    return (
        [_read(each) for each in (node.named_children if node.type == "statement_block" else [node])]
        if node
        else []
    )


def _number(node: "Node") -> ast.Constant:
    try:
        value = ast.literal_eval(_text(node).rstrip("n"))
    except (ValueError, SyntaxError):  # as Python does not write it
        value = _text(node)
    return ast.Constant(int(value) if isinstance(value, float) and value.is_integer() else value)


def _template(node: "Node") -> Any:
    parts = [each for each in node.named_children if each.type == "template_substitution"]
    return _held(parts) if parts else ast.Constant(_text(node)[1:-1])


def _unary(node: "Node") -> Any:
    minus = _text(node.child_by_field_name("operator")) == "-"
    value = _field(node, "argument")
    return ast.UnaryOp(ast.USub(), value) if minus else ast.Module([value], [])


def _binary(node: "Node") -> Any:
    left, right = _field(node, "left"), _field(node, "right")
    match _text(node.child_by_field_name("operator")):
        case "===" | "==":
            return ast.Compare(left, [ast.Eq()], [right])
        case "&&":
            return ast.BoolOp(ast.And(), [left, right])
    return ast.Module([left, right], [])


def _member(node: "Node") -> ast.Attribute:
    return ast.Attribute(_field(node, "object"), _text(node.child_by_field_name("property")), ast.Load())


def _call(node: "Node") -> Any:
    """A call; what compares two values is a comparison, and `each` with a table has it as a decorator."""
    called, listed = _field(node, "function"), node.child_by_field_name("arguments")
    given = [_read(each) for each in listed.named_children] if listed else []
    match called:
        case ast.Attribute(attr=name, value=ast.Call(func=ast.Name(id="expect"), args=[found])) if given:
            if name in COMPARING:
                return ast.Compare(found, [ast.Eq()], given[:1])
        case ast.Attribute(attr=name) if name in COMPARING and len(given) > 1:
            return ast.Compare(given[0], [ast.Eq()], [given[1]])
        case ast.Attribute(attr="each"):
            return _function("", [], given)
    return ast.Call(called, given, [])


def _function(name: str, body: list[Any], decorators: list[Any]) -> ast.FunctionDef:
    nothing = ast.arguments([], [], None, [], [], None, [])
    return ast.FunctionDef(name, nothing, body, decorators)


def _named_function(node: "Node") -> ast.FunctionDef:
    return _function(_text(node.child_by_field_name("name")), _block(node.child_by_field_name("body")), [])


def _arrow(node: "Node", name: str) -> ast.FunctionDef:
    body = node.child_by_field_name("body")
    is_value = body is not None and body.type != "statement_block"
    return _function(name, [ast.Return(_read(body))] if is_value else _block(body), [])


def _declarator(node: "Node") -> Any:
    name, value = _text(node.child_by_field_name("name")), node.child_by_field_name("value")
    if value and value.type in ("arrow_function", "function_expression"):
        return _arrow(value, name)
    return ast.Assign([ast.Name(name, ast.Store())], _read(value))


def _case(node: "Node") -> ast.match_case:
    body = [part for each in node.children_by_field_name("body") for part in _block(each)]
    return ast.match_case(ast.MatchValue(_field(node, "value")), None, body)


def _object(node: "Node") -> ast.Dict:
    keys, values = [], []
    for each in node.named_children:
        key = each.child_by_field_name("key")
        named = key is not None and key.type == "property_identifier"
        keys.append(ast.Constant(_text(key)) if named else _read(key))
        values.append(_field(each, "value") if key else _read(each))
    return ast.Dict(keys, values)


READERS: "dict[str, Callable[[Node], Any]]" = {
    **dict.fromkeys(CONSTANTS, lambda node: ast.Constant(CONSTANTS[node.type])),
    "number": _number,
    "string": lambda node: ast.Constant(_text(node)[1:-1]),
    **dict.fromkeys(("parenthesized_expression", "expression_statement", "await_expression"), _inner),
    **dict.fromkeys(("as_expression", "satisfies_expression", "non_null_expression"), _inner),
    **dict.fromkeys(("computed_property_name", "else_clause"), _inner),
    **dict.fromkeys(("function_declaration", "generator_function_declaration"), _named_function),
    **dict.fromkeys(("lexical_declaration", "variable_declaration"), _declaration),
    "method_definition": _named_function,
    "identifier": lambda node: ast.Name(_text(node), ast.Load()),
    "template_string": _template,
    "unary_expression": _unary,
    "binary_expression": _binary,
    "member_expression": _member,
    "call_expression": _call,
    "array": lambda node: ast.List([_read(each) for each in node.named_children], ast.Load()),
    "object": _object,
    "variable_declarator": _declarator,
    "assignment_expression": lambda node: ast.Assign([_field(node, "left")], _field(node, "right")),
    "return_statement": lambda node: ast.Return(_inner(node)),
    "ternary_expression": lambda node: ast.IfExp(
        _field(node, "condition"), _field(node, "consequence"), _field(node, "alternative")
    ),
    "if_statement": lambda node: ast.If(
        _field(node, "condition"),
        _block(node.child_by_field_name("consequence")),
        [_field(node, "alternative")],
    ),
    "switch_case": _case,
}
