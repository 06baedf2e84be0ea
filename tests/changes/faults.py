"""A disk and a log that fail, die or lose power at a chosen moment, and what would survive of them.

The calls go to real files. Beside them is kept what has been forced to the disk: contents by `sync` of a
file, entries of a folder by `sync` of the folder. At a power cut every folder keeps some prefix of what was
done to it since, a file that was never forced keeps some prefix of what was written, and the real files are
made so.
"""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple

from handrail.protocol.errors import StorageFull
from handrail.storage.change_journal import NO_STEPS, JournalSteps
from handrail.storage.event_log import Log, NewRow, PartialText, Row
from handrail.workspace.disk import Disk, NotSupported

FaultKind = Literal["none", "fail", "full", "kill", "power cut", "meddle"]


class Dead(BaseException):
    """The process is no more: nothing it would have done now happens."""


@dataclass
class Fate:
    """What happens at the n-th effect, counted over disk and log together."""

    kind: FaultKind = "none"
    countdown: int = 0
    meddle: Callable[[], None] = lambda: None
    dead: bool = False
    struck: bool = False

    def strike(self) -> bool:
        """Whether the next effect is the one; the dead stay dead."""
        if self.dead:
            raise Dead
        self.countdown -= 1
        if self.struck or self.kind == "none" or self.countdown >= 0:
            return False
        self.struck = True
        if self.kind == "meddle":
            self.meddle()
            return False
        if self.kind in ("kill", "power cut"):
            self.dead = True
            raise Dead
        return True


Change = Callable[[dict[str, int]], None]


class Inode(NamedTuple):
    kind: Literal["file", "folder", "link"]
    data: bytes = b""
    mode: int = 0o644


@dataclass
class Durable:
    """What would be there after a power cut."""

    inodes: dict[int, Inode] = field(default_factory=dict)
    folders: dict[int, dict[str, int]] = field(default_factory=dict)


