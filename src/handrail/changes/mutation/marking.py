"""What only a whole file tells: names that change under others' hands, parameters that are named in calls."""

from collections import Counter

from handrail.changes.mutation.effects import called
from handrail.changes.mutation.tree import Binding, Node, rebuilt, stored, walk

TAKES_FUNCTIONS = frozenset(["sorted", "map", "filter", "max", "min", "functools.reduce", "reduce"])
KINDS = ("*", "/", "only ")


def marked(root: Node) -> Node:
    """The tree, its shared names known, its hidden parameters really hidden."""
    _mark_shared(root)
    return _with_parameters(root)


def _mark_shared(root: Node) -> None:
    """A name that is given several values is shared if functions inside of its own see it."""
    counts = Counter(stored(root))
    for binding, depth in _places(root):
        if depth > binding.depth and (counts[binding] > 1):
            binding.shared = True
    for one in walk(root):
        if one.kind == "function":
            for binding in stored(one.parts[1]):
                if binding.depth == 0:
                    binding.shared = True
    for binding, count in counts.items():
        if binding.depth == 0 and count > 1:
            binding.shared = True


def _places(root: Node) -> list[tuple[Binding, int]]:
    found: list[tuple[Binding, int]] = []
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        if node.binding:
            found.append((node.binding, depth))
        inner = depth + (node.kind in ("function", "comp"))
        waiting += [(part, inner) for part in node.parts]
    return found


def _with_parameters(root: Node) -> Node:
    """Parameters that somebody may name keep their names; the names in calls that are known are numbers."""
    functions: dict[Binding, Node] = {}
    escaped: set[Binding] = set()
    named: set[str] = set()
    for one in walk(root):
        if one.kind == "define" and one.binding:
            functions[one.binding] = one.parts[0]
        for number, part in enumerate(one.parts):
            direct = one.kind == "call" and number == 0
            if part.kind == "name" and part.binding and not direct:
                escaped.add(part.binding)
            if part.kind in ("attr", "member"):
                word = part.text
                if not direct or any(each.kind == "kwarg" for each in one.parts):
                    named.add(word)
    known = {
        binding: function
        for binding, function in functions.items()
        if binding not in escaped and not binding.shared and _hidden(function)
    }

    def change(one: Node) -> Node:
        match one:
            case Node("define", (function,)) if one.binding not in known:
                return one.with_parts(_shown(function))
            case Node("method", (Node("function") as function,)) if one.text in named:
                return one.with_parts(_shown(function))
            case Node("call", (Node("name", binding=binding), *_)) if binding in known:
                return _numbered(one, known[binding])
            case Node("call") if called(one) in TAKES_FUNCTIONS or one.parts[0].text in TAKES_FUNCTIONS:
                return one.with_parts(*map(_without_names, one.parts))
            case Node("kwarg", (Node("function") as function,), "key"):
                return one.with_parts(_without_names(function))
            case _:
                return one

    return rebuilt(root, change)


def _hidden(function: Node) -> bool:
    return any(one.text in ("", *KINDS) for one in function.parts[0].parts)


def _shown(function: Node) -> Node:
    """With the names of its parameters, where they were left out."""
    parameters = function.parts[0]
    shown = [
        one._replace(text=f"{one.text}{one.binding.name}")
        if one.text in ("", "only ") and one.binding
        else one
        for one in parameters.parts
    ]
    return function.with_parts(parameters.with_parts(*shown), *function.parts[1:])


def _without_names(node: Node) -> Node:
    if node.kind != "function":
        return node
    parameters = node.parts[0]
    hidden = [
        one._replace(text="") if one.binding and one.text == one.binding.name else one
        for one in parameters.parts
    ]
    return node.with_parts(parameters.with_parts(*hidden), *node.parts[1:])


def _numbered(call: Node, function: Node) -> Node:
    """The call with the numbers of parameters for their names."""
    numbers = {one.binding.name: str(n) for n, one in enumerate(function.parts[0].parts) if one.binding}
    parts = [
        one._replace(text=f"@{numbers[one.text]}") if one.kind == "kwarg" and one.text in numbers else one
        for one in call.parts
    ]
    return call.with_parts(*parts)


def names_of(node: Node) -> set[str]:
    """All words of a tree that could be the name of something."""
    found: set[str] = set()
    for one in walk(node):
        if one.binding and one.binding.depth == 0:
            found.add(one.binding.name)
        if one.kind in ("attr", "member", "method", "name", "key", "chainedattr", "optionalattr"):
            found.add(one.text)
        if one.kind == "const" and one.text[:1] in ("'", '"'):
            found.add(one.text[1:-1])
        if one.kind in ("ref", "import"):
            found |= set(one.text.replace(":", ".").replace(" ", ".").split("."))
    return found
