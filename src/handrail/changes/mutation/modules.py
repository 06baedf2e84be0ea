"""The statements of a module or class in one order, where their order is of no account."""

import builtins
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from handrail.changes.mutation.effects import LATER, happenings
from handrail.changes.mutation.tree import Binding, Node, block, stored, walk

PLAIN_DECORATORS = frozenset(
    [
        "property",
        "staticmethod",
        "classmethod",
        "abc.abstractmethod",
        "typing.override",
        "typing.final",
        "typing.overload",
        "functools.wraps",
        "functools.cached_property",
        "contextlib.contextmanager",
        "contextlib.asynccontextmanager",
    ]
)
ERRORS = [
    name
    for name, each in vars(builtins).items()
    if isinstance(each, type) and issubclass(each, BaseException)
]
PLAIN_BASES = frozenset(
    [
        *ERRORS,
        "dict",
        "list",
        "tuple",
        "set",
        "str",
        "int",
        "float",
        "abc.ABC",
        "typing.Protocol",
        "typing.NamedTuple",
        "typing.Generic",
        "typing.TypedDict",
        "enum.Enum",
        "enum.IntEnum",
        "enum.StrEnum",
        "Error",
    ]
)
FIXED = frozenset(("const", "tuple", "list", "dict", "set", "pair", "unary", "fstring", "key"))


class Defined(NamedTuple):
    """What a statement of the module defines."""

    binding: Binding
    node: Node


def definitions(module: Node) -> list[Defined]:
    """Functions, classes and values that are defined once, by a statement of the module itself."""
    counts = Counter(stored(module))
    found = []
    for one in module.parts[0].parts:
        inner = unwrapped(one)
        binding = inner.binding
        if inner.kind == "assign" and inner.parts[0].kind == "name":
            binding = inner.parts[0].binding
        if binding and inner.kind in ("define", "class", "assign") and counts[binding] == 1:
            found.append(Defined(binding, inner))
    return found


def unwrapped(one: Node) -> Node:
    """A statement without the word that exports what it defines."""
    return one.parts[0] if one.kind == "export" and one.parts else one


def is_plain(node: Node, known: Mapping[Binding, Node]) -> bool:
    """Whether a definition only defines: nothing runs, and nobody is told."""
    match node:
        case Node("define", (function,)):
            return _plain_function(function)
        case Node("assign", (Node("name", binding=Binding() as binding), value)):
            return not binding.shared and _is_fixed(value)
        case Node("class", (heritage, decorators, body)):
            return (
                not decorators.parts
                and all(_plain_base(one, known) for one in heritage.parts)
                and all(_plain_member(one) for one in body.parts)
            )
        case Node("export", (inner,)):
            return is_plain(inner, known)
        case _:
            return False


def _plain_function(function: Node) -> bool:
    parameters, _, decorators = function.parts
    named = all(
        one.text in PLAIN_DECORATORS or (one.kind == "attr" and one.text in ("setter", "getter", "deleter"))
        for one in (each.parts[0] if each.kind == "call" else each for each in decorators.parts)
    )
    return named and all(
        _is_fixed(part) or part.kind == "name" for one in parameters.parts for part in one.parts
    )


def _is_fixed(value: Node) -> bool:
    """Whether a value is the same whenever it is evaluated."""
    return value.kind == "function" or (value.kind in FIXED and all(map(_is_fixed, value.parts)))


def _plain_member(one: Node) -> bool:
    match one:
        case Node("method", (Node("function") as function,)):
            return one.text not in ("__init_subclass__", "__set_name__") and _plain_function(function)
        case Node("assign" | "field", (_, value)):
            return value.kind == "nothing" or _is_fixed(value)
        case Node("pass"):
            return True
        case _:
            return False


def _plain_base(one: Node, known: Mapping[Binding, Node]) -> bool:
    if one.kind == "kwarg":
        return False
    if one.kind == "index":
        one = one.parts[0]
    if one.binding is not None and one.binding in known:
        others = {binding: node for binding, node in known.items() if binding is not one.binding}
        return is_plain(known[one.binding], others)
    return one.text in PLAIN_BASES


def ordered(module: Node, named: Callable[[Binding], str]) -> Node:
    """The module with its definitions sorted, as far as they may change places."""
    known = {one.binding: one.node for one in definitions(module)}
    runs = {binding for binding, node in known.items() if node.kind in ("define", "class")}
    out: list[Node] = []
    moving: list[tuple[str, Node]] = []
    staying: list[Node] = []

    def flush() -> None:
        out.extend(node for _, node in sorted(moving, key=lambda pair: pair[0]))
        out.extend(_imports(staying))
        moving.clear()
        staying.clear()

    for one in map(_sorted_class, module.parts[0].parts):
        binding = _bound(one)
        if binding in known and is_plain(one, known):
            moving.append((named(binding), one))
            continue
        if not _lets_through(one, runs):
            flush()
            out.append(one)
        else:
            staying.append(one)
    flush()
    return module.with_parts(block(*out, *_early(module, named)))


def _bound(one: Node) -> Binding | None:
    inner = unwrapped(one)
    return inner.parts[0].binding if inner.kind == "assign" else inner.binding


def _lets_through(one: Node, runs: set[Binding]) -> bool:
    """Whether a statement cannot come to run a function of this module."""
    if one.kind in ("import", "pass", "reexport", "exports"):
        return True
    if one.kind not in ("assign", "expr", "define", "class", "export"):
        return False
    return not any(inner.kind == "name" and inner.binding in runs for inner in walk(one))


def _imports(statements: list[Node]) -> list[Node]:
    """Imports that follow one another sorted, unless one of them could hide another's names."""
    out: list[Node] = []
    run: list[Node] = []
    for one in [*statements, Node("end")]:
        if one.kind == "import" and "*" not in one.text:
            run.append(one)
            continue
        bindings = [node.binding for node in run if node.binding]
        apart = len(set(bindings)) == len(bindings)
        out += sorted(dict.fromkeys(run), key=lambda node: node.text) if apart else run
        run = []
        out += [one] if one.kind != "end" else []
    return out


def _early(module: Node, named: Callable[[Binding], str]) -> list[Node]:
    """Marks for names that are used before they are there: no order of definitions makes that good."""
    found: list[Node] = []
    statements = [unwrapped(one) for one in module.parts[0].parts]
    hoisted = {one.binding for one in statements if one.kind == "define" and one.text == "hoisted"}
    later: set[Binding | None] = {one.binding for one in definitions(module) if one.binding not in hoisted}
    for one in statements:
        used = {each.binding for each in happenings(one) if each.what == "use" and each.when != LATER}
        if one.kind == "class":
            used |= {part.binding for part in (*one.parts[0].parts, *one.parts[1].parts)}
        found += [Node("early", text=named(each)) for each in later if each is not None and each in used]
        later.discard(_bound(one))
    return sorted(found, key=lambda node: node.text)


def _sorted_class(one: Node) -> Node:
    if one.kind == "export" and one.parts:
        return one.with_parts(_sorted_class(one.parts[0]), *one.parts[1:])
    if one.kind != "class":
        return one
    heritage, decorators, body = one.parts
    methods = [part for part in body.parts if part.kind == "method" and _plain_member(part)]
    rest = [part for part in body.parts if part not in methods and part.kind != "pass"]
    values = [value for part in rest if part.kind != "method" for value in part.parts[1:]]
    if any(inner.kind == "member" for value in values for inner in walk(value)):
        return one
    return one.with_parts(heritage, decorators, block(*sorted(methods, key=lambda part: part.text), *rest))
