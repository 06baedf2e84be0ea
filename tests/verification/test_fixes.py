import hashlib
import os
import sys
from pathlib import Path

import pytest

from handrail.protocol.errors import PathProblem
from handrail.tools.reports.issue import Issue
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from handrail.verification.consistency.source_tree import SourceTree
from handrail.verification.fixes import Fixed, FixTools, find_fixes, find_ruff_tools, propose_fixes
from handrail.verification.missing_imports import MissingImports
from handrail.verification.workspace_checks import VerifyOptions
from handrail.workspace.files import Workspace
from tests.tools.sandbox.machine import working
from tests.verification.consistency.project import write
from tests.verification.projects import Recorder, checks_of

pytestmark = pytest.mark.anyio
FILES = {
    "pyproject.toml": "[tool.ruff.lint]\nselect = ['F', 'I']\n[tool.ruff.format]\nquote-style = 'double'\n",
    "src/shop/__init__.py": "",
    "src/shop/cart.py": '"""Carts."""\n\nimport sys\nimport os\n\ndef f():\n  return Price(os.getcwd( ))\n',
    "src/shop/prices.py": "class Price:\n    pass\n\n\ndef rate():\n    return 1\n",
    "tests/test_prices.py": "class Price:\n    pass\n",
}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A project that uses ruff, which is on the path."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    write(tmp_path, FILES)
    return Workspace(tmp_path)


@pytest.fixture
def sandbox() -> Sandbox:
    return Sandbox(found=next(iter(working()), Protection()))


