"""What a model may not touch where checks decide: tests, settings, documents; and rules about what it wrote.

"Done" is decided by the user's tests and tools, so the model must not be able to change them.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import PurePosixPath
from typing import NamedTuple

from handrail.verification.documents.changelog import is_changelog
from handrail.verification.javascript_as_python import JAVASCRIPT, python_tree
from handrail.workspace.sensitive_names import is_protected_name
from handrail.workspace.test_files import is_test_file

SETTINGS_NAME = re.compile(
    # Hidden files at any place, formats that only settings have, and what is named after its tool.
    r"\..+|.+\.(?:ini|cfg|toml|pth|mk|properties|gradle|cmake|csproj|props)|\w*lintrc"
    r"|(?:gnu)?makefile|justfile|rakefile|gemfile|cmakelists\.txt|setup\.py|noxfile\.py|conftest\.py"
    r"|(?:site|user)customize\.py|go\.(?:mod|work)|build\.rs"
    r"|(?:package|composer|(?:ts|js|pyright|deno|biome|jest|vitest|mocha|nyc|turbo|nx|lerna)"
    r"(?:config)?)(?:\..+)?\.jsonc?|[\w-]*(?:ci|pipelines?|codecov|coverage)\.ya?ml|jenkinsfile"
)
"""By class rather than one by one: a tool that is not known here reads such a file, too. In lower case."""
TOOL_SCRIPT = re.compile(r".+\.(?:conf|config|setup|workspace)\.\w+")
"""As tools for JavaScript have them beside the sources; among the sources it is the program's own."""
METADATA_FOLDERS = (".dist-info", ".egg-info")
"""Their entry points are loaded by test runners as plugins."""
RUNNER_MODULES = frozenset(
    (
        *("pytest", "_pytest", "pluggy", "iniconfig", "coverage", "pytest_cov", "xdist", "hypothesis"),
        *("nose", "nose2", "mock", "mypy", "ruff", "pyright", "tox", "nox", "handrail"),
    )
)
SOURCE_FOLDERS, PYTHON_ENDINGS = ("src", "lib", "python"), (".py", ".pyi", ".pyc", ".so")
DEPENDENCY_NAME = re.compile(
    r"pyproject\.toml|setup\.(?:py|cfg)|package\.json|Cargo\.toml|go\.mod|Gemfile"
    r"|requirements.*\.(?:txt|in)|constraints.*\.txt|.*\.lock|package-lock\.json|pnpm-lock\.yaml|go\.sum"
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
    r"|\bprocess\.env\.(?:JEST_WORKER_ID|VITEST)\b"
    # Who reads the frames of callers or the objects of others can read what a test expects.
    r"|\b_getframe\b|\binspect\.(?:stack|currentframe|trace)\b|\bf_back\b|\bgc\.get_(?:objects|referrers)\b",
    re.MULTILINE,
)
TRIVIAL = frozenset(map(repr, (None, True, False, 0, 1, -1, "", 0.0, 1.0, b"")))


def is_check_setting(path: str) -> bool:
    """Whether a tool could take its settings from the file; hidden folders hold nothing else."""
    *folders, name = PurePosixPath(path.lower()).parts
    named = SETTINGS_NAME.fullmatch(name)
    if not set(SOURCE_FOLDERS).intersection(folders):
        named = named or TOOL_SCRIPT.fullmatch(name)
    return bool(named) or any(
        folder.startswith(".") or folder.endswith(METADATA_FOLDERS) for folder in folders
    )


def shadows(path: str) -> str:
    """The module of Python or of a test runner that a new file would take the place of; empty: none.

    Only at the places that are on Python's path: the root, and folders of sources beside it.
    """
    parts = PurePosixPath(path).parts
    parts = parts[1:] if parts[0] in SOURCE_FOLDERS and len(parts) > 1 else parts
    if not path.endswith(PYTHON_ENDINGS):
        return ""
    module = parts[0].partition(".")[0].casefold()
    return module if module in sys.stdlib_module_names or module in RUNNER_MODULES else ""


def is_dependency_or_schema(path: str) -> bool:
    where = PurePosixPath(path)
    return bool(DEPENDENCY_NAME.fullmatch(where.name)) or any(
        part in DEPENDENCY_FOLDERS for part in where.parts[:-1]
    )


