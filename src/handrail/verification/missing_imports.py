"""Add imports of symbols that a file uses, does not define, and that one file of the project has."""

import os
import posixpath
import re
from collections.abc import Iterable, Iterator

from handrail.tools.reports.issue import Issue
from handrail.verification.consistency.javascript_imports import TESTS, JsProject
from handrail.verification.consistency.javascript_module import ENDINGS as JAVASCRIPT
from handrail.verification.consistency.javascript_module import is_javascript
from handrail.verification.consistency.python_dependencies import PythonDependencies
from handrail.verification.consistency.python_imports import ENDINGS as PYTHON
from handrail.verification.consistency.python_imports import PythonProject, is_test_data
from handrail.verification.consistency.python_module import PythonModule
from handrail.verification.consistency.python_references import BUILTINS
from handrail.verification.consistency.source_tree import SourceTree, TreeTooLarge

UNDEFINED = re.compile(
    r"Undefined name [`'\"](?P<ruff>\w+)|Name [\"'](?P<mypy>\w+)[\"'] is not defined"
    r"|Cannot find name '(?P<tsc>[\w$]+)'|['\"`](?P<other>[\w$]+)['\"`] is not defined"
)
"""How ruff, mypy, tsc, eslint and pyright report a name that nothing defines."""
MAX_NAMES = 20
HEAD = re.compile(r"#!|#.*coding[:=]|['\"]use \w+['\"]")
"""Lines that must stay first."""


class MissingImports:
    def __init__(self, tree: SourceTree, issues: Iterable[Issue] = ()) -> None:
        self._tree = tree
        self._python = PythonProject(tree, PythonDependencies(tree))
        self._javascript = JsProject(tree)
        self._reported: dict[str, set[str]] = {}
        for issue in issues:
            if found := UNDEFINED.search(issue.message):
                self._reported.setdefault(issue.path, set()).add(str(found[found.lastgroup or 0]))

    def add(self, path: str, text: str) -> tuple[str, tuple[str, ...]]:
        """The text of a file with the imports that it lacks, and the imports that were added."""
        try:
            if path.endswith(PYTHON):
                return self._add_python(path, text)
            if is_javascript(path):
                return self._add_javascript(path, text)
        except TreeTooLarge:
            pass
        return text, ()

    def _add_python(self, path: str, text: str) -> tuple[str, tuple[str, ...]]:
        module = self._python.module(path)
        if module is None:
            return text, ()
        known = module.names | module.bound_anywhere | {each.bound for each in module.imports} | BUILTINS
        names = (_undefined(module) | self._reported.get(path, set())) - known
        added = []
        for name in sorted(names)[:MAX_NAMES]:
            homes = [home for home in self._python_homes(name) if home != path]
            dotted = self._python.dotted_name(path, homes[0]) if len(homes) == 1 else ""
            if dotted and not self._imports_back(path, homes[0]):
                added.append(f"from {dotted} import {name}")
        return _insert(text, _python_line(text), added), tuple(added)

    def _python_homes(self, name: str) -> Iterator[str]:
        """Modules that define a name; those of tests do not count."""
        for path, _ in self._tree.search([name.encode()], (".py",)):
            module = self._python.module(path)
            if module and not _is_test(path) and not name.startswith("_"):
                imported = {each.bound for each in module.imports}
                if name in module.names - imported:
                    yield path

    def _imports_back(self, path: str, home: str) -> bool:
        """Whether a module imports a file, so that an import of it there would be circular."""
        module = self._python.module(home)
        for each in module.imports if module else ():
            found = self._python.find(home, each.module, each.level)
            if found and path in found.files:
                return True
        return False

    def _add_javascript(self, path: str, text: str) -> tuple[str, tuple[str, ...]]:
        module = self._javascript.module(path)
        if module is None:
            return text, ()
        imported = {name for each in module.imports for name in each.names}
        names = self._reported.get(path, set()) - module.declared - imported
        added = []
        for name in sorted(names)[:MAX_NAMES]:
            homes = [home for home in self._javascript_homes(name) if home != path]
            if len(homes) == 1:
                added.append(f'import {{ {name} }} from "{_relative(path, homes[0], text)}";')
        lines = text.splitlines(keepends=True)
        heads = next((at for at, line in enumerate(lines) if not HEAD.match(line)), len(lines))
        return _insert(text, module.imports_end or heads, added), tuple(added)

    def _javascript_homes(self, name: str) -> Iterator[str]:
        """Modules that declare and export a name."""
        for path, _ in self._tree.search([name.encode()], JAVASCRIPT):
            module = self._javascript.module(path)
            if module and not TESTS.search(path) and name in module.exports & module.declared:
                yield path


def _undefined(module: PythonModule) -> set[str]:
    """Names that a module uses and nothing in it binds."""
    if module.is_dynamic or any(each.name == "*" for each in module.imports):
        return set()
    plain = {each.module.partition(".")[0] for each in module.imports if not each.name}
    return {use.dotted.partition(".")[0] for use in module.uses} - plain


def _is_test(path: str) -> bool:
    name = posixpath.basename(path)
    return is_test_data(path) or bool(
        re.search(r"(?:^|/)tests?/|^test_|_test\.py$|^conftest", f"{path}/{name}")
    )


def _python_line(text: str) -> int:
    """The line after which an import belongs."""
    import ast

    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return 0
    last = 0
    for number, node in enumerate(body):
        is_docstring = number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_docstring and not isinstance(node, ast.Import | ast.ImportFrom):
            break
        last = node.end_lineno or last
    lines = text.splitlines()
    while last < len(lines) and not last and HEAD.match(lines[last]):
        last += 1
    return last


def _insert(text: str, after: int, added: list[str]) -> str:
    if not added:
        return text
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    if after and not lines[after - 1].endswith("\n"):
        lines[after - 1] += newline
    new = [line + newline for line in added]
    beside = [lines[at] for at in (after - 1, after) if 0 <= at < len(lines)]
    if (
        not any(re.match(r"import\b|from\b", line) for line in beside)
        and after < len(lines)
        and lines[after].strip()
    ):
        new.append(newline)
    return "".join([*lines[:after], *new, *lines[after:]])


def _relative(path: str, home: str, text: str) -> str:
    """The import path from one file to another, with an ending if the file's own imports have one."""
    stem, ending = os.path.splitext(home)
    if re.search(r"from\s+['\"]\.[^'\"]*\.[cm]?js['\"]", text):
        stem += ending.replace("ts", "js").replace("x", "")
    elif posixpath.basename(stem) == "index":
        stem = posixpath.dirname(stem)
    relative = posixpath.relpath(stem, posixpath.dirname(path) or ".")
    return relative if relative.startswith(".") else f"./{relative}"
