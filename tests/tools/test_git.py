import os
import subprocess
from pathlib import Path

import pytest

from handrail.tools.git import GitState, git_state

pytestmark = pytest.mark.anyio


def git(root: Path, *words: str) -> None:
    author = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run(["git", "-C", str(root), *author, *words], check=True, capture_output=True, timeout=30)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    for name in ("a", "b", "c d"):
        (tmp_path / name).write_text("one\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


async def test_branch_and_changed_files_are_counted(repository: Path) -> None:
    assert await git_state(repository) == GitState("main", 0)
    (repository / "a").write_text("two\n")
    (repository / "new").write_text("x")
    git(repository, "mv", "b", "moved")
    assert await git_state(repository) == GitState("main", 3)


async def test_a_folder_without_a_repository_has_no_state(tmp_path: Path) -> None:
    assert await git_state(tmp_path) is None


async def test_without_git_there_is_no_state(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    assert await git_state(repository) is None


async def test_a_commit_without_a_branch_has_no_branch(repository: Path) -> None:
    git(repository, "checkout", "-q", "--detach")
    assert await git_state(repository) == GitState("", 0)


@pytest.mark.promise("TOOL-12")
async def test_the_repository_cannot_make_git_run_its_programs(repository: Path) -> None:
    evil = repository / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {repository}/ran\ncat\n")
    evil.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(evil))
    git(repository, "config", "filter.evil.clean", str(evil))
    git(repository, "config", "filter.evil.required", "true")
    (repository / ".gitattributes").write_text("* filter=evil\n")
    os.utime(repository / "a", (1, 1))
    state = await git_state(repository)
    assert state is not None
    assert not (repository / "ran").exists()
