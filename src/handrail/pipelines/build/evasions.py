"""What new code does to look right without being right: silence a check, equal everything, assert less."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from handrail.protocol.errors import PathProblem
from handrail.verification.localise.line_kinds import line_kinds
from handrail.verification.proposed import ProposedFile
from handrail.verification.protection import names
from handrail.workspace.files import Workspace
from handrail.workspace.stat_index import snapshot
from handrail.workspace.test_files import is_test_file

SUPPRESSION = re.compile(
    r"#\s*(?:type:\s*ignore|(?:(?:ruff|flake8):\s*)?noqa|(?:mypy|pyright):\s*\S+|pyre-|ty:\s*ignore|nosec"
    r"|pylint:\s*(?:disable|skip)|pragma:\s*no\s*cover|isort:\s*skip|fmt:\s*(?:off|skip))"
    r"|(?://|/\*)\s*(?:@ts-(?:ignore|nocheck|expect-error)|eslint-disable|biome-ignore|nolint"
    r"|(?:istanbul|c8|v8|prettier)[ -]ignore|@?jest-environment)"
    r"|#!?\[\s*(?:allow|expect|ignore)\b|@(?:typing\.)?no_type_check\b",
    re.IGNORECASE,
)
"""The tools' own words for: do not look here."""
ASSERTION = re.compile(r"\bassert|\bexpect\(|\.raises\(|\bfail\(")
SOURCES = (".py", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx")
MAX_READ = 5_000


def find_evasions(
    workspace: Workspace, task: str, files: Sequence[ProposedFile], before: Mapping[str, str]
) -> Iterator[str]:
    """What is wrong with the files, in words; `before` has the old texts.

    The task's own words open a file, as they do for tests.
    """
    for file in files:
        if file.text is None or is_test_file(file.path):
            continue
        old = before[file.path] if file.base else ""
        yield from _suppressions(task, file.path, old, file.text)
        yield from _equals_everything(file.path, old, file.text)
        if not names(task, file.path):
            yield from _weaker_assertions(workspace, file.path, old, file.text)


def _suppressions(task: str, path: str, old: str, new: str) -> Iterator[str]:
    before, now = (Counter(found[0].lower() for found in SUPPRESSION.finditer(text)) for text in (old, new))
    for words in now - before:
        if words.strip("#/*![ ") not in task.lower():
            yield f"{path} tells a check not to look (`{words}`), and the task does not ask for that"


def _equals_everything(path: str, old: str, new: str) -> Iterator[str]:
    known = {name for name, _ in _blind_equalities(path, old)}
    for name, line in _blind_equalities(path, new):
        if name not in known:
            yield f"{path}:{line}: {name}.__eq__ does not look at what it is compared with"


def _blind_equalities(path: str, text: str) -> Iterator[tuple[str, int]]:
    """Classes whose equality does not use its argument."""
    if not path.endswith(".py"):
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return
    for owner in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for member in owner.body:
            match member:
                case ast.FunctionDef(name="__eq__" | "__ne__", args=args):
                    body = ast.Module(member.body, [])
                case ast.Assign(
                    targets=[ast.Name(id="__eq__" | "__ne__")], value=ast.Lambda(args=args) as made
                ):
                    body = ast.Module([ast.Expr(made.body)], [])
                case _:
                    continue
            other = args.args[1].arg if len(args.args) > 1 else ""
            used = {node.id for node in ast.walk(body) if isinstance(node, ast.Name)}
            raises = any(isinstance(node, ast.Raise) for node in ast.walk(body))
            if other not in used and "NotImplemented" not in used and not raises:
                yield owner.name, member.lineno


def _weaker_assertions(workspace: Workspace, path: str, old: str, new: str) -> Iterator[str]:
    """Assertions that are gone from a file that tests import and nothing else does."""
    before, now = (
        Counter(line.strip() for line in text.splitlines() if ASSERTION.search(line)) for text in (old, new)
    )
    lost = list(before - now)
    if lost and path.endswith(SOURCES) and _is_for_tests(workspace, path):
        yield f"{path} is used by tests alone, and `{lost[0]}` is gone from it: correct the code, not tests"


def _is_for_tests(workspace: Workspace, path: str) -> bool:
    importers = []
    for each in list(snapshot(workspace.root).files)[:MAX_READ]:
        if each == path or not each.endswith(SOURCES):
            continue
        try:
            text = workspace.read(each).text
        except PathProblem:
            continue  # no text, or too large
        if path in line_kinds(each, text).imports:
            importers.append(each)
    return bool(importers) and all(map(is_test_file, importers))
