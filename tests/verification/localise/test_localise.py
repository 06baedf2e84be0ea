"""Seeded bugs: the wrong line is among the first five suspects of a failing test."""

import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from handrail.tools.process import run_for_output
from handrail.tools.reports.issue import Issue
from handrail.verification.localise.localise import Localised, RunTraced, SuiteRun, localise
from tests.verification.localise.seeded import PYTHON, PYTHON_BUGS, Bug

pytestmark = pytest.mark.anyio
DEADLINE = 120.0
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.", "-c", os.devnull)
FAILED = re.compile(r"^FAILED (\S+)", re.MULTILINE)


SHOP = """\
def price(count):
    if count > 9:
        return count
    return 2 * count
"""
UNITTEST = """\
import unittest
from shop import price


class Prices(unittest.IsolatedAsyncioTestCase):
    def test_few(self):
        self.assertEqual(price(1), 2)

    async def test_many(self):
        self.assertEqual(price(10), 20)

    def test_none(self):
        self.assertEqual(price(0), 0)
"""


def seeded(bug: Bug, source: str) -> tuple[str, int]:
    """The source with the bug, and its line."""
    lines = source.split("\n")
    (number,) = [number for number, line in enumerate(lines) if line.strip() == bug.right]
    lines[number] = lines[number].replace(bug.right, bug.wrong)
    return "\n".join(lines), number + 1


def put(root: Path, path: str, text: str) -> None:
    (root / path).write_text(text)


def runs_in(root: Path) -> RunTraced:
    async def run(words: tuple[str, ...], variables: Mapping[str, str]) -> Mapping[str, bytes]:
        with tempfile.TemporaryDirectory() as folder:
            placed = {name: value.replace("{report}", folder) for name, value in variables.items()}
            environ = os.environ | placed | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
            done = await run_for_output(
                words, folder=root, environment=environ, timeout=DEADLINE, limit=10_000_000
            )
            files = {file.name: file.read_bytes() for file in Path(folder).iterdir()}
            return files | {"output": done.data}

    return run


async def localised_python(root: Path, python: str = sys.executable) -> Localised:
    words = (python, *PYTEST[1:])
    output = (await runs_in(root)((*words, "-rf", "--tb=no"), {}))["output"].decode()
    issues = [Issue("tests", "high", "failed", test=name) for name in FAILED.findall(output)]
    return await localise(issues, SuiteRun("pytest", words, root, root, os.environ), runs_in(root))


def ranks(done: Localised, path: str, line: int, tests: str) -> list[int]:
    """Where the wrong line is among the suspects of each failing test of a file; 0: it is not."""
    own = [issue for issue in done.issues if tests in (issue.path, issue.test.partition("::")[0])]
    assert own, f"the bug in {path} breaks no test"
    return [
        next((n for n, each in enumerate(issue.suspects, 1) if (each.path, each.line) == (path, line)), 0)
        for issue in own
    ]


def told(found: Mapping[str, list[int]]) -> str:
    return "\n".join(f"{path}: {', '.join(map(str, each))}" for path, each in found.items())


@pytest.mark.promise("LOC-1")
async def test_wrong_lines_in_python_are_among_the_first_five_suspects(tmp_path: Path) -> None:
    lines = {}
    for number, bug in enumerate(PYTHON_BUGS):
        source, tests = PYTHON[bug.module]
        name = f"{bug.module}{number}"
        text, lines[name] = seeded(bug, source)
        (tmp_path / f"{name}.py").write_text(text)
        (tmp_path / f"test_{name}.py").write_text(f"from {name} import *\n{tests}")
    done = await localised_python(tmp_path)
    assert not done.problem
    found = {name: ranks(done, f"{name}.py", line, f"test_{name}.py") for name, line in lines.items()}
    assert sum(all(each) for each in found.values()) >= 19, told(found)  # of 22


@pytest.mark.promise("LOC-1")
async def test_tests_of_unittest_are_localised_without_pytest(tmp_path: Path) -> None:
    put(tmp_path, "shop.py", SHOP.replace("*", "/"))
    put(tmp_path, "test_shop.py", UNITTEST)
    words = (sys.executable, "-m", "unittest", "discover", "-s", ".", "-t", ".")
    issues = [
        Issue("tests", "high", "failed", test=f"test_shop.Prices.test_{name}") for name in ("many", "none")
    ]
    run = SuiteRun("unittest", words, tmp_path, tmp_path, os.environ)
    many, none = (await localise(issues, run, runs_in(tmp_path))).issues
    assert [each.line for each in many.suspects][:1] == [3]
    assert [each.line for each in none.suspects][:1] == [4]  # where the error was raised


async def test_tests_in_several_processes_are_recorded_too(tmp_path: Path) -> None:
    put(tmp_path, "shop.py", SHOP)
    tests = "from shop import price\n\ndef test_few():\n    assert price(1) == 2\n\n"
    put(tmp_path, "test_shop.py", f"{tests}def test_many():\n    assert price(10) == 20\n")
    words = (*PYTEST, "-p", "xdist.plugin", "-n", "2", "-x")
    issue = Issue("tests", "high", "failed", test="test_shop.py::test_many")
    run = SuiteRun("pytest", words, tmp_path, tmp_path, os.environ)
    done = await localise([issue], run, runs_in(tmp_path))
    assert [(each.path, each.line) for each in done.issues[0].suspects][:2] == [
        ("shop.py", 3),
        ("shop.py", 2),
    ]


@pytest.mark.promise("LOC-2")
@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({}, "no failing test was recorded"),
        ({"lines-1.json": b'{"tests": ['}, "cannot be read"),
        ({"lines-1.json": b'{"tests": [{"name": 1}]}'}, "cannot be read"),
        ({"lines-1.json": b"[" * 100_000}, "cannot be read"),
    ],
)
async def test_what_cannot_be_read_gives_a_reason_and_no_suspects(
    tmp_path: Path, files: Mapping[str, bytes], problem: str
) -> None:
    async def run(words: tuple[str, ...], variables: Mapping[str, str]) -> Mapping[str, bytes]:
        return files

    for tool in ("pytest", "node"):
        issues = (Issue("tests", "high", "failed", test="test_a.py::test_x"), Issue("lint", "low", "unused"))
        done = await localise(issues, SuiteRun(tool, ("x",), tmp_path, tmp_path, {}), run)
        assert done.issues == issues
        assert problem in done.problem


@pytest.mark.promise("LOC-2")
async def test_a_recorded_path_outside_of_the_tree_is_not_read(tmp_path: Path) -> None:
    put(tmp_path, "outside.py", "x = 1 + 1\n")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/link.py").symlink_to(tmp_path / "outside.py")
    paths = ("../outside.py", str(tmp_path / "outside.py"), "link.py", "missing.py", "\0")
    lines = [[path, [1]] for path in paths]
    trace = {"tests": [{"name": "t", "failed": True, "lines": lines, "stack": []}]}

    async def run(words: tuple[str, ...], variables: Mapping[str, str]) -> Mapping[str, bytes]:
        return {"lines-1.json": json.dumps(trace).encode()}

    issue = Issue("tests", "high", "failed", test="t")
    tree = tmp_path / "tree"
    done = await localise([issue], SuiteRun("pytest", ("x",), tree, tree, {}), run)
    assert done.issues[0].suspects == ()
