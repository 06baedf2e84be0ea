"""Which tests decide about a candidate."""

import sys
from pathlib import Path

import pytest

from handrail.verification.candidates import open_candidates
from handrail.verification.detect.command import command_check
from tests.verification.projects import checks_of, commit, write

pytestmark = pytest.mark.anyio
AGE = "def is_adult(age):\n    return {}\n\n\ndef is_child(age):\n    return age == 3\n"
TESTS = """\
from age import is_adult, is_child


def test_adult():
    assert is_adult(30)


def test_young():
    assert not is_adult(17)


def test_child():
    assert is_child(5)
"""
YOUNG, CHILD = "test_age.py::test_young", "test_age.py::test_child"


@pytest.mark.promise("BUILD-24")
async def test_failing_tests_that_a_task_is_not_about_may_go_on_failing(tmp_path: Path) -> None:
    commit(write(tmp_path, {"age.py": AGE.format("True"), "test_age.py": TESTS}))
    check = command_check(f"{sys.executable} -m pytest -q", 60.0)
    async with open_candidates(checks_of(tmp_path), [check]) as candidates:
        before = await candidates.before((YOUNG,))
        assert before.names == (YOUNG,)
        assert "test_child" not in before.output
        right = await candidates.test({"age.py": AGE.format("age >= 18")})
        assert right.passed
        found = await candidates.screen({}, "age.py", [AGE.format("age >= 18"), AGE.format("0")], (), 60.0)
        assert [found[number].all_passed for number in range(2)] == [True, False]
        wrong = await candidates.test({"age.py": AGE.format("False")})
        assert wrong.names == ("test_age.py::test_adult",)
        assert not wrong.passed
        broken = await candidates.test({"age.py": "import nothing"})
        assert not broken.passed


async def test_where_the_named_tests_do_not_fail_all_that_fail_decide(tmp_path: Path) -> None:
    commit(write(tmp_path, {"age.py": AGE.format("True"), "test_age.py": TESTS}))
    check = command_check(f"{sys.executable} -m pytest -q", 60.0)
    async with open_candidates(checks_of(tmp_path), [check]) as candidates:
        before = await candidates.before(("test_age.py::test_adult",))
        assert set(before.names) == {YOUNG, CHILD}
        assert not (await candidates.test({"age.py": AGE.format("age >= 18")})).passed
