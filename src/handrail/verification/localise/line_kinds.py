"""What the lines of a source file do, as far as that says how likely one is to be wrong."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

COMPUTES, CALLS, PLAIN, HEADER = 3, 2, 1, 0
"""A line that compares or calculates; one that only calls; any other; the head of a function."""
NO_LINES: Mapping[str, frozenset[int]] = {}


class LineKinds(NamedTuple):
    weights: Mapping[int, int]
    """Of lines with code; others cannot be wrong."""
    constants: Mapping[str, frozenset[int]] = NO_LINES
    """Lines that give a name a value when the file is loaded, by that name."""
    reads: Mapping[str, frozenset[int]] = NO_LINES
    """Lines that use a name."""
    imports: tuple[str, ...] = ()
    """Files that it may import from, relative to the workspace; not all of them exist."""


NOTHING_KNOWN = LineKinds({})
ReadKinds = Callable[[str], LineKinds]


def line_kinds(path: str, text: str) -> LineKinds:
    """What the lines of a file do; nothing for a language that is not known."""
    if path.endswith(".py"):
        try:
            return _python(path, ast.parse(text))
        except (SyntaxError, ValueError, RecursionError):  # of another version of Python, perhaps
            return NOTHING_KNOWN
    if path.endswith((".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx")):
        return _javascript(path, text)
    return NOTHING_KNOWN


COMPUTING = (ast.BinOp, ast.BoolOp, ast.Compare, ast.UnaryOp, ast.AugAssign, ast.Slice, ast.IfExp)
STATEMENTS_WITHOUT_WORK = (ast.Import, ast.ImportFrom, ast.Pass, ast.Global, ast.Nonlocal)


def _python(path: str, tree: ast.Module) -> LineKinds:
    weights: dict[int, int] = {}
    reads: dict[str, set[int]] = {}
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, STATEMENTS_WITHOUT_WORK) or (isinstance(node, ast.Expr) and _is_text(node.value)):
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            weights.setdefault(line, HEADER)
        elif isinstance(node, COMPUTING) or (isinstance(node, ast.Constant) and _is_number(node.value)):
            weights[line] = COMPUTES
        elif isinstance(node, ast.Call | ast.Subscript | ast.comprehension):
            weights[line] = max(weights.get(line, 0), CALLS)
        elif isinstance(node, ast.stmt):
            weights[line] = max(weights.get(line, 0), PLAIN)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            reads.setdefault(node.id, set()).add(line)
        elif isinstance(node, ast.Attribute):
            reads.setdefault(node.attr, set()).add(line)
    constants: dict[str, set[int]] = {}
    for name, statement in _loaded_values(tree.body):
        lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
        constants.setdefault(name, set()).update(line for line in lines if line in weights or len(lines) > 1)
        for line in lines:
            weights.setdefault(line, PLAIN)
    return LineKinds(weights, _frozen(constants), _frozen(reads), tuple(_python_imports(path, tree)))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _loaded_values(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Names that get a value in the body of a module or class."""
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield from _loaded_values(statement.body)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets = [statement.target]
        for target in targets:
            for node in ast.walk(target):
                if isinstance(node, ast.Name):
                    yield node.id, statement


def _python_imports(path: str, tree: ast.Module) -> Iterator[str]:
    here = PurePosixPath(path).parent
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [f"{node.module or ''}.{alias.name}".strip(".") for alias in node.names]
            modules += [node.module] if node.module else []
        else:
            continue
        level = node.level if isinstance(node, ast.ImportFrom) else 0
        above = here.parents[level - 2] if level > 1 and level - 2 < len(here.parents) else here
        for module in modules:
            name = module.replace(".", "/")
            for folder in (above,) if level else (PurePosixPath(), PurePosixPath("src"), here):
                yield str(folder / f"{name}.py")


JS_COMMENT = re.compile(r"^\s*(//|/\*|\*)")
JS_CODE = re.compile(r"[\w$]")
JS_PLAIN = re.compile(
    r"^\s*(\}?\s*(else|try|finally)\s*\{?|import\b.*|export\s*\{.*|['\"]use strict['\"];?)\s*$"
)
JS_HEADER = re.compile(
    r"^\s*(export\s+)?(default\s+)?(async\s+)?(function\b|class\b|(static\s+)?[\w$#]+\s*\([^()]*\)\s*\{\s*$)"
)
JS_COMPUTES = re.compile(r"[<>]=?|[=!]==?|&&|\|\||\?\?|[-+*/%]|\?.*:|\b\d")
JS_STRINGS = re.compile(r"'(\\.|[^'\\])*'|\"(\\.|[^\"\\])*\"|=>|//.*$")
JS_CONSTANT = re.compile(
    r"^(?:export\s+)?(?:const|let|var)\s+([\w$]+)\s*=(?!.*(=>|\bfunction\b|\brequire\())"
)
JS_IMPORT = re.compile(r"""(?:from\s+|require\(\s*|import\s+)['"](\.[^'"]+)['"]""")
JS_ENDINGS = ("", ".js", ".mjs", ".cjs", ".ts", "/index.js")


def _javascript(path: str, text: str) -> LineKinds:
    """By patterns: a parser would cost more than the order of some lines is worth."""
    weights: dict[int, int] = {}
    constants: dict[str, set[int]] = {}
    reads: dict[str, set[int]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        code = JS_STRINGS.sub("", line)
        if JS_COMMENT.match(line) or not JS_CODE.search(code) or JS_PLAIN.match(line):
            continue
        if JS_HEADER.match(line) and not re.match(r"\s*(if|for|while|switch|catch|return)\b", line):
            weights[number] = HEADER
        elif JS_COMPUTES.search(code):
            weights[number] = COMPUTES
        else:
            weights[number] = CALLS if "(" in code else PLAIN
        if found := JS_CONSTANT.match(line):
            constants.setdefault(found[1], set()).add(number)
        for name in re.findall(r"[\w$]+", code):
            reads.setdefault(name, set()).add(number)
    here = PurePosixPath(path).parent
    imports = [_normal(here / found) + end for found in JS_IMPORT.findall(text) for end in JS_ENDINGS]
    return LineKinds(weights, _frozen(constants), _frozen(reads), tuple(imports))


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _frozen(found: Mapping[str, set[int]]) -> dict[str, frozenset[int]]:
    return {name: frozenset(lines) for name, lines in found.items()}
