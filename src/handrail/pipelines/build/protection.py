"""What a build's model may not touch: tests, settings of checks, documents; and rules about what it wrote.

"Done" is decided by the user's tests and tools, so the model must not be able to change them.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from handrail.verification.documents.changelog import is_changelog
from handrail.workspace.sensitive_names import is_protected_name

TEST_FOLDERS = frozenset({"test", "tests", "testing", "spec", "specs", "__tests__", "__snapshots__", "e2e"})
TEST_NAME = re.compile(
    r"(?:test_.*|.*_test|tests?|conftest|.*[.-](?:test|spec)|.*(?:Test|Tests|Spec))\.\w+", re.ASCII
)
SETTINGS_NAME = re.compile(
    # Hidden files at any place, formats that only settings have, and what is named after its tool.
    r"\..+|.+\.(?:ini|cfg|toml|pth|mk|properties|gradle|cmake|csproj|props)|.*rc(?:\.\w+)?"
    r"|.+\.(?:conf|config|setup|workspace)\.\w+|(?:gnu)?makefile|justfile|rakefile|gemfile|cmakelists\.txt"
    r"|setup\.py|noxfile\.py|tasks\.py|conftest\.py|(?:site|user)customize\.py|go\.(?:mod|work)|build\.rs"
    r"|(?:package|composer|(?:ts|js|pyright|deno|biome|jest|vitest|mocha|nyc|turbo|nx|lerna)"
    r"(?:config)?)(?:\..+)?\.jsonc?|[\w-]*(?:ci|pipelines?|codecov|coverage)\.ya?ml|jenkinsfile"
)
"""By class rather than one by one: a tool that is not known here reads such a file, too. In lower case."""
METADATA_FOLDERS = (".dist-info", ".egg-info")
"""Their entry points are loaded by test runners as plugins."""
RUNNER_MODULES = frozenset(
    (
        *("pytest", "_pytest", "pluggy", "iniconfig", "coverage", "pytest_cov", "xdist", "hypothesis"),
        *("nose", "nose2", "mock", "mypy", "ruff", "pyright", "tox", "nox", "handrail"),
    )
)
SOURCE_FOLDERS, PYTHON_ENDINGS = ("src", "lib", "python"), ("py", "pyi", "pyc", "so")
DEPENDENCY_NAME = re.compile(
    r"requirements.*\.(?:txt|in)|constraints.*\.txt|.*\.lock|package-lock\.json|pnpm-lock\.yaml|go\.sum"
    r"|Pipfile|environment\.ya?ml|schema\.(?:sql|prisma|graphql|rb)|.*\.proto"
)
DEPENDENCY_FOLDERS = frozenset({"migrations", "alembic", "migrate"})
TASK_ABOUT_TESTS = re.compile(
    r"\b(?:add|write|create|extend|update|change|rewrite|rename|move|remove|delete)\b[^.\n]{0,60}\btests?\b",
    re.IGNORECASE,
)
EQUALITIES = ("assertEqual", "assertEquals", "assertIs", "assertAlmostEqual", "assertListEqual")
ASKS_FOR_TESTS = re.compile(
    r"PYTEST_CURRENT_TEST|sys\.modules\b.*(?:pytest|unittest)|^\s*(?:import|from)\s+(?:pytest|unittest)\b"
    r"|\bprocess\.env\.(?:JEST_WORKER_ID|VITEST)\b",
    re.MULTILINE,
)
TRIVIAL = (None, True, False, 0, 1, -1, "", 0.0, 1.0, b"")


def is_test(path: str) -> bool:
    where = PurePosixPath(path)
    return any(part.lower() in TEST_FOLDERS for part in where.parts[:-1]) or any(
        TEST_NAME.fullmatch(name) for name in (where.name, where.name.lower())
    )


def is_check_setting(path: str) -> bool:
    """Whether a tool could take its settings from the file; hidden folders hold nothing else."""
    *folders, name = PurePosixPath(path.lower()).parts
    return bool(SETTINGS_NAME.fullmatch(name)) or any(
        folder.startswith(".") or folder.endswith(METADATA_FOLDERS) for folder in folders
    )


def shadows(path: str) -> str:
    """The module of Python or of a test runner that a new file would take the place of; empty: none.

    Only at the places that are on Python's path: the root, and folders of sources beside it.
    """
    *folders, name = PurePosixPath(path).parts
    stem, _, ending = name.partition(".")
    if folders and folders[0] in SOURCE_FOLDERS:
        folders = folders[1:]
    if not folders and ending not in PYTHON_ENDINGS:
        return ""
    module = (folders[0] if folders else stem).casefold()
    return module if module in sys.stdlib_module_names or module in RUNNER_MODULES else ""


def is_dependency_or_schema(path: str) -> bool:
    where = PurePosixPath(path)
    return bool(DEPENDENCY_NAME.fullmatch(where.name)) or any(
        part in DEPENDENCY_FOLDERS for part in where.parts[:-1]
    )


def refusal(path: str, task: str, *, is_new: bool) -> str:
    """Why a build for this task may not change the file; empty where it may.

    The user's own words open a file: its path, or for tests that the task is about writing them.
    """
    if any(map(is_protected_name, PurePosixPath(path).parts)):
        return f"{path} is protected"
    if is_changelog(path):
        return f"{path} is written by Handrail: give the text of the entry in `changelog`"
    if _names(task, path):
        return ""
    if is_new and (module := shadows(path)):
        return f"{path} would be loaded in place of Python's own or the test runner's {module}"
    if is_check_setting(path):
        return f"{path} decides what the checks do, and the task does not name it: leave it as it is"
    if is_test(path) and not (is_new and TASK_ABOUT_TESTS.search(task)):
        return f"{path} belongs to the tests, and the task does not name it: correct the code, not the tests"
    return ""


def _names(task: str, path: str) -> bool:
    return bool(re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w/-])", task))


def asks_for_tests(path: str, old: str, new: str) -> str:
    """What is wrong with code outside of the tests that finds out whether tests run; empty: nothing."""
    if is_test(path) or not ASKS_FOR_TESTS.search(new) or ASKS_FOR_TESTS.search(old):
        return ""
    return f"{path} finds out whether it runs in a test: let it do the same everywhere"


class SpecialCase(NamedTuple):
    path: str
    line: int
    function: str

    @property
    def words(self) -> str:
        return (
            f"{self.path}:{self.line}: {self.function} returns the answer that a test expects for exactly"
            " the input of that test. Solve the general case"
        )


def special_cases(
    path: str, old: str, new: str, tests: Iterable[str], most: int = 5
) -> Sequence[SpecialCase]:
    """New branches of Python code that answer the input of a test with the result that it expects."""
    known = _expected(tests)
    if not path.endswith(".py") or not known:
        return ()
    before = {(name, case) for name, case, _ in _branches(old)}
    found = []
    for name, case, line in _branches(new):
        trivial = len(case) <= 2 and all(_is_trivial(value) for value in case)
        expected = case in known.get(name, ()) or case in known.get(ANY_FUNCTION, ())
        if (name, case) not in before and not trivial and expected:
            found.append(SpecialCase(path, line, name))
    return found[:most]


Case = tuple[str, ...]
"""The arguments and the result, each as source."""


def _is_trivial(source: str) -> bool:
    try:
        value = ast.literal_eval(source)
    except (ValueError, SyntaxError):
        return False
    return any(value is each or (type(value) is type(each) and value == each) for each in TRIVIAL)


ANY_FUNCTION = ""
"""Cases of a test with parameters: they name no function."""


def _expected(tests: Iterable[str]) -> dict[str, set[Case]]:
    """What tests expect for constant arguments, by the function's name."""
    found: dict[str, set[Case]] = {}
    for text in tests:
        for node in ast.walk(_parsed(text)):
            match node:
                case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
                    _add_case(found, left, right)
                case ast.Call(func=ast.Attribute(attr=name), args=[left, right, *_]) if name in EQUALITIES:
                    _add_case(found, left, right)
                case ast.FunctionDef(decorator_list=decorators):
                    for each in (inner for one in decorators for inner in ast.walk(one)):
                        if isinstance(each, ast.Tuple) and len(each.elts) > 1 and _is_constant(each):
                            case = tuple(map(ast.unparse, each.elts))
                            found.setdefault(ANY_FUNCTION, set()).add(case)
    return found


