"""Parts of source files that a small model can be asked about: functions, stubs, lines; and the same code."""

import ast
import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple

HEADER = re.compile(
    r"(?P<indent>[ \t]*)(?:func \([^()\n]*\) )?[^\n()=]*?(?<![\w$])(?P<name>[A-Za-z_$][\w$]*)"
    r"(?:\s*=\s*(?:async\s*)?)?\s*\([^\n]*(?:[{:]|=>)[ \t]*\n?\Z"
)
NOT_FUNCTIONS = re.compile(r"if|for|while|switch|with|catch|match|case|elif|return|except|describe|it|test")
STUB = re.compile(
    r"(?:\s|\}|#.*|//.*|\*/|/?\*.*|pass\b|\.\.\.|return\s*(?:None|null|undefined|NotImplemented)?;?\s*$"
    r"|raise NotImplemented\w*.*|throw new Error\(.*\b(?:implement|todo).*\);?"
    r"|(?:todo|unimplemented)!\(.*\);?|panic\(.*implement.*\))*",
    re.IGNORECASE | re.MULTILINE,
)
LANGUAGES = {"py": "python", "js": "javascript", "mjs": "javascript", "cjs": "javascript", "ts": "typescript"}
SOURCE = re.compile(r"\.(?:py|js|mjs|cjs|jsx|ts|mts|cts|tsx|go|rs|c|h|cpp|hpp|java|rb|sh|lua|php|swift|kt)$")


class Function(NamedTuple):
    """A function with a body of its own, in lines of its file."""

    name: str
    first: int
    """Number of its header, from 1."""
    body: int
    """Number of the first line after header and docstring."""
    last: int
    is_stub: bool = False
    owner: str = ""
    """The classes and functions around it, such as `Cart`, where they are known."""

    @property
    def full_name(self) -> str:
        return f"{self.owner}.{self.name}" if self.owner else self.name

    def holds(self, line: int) -> bool:
        return self.first <= line <= self.last


def language(path: str) -> str:
    ending = path.rpartition(".")[2]
    return LANGUAGES.get(ending, ending if ending.isalnum() and ending != path else "")


def find_functions(path: str, text: str) -> list[Function]:
    """The functions of a file, in its order; nested ones after those around them."""
    if path.endswith(".py"):
        try:
            return sorted(_python(ast.parse(text).body, text.splitlines(), ""), key=lambda each: each.first)
        except (SyntaxError, ValueError, RecursionError):
            pass  # unfinished: its lines say enough
    return list(_by_lines(text.splitlines()))


def _python(nodes: Iterable[ast.AST], lines: list[str], owner: str) -> Iterator[Function]:
    for node in nodes:
        inside = owner
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = f"{owner}.{node.name}".lstrip(".")
        yield from _python(ast.iter_child_nodes(node), lines, inside)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.body[0].lineno == node.lineno:
            continue
        opening = node.body[0]
        body = (opening.end_lineno or opening.lineno) + 1 if _is_text(opening) else opening.lineno
        last = node.end_lineno or node.lineno
        written = "\n".join(lines[body - 1 : last])
        yield Function(node.name, node.lineno, body, last, bool(STUB.fullmatch(written)), owner)


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _by_lines(lines: list[str]) -> Iterator[Function]:
    """Functions with a one-line header and an indented body."""
    for at, line in enumerate(lines):
        header = HEADER.match(line)
        if header is None or NOT_FUNCTIONS.fullmatch(header["name"]):
            continue
        end = _end(lines, at, len(header["indent"]))
        if end > at + 1:
            rest = "\n".join(lines[at + 1 : end])
            yield Function(header["name"], at + 1, at + 2, end, is_stub=bool(STUB.fullmatch(rest)))


def _end(lines: list[str], at: int, indent: int) -> int:
    """How many lines there are up to the end of the indented ones, including a closing brace."""
    last = at
    for number in range(at + 1, len(lines)):
        text = lines[number].strip()
        if text and indent_of(lines[number]) <= indent:
            closes = lines[at].rstrip().endswith("{") and text.startswith("}")
            return number + 1 if closes else last + 1
        last = number if text else last
    return last + 1


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())


def function_alone(code: str, indent: int) -> str:
    """The code up to the end of the function that it begins with: small models go on with other things."""
    lines = code.splitlines()
    return "\n".join(lines[: _end(lines, 0, indent)]) if lines else ""


def function_text(path: str, text: str, name: str) -> str:
    """The function of this full name, without decorators; empty where there is not exactly one."""
    found = [each for each in find_functions(path, text) if each.full_name == name]
    lines = text.splitlines(keepends=True)
    return "".join(lines[found[0].first - 1 : found[0].last]) if len(found) == 1 else ""


def with_function(path: str, text: str, name: str, code: str) -> str:
    """The text with the function replaced; empty where there is not exactly one, or at another indent."""
    old = function_text(path, text, name)
    if not old or not code or indent_of(old) != indent_of(code) or text.count(old) != 1:
        return ""
    return text.replace(old, code if code.endswith("\n") else f"{code}\n")


COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def text_hash(text: str) -> str:
    """A short name for a text."""
    return sha256(text.encode(errors="replace")).hexdigest()[:12]


def same_code(path: str, text: str) -> str:
    """A text that is equal for files which differ only in comments and layout."""
    if path.endswith(".py"):
        try:
            return ast.unparse(ast.parse(text))
        except (SyntaxError, ValueError, RecursionError):
            pass
        return text
    return " ".join(COMMENTS.sub("", text).split())


PIECE = re.compile(r"\s*\w+|\s*[^\w\s]")


def beginnings(line: str) -> list[str]:
    """The beginnings of a line after which it could go on in another way: after each word and sign."""
    # Models write the last blank of the indent together with the first word.
    indent = line[: indent_of(line)].removesuffix(" ")
    return [indent, *(line[: found.end()] for found in PIECE.finditer(line.rstrip()))]


def without_new_comment(line: str, old: str) -> str:
    """The line without a comment that the old one did not have: small models explain themselves."""
    for mark in ("#", "//"):
        if mark not in old:
            code, found, _ = (
                line.partition(f"  {mark}") if f"  {mark}" in line else line.partition(f" {mark} ")
            )
            if found and code.count('"') % 2 == 0 and code.count("'") % 2 == 0:
                line = code
    return line.rstrip()
