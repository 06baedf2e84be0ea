"""Syntax errors of a text: Python, JSON and TOML read in this process, other languages in a child.

The child is this module: `python -m handrail.tools.syntax .ts`, the text on standard input. A grammar is C
code, and a parse that goes astray cannot be stopped from inside.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

MOST = 5
GRAMMARS = {
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs", ".tsx"), ("tree_sitter_typescript", "language_tsx")),
    **dict.fromkeys((".ts", ".mts", ".cts"), ("tree_sitter_typescript", "language_typescript")),
    ".go": ("tree_sitter_go", "language"),
    ".py": ("tree_sitter_python", "language"),
}
NEWER = ("invalid syntax", "f-string", "expected '('", "multiple exception types", "unterminated string")
"""What this Python says of syntax that a later one has."""
MEMORY = 1_000_000_000
WITH_COMMENTS = ("tsconfig", "jsconfig", "devcontainer", ".eslintrc", "settings.json", "launch.json")
"""Names of JSON files, or their beginnings, whose readers allow comments."""


class Problem(NamedTuple):
    line: int
    """Counted from 1; 0 where none is known."""
    text: str


def python_problem(text: str) -> tuple[Problem | None, bool]:
    """What is wrong with a module, and whether a later Python might not mind."""
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        problem = Problem(error.lineno or 0, f"{type(error).__name__}: {error.msg}")
        return problem, type(error) is SyntaxError and error.msg.startswith(NEWER)
    except (ValueError, MemoryError, RecursionError):
        pass  # too deep for this reader, which need not mean anything
    return None, False


def data_problem(name: str, text: str) -> Problem | None:
    """What is wrong with a JSON or TOML file; nothing of a file that is neither."""
    import json
    import tomllib

    try:
        if name.endswith(".toml"):
            tomllib.loads(text)
        elif name.endswith(".json") and not name.startswith(WITH_COMMENTS):
            json.loads(text)
    except json.JSONDecodeError as error:
        return Problem(error.lineno, f"JSON: {error.msg}")
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).partition(" (at line ")
        line = place.partition(",")[0]
        return Problem(int(line) if line.isdecimal() else 0, f"TOML: {message}")
    except (RecursionError, ValueError):
        pass
    return None


def grammar_problems(ending: str, data: bytes) -> list[Problem]:
    """Where a text does not fit the grammar of its language."""
    from tree_sitter import Language, Parser

    module, function = GRAMMARS[ending]
    parser = Parser(Language(getattr(import_module(module), function)()))
    found: list[Problem] = []
    for node in _errors(parser.parse(data).root_node):
        if node.is_missing:
            said = f"syntax error: {node.type!r} is missing"
        else:
            text = data[node.start_byte : node.end_byte].decode(errors="replace").split("\n")[0].strip()
            said = f"syntax error near {text[:60]!r}"
        problem = Problem(node.start_point[0] + 1, said)
        if problem not in found:
            found.append(problem)
        if len(found) == MOST:
            break
    return found


def _errors(root: "Node") -> "Iterator[Node]":
    """Nodes that are errors, in the order of the text, without those inside of others."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            yield node
        elif node.has_error:
            waiting += reversed(node.children)


def main() -> None:
    """Print the problems of standard input, one a line: its number and the words."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for problem in grammar_problems(sys.argv[1], sys.stdin.buffer.read()):
        sys.stdout.write(f"{problem.line} {problem.text}\n")


if __name__ == "__main__":
    main()
