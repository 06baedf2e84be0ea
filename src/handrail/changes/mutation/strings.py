"""Texts that are put together in several ways, and constants that are worked out."""

import ast
import re
from string import Formatter

from handrail.changes.mutation.effects import QUIET, degree
from handrail.changes.mutation.tree import Node, const

LONGEST = 200
PERCENT = re.compile(r"%(.)", re.DOTALL)


def folded(node: Node) -> Node:
    """Arithmetic of constants as the constant that it gives."""
    if any(part.kind != "const" for part in node.parts):
        return _percent(node)
    try:
        values = [ast.literal_eval(part.text) for part in node.parts]
    except ValueError:
        return node
    if not all(type(value) in (int, float) for value in values) or any(abs(value) > 1e12 for value in values):
        return node
    match node.text, values:
        case "+", [left, right]:
            return const(repr(left + right))
        case "-", [left, right]:
            return const(repr(left - right))
        case "*", [left, right]:
            return const(repr(left * right))
        case "-", [value]:
            return const(repr(-value))
        case _:
            return node


def as_fstring(call: Node) -> Node:
    """`"{} of {}".format(a, b)` as the f-string that does the same; else the call as it is."""
    function, *arguments = call.parts
    if function.kind != "attr" or function.text != "format" or function.parts[0].kind != "const":
        return call
    if any(each.kind == "spread" or each.text == "**" for each in arguments):
        return call
    template = ast.literal_eval(function.parts[0].text)
    if not isinstance(template, str):
        return call
    keyed = {each.text: each.parts[0] for each in arguments if each.kind == "kwarg"}
    plain = [each for each in arguments if each.kind != "kwarg"]
    parts: list[Node] = []
    order: list[Node] = []
    try:
        for text, field, spec, conversion in Formatter().parse(template):
            parts += [const(repr(text))] if text else []
            if field is None:
                continue
            value = keyed[field] if field in keyed else plain[int(field) if field else len(order)]
            if "{" in (spec or ""):
                return call
            order.append(value)
            inner = (Node("fstring", (const(repr(spec)),)),) if spec else ()
            parts.append(Node("format", (value, *inner), conversion or ""))
    except (ValueError, IndexError, KeyError):
        return call
    given = [each.parts[0] if each.kind == "kwarg" else each for each in arguments]
    if len(order) != len(given) or (order != given and any(degree(each) > QUIET for each in given)):
        return call
    return Node("fstring", tuple(parts))


def _percent(node: Node) -> Node:
    """`"%s of %s" % (a, b)` as an f-string."""
    match node:
        case Node("binop", (Node("const", text=text), Node("tuple", values)), "%"):
            template = ast.literal_eval(text)
        case _:
            return node
    if not isinstance(template, str) or any(each.kind == "spread" for each in values):
        return node
    marks = PERCENT.findall(template)
    if any(mark not in "s%" for mark in marks) or marks.count("s") != len(values):
        return node
    parts: list[Node] = []
    waiting = list(values)
    pieces = re.split(r"(%s)", template)
    if template.replace("%%", "").count("%s") != len(values) or "%%s" in template:
        return node
    for piece in pieces:
        if piece == "%s":
            parts.append(Node("format", (waiting.pop(0),)))
        elif piece:
            parts.append(const(repr(piece.replace("%%", "%"))))
    return Node("fstring", tuple(parts))


def joined(parts: list[Node]) -> Node:
    """Texts side by side as one f-string, neighbouring constants as one."""
    out: list[Node] = []
    flat = [inner for part in parts for inner in (part.parts if part.kind == "fstring" else (part,))]
    for part in flat:
        if part.kind == "const" and out and out[-1].kind == "const":
            both = ast.literal_eval(out[-1].text) + ast.literal_eval(part.text)
            out[-1] = const(repr(both))
        else:
            out.append(part)
    return Node("fstring", tuple(out))
