"""Reads a Python file into the tree that is compared.

What may differ: formatting and comments; the order of imports from the standard library; the order of
definitions that run no code; names of local variables; private names of modules and of classes without bases.
Docstrings, annotations and parameter names are code.
"""

import ast
import builtins
import re
import symtable
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from handrail.changes.mutation import Binding, Token

Function = ast.FunctionDef | ast.AsyncFunctionDef
Unit = dict[str, Binding] | None
"""The local words of a function that is in no other, with all that is inside; None outside of functions."""
NAME_FIELDS = "Name.id FunctionDef.name AsyncFunctionDef.name ClassDef.name arg.arg ExceptHandler.name "
NAME_FIELDS += "Global.names Nonlocal.names MatchAs.name MatchStar.name MatchMapping.rest"
READERS = re.compile(
    "eval|exec|locals|globals|vars|dir|breakpoint|builtins|inspect|pickle|shelve|marshal|copyreg|dill|cloudpickle"
    "|joblib|jsonpickle|ctypes|gc|attrgetter|methodcaller|import_module|importlib|runpy|pdb|dis|symtable|settrace"
    "|setprofile|modules|_getframe|currentframe|f_locals|f_globals|getmembers|__(import|builtins|dict|qualname"
    "|code|globals|closure|annotations|getattr|getattribute|setattr|delattr|subclasses|set_name|reduce|reduce_ex"
    "|getstate|setstate)__"
)
"""What can read names as text while the program runs."""
BY_TEXT = ("getattr", "setattr", "hasattr", "delattr")
PROTOCOL = ("_asdict", "_replace", "_make", "_fields", "_field_defaults")  # called by others
GENERICS = {"list", "dict", "tuple", "set", "frozenset", "type"}
HINTS = (ast.Name, ast.Constant, ast.Tuple, ast.BinOp, ast.BitOr, ast.Load)
HARMLESS = sys.stdlib_module_names - {"__future__", "this", "antigravity", "site", "test", "idlelib"}
NAMED = re.compile("(Async)?FunctionDef|Lambda|ClassDef|GeneratorExp|Yield(From)?")
"""What shows the name of the function that it is in."""
IN_STRING = "it is also written in a string"
METADATA = re.compile(r"^# /// \w+$.*?^# ///$", re.MULTILINE | re.DOTALL)


def read_python(text: str, kept: set[str], names: "PrivateNames") -> list[Token]:
    """The tree of a file; raises SyntaxError or ValueError."""
    file = _File(text, kept, names)
    names.files.append(file)
    magic = [line for line in text.splitlines()[:2] if re.match(r"#!|[ \t\f]*#.*coding[:=]", line)]
    return [*(Token(1, each) for each in (*magic, *METADATA.findall(text))), *file.ordered(file.body)]


class PrivateNames:
    """Private names of modules and classes: one binding a word, for all files of one side of a change."""

    def __init__(self, stems: set[str]) -> None:
        self.files: list[_File] = []
        self.moved: set[str] = set()
        self._stems = stems
        self._bindings: dict[str, Binding] = {}

    def find(self, word: str) -> Binding:
        return self._bindings.setdefault(word, Binding(word, "private", partial(self._problem, word)))

    def _problem(self, word: str) -> str:
        """Why a word must stay; empty where only the changed files can see it."""
        return next((why for file in self.files for why in file.objections(word, self._stems)), "")


