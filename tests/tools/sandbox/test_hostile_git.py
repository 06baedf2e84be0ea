"""Repositories that make git run a program: none runs in a commit or in commands nobody was asked about."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from handrail.protocol.errors import UsageProblem
from handrail.tools.git import file_on_branches, git_state
from handrail.tools.git_commit import FileToCommit, commit_files
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from tests.hostile.git_programs import PLAIN, UNUSABLE, WAYS, committed_attributes, git, start
from tests.tools.calls import Bench

pytestmark = pytest.mark.anyio
MakeBench = Callable[..., Bench]
ONLY_COMMITTED = "filter, attributes only committed"
COMMANDS = (
    "git status",
    "git diff",
    "git diff HEAD~1 HEAD && git diff --cached --stat",
    "git log -p --stat",
    "git log --oneline | head -3",
    "git show",
    "git show HEAD:a.txt",
    "git blame a.txt",
    "git branch -vv",
    "git ls-files -m",
    "git rev-parse HEAD",
)


def prepare(root: Path, way: str) -> Path:
    """The repository made hostile; returns the file that is there once its program has run."""
    evil, ran = root / "evil.sh", root / "ran"
    evil.write_text(f'#!/bin/sh\n: > {ran}\ncase "$*" in *upload-pack*) exit 1 ;; esac\ncat\n')
    evil.chmod(0o755)
    start(root)
    (WAYS | {ONLY_COMMITTED: committed_attributes})[way](root, str(evil))
    ran.unlink(missing_ok=True)
    return ran


@pytest.mark.promise("GIT-3")
@pytest.mark.promise("GIT-4")
@pytest.mark.parametrize("way", WAYS)
async def test_git_runs_no_program_of_the_repository(
    make_bench: MakeBench, protection: Protection, way: str
) -> None:
    bench = make_bench("explore", sandbox=Sandbox(found=protection), answerable=False)
    ran = prepare(bench.root, way)
    for command in COMMANDS:
        finished = await bench.call("run", command=command)
        assert (finished.status == "refused") is (way in UNUSABLE), finished.content
        if way in UNUSABLE:
            assert "git was not run" in finished.content
        assert not ran.exists(), command
    assert (await git_state(bench.root) is None) is (way in UNUSABLE)
    await file_on_branches(bench.root, "a.txt")
    files = [FileToCommit("a.txt", b"one\n", b"two\n"), FileToCommit("new.txt", None, b"new\n")]
    (bench.root / "new.txt").write_text("new\n")
    with suppress(UsageProblem):
        await commit_files(bench.workspace, files, "Second\n")
    assert not ran.exists()
    for words in PLAIN:
        git(bench.root, *words, check=False)
    assert ran.exists(), "this way would not run anything in any case"


@pytest.mark.promise("GIT-3")
@pytest.mark.parametrize(
    "way", [*(way for way in WAYS if way.startswith("filter, attributes")), ONLY_COMMITTED]
)
async def test_a_commit_leaves_out_what_git_would_convert(make_bench: MakeBench, way: str) -> None:
    bench = make_bench("auto")
    prepare(bench.root, way)
    git(bench.root, "config", "user.name", "x")
    git(bench.root, "config", "user.email", "x@example.com")
    files = [FileToCommit("a.txt", b"one\n", b"two\n"), FileToCommit("new.md", None, b"new\n")]
    (bench.root / "new.md").write_text("new\n")
    made = await commit_files(bench.workspace, files, "Second\n")
    assert made.files == ("new.md",)
    assert "a.txt is left out: git stores it through a filter. Add it yourself." in made.notes


@pytest.mark.promise("GIT-3")
@pytest.mark.parametrize("way", UNUSABLE)
async def test_without_an_answer_about_its_settings_nothing_is_committed(
    make_bench: MakeBench, way: str
) -> None:
    bench = make_bench("auto")
    prepare(bench.root, way)
    head = git(bench.root, "rev-parse", "main", check=False)
    with pytest.raises(UsageProblem, match="Nothing was committed"):
        await commit_files(bench.workspace, [FileToCommit("a.txt", b"one\n", b"two\n")], "Second\n")
    assert git(bench.root, "rev-parse", "main", check=False) == head
