"""A small project in Python and TypeScript, and changes to it."""

from collections.abc import Mapping
from pathlib import Path

from handrail.tools.reports.issue import Issue
from handrail.verification.consistency.check import check_consistency
from handrail.verification.consistency.source_tree import TouchedFile

FILES = {
    "pyproject.toml": """\
[project]
name = "shop"
dependencies = ["requests>=2", "PyYAML"]
scripts = { shop = "shop.cli:main" }
[dependency-groups]
dev = ["pytest"]
[project.optional-dependencies]
images = ["pillow"]
""",
    "src/shop/__init__.py": """\
from shop.cart import Cart
from shop.prices import total
__all__ = ["Cart", "total"]
""",
    "src/shop/cart.py": """\
from shop.prices import total

LIMIT = 10

class Cart:
    def add(self, item): self.items = [item]
    def check(self): return self.is_full()
    def is_full(self): return len(self.items) > LIMIT
    def price(self): return total(self.items)
""",
    "src/shop/prices.py": """\
import requests
import yaml

RATE = 2

def total(items): return sum(map(taxed, items))
def taxed(item): return item * RATE
def discount(item): return item - 1
""",
    "src/shop/cli.py": (
        "import shop.prices\n"
        "from shop import prices as p\n"
        "\n"
        "def main(): return shop.prices.discount(p.total([]))\n"
    ),
    "src/shop/util/__init__.py": "",
    "src/shop/util/text.py": "def short(text): return text[:10]\n",
    "src/shop/report.py": (
        "from .util import text\n"
        "from .util.text import short\n"
        "\n"
        "def line(): return text.short('') + short('')\n"
    ),
    "tests/test_cart.py": (
        "import pytest\nfrom shop.cart import Cart, LIMIT\n\ndef test_cart(): assert Cart and LIMIT\n"
    ),
    "CHANGELOG.md": "# Changelog\n\n## [2026-01-02] - Carts\n\n- Add `total()`\n",
    "web/package.json": '{"name": "web", "dependencies": {"react": "1"}, "devDependencies": {"vitest": "1"}}',
    "web/tsconfig.json": '{"compilerOptions": {"paths": {"@/*": ["./src/*"]}, /* text */ "baseUrl": ".",}}',
    "web/src/api.ts": """\
export const base = "/api";
export interface Item { name: string }
export function load(id: string): Item { return parse(id) }
function parse(id: string): Item { return { name: id } }
export default function client() { return load("1") }
""",
    "web/src/index.ts": (
        'export * from "./api";\n'
        'export { default as client } from "./api.js";\n'
        'export { pad } from "@/format";\n'
    ),
    "web/src/format/index.ts": "export const pad = (text: string) => text;\nexport type Width = number;\n",
    "web/src/page.tsx": """\
import React from "react";
import client, { load, type Item } from "./api";
import * as format from "./format";
export function Page(item: Item) { return <p>{format.pad(load(client().name).name)}</p> }
""",
}
"""A project without a defect."""


def write(root: Path, files: Mapping[str, str | None]) -> None:
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            target.unlink()
        else:
            target.write_text(text)


def issues_after(
    root: Path, change: Mapping[str, str | None], files: Mapping[str, str] = FILES
) -> tuple[Issue, ...]:
    """What is found after a change to a project; None deletes a file."""
    write(root, files)
    write(root, change)
    return check_consistency(root, [touched(files, path) for path in change]).issues


def touched(files: Mapping[str, str], path: str) -> TouchedFile:
    if path not in files:
        return TouchedFile(path, is_new=True)
    return TouchedFile(path, files[path].encode())
