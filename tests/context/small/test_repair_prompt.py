"""What a small model is asked in each attempt: one function, the likeliest first."""

from pathlib import Path

import pytest

from handrail.context.small.prompt import small_prompt
from handrail.context.small.repair_prompt import SHOWN_WHOLE, relevant_lines
from handrail.context.small.strategy import SMALL
from handrail.context.strategy import Attempt, Briefing
from handrail.protocol.events import CheckFinished
from handrail.workspace.files import Workspace

CART = """\
def subtotal(items):
    return sum(items)


def total(items):
    return subtotal(items) - 1
"""
TEST = """\
import unittest
from cart import total


class CartTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1]), 1)
"""
OUTPUT = """\
FAIL: test_total (test_cart.CartTest.test_total)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "{root}/test_cart.py", line 7, in test_total
    self.assertEqual(total([1]), 1)
AssertionError: 0 != 1

----------------------------------------------------------------------
Ran 1 test in 0.000s

FAILED (failures=1)
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "cart.py").write_text(CART)
    (tmp_path / "other.py").write_text("def unrelated():\n    return 1\n")
    (tmp_path / "test_cart.py").write_text(TEST)
    return Workspace(tmp_path)


def asked(
    workspace: Workspace, number: int, *, output: str = OUTPUT, task: str = "fix", passed: bool = False
) -> Briefing:
    content = output.format(root=workspace.root)
    before = CheckFinished(turn_id="t", check_id="v", passed=passed, summary="", content=content)
    prompt = small_prompt(workspace, (), checked=True)
    return SMALL.brief_attempt(workspace, prompt, Attempt(number, task, "python3 -m unittest", before))


def about(briefing: Briefing) -> tuple[str, str]:
    assert briefing.rewrite
    return (briefing.rewrite.path, briefing.rewrite.name)


@pytest.mark.promise("EMB-18")
def test_function_that_the_failing_test_speaks_of_comes_first(workspace: Workspace) -> None:
    briefing = asked(workspace, 1)
    assert about(briefing) == ("cart.py", "total")
    assert briefing.rewrite
    assert briefing.rewrite.kept == "def total(items):\n"
    assert [(seen.path, seen.whole) for seen in briefing.files] == [("test_cart.py", True), ("cart.py", True)]
    assert "AssertionError: 0 != 1" in briefing.text
    assert "FAILED" not in briefing.text
    assert briefing.text.endswith("Answer with the corrected `total` in one code block.")
    assert "unrelated" not in briefing.text


def test_now_and_then_the_whole_file_is_asked_for(workspace: Workspace) -> None:
    asks = [about(asked(workspace, number)) for number in range(1, 9)]
    assert asks.count(("cart.py", "")) == 1
    assert asks.count(("cart.py", "total")) == 7


def test_where_no_function_is_spoken_of_a_file_is(workspace: Workspace) -> None:
    missing = "ImportError: cannot import name 'refund' from 'cart' ({root}/cart.py)"
    assert {about(asked(workspace, number, output=missing))[1] for number in range(1, 5)} == {""}


def test_the_users_words_choose_when_the_check_passes_already(workspace: Workspace) -> None:
    briefing = asked(workspace, 1, task="make unrelated return 2", passed=True)
    assert about(briefing) == ("other.py", "unrelated")
    assert "passes, and still has to" in briefing.text


def test_of_a_long_file_only_what_matters_is_shown(workspace: Workspace, tmp_path: Path) -> None:
    filler = "".join(f"def f{number}():\n    return {number}\n\n\n" for number in range(150))
    (tmp_path / "cart.py").write_text(filler + CART)
    (tmp_path / "test_cart.py").write_text(TEST + "# long\n" * 1_000)
    briefing = asked(workspace, 1)
    assert about(briefing) == ("cart.py", "total")
    assert "f149" not in briefing.text
    assert "(a part of it)" in briefing.text
    assert not any(seen.whole for seen in briefing.files)
    assert len(briefing.text) < 2 * SHOWN_WHOLE


def test_where_nothing_is_small_enough_the_model_looks_itself(tmp_path: Path) -> None:
    (tmp_path / "big.py").write_text("x = 1\n" * 5_000)
    briefing = asked(Workspace(tmp_path), 1)
    assert briefing.rewrite is None
    assert "fails now" in briefing.text


def test_a_file_with_a_code_fence_is_not_rewritten_because_the_fence_would_end_it(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text('def total(items):\n    """\n    ```\n    """\n    return 1\n')
    assert asked(Workspace(tmp_path), 1).rewrite is None


def test_telling_lines_of_a_javascript_runner() -> None:
    output = (
        "TAP version 13\n# Subtest: adds\nnot ok 1 - adds\n  ---\n  duration_ms: 1.2\n  type: 'test'\n"
        "  location: '/p/a.test.js:4:1'\n  failureType: 'testCodeFailure'\n  error: |-\n"
        "    Expected values to be strictly equal:\n    \n    3 !== 2\n    \n  code: 'ERR_ASSERTION'\n"
        "  stack: |-\n    TestContext.<anonymous> (/p/a.test.js:5:10)\n    at node:internal/x:1\n  ...\n"
        "1..1\n"
    )
    assert relevant_lines(output, "/p").splitlines() == [
        "not ok 1 - adds",
        "  error: |-",
        "    Expected values to be strictly equal:",
        "    3 !== 2",
        "    TestContext.<anonymous> (a.test.js:5:10)",
    ]
