"""References to what a change deleted from Python modules."""

import builtins
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from handrail.tools.reports.issue import Issue
from handrail.verification.consistency.python_imports import (
    ENDINGS,
    PythonProject,
    broken_import,
    is_test_data,
    must_be_declared,
)
from handrail.verification.consistency.python_module import Import, PythonModule

BUILTINS = frozenset(dir(builtins)) | {
    "__file__",
    "__name__",
    "__doc__",
    "__builtins__",
    "__path__",
    "__spec__",
}
MAX_SEARCHED_NAMES = 500


class Deleted(NamedTuple):
    """What a change took from one module."""

    path: str
    names: frozenset[str]
    is_file: bool
    """The whole file is gone."""

    @property
    def module(self) -> str:
        """The last part of the module's name."""
        path = PurePosixPath(self.path)
        return path.parent.name if path.stem == "__init__" else path.stem


def deleted_names(project: PythonProject, path: str, old: PythonModule) -> Deleted | None:
    """What a file no longer has; None if nothing, or if that is not certain."""
    if not project.tree.exists(path):
        return Deleted(path, old.names, is_file=True)
    space = project.namespace((path,))
    names = old.names - space.names
    return Deleted(path, names, is_file=False) if names and not space.is_open else None


def check_references(
    project: PythonProject, olds: Mapping[str, PythonModule], touched: Collection[str]
) -> Iterator[Issue]:
    """Issues of all files that still refer to what the files in `olds` had before.

    The imports of touched files are checked already.
    """
    deleted = {path: found for path, old in olds.items() if (found := deleted_names(project, path, old))}
    for path, old in olds.items():
        if path in deleted and not deleted[path].is_file:
            yield from _check_own_uses(project, path, deleted[path].names)
        yield from _check_methods(project, path, old)
    words = {name for each in deleted.values() for name in each.names | {each.module}}
    for path in _referring(project, tuple(deleted.values())) if deleted else ():
        module = project.module(path)
        if module is None or is_test_data(path):
            continue
        if path not in touched:
            for each in module.imports:
                is_about = {each.name, *each.module.split(".")} & words
                if is_about and (problem := broken_import(project, path, each)):
                    yield _issue(path, each.line, f"{problem} any more")
        yield from _check_attributes(project, path, module, deleted)
    yield from _check_entry_points(project, words)


def _referring(project: PythonProject, deleted: Sequence[Deleted]) -> Iterator[str]:
    """Files that name a deleted module, or one that lost names together with one of these."""
    modules = {each.module for each in deleted}
    gone = _words({each.module for each in deleted if each.is_file})
    lost = _words({name for each in deleted if not each.is_file for name in each.names})
    named, candidates = _words(modules), []
    for path, data in project.tree.search([b"import"], ENDINGS):
        if gone.search(data):
            yield path
        elif lost.search(data):
            candidates.append(path)
        # A module that imports everything from another one has its names too.
        if b"import *" in data and named.search(data):
            modules.add(Deleted(path, frozenset(), is_file=False).module)
    named = _words(modules)
    for path in candidates:
        data = project.tree.read(path) or b""
        if b" . import" in data or b" .. import" in data or named.search(data):
            yield path


def _words(names: Iterable[str]) -> re.Pattern[bytes]:
    found = "|".join(map(re.escape, sorted(names)[:MAX_SEARCHED_NAMES]))
    return re.compile(rb"\b(?:%b)\b" % found.encode() if found else rb"(?!)")


def _check_own_uses(project: PythonProject, path: str, names: frozenset[str]) -> Iterator[Issue]:
    """Uses of a deleted name in the module that had it."""
    module = project.module(path)
    if module is None or any(each.name == "*" for each in module.imports):
        return
    imported = {each.bound or each.module.partition(".")[0] for each in module.imports}
    gone = names - module.bound_anywhere - imported - BUILTINS
    seen: set[str] = set()
    for use in module.uses:
        name = use.dotted.partition(".")[0]
        if name in gone and name not in seen:
            seen.add(name)
            yield _issue(path, use.line, f"`{name}` was deleted, but is still used")


