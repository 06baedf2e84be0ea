"""Pictures are known by their bytes, measured by their head, and refused where they lie."""

import os
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.protocol.errors import PathProblem
from handrail.workspace.files import Workspace
from handrail.workspace.images import IMAGE_LIMIT
from tests.pictures import gif, jpeg, png, webp, webp_lossless, webp_lossy


@pytest.mark.promise("IMG-1")
@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (png, "image/png"),
        (jpeg, "image/jpeg"),
        (gif, "image/gif"),
        (webp, "image/webp"),
        (webp_lossy, "image/webp"),
        (webp_lossless, "image/webp"),
    ],
)
def test_a_picture_is_known_by_its_bytes_whatever_its_name(
    tmp_path: Path, make: Callable[[int, int], bytes], kind: str
) -> None:
    (tmp_path / "notes.txt").write_bytes(make(1200, 345))
    found = Workspace(tmp_path).image("notes.txt")
    assert found
    assert (found.image.media_type, found.image.width, found.image.height) == (kind, 1200, 345)
    assert found.image.size == len(found.data)


@pytest.mark.promise("IMG-1")
@pytest.mark.parametrize(
    "data", [b"", b"x = 1\n", b"GIF89a is a format of pictures.\n", b"RIFF1234WAVE", b"\x89PNG"]
)
def test_a_name_makes_no_picture(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.png").write_bytes(data)
    assert Workspace(tmp_path).image("x.png") is None


def lying_png() -> bytes:
    """A head that says another size than the one that was written."""
    whole = png(4, 3)
    return whole[:16] + struct.pack(">II", 3, 4) + whole[24:]


@pytest.mark.promise("IMG-2")
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (lying_png(), "broken"),
        (png()[:40], "broken"),
        (png()[:-12], "broken"),
        (png(0, 3), "broken"),
        (png(8_001, 1), "8,001 x 1 pixels"),
        (b"\xff\xd8\xff" + b"\xff" * 5_000, "broken"),
        (b"\xff\xd8\xff\xe0\0\0" + bytes(50), "broken"),
        (webp()[:-1], "broken"),
        (b"RIFF\x04\0\0\0WEBP", "broken"),
    ],
)
def test_a_head_that_lies_is_refused(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "x.png").write_bytes(data)
    with pytest.raises(PathProblem, match=words):
        Workspace(tmp_path).image("x.png")


@pytest.mark.promise("IMG-2")
def test_a_huge_picture_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "x.png").open("wb") as file:
        file.write(png())
        file.truncate(10_000_000_000)
    with pytest.raises(PathProblem, match=r"10,000,000,000 bytes; the limit for images") as raised:
        Workspace(tmp_path).image("x.png")
    assert raised.value.reason == "too_large"


@pytest.mark.promise("IMG-2")
def test_a_picture_of_just_the_limit_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(png(seed=b"x" * (IMAGE_LIMIT - len(png(seed=b"x")) + 1)))
    assert path.stat().st_size == IMAGE_LIMIT
    assert Workspace(tmp_path).image("x.png")
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(PathProblem, match="smaller"):
        Workspace(tmp_path).image("x.png")


@pytest.mark.promise("WORK-2")
def test_a_pipe_named_like_a_picture_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.png")
    with pytest.raises(PathProblem, match="a pipe"):
        Workspace(tmp_path).image("x.png")


@pytest.mark.promise("IMG-2")
def test_a_picture_that_is_being_written_is_refused(tmp_path: Path) -> None:
    path, stop = tmp_path / "x.png", threading.Event()
    first, second = png(seed=b"a" * 2_000_000), png(seed=b"b" * 2_000_000)
    path.write_bytes(first)

    def write() -> None:
        while not stop.is_set():
            for data in (second, first):
                with path.open("r+b") as file:
                    file.write(data)

    writer = threading.Thread(target=write)
    writer.start()
    deadline = time.monotonic() + 20
    try:
        # The clock that stamps files is coarse, so that not every single change is noticed.
        with pytest.raises(PathProblem, match="changed while it was read"):
            while time.monotonic() < deadline:
                Workspace(tmp_path).image("x.png")
    finally:
        stop.set()
        writer.join()
