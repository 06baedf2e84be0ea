import os
import shutil
import subprocess
from pathlib import Path

import pytest

from handrail.tools.git import GitState, git_state

pytestmark = pytest.mark.anyio


def git(root: Path, *words: str) -> str:
    author = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    done = subprocess.run(
        ["git", "-C", str(root), *author, *words], check=True, capture_output=True, timeout=60
    )
    return done.stdout.decode()


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


@pytest.fixture
def evil(repository: Path) -> Path:
    """A program of the repository's that leaves a trace when it runs."""
    program = repository / ".git" / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch {repository}/.git/ran\ncat\n")
    program.chmod(0o755)
    return program


def ran(evil: Path) -> bool:
    return evil.with_name("ran").exists()


@pytest.mark.promise("TOOL-12")
@pytest.mark.parametrize("name", ["evil", "a=b", "a\u00a0b", "a b", "a.b=c.d", "caf\udce9"])
async def test_filters_of_the_repository_are_not_run(repository: Path, evil: Path, name: str) -> None:
    with (repository / ".git" / "config").open("a", encoding="utf-8", errors="surrogateescape") as config:
        config.write(f'[filter "{name}"]\n\tclean = {evil}\n\trequired = true\n')
        config.write(f"[core]\n\tfsmonitor = {evil}\n")
    attributes = f'* "filter={name}"\n' if " " in name else f"* filter={name}\n"
    (repository / ".gitattributes").write_bytes(os.fsencode(attributes))
    os.utime(repository / "a", (1, 1))
    assert await git_state(repository) is not None
    assert not ran(evil)


@pytest.mark.promise("TOOL-12")
async def test_a_missing_object_is_not_fetched_by_a_program_of_the_repository(
    repository: Path, evil: Path
) -> None:
    tree = git(repository, "rev-parse", "HEAD^{tree}").strip()
    (repository / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    for name, value in {
        "core.repositoryformatversion": "1",
        "core.sshCommand": str(evil),
        "protocol.ssh.allow": "always",
        "extensions.partialClone": "origin",
        "remote.origin.url": "ssh://host/x",
        "remote.origin.promisor": "true",
    }.items():
        git(repository, "config", name, value)
    await git_state(repository)
    assert not ran(evil)


@pytest.mark.promise("TOOL-12")
async def test_a_folder_that_poses_as_a_repository_is_none(repository: Path, evil: Path) -> None:
    inner = repository / "inner"
    git(repository, "init", "-q", "--bare", str(inner))
    git(inner, "config", "core.bare", "false")
    git(inner, "config", "core.worktree", str(inner))
    git(inner, "config", "core.fsmonitor", str(evil))
    assert await git_state(inner) is None
    assert not ran(evil)


@pytest.mark.promise("TOOL-12")
async def test_no_hook_of_the_repository_runs_in_what_git_starts(
    repository: Path, evil: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A git that runs a hook each time it is called, as one that wrote the index would."""
    shutil.copy(evil, repository / ".git" / "hooks" / "post-index-change")
    real, folder = shutil.which("git"), tmp_path_factory.mktemp("bin")
    hook = f'"{real}" hook run --ignore-missing post-index-change >&2 </dev/null'
    (folder / "git").write_text(
        f'#!/bin/sh\ntouch "{folder}/called"\n{hook} 2>/dev/null\nexec "{real}" "$@"\n'
    )
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    assert await git_state(repository) == GitState("main", 0)
    assert (folder / "called").exists()
    assert not ran(evil)


async def test_settings_that_the_user_gave_git_in_the_environment_stay(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "status.showUntrackedFiles")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "no")
    (repository / "new").write_text("x")
    assert await git_state(repository) == GitState("main", 0)
