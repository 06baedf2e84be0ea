"""What looks broken to a simple reader, and is not; and hostile files."""

import os
import shutil
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path

import pytest

from handrail.verification.consistency.check import check_consistency
from handrail.verification.consistency.run import run_consistency
from handrail.verification.consistency.source_tree import TouchedFile
from tests.verification.consistency.project import FILES, issues_after, write

pytestmark = pytest.mark.anyio
NEW = "src/shop/new.py"
PAGE = "web/src/new.ts"
FINE: dict[str, Mapping[str, str | None]] = {
    "namespace package": {
        "src/ns/part/one.py": "x = 1\n",
        NEW: "import ns.part.one\nfrom ns.other import y\n",
    },
    "module attribute function": {
        "src/shop/lazy.py": "def __getattr__(name): return name\n",
        NEW: "from shop.lazy import x\n",
    },
    "star import of another distribution": {
        "src/shop/all.py": "from requests import *\n",
        NEW: "from shop.all import get\n",
    },
    "star import of a module with a dynamic list": {
        "src/shop/all.py": (
            "from shop import prices\n__all__ = [n for n in dir(prices)]\nglobals().update(vars(prices))\n"
        ),
        NEW: "from shop.all import taxed\n",
    },
    "import for types of an undeclared distribution": {
        NEW: "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy\n"
    },
    "optional import": {NEW: "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n"},
    "optional import with a fallback": {
        NEW: "try:\n    import ujson as json\nexcept ModuleNotFoundError:\n    import simplejson as json\n"
    },
    "suppressed import": {
        NEW: "from contextlib import suppress\nwith suppress(ImportError):\n    import numpy\n"
    },
    "import on one platform": {
        NEW: "import sys\nif sys.platform == 'win32':\n    import colorama\n    import winreg\n"
    },
    "local module that may be missing": {
        NEW: "try:\n    from shop._speedups import fast\nexcept ImportError:\n    fast = None\n"
    },
    "standard library of another version": {
        NEW: "import tomllib, distutils, imp\nfrom compression import zstd\n"
    },
    "re-export": {"src/shop/api.py": "from .cart import Cart as Basket\n", NEW: "from .api import Basket\n"},
    "stub beside a compiled module": {
        "src/shop/_fast.pyi": "def go() -> int: ...\n",
        NEW: "from shop._fast import go\n",
    },
    "compiled module": {
        "src/shop/_fast.cpython-311-x86_64-linux-gnu.so": "",
        NEW: "from shop._fast import go\n",
    },
    "source of a compiled module": {
        "src/shop/_fast.pyx": "def go(): pass\n",
        NEW: "from shop._fast import go\n",
    },
    "module that the build makes": {
        "pyproject.toml": FILES["pyproject.toml"] + '[tool.x]\nversion-file = "src/shop/_version.py"\n',
        NEW: "from shop._version import version\n",
    },
    "module that git ignores": {".gitignore": "src/shop/made.py\n", NEW: "from shop.made import version\n"},
    "protocol buffers": {NEW: "from shop import cart_pb2\nfrom shop.cart_pb2 import Item\n"},
    "patched module": {
        "src/shop/patch.py": "import shop.cart\nshop.cart.extra = 1\n",
        NEW: "from shop.cart import extra\n",
    },
    "name made by a loop": {
        "src/shop/made.py": "import sys\nfor n in 'ab':\n    setattr(sys.modules[__name__], n, 1)\n",
        NEW: "from shop.made import a\n",
    },
    "name made by a call": {
        "src/shop/made.py": "from shop.make import aliases\naliases({'Basket': 'Cart'})\n",
        "src/shop/make.py": "def aliases(names): pass\n",
        NEW: "from shop.made import Basket\n",
    },
    "name bound in odd places": {
        "src/shop/odd.py": """\
if (a := 1): pass
for b in []: pass
with open('x') as c: pass
(d, *e), f = (1, 2), 3
try: pass
except OSError as g: pass
import os.path as h
def assign():
    global i
    i = 1
class j: pass
k: int
match 1:
    case {'x': l, **m}: pass
    case [*n]: pass
""",
        NEW: "from shop.odd import a, b, c, d, e, f, g, h, i, j, k, l, m, n\n",
    },
    "syntax of a later Python": {
        "src/shop/later.py": "type X = int\ndef f[T](x: T): pass\nx = 1 if else\n",
        NEW: "from shop.later import X\n",
    },
    "distribution of another name": {NEW: "import yaml\nfrom PIL import Image\n"},
    "distribution that a file elsewhere imports": {NEW: "import attr\n", "src/shop/old.py": "x = 1\n"}
    | {"requirements-dev.txt": "attrs\n"},
    "tool without declared dependencies": {
        "noxfile.py": "import nox\n",
        "docs/conf.py": "import sphinx_rtd_theme\n",
        "examples/a.py": "import flask\n",
    },
    "test that skips itself": {
        "tests/test_np.py": "import pytest\nnumpy = pytest.importorskip('numpy')\nimport numpy\n"
    },
    "script with its own dependencies": {
        NEW: "# /// script\n# dependencies = ['rich']\n# ///\nimport rich\n"
    },
    "broken data of tests": {"tests/data/broken.py": "from shop.nothing import x\nimport nothing\n"},
    "moved function, imported from its new place": {
        "src/shop/prices.py": (
            "import requests\n"
            "import yaml\n"
            "from shop.tax import taxed\n"
            "RATE = 2\n"
            "def total(i): return taxed(i)\n"
            "def discount(i): return i\n"
        ),
        "src/shop/tax.py": "def taxed(item): return item\n",
    },
    "module that became a package": {
        "src/shop/cart.py": None,
        "src/shop/cart/__init__.py": FILES["src/shop/cart.py"],
    },
    "deleted function with all of its uses": {
        "src/shop/prices.py": FILES["src/shop/prices.py"].replace(
            "def discount(item): return item - 1\n", ""
        ),
        "src/shop/cli.py": "from shop import prices as p\n\ndef main(): return p.total([])\n",
    },
    "deleted name that is a parameter elsewhere": {
        "src/shop/prices.py": FILES["src/shop/prices.py"].replace("RATE", "FACTOR"),
        NEW: "from shop import prices\n\ndef f(prices): return prices.RATE\n",
    },
    "three new uses of Any": {NEW: "from typing import Any\n\ndef f(a: Any, b: Any) -> Any: return a\n"},
    "changelog names what is removed or standard": {
        "CHANGELOG.md": FILES["CHANGELOG.md"].replace(
            "- Add", "- Remove `old_total()`, call `print()` and `shop.prices.taxed(x)`\n- Add"
        )
    },
    "side effect and asset imports": {
        PAGE: 'import "./style.css";\nimport logo from "./logo.svg?url";\nimport "react/jsx-runtime";\n'
    },
    "module of CommonJS": {"web/src/old.cjs": "exports.a = 1;\n", PAGE: 'import { a } from "./old.cjs";\n'},
    "module without exports in JavaScript": {
        "web/src/old.js": "var a = 1;\n",
        PAGE: 'import { a } from "./old";\n',
    },
    "component of another language": {
        "web/src/App.vue": "<template/>",
        PAGE: 'import App from "./App.vue";\nimport { x } from "./App.vue";\n',
    },
    "data": {"web/src/data.json": "{}", PAGE: 'import data from "./data.json";\n'},
    "declaration beside JavaScript": {
        "web/src/lib.js": "export const a = 1;\n",
        "web/src/lib.d.ts": "declare const b: number;\nexport { b };\n",
        PAGE: 'import { a, b } from "./lib.js";\n',
    },
    "star export of a package": {
        "web/src/all.ts": 'export * from "react";\nexport const x = 1;\n',
        PAGE: 'import { useState } from "./all";\n',
    },
    "builtin modules": {
        PAGE: (
            'import fs from "fs";\n'
            'import { join } from "node:path";\n'
            'import "fs/promises";\n'
            'import test from "node:test";\n'
        )
    },
    "package's own name and subpaths": {
        PAGE: 'import { load } from "web/src/api";\nimport "#internal";\nimport "virtual:x";\n'
    },
    "types of an undeclared package": {PAGE: 'import type { Node } from "estree";\n'},
    "optional package": {
        PAGE: 'export const f = async () => { try { await import("./optional") } catch { return null } };\n'
    },
    "package that declarations make known": {
        "web/src/types.d.ts": 'declare module "legacy" { export const a: number }\n',
        PAGE: 'import { a } from "legacy";\n',
    },
    "folder below the base": {PAGE: 'import { pad } from "src/format";\n'},
    "generated file": {
        ".gitignore": "*.gen.ts\n",
        PAGE: 'import { a } from "./routes.gen";\nimport { b } from "./generated/b";\nimport "../dist/x";\n',
    },
    "renamed exports": {
        "web/src/names.ts": """\
const a = 1, b = 2;
export { a as default, b as "string name" };
export const { c, d: [e] } = x, f = 1;
export enum G {}
export declare const h: number;
export * as i from "./api";
export namespace j {}
export abstract class k {}
""",
        PAGE: 'import a, { c, e, f, G, h, i, j, k } from "./names";\n',
    },
    "configuration file": {
        "web/vite.config.ts": 'import react from "@vitejs/plugin-react";\nexport default react;\n'
    },
    "deleted export with all of its uses": {
        "web/src/format/index.ts": "export type Width = number;\n",
        "web/src/index.ts": 'export * from "./api";\n',
        "web/src/page.tsx": 'import React from "react";\nexport const Page = React;\n',
    },
    "broken syntax": {PAGE: 'import { nothing } from "./api"; function ( {\n'},
}


