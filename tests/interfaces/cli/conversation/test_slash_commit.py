"""Git in the terminal: what is changed at the start, and `/commit`."""

import subprocess
from pathlib import Path

import pytest

from tests.interfaces.cli.program import script, terminal

CTRL_D, ENTER = "\x04", "\r"


def git(root: Path, *words: str) -> str:
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(
        ["git", *author, *words], cwd=root, check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    for name in ("cart.py", "tax.py", "new.py"):
        (folder / name).write_text("x = 1\n")
    git(folder, "init", "-q", "-b", "trunk")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    git(folder, "add", "cart.py", "tax.py")
    git(folder, "commit", "-qm", "first")
    (folder / "tax.py").write_text("x = 2\n")
    return folder


@pytest.mark.promise("TERM-15")
def test_the_start_says_what_is_changed_and_commit_takes_only_what_the_session_changed(
    repository: Path, tmp_path: Path
) -> None:
    before = (repository / ".git" / "index").read_bytes()
    read = {"calls": [{"name": "read", "arguments": {"path": "cart.py"}}]}
    write = {"calls": [{"name": "write", "arguments": {"path": "cart.py", "text": "x = 3\n"}}]}
    model = script(tmp_path, read, write, {"text": "So be it."})
    with terminal("--model", model, "--mode", "edit", cwd=repository) as talk:
        talk.expect("trunk, 2")
        talk.expect("files changed by you")
        talk.type("three" + ENTER)
        talk.expect("So be it.")
        talk.expect("$0.00")
        assert (repository / ".git" / "index").read_bytes() == before
        talk.type("/commit Three, not one" + ENTER)
        talk.expect("on trunk: Three, not one (1 file; no hooks run)")
        talk.type("/commit" + ENTER)
        talk.expect("Nothing was changed in this session since its last commit.")
        talk.type(CTRL_D)
        assert talk.end() == 0
    assert git(repository, "show", "--format=%s", "--name-only").split() == [
        "Three,",
        "not",
        "one",
        "cart.py",
    ]
    assert git(repository, "status", "--porcelain").splitlines() == [" M tax.py", "?? new.py"]


def test_no_commit_without_a_session(repository: Path, tmp_path: Path) -> None:
    with terminal("--model", script(tmp_path, {"text": "hi"}), cwd=repository) as talk:
        talk.expect("mode ask")
        talk.type("/commit" + ENTER)
        talk.expect("There is no session yet")
        talk.type(CTRL_D)
        assert talk.end() == 0