def _check_methods(project: PythonProject, path: str, old: PythonModule) -> Iterator[Issue]:
    """Uses of a deleted method or attribute in the class that had it."""
    module = project.module(path)
    if module is None or module.is_dynamic:
        return
    for owner, use in module.self_uses:
        had, has = old.methods.get(owner, frozenset()), module.methods.get(owner)
        if has is not None and use.dotted in had - has and not project.is_set_elsewhere(use.dotted):
            yield _issue(path, use.line, f"`{owner}.{use.dotted}` was deleted, but is still used")


def _check_attributes(
    project: PythonProject, path: str, module: PythonModule, deleted: Mapping[str, Deleted]
) -> Iterator[Issue]:
    """Uses of a deleted name as an attribute of its module."""
    modules = {prefix: each for each in module.imports for prefix in _prefixes(each) if each.guard != "maybe"}
    stems = {each.module for each in deleted.values()}
    targets: dict[str, frozenset[str]] = {}
    for prefix, each in modules.items():
        inner = f"{each.module}.{each.name}".strip(".") if each.name else each.module
        if prefix.partition(".")[0] in module.bound_anywhere or inner.rpartition(".")[2] not in stems:
            continue
        found = project.find(path, inner, each.level)
        names = [deleted[file].names for file in found.files if file in deleted] if found else []
        if names and found and not found.is_unknown:
            targets[prefix] = frozenset.union(*names)
    seen: set[str] = set()
    for use in module.uses if targets else ():
        parts = use.dotted.split(".")
        for length in range(1, len(parts)):
            prefix, name = ".".join(parts[:length]), parts[length]
            if name in targets.get(prefix, ()) and f"{prefix}.{name}" not in seen:
                seen.add(f"{prefix}.{name}")
                each = modules[prefix]
                inner = f"{each.module}.{each.name}".strip(".") if each.name else each.module
                found = project.find(path, inner, each.level)
                if found and not project.has_name(found, name) and not project.is_set_elsewhere(name):
                    yield _issue(path, use.line, f"`{prefix}.{name}` was deleted, but is still used")


def _prefixes(each: Import) -> Iterator[str]:
    """What stands for the module of an import in the file, if it imports a module."""
    if each.name == "*":
        return
    yield each.bound or each.module


def _check_entry_points(project: PythonProject, words: set[str]) -> Iterator[Issue]:
    """Scripts of the project that lead to what was deleted."""
    for path in project.tree.files:
        if PurePosixPath(path).name == "pyproject.toml":
            text = project.tree.text(path)
            for name, target in _entry_points(text):
                module, _, attribute = target.partition(":")
                found = project.find(path, module.strip(), 0)
                first = attribute.strip().partition(".")[0].partition("[")[0].strip()
                is_about = {*module.strip().split("."), first} & words
                if is_about and (found is None or (first and not project.has_name(found, first))):
                    line = text[: text.find(target)].count("\n") + 1
                    yield _issue(path, line, f"the script `{name}` leads to `{target}`, which was deleted")


def lost_dependency(project: PythonProject, module: str) -> Iterator[Issue]:
    """Imports of a module whose distribution the change removed from the dependencies."""
    missing = project.dependencies.provider(module)
    if not missing:
        return
    for path, _ in project.tree.search([module.encode()], ENDINGS):
        found = project.module(path)
        for each in found.imports if found and not is_test_data(path) else ():
            if each.module.partition(".")[0] == module and must_be_declared(project, path, each):
                message = f"`{module}` is imported, but {missing} is not a declared dependency any more"
                yield _issue(path, each.line, message)
                break


def _entry_points(text: str) -> Iterator[tuple[str, str]]:
    try:
        project: Any = tomllib.loads(text).get("project", {})
    except (tomllib.TOMLDecodeError, RecursionError):
        return
    groups = [project.get("scripts"), project.get("gui-scripts")] if isinstance(project, dict) else []
    for group in groups:
        for name, target in group.items() if isinstance(group, dict) else ():
            if isinstance(target, str) and target.partition(":")[0].strip():
                yield name, target


def _issue(path: str, line: int, message: str) -> Issue:
    fix = "Change or remove the reference, or restore what was deleted."
    return Issue("consistency", "high", message, path, line, rule="dangling-reference", fix=fix)
