"""What happens when a piece of code is evaluated, in which order, and what may change places with what.

Four degrees. TOTAL: a value that is always there, such as a constant or a local name. QUIET: reads what
others may change, and raises only where types are wrong. RAISES: may well raise. EFFECT: anything at all.
"""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from handrail.changes.mutation.tree import Binding, Node, targets, walk

TOTAL, QUIET, RAISES, EFFECT = range(4)
NOW, MAYBE, LATER = range(3)
"""Whether something is evaluated exactly once, perhaps, or any number of times."""
PURE_CALLS = frozenset(
    [
        "len",
        "str",
        "int",
        "float",
        "bool",
        "abs",
        "min",
        "max",
        "sum",
        "sorted",
        "isinstance",
        "issubclass",
        "tuple",
        "list",
        "dict",
        "set",
        "frozenset",
        "range",
        "round",
        "repr",
        "ord",
        "chr",
        "divmod",
        "hash",
        "id",
        "type",
        "Math.max",
        "Math.min",
        "Math.abs",
        "Math.floor",
        "Math.ceil",
        "Math.round",
        "Math.sqrt",
        "Math.pow",
        "Math.trunc",
        "String",
        "Number",
        "Boolean",
        "parseInt",
        "parseFloat",
        "isNaN",
        "Array.isArray",
        "Object.keys",
        "Object.values",
        "Object.entries",
    ]
)
RAISING = frozenset(("/", "//", "%", "**", "<<", ">>", "in", "not in", "instanceof"))
QUIET_KINDS = frozenset(
    (
        "attr",
        "counted",
        "optionalattr",
        "chainedattr",
        "not",
        "and",
        "or",
        "coalesce",
        "ifexp",
        "fstring",
        "unary",
        "format",
        "typeof",
    )
)
TOTAL_KINDS = frozenset(
    ("tuple", "list", "dict", "set", "pair", "kwarg", "const", "block", "nothing", "array")
)
IN_ORDER = frozenset(
    ("return", "expr", "block", "raise", "await", "yield", "new", "binop", "compare", "index", "slice")
)
NOTHING_HAPPENS = frozenset(("const", "nothing", "member", "pass", "this", "key"))
SAME = frozenset(("is", "is not", "===", "!=="))


class Happening(NamedTuple):
    what: Literal["use", "do", "store"]
    when: int
    degree: int = TOTAL
    binding: Binding | None = None


def happenings(node: Node, when: int = NOW) -> Iterator[Happening]:
    """What evaluating the code does, in order."""
    kind, parts = node.kind, node.parts
    if kind in NOTHING_HAPPENS:
        return
    if kind in OWN_ORDER:
        yield from OWN_ORDER[kind](node, when)
    elif kind in IN_ORDER or kind in QUIET_KINDS or kind in TOTAL_KINDS:
        for part in parts:
            yield from happenings(part, when)
        if degree := _own_degree(node):
            yield Happening("do", when, degree)
    else:
        for part in parts:
            yield from happenings(part, LATER)
        yield from _stores(node, LATER)
        yield Happening("do", when, EFFECT)


def _name(node: Node, when: int) -> Iterator[Happening]:
    yield Happening("use", when, TOTAL, node.binding)
    if node.binding and node.binding.shared:
        yield Happening("do", when, QUIET)


def _imported(node: Node, when: int) -> Iterator[Happening]:
    """What stands in another module may get another value there."""
    if "." in node.text or "#" in node.text:
        yield Happening("do", when, QUIET)


def _choice(node: Node, when: int) -> Iterator[Happening]:
    yield from happenings(node.parts[0], when)
    yield Happening("do", when, QUIET)
    for part in node.parts[1:]:
        yield from happenings(part, max(when, MAYBE))


def _comprehension(node: Node, when: int) -> Iterator[Happening]:
    yield from happenings(node.parts[1].parts[1], when)
    yield Happening("do", when, EFFECT)
    for part in node.parts:
        yield from happenings(part, LATER)


def _call(node: Node, when: int) -> Iterator[Happening]:
    function, *arguments = node.parts
    # Which method a name leads to is taken not to depend on the arguments.
    late = function.kind in ("attr", "ref") and _is_path(function)
    first = [one for one in walk(function) if one.kind != "ref"][-1:] if late else [function]
    for part in (*first, *arguments):
        yield from happenings(part, when)
    if late:
        yield Happening("do", when, QUIET)
    if degree := _own_degree(node):
        yield Happening("do", when, degree)


