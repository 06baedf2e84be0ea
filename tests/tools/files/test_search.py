import os
from pathlib import Path
from typing import Any

import pytest

from handrail.protocol.events import ToolStarted
from handrail.protocol.globs import covers
from handrail.tools.files.search import at_any_depth
from tests.tools.calls import Bench

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(bench: Bench) -> Bench:
    files = {
        "src/cart.py": "def total(cart):\n    return sum(cart)\n",
        "src/deep/tax.py": "TOTAL = 1\n",
        "tests/test_cart.py": "from src.cart import total\n",
        "README.md": "total\n",
        ".github/ci.yml": "run: total\n",
        ".gitignore": "build/\n*.log\n",
        "build/out.py": "total\n",
        "debug.log": "total\n",
        ".env": "SECRET_total=1\n",
        ".git/config": "total\n",
    }
    for name, text in files.items():
        path = bench.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return bench


async def test_search_finds_text_in_files_that_are_not_ignored(project: Bench) -> None:
    finished = await project.call("search", pattern="total")
    files = {line.split(":")[0] for line in finished.content.split("\n") if not line.startswith("[")}
    assert files == {"src/cart.py", "tests/test_cart.py", "README.md", ".github/ci.yml"}
    assert "src/cart.py:1:def total(cart):" in finished.content
    assert finished.summary == "4 hits in 4 files"


@pytest.mark.promise("TOOL-5")
async def test_search_does_not_show_what_stands_in_secret_files(project: Bench) -> None:
    finished = await project.call("search", pattern="total")
    assert "SECRET_total" not in finished.content
    assert "[not searched, because they may hold secrets: 1 name]" in finished.content


async def test_search_is_literal_unless_told_otherwise(project: Bench) -> None:
    assert "src/cart.py:1" in (await project.call("search", pattern="total(")).content
    assert (await project.call("search", pattern="t.tal")).summary == "no hits"
    assert (await project.call("search", pattern="sum.c", regex=True)).summary == "1 hit in src/cart.py"


async def test_an_invalid_expression_is_refused_with_what_is_wrong(project: Bench) -> None:
    finished = await project.call("search", pattern="total(", regex=True)
    assert finished.error is not None
    assert finished.error.reason == "invalid_arguments"
    assert "unclosed group" in finished.content


@pytest.mark.parametrize(("glob", "files"), [("*.py", 2), ("src/**", 1), ("*", 4)])
async def test_search_can_be_narrowed_and_ignored_files_stay_out(
    project: Bench, glob: str, files: int
) -> None:
    finished = await project.call("search", pattern="total", glob=glob)
    found = {line.split(":")[0] for line in finished.content.split("\n") if not line.startswith("[")}
    assert len(found) == files
    assert "build/" not in finished.content


async def test_search_takes_a_pattern_that_looks_like_an_option(project: Bench) -> None:
    (project.root / "a").write_text("--files\n")
    assert (await project.call("search", pattern="--files")).summary == "1 hit in a"


async def test_search_does_not_follow_links_out_of_the_workspace(project: Bench, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "f").write_text("needle\n")
    (project.root / "door").symlink_to(tmp_path / "out")
    assert (await project.call("search", pattern="needle")).summary == "no hits"


async def test_many_and_wide_hits_are_cut(project: Bench) -> None:
    for number in range(10):
        (project.root / f"f{number}").write_text(f"needle {'x' * 5_000}\n" * 100)
    finished = await project.call("search", pattern="needle")
    assert finished.summary.startswith("more than 100 hits")
    assert "cut after 100 hits" in finished.content
    assert len(finished.content) < 13_000


@pytest.mark.parametrize(
    ("there", "summary"),
    [(50, "50 hits in f"), (51, "more than 50 hits in f"), (111, "more than 50 hits in f")],
)
async def test_hits_of_one_file_are_cut_and_said_to_be(project: Bench, there: int, summary: str) -> None:
    (project.root / "f").write_text("needle\n" * there)
    finished = await project.call("search", pattern="needle")
    assert finished.summary == summary
    assert finished.content.count("needle") == 50
    assert ("cut after 50 hits in f" in finished.content) is (there > 50)


async def test_searching_nowhere_is_refused(project: Bench) -> None:
    finished = await project.call("search", pattern="x", path="nowhere")
    assert finished.status == "refused"


async def test_glob_finds_files_by_name(project: Bench) -> None:
    assert (await project.call("glob", pattern="*.py")).content == (
        "src/cart.py\nsrc/deep/tax.py\ntests/test_cart.py"
    )
    assert (await project.call("glob", pattern="*.py", path="src")).content == "src/cart.py\nsrc/deep/tax.py"
    assert (await project.call("glob", pattern="*.log")).summary == "no files"


