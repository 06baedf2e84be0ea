"""A refreshed copy equals the workspace, whatever happened to either."""

import os
import socket
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from handrail.protocol.errors import PathProblem, StorageProblem
from handrail.workspace.files import Workspace
from handrail.workspace.scratch_copy import wanted as wanted_module
from handrail.workspace.scratch_copy.copies import ScratchCopies
from handrail.workspace.scratch_copy.copy import ScratchCopy


def make(root: Path, **files: str) -> None:
    for path, text in files.items():
        put(root, path, text)


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def tree(root: Path) -> dict[str, object]:
    """Everything below a folder: content, permissions, where links lead."""
    found: dict[str, object] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                what: object = os.readlink(path)
            else:
                what = path.read_bytes() if stat.S_ISREG(mode) else "folder"
            found[str(path.relative_to(root))] = (what, oct(mode & 0o777) if what != "folder" else "")
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    put(folder, "src/cart.py", "total = 1\n")
    put(folder, "README.md", "# Shop\n")
    return folder


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> ScratchCopy:
    made = ScratchCopy(Workspace(root), tmp_path / "copies" / "0")
    made.refresh()
    return made


@pytest.mark.promise("COPY-1")
def test_a_copy_has_files_folders_links_and_permissions_and_no_hard_links(root: Path, tmp_path: Path) -> None:
    put(root, "run.sh", "#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    put(root, "secret/locked.txt", "x")
    (root / "secret/locked.txt").chmod(0o400)
    (root / "empty/inner").mkdir(parents=True)
    (root / "away").symlink_to("/etc")
    (root / "broken").symlink_to("nowhere")
    (root / os.fsdecode(b"caf\xe9\n")).write_text("x")
    put(root, "large.bin", "x" * 3_000_000)
    os.link(root / "README.md", tmp_path / "elsewhere")
    with ScratchCopies(Workspace(root), tmp_path / "copies").take() as copy:
        assert tree(copy.root) == tree(root)
        assert (copy.root / "README.md").stat().st_nlink == 1
        (copy.root / "README.md").write_text("changed")
        (copy.root / "large.bin").write_text("changed")
    assert (root / "README.md").read_text() == "# Shop\n"
    assert (root / "large.bin").stat().st_size == 3_000_000


@pytest.mark.promise("COPY-1")
def test_only_what_changed_is_copied_again(root: Path, copy: ScratchCopy) -> None:
    assert copy.refresh().copied == ()
    put(root, "src/cart.py", "total = 2\n")
    put(root, "new/file.py", "")
    (root / "README.md").unlink()
    done = copy.refresh()
    assert (done.copied, done.removed) == (("new/file.py", "src/cart.py"), ("README.md",))
    assert tree(copy.root) == tree(root)
    (root / "src/cart.py").chmod(0o700)
    assert copy.refresh().copied == ("src/cart.py",)
    assert tree(copy.root) == tree(root)


@pytest.mark.promise("COPY-1")
def test_a_change_that_leaves_the_stat_as_it_was_is_noticed(root: Path, copy: ScratchCopy) -> None:
    # Written in the same tick of a slow clock: here the record is made to say so.
    put(root, "src/cart.py", "total = 9\n")
    record = copy._record
    found = os.stat(root / "src/cart.py")
    same = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode)
    record.sources["src/cart.py"] = same
    assert "src/cart.py" in record.doubtful
    assert copy.refresh().copied == ("src/cart.py",)
    assert tree(copy.root) == tree(root)


