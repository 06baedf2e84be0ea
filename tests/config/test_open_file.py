"""The one way to open a file: only regular files, and never more than was asked for."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.config.open_file import FileTooLarge, NotAFile, open_file, read_file

pytestmark = pytest.mark.promise("WORK-9")


def test_a_regular_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_file(file, 5) == b"12345"
    with pytest.raises(FileTooLarge, match="more than 4 bytes"):
        read_file(file, 4)
    with open_file(file) as opened:
        assert (opened.read(2), opened.read(10), opened.read(1)) == (b"12", b"345", b"")
    with open_file(file) as opened:
        assert opened.tail(2) == b"45"


def test_a_file_that_grows_while_it_is_read_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 10)
    with open_file(file) as opened:
        with file.open("ab") as growing:
            growing.write(b"x" * 1_000)
        with pytest.raises(FileTooLarge):
            b"".join(opened.chunks(100))


def test_a_file_that_does_not_know_its_size_is_bounded() -> None:
    if not os.path.exists("/proc/self/status"):
        return  # only Linux has such files
    assert os.stat("/proc/self/status").st_size == 0
    with pytest.raises(FileTooLarge):
        read_file("/proc/self/status", 100)
    assert len(read_file("/proc/self/status", 100_000)) > 100


def test_what_is_not_a_regular_file_is_named_and_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "circle").symlink_to("circle")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "socket"))
    kinds = {"pipe": "a pipe", "zero": "a device", "socket": "a socket", ".": "a folder"}
    for name, kind in kinds.items():
        with pytest.raises(NotAFile, match=f"it is {kind}, not a file"):
            read_file(tmp_path / name, 10)
    with pytest.raises(OSError, match="symbolic link"):
        read_file(tmp_path / "circle", 10)
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "nothing", 10)


def test_a_link_is_followed_only_where_that_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    assert read_file(tmp_path / "link", 10) == b"text"
    with pytest.raises(NotAFile, match="a link"):
        read_file(tmp_path / "link", 10, follow=False)


def test_no_descriptor_is_left_open_or_inherited(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    os.mkfifo(tmp_path / "pipe")
    with open_file(tmp_path / "file") as opened:
        assert not os.get_inheritable(opened.descriptor)
        number = opened.descriptor
    with pytest.raises(NotAFile):
        read_file(tmp_path / "pipe", 10)
    with open_file(tmp_path / "file") as opened:
        assert opened.descriptor == number


def test_a_terminal_does_not_become_ours(tmp_path: Path) -> None:
    code = """
import os, sys
from handrail.config.open_file import NotAFile, read_file
os.setsid()
try:
    read_file(sys.argv[1], 10)
except NotAFile:
    print("refused")
try:
    os.open("/dev/tty", os.O_RDWR)
except OSError:
    print("no terminal")
"""
    master, slave = os.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, os.ttyname(slave)],
            env=os.environ | {"PYTHONPATH": "src"},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    finally:
        os.close(master)
        os.close(slave)
    assert done.stdout == "refused\nno terminal\n"