def refusal(path: str, task: str, *, is_new: bool) -> str:
    """Why the model may not change the file; empty where it may.

    The user's own words open a file: its path, or for tests that the task is about writing them.
    """
    if any(map(is_protected_name, PurePosixPath(path).parts)):
        return f"{path} is protected"
    if is_changelog(path):
        return f"{path} is written by Handrail: give the text of the entry in `changelog`"
    if names(task, path):
        return ""
    if is_new and (module := shadows(path)):
        return f"{path} would be loaded in place of Python's own or the test runner's {module}"
    if is_check_setting(path):
        return f"{path} decides what the checks do, and the task does not name it: leave it as it is"
    if is_test_file(path) and not (is_new and TASK_ABOUT_TESTS.search(task)):
        return f"{path} belongs to the tests, and the task does not name it: correct the code, not the tests"
    return ""


TEST_SUPPORT = re.compile(
    r"(?:^|[/_.-])(?:helpers?|fixtures?|support|mocks?|fakes?|stubs?|factor(?:y|ies)|samples?|test\w*)[_.-]",
    re.ASCII,
)
TEST_FRAMEWORK = re.compile(
    r"^\s*(?:import|from)\s+(?:pytest|unittest|hypothesis)\b"
    r"|from ['\"](?:node:test|vitest|@jest/globals)['\"]",
    re.MULTILINE,
)


def open_files(texts: Mapping[str, str], task: str) -> dict[str, str]:
    """The files that the model may change for this task.

    What only tests import is closed too if its name or a test framework in it says that it serves them: by
    imports alone, the code under test often looks the same.
    """
    found = {path: text for path, text in texts.items() if not refusal(path, task, is_new=False)}
    users = "\n".join(text for path, text in found.items())
    return {
        path: text
        for path, text in found.items()
        if names(task, path)
        or not (TEST_SUPPORT.search(path) or TEST_FRAMEWORK.search(text))
        or re.search(rf"(?:import|from|require)\b[^\n]*\b{re.escape(PurePosixPath(path).stem)}\b", users)
    }


RETURNED = re.compile(
    r"""(?:\breturn\s|=>)\s*(?:(?P<quote>["'`])(?P<text>[^"'`\\\n]{2,})(?P=quote)|(?P<number>-?\d[\d_.]*))\s*;?\s*$""",
    re.MULTILINE,
)
RETURN = re.compile(r"\breturn\b|=>")


def copied_answer(old: str, new: str, tests: Iterable[str], task: str) -> str:
    """A constant from the tests that new code returns, whatever it is asked; empty where there is none.

    A constant that takes the place of another one, or is one of several results, may well be right.
    """
    expected, before, after = "\n".join(tests), old.splitlines(), new.splitlines()
    for what, first, last, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        written, replaced = "\n".join(after[start:end]), "\n".join(before[first:last])
        found = RETURNED.search(written) if what != "equal" else None
        if found is None or len(RETURN.findall(written)) > 1 or RETURNED.search(replaced):
            continue
        value = found["text"] or found["number"]
        known = re.search(rf"[\"'`]{re.escape(value)}[\"'`]" if found["text"] else re.escape(value), old)
        if value not in ("0", "1", "-1") and not known and value not in task and value in expected:
            return value
    return ""


def names(task: str, path: str) -> bool:
    return bool(re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w/-])", task))


def asks_for_tests(path: str, old: str, new: str) -> str:
    """What is wrong with code outside of the tests that finds out whether tests run; empty: nothing."""
    if is_test_file(path) or not ASKS_FOR_TESTS.search(new) or ASKS_FOR_TESTS.search(old):
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
    """New branches and tables that answer the input of a test with what it expects.

    The tests are in the language of the file: Python, or JavaScript and TypeScript.
    """
    parsed = _parsed if path.endswith(".py") else python_tree if path.endswith(JAVASCRIPT) else None
    if parsed is None:
        return ()
    before = {(each.function, each.case) for each in _answers(parsed(old))}
    added = [each for each in _answers(parsed(new)) if (each.function, each.case) not in before]
    known = _expected(map(parsed, tests)) if added else {}
    found = []
    for each in added:
        cases = known.get(each.function, frozenset()) | known.get(ANY_FUNCTION, frozenset())
        if each.in_table:
            cases = frozenset().union(*known.values())
        if each.case in cases and not _is_trivial(each.case):
            found.append(SpecialCase(path, each.line, each.function or "a table"))
    return found[:most]


class Case(NamedTuple):
    """Arguments and their result, each as source; the arguments are sorted, as their names are not known."""

    given: tuple[str, ...]
    result: str


class Answer(NamedTuple):
    """Code that answers certain constants with another."""

    function: str
    case: Case
    line: int
    in_table: bool = False


def _case(given: Iterable[ast.expr], result: ast.expr) -> Case | None:
    """None where something is not constant."""
    inputs = [_source(each) for each in given]
    answer = _source(result)
    return Case(tuple(sorted(inputs)), answer) if inputs and all(inputs) and answer else None