@pytest.mark.promise("COPY-2")
def test_what_commands_did_to_a_copy_is_gone_after_a_refresh(
    root: Path, copy: ScratchCopy, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    put(outside, "cart.py", "mine")
    put(outside, "README.md", "mine")
    copy.shown()
    put(copy.root, "src/cart.py", "total = 7\n")
    put(copy.root, "build/out.txt", "x")
    put(copy.root, "src/__pycache__/cart.cpython-311.pyc", "another program")
    put(copy.root, ".git/config", "x")
    put(copy.root, ".mypy_cache/kept.json", "{}")
    (copy.root / "README.md").unlink()
    (copy.root / "README.md").mkdir()
    copy.refresh()
    assert (copy.root / ".mypy_cache/kept.json").exists()
    (copy.root / ".mypy_cache/kept.json").unlink()
    (copy.root / ".mypy_cache").rmdir()
    assert tree(copy.root) == tree(root)
    # A folder that became a link must not lead the next refresh out of the copy.
    copy.shown()
    (copy.root / "src/cart.py").unlink()
    (copy.root / "src").rmdir()
    (copy.root / "src").symlink_to(outside)
    put(root, "src/cart.py", "total = 3\n")
    copy.refresh()
    assert tree(copy.root) == tree(root)
    assert tree(outside) == {"cart.py": (b"mine", "0o644"), "README.md": (b"mine", "0o644")}


@pytest.mark.promise("COPY-3")
def test_pipes_sockets_and_unreadable_files_are_named_and_left_out(root: Path, copy: ScratchCopy) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
    done = copy.refresh()
    assert done.left_out == {
        "pipe": "it is a pipe, not a file",
        "socket": "it is a socket, not a file",
    }
    (root / "pipe").unlink()
    (root / "socket").unlink()
    assert copy.refresh().left_out == {}
    assert tree(copy.root) == tree(root)


@pytest.mark.promise("COPY-4")
def test_ignored_files_beside_others_are_copied_and_packages_and_secrets_are_shown(
    root: Path, tmp_path: Path
) -> None:
    put(root, ".gitignore", "_version.py\nnode_modules/\n.venv\nbuild/\n.env\n*.egg-info/\nown/\n")
    put(root, "src/_version.py", "1")
    put(root, "node_modules/left/index.js", "1")
    put(root, "node_modules/@scope/right/index.js", "1")
    (root / "node_modules/own").symlink_to("../lib")
    put(root, ".venv/pyvenv.cfg", "1")
    put(root, "own/pyvenv.cfg", "1")
    put(root, "build/out", "1")
    put(root, ".env", "KEY=1")
    put(root, "shop.egg-info/PKG-INFO", "1")
    put(root, "lib/.git/HEAD", "ref: refs/heads/main")
    with ScratchCopies(Workspace(root), tmp_path / "copies").take() as copy:
        assert set(tree(copy.root)) == {
            *(".gitignore", "README.md", "src", "src/cart.py", "src/_version.py", "lib")
        }
        shown = {(path, path) for path in (".env", ".venv", "lib/.git", "own", "shop.egg-info")}
        shown |= {("node_modules", "node_modules/.packages")}
        for _ in range(2):
            assert set(copy.shown().read_only) == shown
            assert os.readlink(copy.root / "node_modules/left") == ".packages/left"
            assert os.readlink(copy.root / "node_modules/@scope/right") == "../.packages/@scope/right"
            assert os.readlink(copy.root / "node_modules/own") == "../lib"
            assert set(copy.shown().read_only) == shown
            copy.refresh()


def test_tracked_files_in_an_ignored_folder_are_copied(root: Path, copy: ScratchCopy) -> None:
    put(root, ".gitignore", "build/\n")
    put(root, "build/deep/kept.txt", "kept")
    put(root, "build/other.txt", "not tracked")
    for words in (["init", "-q"], ["add", "-f", "build/deep/kept.txt"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    copy.refresh()
    found = tree(copy.root)
    assert "build/deep/kept.txt" in found
    assert "build/other.txt" not in found
    assert copy.differences() == ((), (), ())
    put(root, "build/deep/kept.txt", "changed")
    assert copy.refresh().copied == ("build/deep/kept.txt",)


def test_handrails_own_folder_in_the_workspace_is_not_copied(root: Path) -> None:
    state = root / "state"
    copies = ScratchCopies(Workspace(root, (state,)), state / "copies")
    for _ in range(2):
        with copies.take() as copy:
            assert set(tree(copy.root)) == {"README.md", "src", "src/cart.py"}


@pytest.mark.promise("COPY-5")
def test_differences_name_what_would_have_to_be_applied(root: Path, copy: ScratchCopy) -> None:
    put(root, ".gitignore", "*.log\n")
    put(root, "same.txt", "same\n")
    copy.refresh()
    assert copy.differences() == ((), (), ())
    copy.write("src/cart.py", b"total = 4\n")
    copy.write("src/deep/new.py", b"")
    copy.write("same.txt", b"same\n")
    copy.write("out.log", b"ignored")
    copy.write(".gitignore", b"*.log\nsame.txt\n")
    copy.delete("README.md")
    assert copy.differences() == (("src/deep/new.py",), (".gitignore", "src/cart.py"), ("README.md",))
    copy.refresh()
    assert copy.differences() == ((), (), ())
    assert tree(copy.root) == tree(root)
    put(root, "src/cart.py", "total = 5\n")  # the user edits while checks run
    assert copy.differences() == ((), ("src/cart.py",), ())


def test_a_path_that_leads_out_of_the_copy_is_refused(root: Path, copy: ScratchCopy, tmp_path: Path) -> None:
    (copy.root / "away").symlink_to(tmp_path)
    for path in ("../x", "/etc/x", "away/x", "", "src/../../x"):
        with pytest.raises(PathProblem):
            copy.write(path, b"x")
    with pytest.raises(PathProblem):
        copy.delete("missing")
    assert not (tmp_path / "x").exists()


@pytest.mark.promise("COPY-6")
def test_files_that_are_written_meanwhile_are_whole_or_named(root: Path, copy: ScratchCopy) -> None:
    """Each version of the file has one letter only: a mixture would show."""
    size, stop = 400_000, threading.Event()
    put(root, "busy.txt", "a" * size)

    def edit() -> None:
        letters = 0
        while not stop.is_set():
            letters += 1
            (root / "busy.txt").write_text(chr(ord("a") + letters % 26) * size)

    writer = threading.Thread(target=edit)
    writer.start()
    try:
        for _ in range(30):
            done = copy.refresh()
            if "busy.txt" in done.left_out:
                assert not (copy.root / "busy.txt").exists()
            elif (copy.root / "busy.txt").stat().st_size:
                text = (copy.root / "busy.txt").read_text()
                assert text == text[0] * len(text)
    finally:
        stop.set()
        writer.join()
    copy.refresh()
    assert tree(copy.root) == tree(root)


def test_too_much_to_copy_is_refused_before_anything_is_copied(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wanted_module, "MAX_BYTES", 5)
    copy = ScratchCopy(Workspace(root), tmp_path / "copies" / "0")
    with pytest.raises(StorageProblem, match="gitignore"):
        copy.refresh()
    assert not tree(copy.root)
