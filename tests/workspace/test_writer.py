import os
from hashlib import sha256
from pathlib import Path

import pytest

from handrail.protocol.errors import PathProblem
from handrail.workspace.disk import Disk, NotSupported
from handrail.workspace.file_step import FileStep
from handrail.workspace.writer import Writer, exchange_offered


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def step(path: str, old: bytes | None, new: bytes | None) -> FileStep:
    like = path if old is not None and new is not None else ""
    return FileStep(
        path, digest(old) if old else "", digest(new) if new else "", None, None, "c_1", like=like
    )


def test_a_folder_that_cannot_be_written_is_named_as_such(tmp_path: Path) -> None:
    root = tmp_path
    if os.geteuid() == 0:
        root = Path("/sys")  # where the administrator cannot create files either
    tmp_path.chmod(0o555)
    with pytest.raises(PathProblem) as caught:
        Writer(root).put(step("file", None, b"new"), b"new", mode=None)
    assert caught.value.reason == "protected_path"
    assert "cannot be written" in str(caught.value)
    assert "c_1" not in str(caught.value)
    assert "Errno" not in str(caught.value)


def test_a_step_goes_back_when_what_was_displaced_is_lost(tmp_path: Path) -> None:
    """As after a power cut that took it: the content comes from where it is kept."""
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / "f").chmod(0o640)
    writer, one = Writer(tmp_path), step("f", b"old", b"new")
    writer.put(one, b"new", mode=0o640)
    writer.forward(one)
    (tmp_path / one.temporary).unlink()
    writer.back(one, lambda _: b"old")
    writer.tidy(one)
    assert (tmp_path / "f").read_bytes() == b"old"
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["f"]


def test_a_save_that_a_killed_undo_displaced_is_kept(tmp_path: Path) -> None:
    """Also where the old content had to be written anew."""

    class Killed(Disk):
        def exchange(self, folder: int, one: str, other: str) -> None:
            (tmp_path / "f").write_bytes(b"theirs")
            super().exchange(folder, one, other)
            raise KeyboardInterrupt

    (tmp_path / "f").write_bytes(b"new")
    one = step("f", b"old", b"new")
    with pytest.raises(KeyboardInterrupt):
        Writer(tmp_path, Killed()).back(one, lambda _: b"old")
    copy = Writer(tmp_path).tidy(one)
    assert (tmp_path / "f").read_bytes() == b"old"
    assert (tmp_path / copy).read_bytes() == b"theirs"
    assert sorted(os.listdir(tmp_path)) == ["f", copy]


def test_whether_names_can_be_exchanged_is_tried_and_leaves_nothing(tmp_path: Path) -> None:
    class Without(Disk):
        def exchange(self, folder: int, one: str, other: str) -> None:
            raise NotSupported

    assert exchange_offered(tmp_path)
    assert not exchange_offered(tmp_path, Without())
    assert os.listdir(tmp_path) == []