def _add_case(found: dict[str, set[Case]], left: ast.expr, right: ast.expr) -> None:
    for call, result in ((left, right), (right, left)):
        if isinstance(call, ast.Call) and _is_constant(result) and not call.keywords:
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            name = call.func.id if isinstance(call.func, ast.Name) else name
            if name and all(map(_is_constant, call.args)):
                found.setdefault(name, set()).add((*map(ast.unparse, call.args), ast.unparse(result)))


def _branches(text: str) -> Iterator[tuple[str, Case, int]]:
    """Branches that compare the arguments with constants and return a constant."""
    for function in ast.walk(_parsed(text)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        names = [each.arg for each in function.args.args if each.arg not in ("self", "cls")]
        for node in ast.walk(function):
            if isinstance(node, ast.Dict):
                yield from ((function.name, case, node.lineno) for case in _table_rows(node))
            match node:
                case ast.If(test=test, body=[ast.Return(value=ast.expr() as result), *_]):
                    pass
                case ast.IfExp(test=test, body=result):
                    pass
                case _:
                    continue
            given = dict(_compared(test))
            if given and _is_constant(result):
                values = [given[name] for name in names if name in given]
                yield function.name, (*values, ast.unparse(result)), node.lineno


def _table_rows(table: ast.Dict) -> Iterator[Case]:
    """The rows of a table that answers by looking up its arguments."""
    for key, value in zip(table.keys, table.values, strict=True):
        if key is not None and _is_constant(key) and _is_constant(value):
            given = key.elts if isinstance(key, ast.Tuple) else [key]
            yield (*map(ast.unparse, given), ast.unparse(value))


def _compared(test: ast.expr) -> Iterator[tuple[str, str]]:
    """Names and the constants that they are compared with."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            for each in values:
                yield from _compared(each)
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            lefts = left.elts if isinstance(left, ast.Tuple) else [left]
            rights = right.elts if isinstance(right, ast.Tuple) and isinstance(left, ast.Tuple) else [right]
            for one, other in zip(lefts, rights, strict=False):
                name, value = (one, other) if isinstance(one, ast.Name) else (other, one)
                if isinstance(name, ast.Name) and _is_constant(value):
                    yield name.id, ast.unparse(value)


def _is_constant(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return ast.Module(body=[], type_ignores=[])
