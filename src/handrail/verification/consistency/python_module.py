"""What a Python module imports, defines and uses, from its syntax tree."""

import ast
import warnings
from collections.abc import Iterator
from typing import Literal, NamedTuple

Guard = Literal["", "types", "maybe"]
"""When an import runs: always, only for type checkers, or perhaps never (in a `try`, under an `if`)."""
IMPORT_ERRORS = {
    "ImportError",
    "ModuleNotFoundError",
    "Exception",
    "BaseException",
    "OSError",
    "AttributeError",
}
DYNAMIC = {"globals", "lazy_import", "exec"}
DYNAMIC_IN_MODULE = {"vars", "locals", "setattr", "eval"}
MAX_USES = 20_000
WITHOUT_NAMES = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)


class Import(NamedTuple):
    module: str
    level: int
    name: str
    """The imported name; empty for `import module`, `*` for all."""
    bound: str
    """The name that it has in the importing module."""
    line: int
    guard: Guard
    in_function: bool


class Use(NamedTuple):
    dotted: str
    """A name, or a name with attributes: `os.path.join`."""
    line: int


class PythonModule(NamedTuple):
    imports: tuple[Import, ...]
    names: frozenset[str]
    """Bound at the level of the module, imports included."""
    strings: frozenset[str]
    """Names as text outside of functions, as in a call that makes them; without those of `__all__`."""
    is_dynamic: bool
    """It may have names that its text does not bind."""
    exported: tuple[Use, ...]
    """What `__all__` lists, where it is written out."""
    uses: tuple[Use, ...]
    bound_anywhere: frozenset[str]
    """Bound in any scope, but not by an import: parameters, variables, definitions."""
    any_lines: tuple[int, ...]
    skipped: frozenset[str]
    """Modules that a test skips itself without."""
    methods: dict[str, frozenset[str]]
    """By class without other bases: everything that it defines or assigns to itself."""
    self_uses: tuple[tuple[str, Use], ...]
    """By class: attributes of `self` and `cls` that are read."""