@pytest.mark.promise("CONS-2")
@pytest.mark.parametrize("change", FINE.values(), ids=FINE.keys())
def test_fine_change_has_no_issue(tmp_path: Path, change: Mapping[str, str | None]) -> None:
    assert issues_after(tmp_path, change) == ()


@pytest.mark.promise("CONS-2")
@pytest.mark.parametrize("name", ["click", "rich", "prompt_toolkit"])
def test_real_package_taken_as_new_has_no_issue(tmp_path: Path, name: str) -> None:
    found = distribution(name)
    for file in found.files or ():
        if file.suffix in (".py", ".pyi"):
            target = tmp_path / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(file.locate()), target)
    requires = [each.partition(";")[0] for each in found.requires or ()]
    (tmp_path / "pyproject.toml").write_text(f"[project]\nname = '{name}'\ndependencies = {requires}\n")
    paths = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.py*")]
    assert len(paths) > 10
    issues = check_consistency(tmp_path, [TouchedFile(path, is_new=True) for path in paths]).issues
    assert [issue for issue in issues if issue.rule != "any-flood"] == []


@pytest.mark.promise("CONS-2")
def test_environment_of_the_project_says_which_distribution_provides_a_module(tmp_path: Path) -> None:
    folder = ".venv/lib/python3.11/site-packages/odd_name-1.dist-info"
    environment = {
        ".venv/pyvenv.cfg": "",
        f"{folder}/RECORD": "oddly/__init__.py,,\nodd.py,,\n",
        f"{folder}/METADATA": "",
    }
    declared = {"pyproject.toml": FILES["pyproject.toml"].replace('"PyYAML"', '"PyYAML", "odd-name"')}
    assert issues_after(tmp_path, declared | environment | {NEW: "import oddly\nimport odd\n"}) == ()


