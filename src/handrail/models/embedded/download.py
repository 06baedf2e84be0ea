"""Downloads a model file: resumable, from the first source that has it, SHA-256 checked."""

import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import NamedTuple

import anyio
from msgspec import DecodeError
from msgspec.json import decode

from handrail.config.files import try_lock, write_atomically
from handrail.config.places import make_private
from handrail.models.embedded.download_sources import PackageIndex, Publisher, Source, SourceFailed
from handrail.models.embedded.model_files import ModelFile, verify_file
from handrail.protocol.errors import FetchStopped, GiveUp
from handrail.protocol.values import Value, to_json

BLOCK = 8 << 20
SYNC_EVERY = 16 << 20


class PartialNote(Value):
    """How many bytes of the partial file are synced, and their SHA-256."""

    wanted: str
    done: int
    sha256: str


class PartialFile:
    """`NAME.part` with its note `NAME.part.json`. Only the lock's holder may open it."""

    def __init__(self, file: ModelFile, folder: Path) -> None:
        self.file = file
        self.target = folder / file.name
        self._path = folder / f"{file.name}.part"
        self._note = folder / f"{file.name}.part.json"
        self._digest = hashlib.sha256()
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.done = self.kept = 0
        """Bytes received, and bytes synced to disk."""
        try:
            self._resume()
        except BaseException:
            self.close()
            raise

    def append(self, data: bytes) -> None:
        rest = memoryview(data)[: self.file.size - self.done]
        while rest:
            written = os.write(self._descriptor, rest)
            self._digest.update(rest[:written])
            self.done += written
            rest = rest[written:]

    def sync(self) -> None:
        os.fsync(self._descriptor)
        kept = PartialNote(wanted=self.file.sha256, done=self.done, sha256=self._digest.hexdigest())
        write_atomically(self._note, to_json(kept).encode())
        self.kept = self.done

    def finish(self) -> Path | None:
        """Move the file to its final place; None if it is not complete or its SHA-256 is wrong."""
        if self.done != self.file.size or self._digest.hexdigest() != self.file.sha256:
            return None
        os.fsync(self._descriptor)
        self._path.replace(self.target)
        self._note.unlink(missing_ok=True)
        return self.target

    def drop(self) -> None:
        """Start over with an empty file."""
        self._note.unlink(missing_ok=True)
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self._digest = hashlib.sha256()
        self.done = self.kept = 0

    def remove(self) -> None:
        for path in (self._note, self._path):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        os.close(self._descriptor)

    def _resume(self) -> None:
        kept = None
        with suppress(OSError, DecodeError):
            kept = decode(self._note.read_bytes(), type=PartialNote)
        if kept and kept.wanted != self.file.sha256:
            kept = None
        wanted = kept.done if kept and kept.done <= os.fstat(self._descriptor).st_size else 0
        while self.done < wanted and (block := os.read(self._descriptor, min(BLOCK, wanted - self.done))):
            self._digest.update(block)
            self.done += len(block)
        if kept is None or self._digest.hexdigest() != kept.sha256:
            self.drop()
        # What lies beyond was written but perhaps never reached the disk.
        os.ftruncate(self._descriptor, self.done)
        self.kept = self.done


def downloaded_bytes(file: ModelFile, folder: Path) -> int:
    """Bytes downloaded so far, possibly by another process."""
    for name in (f"{file.name}.part", file.name):
        with suppress(OSError):
            return (folder / name).stat().st_size
    return 0


SPARE_BYTES = 100_000_000
"""Free space needed beyond the file: a wheel, and some reserve."""
POLL_SECONDS = 0.2


class DownloadProgress(NamedTuple):
    done: int
    total: int
    source: str


OnProgress = Callable[[DownloadProgress], None]


async def download_model(
    file: ModelFile, folder: Path, tell: OnProgress, sources: Sequence[Source] = ()
) -> Path:
    """The path of the whole file with the right bytes, after fetching what is missing of it.

    Killed at any moment, the next call goes on. Of several calls at once one fetches, the others wait for it.
    """
    make_private(folder)
    try:
        while (lock := try_lock(folder / f"{file.name}.lock")) is None:
            tell(DownloadProgress(downloaded_bytes(file, folder), file.size, "another Handrail"))
            await anyio.sleep(POLL_SECONDS)
        try:
            return await _download_locked(file, folder, tell, sources or (Publisher(), PackageIndex(folder)))
        finally:
            lock.release()
    except OSError as error:
        raise FetchStopped(f"{folder} cannot be used ({error.strerror}). Make it writable.") from error


async def _download_locked(
    file: ModelFile, folder: Path, tell: OnProgress, sources: Sequence[Source]
) -> Path:
    target = folder / file.name
    if target.is_file():
        try:
            await anyio.to_thread.run_sync(list, verify_file(file, target, folder))
        except GiveUp:
            target.unlink(missing_ok=True)  # it is damaged
        else:
            return target
    for wheel in folder.glob(f"{file.name}.wheel-*"):  # left behind by a killed process
        shutil.rmtree(wheel, ignore_errors=True)
    partial = await anyio.to_thread.run_sync(PartialFile, file, folder)
    try:
        missing, free = file.size - partial.done + SPARE_BYTES, shutil.disk_usage(folder).free
        if free < missing:
            raise FetchStopped(
                f"{folder} has room for {free / 1e6:,.0f} MB, and {missing / 1e6:,.0f} MB are needed. "
                "Make room, or set HANDRAIL_HOME to a folder on a larger disk."
            )
        return await _from_first(partial, sources, tell)
    finally:
        partial.close()


async def _from_first(partial: PartialFile, sources: Sequence[Source], tell: OnProgress) -> Path:
    problems = []
    for source in sources:
        try:
            await _copy(source, partial, tell)
        except SourceFailed as failed:
            problems.append(f"{source.name}: {failed}.")
            continue
        if path := partial.finish():
            return path
        partial.drop()
        problems.append(f"{source.name}: what came is not the published file (its SHA-256 differs).")
    kept = f"{partial.kept / 1e6:,.0f} of {partial.file.size / 1e6:,.0f} MB are kept for the next attempt."
    if not partial.kept:
        partial.remove()
        kept = "Nothing is kept."
    raise FetchStopped(
        f"{partial.file.model} could not be fetched. {' '.join(problems)} {kept} Check the network and run "
        f"`{partial.file.command}` again, or {partial.file.instead}."
    )


async def _copy(source: Source, partial: PartialFile, tell: OnProgress) -> None:
    """Copy what is missing from one source; what arrived is synced in any case."""

    def underway(more: int) -> None:
        tell(DownloadProgress(min(partial.done + more, partial.file.size), partial.file.size, source.name))

    underway(0)
    try:
        try:
            async with aclosing(source.read(partial.file, partial.done, underway)) as stream:
                async for data in stream:
                    partial.append(data)
                    if partial.done - partial.kept >= SYNC_EVERY:
                        await anyio.to_thread.run_sync(partial.sync)
                    underway(0)
        finally:
            with suppress(OSError):
                partial.sync()
    except OSError as error:
        kept, left = partial.kept / 1e6, (partial.file.size - partial.kept) / 1e6
        raise FetchStopped(
            f"{partial.target.parent} takes no more ({error.strerror}). {kept:,.0f} MB are kept: make room "
            f"for {left:,.0f} MB more and run `{partial.file.command}` again, which goes on from there."
        ) from error
