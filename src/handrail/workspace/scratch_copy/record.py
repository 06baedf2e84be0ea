"""What a scratch copy was made from: the stat of each file on both sides, kept beside the copy.

The file has one piece for every refresh, so that recording a change costs no more than the change. Nothing in
it is taken on trust: a file counts as copied only if the stats of both sides are still the recorded ones. It
is not flushed to the disk. After a crash of the machine it names another boot, and the copy is made anew.
"""

import os
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from handrail.config.open_file import read_file
from handrail.workspace.stat_index import FileStat

VERSION = "handrail scratch copy 1"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
MAX_BYTES = 512_000_000
MAX_PIECES = 200  # then the file is written anew
HEAD = 8  # bytes of a piece's length and its checksum
WIDTH = len(FileStat._fields)

Numbers = tuple[int, ...]


class Piece(msgspec.Struct, array_like=True):
    paths: bytes = b""
    """Each followed by a NUL."""
    sources: list[int] = []
    copies: list[int] = []
    removed: bytes = b""
    doubtful: bytes = b""
    folders: dict[bytes, int] | None = None
    """All of them; None: as before."""


class CopyRecord:
    """The files that a copy has, by path: their stats in the workspace and in the copy."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._pieces = 0
        self.sources: dict[str, Numbers] = {}
        self.copies: dict[str, Numbers] = {}
        self.doubtful: set[str] = set()
        """Written so shortly before that a later change could have left the stat as it is."""
        self.folders: dict[str, int] = {}
        self.exists = self._load()

    def update(
        self,
        pairs: Mapping[str, tuple[FileStat, FileStat]],
        removed: Iterable[str],
        doubtful: Iterable[str],
        folders: Mapping[str, int],
    ) -> None:
        """Add what a refresh did; returns when it is in the file."""
        piece = Piece(
            paths=_joined(pairs),
            sources=[number for source, _ in pairs.values() for number in source],
            copies=[number for _, copy in pairs.values() for number in copy],
            removed=_joined(removed),
            doubtful=_joined(doubtful),
            folders=None if folders == self.folders else {os.fsencode(p): m for p, m in folders.items()},
        )
        self._apply(piece)
        if self.exists and self._pieces < MAX_PIECES:
            self._write(_framed(piece), os.O_APPEND)
            self._pieces += 1
        else:
            self._rewrite()

    def remove(self) -> None:
        self._file.unlink(missing_ok=True)

    def _rewrite(self) -> None:
        whole = Piece(
            paths=_joined(self.sources),
            sources=[number for source in self.sources.values() for number in source],
            copies=[number for path in self.sources for number in self.copies[path]],
            doubtful=_joined(self.doubtful),
            folders={os.fsencode(path): mode for path, mode in self.folders.items()},
        )
        self.remove()  # never two halves: without a file, the copy is made anew
        self._write(_first_line() + _framed(whole), os.O_CREAT | os.O_EXCL)
        self._pieces, self.exists = 1, True

    def _write(self, data: bytes, flags: int) -> None:
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
        finally:
            os.close(descriptor)

    def _load(self) -> bool:
        """Whether there is a record of this boot; a piece that was cut off ends it."""
        try:
            data = read_file(self._file, MAX_BYTES, follow=False)
        except OSError:
            return False
        first = _first_line()
        if not data.startswith(first):
            return False
        at = len(first)
        while len(data) - at > HEAD:
            length, checksum = (int.from_bytes(data[at + n : at + n + 4], "big") for n in (0, 4))
            body = data[at + HEAD : at + HEAD + length]
            if zlib.crc32(body) != checksum:
                break
            with suppress(msgspec.DecodeError):
                self._apply(msgspec.msgpack.decode(body, type=Piece))
            at += HEAD + length
            self._pieces += 1
        if at < len(data):
            self._pieces = MAX_PIECES  # what follows the broken piece could not be read: write it anew
        return True

    def _apply(self, piece: Piece) -> None:
        paths = _split(piece.paths)
        for path in _split(piece.removed):
            self.sources.pop(path, None)
            self.copies.pop(path, None)
            self.doubtful.discard(path)
        self.sources.update(zip(paths, zip(*[iter(piece.sources)] * WIDTH, strict=True), strict=True))
        self.copies.update(zip(paths, zip(*[iter(piece.copies)] * WIDTH, strict=True), strict=True))
        self.doubtful.difference_update(paths)
        self.doubtful.update(_split(piece.doubtful))
        if piece.folders is not None:
            self.folders = {os.fsdecode(path): mode for path, mode in piece.folders.items()}


def _first_line() -> bytes:
    try:
        boot = read_file(BOOT_ID, 100).decode().strip()
    except OSError:
        boot = "-"
    return f"{VERSION} {boot}\n".encode()


def _framed(piece: Piece) -> bytes:
    body = msgspec.msgpack.encode(piece)
    return len(body).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body


def _joined(paths: Iterable[str]) -> bytes:
    return os.fsencode("".join(f"{path}\0" for path in paths))


def _split(paths: bytes) -> list[str]:
    return os.fsdecode(paths).split("\0")[:-1]
