"""Which name of a Python module means what: scopes, as the language has them."""

import ast
import builtins
from collections.abc import Iterator

from handrail.changes.mutation.tree import Binding

DYNAMIC = frozenset(("locals", "vars", "eval", "exec", "dir"))
BUILTINS = frozenset(dir(builtins))
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def is_private(word: str) -> bool:
    """Whether a name of a module or class is nobody's business elsewhere; `_x_` is somebody's protocol."""
    return word.startswith("_") and not word.endswith("_")


class Scope:
    """Names of a module, function or comprehension; a class has names that only its body sees."""

    def __init__(self, parent: "Scope | None", *, is_class: bool = False, depth: int = 0) -> None:
        self.parent = parent
        self.is_class = is_class
        self.depth = depth
        self.names: dict[str, Binding] = {}
        self.members: set[str] = set()
        self.refs: dict[str, str] = {}
        """Names of imports that nothing else is ever bound to, and what was imported."""

    def bind(self, word: str, *, fixed: bool) -> None:
        if self.is_class:
            self.members.add(word)
        else:
            self.names.setdefault(word, Binding(word, self.depth, fixed=fixed))

    def find(self, word: str) -> tuple[str, Binding | str | None]:
        """What a name means here: a member of the class, an import, a binding, or a builtin."""
        scope: Scope | None = self
        while scope:
            if scope.is_class and scope is self and word in scope.members:
                return "member", word
            if not scope.is_class and word in scope.refs:
                return "ref", scope.refs[word]
            if not scope.is_class and word in scope.names:
                return "name", scope.names[word]
            scope = scope.parent
        return "name", None

    @property
    def module(self) -> "Scope":
        return self.parent.module if self.parent else self

    @property
    def function(self) -> "Scope":
        """The nearest scope that an assignment in a comprehension belongs to."""
        return self


def inside(node: ast.AST) -> Iterator[ast.AST]:
    """What belongs to the scope of a node itself, without the insides of functions and classes."""
    waiting = list(ast.iter_child_nodes(node))
    while waiting:
        one = waiting.pop(0)
        yield one
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting[:0] = [*one.decorator_list, *one.args.defaults, *(d for d in one.args.kw_defaults if d)]
        elif isinstance(one, ast.Lambda):
            waiting[:0] = [*one.args.defaults, *(d for d in one.args.kw_defaults if d)]
        elif isinstance(one, ast.ClassDef):
            waiting[:0] = [*one.decorator_list, *one.bases, *one.keywords]
        elif isinstance(one, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            waiting[:0] = [one.generators[0].iter]
            waiting[:0] = [inner for inner in ast.walk(one) if isinstance(inner, ast.NamedExpr)]
        else:
            waiting[:0] = list(ast.iter_child_nodes(one))


def bound(nodes: Iterator[ast.AST]) -> Iterator[str]:
    """The names that code binds, once for each time."""
    for one in nodes:
        match one:
            case ast.Name(id=word, ctx=ast.Store() | ast.Del()):
                yield word
            case ast.FunctionDef(name=word) | ast.AsyncFunctionDef(name=word) | ast.ClassDef(name=word):
                yield word
            case (
                ast.ExceptHandler(name=str(word))
                | ast.MatchAs(name=str(word))
                | ast.MatchStar(name=str(word))
            ):
                yield word
            case ast.MatchMapping(rest=str(word)):
                yield word
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (each.asname or each.name.split(".")[0] for each in names)
            case ast.NamedExpr(target=ast.Name(id=word)):
                yield word


def declared(nodes: list[ast.AST], kind: type[ast.Global] | type[ast.Nonlocal]) -> set[str]:
    return {word for one in nodes if isinstance(one, kind) for word in one.names}


def looks_at_names(nodes: list[ast.AST]) -> bool:
    """Whether code reads its own names as text."""
    return any(
        isinstance(one, ast.Call)
        and isinstance(one.func, ast.Name)
        and one.func.id in DYNAMIC
        and (not one.args or one.func.id in ("eval", "exec"))
        for one in nodes
    )


def imported(module: ast.Module | Function, words: list[str]) -> dict[str, str]:
    """Names that one import of the body itself binds, and nothing else: what they stand for."""
    refs = {}
    body = module.body if isinstance(module.body, list) else []
    for one in body:
        if isinstance(one, ast.Import):
            for each in one.names:
                refs[each.asname or each.name.split(".")[0]] = (
                    each.name if each.asname else each.name.split(".")[0]
                )
        elif isinstance(one, ast.ImportFrom) and one.module != "__future__":
            for each in one.names:
                if each.name != "*":
                    refs[each.asname or each.name] = f"{'.' * one.level}{one.module or ''}.{each.name}"
    return {word: ref for word, ref in refs.items() if words.count(word) == 1 or _same(body, word, ref)}


def _same(body: list[ast.stmt], word: str, ref: str) -> bool:
    """Several imports of one package: `import a.b` and `import a.c` both bind `a`."""
    bindings = [one for one in body if word in list(bound(iter([one])))]
    return all(isinstance(one, ast.Import) for one in bindings) and all(
        each.name.split(".")[0] == ref and not each.asname
        for one in bindings
        if isinstance(one, ast.Import)
        for each in one.names
        if (each.asname or each.name.split(".")[0]) == word
    )
