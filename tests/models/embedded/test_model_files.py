"""A file is loaded only with the right bytes, and is read again whenever it may have others."""

import os
import time
from pathlib import Path

import pytest

from handrail.models.embedded.model_files import (
    DEFAULT_FILE,
    LOCAL_MODEL_VARIABLE,
    find_model_file,
    is_verified,
    models_folder,
    verify_file,
)
from handrail.protocol.errors import ConfigProblem, GiveUp
from tests.models.embedded.samples import content, record

DEADLINE = 60.0
DATA = content()
FILE = record(DATA)


@pytest.fixture
def checked(tmp_path: Path) -> Path:
    """A good file that was checked, so long after it was written that this may be remembered."""
    path = tmp_path / FILE.name
    path.write_bytes(DATA)
    limit = time.monotonic() + DEADLINE
    while list(verify_file(FILE, path, tmp_path)) and time.monotonic() < limit:
        time.sleep(0.05)
    assert is_verified(FILE, path, tmp_path)
    return path


@pytest.mark.promise("EMB-2")
def test_a_file_that_was_just_written_is_not_remembered_as_good(tmp_path: Path) -> None:
    path = tmp_path / FILE.name
    path.write_bytes(DATA)
    assert list(verify_file(FILE, path, tmp_path)) == [len(DATA)]
    assert not is_verified(FILE, path, tmp_path)


@pytest.mark.promise("EMB-2")
def test_a_file_once_checked_is_not_read_again_until_it_is_touched(checked: Path, tmp_path: Path) -> None:
    assert list(verify_file(FILE, checked, tmp_path)) == []
    stat = checked.stat()
    with checked.open("r+b") as file:
        file.seek(500)
        file.write(bytes([DATA[500] ^ 1]))
    os.utime(checked, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert checked.stat().st_mtime_ns == stat.st_mtime_ns
    with pytest.raises(GiveUp, match="SHA-256 differs"):
        list(verify_file(FILE, checked, tmp_path))
    assert not is_verified(FILE, checked, tmp_path)


@pytest.mark.promise("EMB-2")
def test_another_file_in_its_place_is_noticed(checked: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(DATA[:-1] + b"x")
    stat = checked.stat()
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    other.replace(checked)
    with pytest.raises(GiveUp):
        list(verify_file(FILE, checked, tmp_path))


@pytest.mark.parametrize("data", [b"", DATA[:-1], DATA + b"x", bytes(len(DATA))])
def test_a_file_that_is_not_the_known_one_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "elsewhere" / FILE.name
    path.parent.mkdir()
    path.write_bytes(data)
    with pytest.raises(GiveUp, match=LOCAL_MODEL_VARIABLE):
        list(verify_file(FILE, path, tmp_path))


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(GiveUp, match="cannot be read"):
        list(verify_file(FILE, tmp_path / "missing", tmp_path))


def test_the_variable_comes_before_the_cache(tmp_path: Path) -> None:
    cached = models_folder(os.environ) / DEFAULT_FILE.name
    cached.parent.mkdir(parents=True)
    cached.touch()
    own = tmp_path / "mine.gguf"
    own.touch()
    assert find_model_file(DEFAULT_FILE, os.environ) == cached
    assert find_model_file(DEFAULT_FILE, {**os.environ, LOCAL_MODEL_VARIABLE: str(own)}) == own
    with pytest.raises(ConfigProblem, match="does not exist"):
        find_model_file(DEFAULT_FILE, {**os.environ, LOCAL_MODEL_VARIABLE: str(tmp_path / "gone")})
