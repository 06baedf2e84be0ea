"""A file on its way: what has come, safe on the disk, so that the next attempt goes on from there."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from handrail.models.embedded.files import ModelFile
from handrail.protocol.errors import FetchStopped
from handrail.protocol.values import Value

BLOCK = 8 << 20
SAFE_EVERY = 16 << 20
"""Bytes between two moments at which everything so far is on the disk for certain."""


class Kept(Value):
    """Of the file beside it so many bytes are on the disk, and this is their SHA-256."""

    wanted: str
    done: int
    sha256: str


class Partial:
    """`NAME.part` with its note `NAME.part.json`. Only the holder of the lock may have one open."""

    def __init__(self, file: ModelFile, folder: Path) -> None:
        self.file = file
        self.target = folder / file.name
        self._path = folder / f"{file.name}.part"
        self._note = folder / f"{file.name}.part.json"
        self._digest = hashlib.sha256()
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.done = self.kept = 0
        """Bytes that have come, and how many of them are on the disk for certain."""
        try:
            self._go_on()
        except BaseException:
            self.close()
            raise

    def append(self, data: bytes) -> None:
        """Take the next bytes."""
        if self.done + len(data) > self.file.size:
            data = data[: self.file.size - self.done]
        rest = memoryview(data)
        while rest:
            written = os.write(self._descriptor, rest)
            self._digest.update(rest[:written])
            self.done += written
            rest = rest[written:]

    @property
    def due(self) -> bool:
        """Whether so much has come that it should be kept."""
        return self.done - self.kept >= SAFE_EVERY

    def keep(self) -> None:
        """Make sure that what has come survives whatever happens to the machine."""
        os.fsync(self._descriptor)
        kept = Kept(wanted=self.file.sha256, done=self.done, sha256=self._digest.hexdigest())
        draft = self._note.with_suffix(".draft")
        with draft.open("w", encoding="utf-8") as note:
            note.write(kept.model_dump_json())
            note.flush()
            os.fsync(note.fileno())
        draft.replace(self._note)
        self.kept = self.done

    def is_right(self) -> bool:
        """Whether these are all the bytes, and the right ones."""
        return self.done == self.file.size and self._digest.hexdigest() == self.file.sha256

    def finish(self) -> Path:
        """Put the whole file where it is looked for."""
        os.fsync(self._descriptor)
        self._path.replace(self.target)
        self._note.unlink(missing_ok=True)
        return self.target

    def drop(self) -> None:
        """Forget all that has come."""
        self._note.unlink(missing_ok=True)
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self._digest = hashlib.sha256()
        self.done = self.kept = 0

    def remove(self) -> None:
        """Leave nothing behind."""
        for path in (self._note, self._path):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        os.close(self._descriptor)

    def _go_on(self) -> None:
        kept = read_kept(self._note, self.file)
        size = os.fstat(self._descriptor).st_size
        wanted = kept.done if kept and kept.done <= size else 0
        while self.done < wanted and (block := os.read(self._descriptor, min(BLOCK, wanted - self.done))):
            self._digest.update(block)
            self.done += len(block)
        if kept is None or self._digest.hexdigest() != kept.sha256:
            self.drop()
        # What lies beyond was written but perhaps never reached the disk.
        os.ftruncate(self._descriptor, self.done)
        self.kept = self.done


def read_kept(note: Path, file: ModelFile) -> Kept | None:
    """What an earlier attempt left, if it was for this very file."""
    try:
        kept = Kept.model_validate_json(note.read_bytes())
    except (OSError, ValidationError):
        return None
    return kept if kept.wanted == file.sha256 else None


def bytes_so_far(file: ModelFile, folder: Path) -> int:
    """How much of the file has come, as another process may be writing it."""
    with suppress(OSError):
        return (folder / f"{file.name}.part").stat().st_size
    with suppress(OSError):
        return (folder / file.name).stat().st_size
    return 0


def no_room(error: OSError, partial: Partial) -> FetchStopped:
    """The error for a disk that takes no more."""
    left = (partial.file.size - partial.kept) / 1e6
    return FetchStopped(
        f"{partial.target.parent} takes no more ({error.strerror}). {partial.kept / 1e6:,.0f} MB are kept: "
        f"make room for {left:,.0f} MB more and run `handrail model fetch` again, which goes on from there."
    )
