"""What both languages are read into: one small tree, in which names are things and not words."""

from collections.abc import Callable, Iterator
from typing import NamedTuple


class Binding:
    """A name in one scope. Two uses mean the same if they have the same binding."""

    __slots__ = ("depth", "fixed", "name", "shared")

    def __init__(self, name: str, depth: int, *, fixed: bool = False, shared: bool = False) -> None:
        self.name = name
        self.depth = depth
        """Functions around it; 0 is the module."""
        self.fixed = fixed
        """Somebody could notice another name."""
        self.shared = shared
        """Code elsewhere may give it another value at any call."""


class Node(NamedTuple):
    kind: str
    parts: tuple["Node", ...] = ()
    text: str = ""
    binding: Binding | None = None

    def with_parts(self, *parts: "Node") -> "Node":
        return self._replace(parts=parts)


NONE = Node("const", text="None")
NOTHING = Node("nothing")
EMPTY = Node("block")


def block(*statements: Node) -> Node:
    return Node("block", statements)


def const(text: str) -> Node:
    return Node("const", text=text)


def name(binding: Binding) -> Node:
    return Node("name", binding=binding)


def assign(target: Node, value: Node) -> Node:
    return Node("assign", (target, value))


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, in the order of the text."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += reversed(one.parts)


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """The tree with each node changed, inner ones first."""
    parts = tuple(rebuilt(part, change) for part in node.parts)
    if any(new is not old for new, old in zip(parts, node.parts, strict=True)):
        node = node._replace(parts=parts)
    return change(node)


def put(node: Node, binding: Binding, value: Node) -> Node:
    """The tree with a value in place of each use of a name."""

    def change(one: Node) -> Node:
        return value if one.kind == "name" and one.binding is binding else one

    return rebuilt(node, change)


def stored(node: Node) -> Iterator[Binding]:
    """The names that are given a value somewhere in the tree, once for each time."""
    for one in walk(node):
        match one:
            case Node("assign" | "augment" | "for" | "clause" | "named", (target, *_)):
                yield from targets(target)
            case Node("with", (_, target, _)):
                yield from targets(target)
            case Node("define" | "class" | "param" | "handler" | "declare", _, _, Binding() as binding):
                yield binding
            case Node("delete" | "bind"):
                yield from targets(one)


def targets(node: Node) -> Iterator[Binding]:
    """The names that an assignment to this gives a value."""
    if node.kind == "name" and node.binding:
        yield node.binding
    elif node.kind in ("tuple", "list", "spread", "dict", "pair", "pattern", "default", "delete", "bind"):
        for part in node.parts:
            yield from targets(part)


def uses(node: Node, binding: Binding) -> int:
    """How often a name is read or written in a tree."""
    return sum(one.kind == "name" and one.binding is binding for one in walk(node))


def fresh(node: Node, depth: int) -> Node:
    """A copy whose own names, those deeper than `depth`, are other names."""
    own: dict[Binding, Binding] = {}

    def change(one: Node) -> Node:
        binding = one.binding
        if binding is None or binding.depth <= depth:
            return one
        if binding not in own:
            own[binding] = Binding(binding.name, binding.depth, fixed=binding.fixed, shared=binding.shared)
        return one._replace(binding=own[binding])

    return rebuilt(node, change)
