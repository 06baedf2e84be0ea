"""Reading our own source for the checks in this folder."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "handrail"


class Call(NamedTuple):
    """A call in the source: the module, its line, and the called name as written (`os.replace`)."""

    module: str
    line: int
    name: str
    node: ast.Call


def modules(*, apart_from: tuple[str, ...] = ()) -> list[Path]:
    """All modules of the package, apart from the named rooms or files."""
    left_out = [SOURCE / name for name in apart_from]
    return [
        path
        for path in sorted(SOURCE.rglob("*.py"))
        if not any(path == skipped or skipped in path.parents for skipped in left_out)
    ]


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def dotted(node: ast.expr, names: dict[str, str]) -> str:
    """`os.path.join` for such an expression, imported names spelled out; `?` for what is not a name."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value, names)}.{node.attr}"
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    return "?"


def imported_names(module: ast.Module) -> dict[str, str]:
    """{local name: full name} of everything the module imports, inside functions too."""
    names = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    names[alias.asname] = alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def calls(paths: list[Path]) -> Iterator[Call]:
    """Every call in the given modules."""
    for path in paths:
        module = tree(path)
        names = imported_names(module)
        for node in ast.walk(module):
            if isinstance(node, ast.Call):
                name = dotted(node.func, names)
                yield Call(str(path.relative_to(SOURCE)), node.lineno, name, node)
