"""docs/promises.md and the tests agree: each promise is held by a test, each marker names a promise."""

import ast
import re
from collections import Counter

import pytest

from tests.project.source import ROOT, tree

ROW = re.compile(r"^\| *([A-Z]+-\d+) *\| *(\S.*?) *\|$")
PROMISES = ROOT / "docs" / "promises.md"


def promised() -> list[str]:
    """The ids in the document, in its order."""
    lines = PROMISES.read_text(encoding="utf-8").splitlines()
    return [row[1] for line in lines if (row := ROW.match(line))]


def held() -> dict[str, list[str]]:
    """{id: tests that carry it}."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.promise":
                place = f"{path.relative_to(ROOT)}:{node.lineno}"
                for name in node.args:
                    assert isinstance(name, ast.Constant), f"{place}: write the id as plain text"
                    found.setdefault(str(name.value), []).append(place)
    return found


@pytest.mark.promise("PROJ-3")
def test_every_promise_is_held_by_a_test() -> None:
    missing = sorted(set(promised()) - set(held()))
    assert not missing, f"promised in docs/promises.md, held by no test: {missing}"


def test_every_marker_names_a_promise() -> None:
    known = set(promised())
    unknown = {name: places for name, places in held().items() if name not in known}
    assert not unknown, f"markers without a row in docs/promises.md: {unknown}"


def test_no_promise_is_listed_twice() -> None:
    assert not [name for name, count in Counter(promised()).items() if count > 1]


def test_every_table_row_is_a_promise_that_can_be_read() -> None:
    lines = PROMISES.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("|") and not re.match(r"^\| *(id|-+) *\|", line)]
    assert rows
    assert not [line for line in rows if not ROW.match(line)]
