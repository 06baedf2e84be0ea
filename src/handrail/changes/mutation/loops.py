"""Loops that only fill a list, as the comprehensions that they could be."""

from handrail.changes.mutation.tree import (
    NOTHING,
    Binding,
    Node,
    assign,
    name,
    put,
    rebuilt,
    targets,
    uses,
    walk,
)


def without_loops(root: Node) -> Node:
    """The tree with such loops as comprehensions."""
    return rebuilt(root, lambda one: _in_function(one) if one.kind == "function" else one)


def _in_function(function: Node) -> Node:
    function = _apart(function)
    return rebuilt(function, lambda one: _in_block(one, function) if one.kind == "block" else one)


def _apart(function: Node) -> Node:
    """Loops that use one name for their items, each with a name of its own, where none looks at another's."""
    loops: dict[Binding, list[Node]] = {}
    for one in walk(function):
        if one.kind == "for" and one.parts[0].kind == "name" and one.parts[0].binding:
            loops.setdefault(one.parts[0].binding, []).append(one)
    for binding, same in loops.items():
        inside = sum(uses(one, binding) for one in same)
        alone = not any(uses(one.parts[1], binding) or _loops_again(one, binding) for one in same)
        if len(same) < 2 or binding.fixed or inside != uses(function, binding) or not alone:
            continue
        named = {id(one): put(one, binding, name(Binding(binding.name, binding.depth))) for one in same}
        function = _exchanged(function, named)
    return function


def _loops_again(loop: Node, binding: Binding) -> bool:
    inner = [one for part in loop.parts[1:] for one in walk(part)]
    functions = [one for one in inner if one.kind in ("function", "comp")]
    again = any(one.kind == "for" and binding in targets(one.parts[0]) for one in inner)
    return again or any(uses(one, binding) for one in functions)


def _exchanged(node: Node, named: dict[int, Node]) -> Node:
    if id(node) in named:
        return named[id(node)]
    if not node.parts:
        return node
    parts = tuple(_exchanged(part, named) for part in node.parts)
    same = all(new is old for new, old in zip(parts, node.parts, strict=True))
    return node if same else node.with_parts(*parts)


def _in_block(block: Node, function: Node) -> Node:
    out: list[Node] = []
    for one in block.parts:
        made = _comprehension(out[-1] if out else NOTHING, one, function)
        if made:
            out[-1] = made
        else:
            out.append(one)
    return block.with_parts(*out) if len(out) < len(block.parts) else block


def _comprehension(before: Node, loop: Node, function: Node) -> Node | None:
    match before, loop:
        case (
            Node("assign", (Node("name", binding=Binding() as made) as target, Node("list", ()))),
            Node(
                "for", (Node("name", binding=Binding() as each) as item, source, body, Node("block", ())), ""
            ),
        ):
            tests: list[Node] = []
            while len(body.parts) == 1 and body.parts[0].kind == "if" and not body.parts[0].parts[2].parts:
                test, body, _ = body.parts[0].parts
                tests.append(test)
            added = _appended(body, made)
            if (
                added is None
                or made.shared
                or each.shared
                or any(uses(one, made) for one in (source, added, *tests))
            ):
                return None
            # The variable of a loop lives on after it.
            if uses(function, each) != uses(loop, each) or uses(source, each):
                return None
            if any(_belongs_to_the_loop(one) for one in (added, *tests)):
                return None
            clause = Node("clause", (item, source, *tests))
            return assign(target, Node("comp", (added, clause), "list"))
    return None


def _appended(body: Node, made: Binding) -> Node | None:
    match body.parts:
        case (Node("expr", (Node("call", (Node("attr", (Node("name", binding=to),), "append"), value)),)),):
            return value if to is made and value.kind not in ("spread", "kwarg") else None
    return None


def _belongs_to_the_loop(node: Node) -> bool:
    """What has another meaning in a comprehension, which is a function of its own."""
    return any(
        one.kind in ("await", "yield", "named", "function", "call") and _is_special(one) for one in walk(node)
    )


def _is_special(one: Node) -> bool:
    return one.kind != "call" or (
        one.parts[0].kind == "name" and one.parts[0].text in ("locals", "super", "eval")
    )
