"""A small model's answers are tried in a copy: none twice, the best is kept, all or nothing at the end."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from handrail.models.model import Request
from tests.engine.search.small_model import SmallModel, run_check

pytestmark = pytest.mark.anyio

CALC = "def double(number):\n    return number + 1\n\n\ndef half(number):\n    return number // 3\n"
TESTS = """\
import unittest

from calc import double, half
from tests.helpers import nine


class CalcTest(unittest.TestCase):
    def test_double(self):
        self.assertEqual(double(4), 8)

    def test_half(self):
        self.assertEqual(half(nine()), 4)
"""
HELPERS = "def nine():\n    return 9\n"
FILES = {"calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": TESTS, "tests/helpers.py": HELPERS}
ONE_BUG = {**FILES, "calc.py": CALC.replace("// 3", "// 2")}


def is_for(request: Request, name: str) -> bool:
    return f"def {name}(" in request.prefill


def in_turn(*answers: str) -> SmallModel:
    """Gives these answers, one after the other, and the last for ever."""
    left = list(answers)
    return SmallModel(lambda _request: left.pop(0) if len(left) > 1 else left[0])


@pytest.mark.promise("EMB-18")
async def test_unchanged_and_repeated_answers_are_never_run_and_change_the_question(tmp_path: Path) -> None:
    same, wrong, right = "    return number + 1\n", "    return number + 40\n", "    return number * 2\n"
    model = in_turn(same, wrong, f"{wrong}\n\nprint(double(1))\n", right)
    tried = await run_check(tmp_path, model, ONE_BUG)
    assert tried.reason == "answered"
    assert tried.results == ["unchanged", "failed", "repeated", "unusable", "passed"]
    assert len({each.key for each in tried.candidates}) == 5
    assert tried.text("calc.py") == ONE_BUG["calc.py"].replace("+ 1", "* 2")


@pytest.mark.promise("EMB-20")
async def test_files_of_the_tests_are_closed_so_that_nothing_is_asked_about_them(tmp_path: Path) -> None:
    model = in_turn("    return 8\n")
    tried = await run_check(tmp_path, model, ONE_BUG)
    assert tried.reason == "unverified"
    assert {each.path for each in tried.candidates} == {"calc.py"}
    assert all("correct `nine`" not in asked for asked in model.asked)
    assert {path: tried.text(path) for path in ONE_BUG} == ONE_BUG


def by_function(corrected: Mapping[str, str]) -> SmallModel:
    def answer(request: Request) -> str:
        found = [
            text for name, text in corrected.items() if request.prefill.endswith(f"def {name}(number):\n")
        ]
        return found[0] if found else "    return 0\n"

    return SmallModel(answer)


@pytest.mark.promise("EMB-21")
async def test_each_step_starts_from_the_best_files_so_far(tmp_path: Path) -> None:
    model = by_function({"double": "    return number * 2\n", "half": "    return number // 2\n"})
    tried = await run_check(tmp_path, model, FILES)
    assert tried.reason == "answered"
    assert [each for each in tried.results if each in ("better", "passed")] == ["better", "passed"]
    assert [(each.passing, each.total) for each in tried.candidates if each.text] == [(1, 2), (2, 2)]
    assert tried.text("calc.py") == CALC.replace("+ 1", "* 2").replace("// 3", "// 2")


@pytest.mark.promise("EMB-21")
async def test_progress_alone_changes_nothing_in_the_workspace(tmp_path: Path) -> None:
    tried = await run_check(tmp_path, by_function({"double": "    return number * 2\n"}), FILES)
    assert tried.reason == "unverified"
    assert "1 of 2 tests pass" in tried.detail
    assert {path: tried.text(path) for path in FILES} == FILES


STUBS = '"""Sums."""\n\n\ndef add(a, b):\n    pass\n\n\ndef sub(a, b):\n    pass\n\n\ndef neg(a):\n    ...\n'
STUB_TESTS = """\
import unittest

from sums import add, neg, sub


class SumsTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)

    def test_sub(self):
        self.assertEqual(sub(1, 2), -1)

    def test_neg(self):
        self.assertEqual(neg(5), -5)
