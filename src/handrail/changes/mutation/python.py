"""A Python module as a tree."""

import ast
import sys
from typing import NamedTuple

from handrail.changes.mutation import python_names as names
from handrail.changes.mutation.python_expressions import OPERATORS, Expressions
from handrail.changes.mutation.python_names import Function, Scope, is_private
from handrail.changes.mutation.tree import EMPTY, NOTHING, Node, assign, block

PLAIN_DECORATORS = frozenset(
    [
        "property",
        "staticmethod",
        "classmethod",
        "abstractmethod",
        "abc.abstractmethod",
        "override",
        "typing.override",
        "final",
        "functools.wraps",
        "functools.cached_property",
        "cached_property",
        "overload",
        "typing.overload",
        "contextmanager",
        "contextlib.contextmanager",
        "asynccontextmanager",
        "contextlib.asynccontextmanager",
    ]
)
READS_HINTS = ("__annotations__", "get_type_hints", "inspect", "pydantic", "__doc__", "docopt", "doctest")


class Source(NamedTuple):
    """A file as a tree, and the types that its public functions declare."""

    tree: Node
    types: dict[str, str]


def read_python(path: str, text: str) -> Source:
    """The tree of a module; raises SyntaxError, or RecursionError for one that is too deep."""
    return _Reader(path, ast.parse(text)).read()


