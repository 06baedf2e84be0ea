"""Names for parts of an expression, taken out again where nobody can tell the difference."""

from collections import Counter
from itertools import chain

from handrail.changes.mutation.effects import EFFECT, LATER, NOW, TOTAL, change_places, degree, happenings
from handrail.changes.mutation.tree import Binding, Node, put, rebuilt, stored, uses, walk

PLAIN = ("const", "name", "attr", "index", "ref", "compare", "not", "fstring")
"""Values that are the same thing however often they are taken."""
SCALAR = ("binop", "compare", "format", "unary", "not", "fstring", "if", "ifexp")
"""Where only the value of something counts, and not which object it is."""


def without_names(root: Node) -> Node:
    """The tree in which each local name that stands for one expression is that expression."""
    return rebuilt(root, lambda one: _in_function(one) if one.kind == "function" else one)


def _in_function(function: Node) -> Node:
    while True:
        counts = Counter(stored(function))
        function = _returned(function, counts)
        counts = Counter(stored(function))
        smaller = _once(function, function, counts)
        if smaller is function:
            return function
        function = smaller


def _returned(function: Node, counts: Counter[Binding]) -> Node:
    """`x = f()` before `return x` as `return f()`, where nothing can look at x after that."""
    finals = [one.parts[3] for one in walk(function) if one.kind == "try"]

    def change(one: Node) -> Node:
        match one.parts[-2:]:
            case (Node("assign", (Node("name") as target, value)), Node("return", (Node("name") as result,))):
                binding = target.binding
                if one.kind != "block" or binding is None or binding is not result.binding:
                    return one
                if (
                    binding.shared
                    or binding.fixed
                    or not binding.depth
                    or any(uses(each, binding) for each in finals)
                ):
                    return one
                if counts[binding] > 1 or uses(function, binding) == 2:
                    return one.with_parts(*one.parts[:-2], Node("return", (value,)))
        return one

    return rebuilt(function, change)


def _once(node: Node, function: Node, counts: Counter[Binding]) -> Node:
    """The node with one name less; the same node where there is none to take out."""
    if node.kind == "block":
        for number, statement in enumerate(node.parts):
            if statement.kind in ("assign", "define"):
                rest = node.parts[number + 1 :]
                new = _taken_out(statement, rest, function, counts)
                if new is not None:
                    return node.with_parts(*node.parts[:number], *new)
    for number, part in enumerate(node.parts):
        new_part = _once(part, function, counts)
        if new_part is not part:
            return node.with_parts(*node.parts[:number], new_part, *node.parts[number + 1 :])
    return node


def _taken_out(
    statement: Node, rest: tuple[Node, ...], function: Node, counts: Counter[Binding]
) -> list[Node] | None:
    """The statements after one, without the name that it gives a value; None where it has to stay."""
    if statement.kind == "define":
        return _unused(statement, rest, function, counts)
    target, value = statement.parts
    binding = target.binding
    if target.kind != "name" or binding is None or binding.depth == 0 or binding.fixed:
        return None
    if counts[binding] != 1:
        return _unread(statement, binding, rest, function)
    total = uses(function, binding) - 1
    here = sum(uses(one, binding) for one in rest)
    if total != here:
        return None
    if total == 0:
        return [*([] if degree(value) == TOTAL else [Node("expr", (value,))]), *rest]
    if not fits(binding, value, rest, counts, total):
        return None
    return [put(one, binding, value) for one in rest]


def _unused(
    statement: Node, rest: tuple[Node, ...], function: Node, counts: Counter[Binding]
) -> list[Node] | None:
    """Without a function that nobody else calls, or that is only handed on, once: then it stands there."""
    binding, decorators = statement.binding, statement.parts[0].parts[2].parts
    if binding is None or binding.depth == 0 or binding.fixed or counts[binding] != 1 or decorators:
        return None
    own, all_uses = uses(statement, binding), uses(function, binding)
    if not own and all_uses == 1 and not _is_called(binding, rest):
        value = statement.parts[0]
        return [put(one, binding, value) for one in rest] if fits(binding, value, rest, counts, 1) else None
    if own != all_uses:
        return None
    if any(degree(part) > TOTAL for one in statement.parts[0].parts[0].parts for part in one.parts):
        return None
    return list(rest)


def _is_called(binding: Binding, rest: tuple[Node, ...]) -> bool:
    calls = (one for statement in rest for one in walk(statement) if one.kind in ("call", "new"))
    return any(one.parts[0].binding is binding for one in calls)


def _unread(statement: Node, binding: Binding, rest: tuple[Node, ...], function: Node) -> list[Node] | None:
    """A value that nothing ever reads, since the name is given another one in all places."""
    writes = sum(
        one.kind == "assign" and one.parts[0].kind == "name" and one.parts[0].binding is binding
        for one in walk(function)
    )
    if binding.shared or writes != uses(function, binding):
        return None
    return [Node("expr", (statement.parts[1],)), *rest]


def fits(binding: Binding, value: Node, rest: tuple[Node, ...], counts: Counter[Binding], total: int) -> bool:
    """Whether a value may stand in all places of a name that follow, evaluated there and not before."""
    own = degree(value)
    reads = {one.binding for one in walk(value) if one.kind == "name" and one.binding}
    if any(one.kind in ("yield", "named", "super") for one in walk(value)):
        return False
    if total > 1 and not _repeatable(binding, value, rest):
        return False
    seen = 0
    for one in chain.from_iterable(happenings(statement) for statement in rest):
        if one.what == "use" and one.binding is binding:
            if one.when != NOW and not seen and own > TOTAL:
                return False
            if one.when == LATER and (own > TOTAL or any(counts[name] > 1 or name.shared for name in reads)):
                return False
            if one.when == LATER and value.kind in ("list", "dict", "set", "function", "comp"):
                return False
            if seen and own == EFFECT:
                return False
            seen += 1
            if seen == total:
                return True
        elif (
            one.what == "do"
            and not (change_places(own, one.degree) if not seen else own == TOTAL or one.degree < EFFECT)
        ) or (one.what == "store" and one.binding in reads):
            return False
    return False


def _repeatable(binding: Binding, value: Node, rest: tuple[Node, ...]) -> bool:
    """Whether two evaluations instead of one are no difference: of identity least of all."""
    if value.kind in PLAIN and not any(one.kind in ("list", "dict", "set", "call") for one in walk(value)):
        return True
    if value.kind not in ("binop", "unary"):
        return False
    return all(
        parent.kind in SCALAR
        for statement in rest
        for parent in walk(statement)
        if any(part.kind == "name" and part.binding is binding for part in parent.parts)
    )
