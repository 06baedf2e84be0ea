"""Defects seeded in a small project are found, each at its place; the project itself has none."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from handrail.verification.consistency.check import check_consistency
from handrail.verification.consistency.source_tree import TouchedFile
from tests.verification.consistency.project import FILES, issues_after, write


class Seed(NamedTuple):
    name: str
    change: Mapping[str, str | None]
    where: str
    """Path and line of the issue."""
    words: str
    """Part of its message."""


def changed(path: str, old: str, new: str) -> dict[str, str | None]:
    assert old in FILES[path]
    return {path: FILES[path].replace(old, new)}


SEEDS = [
    Seed(
        "relative module",
        changed("src/shop/report.py", ".util.text", ".util.texts"),
        "src/shop/report.py:2",
        "`.util.texts` does not exist",
    ),
    Seed(
        "relative name",
        changed("src/shop/report.py", "import short", "import shorten"),
        "src/shop/report.py:2",
        "no name `shorten`",
    ),
    Seed(
        "submodule",
        changed("src/shop/report.py", "import text\n", "import texts\n"),
        "src/shop/report.py:1",
        "no name `texts`",
    ),
    Seed(
        "absolute module",
        changed("src/shop/cart.py", "shop.prices", "shop.price"),
        "src/shop/cart.py:1",
        "`shop.price` does not exist",
    ),
    Seed(
        "absolute name",
        changed("src/shop/cart.py", "import total", "import totals"),
        "src/shop/cart.py:1",
        "no name `totals`",
    ),
    Seed(
        "plain import",
        changed("src/shop/cli.py", "import shop.prices\n", "import shop.pricing\n"),
        "src/shop/cli.py:1",
        "`shop.pricing` does not exist",
    ),
    Seed(
        "name in a test",
        changed("tests/test_cart.py", "Cart, LIMIT\n", "Cart, LIMITS\n"),
        "tests/test_cart.py:2",
        "no name `LIMITS`",
    ),
    Seed(
        "import in a function",
        {"src/shop/new.py": "def f():\n    from shop.cart import Basket\n    return Basket\n"},
        "src/shop/new.py:2",
        "no name `Basket`",
    ),
    Seed(
        "import for types",
        {
            "src/shop/new.py": (
                "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from shop.cart import Basket\n"
            )
        },
        "src/shop/new.py:3",
        "no name `Basket`",
    ),
    Seed(
        "star import hides nothing",
        {
            "src/shop/new.py": "from shop.cart import *\n",
            "src/shop/newer.py": "from shop.new import Cart, Kart\n",
        },
        "src/shop/newer.py:1",
        "no name `Kart`",
    ),
    Seed(
        "list of exports",
        changed("src/shop/__init__.py", '"total"', '"totals"'),
        "src/shop/__init__.py:3",
        "`__all__` lists `totals`",
    ),
    Seed(
        "known undeclared dependency",
        {"src/shop/new.py": "import numpy as np\n"},
        "src/shop/new.py:1",
        "numpy is not a declared dependency",
    ),
    Seed(
        "dependency of another name",
        {"src/shop/new.py": "from bs4 import BeautifulSoup\n"},
        "src/shop/new.py:1",
        "beautifulsoup4 is not a declared",
    ),
    Seed(
        "invented dependency",
        {"src/shop/new.py": "import superfastcart\n"},
        "src/shop/new.py:1",
        "superfastcart is not a declared",
    ),
    Seed(
        "undeclared dependency in a function",
        {"src/shop/new.py": "def f():\n    import pandas\n    return pandas\n"},
        "src/shop/new.py:2",
        "pandas is not a declared",
    ),
    Seed(
        "dependency removed",
        changed("pyproject.toml", ', "PyYAML"', ""),
        "src/shop/prices.py:2",
        "pyyaml is not a declared dependency any more",
    ),
    Seed(
        "deleted module",
        {"src/shop/util/text.py": None},
        "src/shop/report.py:2",
        "`.util.text` does not exist any more",
    ),
    Seed(
        "deleted submodule, imported by name",
        {"src/shop/util/text.py": None},
        "src/shop/report.py:1",
        "no name `text` any more",
    ),
    Seed(
        "deleted function, imported elsewhere",
        changed("src/shop/prices.py", "def total(items): return sum(map(taxed, items))\n", ""),
        "src/shop/cart.py:1",
        "no name `total` any more",
    ),
    Seed(
        "deleted function, exported elsewhere",
        changed("src/shop/prices.py", "def total(items)", "def totals(items)"),
        "src/shop/__init__.py:2",
        "no name `total` any more",
    ),
    Seed(
        "deleted function, used as an attribute",
        changed("src/shop/prices.py", "def discount(item): return item - 1\n", ""),
        "src/shop/cli.py:4",
        "`shop.prices.discount` was deleted",
    ),
    Seed(
        "deleted function, used by an alias",
        changed("src/shop/prices.py", "def total(items)", "def totals(items)"),
        "src/shop/cli.py:4",
        "`p.total` was deleted",
    ),
    Seed(
        "deleted constant, used in its module",
        changed("src/shop/prices.py", "RATE = 2\n", ""),
        "src/shop/prices.py:6",
        "`RATE` was deleted",
    ),
    Seed(
        "deleted constant, used in a test",
        changed("src/shop/cart.py", "LIMIT = 10", "MAX = 10"),
        "tests/test_cart.py:2",
        "no name `LIMIT` any more",
    ),
    Seed(
        "deleted method",
        changed("src/shop/cart.py", "    def is_full(self): return len(self.items) > LIMIT\n", ""),
        "src/shop/cart.py:7",
        "`Cart.is_full` was deleted",
    ),
    Seed(
        "deleted script",
        changed("src/shop/cli.py", "def main()", "def run()"),
        "pyproject.toml:4",
        "`shop.cli:main`, which was deleted",
    ),
    Seed(
        "flood of Any",
        {"src/shop/new.py": "from typing import Any\n\ndef f(a: Any, b: Any, c: Any) -> Any: return a\n"},
        "src/shop/new.py:3",
        "4 uses of `Any`",
    ),
    Seed(
        "function of the changelog",
        changed("CHANGELOG.md", "- Add", "- Add `apply_coupon()`\n- Add"),
        "CHANGELOG.md:5",
        "`apply_coupon()`",
    ),
    Seed(
        "relative file",
        changed("web/src/page.tsx", '"./api"', '"./apis"'),
        "web/src/page.tsx:2",
        "`./apis` does not exist",
    ),
    Seed(
        "file with an ending",
        changed("web/src/index.ts", "./api.js", "./apy.js"),
        "web/src/index.ts:2",
        "`./apy.js` does not exist",
    ),
    Seed(
        "named export",
        changed("web/src/page.tsx", "{ load,", "{ fetchItem,"),
        "web/src/page.tsx:2",
        "no export `fetchItem`",
    ),
    Seed(
        "type export",
        changed("web/src/page.tsx", "type Item }", "type Thing }"),
        "web/src/page.tsx:2",
        "no export `Thing`",
    ),
    Seed(
        "default export",
        {"web/src/new.ts": 'import format from "./format";\nexport const f = format;\n'},
        "web/src/new.ts:1",
        "no default export",
    ),
    Seed(
        "through a barrel",
        {"web/src/new.ts": 'import { load, lode } from ".";\nload(lode);\n'},
        "web/src/new.ts:1",
        "no export `lode`",
    ),
    Seed(
        "alias",
        changed("web/src/index.ts", "@/format", "@/formats"),
        "web/src/index.ts:3",
        "`@/formats` does not exist",
    ),
    Seed(
        "undeclared package",
        {"web/src/new.ts": 'import { z } from "zod";\nexport const s = z;\n'},
        "web/src/new.ts:1",
        "zod is not a declared dependency",
    ),
    Seed(
        "undeclared scoped package",
        {"web/src/new.ts": 'import { a } from "@acme/ui/button";\nexport const s = a;\n'},
        "web/src/new.ts:1",
        "@acme/ui is not a declared",
    ),
    Seed(
        "deleted file",
        {"web/src/format/index.ts": None},
        "web/src/page.tsx:3",
        "`./format` does not exist any more",
    ),
    Seed(
        "deleted export",
        changed("web/src/api.ts", "export function load", "export function fetchItem"),
        "web/src/page.tsx:2",
        "no export `load` any more",
    ),
    Seed(
        "deleted export, used in a namespace",
        changed("web/src/format/index.ts", "pad", "fill"),
        "web/src/page.tsx:4",
        "`format.pad` was deleted",
    ),
    Seed(
        "deleted export, exported again elsewhere",
        changed("web/src/format/index.ts", "pad", "fill"),
        "web/src/index.ts:3",
        "no export `pad` any more",
    ),
    Seed(
        "deleted function, used in its module",
        changed("web/src/api.ts", "function parse(id: string): Item { return { name: id } }\n", ""),
        "web/src/api.ts:3",
        "`parse` was deleted",
    ),
    Seed(
        "flood of any",
        {"web/src/new.ts": "export function f(a: any, b: any, c: any): any { return a }\n"},
        "web/src/new.ts:1",
        "4 uses of `any`",
    ),
]


@pytest.mark.promise("CONS-1")
@pytest.mark.parametrize("seed", SEEDS, ids=[seed.name for seed in SEEDS])
def test_seeded_defect_is_found_at_its_line(tmp_path: Path, seed: Seed) -> None:
    found = [(f"{issue.path}:{issue.line}", issue.message) for issue in issues_after(tmp_path, seed.change)]
    assert any(where == seed.where and seed.words in message for where, message in found), found


@pytest.mark.promise("CONS-2")
def test_project_without_defects_has_no_issue_when_all_of_it_was_touched(tmp_path: Path) -> None:
    assert issues_after(tmp_path, FILES) == ()


@pytest.mark.promise("CONS-2")
def test_whole_project_as_new_files_has_no_issue(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    assert check_consistency(tmp_path, [TouchedFile(path, is_new=True) for path in FILES]).issues == ()