"""
PROGRAM = {"sums.py": STUBS, "test_sums.py": STUB_TESTS, "SPEC.md": "The sum of two cats is purple.\n"}


@pytest.mark.promise("EMB-21")
async def test_file_of_stubs_is_written_as_a_whole_with_the_description_and_then_corrected(
    tmp_path: Path,
) -> None:
    def answer(request: Request) -> str:
        if request.prefill.endswith('"""Sums."""\n\n\n'):
            return (
                "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return b - a\n\n\n"
                "def neg(a):\n    return -a\n"
            )
        return "    return a - b\n" if request.prefill.endswith("def sub(a, b):\n") else "    return a\n"

    model = SmallModel(answer)
    tried = await run_check(tmp_path, model, PROGRAM, task="Write sums.py as SPEC.md describes it")
    assert tried.reason == "answered"
    assert [(each.asked, each.result, each.passing) for each in tried.candidates] == [
        ("file", "better", 2),
        ("file", "repeated", 0),
        ("file", "repeated", 0),
        ("function", "passed", 3),
    ]
    assert all("The sum of two cats is purple." in asked for asked in model.asked)
    assert all("Write sums.py as SPEC.md describes it" in asked for asked in model.asked)
    assert "return a - b" in tried.text("sums.py")


@pytest.mark.promise("EMB-21")
async def test_functions_of_several_drafts_are_put_together_without_the_model(tmp_path: Path) -> None:
    add, sub, neg = "def add(a, b):\n    {}\n\n\n", "def sub(a, b):\n    {}\n\n\n", "def neg(a):\n    {}\n"
    drafts = [
        add.format("return a + b") + sub.format("return b - a") + neg.format("return a"),
        add.format("return 1 - a") + sub.format("return a - b") + neg.format("return 0"),
        add.format("return 0 - b") + sub.format("return b") + neg.format("return -a"),
        add.format("return b") + sub.format("return a") + neg.format("return 1"),
    ]
    model = in_turn(*drafts)
    tried = await run_check(tmp_path, model, PROGRAM, task="Write sums.py as SPEC.md describes it")
    assert tried.reason == "answered"
    assert len(model.asked) == len(drafts)
    assert all("return" not in asked.partition("### sums.py")[2] for asked in model.asked)
    assert [each.asked for each in tried.candidates if each.result in ("better", "passed")] == [
        "file",
        "graft",
        "graft",
    ]
    assert tried.text("sums.py").count("return") == 3


async def test_missing_file_that_the_tests_import_is_written(tmp_path: Path) -> None:
    files = {path: text for path, text in PROGRAM.items() if path != "sums.py"}
    add, sub, neg = (
        "def add(a, b):\n    return a + b\n",
        "def sub(a, b):\n    return a - b\n",
        "neg = lambda a: -a\n",
    )
    code = f"{add}\n\n{sub}\n\n{neg}"
    tried = await run_check(tmp_path, in_turn(code), files, task="make the tests pass")
    assert tried.reason == "answered"
    assert tried.text("sums.py") == code


def weigh(prefill: str) -> Mapping[str, float]:
    """It would rather multiply, and knows that it may go on as before."""
    return {" *": 0.6, " +": 0.3} if prefill.endswith("return number") else {"x": 0.001}


@pytest.mark.promise("EMB-18")
async def test_a_weighed_line_is_completed_where_it_becomes_another(tmp_path: Path) -> None:
    model = SmallModel(lambda request: " 2" if request.prefill.endswith("*") else " 7", weigh)
    tried = await run_check(tmp_path, model, ONE_BUG)
    assert tried.results[0] == "passed"
    assert tried.candidates[0].change == "return number * 2"
    request = model.requests[0]
    assert request.prefill == "```python\ndef double(number):\n    return number *"
    assert request.stop == ("\n", "```")


@pytest.mark.promise("EMB-20")
@pytest.mark.parametrize(
    "answer",
    [
        "    if number == 4:\n        return 8\n    return number\n",
        "    import unittest\n    return 8 if number else unittest\n",
    ],
)
async def test_code_that_answers_the_test_alone_is_not_taken(tmp_path: Path, answer: str) -> None:
    tried = await run_check(tmp_path, in_turn(answer), ONE_BUG, attempts=1)
    assert tried.reason == "unverified"
    assert set(tried.results) == {"unusable"}


SHOP = """\
class Shop:
    def __init__(self, stock):
        self.stock = stock
        self.log = []

    def take(self, count):
        if count > self.stock:
            return False
        self.stock -= count
        self.log.append(count)
        return True

    def put(self, count):
        self.stock += count
        self.log.append(count)