class _Reader(Expressions):
    def __init__(self, path: str, module: ast.Module) -> None:
        self._module = module
        self._is_package = path.endswith("__init__.py")
        words = {one.id for one in ast.walk(module) if isinstance(one, ast.Name)}
        words |= {one.attr for one in ast.walk(module) if isinstance(one, ast.Attribute)}
        words |= {one.name.split(".")[0] for one in ast.walk(module) if isinstance(one, ast.alias)}
        self._hints_read = not words.isdisjoint(READS_HINTS) or any(
            isinstance(one, ast.ImportFrom) and one.module in READS_HINTS for one in ast.walk(module)
        )
        self._looks = bool(words & {"globals", "eval", "exec", "vars"})
        self._strings = {
            one.value
            for one in ast.walk(module)
            if isinstance(one, ast.Constant) and isinstance(one.value, str)
        }
        self._lazy_hints = any(
            isinstance(one, ast.ImportFrom)
            and one.module == "__future__"
            and any(each.name == "annotations" for each in one.names)
            for one in module.body
        )
        self._first_lines = _first_lines(module)
        self._types: dict[str, str] = {}
        self._path: list[str] = []

    def read(self) -> Source:
        scope = Scope(None)
        self._scope = scope
        found = list(names.inside(self._module))
        words = list(names.bound(iter(found)))
        inner = {word for one in ast.walk(self._module) if isinstance(one, ast.Global) for word in one.names}
        for word in (*words, *inner):
            fixed = not is_private(word) or self._looks or word in self._strings
            scope.bind(word, fixed=fixed)
        if not self._is_package:
            scope.refs = {
                word: ref
                for word, ref in names.imported(self._module, words).items()
                if word not in inner and word not in self._strings
            }
        return Source(Node("module", (block(*self._body(self._module.body)),)), self._types)

    # Statements

    def _body(self, statements: list[ast.stmt], *, plain: bool = True) -> list[Node]:
        """What is done, with the docstring where something reads it, as a decorator may."""
        first = statements[0] if statements and _is_text(statements[0]) else None
        nodes = [node for one in statements[1 if first else 0 :] for node in self._statement(one)]
        read = first and (self._hints_read or not plain)
        return [Node("docstring", text=ast.unparse(first)), *nodes] if first and read else nodes

    def _block(self, statements: list[ast.stmt]) -> Node:
        return block(*(node for one in statements for node in self._statement(one))) if statements else EMPTY

    def _statement(self, one: ast.stmt) -> list[Node]:
        found = self._defining(one)
        if found is None:
            found = self._flow(one)
        return [self._other(one)] if found is None else found

    def _defining(self, one: ast.stmt) -> list[Node] | None:
        match one:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return [self._definition(one)]
            case ast.ClassDef():
                return [self._class(one)]
            case ast.Assign():
                return self._assigned(one)
            case ast.AnnAssign():
                return self._annotated(one)
            case ast.AugAssign(target=target, op=op, value=value):
                parts = (self._target(target), self._expression(value))
                return [Node("augment", parts, OPERATORS[type(op)])]
            case ast.Expr(value=value):
                return [Node("expr", (self._expression(value),))]
            case ast.Pass() | ast.Global() | ast.Nonlocal():
                return [Node("pass")]
            case ast.Import() | ast.ImportFrom():
                return self._import(one)
            case ast.Delete(targets=targets):
                return [Node("delete", tuple(self._target(each) for each in targets))]
            case _:
                return None

    def _flow(self, one: ast.stmt) -> list[Node] | None:
        match one:
            case ast.If():
                return self._if(one)
            case ast.For() | ast.AsyncFor():
                text = "async" if isinstance(one, ast.AsyncFor) else ""
                ends = (self._block(one.body), self._block(one.orelse))
                return [Node("for", (self._target(one.target), self._expression(one.iter), *ends), text)]
            case ast.While(test=test, body=body, orelse=orelse):
                return [Node("while", (self._expression(test), self._block(body), self._block(orelse)))]
            case ast.Return(value=value):
                return [Node("return", (self._expression(value),) if value else ())]
            case ast.Break() | ast.Continue():
                return [Node(type(one).__name__.lower())]
            case ast.Raise(exc=exc, cause=cause):
                parts = (self._expression(each) if each else NOTHING for each in (exc, cause))
                return [Node("raise", tuple(parts))]
            case ast.With() | ast.AsyncWith():
                return [self._with(one)]
            case ast.Try() | ast.TryStar():
                return [self._try(one)]
            case _:
                return None

    def _if(self, one: ast.If) -> list[Node]:
        if _dotted(one.test).endswith("TYPE_CHECKING") and not one.orelse:
            return []
        return [Node("if", (self._expression(one.test), self._block(one.body), self._block(one.orelse)))]

    def _assigned(self, one: ast.Assign) -> list[Node]:
        match one.targets, one.value:
            case [ast.Name(id=word) as target], ast.Lambda() as value if not self._scope.is_class:
                function = self._function(value, private=is_private(word) or self._scope.depth > 0)
                return [Node("define", (function,), binding=self._target(target).binding)]
            case [target], value:
                return [assign(self._target(target), self._expression(value))]
            case targets, ast.Constant() as value:
                return [assign(self._target(each), self._expression(value)) for each in targets]
            case targets, value:
                bound = [Node("bind", (self._target(each),)) for each in targets]
                return [Node("chain", (self._expression(value), *bound))]

    def _annotated(self, one: ast.AnnAssign) -> list[Node]:
        kept = self._scope.is_class and (self._kept_fields or self._hints_read)
        if kept:
            target = self._target(one.target)
            named = Node("field name", text=target.text) if target.kind == "member" else target
            parts = (named, self._expression(one.value) if one.value else NOTHING)
            return [Node("field", parts, ast.unparse(one.annotation))]
        if one.value is None:
            return [Node("pass")]
        return [assign(self._target(one.target), self._expression(one.value))]

    def _with(self, one: ast.With | ast.AsyncWith) -> Node:
        inner = self._block(one.body)
        for item in reversed(one.items):
            target = self._target(item.optional_vars) if item.optional_vars else NOTHING
            text = "async" if isinstance(one, ast.AsyncWith) else ""
            inner = block(Node("with", (self._expression(item.context_expr), target, inner), text))
        return inner.parts[0]

    def _try(self, one: ast.Try | ast.TryStar) -> Node:
        handlers = []
        for each in one.handlers:
            kind = self._expression(each.type) if each.type else NOTHING
            binding = self._name(each.name).binding if each.name else None
            handlers.append(Node("handler", (kind, self._block(each.body)), binding=binding))
        parts = (
            self._block(one.body),
            Node("handlers", tuple(handlers)),
            self._block(one.orelse),
            self._block(one.finalbody),
        )
        return Node("try", parts, type(one).__name__)

    def _import(self, one: ast.Import | ast.ImportFrom) -> list[Node]:
        found = []
        for each in one.names:
            word = each.asname or each.name.split(".")[0]
            is_ref = word in self._scope.refs and not self._scope.is_class
            origin = f"{'.' * one.level}{one.module or ''}" if isinstance(one, ast.ImportFrom) else ""
            root = (origin or each.name).split(".")[0]
            if is_ref and root in sys.stdlib_module_names:
                continue
            text = f"{origin}:{each.name}"
            if not is_ref:
                text += f" as {each.asname or ''}"
                found.append(Node("import", (), text, self._name(word).binding))
            else:
                found.append(Node("import", (), text))
        return found

    def _definition(self, one: ast.FunctionDef | ast.AsyncFunctionDef) -> Node:
        target = self._name(one.name)
        private = is_private(one.name) or (self._scope.depth > 0 and not self._scope.is_class)
        if not private and self._scope.depth == 0:
            self._note_types(one)
        function = self._function(one, private=private)
        if target.kind == "member":
            return Node("method", (function,), one.name)
        return Node("define", (function,), binding=target.binding)

    def _note_types(self, one: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments = one.args
        path = ".".join([*self._path, one.name])
        for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if each.annotation:
                self._types[f"{path}({each.arg})"] = _hint(each.annotation)
        if one.returns:
            self._types[f"{path}()"] = _hint(one.returns)

    def _function(self, one: Function, *, private: bool) -> Node:
        decorators = [] if isinstance(one, ast.Lambda) else one.decorator_list
        plain = all(_dotted(each) in PLAIN_DECORATORS or _is_setter(each) for each in decorators)
        shown = tuple(self._expression(each) for each in decorators)
        outer, scope = self._scope, Scope(self._scope, depth=self._scope.depth + 1)
        arguments = one.args
        defaults = [self._expression(each) if each else None for each in _defaults(arguments)]
        found = [] if isinstance(one, ast.Lambda) else [each for s in one.body for each in _with_inside(s)]
        if isinstance(one, ast.Lambda):
            found = list(_with_inside(one.body))
        fixed = names.looks_at_names(found)
        elsewhere = names.declared(found, ast.Global) | names.declared(found, ast.Nonlocal)
        words = [word for word in names.bound(iter(found)) if word not in elsewhere]
        given = _arguments(arguments)
        for word in (*(each.arg for _, each in given), *words):
            scope.bind(word, fixed=fixed)
        if not isinstance(one, ast.Lambda):
            scope.refs = names.imported(one, [*words, *(each.arg for _, each in given)])
        for word in names.declared(found, ast.Global):
            scope.names[word] = self._module_scope.names[word]
        parameters = []
        for (kind, each), default in zip(given, defaults, strict=True):
            hidden = kind in ("/", "*", "**") or (private and not decorators)
            text = kind if hidden else f"{kind}{each.arg}"
            if each.annotation and (self._hints_read or not plain or not self._is_there(each.annotation)):
                text += f": {ast.unparse(each.annotation)}"
            parameters.append(Node("param", (default,) if default else (), text, scope.names[each.arg]))
        self._scope = scope
        kept_path, self._path = self._path, [*self._path, getattr(one, "name", "")]
        if isinstance(one, ast.Lambda):
            body = [Node("return", (self._expression(one.body),))]
        else:
            body = self._body(one.body, plain=plain)
        self._scope, self._path = outer, kept_path
        flags = "async" if isinstance(one, ast.AsyncFunctionDef) else ""
        flags += " generator" if any(isinstance(each, ast.Yield | ast.YieldFrom) for each in found) else ""
        if (
            not isinstance(one, ast.Lambda)
            and one.returns
            and (self._hints_read or not plain or not self._is_there(one.returns))
        ):
            flags += f" -> {ast.unparse(one.returns)}"
        parts = (Node("params", tuple(parameters)), block(*body), Node("decorators", shown))
        return Node("function", parts, flags.strip())

    @property
    def _module_scope(self) -> Scope:
        return self._scope.module

    def _is_there(self, hint: ast.expr) -> bool:
        """Whether a hint can be evaluated where it stands, or need not be."""
        if self._lazy_hints:
            return True
        for one in ast.walk(hint):
            if isinstance(one, ast.Call | ast.NamedExpr | ast.Await):
                return False
            if isinstance(one, ast.Name) and not self._is_bound(one):
                return False
        return True

    def _is_bound(self, one: ast.Name) -> bool:
        if self._scope.find(one.id)[1] is None:
            return one.id in names.BUILTINS
        return self._first_lines.get(one.id, 0) <= one.lineno

    def _class(self, one: ast.ClassDef) -> Node:
        target = self._name(one.name)
        heritage = [self._expression(each) for each in one.bases if _dotted(each) != "object"]
        heritage += [
            Node("kwarg", (self._expression(each.value),), each.arg or "**") for each in one.keywords
        ]
        decorators = tuple(self._expression(each) for each in one.decorator_list)
        outer, scope = self._scope, Scope(self._scope, is_class=True, depth=self._scope.depth)
        for statement in one.body:
            for word in names.bound(iter(_with_inside(statement))):
                scope.bind(word, fixed=True)
        kept = getattr(self, "_kept_fields", False)
        self._kept_fields = bool(one.bases or one.keywords or one.decorator_list)
        self._scope = scope
        kept_path, self._path = self._path, [*self._path, one.name]
        body = block(*self._body(one.body, plain=not one.decorator_list))
        self._scope, self._kept_fields, self._path = outer, kept, kept_path
        parts = (Node("heritage", tuple(heritage)), Node("decorators", decorators), body)
        if target.kind == "member":
            return Node("method", (Node("class", parts),), one.name)
        return Node("class", parts, binding=target.binding)


def _with_inside(node: ast.stmt | ast.expr) -> list[ast.AST]:
    whole: ast.AST = ast.Expr(node) if isinstance(node, ast.expr) else ast.Module([node], [])
    return list(names.inside(whole))


def _first_lines(module: ast.Module) -> dict[str, int]:
    """Where each name of a module is bound first; never, if only for whoever checks types."""
    found: dict[str, int] = {}
    for one in module.body:
        typing_only = isinstance(one, ast.If) and "TYPE_CHECKING" in ast.unparse(one.test)
        for word in names.bound(iter(_with_inside(one))):
            line = sys.maxsize if typing_only else one.lineno
            found[word] = min(found.get(word, line), line)
    return found


def _arguments(arguments: ast.arguments) -> list[tuple[str, ast.arg]]:
    found = [("/", each) for each in arguments.posonlyargs]
    found += [("", each) for each in arguments.args]
    found += [("*", arguments.vararg)] if arguments.vararg else []
    found += [("only ", each) for each in arguments.kwonlyargs]
    return found + ([("**", arguments.kwarg)] if arguments.kwarg else [])


def _defaults(arguments: ast.arguments) -> list[ast.expr | None]:
    plain = len(arguments.posonlyargs) + len(arguments.args)
    found: list[ast.expr | None] = [None] * (plain - len(arguments.defaults)) + list(arguments.defaults)
    found += [None] if arguments.vararg else []
    return found + list(arguments.kw_defaults) + ([None] if arguments.kwarg else [])


def _dotted(node: ast.expr) -> str:
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def _is_setter(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("setter", "getter", "deleter")


def _is_text(one: ast.stmt) -> bool:
    return (
        isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str)
    )


def _hint(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
