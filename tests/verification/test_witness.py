"""Code under test that disturbs the run which judges it: never a pass."""

from pathlib import Path

import pytest

from handrail.verification.witness.witness import Record, doubt, witness_for
from tests.verification.projects import origins, python_project, statuses, verify, write

pytestmark = pytest.mark.anyio
TEST = "from calc import double\n\n\ndef test_double():\n    assert double(4) == 8\n"
PYTEST = {"pytest.ini": "[pytest]\npythonpath = .\n", "tests/test_calc.py": TEST}
UNITTEST = {
    "tests/__init__.py": "",
    "tests/test_calc.py": (
        "import unittest\n\nfrom calc import double\n\n\nclass CalcTest(unittest.TestCase):\n"
        "    def test_double(self):\n        self.assertEqual(double(4), 8)\n"
    ),
}
WRONG = "\n\ndef double(number):\n    return number + 1\n"
FORGES_JUNIT = """\
import os
import sys

for word in sys.argv:
    if word.startswith("--junitxml="):
        with open(word.partition("=")[2], "w") as file:
            file.write("<testsuite><testcase classname='t' name='test_double'/></testsuite>")
        os._exit(0)
"""
NO_OP = "import sys\n\nsys.modules['_py' + 'test.python'].Function.runtest = lambda self: None\n"
FORGES_TEXT = "import os\n\nprint('Ran 1 test in 0.001s\\n\\nOK', flush=True)\nos._exit(0)\n"
SILENT = "import unittest\n\nunittest.TestCase.assertEqual = lambda *_: None\n"
STATEFUL = """\
seen = []


def double(number):
    seen.append(number)
    return number * 2 if len(seen) < 3 else 0
"""
THREE = "from calc import double\n" + "".join(
    f"\n\ndef test_{name}():\n    assert double(4) == 8\n" for name in "abc"
)


@pytest.mark.promise("VERIFY-10")
@pytest.mark.parametrize(
    ("files", "words"),
    [
        pytest.param({**PYTEST, "calc.py": FORGES_JUNIT + WRONG}, "did not run to their end", id="junit"),
        pytest.param({**PYTEST, "calc.py": NO_OP + WRONG}, "tests that must fail pass", id="no-op"),
        pytest.param({**UNITTEST, "calc.py": FORGES_TEXT + WRONG}, "did not run to their end", id="text"),
        pytest.param({**UNITTEST, "calc.py": SILENT + WRONG}, "assertEqual", id="assertEqual"),
    ],
)
async def test_code_that_disturbs_its_tests_is_never_shown_as_passed(
    tmp_path: Path, files: dict[str, str], words: str
) -> None:
    verdict = await verify(python_project(tmp_path / "shop", files), only=("tests",))
    assert statuses(verdict) == {"tests": "unverified"}
    assert words in verdict.checks[0].reason


@pytest.mark.promise("VERIFY-10")
async def test_tests_shared_by_several_processes_are_seen_too(tmp_path: Path) -> None:
    options = "[pytest]\npythonpath = .\naddopts = -p xdist.plugin -n 1 -p no:randomly\n"
    files = {**PYTEST, "pytest.ini": options, "calc.py": WRONG.replace("+ 1", "* 2")}
    root = python_project(tmp_path / "shop", files)
    assert statuses(await verify(root, only=("tests",))) == {"tests": "passed"}
    write(root, {"calc.py": NO_OP + WRONG})
    assert statuses(await verify(root, only=("tests",))) == {"tests": "unverified"}


async def test_file_named_as_the_test_runner_does_not_take_its_place(tmp_path: Path) -> None:
    files = {**UNITTEST, "unittest.py": "print('Ran 1 test in 0.1s')\n", "calc.py": WRONG}
    verdict = await verify(python_project(tmp_path / "shop", files), only=("tests",))
    assert verdict.status != "passed"


@pytest.mark.promise("VERIFY-4")
async def test_test_that_passes_alone_but_is_broken_by_other_tests_counts(tmp_path: Path) -> None:
    files = {**PYTEST, "tests/test_calc.py": THREE, "calc.py": STATEFUL}
    verdict = await verify(python_project(tmp_path / "shop", files), only=("tests",))
    assert verdict.status == "failed"
    assert origins(verdict) == {"tests/test_calc.py::test_c": "unknown"}


def test_record_with_another_key_or_more_passes_than_seen_is_not_believed() -> None:
    witness = witness_for("unittest", ("python", "-m", "unittest"), {}, "/report")
    assert witness is not None
    forged = b'{"key": "x", "passed": ["a"], "failed": [], "undetected": [], "replaced": []}'
    assert witness.record({"witness": forged}) is None
    assert witness.record({"witness": forged.replace(b'"x"', f'"{witness.key}"'.encode())}) is not None
    seen = Record("", ["a"], [], [], [])
    assert not doubt(seen, 1)
    assert doubt(seen, 2)
    assert doubt(Record("", ["a"], ["b"], [], []), 1)
    assert witness_for("node", ("node", "--test"), {}, "/report") is None


async def test_python_that_ignores_pythonpath_runs_its_tests_unwatched_and_says_so(tmp_path: Path) -> None:
    root = python_project(tmp_path / "shop", {**PYTEST, "calc.py": WRONG.replace("+ 1", "* 2")})
    program = root / ".venv/bin/pytest"
    program.write_text(program.read_text().replace("-m pytest", "-E -m pytest"))
    verdict = await verify(root, only=("tests",))
    assert statuses(verdict) == {"tests": "passed"}
    assert "not watched" in verdict.checks[0].detail
