"""Thirty defects, put into a small project one by one: which check finds each and blames the change."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

FILES = {
    "pyproject.toml": """\
[project]
name = "shop"
version = "1"
dependencies = []
[tool.ruff]
[tool.mypy]
strict = true
[tool.pytest.ini_options]
pythonpath = ["src"]
""",
    "CHANGELOG.md": "# Changelog\n\n## [2026-01-02] - prices\n\n- two\n\n## [2026-01-01] - one\n\n- one\n",
    "src/shop/__init__.py": 'from shop.cart import Cart\n\n__all__ = ["Cart"]\n',
    "src/shop/prices.py": '''\
"""Prices in cents."""


def with_tax(cents: int, percent: int = 19) -> int:
    return cents + cents * percent // 100


def discounted(cents: int, percent: int) -> int:
    if percent < 0 or percent > 100:
        raise ValueError("a discount is between 0 and 100 percent")
    return cents - cents * percent // 100


def shown(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"
''',
    "src/shop/cart.py": '''\
"""A cart."""

from shop.prices import discounted, with_tax


class Cart:
    def __init__(self) -> None:
        self._items: dict[str, int] = {}

    def add(self, name: str, cents: int, count: int = 1) -> None:
        if count < 1:
            raise ValueError("at least one")
        self._items[name] = self._items.get(name, 0) + cents * count

    def remove(self, name: str) -> None:
        del self._items[name]

    def total(self, discount: int = 0) -> int:
        return with_tax(discounted(sum(self._items.values()), discount))

    def __len__(self) -> int:
        return len(self._items)
''',
    "tests/test_shop.py": """\
import pytest

from shop import Cart
from shop.prices import discounted, shown, with_tax


def test_tax() -> None:
    assert with_tax(100) == 119
    assert with_tax(200, 7) == 214


def test_discount() -> None:
    assert discounted(100, 25) == 75
    assert discounted(100, 0) == 100
    assert discounted(100, 100) == 0


@pytest.mark.parametrize("percent", [-1, 101])
def test_wrong_discount(percent: int) -> None:
    with pytest.raises(ValueError):
        discounted(100, percent)


def test_shown() -> None:
    assert shown(1234) == "12.34"
    assert shown(5) == "0.05"


def test_cart() -> None:
    cart = Cart()
    cart.add("pen", 100)
    cart.add("pen", 100, 2)
    cart.add("book", 700)
    assert (len(cart), cart.total(), cart.total(10)) == (2, 1190, 1071)
    cart.remove("book")
    assert cart.total() == 357
    with pytest.raises(ValueError):
        cart.add("pen", 1, 0)
""",
}
PRICES, CART, TESTS = "src/shop/prices.py", "src/shop/cart.py", "tests/test_shop.py"


class Defect(NamedTuple):
    check: str
    """One that must find it."""
    path: str
    old: str
    new: str


DEFECTS = (
    Defect("tests", PRICES, "cents + cents * percent", "cents - cents * percent"),
    Defect("tests", PRICES, "= 19", "= 16"),
    Defect("tests", PRICES, "percent // 100\n\n\ndef discounted", "percent // 10\n\n\ndef discounted"),
    Defect("tests", PRICES, "percent < 0 or", "percent < -1 or"),
    Defect("tests", PRICES, "percent > 100", "percent > 101"),
    Defect("tests", PRICES, "percent > 100", "percent >= 100"),
    Defect("tests", PRICES, "cents - cents * percent", "cents - percent"),
    Defect("tests", PRICES, ":02}", "}"),
    Defect("tests", PRICES, "cents % 100", "cents // 10"),
    Defect("tests", PRICES, "raise ValueError", "raise TypeError"),
    Defect("tests", CART, "count < 1", "count < 0"),
    Defect("tests", CART, "cents * count", "cents"),
    Defect("tests", CART, "self._items.get(name, 0) + ", ""),
    Defect("tests", CART, "del self._items[name]", "self._items.get(name)"),
    Defect("tests", CART, "sum(self._items.values())", "max(self._items.values())"),
    Defect("tests", CART, "len(self._items)", "len(self._items) + 1"),
    Defect("tests", CART, ", discount))", ", 0))"),
    Defect("types", PRICES, "-> str:\n    return f", "-> str:\n    return cents if cents > 99999 else f"),
    Defect(
        "types", CART, "name: str, cents: int, count: int = 1", "name: str, cents: int, count: int = None"
    ),
    Defect("types", CART, "self._items: dict[str, int] = {}", "self._items = {}"),
    Defect("types", CART, "def __len__(self) -> int:", "def __len__(self):"),
    Defect("types", CART, "raise ValueError(", "self.missing; raise ValueError("),
    Defect("lint", CART, '"""A cart."""\n', '"""A cart."""\n\nimport os\n'),
    Defect("lint", PRICES, "    return cents + cents", "    unused = 1\n    return cents + cents"),
    Defect(
        "lint",
        PRICES,
        'return f"{cents // 100}.{cents % 100:02}"',
        'return undefined if cents < -1 else f"{cents // 100}.{cents % 100:02}"',
    ),
    Defect("lint", TESTS, "import pytest\n", "import pytest\nimport json\n"),
    Defect("tests", CART, "class Cart:", "class Cart"),
    Defect("consistency", PRICES, "def shown", "def display"),
    Defect("consistency", CART, "from shop.prices import", "import requests\n\nfrom shop.prices import"),
    Defect("docs", "CHANGELOG.md", "## [2026-01-01] - one\n\n- one\n", ""),
)


def run() -> None:
    with tempfile.TemporaryDirectory(prefix="handrail-verify-") as place:
        root = Path(place) / "shop"
        for name, text in FILES.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.com"]
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "sound"]):
            subprocess.run([*git, *words], cwd=root, check=True)
        print(f"sound: {look(root, place)['status']}")
        found = 0
        for number, defect in enumerate(DEFECTS, start=1):
            file = root / defect.path
            before = file.read_text()
            if defect.old not in before:
                raise SystemExit(f"{defect.path} does not have {defect.old!r}")
            file.write_text(before.replace(defect.old, defect.new, 1))
            verdict = look(root, place)
            file.write_text(before)
            issues = {
                check["name"]: [issue for issue in check["issues"] if issue["origin"] == "change"]
                for check in verdict["checks"]
            }
            hit = bool(issues.get(defect.check)) and (verdict["status"] == "failed" or defect.check == "docs")
            found += hit
            by = ", ".join(name for name, each in issues.items() if each) or "nothing"
            print(
                f"{number:>2} {'found' if hit else 'MISSED'} by {by}: {defect.new.strip()[:60]!r}", flush=True
            )
        print(f"{found} of {len(DEFECTS)} found")


def look(root: Path, place: str) -> Any:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "HANDRAIL_HOME": f"{place}/home", "PATH": path}
    environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    words = [sys.executable, "-P", "-m", "handrail", "verify", "--json", "-C", str(root)]
    done = subprocess.run(words, env=environ, capture_output=True, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise SystemExit(done.stderr.decode()) from error