class FaultyDisk(Disk):
    def __init__(self, root: Path, fate: Fate, *, exchanges: bool = True) -> None:
        """Without `exchanges` it is an old file system, which renames in plain steps only."""
        self.root = root
        self.exchanges = exchanges
        self.fate = fate
        self.watch: Callable[[], None] = lambda: None
        self.calls = 0
        self.durable = Durable()
        self.pending: dict[int, list[Change]] = {}
        self.written: dict[int, bytes] = {}
        self._held: list[int] = []
        self.adopt()

    # What the writer calls

    def create(self, folder: int, name: str, mode: int) -> int:
        self._effect()
        descriptor = super().create(folder, name, mode)
        inode = self._hold(name, folder)
        self.written[inode] = b""
        self._pend(folder, lambda entries: entries.update({name: inode}))
        return descriptor

    def append(self, folder: int, name: str, mode: int) -> int:
        self._effect()
        new = name not in os.listdir(folder)
        descriptor = super().append(folder, name, mode)
        inode = os.fstat(descriptor).st_ino
        if new:
            self._hold(name, folder)
            self.written[inode] = b""
            self._pend(folder, lambda entries: entries.update({name: inode}))
        elif inode not in self.written:
            self.written[inode] = self.durable.inodes[inode].data
        return descriptor

    def write(self, descriptor: int, data: bytes) -> None:
        inode = os.fstat(descriptor).st_ino
        try:
            self._effect()
        except OSError:
            half = data[: len(data) // 2]
            super().write(descriptor, half)
            self.written[inode] += half
            raise
        super().write(descriptor, data)
        self.written[inode] += data

    def sync(self, descriptor: int) -> None:
        self._effect()
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            for change in self.pending.pop(found.st_ino, []):
                change(self.durable.folders[found.st_ino])
        else:
            data = self.written.pop(found.st_ino, None)
            if data is None:
                data = self.durable.inodes[found.st_ino].data
            self.durable.inodes[found.st_ino] = Inode("file", data, stat.S_IMODE(found.st_mode))

    def exchange(self, folder: int, one: str, other: str) -> None:
        if not self.exchanges:
            raise NotSupported
        self._effect()
        super().exchange(folder, one, other)

        def change(entries: dict[str, int]) -> None:
            entries[one], entries[other] = entries[other], entries[one]

        self._pend(folder, change)

    def move(self, folder: int, name: str, to: str) -> None:
        if not self.exchanges:
            raise NotSupported
        self._effect()
        super().move(folder, name, to)
        self._pend(folder, lambda entries: entries.update({to: entries.pop(name)}))

    def replace(self, folder: int, name: str, to: str) -> None:
        self._effect()
        super().replace(folder, name, to)
        self._pend(folder, lambda entries: entries.update({to: entries.pop(name)}))

    def link(self, folder: int, name: str, to: str) -> None:
        self._effect()
        super().link(folder, name, to)
        self._pend(folder, lambda entries: entries.update({to: entries[name]}))

    def unlink(self, folder: int, name: str) -> None:
        self._effect()
        super().unlink(folder, name)
        self._pend(folder, lambda entries: entries.__delitem__(name))

    def mkdir(self, folder: int, name: str) -> None:
        self._effect()
        super().mkdir(folder, name)
        inode = self._hold(name, folder)
        self.durable.inodes[inode], self.durable.folders[inode] = Inode("folder", mode=0o755), {}
        self._pend(folder, lambda entries: entries.update({name: inode}))

    def rmdir(self, folder: int, name: str) -> None:
        self._effect()
        super().rmdir(folder, name)
        self._pend(folder, lambda entries: entries.__delitem__(name))

    # What the test calls

    def adopt(self) -> None:
        """Take all that is there now for what would survive, as if the user's programs forced it."""
        self.close()
        self.durable, self.pending, self.written = Durable(), {}, {}
        self._adopt(self.root)

    def cut_power(self, chance: Random) -> None:
        """Make the real files what survives."""
        for folder, changes in self.pending.items():
            entries = self.durable.folders[folder]
            for change in changes[: chance.randint(0, len(changes))]:
                change(entries)
        root = self.root.stat().st_ino
        for name in os.listdir(self.root):
            path = self.root / name
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        self._rebuild(self.root, root, chance, {})
        self.adopt()

    def close(self) -> None:
        for descriptor in self._held:
            os.close(descriptor)
        self._held = []

    # Inside

    def _effect(self) -> None:
        self.calls += 1
        self.watch()
        if self.fate.strike():
            code = errno.ENOSPC if self.fate.kind == "full" else errno.EIO
            raise OSError(code, os.strerror(code))

    def _pend(self, folder: int, change: Change) -> None:
        self.pending.setdefault(os.fstat(folder).st_ino, []).append(change)
        self.watch()

    def _hold(self, name: str, folder: int | None = None) -> int:
        """The number of an inode, kept from being given to another file."""
        descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        self._held.append(descriptor)
        return os.fstat(descriptor).st_ino

    def _adopt(self, folder: Path) -> int:
        inode = self._hold(str(folder))
        entries: dict[str, int] = {}
        for path in sorted(folder.iterdir()):
            if path.is_symlink():
                number = self._hold(str(path))
                self.durable.inodes[number] = Inode("link", os.fsencode(os.readlink(path)))
            elif path.is_dir():
                number = self._adopt(path)
            else:
                number = self._hold(str(path))
                mode = stat.S_IMODE(path.stat().st_mode)
                self.durable.inodes[number] = Inode("file", path.read_bytes(), mode)
            entries[path.name] = number
        self.durable.inodes[inode] = Inode("folder", mode=stat.S_IMODE(folder.stat().st_mode))
        self.durable.folders[inode] = entries
        return inode

    def _rebuild(self, folder: Path, inode: int, chance: Random, made: dict[int, Path]) -> None:
        for name, number in self.durable.folders[inode].items():
            path = folder / name
            found = self.durable.inodes.get(number)
            if found is None:  # its content was never forced to the disk
                data = self.written[number]
                path.write_bytes(data[: chance.choice((0, len(data) // 2, len(data)))])
            elif number in made:
                os.link(made[number], path)
            elif found.kind == "folder":
                path.mkdir(found.mode)
                self._rebuild(path, number, chance, made)
            elif found.kind == "link":
                path.symlink_to(os.fsdecode(found.data))
            else:
                path.write_bytes(found.data)
                path.chmod(found.mode)
                made[number] = path


class FaultyLog(Log):
    """A log whose commits fail, or whose process dies right before or right after one."""

    def __init__(self, folder: Path, fate: Fate) -> None:
        self.fate = fate
        super().__init__(folder)

    def append(
        self,
        stream: str,
        rows: Sequence[NewRow],
        *,
        epoch: int | None = None,
        expected: int | None = None,
        take: Iterable[int] = (),
        blobs: Iterable[bytes] = (),
        settle: Iterable[str] = (),
        partials: Iterable[PartialText] = (),
        steps: JournalSteps = NO_STEPS,
        label: str | None = None,
    ) -> list[Row]:
        self._effect()
        rows_written = super().append(
            stream,
            rows,
            epoch=epoch,
            expected=expected,
            take=take,
            blobs=blobs,
            settle=settle,
            partials=partials,
            steps=steps,
            label=label,
        )
        if self.fate.kind in ("kill", "power cut"):  # what is committed cannot fail any more
            self._effect()
        return rows_written

    def settle(self, change: str, outcome: Literal["", "applied", "abandoned"], why: str) -> None:
        self._effect()
        super().settle(change, outcome, why)

    def _effect(self) -> None:
        if self.fate.strike():
            raise StorageFull("No room.")


def temporaries(root: Path) -> list[str]:
    """What was left beside files."""
    return [str(path) for path in root.rglob("*.handrail-*")]


def contents(root: Path, paths: Collection[str]) -> dict[str, tuple[bytes, int] | None]:
    """Bytes and mode of each path; None where there is no regular file."""
    found: dict[str, tuple[bytes, int] | None] = {}
    for path in paths:
        file = root / path
        real = file.is_file() and not file.is_symlink()
        found[path] = (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) if real else None
    return found
