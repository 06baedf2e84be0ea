"""Expressions of Python as trees."""

import ast
from abc import ABC, abstractmethod

from handrail.changes.mutation import python_names as names
from handrail.changes.mutation.python_names import Function, Scope
from handrail.changes.mutation.strings import as_fstring, folded, joined
from handrail.changes.mutation.tree import NOTHING, Node, const

OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitOr: "|", ast.BitXor: "^", ast.BitAnd: "&", ast.MatMult: "@",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~",
}  # fmt: skip


class Expressions(ABC):
    """Reads expressions; what is made of statements is for whoever has them."""

    _scope: Scope
    _path: list[str]

    @abstractmethod
    def _function(self, one: Function, *, private: bool) -> Node: ...

    @abstractmethod
    def _statement(self, one: ast.stmt) -> list[Node]: ...

    def _name(self, word: str) -> Node:
        kind, found = self._scope.find(word)
        if isinstance(found, str):
            return Node(kind, text=found)
        return Node("name", text="" if found else word, binding=found)

    def _target(self, node: ast.expr) -> Node:
        if isinstance(node, ast.Tuple | ast.List):
            return Node("tuple", tuple(self._target(each) for each in node.elts))
        if isinstance(node, ast.Starred):
            return Node("spread", (self._target(node.value),))
        return self._expression(node)

    def _expression(self, node: ast.expr) -> Node:
        return self._operation(node) or self._value(node) or self._other(node)

    def _operation(self, node: ast.expr) -> Node | None:
        match node:
            case ast.Attribute(value=value, attr=word):
                inner = self._expression(value)
                if inner.kind == "ref":
                    return Node("ref", text=f"{inner.text}.{word}")
                return Node("attr", (inner,), word)
            case ast.Subscript(value=value, slice=index):
                return Node("index", (self._expression(value), self._expression(index)))
            case ast.Call():
                return self._call(node)
            case ast.BinOp(left=left, op=op, right=right):
                parts = (self._expression(left), self._expression(right))
                return folded(Node("binop", parts, OPERATORS[type(op)]))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Node("not", (self._expression(operand),))
            case ast.UnaryOp(op=op, operand=operand):
                return folded(Node("unary", (self._expression(operand),), OPERATORS[type(op)]))
            case ast.BoolOp(op=op, values=values):
                kind = "and" if isinstance(op, ast.And) else "or"
                return Node(kind, tuple(map(self._expression, values)))
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return Node("ifexp", tuple(map(self._expression, (test, body, orelse))))
            case ast.Await(value=value):
                return Node("await", (self._expression(value),))
            case ast.NamedExpr(target=target, value=value):
                return Node("named", (self._expression(target), self._expression(value)))
            case ast.Yield(value=value):
                return Node("yield", (self._expression(value),) if value else ())
            case _:
                return None

    def _value(self, node: ast.expr) -> Node | None:
        match node:
            case ast.Constant(value=value):
                return const(repr(value))
            case ast.Name(id=word):
                return self._name(word)
            case ast.Tuple(elts=elts) | ast.List(elts=elts) | ast.Set(elts=elts):
                return Node(type(node).__name__.lower(), tuple(map(self._expression, elts)))
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                return Node("dict", tuple(self._pair(key, value) for key, value in pairs))
            case ast.Slice(lower=lower, upper=upper, step=step):
                return Node(
                    "slice", tuple(self._expression(e) if e else NOTHING for e in (lower, upper, step))
                )
            case ast.Starred(value=inner):
                return Node("spread", (self._expression(inner),))
            case ast.Lambda():
                return self._function(node, private=False)
            case ast.JoinedStr(values=values):
                return joined([self._expression(each) for each in values])
            case ast.FormattedValue(value=inner, conversion=conversion, format_spec=spec):
                shown = (self._expression(inner), *((self._expression(spec),) if spec else ()))
                return Node("format", shown, chr(conversion) if conversion > 0 else "")
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node)
            case _:
                return None

    def _pair(self, key: ast.expr | None, value: ast.expr) -> Node:
        if key is None:
            return Node("spread", (self._expression(value),))
        return Node("pair", (self._expression(key), self._expression(value)))

    def _compare(self, node: ast.Compare) -> Node:
        sides = [self._expression(each) for each in (node.left, *node.comparators)]
        signs = [OPERATORS[type(op)] for op in node.ops]
        if len(signs) == 1:
            return Node("compare", tuple(sides), signs[0])
        if any(side.kind not in ("name", "const") for side in sides[1:-1]):
            return Node("chained", tuple(sides), " ".join(signs))
        pairs = zip(sides, sides[1:], signs, strict=False)
        return Node("and", tuple(Node("compare", (left, right), sign) for left, right, sign in pairs))

    def _call(self, node: ast.Call) -> Node:
        function = self._expression(node.func)
        arguments = [self._expression(each) for each in node.args]
        keywords = [
            Node("kwarg", (self._expression(each.value),), each.arg or "**") for each in node.keywords
        ]
        call = Node("call", (function, *arguments, *keywords))
        if function.kind == "name" and function.binding is None:
            if function.text in ("list", "dict", "tuple") and not call.parts[1:]:
                return Node(function.text)
            if function.text == "super" and len(arguments) == 2:
                first = next(iter(self._scope.names.values()), None)
                if (
                    first
                    and arguments[1].binding is first
                    and self._path[-2:-1] == [getattr(node.args[0], "id", "")]
                ):
                    return Node("call", (function,))
        if function.text == "typing.cast" and len(arguments) == 2:
            return arguments[1]
        return as_fstring(call)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Node:
        outer, scope = self._scope, Scope(self._scope, depth=self._scope.depth + 1)
        first = self._expression(node.generators[0].iter)
        for clause in node.generators:
            for word in names.bound(ast.walk(clause.target)):
                scope.bind(word, fixed=False)
        self._scope = scope
        clauses = []
        for number, clause in enumerate(node.generators):
            source = first if number == 0 else self._expression(clause.iter)
            tests = tuple(self._expression(each) for each in clause.ifs)
            text = "async" if clause.is_async else ""
            clauses.append(Node("clause", (self._target(clause.target), source, *tests), text))
        if isinstance(node, ast.DictComp):
            item = Node("pair", (self._expression(node.key), self._expression(node.value)))
        else:
            item = self._expression(node.elt)
        self._scope = outer
        kind = type(node).__name__.removesuffix("Comp").removesuffix("Exp").lower()
        return Node("comp", (item, *clauses), kind)

    def _other(self, one: ast.AST) -> Node:
        """What has no form of its own: its kind, its words and its parts."""
        parts: list[Node] = []
        words: list[str] = [type(one).__name__]
        for field, value in ast.iter_fields(one):
            values = value if isinstance(value, list) else [value]
            for each in values:
                if isinstance(each, ast.expr):
                    parts.append(self._expression(each))
                elif isinstance(each, ast.stmt):
                    parts += self._statement(each)
                elif isinstance(each, ast.AST):
                    parts.append(self._other(each))
                elif (
                    field == "name" and isinstance(each, str) and isinstance(one, ast.MatchAs | ast.MatchStar)
                ):
                    parts.append(Node("bind", (self._name(each),)))
                elif field not in ("kind", "type_comment"):
                    words.append(f"{field}={each!r}")
            if isinstance(value, list):
                words.append(f"{field}:{len(value)}")
        return Node("other", tuple(parts), " ".join(words))