class _File:
    def __init__(self, text: str, kept: set[str], names: PrivateNames) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
            compile(text, "<file>", "exec", dont_inherit=True)
            table = symtable.symtable(text, "<file>", "exec")
        self.body = tree.body
        self.nodes = list(ast.walk(tree))
        self.classes = [one for one in self.nodes if isinstance(one, ast.ClassDef)]
        self._kept = kept
        self._names = names
        self._public: dict[str, Binding] = {}
        self._line = 1
        self._tables: dict[tuple[str, int], list[symtable.SymbolTable]] = {}
        for each in _tables([table]):
            self._tables.setdefault((each.get_name(), each.get_lineno()), []).append(each)
        self._bound = {each.get_name() for each in table.get_symbols() if each.is_local()}
        future = [one for one in tree.body if isinstance(one, ast.ImportFrom) and one.module == "__future__"]
        self._is_lazy = any(each.name == "annotations" for one in future for each in one.names)
        alone = {id(one.value) for one in self.nodes if isinstance(one, ast.Expr)}
        self._docstrings = {word for one in self.nodes if id(one) in alone for word in _written(one)}
        self._strings = {word for one in self.nodes if id(one) not in alone for word in _written(one)}
        self._readers = self._find_readers()

    def _binding(self, word: str, unit: Unit) -> Binding:
        if unit and word in unit:
            return unit[word]
        if _is_private(word):
            return self._names.find(word)
        return self._public.setdefault(word, Binding(word, "public", lambda: "others can see it"))

    def _unit(self, node: Function) -> dict[str, Binding]:
        """The words that are local wherever they stand in a function."""
        tables = list(_tables(self._tables[node.name, node.lineno]))
        symbols = [(one.get_name(), one, each.get_type()) for each in tables for one in each.get_symbols()]
        seen = {word for word, one, kind in symbols if kind == "class" and one.is_local()}
        seen |= {word for word, one, _ in symbols if one.is_global()}
        fixed = {word for word, one, _ in symbols if one.is_parameter() or one.is_imported()}
        words = {word for word, _, _ in symbols} - seen
        return {word: Binding(word, "local", partial(self._problem, word, node, fixed)) for word in words}

    def _problem(self, word: str, unit: Function, fixed: set[str]) -> str:
        """Why a local name must stay; empty where nobody outside of its function can see it."""
        if word in fixed or "__" in word:
            return "it is a parameter, an import or special"
        written = IN_STRING if word in self._strings else ""
        return self._readers or written or next(_carried(list(ast.walk(unit)), word), "")

    def objections(self, word: str, stems: set[str]) -> Iterator[str]:
        """Why a private name must stay, as far as this file can tell."""
        if self._readers or word in self._strings | self._docstrings:
            yield self._readers or IN_STRING
        methods = [each for owner in self.classes for each in owner.body if isinstance(each, Function)]
        selves = [id(each.args.args[0]) for each in methods if _gets_self(each)]
        others = [one for one in self.nodes if "self" in _words(one) and id(one) not in selves]
        is_self_known = all(isinstance(getattr(one, "ctx", None), ast.Load) for one in others)
        for owner in self.classes:
            uses = [one for one in ast.walk(owner) if isinstance(one, ast.Attribute) and one.attr == word]
            named = [each for each in owner.body if isinstance(each, Function) and each.name == word]
            rest = [one for each in owner.body if each not in methods for one in ast.walk(each)]
            is_set = named or any(isinstance(one.ctx, ast.Store) for one in uses)
            is_odd = bool(named or uses) and not (is_set and _is_plain(owner))
            if is_odd or any(word in _words(one) for one in rest):
                yield f"others may know it from {owner.name}"
        for one in self.nodes:
            is_name = isinstance(one, ast.Name) and word in self._bound
            is_member = isinstance(one, ast.Attribute) and _identifier(one.value) == "self" and is_self_known
            is_known = is_name or is_member or isinstance(one, ast.alias | Function | ast.Global)
            if word in _words(one) and not is_known:
                yield "others may know it"
            if isinstance(one, ast.AnnAssign) and _identifier(one.target) == word:
                yield "annotations have it"
            if isinstance(one, ast.ImportFrom) and _imported(one)[0].rpartition(".")[2] not in stems:
                yield from ("it comes from another module" for each in one.names if each.name == word)
        yield from _carried(self.nodes, word)

    def _find_readers(self) -> str:
        """Why names may be read as text, or mean something that the check does not know; else empty."""
        calls = [one for one in self.nodes if isinstance(one, ast.Call) and len(one.args) > 1]
        literal = [id(one.func) for one in calls if isinstance(one.args[1], ast.Constant)]
        for one in self.nodes:
            for word in (part for dotted in _words(one) for part in dotted.split(".")):
                is_text = word in BY_TEXT and id(one) not in literal
                is_text = is_text or (word == "__name__" and isinstance(one, ast.Attribute))
                if is_text or READERS.fullmatch(word):
                    return f"{word} can read names as text"
                if word == "*" or (word.startswith("__") and not word.endswith("__")):
                    return f"what {word} means depends on the module or class"
            if type(one).__name__ in ("TypeAlias", "TypeVar", "ParamSpec", "TypeVarTuple"):
                return "the file has type parameters"
        unusual = self._bound & {"object", "property", *GENERICS}
        return f"{unusual.pop()} is not the usual one" if unusual else ""

    def _tokens(self, one: object, unit: Unit, *, is_name: bool = False) -> list[Token]:
        """A node, a list or a value; a function or class brings what is around it for its head."""
        self._line = line = getattr(one, "lineno", self._line)
        if isinstance(one, str) and is_name:
            return [Token(line, "", self._binding(one, unit))]
        if isinstance(one, list):
            inside = [token for each in one for token in self._tokens(each, unit, is_name=is_name)]
            return [Token(line, f"list of {len(one)}"), *inside]
        if isinstance(one, ast.Import | ast.ImportFrom):
            return self._import(one, unit)
        if not isinstance(one, ast.AST) or isinstance(one, ast.Constant):
            value = getattr(one, "value", one)
            return [Token(line, f"{type(one).__name__} {type(value).__name__} {value!r}")]
        kind = type(one).__name__
        found = [Token(line, kind)]
        inner = unit
        if isinstance(one, Function) and unit is None:
            inner = self._unit(one)
            given = [each.arg for each in ast.walk(one.args) if isinstance(each, ast.arg)]
            found += [Token(line, "", self._binding(each, inner)) for each in given]
        for name, value in ast.iter_fields(one):
            if isinstance(one, ast.ClassDef) and name == "body" and unit is None and _is_plain(one):
                found += self.ordered(one.body)
            elif isinstance(one, ast.Attribute) and name == "attr" and _is_private(one.attr):
                found.append(Token(line, "", self._names.find(one.attr)))
            else:
                is_name = f"{kind}.{name}" in NAME_FIELDS
                found += self._tokens(value, inner if name == "body" else unit, is_name=is_name)
        return found

    def _import(self, one: ast.Import | ast.ImportFrom, unit: Unit) -> list[Token]:
        module = _imported(one)[0] if isinstance(one, ast.ImportFrom) else ""
        names = sorted(one.names, key=lambda each: each.name) if module and _is_harmless(one) else one.names
        self._names.moved |= {module} if names != one.names else set()
        found = [Token(one.lineno, f"{type(one).__name__} {module} {len(names)}")]
        for each in names:
            outside = self._names.find(each.name) if module and _is_private(each.name) else None
            bound = self._binding(each.asname or each.name.partition(".")[0], unit)
            parts = [(outside, each.name), (None, "as" if each.asname else "by its name"), (bound, "")]
            found += [Token(one.lineno, "" if binding else text, binding) for binding, text in parts]
        return found

    def ordered(self, body: Sequence[ast.stmt]) -> list[Token]:
        """The statements of a module or class; imports and definitions that may change places are sorted."""
        found = [Token(self._line, f"{len(body)} statements")]
        while body:
            run: list[ast.stmt] = []
            read: set[str] = set()
            for one in body:
                reads = set() if _is_harmless(one) else self._reads(one)
                if reads is None or _is_harmless(one) != _is_harmless(body[0]):
                    break
                run.append(one)
                read |= reads
            run = run or [body[0]]
            body = body[len(run) :]
            bound = [word for one in run for word in _defined(one)]
            if len(set(bound)) == len(bound) and not read & set(bound) and not self._readers:
                # What both versions have goes by name, the rest comes last.
                moved = sorted(run, key=lambda one: [w if w in self._kept else "~" for w in _defined(one)])
                self._names.moved |= {each for one in run for each in _imported(one) if moved != run}
                run = moved
            found += [token for one in run for token in self._tokens(one, None)]
        return found

    def _reads(self, one: ast.stmt) -> set[str] | None:
        """What a definition reads at once; None where it may run code, or where its place matters."""
        if any(word.lower().startswith("test") for word in _defined(one)):
            return None  # tests run in the order in which they stand
        if isinstance(one, Function) and not one.decorator_list:
            args = one.args
            hints = [one.returns, *(each.annotation for each in ast.walk(args) if isinstance(each, ast.arg))]
            parts = [part for hint in hints if hint and not self._is_lazy for part in ast.walk(hint)]
            defaults = [each for each in (*args.defaults, *args.kw_defaults) if each]
            is_safe = all(map(_is_literal, defaults)) and all(map(_is_hint, parts))
            return set(map(_identifier, parts)) if is_safe else None
        if isinstance(one, ast.ClassDef) and not one.decorator_list and not one.keywords:
            found = [self._reads(each) for each in one.body]
            bases = [_identifier(each) for each in one.bases]
            is_usual = all(hasattr(builtins, word) and word not in self._bound for word in bases)
            return set().union(*(each or () for each in found)) if is_usual and None not in found else None
        if isinstance(one, ast.Assign) and all(map(_identifier, one.targets)):
            return set() if _is_literal(one.value) else None
        return None


