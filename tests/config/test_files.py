"""Writing and locking Handrail's own files."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.config.files import FileLock, is_locked, try_lock, write_atomically

HOLDER = """
import sys
from pathlib import Path
from handrail.config.files import try_lock
lock = try_lock(Path(sys.argv[1]))
print("held" if lock else "not held", flush=True)
sys.stdin.read()
"""


def test_a_written_file_is_whole_and_private(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("old")
    write_atomically(file, b"new")
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["a"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    def lines() -> Iterator[bytes]:
        yield b"new"
        raise RuntimeError("no more")

    file = tmp_path / "a"
    file.write_text("old")
    with pytest.raises(RuntimeError):
        write_atomically(file, lines())
    with pytest.raises(FileExistsError):
        write_atomically(file, b"new", overwrite=False)
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_content_and_folder_are_on_the_disk_before_it_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[str] = []

    def fsync(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        forced.append("folder" if is_folder else f"{os.fstat(descriptor).st_size} bytes")

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomically(tmp_path / "a", [b"one", b"two"])
    assert forced == ["6 bytes", "folder"]


def test_shared_locks_exclude_only_those_that_are_not(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    assert not is_locked(file)
    with FileLock(file) as one, FileLock(file) as two:
        assert one.try_lock(shared=True)
        assert two.wait(0, shared=True)
        assert is_locked(file)
        assert not is_locked(file, alone=True)
        assert not two.wait(0)
        assert try_lock(file) is None
        one.release()
        assert two.try_lock()
        assert is_locked(file, alone=True)
    assert not is_locked(file)


@pytest.mark.parametrize("name", ["lock", "."], ids=["file", "folder"])
def test_a_lock_ends_with_its_process(name: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLDER, str(tmp_path / name)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        assert try_lock(tmp_path / name) is None
        holder.kill()
    lock = try_lock(tmp_path / name)
    assert lock
    lock.release()