@pytest.mark.promise("CONS-3")
async def test_hostile_files_neither_stop_the_check_nor_raise_an_issue(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    source = tmp_path / "src/shop"
    os.mkfifo(source / "pipe.py")
    (source / "loop.py").symlink_to("loop.py")
    (source / "folder.py").mkdir()
    (source / "outside.py").symlink_to("/etc/passwd")
    (source / "around").symlink_to("..")
    (source / "deep.py").write_text("x = " + "(" * 100_000 + ")" * 100_000)
    (source / "nested.py").write_text("x = " + "-" * 200_000 + "1\n")
    (source / "binary.py").write_bytes(b"\0" * 1000)
    (source / "huge.py").write_bytes(b"from shop.nothing import x\n" * 100_000)
    (tmp_path / "web/src/deep.ts").write_text("let x = " + "[\n" * 50_000)
    (tmp_path / "web/src/deeper.ts").write_text("export const x: " + "A<\n" * 20_000 + "any" + ">\n" * 20_000)
    names = ["pipe", "loop", "folder", "outside", "deep", "nested", "binary", "huge"]
    importing = (
        "".join(f"from shop.{name} import x\n" for name in names) + "from shop.around.shop.cart import Cart\n"
    )
    (source / "user.py").write_text(importing)
    (tmp_path / "package.json").write_text("[" * 100_000)
    (tmp_path / "tsconfig.json").write_text("{" * 100_000)
    (tmp_path / "requirements.txt").write_text("a" * 400_000 + "\n")
    paths = [f"src/shop/{name}.py" for name in (*names, "user")] + [
        "web/src/deep.ts",
        "web/src/deeper.ts",
        "\0",
        "../x",
    ]
    result = await run_consistency(tmp_path, [TouchedFile(path, is_new=True) for path in paths])
    assert (result.status, result.issues) == ("passed", ())


@pytest.mark.promise("CONS-3")
async def test_child_finds_what_the_function_finds(tmp_path: Path) -> None:
    change = {NEW: "from shop.cart import Basket\n"}
    issues = issues_after(tmp_path, change)
    result = await run_consistency(tmp_path, [TouchedFile(NEW, is_new=True)])
    assert (result.status, result.issues) == ("failed", issues)


@pytest.mark.promise("CONS-3")
async def test_check_that_does_not_end_in_time_is_unverified(tmp_path: Path) -> None:
    result = await run_consistency(tmp_path / "none", [TouchedFile(NEW, is_new=True)])
    assert result.status == "unverified"
    assert result.reason


@pytest.mark.promise("CONS-3")
async def test_a_change_that_is_not_looked_at_completely_is_unverified(tmp_path: Path) -> None:
    (tmp_path / "fine.py").write_text("import os\n")
    result = await run_consistency(tmp_path, [TouchedFile("fine.py", is_new=True)], seconds=0.0)
    assert (result.status, result.issues) == ("unverified", ())
    assert "too large" in result.reason
