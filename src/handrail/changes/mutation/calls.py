"""Functions that were taken out of others, put back where they are called."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from handrail.changes.mutation.effects import LATER, NOW, TOTAL, happenings
from handrail.changes.mutation.inlining import without_names
from handrail.changes.mutation.shaping import shape, shaped
from handrail.changes.mutation.tree import NONE, Binding, Node, assign, block, fresh, name, walk

ROUNDS = 12
FIRST_PARTS = {"expr": 0, "return": 0, "assign": 1, "augment": 1, "if": 0, "for": 1, "raise": 0}
"""Which part of a statement is evaluated before anything else of it happens."""


class Callee(NamedTuple):
    """A function that calls may be replaced with."""

    function: Node
    depth: int
    """Functions around its body's names, less one."""
    of_class: Binding | None = None
    """Its class, for a method; its first parameter is then what it is called on."""
    plain_method: bool = True


class Callees(NamedTuple):
    functions: Mapping[Binding, Callee]
    methods: Mapping[str, Callee]


def without_calls(root: Node, callees: Callees) -> Node:
    """The tree with the bodies of functions in the places of their calls, as far as that is the same."""
    for _ in range(ROUNDS):
        smaller = _Placing(callees).module(root)
        smaller = without_names(shaped(smaller))
        if smaller == root:
            return root
        root = smaller
    return root


class _Placing:
    def __init__(self, callees: Callees) -> None:
        self._callees = callees
        self._class: list[Binding | None] = []
        self._receivers: list[Binding] = []
        self._own: list[Node] = []
        self._is_method = False

    def module(self, node: Node) -> Node:
        return self._inside(node)

    def _inside(self, node: Node) -> Node:
        if node.kind == "block":
            statements: list[Node] = []
            for one in node.parts:
                statements += self._statement(self._inside(one))
            return node if statements == list(node.parts) else node.with_parts(*statements)
        is_class, is_method = node.kind == "class", node.kind == "method" and node.parts[0].kind == "function"
        if is_class:
            self._class.append(node.binding)
        if is_method and (parameters := node.parts[0].parts[0].parts):
            self._receivers.append(parameters[0].binding or Binding("", 0))
        elif is_method:
            self._receivers.append(Binding("", 0))
        other_this = node.kind == "function" and "own" in node.text and not self._is_method
        self._is_method = is_method
        if other_this:
            self._class.append(None)
        if node.kind == "function":
            self._own.append(node)
        new = node.with_parts(*map(self._inside, node.parts)) if node.parts else node
        if node.kind == "function":
            self._own.pop()
        if other_this:
            self._class.pop()
        if is_method:
            self._receivers.pop()
        if is_class:
            self._class.pop()
        new = new if new.parts != node.parts else node
        return self._as_expression(new) if new.kind in ("call", "await") else new

    def _find(self, call: Node) -> tuple[Callee, list[Node]] | None:
        """The function that a call is of, and what it is given."""
        function, *arguments = call.parts
        callee = self._callees.functions.get(function.binding) if function.binding else None
        if function.kind == "name" and callee:
            return callee, arguments
        if function.kind == "attr" and function.text in self._callees.methods:
            callee = self._callees.methods[function.text]
            receiver = function.parts[0]
            ours = self._receivers and receiver.binding is self._receivers[-1] and receiver.kind == "name"
            if (ours or receiver.kind == "this") and self._class and self._class[-1] is callee.of_class:
                return callee, [receiver, *arguments] if callee.plain_method else arguments
        return None

    def _opened(self, call: Node) -> tuple[list[Node], list[Node]] | None:
        """The parameters as assignments, then the body; None where the call cannot be put so."""
        found = self._find(call)
        if found is None or any(one is found[0].function for one in self._own):
            return None
        callee, arguments = found
        function = fresh(callee.function, callee.depth)
        given = _given(function.parts[0].parts, arguments)
        if given is None:
            return None
        settings = []
        for parameter, value in given:
            if parameter.binding is None:
                return None
            settings.append(assign(name(parameter.binding), value))
        return settings, list(function.parts[1].parts)

    def _as_expression(self, node: Node) -> Node:
        """A call of a function that is one expression, as that expression."""
        call, flags = _called(node)
        if call is None or not self._fits_flags(call, flags):
            return node
        opened = self._opened(call)
        if opened is None:
            return node
        settings, body = opened
        if len(body) != 1 or body[0].kind != "return" or not body[0].parts:
            return node
        made = without_names(Node("function", (Node("params"), block(*settings, *body), Node("decorators"))))
        statements = made.parts[1].parts
        return statements[0].parts[0] if len(statements) == 1 and statements[0].parts else node

    def _fits_flags(self, call: Node, flags: str) -> bool:
        found = self._find(call)
        return found is not None and found[0].function.text == flags

    def _statement(self, one: Node) -> list[Node]:
        match one:
            case Node("return", (value,)) if opened := self._call(value):
                return _ended(opened)
            case Node("expr", (value,)) if opened := self._call(value):
                return self._spliced(opened, lambda _: [], one)
            case Node("assign", (target, value)) if opened := self._call(value):
                return self._spliced(opened, lambda result: [assign(target, result)], one)
        if one.kind in FIRST_PARTS and one.parts:
            return self._hoisted(one)
        return [one]

    def _call(self, value: Node) -> tuple[list[Node], list[Node]] | None:
        call, flags = _called(value)
        if call is None or not self._fits_flags(call, flags):
            return None
        return self._opened(call)

    def _spliced(
        self, opened: tuple[list[Node], list[Node]], use: Callable[[Node], list[Node]], one: Node
    ) -> list[Node]:
        settings, body = opened
        made = _results(body, use)
        return [one] if made is None else [*settings, *made]

    def _hoisted(self, one: Node) -> list[Node]:
        """A call inside of a statement, given a name before it, where nothing else comes first."""
        number = FIRST_PARTS[one.kind]
        part = one.parts[number]
        for inner in walk(part):
            call, flags = _called(inner)
            if call is None or (inner is part and one.kind in ("expr", "return", "assign")):
                continue
            if not self._fits_flags(call, flags) or not _comes_first(part, inner):
                continue
            opened = self._opened(call)
            if opened is None:
                continue
            held = Binding("held", 1 + max((b.depth for b in _bindings(call)), default=0))
            made = _results(opened[1], lambda result, held=held: [assign(name(held), result)])  # type: ignore[misc]
            if made is None:
                continue
            new = _replaced(part, inner, name(held))
            parts = (*one.parts[:number], new, *one.parts[number + 1 :])
            return [*opened[0], *made, one.with_parts(*parts)]
        return [one]