def _is_private(word: str) -> bool:
    return word.startswith("_") and not word.endswith("_") and "__" not in word and word not in PROTOCOL


def _words(one: ast.AST) -> list[str]:
    """The identifiers of a node itself."""
    values = [] if isinstance(one, ast.Constant) else [value for _, value in ast.iter_fields(one)]
    parts = [part for value in values for part in (value if isinstance(value, list) else [value])]
    return [part for part in parts if isinstance(part, str)]


def _written(one: ast.AST) -> list[str]:
    """The words of a string."""
    value = one.value if isinstance(one, ast.Constant) else None
    return re.findall(r"\w+", str(value)) if isinstance(value, str | bytes) else []


def _identifier(one: ast.AST) -> str:
    return one.id if isinstance(one, ast.Name) else ""


def _tables(tables: Iterable[symtable.SymbolTable]) -> Iterator[symtable.SymbolTable]:
    for table in tables:
        yield table
        yield from _tables(table.get_children())


def _defined(one: ast.stmt) -> list[str]:
    if isinstance(one, ast.Import | ast.ImportFrom):
        return [each.asname or each.name.partition(".")[0] for each in one.names]
    targets = one.targets if isinstance(one, ast.Assign) else []
    return [one.name] if isinstance(one, Function | ast.ClassDef) else [_identifier(each) for each in targets]