def _is_trivial(case: Case) -> bool:
    sources = (*case.given, case.result)
    return len(sources) <= 2 and all(source in TRIVIAL for source in sources)


ANY_FUNCTION = ""
"""Cases of a test with parameters: they name no function."""


def _expected(tests: Iterable[ast.Module]) -> dict[str, frozenset[Case]]:
    """What tests expect for constant arguments, by the function's name."""
    found: dict[str, set[Case]] = {}

    def add(name: str, case: Case | None) -> None:
        if case:
            found.setdefault(name, set()).add(case)

    for tree in tests:
        calls: dict[str, ast.expr] = {}  # by the name that holds the result
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                    calls[name] = call
                case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
                    add(*_called(left, right, calls))
                    add(*_called(right, left, calls))
                case ast.Call(func=ast.Attribute(attr=name), args=[left, right, *_]) if name in EQUALITIES:
                    add(*_called(left, right, calls))
                    add(*_called(right, left, calls))
                case ast.FunctionDef(decorator_list=decorators):
                    for each in (inner for one in decorators for inner in ast.walk(one)):
                        if isinstance(each, ast.Tuple | ast.List) and len(each.elts) > 1:
                            add(ANY_FUNCTION, _case(_flat(each.elts[:-1]), each.elts[-1]))
    return {name: frozenset(cases) for name, cases in found.items()}


def _called(call: ast.expr, result: ast.expr, calls: Mapping[str, ast.expr]) -> tuple[str, Case | None]:
    call = calls.get(call.id, call) if isinstance(call, ast.Name) else call
    match call:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=given, keywords=keywords):
            return name, _case([*given, *(each.value for each in keywords)], result)
    return "", None


def _answers(tree: ast.Module) -> Iterator[Answer]:
    """Branches that compare with constants and give a constant, and tables with such rows."""
    owners = {
        inner: function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(function)
    }
    for node in ast.walk(tree):
        found: Case | None = None
        match node:
            case ast.If(test=test, body=[ast.Return(value=ast.expr() as result), *_]):
                found = _case(_compared(test), result)
            case ast.If(test=test, body=[ast.Assign(value=result), *_]):
                found = _case(_compared(test), result)
            case ast.IfExp(test=test, body=result):
                found = _case(_compared(test), result)
            case ast.match_case(pattern=pattern, body=[ast.Return(value=ast.expr() as result), *_]):
                found = _case(_matched(pattern), result)
            case ast.match_case(pattern=pattern, body=[ast.Assign(value=result), *_]):
                found = _case(_matched(pattern), result)
            case ast.Dict(keys=keys, values=values):
                rows = [_case(_flat([key]), value) for key, value in zip(keys, values, strict=True) if key]
                yield from _table(owners.get(node, ""), rows, node.lineno)
            case ast.Tuple(elts=elts) | ast.List(elts=elts) if elts:
                pairs = [each.elts for each in elts if isinstance(each, ast.Tuple | ast.List) and each.elts]
                rows = [_case(_flat(pair[:-1]), pair[-1]) for pair in pairs if len(pairs) == len(elts)]
                yield from _table(owners.get(node, ""), rows, node.lineno)
        if found:
            line = getattr(node, "lineno", 0) or getattr(getattr(node, "pattern", node), "lineno", 0)
            yield Answer(owners.get(node, ""), found, line)


LARGE_TABLE = 6
"""Rows of a table that is taken for knowledge of the program, such as the letters of Roman numerals."""


def _table(function: str, rows: Sequence[Case | None], line: int) -> Iterator[Answer]:
    if len(rows) < LARGE_TABLE:
        yield from (Answer(function, row, line, in_table=True) for row in rows if row)


def _flat(nodes: Iterable[ast.expr]) -> list[ast.expr]:
    """The parts of tuples in place of them: several arguments are one key."""
    return [part for node in nodes for part in (node.elts if isinstance(node, ast.Tuple) else [node])]


def _compared(test: ast.expr) -> list[ast.expr]:
    """The constants that names are compared with."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            return [each for value in values for each in _compared(value)]
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            return [each for each in _flat([left, right]) if _source(each)]
    return []


def _matched(pattern: ast.pattern) -> list[ast.expr]:
    match pattern:
        case ast.MatchValue(value=value):
            return [value]
        case ast.MatchSingleton(value=value):
            return [ast.Constant(value)]
        case ast.MatchSequence(patterns=patterns):
            return [each for one in patterns for each in _matched(one)]
    return []


def _source(node: ast.expr) -> str:
    """A constant as source that is the same for all ways to write it; empty for anything else."""
    try:
        return repr(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ""


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return ast.Module(body=[], type_ignores=[])
