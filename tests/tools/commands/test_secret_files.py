"""Commands that look at whole folders show nothing of files that may hold secrets, unasked."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from handrail.policy.commands.git_hardening import SECRET_FOLDERS, SECRET_GLOBS
from handrail.tools.git import blob_id
from handrail.workspace.sensitive_names import SECRET_FOLDERS as WORKSPACE_SECRET_FOLDERS
from handrail.workspace.sensitive_names import SECRET_NAMES, is_secret_name
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
    ".env.sandbox",
    ".env.default",
    ".env.tmp",
    ".env.expo",
    ".env.exampl",
    ".env.examples",
    "prod.env",
    "a/.env.staging",
    "a/.npmrc",
    "id_rsa",
)
HARMLESS = (".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults", "a/plain.txt")


def test_the_patterns_cover_the_names_that_paths_are_judged_by() -> None:
    for pattern in SECRET_NAMES:
        for example in (pattern.replace("*", ""), pattern.replace("*", ".x"), pattern.replace("*", "-x1")):
            if is_secret_name(example):
                assert any(fnmatchcase(example, each) for each in SECRET_GLOBS), example
    for example in HARMLESS:
        assert not any(fnmatchcase(example, each) for each in SECRET_GLOBS), example
    assert SECRET_FOLDERS == WORKSPACE_SECRET_FOLDERS


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
    followed = await bench.call("run", command="git log --follow --format=%s a/plain.txt")
    assert "first" in followed.content


REFUSED = (
    "git show :0:id_rsa",
    "git diff :0:id_rsa :0:.env.example",
    "git rev-parse :0:id_rsa",
    "git log -L :.*:id_rsa",
    "git log -L 1,1:moved.txt",
    "git log -p --follow -- .",
    "git log --follow -p moved.txt",
    "git log --follow -U1 -- moved.txt",
    "git log --follow --word-diff -- moved.txt",
    "git log --follow -S told -- moved.txt",
    "git log --follow -c -- moved.txt",
    "git log -p --follow -- 'id_rs?'",
    "git log -p --follow -- ':(top)id_rsa'",
    r"git log -p --follow -- 'id\_rsa'",
    "git show --follow moved.txt",
    "git show --all",
    "git show --tags",
    "git show -g",
    "git show HEAD:.env",
    "git show HEAD:./.env",
    "git show main:a/../.env",
    "git show '@{0}:.env'",
    "git diff HEAD:.env HEAD:a/plain.txt",
    "git blame .env",
    "git blame -s -f -C -C a/plain.txt",
    "git diff --no-relative",
    "git blame HEAD -- id_rsa",
    "git branch -a --format='%(raw)'",
    "git branch -a --format='%(*raw)'",
    "git ls-files -s",
    "git ls-files --stage",
    "git diff --no-index a b",
)
NOT_SHOWN = (
    "git show {blob}",
    "git show {blob} --",
    "git show --format=%s {blob}",
    "git show -s {blob}",
    "git show {blob8}",
    "git show x-g{blob8}",
    "git show tagged",
    "git show refs/tags/tagged",
    "git show annotated",
    "git show 'annotated^{}'",
    "git show 'tagged^{blob}'",
    "git show 'tagged^{object}'",
    "git show HEAD {blob}",
    "git show HEAD:a/plain.txt {blob}",
    "git show {blob}..HEAD:a/plain.txt",
    "git show HEAD:a/plain.txt..{blob}",
    "git show ^{blob}",
    "git show remote/blob",
    "git diff {blob} {plain}",
    "git diff {blob}..{plain}",
    "git diff {blob}...{plain}",
    "git diff {plain} tagged",
    "git diff {blob} a/plain.txt",
    "git diff HEAD:a/plain.txt {blob}",
    "git diff {plain} {blob} --",
    "git diff -R tagged a/plain.txt",
    "git diff {empty} {ssh}",
    "git diff {ssh}",
    "git show {ssh}",
    "git log -p {blob}",
    "git log -p --no-walk tagged",
    "git log -p --all",
    "git log -p --tags --no-walk",
    "git log -p -g",
    "git log -S{value} --oneline -p",
    "git log -G{value} -p --all",
    "git diff HEAD~1 --word-diff -C -C",
    "git show --name-only -p HEAD~1",
)


@pytest.mark.promise("GIT-7")
async def test_no_spelling_of_gits_leads_to_a_committed_secret(make_bench: MakeBench) -> None:
    bench = make_bench("explore", answerable=False)
    furnish(bench.root)
    ids = secret_objects(bench.root)
    for command in REFUSED:
        finished = await bench.call("run", command=command)
        assert finished.status == "refused", command
        assert VALUE not in finished.content
    for spelling in NOT_SHOWN:
        command = re.sub(r"\{(\w+)\}", lambda found: ids.get(found[1], found[0]), spelling)
        finished = await bench.call("run", command=command)
        assert finished.status != "refused", (command, finished.content)
        assert VALUE not in finished.content.replace(command, ""), command


def secret_objects(root: Path) -> dict[str, str]:
    """Commit a file that had a secret name, a secret folder, and references to the content of `.env`."""
    (root / ".ssh").mkdir()
    (root / ".ssh" / "config.txt").write_text(f"{VALUE}\n")
    lines = "".join(f"line {number}\n" for number in range(20))
    (root / "key.pem").write_text(f"{VALUE}\n{lines}")
    git(root, "add", "-f", ".ssh", "key.pem")
    git(root, "commit", "-qm", "keys")
    git(root, "mv", "key.pem", "moved.txt")
    (root / "moved.txt").write_text(lines)
    git(root, "commit", "-qam", "moved")

    def object_id(revision: str) -> str:
        words = ["git", "-C", str(root), "rev-parse", revision]
        return subprocess.run(words, check=True, timeout=60, capture_output=True, text=True).stdout.strip()

    blob = object_id("HEAD:.env")
    git(root, "tag", "tagged", blob)
    git(root, "tag", "-m", "a file", "annotated", blob)
    git(root, "update-ref", "refs/remotes/remote/blob", blob)
    return {
        "blob": blob,
        "blob8": blob[:8],
        "plain": object_id("HEAD:a/plain.txt"),
        "ssh": object_id("HEAD:.ssh"),
        "empty": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "value": VALUE,
    }


@pytest.mark.promise("GIT-8")
@pytest.mark.parametrize(
    "command",
    [
        "git show",
        "git show HEAD",
        "git show @",
        "git show main a/plain.txt",
        "git show a/plain.txt",
        "git show --stat -p HEAD~0 -- a",
        "git show 'HEAD^!'",
        "git show main@{0}",
        "git show 'HEAD^{/second}'",
        "git show HEAD:a/plain.txt",
        "git show :a/plain.txt",
        "git show v1",
        "git diff",
        "git diff HEAD~1",
        "git diff HEAD~1 HEAD",
        "git diff HEAD~1..HEAD",
        "git diff HEAD~1..",
        "git diff HEAD~1...HEAD a",
        "git diff main~1 a/plain.txt",
        "git diff 'HEAD^!' -- a/plain.txt",
        "git diff a",
        "git diff -U0 '*.txt'",
        "git diff -S told HEAD~1",
        "git diff ':(top)a'",
        "git diff a/*.txt",
    ],
)
async def test_commits_and_files_without_secrets_are_shown_as_before(
    make_bench: MakeBench, command: str
) -> None:
    bench = make_bench("explore", answerable=False)
    furnish(bench.root)
    git(bench.root, "commit", "-qam", "second")
    git(bench.root, "tag", "-m", "a commit", "v1")
    with (bench.root / "a" / "plain.txt").open("a") as file:
        file.write("told again\n")
    finished = await bench.call("run", command=command)
    assert finished.status == "ok", finished.content
    assert "told" in finished.content
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


@pytest.mark.promise("CMD-15")
@pytest.mark.parametrize(
    "options", ["-LR", "-RL", "-lLR", "-L -R", "-LHR", "-HLR", "-laLRt", "-L --recursive", "-lL"]
)
async def test_links_below_a_folder_are_listed_but_not_followed(
    make_bench: MakeBench, tmp_path: Path, options: str
) -> None:
    bench = make_bench("explore", answerable=False)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "elsewhere").write_bytes(b"x" * 4711)
    (bench.root / "a").mkdir()
    (bench.root / "a" / "folder").symlink_to(outside)
    (bench.root / "a" / "file").symlink_to(outside / "elsewhere")
    (bench.root / "inside").symlink_to("a")
    for command in (f"ls {options} a", f"ls {options} -- a", f"ls {options} *side", f"ls a {options}"):
        finished = await bench.call("run", command=command)
        assert "folder" in finished.content, finished.content
        assert "4711" not in finished.content, command
        assert "folder:" not in finished.content, command
    for command in (f"ls {options} a/folder", f"ls {options} a/*", f"ls {options} a/folder/"):
        assert (await bench.call("run", command=command)).status == "refused", command


def spelled(number: int) -> tuple[str, str]:
    """A text, and the id of its blob."""
    text = f"KEY={VALUE} {number}\n"
    return text, blob_id(text.encode(), 40)


@pytest.mark.promise("GIT-7")
@pytest.mark.parametrize("option", ["-U", "--unified"])
async def test_a_blob_behind_an_option_that_needs_no_value_is_not_shown(
    make_bench: MakeBench, option: str
) -> None:
    bench = make_bench("explore", answerable=False)
    text, blob = next(each for each in map(spelled, range(1000)) if each[1][:6].isdigit())
    git(bench.root, "init", "-q")
    (bench.root / ".env").write_text(text)
    git(bench.root, "add", ".env")
    git(bench.root, "commit", "-qm", "first")
    finished = await bench.call("run", command=f"git show {option} {blob[:6]}")
    assert VALUE not in finished.content


@pytest.mark.promise("GIT-7")
async def test_of_a_repository_around_the_workspace_nothing_else_is_shown(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    """Neither its secrets nor its other files, committed or changed."""
    bench = make_bench("explore", answerable=False)
    top = bench.root.parent
    git(top, "init", "-q", "-b", "main")
    for name in (".env", "other.txt", "apps/.env"):
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_text(f"KEY={VALUE}\n")
    (bench.root / "plain.txt").write_text("told\n")
    git(top, "add", ".env", "other.txt", "apps", str(bench.root))
    git(top, "commit", "-qm", "first")
    for path in (top / ".env", top / "other.txt", bench.root / "plain.txt"):
        with path.open("a") as file:
            file.write(f"told {VALUE if path.parent == top else ''}\n")
    for command in (
        "git diff",
        "git show",
        "git show HEAD",
        "git log -p",
        "git log -p -S KEY",
        "git diff HEAD",
    ):
        finished = await bench.call("run", command=command)
        assert finished.status == "ok", (command, finished.content)
        assert VALUE not in finished.content, command
        assert "told" in finished.content or "-S" in command, command
    for command in (
        "git show HEAD:other.txt",
        "git show :0:other.txt",
        "git diff HEAD:other.txt HEAD:plain.txt",
    ):
        assert VALUE not in (await bench.call("run", command=command)).content, command
    shown = await bench.call("run", command="git show HEAD:plain.txt")
    assert shown.content.endswith("told")