def _bindings(node: Node) -> list[Binding]:
    return [one.binding for one in walk(node) if one.binding]


def _called(node: Node) -> tuple[Node | None, str]:
    """The call that an expression is, and what the function has to be."""
    if node.kind == "await" and node.parts[0].kind == "call":
        return node.parts[0], "async"
    return (node, "") if node.kind == "call" else (None, "")


def _given(parameters: tuple[Node, ...], arguments: list[Node]) -> list[tuple[Node, Node]] | None:
    """What each parameter is given, in the order of evaluation; None where that cannot be told."""
    waiting = list(parameters)
    given: list[tuple[Node, Node]] = []
    if any(one.text.startswith(("*", "pattern")) for one in parameters):
        return None
    for argument in arguments:
        if argument.kind == "spread" or argument.text == "**" or not waiting:
            return None
        if argument.kind == "kwarg":
            found = next((one for n, one in enumerate(parameters) if _is_named(argument.text, n, one)), None)
            if found is None or found not in waiting or found.text == "/":
                return None
            waiting.remove(found)
            given.append((found, argument.parts[0]))
        else:
            if waiting[0].text.startswith("only "):
                return None
            given.append((waiting.pop(0), argument))
    for one in waiting:
        if not one.parts or one.parts[0].kind != "const":
            return None
        given.append((one, one.parts[0]))
    return given


def _is_named(text: str, number: int, parameter: Node) -> bool:
    return text == f"@{number}" or bool(parameter.binding and parameter.binding.name == text)


def _ended(opened: tuple[list[Node], list[Node]]) -> list[Node]:
    """The body in place of `return f()`: its own returns are the ones of the caller."""
    settings, body = opened
    return [*settings, *body, Node("return")]


def _results(body: list[Node], use: Callable[[Node], list[Node]]) -> list[Node] | None:
    """The body with its results used instead of returned; None where it returns from inside of something."""
    body = shape(body, "")
    out: list[Node] = []
    for number, one in enumerate(body):
        last = number == len(body) - 1
        if one.kind == "return":
            return [*out, *use(one.parts[0] if one.parts else NONE), *_kept(one, use)]
        if one.kind == "if" and any(inner.kind == "return" for inner in _same_function(one)):
            if not last:
                return None
            yes = _results(list(one.parts[1].parts), use)
            no = _results(list(one.parts[2].parts), use)
            if yes is None or no is None:
                return None
            return [*out, one.with_parts(one.parts[0], block(*yes), block(*no))]
        if any(inner.kind == "return" for inner in _same_function(one)):
            return None
        out.append(one)
    if out and out[-1].kind == "raise":
        return out
    return [*out, *use(NONE)]


def _kept(one: Node, use: Callable[[Node], list[Node]]) -> list[Node]:
    """A result that nobody uses is evaluated all the same."""
    return [] if use(NONE) or not one.parts else [Node("expr", one.parts)]


def _same_function(node: Node) -> list[Node]:
    found, waiting = [], [node]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += [part for part in one.parts if part.kind not in ("function", "class")]
    return found


def _comes_first(part: Node, call: Node) -> bool:
    """Whether nothing but constants and names is evaluated before a call, which is evaluated in any case."""
    for one in happenings(_replaced(part, call, Node("call", (MARK,)))):
        if one.what == "use" and one.binding is MARK.binding:
            return one.when == NOW
        if one.what == "do" and one.degree > TOTAL:
            return False
    return False


MARK = name(Binding("call", LATER))


def _replaced(node: Node, old: Node, new: Node) -> Node:
    """The tree with one node, this very object, replaced."""
    if node is old:
        return new
    return node.with_parts(*(_replaced(part, old, new) for part in node.parts)) if node.parts else node
