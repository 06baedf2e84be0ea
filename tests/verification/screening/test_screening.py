"""Many texts of a file at once: which let failing tests pass, whatever the texts and the tests do."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from handrail.verification.candidates import open_candidates
from handrail.verification.detect.command import command_check
from handrail.verification.screening.screening import Screened
from tests.verification.projects import checks_of, commit, write

pytestmark = pytest.mark.anyio
AGE = "def is_adult(age):\n    return {}\n"
TESTS = """\
from age import is_adult


def test_old():
    assert is_adult(18)


def test_young():
    assert not is_adult(17)


def test_callable():
    assert callable(is_adult)
"""
CONFTEST = "import age\n\nKNOWN = age.is_adult\n"
PYTEST = f"{sys.executable} -m pytest -q"
SECONDS = 60.0


async def screen(
    root: Path, texts: Sequence[str], *, every: bool = False, check: str = PYTEST, tests: str = TESTS
) -> dict[int, Screened]:
    """The results of texts for a file whose test of the young fails."""
    files = {"age.py": AGE.format("True"), "test_age.py": tests}
    root.mkdir(exist_ok=True)
    commit(write(root, files))
    async with open_candidates(checks_of(root), [command_check(check, SECONDS)]) as candidates:
        before = await candidates.before()
        assert candidates.screens
        found = await candidates.screen({}, "age.py", texts, () if every else before.failing, SECONDS)
        assert (await candidates.test({})).failing == before.failing
    assert (root / "age.py").read_text() == files["age.py"]
    return found


async def test_texts_are_told_apart_by_the_failing_tests(tmp_path: Path) -> None:
    found = await screen(tmp_path, [AGE.format(each) for each in ("age >= 18", "False", "age > 16")])
    assert found == {0: Screened(1, 1), 1: Screened(1, 1), 2: Screened(1, 0)}


async def test_with_all_tests_only_a_right_text_passes(tmp_path: Path) -> None:
    texts = [AGE.format(each) for each in ("age >= 18", "False", "age > 18")]
    found = await screen(tmp_path, texts, every=True)
    assert [found[number].all_passed for number in range(3)] == [True, False, False]


@pytest.mark.promise("EMB-24")
async def test_a_text_that_hangs_kills_or_does_not_parse_leaves_the_others_their_results(
    tmp_path: Path,
) -> None:
    hangs = "def is_adult(age):\n    while True:\n        pass\n"
    kills = "import os\nimport signal\nos.killpg(0, signal.SIGKILL)\n"
    ends = "import os\nos._exit(0)\n"
    found = await screen(tmp_path, [AGE.format("True"), hangs, kills, ends, "def", AGE.format("age >= 18")])
    assert found.pop(5) == Screened(1, 1)
    assert not any(each.passed for each in found.values())


async def test_each_text_is_loaded_anew_also_if_a_conftest_imports_it(tmp_path: Path) -> None:
    write(tmp_path, {"conftest.py": CONFTEST})
    found = await screen(tmp_path, [AGE.format(each) for each in ("True", "False", "True", "age >= 18")])
    assert [found[number].passed for number in range(4)] == [0, 1, 0, 1]


async def test_forged_results_are_only_a_hint(tmp_path: Path) -> None:
    forged = (
        "import os\nwith open(os.environ['HANDRAIL_SCREENING_FOLDER'] + '/screened', 'a') as stream:\n"
        "    stream.write('0 1 1\\n9 x 1\\n99999 1 1\\n\\u00b2 1 1\\n' + '9' * 5000 + ' 1 1\\n')\n"
    ) + AGE.format("True")
    found = await screen(tmp_path, [forged])
    assert set(found) == {0}  # the text itself is tested alone afterwards, so a forged pass wins nothing


async def test_no_further_text_is_begun_after_the_time(tmp_path: Path) -> None:
    files = {"age.py": AGE.format("True"), "test_age.py": TESTS}
    commit(write(tmp_path, files))
    async with open_candidates(checks_of(tmp_path), [command_check(PYTEST, SECONDS)]) as candidates:
        before = await candidates.before()
        assert await candidates.screen({}, "age.py", [AGE.format("False")] * 3, before.failing, 0.0) == {}


async def test_a_skipped_test_is_no_failure(tmp_path: Path) -> None:
    tests = f"import pytest\n{TESTS}\n\ndef test_later():\n    pytest.skip('not yet')\n"
    found = await screen(tmp_path, [AGE.format("age >= 18")], every=True, tests=tests)
    assert found[0].all_passed


@pytest.mark.parametrize("plugin", ["import age\n", "import threading\nthreading.Timer(60, print).start()\n"])
async def test_where_a_plugin_loads_the_file_or_starts_a_thread_nothing_is_screened(
    tmp_path: Path, plugin: str
) -> None:
    files = {"age.py": AGE.format("True"), "test_age.py": TESTS, "plugged.py": plugin}
    commit(write(tmp_path, files))
    check = command_check(f"{PYTEST} -p plugged", SECONDS)
    check = check._replace(alone=lambda issue: (*check.words[:3], "-p", "plugged", issue.test))
    async with open_candidates(checks_of(tmp_path), [check]) as candidates:
        before = await candidates.before()
        assert candidates.screens
        assert await candidates.screen({}, "age.py", [AGE.format("False")], before.failing, SECONDS) == {}
        assert not candidates.screens


@pytest.mark.parametrize("runner", [f"{sys.executable} -m unittest -q", "true"])
async def test_other_runners_are_not_screened(tmp_path: Path, runner: str) -> None:
    commit(write(tmp_path, {"age.py": AGE.format("True"), "test_age.py": TESTS}))
    async with open_candidates(checks_of(tmp_path), [command_check(runner, SECONDS)]) as candidates:
        assert not candidates.screens
