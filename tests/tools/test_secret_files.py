"""Commands that look at whole folders show nothing of files that may hold secrets, unasked."""

import os
import subprocess
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from handrail.policy.commands.hardening import SECRET_FOLDERS, SECRET_GLOBS
from handrail.workspace import names
from tests.tools.calls import Bench

pytestmark = pytest.mark.anyio
MakeBench = Callable[..., Bench]
VALUE = "value-4711"
FILES = (
    ".env",
    ".env.local",
    ".env.test",
    ".env.dev",
    ".env.s",
    "prod.env",
    "a/.env.staging",
    "a/.npmrc",
    "id_rsa",
)
HARMLESS = (".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults", "a/plain.txt")


def test_the_patterns_cover_the_names_that_paths_are_judged_by() -> None:
    for pattern in names.SECRET_NAMES:
        for example in (pattern.replace("*", ""), pattern.replace("*", ".x"), pattern.replace("*", "-x1")):
            if names.is_secret(example):
                assert any(fnmatchcase(example, each) for each in SECRET_GLOBS), example
    for example in HARMLESS:
        assert not any(fnmatchcase(example, each) for each in SECRET_GLOBS), example
    assert SECRET_FOLDERS == names.SECRET_FOLDERS


def git(root: Path, *words: str) -> None:
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", "-C", str(root), *author, *words], check=True, timeout=60)


def furnish(root: Path) -> None:
    git(root, "init", "-q", "-b", "main")
    (root / "a").mkdir()
    (root / "b").mkdir()
    for name in FILES:
        (root / name).write_text(f"KEY={VALUE}\n")
    for name in HARMLESS:
        (root / name).write_text("told=yes\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    for name in (*FILES, *HARMLESS):
        with (root / name).open("a") as file:
            file.write(f"more={VALUE if name in FILES else 'told'}\n")


@pytest.mark.promise("POL-31")
@pytest.mark.parametrize(
    "command",
    [
        "git diff",
        "git diff HEAD -- a .",
        "git log -p",
        "git log -p --all -- .",
        "git log -U0 -1 main",
        "git show",
        "git show HEAD --",
        "git diff -U9 --stat -p",
        "grep -r -e = .",
        "grep -r = . --include=.e*",
        "grep -r --include=* -- = .",
        "rg --hidden =",
        "rg --hidden -g '*' = .",
        "rg --hidden -g '.e*' -e = -- .",
        "diff -rN a b",
        "diff -r -N -- a b",
    ],
)
async def test_what_looks_at_folders_leaves_secret_files_out(
    make_bench: MakeBench, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")  # where rg is
    bench = make_bench("explore", answerable=False)
    furnish(bench.root)
    finished = await bench.call("run", command=command)
    assert finished.status != "refused", finished.content
    assert "told" in finished.content
    assert VALUE not in finished.content


async def test_history_is_shown_whole_where_no_contents_are(make_bench: MakeBench) -> None:
    bench = make_bench("explore", answerable=False)
    furnish(bench.root)
    git(bench.root, "commit", "-qm", "only the secret", ".env")
    for command in ("git log --oneline", "git show", "git log -1 --format=%s"):
        assert "only the secret" in (await bench.call("run", command=command)).content
    for command in ("git log -p --follow a/plain.txt", "git log -L 1,1:a/plain.txt"):
        assert "told=yes" in (await bench.call("run", command=command)).content


async def test_no_spelling_of_gits_leads_to_a_committed_secret(make_bench: MakeBench) -> None:
    bench = make_bench("explore", answerable=False)
    furnish(bench.root)
    for command in (
        "git show :0:id_rsa",
        "git diff :0:id_rsa :0:.env.example",
        "git rev-parse :0:id_rsa",
        "git log -L :.*:id_rsa",
        "git log -p --follow -- 'id_rs?'",
        "git log -p --follow -- ':(top)id_rsa'",
        r"git log -p --follow -- 'id\_rsa'",
    ):
        finished = await bench.call("run", command=command)
        assert finished.status == "refused", command
        assert VALUE not in finished.content


async def test_differences_of_merges_leave_secret_files_out(make_bench: MakeBench) -> None:
    bench = make_bench("explore", answerable=False)
    furnish(bench.root)
    git(bench.root, "checkout", "-q", "-b", "side")
    git(bench.root, "commit", "-qam", "side")
    git(bench.root, "checkout", "-q", "main")
    for name in (*FILES, *HARMLESS):
        (bench.root / name).write_text(f"{VALUE if name in FILES else 'told'} of main\n")
    git(bench.root, "commit", "-qam", "main")
    git(bench.root, "merge", "-q", "-s", "ours", "--no-commit", "side")
    for name in (*FILES, *HARMLESS):
        (bench.root / name).write_text(f"{VALUE if name in FILES else 'told'} of both\n")
    git(bench.root, "commit", "-qam", "both")
    for command in ("git log -c -1", "git log --cc -1", "git log -m -1", "git show --cc"):
        finished = await bench.call("run", command=command)
        assert finished.status == "ok", finished.content
        assert VALUE not in finished.content, command


async def test_links_below_a_folder_lead_no_search_out_of_the_workspace(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    bench = make_bench("explore", answerable=False)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text(f"found {VALUE}\n")
    for folder in ("a", "b"):
        (bench.root / folder).mkdir()
        (bench.root / folder / "f").write_text(f"found inside {folder}\n")
    (bench.root / "a" / "folder").symlink_to(outside)
    (bench.root / "a" / "f2").symlink_to(outside / "f")
    (bench.root / "b" / "f2").write_text("plain\n")
    for command in (
        "grep -RIn -e found -e -R .",
        "grep -nR found a",
        "grep --dereference-recursive found",
        "diff -r a b",
    ):
        finished = await bench.call("run", command=command)
        assert "inside a" in finished.content, finished.content
        assert VALUE not in finished.content, command