def read_module(data: bytes) -> PythonModule | None:
    """The module; None if its syntax is not that of this Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    reader = _Reader()
    reader.read(tree)
    return reader.module()


class _Place(NamedTuple):
    scope: Literal["module", "class", "function"] = "module"
    guard: Guard = ""
    owner: str = ""
    """The class that a method belongs to."""


class _Reader:
    def __init__(self) -> None:
        self.imports: list[Import] = []
        self.names: set[str] = set()
        self.strings: set[str] = set()
        self.is_dynamic = False
        self.exported: list[Use] = []
        self.uses: list[Use] = []
        self.bound: set[str] = set()
        self.any_lines: list[int] = []
        self.skipped: set[str] = set()
        self.methods: dict[str, set[str]] = {}
        self.self_uses: list[tuple[str, Use]] = []

    def module(self) -> PythonModule:
        return PythonModule(
            tuple(self.imports),
            frozenset(self.names),
            frozenset(self.strings - {each.dotted for each in self.exported}),
            self.is_dynamic or "__getattr__" in self.names,
            tuple(self.exported),
            tuple(self.uses[:MAX_USES]),
            frozenset(self.bound),
            tuple(sorted(self.any_lines)),
            frozenset(self.skipped),
            {name: frozenset(found) for name, found in self.methods.items()},
            tuple(self.self_uses),
        )

    def read(self, tree: ast.Module) -> None:
        # Not recursive: the tree may be deeper than the stack.
        waiting: list[tuple[ast.AST, _Place]] = [(tree, _Place())]
        while waiting:
            node, place = waiting.pop()
            inner = [each for each in self._visit(node, place) if not isinstance(each[0], WITHOUT_NAMES)]
            inner.reverse()
            waiting += inner

    def _visit(self, node: ast.AST, place: _Place) -> Iterator[tuple[ast.AST, _Place]]:
        """Record a node; what is inside it, and where that is."""
        match node:
            case ast.Import() | ast.ImportFrom():
                self._import(node, place)
                return
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                yield from self._function(node, place)
                return
            case ast.ClassDef():
                self._bind(node.name, place)
                if (
                    place.scope == "module"
                    and not node.keywords
                    and not node.decorator_list
                    and _is_plain(node)
                ):
                    self.methods.setdefault(node.name, set())
                inner = place._replace(scope="class", owner=node.name if place.scope == "module" else "")
                body = {id(each) for each in node.body}
                yield from (
                    (each, inner if id(each) in body else place) for each in ast.iter_child_nodes(node)
                )
                return
            case ast.Try() | ast.TryStar():
                yield from self._try(node, place)
                return
            case ast.If():
                guard: Guard = "types" if _is_type_checking(node.test) else "maybe"
                yield node.test, place
                inner = place._replace(guard=place.guard if place.guard == "maybe" else guard)
                yield from ((each, inner) for each in node.body)
                yield from ((each, place._replace(guard="maybe")) for each in node.orelse)
                return
            case ast.With() | ast.AsyncWith() | ast.While() | ast.For() | ast.Match():
                place = place._replace(guard="maybe") if _may_skip(node) else place
            case ast.Attribute():
                yield from self._attribute(node, place)
                return
            case _:
                self._leaf(node, place)
        yield from ((each, place) for each in ast.iter_child_nodes(node))

    def _leaf(self, node: ast.AST, place: _Place) -> None:
        match node:
            case ast.Name(ctx=ast.Load()):
                self._use(node.id, node.lineno)
                if node.id in DYNAMIC or (node.id in DYNAMIC_IN_MODULE and place.scope == "module"):
                    self.is_dynamic = True
            case ast.Name():
                self._bind(node.id, place)
            case ast.Global():
                self.names.update(node.names)
                self.bound.update(node.names)
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                self._bind(name, place)
            case ast.MatchMapping(rest=str(name)):
                self._bind(name, place)
            case ast.arg():
                self.bound.add(node.arg)
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign():
                self._list_exports(node)
            case ast.Call(func=ast.Attribute(attr="importorskip"), args=[ast.Constant(value=str(name)), *_]):
                self.skipped.add(name.partition(".")[0])
            case ast.Constant(value=str(text)) if place.scope == "module" and text.isidentifier():
                self.strings.add(text)
            case _:
                pass

    def _function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, place: _Place
    ) -> Iterator[tuple[ast.AST, _Place]]:
        inner = place._replace(scope="function")
        if isinstance(node, ast.Lambda):
            yield from ((each, inner) for each in ast.iter_child_nodes(node))
            return
        self._bind(node.name, place)
        outside = {id(each) for each in (*node.decorator_list, node.returns) if each}
        for each in ast.iter_child_nodes(node):
            yield each, place if id(each) in outside else inner

    def _try(self, node: ast.Try | ast.TryStar, place: _Place) -> Iterator[tuple[ast.AST, _Place]]:
        maybe = place._replace(guard="maybe")
        guarded = any(_catches_import_error(handler) for handler in node.handlers)
        yield from ((each, maybe if guarded else place) for each in (*node.body, *node.orelse))
        yield from ((each, maybe) for each in node.handlers)
        yield from ((each, place) for each in node.finalbody)

    def _attribute(self, node: ast.Attribute, place: _Place) -> Iterator[tuple[ast.AST, _Place]]:
        parts, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if not isinstance(inner, ast.Name):
            yield inner, place
            return
        parts.append(inner.id)
        dotted = ".".join(reversed(parts))
        if dotted.startswith("sys.modules") or "__dict__" in parts or node.attr == "__class__":
            self.is_dynamic = self.is_dynamic or dotted.startswith("sys.modules") or place.scope == "module"
        if inner.id in ("self", "cls") and place.owner in self.methods:
            if isinstance(node.ctx, ast.Load) or len(parts) > 2:
                self.self_uses.append((place.owner, Use(parts[-2], node.lineno)))
            else:
                self.methods[place.owner].add(node.attr)
        self._use(dotted, node.lineno)
        if node.attr == "Any":
            self.any_lines.append(node.lineno)

    def _import(self, node: ast.Import | ast.ImportFrom, place: _Place) -> None:
        in_function = place.scope == "function"
        for alias in node.names:
            if isinstance(node, ast.Import):
                bound = alias.asname or alias.name.partition(".")[0]
                found = Import(alias.name, 0, "", alias.asname or "", node.lineno, place.guard, in_function)
            else:
                bound, module = alias.asname or alias.name, node.module or ""
                found = Import(module, node.level, alias.name, bound, node.lineno, place.guard, in_function)
            self.imports.append(found)
            if place.scope == "module" and bound != "*":
                self.names.add(bound)

    def _bind(self, name: str, place: _Place) -> None:
        self.bound.add(name)
        if place.scope == "module":
            self.names.add(name)
        elif place.scope == "class" and place.owner in self.methods:
            self.methods[place.owner].add(name)

    def _use(self, dotted: str, line: int) -> None:
        if len(self.uses) < MAX_USES:
            self.uses.append(Use(dotted, line))
        if dotted == "Any":
            self.any_lines.append(line)

    def _list_exports(self, node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if not any(isinstance(each, ast.Name) and each.id == "__all__" for each in targets):
            return
        if isinstance(node.value, ast.List | ast.Tuple):
            for each in node.value.elts:
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    self.exported.append(Use(each.value, each.lineno))


def _is_plain(node: ast.ClassDef) -> bool:
    """Whether all attributes of a class are in its own body."""
    bases = all(isinstance(base, ast.Name) and base.id == "object" for base in node.bases)
    defined = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    return bases and defined.isdisjoint({"__getattr__", "__getattribute__"})


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _may_skip(node: ast.AST) -> bool:
    """Whether an import below may fail without harm, or not run."""
    if not isinstance(node, ast.With | ast.AsyncWith):
        return True
    calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
    names = {
        each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "")
        for each in _functions(calls)
    }
    return not names.isdisjoint({"suppress", "raises", "assertRaises", "try_import", "optional_imports"})


def _functions(calls: list[ast.Call]) -> list[ast.expr]:
    return [call.func for call in calls]


def _catches_import_error(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "?") for each in caught}
    return not names.isdisjoint(IMPORT_ERRORS) or "?" in names
