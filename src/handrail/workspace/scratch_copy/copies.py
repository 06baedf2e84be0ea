"""The scratch copies of one workspace: kept from run to run, each used by one holder at a time."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from handrail.config.files import FileLock, try_lock
from handrail.config.places import make_private
from handrail.protocol.errors import StorageBusy
from handrail.workspace.files import Workspace
from handrail.workspace.scratch_copy.copy import ScratchCopy
from handrail.workspace.scratch_copy.layers import remove_layers

COPIES = "copies"  # the folder, below that of the workspace's log
MAX_COPIES = 8
UNUSED_SECONDS = 7 * 24 * 3600.0
OLD_LAYER_SECONDS, RECENT_LAYER_SECONDS = 24 * 3600.0, 3600.0


class CopiesUse(NamedTuple):
    copies: int
    size: int
    """Bytes that they take on the disk at most; a file system may share them with the workspace."""
    in_use: int


class ScratchCopies:
    """Copies in a folder of Handrail's own, which commands cannot reach; made when they are needed.

        copies = ScratchCopies(workspace, log.folder / COPIES)
        with copies.take() as copy:          # refreshed: equal to the workspace
            copy.write("src/a.py", data)     # a change to be checked
            setup = SandboxSetup(..., copy=copy.shown())
            ...                              # commands see the copy at `copy.shown_at`
            copy.differences()               # what would have to be applied
            copy.refresh()                   # equal to the workspace again

    Several can be taken at once, also by other processes. All calls block: use a thread.
    """

    def __init__(self, workspace: Workspace, folder: Path) -> None:
        self._workspace = workspace
        self.folder = folder

    @contextmanager
    def take(self) -> Iterator[ScratchCopy]:
        """A refreshed copy for the caller alone; raises StorageBusy if all are in use.

        Raises StorageProblem as `ScratchCopy.refresh` does.
        """
        make_private(self.folder)
        self._remove_old()
        for number in range(MAX_COPIES):
            place = make_private(self.folder / str(number))
            if lock := try_lock(place / "lock"):
                with lock:
                    copy = ScratchCopy(self._workspace, place)
                    copy.refresh()
                    os.utime(place / "lock")
                    yield copy
                return
        message = f"All {MAX_COPIES} scratch copies of this workspace are in use. Try again when one is free."
        raise StorageBusy(message)

    def use(self) -> CopiesUse:
        """How much disk space the copies take."""
        found = [(_size(place), _in_use(place)) for place in self._places()]
        return CopiesUse(len(found), sum(size for size, _ in found), sum(used for _, used in found))

    def remove(self) -> int:
        """Delete all copies that nobody uses, and layers that no build has used lately; how many copies."""
        remove_layers(self.folder, RECENT_LAYER_SECONDS)
        return sum(self._remove(place) for place in self._places())

    def _remove_old(self) -> None:
        remove_layers(self.folder, OLD_LAYER_SECONDS)
        for place in self._places()[1:]:
            with suppress(OSError):
                if time.time() - os.stat(place / "lock").st_mtime > UNUSED_SECONDS:
                    self._remove(place)

    def _remove(self, place: Path) -> bool:
        # The file of the lock stays: a process that opened it before could lock what is no longer there.
        if lock := try_lock(place / "lock"):
            with lock:
                ScratchCopy(self._workspace, place).remove()
                return True
        return False

    def _places(self) -> list[Path]:
        """The folders of copies that exist, in order."""
        places = (self.folder / str(number) for number in range(MAX_COPIES))
        return [place for place in places if (place / "tree").is_dir()]


def _in_use(place: Path) -> bool:
    with FileLock(place / "lock") as lock:
        return not lock.try_lock()


def _size(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(f"{place}/{name}").st_blocks * 512
    return total
