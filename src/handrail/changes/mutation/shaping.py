"""One form for code that runs alike: early returns, turned conditions, conditional expressions, plain loops.

Each step keeps what the code does, whatever the names in it stand for, with one exception: what a comparison
gives is taken to be true or false.
"""

from handrail.changes.mutation.strings import folded
from handrail.changes.mutation.tree import EMPTY, Node, assign, block, rebuilt, uses

ENDS = ("return", "raise", "break", "continue")
BOOLEAN = ("compare", "not")
FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!=", "===": "===", "!==": "!=="}
OPPOSITE = {"is": "is not", "is not": "is", "in": "not in", "not in": "in", "===": "!==", "!==": "==="}


def shaped(root: Node) -> Node:
    """The tree in its one form."""
    return rebuilt(root, _shaped_node)


def _shaped_node(node: Node) -> Node:
    match node:
        case Node("not", (inner,)):
            return negated(inner)
        case Node("and" | "or"):
            return _flat(node)
        case Node("binop" | "unary"):
            return folded(node)
        case Node("compare", (left, right)) if left.kind == "const" != right.kind and node.text in FLIPPED:
            return Node("compare", (right, left), FLIPPED[node.text])
        case Node("function", (parameters, body, *rest)):
            return node.with_parts(parameters, block(*shape(list(body.parts), "function")), *rest)
        case Node("for" | "while" | "cfor" | "do"):
            body = block(*shape(list(node.parts[-2].parts), "loop"))
            return node.with_parts(*node.parts[:-2], body, node.parts[-1])
        case Node("module", (body,)):
            return node.with_parts(block(*shape(list(body.parts), "")))
        case Node("try"):
            return node.with_parts(
                *(block(*shape(list(p.parts), "")) if p.kind == "block" else p for p in node.parts)
            )
        case Node("handler" | "with"):
            return node.with_parts(*node.parts[:-1], block(*shape(list(node.parts[-1].parts), "")))
        case _:
            return node


def _flat(node: Node) -> Node:
    """`(a and b) and c` as `a and b and c`."""
    parts: list[Node] = []
    for part in node.parts:
        parts += part.parts if part.kind == node.kind else (part,)
    return node.with_parts(*parts)


def negated(test: Node) -> Node:
    """`not test`, with the `not` as far inside as it goes."""
    match test:
        case Node("not", (inner,)) if inner.kind in BOOLEAN:
            return inner
        case Node("compare") if test.text in OPPOSITE:
            return test._replace(text=OPPOSITE[test.text])
        case Node("and" | "or" as kind, parts):
            return Node("or" if kind == "and" else "and", tuple(negated(part) for part in parts))
        case _:
            return Node("not", (test,))


def as_test(node: Node) -> Node:
    """A condition, of which only the truth matters."""
    match node:
        case Node("not", (Node("not", (inner,)),)):
            return as_test(inner)
        case Node("call", (function, inner)) if (
            function.text in ("bool", "Boolean") and function.binding is None
        ):
            return as_test(inner)
        case Node("and" | "or", parts):
            return node.with_parts(*map(as_test, parts))
        case _:
            return node


def shape(statements: list[Node], end: str) -> list[Node]:
    """Statements in their one form; `end` says what falling off their end means."""
    out: list[Node] = []
    waiting = [part for one in statements for part in _opened(one)]
    while waiting:
        one, *waiting = waiting
        match one:
            case Node("pass"):
                continue
            case Node("block", parts):
                waiting = [*parts, *waiting]
            case Node("if"):
                more, waiting = _shaped_if(one, waiting, end)
                out += more
            case Node("return", ()) if end == "function":
                return out
            case Node("return", (Node("const", text="None" | "undefined"),)):
                waiting = [Node("return"), *waiting]
            case Node("continue") if end == "loop" and not one.text:
                return out
            case Node("expr", (Node("const"),)):
                continue
            case _ if one.kind in ENDS:
                return [*out, one]
            case _:
                out.append(one)
    return out


def _opened(one: Node) -> list[Node]:
    """Conditional expressions as conditions, several assignments as single ones."""
    match one:
        case Node("return", (Node("ifexp", (test, yes, no)),)):
            return [Node("if", (test, block(Node("return", (yes,))), block(Node("return", (no,)))))]
        case Node("assign", (Node("name") as target, Node("ifexp", (test, yes, no)))):
            return [Node("if", (test, block(assign(target, yes)), block(assign(target, no))))]
        case Node("assign", (Node("tuple", targets), Node("tuple", values))) if _apart(targets, values):
            return [assign(target, value) for target, value in zip(targets, values, strict=True)]
        case _:
            return [one]


def _apart(targets: tuple[Node, ...], values: tuple[Node, ...]) -> bool:
    if len(targets) != len(values) or any(one.kind != "name" for one in targets):
        return False
    if any(one.kind == "spread" for one in values):
        return False
    bindings = [one.binding for one in targets if one.binding]
    return not any(binding.shared or any(uses(value, binding) for value in values) for binding in bindings)


def _shaped_if(one: Node, rest: list[Node], end: str) -> tuple[list[Node], list[Node]]:
    """The condition with what follows it in the branches that get there, and what is left."""
    test, yes, no = as_test(one.parts[0]), list(one.parts[1].parts), list(one.parts[2].parts)
    if always_ends(yes) or always_ends(no):
        yes = yes if always_ends(yes) else yes + rest
        no = no if always_ends(no) else no + rest
        rest = []
    elif (
        len(rest) == 1
        and rest[0].kind == "return"
        and all(p.kind in ("name", "const") for p in rest[0].parts)
    ):
        yes, no, rest = yes + rest, no + rest, []
    inner = "" if rest else end
    return [condition(test, shape(yes, inner), shape(no, inner))], rest


def condition(test: Node, yes: list[Node], no: list[Node]) -> Node:
    """An `if` in its one form."""
    turned = test.kind == "not" or (test.kind == "compare" and test.text in ("is not", "not in", "!=="))
    if no and (turned or not yes):
        test, yes, no = as_test(negated(test)), no, yes
    if not yes and not no:
        return Node("expr", (test,))
    truth = [[Node("return", (Node("const", text=word),))] for word in ("True", "False")]
    if [yes, no] == truth and _is_boolean(test):
        return Node("return", (test,))
    if [no, yes] == truth and _is_boolean(test):
        return Node("return", (negated(test),))
    if test.kind == "and" and not no:
        first, *others = test.parts
        other = others[0] if len(others) == 1 else Node("and", tuple(others))
        return condition(first, [condition(other, yes, [])], [])
    return Node("if", (test, block(*yes), block(*no) if no else EMPTY))


def _is_boolean(test: Node) -> bool:
    if test.kind in ("and", "or"):
        return all(_is_boolean(part) for part in test.parts)
    known = test.kind == "call" and test.parts[0].binding is None
    return test.kind in BOOLEAN or (
        known and test.parts[0].text in ("isinstance", "bool", "callable", "Boolean")
    )


def always_ends(statements: list[Node]) -> bool:
    """Whether what follows these statements is never reached."""
    for one in statements:
        if one.kind in ENDS:
            return True
        if one.kind == "block" and always_ends(list(one.parts)):
            return True
        if one.kind == "if" and all(always_ends(list(branch.parts)) for branch in one.parts[1:]):
            return True
    return False
