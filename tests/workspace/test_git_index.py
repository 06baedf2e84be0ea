"""The index that git writes, read without git."""

import hashlib
import struct

import pytest

from handrail.workspace.git_index import DamagedIndex, read_index


def index_of(names: list[bytes]) -> bytes:
    """An index of version 4, in which each name goes on from the one before."""
    entries = b"".join(
        struct.pack(">10I20sH", *[0] * 6, 0o100644, *[0] * 3, bytes(20), 0) + name for name in names
    )
    body = b"DIRC" + struct.pack(">II", 4, len(names)) + entries
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


@pytest.mark.promise("WORK-8")
def test_names_that_grow_with_every_entry_do_not_fill_the_memory() -> None:
    """100,000 names that each add a hundred bytes to the one before: 500 GB of names in 16 MB."""
    short = index_of([b"\0" + b"a" * 10 + b"\0"])
    assert list(read_index(short, 10**18, "")) == ["a" * 10]
    with pytest.raises(DamagedIndex, match="too long"):
        read_index(index_of([b"\0" + b"a" * 100 + b"\0"] * 100_000), 10**18, "")
