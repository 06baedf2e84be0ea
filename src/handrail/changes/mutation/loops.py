"""Loops that only fill a list, as the comprehensions that they could be."""

from handrail.changes.mutation.tree import NOTHING, Binding, Node, assign, rebuilt, uses, walk


def without_loops(root: Node) -> Node:
    """The tree with such loops as comprehensions."""
    return rebuilt(root, lambda one: _in_function(one) if one.kind == "function" else one)


def _in_function(function: Node) -> Node:
    return rebuilt(function, lambda one: _in_block(one, function) if one.kind == "block" else one)


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
