"""The file of the trace: found by no link, appended to whole lines at a time, one process after another.

A line is in the log before it is here. So what is missing at the end after a crash is written by whoever
comes next, and what a crash left half written is written again.
"""

import errno
import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from handrail.changes.trace.line import line_hash, token_of
from handrail.protocol.errors import PathProblem, StorageFull
from handrail.storage.log import Log
from handrail.storage.workspace_lock import trace_lock
from handrail.workspace.beneath import opened_folder
from handrail.workspace.disk import DISK, Disk
from handrail.workspace.writer import Writer

FOLDER = ".orchestration"
NAME = "agent_trace.jsonl"
PATH = f"{FOLDER}/{NAME}"
ATTRIBUTES = ".gitattributes"
UNION = f"{NAME} -text merge=union\n"
"""Two branches have their own lines at the end: git is to keep both."""
WINDOW = 1 << 16
WIDEST = 1 << 26
"""How far back a writer's last line is looked for: beyond, a new chain begins."""
LARGEST = 256_000_000
"""Bytes of a trace that is read as a whole."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC


class Tail(NamedTuple):
    """Where a writer's chain stands in the file."""

    number: int = 0
    sha256: str = ""


class TraceFile:
    """The trace of one workspace. Writing needs the lock, which processes of one log share."""

    def __init__(self, root: Path, state: Path, disk: Disk = DISK) -> None:
        """`state` is the folder of the workspace's log."""
        self.root = root
        self._state = state
        self._disk = disk

    def read(self) -> bytes | None:
        """All of it; None where there is none."""
        with _told(), suppress(FileNotFoundError), self._folder() as folder:
            descriptor = os.open(NAME, READ, dir_fd=folder)
            with open(descriptor, "rb") as file:
                _regular(descriptor)
                if os.fstat(descriptor).st_size > LARGEST:
                    told = f"{PATH} has more than {LARGEST // 1_000_000} MB: no session has written so much."
                    raise PathProblem(f"{told} Look at it, and move it away.", "too_large", PATH)
                return file.read()
        return None

    def tail(self, writer: str) -> Tail:
        """The last line of a writer, looked for from the end."""
        with _told(), suppress(FileNotFoundError), self._folder() as folder:
            descriptor = os.open(NAME, READ, dir_fd=folder)
            try:
                _regular(descriptor)
                return _tail(descriptor, writer)
            finally:
                os.close(descriptor)
        return Tail()

    def add(self, writer: str, number: int, lines: Sequence[bytes], *, fresh: bool = False) -> bool:
        """Append what is missing of a writer's lines, the first of which has this number.

        False where the file does not hold what comes before them, as on another branch. `fresh`: the writer
        has none yet, so that none need be looked for. Raises OSError or StorageProblem.
        """
        with trace_lock(self._state), self._folder(make=True) as folder:
            new = self._attributes(folder)
            descriptor = self._disk.append(folder, NAME, 0o644)
            try:
                _regular(descriptor)
                done = 0 if fresh else _tail(descriptor, writer).number
                if done + 1 < number:
                    return False
                if missing := lines[done + 1 - number :]:
                    self._write(descriptor, missing)
                if new:
                    self._disk.sync(folder)
            finally:
                os.close(descriptor)
        return True

    def _write(self, descriptor: int, lines: Sequence[bytes]) -> None:
        end = _whole_end(descriptor, lines[0])
        size = os.fstat(descriptor).st_size
        if end < size:
            self._disk.cut(descriptor, end)  # the first part of this very line
        broken = end > 0 and os.pread(descriptor, 1, end - 1) != b"\n"
        data = b"\n" * broken + b"".join(line + b"\n" for line in lines)
        try:
            self._disk.write(descriptor, data)
            self._disk.sync(descriptor)
        except OSError:
            with suppress(OSError):
                self._disk.cut(descriptor, end)
            raise

    def _attributes(self, folder: int) -> bool:
        """Tell git how lines are merged, where the trace begins; whether it does."""
        with suppress(FileNotFoundError):
            os.stat(NAME, dir_fd=folder, follow_symlinks=False)
            return False
        with suppress(FileExistsError):
            descriptor = self._disk.create(folder, ATTRIBUTES, 0o644)
            try:
                self._disk.write(descriptor, UNION.encode())
                self._disk.sync(descriptor)
            finally:
                os.close(descriptor)
        return True

    @contextmanager
    def _folder(self, *, make: bool = False) -> Iterator[int]:
        with opened_folder(self.root / FOLDER, make=make, root=self.root) as folder:
            # What may only be passed through cannot be forced to the disk.
            descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
            try:
                yield descriptor
            finally:
                os.close(descriptor)


def trace_of(writer: Writer, log: Log) -> TraceFile:
    """The trace of the workspace that a writer writes to."""
    return TraceFile(writer.root, log.folder, writer.disk)


@contextmanager
def typed() -> Iterator[None]:
    """Turn what the system says of writing the trace into what a user can act on."""
    try:
        with _told():
            yield
    except OSError as error:
        if error.errno in FULL:
            raise StorageFull(
                f"No room for a line in {PATH}, so no more is changed. Free some disk space, then go on."
            ) from error
        raise PathProblem(
            f"{PATH} cannot be written ({error.strerror}), and what is not traced is not changed. Mend it,"
            " then try again.",
            "storage_failed",
            PATH,
        ) from error


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EINVAL, errno.ENXIO):
            raise PathProblem(
                f"{PATH} is no file in a folder of this workspace: a link, or something else, stands there."
                " Move it away.",
                "storage_failed",
                PATH,
            ) from error
        raise


def _regular(descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def _tail(descriptor: int, writer: str) -> Tail:
    """The writer's last whole line; reads backwards, most often one window."""
    token = token_of(writer)
    size = os.fstat(descriptor).st_size
    window = WINDOW
    while True:
        start = max(0, size - window)
        data = os.pread(descriptor, size - start, start)
        # What stands behind the last line break was never finished.
        whole = data[: data.rfind(b"\n") + 1]
        at = whole.rfind(token)
        begins = whole.rfind(b"\n", 0, at) + 1 if at >= 0 else 0
        if at >= 0 and (begins or not start):
            line = whole[begins : whole.index(b"\n", at)]
            return Tail(_number(line), line_hash(line))
        if not start or window >= WIDEST:
            return Tail()
        window *= 8


def _number(line: bytes) -> int:
    with suppress(ValueError):
        said = json.loads(line)
        if isinstance(said, dict) and isinstance(said.get("number"), int):
            return int(said["number"])
    return 0


def _whole_end(descriptor: int, line: bytes) -> int:
    """Where the file ends, but for the first part of a line that a crash cut off."""
    size = os.fstat(descriptor).st_size
    start = max(0, size - len(line) - 1)
    rest = os.pread(descriptor, size - start, start).rpartition(b"\n")[2]
    return size - len(rest) if rest and line.startswith(rest) else size
