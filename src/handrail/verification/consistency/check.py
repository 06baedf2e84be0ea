"""Check the files that a change touched for consistency with the rest of the tree.

The first rule is that there are no false alarms: what is not certain is not an issue.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from handrail.tools.reports.issue import Issue
from handrail.verification.consistency import javascript_module, python_module
from handrail.verification.consistency.changelog_names import check_changelog_names
from handrail.verification.consistency.javascript_imports import JsProject
from handrail.verification.consistency.javascript_imports import check_imports as check_javascript
from handrail.verification.consistency.javascript_references import check_references as javascript_references
from handrail.verification.consistency.python_dependencies import PythonDependencies
from handrail.verification.consistency.python_imports import ENDINGS as PYTHON
from handrail.verification.consistency.python_imports import PythonProject
from handrail.verification.consistency.python_imports import check_imports as check_python
from handrail.verification.consistency.python_references import check_references as python_references
from handrail.verification.consistency.python_references import lost_dependency
from handrail.verification.consistency.source_tree import (
    SECONDS,
    Consistency,
    SourceTree,
    TouchedFile,
    TreeTooLarge,
    is_unreadable,
)

MAX_NEW_ANY = 3
MAX_ISSUES = 500


def check_consistency(root: Path, touched: Sequence[TouchedFile], seconds: float = SECONDS) -> Consistency:
    """Issues of the touched files, and of others that refer to what the change deleted, by path and line.

    Grammars are C code, so hostile files can crash or stall this: see `run_consistency`.
    """
    tree = SourceTree(root, seconds)
    found: dict[tuple[str, int, str], Issue] = {}
    complete = True
    for check in (_python, _javascript, _changelogs):
        try:
            for issue in check(tree, touched):
                found.setdefault((issue.path, issue.line, issue.message), issue)
                if len(found) == MAX_ISSUES:
                    break
        except TreeTooLarge:
            complete = False  # what was found up to there is certain
    return Consistency(tuple(found[key] for key in sorted(found)), complete)


def _python(tree: SourceTree, touched: Sequence[TouchedFile]) -> Iterator[Issue]:
    paths = [file.path for file in touched]
    deleted = frozenset(path for path in paths if path.endswith(PYTHON) and not tree.exists(path))
    project = PythonProject(tree, PythonDependencies(tree, paths), deleted)
    olds = {}
    for file in touched:
        if not file.path.endswith(PYTHON):
            continue
        tree.check_time()
        old = _old_python(project, file)
        if old is not None:
            olds[file.path] = old
        # A new file has nothing before: all of its imports are new.
        before = old or (python_module.read_module(b"") if file.is_new else None)
        yield from check_python(project, file.path, before)
        new = project.module(file.path)
        if new is not None and before is not None:
            yield from _any_flood(file.path, before.any_lines, new.any_lines, "Any")
    yield from python_references(project, olds, paths)
    manifests = {file.path: file.old.decode(errors="replace") for file in touched if file.old is not None}
    for module in project.dependencies.lost_modules(manifests):
        yield from lost_dependency(project, module)


def _old_python(project: PythonProject, file: TouchedFile) -> python_module.PythonModule | None:
    if file.old is None or is_unreadable(file.old):
        return None
    is_same = file.old == project.tree.read(file.path)
    return project.module(file.path) if is_same else python_module.read_module(file.old)


def _javascript(tree: SourceTree, touched: Sequence[TouchedFile]) -> Iterator[Issue]:
    project = JsProject(tree, frozenset(file.path for file in touched))
    read: Callable[[str, bytes], javascript_module.JsModule | None] = javascript_module.read_module
    olds = {}
    for file in touched:
        if not javascript_module.is_javascript(file.path):
            continue
        tree.check_time()
        old = _old_javascript(project, file)
        if old is not None:
            olds[file.path] = old
        before = old or (read(file.path, b"") if file.is_new else None)
        yield from check_javascript(project, file.path, before)
        new = project.module(file.path)
        if new is not None and before is not None:
            yield from _any_flood(file.path, before.any_lines, new.any_lines, "any")
    yield from javascript_references(project, olds, {file.path for file in touched})


def _old_javascript(project: JsProject, file: TouchedFile) -> javascript_module.JsModule | None:
    if file.old is None or is_unreadable(file.old):
        return None
    is_same = file.old == project.tree.read(file.path)
    return project.module(file.path) if is_same else javascript_module.read_module(file.path, file.old)


def _changelogs(tree: SourceTree, touched: Sequence[TouchedFile]) -> Iterator[Issue]:
    for file in touched:
        yield from check_changelog_names(tree, file)


def _any_flood(path: str, old: Sequence[int], new: Sequence[int], word: str) -> Iterator[Issue]:
    added = len(new) - len(old)
    if added > MAX_NEW_ANY:
        message = f"the change adds {added} uses of `{word}`, which no type checker checks"
        fix = f"Use exact types; at most {MAX_NEW_ANY} new uses of `{word}` in a file are not an issue."
        yield Issue("consistency", "medium", message, path, new[0], rule="any-flood", fix=fix)