async def test_list_shows_a_folder(project: Bench) -> None:
    assert (await project.call("list", path="src")).content == "cart.py  38 bytes\ndeep/"
    assert (await project.call("list", path="src/cart.py")).status == "refused"


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/er/a.py", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/b/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/b/c/a.py", True),
        ("src/**", "src/b/c", True),
        ("**/test_*.py", "test_a.py", True),
        ("*.{ts,tsx}", "a.tsx", True),
        ("*.{ts,tsx}", "a.js", False),
        ("[ab].py", "a.py", True),
        ("[!ab].py", "a.py", False),
        ("?.py", "ab.py", False),
        ("a{.py", "a{.py", True),
        ("[z-a].py", "[z-a].py", True),
        ("a.py", "axpy", False),
        ("{a,b{c,d}}.py", "bd.py", True),
        ("{a,b{c,d}}.py", "b.py", False),
        ("{src,tests}/**/*.{py,pyi}", "tests/x/y/a.pyi", True),
        ("a,b", "a,b", True),
        ("}{", "}{", True),
        ("**/a/**/b", "x/a/b", True),
        ("**/a/**/b", "x/a/y/z/b", True),
        ("**/a/**/b", "a", False),
        ("[!/]x", "/x", False),
        ("[]a]", "]", True),
    ],
)
async def test_patterns_mean_what_people_expect(pattern: str, path: str, fits: bool) -> None:
    assert covers(at_any_depth(pattern), path) is fits


async def test_a_pattern_with_too_many_choices_is_refused(project: Bench) -> None:
    finished = await project.call("glob", pattern="{a,b}" * 12)
    assert finished.status == "refused"
    assert "too many choices in braces" in finished.content


async def test_a_model_cannot_say_that_it_looks_for_something_else(project: Bench) -> None:
    await project.call("search", pattern="total", sought="nothing at all")
    (started,) = [event for event in project.events() if isinstance(event, ToolStarted)]
    assert started.summary == '"total"'


SECRET_PLACES: tuple[str, ...] = (
    ".env",
    "config/.env.local",
    ".ENV",
    "deploy.pem",
    ".ssh/notes",
    ".aws/deep/config.py",
)
SECRET_PLACES += (
    "ke\u200bys/.e\u200bnv",
    "\uff0eenv",
    ".env.",
    "we[i]rd*{a,b}!#.env",
    "sp ace/.env",
    "ignored/.env",
)
SEARCHES: tuple[dict[str, Any], ...] = (
    *({"pattern": f"TOKEN={letter}"} for letter in "abcdef"),
    {"pattern": "TOKEN"},
    {"pattern": "^TOKEN=a", "regex": True},
    {"pattern": "^.{20}", "regex": True},
    {"pattern": ".", "regex": True},
    {"pattern": "TOKEN", "glob": "*"},
    {"pattern": "TOKEN", "glob": "*.env"},
    {"pattern": "TOKEN", "glob": "**/*"},
    {"pattern": "TOKEN", "glob": "**/.env"},
    {"pattern": "TOKEN", "glob": "./.env"},
    {"pattern": "TOKEN", "glob": "ignored/**"},
    {"pattern": "TOKEN", "glob": "!*.py"},
    {"pattern": "TOKEN", "glob": "{.env,*.pem}"},
    {"pattern": "TOKEN", "glob": "**/{.env,*.pem}"},
    {"pattern": "TOKEN", "path": "config"},
    {"pattern": "TOKEN", "path": "./config/../"},
    {"pattern": "TOKEN", "path": "ignored"},
    {"pattern": "TOKEN", "rows": True},
    {"pattern": "needle"},
    {"pattern": "(", "regex": True},
)


@pytest.mark.promise("TOOL-17")
async def test_the_content_of_secret_files_has_no_effect_on_any_result(bench: Bench) -> None:
    """The same calls with two contents that differ in everything: size, lines, and whether they match."""
    results = []
    for content in ("", "TOKEN=abcdef\n", "TOKEN=a\n" * 5_000, "needle\0binary" * 100, "x" * 400_000):
        for name in SECRET_PLACES:
            path = bench.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        (bench.root / "a.py").write_text("TOKEN = read()\nneedle\n")
        (bench.root / ".gitignore").write_text("ignored/\n")
        (bench.root / ".ignore").write_text("!.env\n!ignored/\n")
        for link in ("link.txt", "config/link.py"):
            if not (bench.root / link).is_symlink():
                (bench.root / link).symlink_to(bench.root / ".env")
        found = [await bench.call("search", **arguments) for arguments in SEARCHES]
        found += [await bench.call("list", path=".", depth=3), await bench.call("glob", pattern="**/*env*")]
        found += [await bench.call("read", path=".envv"), await bench.call("read", path="nothing/.env")]
        results.append([(each.status, each.summary, each.content, each.error) for each in found])
    assert any("a.py" in content for _, _, content, _ in results[0])
    for other in results[1:]:
        assert other == results[0]


async def test_search_says_that_files_were_not_searched(project: Bench) -> None:
    finished = await project.call("search", pattern="nowhere to be found")
    assert finished.content.endswith("[not searched, because they may hold secrets: 1 name]")


@pytest.mark.promise("TOOL-18")
async def test_ignore_files_that_are_pipes_do_not_stop_a_search(project: Bench) -> None:
    (project.root / ".gitignore").unlink()
    for name in (".gitignore", ".ignore", ".rgignore", "src/.gitignore", "src/.ignore"):
        os.mkfifo(project.root / name)
    found = await project.call("search", pattern="def total")
    assert found.summary == "1 hit in src/cart.py"
    assert "src/deep/tax.py" in (await project.call("glob", pattern="**/*.py")).content
    os.mkfifo(project.root / "pipe.py")
    refused = await project.call("search", pattern="x", path="pipe.py")
    assert refused.status == "refused"
    assert "a pipe: it is never opened" in refused.content