def _imported(one: ast.stmt) -> list[str]:
    if isinstance(one, ast.ImportFrom):
        return [f"{'.' * one.level}{one.module or ''}"]
    return [each.name for each in one.names] if isinstance(one, ast.Import) else []


def _is_harmless(one: ast.stmt) -> bool:
    """Whether a statement imports modules that only define something."""
    modules = _imported(one)
    return bool(modules) and all(each.partition(".")[0] in HARMLESS for each in modules)


def _is_hint(one: ast.AST) -> bool:
    """Whether a part of an annotation only reads names."""
    return isinstance(one, HINTS) or (isinstance(one, ast.Subscript) and _identifier(one.value) in GENERICS)


def _is_literal(one: ast.expr) -> bool:
    if isinstance(one, ast.Tuple | ast.List):
        return all(map(_is_literal, one.elts))
    return isinstance(one.operand if isinstance(one, ast.UnaryOp) else one, ast.Constant)


def _is_plain(owner: ast.ClassDef) -> bool:
    """Whether nobody else has a hand in a class: no bases, no decorators, no metaclass."""
    bases = [each for each in owner.bases if _identifier(each) != "object"]
    return not (bases or owner.keywords or owner.decorator_list)


def _gets_self(method: Function) -> bool:
    """Whether the first parameter of a method is the object that it is called on."""
    words = {getattr(each, "id", "") or getattr(each, "attr", "") for each in method.decorator_list}
    is_usual = words <= {"property", "setter", "deleter"}
    return bool(method.args.args and not method.args.posonlyargs and is_usual)


def _carried(nodes: Sequence[ast.AST], word: str) -> Iterator[str]:
    """Why a name is also the name of an object that others can ask for it."""
    called = {id(one.func) for one in nodes if isinstance(one, ast.Call)}
    functions = [one for one in nodes if isinstance(one, Function) and one.name == word]
    inside = [type(each).__name__ for one in functions for part in one.body for each in ast.walk(part)]
    is_plain = all(isinstance(one, ast.FunctionDef) and not one.decorator_list for one in functions)
    if not is_plain or any(map(NAMED.fullmatch, inside)):
        yield "others can read the name of such a function"
    if any(isinstance(one, ast.ClassDef) and one.name == word for one in nodes):
        yield "a class carries its name"
    uses = (one for one in nodes if isinstance(one, ast.Name | ast.Attribute) and id(one) not in called)
    if functions and any(word in _words(one) for one in uses):
        yield "the function is passed on, and carries its name"
