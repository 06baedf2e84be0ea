import os
import subprocess
from pathlib import Path

import pytest

from handrail.verification.ghost_files import TrackedUnknown, find_ghost_files


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    git(root, "init", "-q")
    (root / "kept.py").write_text("x = 1\n")
    (root / ".gitignore").write_text("*.log\nout/\n")
    git(root, "add", ".")
    return root


def ghosts(root: Path, *expected: str, repository: Path | None = None) -> list[str]:
    return [issue.path for issue in find_ghost_files(root, expected, repository)]


@pytest.mark.promise("GHOST-1")
def test_only_files_that_nobody_planned_are_ghosts(repository: Path) -> None:
    for path in (
        "made.py",
        "planned/a.py",
        "planned/b/c.py",
        "scratch.txt",
        "sub/test_debug.py",
        "debug.log",
        "out/x",
    ):
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text("")
    assert ghosts(repository, "made.py", "planned/") == ["scratch.txt", "sub/test_debug.py"]


@pytest.mark.promise("GHOST-1")
def test_own_ignored_and_special_files_are_never_ghosts(repository: Path) -> None:
    for path in (
        ".handrail/state.json",
        ".orchestration/trace.jsonl",
        ".intentignore",
        ".venv/x.py",
        "node_modules/a.js",
    ):
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text("")
    os.mkfifo(repository / "pipe")
    (repository / "link").symlink_to("kept.py")
    assert ghosts(repository) == []


def test_subfolder_and_copy_are_judged_by_their_repository(repository: Path, tmp_path: Path) -> None:
    (repository / "part").mkdir()
    (repository / "part/known.py").write_text("")
    git(repository, "add", ".")
    (repository / "part/new.py").write_text("")
    assert ghosts(repository / "part") == ["new.py"]
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "kept.py").write_text("")
    (copy / "other.py").write_text("")
    assert ghosts(copy, repository=repository) == ["other.py"]


def test_files_in_a_merge_conflict_are_tracked(repository: Path) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    git(repository, *who, "commit", "-qm", "one")
    git(repository, "checkout", "-qb", "other")
    (repository / "kept.py").write_text("x = 2\n")
    git(repository, *who, "commit", "-qam", "two")
    git(repository, "checkout", "-q", "-")
    (repository / "kept.py").write_text("x = 3\n")
    git(repository, *who, "commit", "-qam", "three")
    merged = subprocess.run(["git", *who, "merge", "other"], cwd=repository, check=False, capture_output=True)
    assert merged.returncode == 1
    assert ghosts(repository) == []


def test_what_is_tracked_must_be_known(tmp_path: Path, repository: Path) -> None:
    outside = tmp_path / "plain"
    outside.mkdir()
    with pytest.raises(TrackedUnknown, match="not in a git repository"):
        find_ghost_files(outside, ())
    git(repository, "update-index", "--split-index")
    with pytest.raises(TrackedUnknown, match="split index"):
        find_ghost_files(repository, ())
