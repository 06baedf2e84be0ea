"""Syntax errors of a text: Python, JSON, TOML and YAML in this process, other languages in a child.

The child is this module: `python -m handrail.tools.files.syntax_check .ts`, with the text on standard input.
A grammar is C code: a parse that hangs cannot be stopped from inside the process.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

MAX_PROBLEMS = 5
GRAMMARS = {
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs", ".tsx"), ("tree_sitter_typescript", "language_tsx")),
    **dict.fromkeys((".ts", ".mts", ".cts"), ("tree_sitter_typescript", "language_typescript")),
    ".go": ("tree_sitter_go", "language"),
    ".py": ("tree_sitter_python", "language"),
}
NEWER_PYTHON_ERRORS = (
    *("invalid syntax", "f-string", "expected '('", "multiple exception types", "unterminated string"),
)
"""Errors that this Python reports for syntax of a later one."""
MEMORY_LIMIT = 1_000_000_000
MAX_YAML_DEPTH = 100
"""The parser takes time quadratic in the depth of `{` and `[`."""
TEMPLATE_MARKS = ("{{", "{%", "<%")
"""A file of a template language, which becomes YAML later."""
JSON_WITH_COMMENTS = ("tsconfig", "jsconfig", "devcontainer", ".eslintrc", "settings.json", "launch.json")
"""JSON files, by the start of their names, that may have comments."""


class Problem(NamedTuple):
    line: int  # counted from 1; 0 if unknown
    text: str


def python_problem(text: str) -> tuple[Problem | None, bool]:
    """The syntax error of a module, and whether a later Python might accept it."""
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        problem = Problem(error.lineno or 0, f"{type(error).__name__}: {error.msg}")
        return problem, type(error) is SyntaxError and error.msg.startswith(NEWER_PYTHON_ERRORS)
    except (ValueError, MemoryError, RecursionError):
        pass  # nested too deeply for this parser, which may be fine
    return None, False


def data_problem(name: str, text: str) -> Problem | None:
    """The syntax error of a JSON, TOML or YAML file; None for other files."""
    import json
    import tomllib

    if name.endswith((".yaml", ".yml")):
        return _yaml_problem(text)

    try:
        if name.endswith(".toml"):
            tomllib.loads(text)
        elif name.endswith(".json") and not name.startswith(JSON_WITH_COMMENTS):
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


def _yaml_problem(text: str) -> Problem | None:
    import yaml  # type: ignore[import-untyped]

    if any(mark in text for mark in TEMPLATE_MARKS):
        return None
    try:
        depth = 0
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_YAML_DEPTH:
                return None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        return Problem(line, f"YAML: {error.problem}")
    except (yaml.YAMLError, RecursionError) as error:
        return Problem(0, f"YAML: {str(error).splitlines()[0]}")
    return None


def grammar_problems(ending: str, data: bytes) -> list[Problem]:
    """The syntax errors of a text, by its language's grammar."""
    from tree_sitter import Language, Parser

    module, function = GRAMMARS[ending]
    parser = Parser(Language(getattr(import_module(module), function)()))
    found: list[Problem] = []
    for node in _error_nodes(parser.parse(data).root_node):
        if node.is_missing:
            message = f"syntax error: {node.type!r} is missing"
        else:
            text = data[node.start_byte : node.end_byte].decode(errors="replace").split("\n")[0].strip()
            message = f"syntax error near {text[:60]!r}"
        problem = Problem(node.start_point[0] + 1, message)
        if problem not in found:
            found.append(problem)
        if len(found) == MAX_PROBLEMS:
            break
    return found


def _error_nodes(root: "Node") -> "Iterator[Node]":
    """The outermost error nodes, in the order of the text."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            yield node
        elif node.has_error:
            waiting += reversed(node.children)


def main() -> None:
    """Print the problems of standard input, one a line: line number and message."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    for problem in grammar_problems(sys.argv[1], sys.stdin.buffer.read()):
        sys.stdout.write(f"{problem.line} {problem.text}\n")


if __name__ == "__main__":
    main()