def _is_path(node: Node) -> bool:
    while node.kind == "attr":
        node = node.parts[0]
    return node.kind in ("name", "this", "ref")


def _definition(node: Node, when: int) -> Iterator[Happening]:
    yield from happenings(node.parts[0], when)
    yield Happening("store", when, TOTAL, node.binding)


def _loop(node: Node, when: int) -> Iterator[Happening]:
    yield from happenings(node.parts[1], when)
    yield Happening("do", when, EFFECT)
    yield from _stores(node.parts[0], LATER)
    for part in node.parts[2:]:
        yield from happenings(part, LATER)


def _guarded(node: Node, when: int) -> Iterator[Happening]:
    for part in node.parts:
        # What moves in here may be caught here.
        yield from happenings(part, max(when, MAYBE))
        yield Happening("do", when, EFFECT)


def _own_degree(node: Node) -> int:
    match node.kind:
        case "call":
            return RAISES if called(node) in PURE_CALLS and not _keyed(node) else EFFECT
        case "await" | "raise" | "yield" | "new":
            return EFFECT
        case "index" | "slice":
            return RAISES
        case "binop":
            return RAISES if node.text in RAISING else QUIET
        case "compare":
            return TOTAL if node.text in SAME else RAISES if node.text in RAISING else QUIET
        case "dict" | "set":
            return QUIET  # keys are hashed
        case kind:
            return QUIET if kind in QUIET_KINDS else TOTAL


def _keyed(call: Node) -> bool:
    """Whether a call of a known function is given functions to call, or what has to be unpacked."""
    return any(part.kind in ("kwarg", "spread") for part in call.parts)


def called(call: Node) -> str:
    """The name that a call has where nothing of the file's own is called; else empty."""
    function = call.parts[0]
    if function.kind == "name" and function.binding is None:
        return function.text
    if function.kind == "attr" and function.parts[0].kind == "name" and function.parts[0].binding is None:
        return f"{function.parts[0].text}.{function.text}"
    return ""


def _function(node: Node, when: int) -> Iterator[Happening]:
    parameters, body, *decorators = node.parts
    for parameter in parameters.parts:
        for default in parameter.parts:
            yield from happenings(default, when)
    for group in decorators:
        for decorator in group.parts:
            yield from happenings(decorator, when)
            yield Happening("do", when, EFFECT)
    yield from happenings(body, LATER)


def _assignment(node: Node, when: int) -> Iterator[Happening]:
    target, value = node.parts
    if node.kind == "augment" and target.kind == "name":
        yield Happening("use", when, TOTAL, target.binding)
    yield from happenings(value, when)
    if node.kind == "augment":
        yield Happening("do", when, EFFECT)
    if target.kind == "name":
        yield Happening("store", when, TOTAL, target.binding)
        if target.binding and target.binding.shared:
            yield Happening("do", when, EFFECT)
        return
    for one in target.parts:
        yield from happenings(one, LATER)
    yield Happening("do", when, EFFECT)
    yield from _stores(target, when)


def _stores(target: Node, when: int) -> Iterator[Happening]:
    for binding in targets(target):
        yield Happening("store", when, TOTAL, binding)


def degree(node: Node) -> int:
    """The most that evaluating an expression does; what a function in it would do is no part of that."""
    return max(
        (one.degree for one in happenings(node) if one.what == "do" and one.when != LATER), default=TOTAL
    )


def change_places(one: int, other: int) -> bool:
    """Whether nobody can tell which of two evaluations came first."""
    low, high = sorted((one, other))
    return low == TOTAL or (high < EFFECT and low == QUIET)


OWN_ORDER: dict[str, Callable[[Node, int], Iterator[Happening]]] = {
    "name": _name,
    "ref": _imported,
    **dict.fromkeys(("and", "or", "coalesce", "ifexp", "if"), _choice),
    "function": _function,
    "comp": _comprehension,
    **dict.fromkeys(("assign", "augment", "named"), _assignment),
    "define": _definition,
    "call": _call,
    "for": _loop,
    **dict.fromkeys(("with", "try"), _guarded),
}