def snapshot(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.promise("FIX-1")
async def test_fixes_are_a_proposal_and_the_workspace_stays_untouched(
    workspace: Workspace, sandbox: Sandbox
) -> None:
    before = snapshot(workspace.root)
    tools = find_ruff_tools(workspace)
    assert tools.ruff_formats
    fixes = await find_fixes(workspace, sandbox, list(FILES), tools)
    assert [(each.path, each.by) for each in fixes] == [
        ("src/shop/cart.py", ("import: from shop.prices import Price", "ruff check", "ruff format"))
    ]
    (edit,) = propose_fixes(workspace, fixes).edits
    assert (
        edit.new
        == b'''\
"""Carts."""

import os

from shop.prices import Price


def f():
    return Price(os.getcwd())
'''
    )
    assert "+from shop.prices import Price" in edit.diff.text
    assert snapshot(workspace.root) == before


@pytest.mark.promise("FIX-1")
async def test_proposal_for_a_file_that_changed_since_is_refused(
    workspace: Workspace, sandbox: Sandbox
) -> None:
    fixes = await find_fixes(workspace, sandbox, ["src/shop/cart.py"], find_ruff_tools(workspace))
    (workspace.root / "src/shop/cart.py").write_text("import os\n")
    with pytest.raises(PathProblem, match="is not the version"):
        propose_fixes(workspace, fixes)


async def test_project_that_does_not_format_with_ruff_is_only_linted(
    workspace: Workspace, sandbox: Sandbox
) -> None:
    (workspace.root / "pyproject.toml").write_text("[tool.ruff.lint]\nselect = ['F']\n")
    (fixed,) = await find_fixes(workspace, sandbox, ["src/shop/cart.py"], find_ruff_tools(workspace))
    assert fixed.by == ("import: from shop.prices import Price", "ruff check")
    assert "os.getcwd( )" in fixed.text
    assert "import sys" not in fixed.text


async def test_unreadable_broken_and_unfixable_files_have_no_fix(
    workspace: Workspace, sandbox: Sandbox
) -> None:
    write(workspace.root, {"src/shop/broken.py": "def f(:\n", "src/shop/fine.py": "x = 1\n"})
    (workspace.root / "src/shop/binary.py").write_bytes(b"\0\0")
    os.mkfifo(workspace.root / "src/shop/pipe.py")
    paths = [f"src/shop/{name}.py" for name in ("broken", "fine", "binary", "pipe", "missing")]
    assert await find_fixes(workspace, sandbox, paths, find_ruff_tools(workspace)) == ()


STAND_IN = """#!/bin/sh
cat >/dev/null
echo a warning >&2
{0}
"""


@pytest.mark.parametrize(
    ("name", "prints", "text"),
    [
        ("eslint", """echo '[{"messages": [], "output": "let a = 1;\\\\n"}]'; exit 1""", "let a = 1;\n"),
        ("eslint", "echo '[{\"messages\": []}]'", ""),
        ("eslint", "echo not JSON", ""),
        ("eslint", "exit 2", ""),
        ("prettier", "echo 'let a = 1;'", "let a = 1;\n"),
        ("prettier", "exit 0", ""),
        ("prettier", "echo 'let'; exit 1", ""),
        ("prettier", "printf '\\377'", ""),
    ],
)
async def test_output_of_the_projects_tools_is_read_and_failures_change_nothing(
    workspace: Workspace, sandbox: Sandbox, name: str, prints: str, text: str
) -> None:
    (workspace.root / "a.ts").write_text("let a=1\n")
    program = workspace.root / name
    program.write_text(STAND_IN.format(prints))
    program.chmod(0o755)
    tools = FixTools(eslint=str(program)) if name == "eslint" else FixTools(prettier=str(program))
    fixes = await find_fixes(workspace, sandbox, ["a.ts"], tools)
    digest = hashlib.sha256(b"let a=1\n").hexdigest()
    assert fixes == ((Fixed("a.ts", digest, text, (name,)),) if text else ())


RATE_TS = "export function rate(a: number) {}\n"
CRLF = '"""Text."""\r\nimport os\r\n{0}\r\nos.rate(Rate)\r\n'
WITH_ENDINGS = 'import {{ b }} from "./b.js";\n{0}rate(b);\n'
DEFINED = [
    ("a.py", "x = rate()\n", "from b import rate\n\nx = rate()\n", "b.py", "def rate(): pass\n"),
    ("a.py", "#!/bin/py\nx = rate\n", "#!/bin/py\nfrom b import rate\n\nx = rate\n", "b.py", "rate = 1\n"),
    ("a.py", CRLF.format(""), CRLF.format("from p import Rate\r\n"), "p/__init__.py", "class Rate: pass\n"),
    ("src/p/a.py", "rate", "from p.b import rate\n\nrate", "src/p/b.py", "rate = 1\n"),
    ("a.ts", "rate(1);\n", 'import { rate } from "./lib/rates";\n\nrate(1);\n', "lib/rates.ts", RATE_TS),
    ("a.ts", "rate(1);\n", 'import { rate } from "./lib";\n\nrate(1);\n', "lib/index.ts", RATE_TS),
    (
        "s/a.ts",
        WITH_ENDINGS.format(""),
        WITH_ENDINGS.format('import { rate } from "../l/r.js";\n'),
        "l/r.ts",
        RATE_TS,
    ),
]


@pytest.mark.promise("FIX-2")
@pytest.mark.parametrize("case", DEFINED)
def test_name_that_one_file_defines_is_imported(tmp_path: Path, case: tuple[str, ...]) -> None:
    path, old, new, home, text = case
    for name, content in ((path, old), (home, text)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content.encode())
    issue = Issue("types", "high", "Cannot find name 'rate'.", path, 1)
    fixed, added = MissingImports(SourceTree(tmp_path), [issue]).add(path, old)
    assert (fixed, len(added)) == (new, 1)


@pytest.mark.promise("FIX-2")
@pytest.mark.parametrize(
    "files",
    [
        {"a.py": "rate()\n", "b.py": "def rate(): pass\n", "c.py": "def rate(): pass\n"},
        {"a.py": "rate()\n", "b.py": "from x import rate\n"},
        {"a.py": "rate()\n", "tests/test_b.py": "def rate(): pass\n"},
        {"a.py": "rate()\n", "b.py": "import a\ndef rate(): pass\n"},
        {"a.py": "from x import *\nrate()\n", "b.py": "def rate(): pass\n"},
        {"a.py": "def f(rate): return rate\n", "b.py": "def rate(): pass\n"},
        {"a.py": "_rate()\n", "b.py": "def _rate(): pass\n"},
        {"a.py": "print(len(1))\n", "b.py": "def len(x): pass\n"},
        {"a.py": "rate()\n", "odd-name/b.py": "def rate(): pass\n"},
    ],
)
def test_name_that_is_not_certain_is_not_imported(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, files)
    assert MissingImports(SourceTree(tmp_path)).add("a.py", files["a.py"]) == (files["a.py"], ())


ESLINT = """\
#!/bin/sh
[ -f eslint.config.js ] || exit 2
case "$*" in
*--fix-dry-run*) echo '[{"output": "let a = 1;\\\\n"}]' ;;
*) echo "[{\\"filePath\\": \\"$PWD/a b.js\\", \\"messages\\": [{\\"severity\\": 2, \\"line\\": 1}]}]"
    exit 1 ;;
esac
"""
PRETTIER = "#!/bin/sh\n[ -f .prettierrc ] && sed s/1/2/\n"


async def test_eslint_and_prettier_of_a_part_run_in_its_folder(tmp_path: Path) -> None:
    files = {"package.json": "{}", "eslint.config.js": "", ".prettierrc": "", "a b.js": "var a = 1\n"}
    files |= {"node_modules/.bin/eslint": ESLINT, "node_modules/.bin/prettier": PRETTIER}
    write(tmp_path, {f"web/{name}": text for name, text in files.items()} | {".gitignore": "node_modules\n"})
    for program in (tmp_path / "web/node_modules/.bin").iterdir():
        program.chmod(0o755)
    checks = checks_of(tmp_path, environ={"PATH": "/usr/bin:/bin"})
    verdict = await checks.verify(VerifyOptions(only=("web/lint",)), Recorder())
    assert [issue.path for issue in verdict.issues] == ["web/a b.js"], verdict.checks
    (fixed,) = await checks.fixes(verdict, VerifyOptions())
    assert (fixed.path, fixed.text, fixed.by) == ("web/a b.js", "let a = 2;\n", ("eslint", "prettier"))