"""
SHOP_TESTS = """\
import unittest

from shop import Shop


class ShopTest(unittest.TestCase):
    def test_take(self):
        shop = Shop(5)
        self.assertTrue(shop.take(3))
        self.assertEqual((shop.stock, shop.log), (2, [3]))
        self.assertFalse(shop.take(3))
        self.assertTrue(shop.take(2))

    def test_put(self):
        shop = Shop(5)
        shop.put(1)
        self.assertEqual(shop.stock, 6)
"""


@pytest.mark.promise("EMB-22")
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("-= count", "+= count"),
        ("if count > self", "if count >= self"),
        ("        self.log.append(count)\n        return", "        return"),
    ],
    ids=["sign", "comparison", "missing-line"],
)
async def test_a_usual_slip_is_corrected_without_the_model(tmp_path: Path, right: str, wrong: str) -> None:
    files = {"shop.py": SHOP.replace(right, wrong), "test_shop.py": SHOP_TESTS}
    tried = await run_check(tmp_path, in_turn("    pass\n"), files)
    assert tried.reason == "answered"
    assert sorted(tried.text("shop.py").splitlines()) == sorted(SHOP.splitlines())
    assert "passed" in [each.result for each in tried.edits]


AGE = "def is_adult(age):\n    return {}\n"
WEAK = "from age import is_adult\n\n\ndef test_age():\n    assert is_adult(30)\n    assert not is_adult(1)\n"
WITHOUT_PLUGINS = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"


@pytest.mark.promise("EMB-23")
async def test_changes_that_pass_weak_tests_and_differ_are_named_with_an_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WITHOUT_PLUGINS, "1")
    files = {"age.py": AGE.format("age < 18"), "test_age.py": WEAK}
    tried = await run_check(tmp_path, in_turn("    return None\n"), files, check=PYTEST)
    assert tried.reason == "answered"
    assert "the tests do not decide" in tried.detail
    assert re.search(r"`is_adult\(\d+\)` gives `(True|False) \d+` with one and", tried.detail)


@pytest.mark.promise("EMB-23")
async def test_of_changes_that_pass_the_one_that_the_model_finds_much_likelier_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WITHOUT_PLUGINS, "1")

    def weigh(prefill: str) -> Mapping[str, float]:
        return {" >=": 0.9, " >": 0.01} if prefill.endswith("return age") else {"x": 0.001}

    files = {"age.py": AGE.format("age < 18"), "test_age.py": WEAK}
    tried = await run_check(tmp_path, SmallModel(lambda _: "    return None\n", weigh), files, check=PYTEST)
    assert tried.reason == "answered"
    assert tried.text("age.py") == AGE.format("age >= 18")


EDGES = WEAK.replace("is_adult(30)", "is_adult(18)").replace("is_adult(1)", "is_adult(17)")


@pytest.mark.promise("EMB-23")
@pytest.mark.parametrize(("tests", "decided"), [(WEAK, False), (EDGES, True)], ids=["weak", "edges"])
async def test_a_change_is_doubted_if_the_tests_do_not_notice_a_slip_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tests: str, decided: bool
) -> None:
    monkeypatch.setenv(WITHOUT_PLUGINS, "1")
    files = {"age.py": AGE.format("None"), "test_age.py": tests}
    tried = await run_check(tmp_path, in_turn("    return age >= 18\n"), files, check=PYTEST)
    assert tried.text("age.py") == AGE.format("age >= 18")
    assert ("do not decide" not in tried.detail) == decided


@pytest.mark.promise("EMB-24")
@pytest.mark.parametrize("stub", ["None", "age > 21"], ids=["stub", "wrong"])
async def test_an_answer_that_is_nearly_right_is_corrected_by_a_small_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stub: str
) -> None:
    monkeypatch.setenv(WITHOUT_PLUGINS, "1")
    files = {"age.py": AGE.format(stub), "test_age.py": EDGES}
    tried = await run_check(
        tmp_path, in_turn("    adult = age > 18\n    return adult\n"), files, check=PYTEST
    )
    assert tried.reason == "answered"
    assert tried.text("age.py") == "def is_adult(age):\n    adult = age >= 18\n    return adult\n"


async def test_documentation_with_a_fenced_example_is_no_end_of_the_code(tmp_path: Path) -> None:
    start = (
        'def double(number):\n    """Twice as much.\n\n'
        '    ```pycon\n    >>> double(2)\n    4\n\n    ```\n    """\n'
        "    return None\n"
    )
    tests = (
        "import unittest\n\nfrom calc import double\n\n\nclass Double(unittest.TestCase):\n"
        "    def test_double(self):\n        self.assertEqual(double(2), 4)\n"
        "        self.assertEqual(double(3), 6)\n"
    )
    model = in_turn("    return number * 2\n```\nDone.")
    tried = await run_check(tmp_path, model, {"calc.py": start, "test_calc.py": tests})
    assert tried.reason == "answered"
    assert tried.text("calc.py") == start.replace("None", "number * 2")
    assert "### calc.py\n````python\n" in model.asked[0]
    assert model.requests[0].prefill.startswith("````python\n")


