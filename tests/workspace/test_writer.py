import os
import stat
from hashlib import sha256
from pathlib import Path

import pytest

from handrail.protocol.errors import PathProblem
from handrail.workspace.writer import create_file, replace_file

FOLLOWS_NO_LINK = "Not a directory|symbolic link"


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def test_a_replaced_file_keeps_its_mode_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "tool.sh"
    file.write_bytes(b"old")
    file.chmod(0o750)
    replace_file(tmp_path, "tool.sh", b"new", old_sha256=digest(b"old"), change_id="c_1")
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o750
    assert os.listdir(tmp_path) == ["tool.sh"]


def test_a_file_that_is_not_the_base_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"somebody else's")
    before = file.stat()
    with pytest.raises(PathProblem) as caught:
        replace_file(tmp_path, "a", b"new", old_sha256=digest(b"old"), change_id="c_1")
    assert caught.value.reason == "stale_file"
    assert file.read_bytes() == b"somebody else's"
    assert file.stat() == before
    assert os.listdir(tmp_path) == ["a"]


def test_creating_never_replaces(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"there")
    with pytest.raises(PathProblem) as caught:
        create_file(tmp_path, "a", b"new", change_id="c_1")
    assert caught.value.reason == "file_exists"
    assert (tmp_path / "a").read_bytes() == b"there"
    assert os.listdir(tmp_path) == ["a"]


def test_creating_makes_the_folders_it_needs(tmp_path: Path) -> None:
    create_file(tmp_path, "deep/er/a", b"new", change_id="c_1")
    assert (tmp_path / "deep/er/a").read_bytes() == b"new"
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "deep/er/a").stat().st_mode) == 0o666 & ~umask


def test_a_folder_that_cannot_be_written_is_named_as_such(tmp_path: Path) -> None:
    root = tmp_path
    if os.geteuid() == 0:
        root = Path("/sys")  # where the administrator cannot create files either
    tmp_path.chmod(0o555)
    with pytest.raises(PathProblem) as caught:
        create_file(root, "file", b"new", change_id="c_1")
    assert caught.value.reason == "protected_path"
    assert "cannot be written" in str(caught.value)
    assert "c_1" not in str(caught.value)
    assert "Errno" not in str(caught.value)


@pytest.mark.promise("WORK-4")
def test_a_folder_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "work", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "a").write_bytes(b"old")
    (root / "src").symlink_to(outside)
    with pytest.raises(OSError, match=FOLLOWS_NO_LINK):
        replace_file(root, "src/a", b"new", old_sha256=digest(b"old"), change_id="c_1")
    with pytest.raises(OSError, match=FOLLOWS_NO_LINK):
        create_file(root, "src/b", b"new", change_id="c_1")
    assert (outside / "a").read_bytes() == b"old"
    assert os.listdir(outside) == ["a"]


def test_a_file_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "a").symlink_to("real")
    with pytest.raises(OSError, match=FOLLOWS_NO_LINK):
        replace_file(tmp_path, "a", b"new", old_sha256=digest(b"old"), change_id="c_1")
    assert (tmp_path / "real").read_bytes() == b"old"