NAMED = "from typing import NamedTuple\n\n\nclass Person(NamedTuple):\n    name: str\n    age: int\n"
FROZEN = (
    "from dataclasses import dataclass\n\n\n"
    "@dataclass(frozen=True)\nclass Person:\n    name: str\n    age: int\n"
)
PERSON = "\n\ndef is_adult(person):\n    return {}\n"
PERSONS = """\
from age import Person, is_adult


def test_age():
    assert is_adult(Person("Ann", 19))
    assert not is_adult(Person("Ben", 17))
"""


@pytest.mark.promise("EMB-23")
@pytest.mark.parametrize("definition", [NAMED, FROZEN], ids=["named-tuple", "frozen-dataclass"])
async def test_fields_of_objects_that_cannot_be_changed_are_varied_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, definition: str
) -> None:
    monkeypatch.setenv(WITHOUT_PLUGINS, "1")
    files = {"age.py": definition + PERSON.format("None"), "test_age.py": PERSONS}
    tried = await run_check(tmp_path, in_turn("    return person.age >= 18\n"), files, check=PYTEST)
    assert tried.text("age.py") == definition + PERSON.format("person.age >= 18")
    assert "the tests do not decide" in tried.detail


async def test_where_the_check_passes_already_the_users_words_say_what_to_change(tmp_path: Path) -> None:
    files = {
        "calc.py": ONE_BUG["calc.py"].replace("+ 1", "* 2"),
        **{p: t for p, t in FILES.items() if p != "calc.py"},
    }
    model = in_turn("    return int(number // 2)\n")
    tried = await run_check(tmp_path, model, files, task="make half return an int")
    assert tried.reason == "answered"
    assert tried.candidates[0].name == "half"
    assert "passes, and still has to" in model.asked[0]


async def test_a_command_that_names_no_tests_decides_by_its_exit_status(tmp_path: Path) -> None:
    model = in_turn("    return number * 2\n")
    check = "python3 -c 'import calc; assert calc.double(4) == 8'"
    tried = await run_check(tmp_path, model, {"calc.py": "def double(number):\n    return 0\n"}, check=check)
    assert tried.reason == "answered"


async def test_an_answer_that_never_ends_is_stopped(tmp_path: Path) -> None:
    model = in_turn("    import time\n    time.sleep(60)\n", "    return number * 2\n")
    tried = await run_check(tmp_path, model, ONE_BUG)
    assert tried.results == ["failed", "passed"]
