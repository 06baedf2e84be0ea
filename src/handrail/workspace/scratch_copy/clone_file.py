"""Copy one file between two folders, whole or not at all; the file system shares the content where it can."""

import errno
import fcntl
import os
import time
from contextlib import ExitStack
from typing import NamedTuple

from handrail.config.open_file import NotAFile, open_file
from handrail.workspace.stat_index import FileStat, is_recent, stat_of

WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FICLONE = 0x40049409  # Python has no name for it before 3.12
SMALL = 128 * 1024  # copied by one read and one write
CHUNK = 1 << 24
ATTEMPTS = 3
NOT_SHARED = (errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM)
MODE_BITS = 0o777  # a copy never runs with the rights of another user or group


class CopiedFile(NamedTuple):
    source: FileStat
    copy: FileStat


class NotCopied(Exception):
    """The copy has no such file; the message says why, as the end of a sentence."""


def copy_entry(name: str, *, link: bool, source: int, target: int) -> CopiedFile:
    """Copy a file or a link between two open folders; raises NotCopied.

    Raises OSError if it cannot be written, for example if there is something of that name.
    """
    if link:
        return _copy_link(name, source, target)
    for _ in range(ATTEMPTS):
        if copied := _copy_file(name, source, target):
            return copied
        os.unlink(name, dir_fd=target)
    raise NotCopied("it kept changing while it was copied")


def _copy_link(name: str, source: int, target: int) -> CopiedFile:
    try:
        before = os.stat(name, dir_fd=source, follow_symlinks=False)
        leads_to = os.readlink(name, dir_fd=source)
    except OSError as error:
        raise NotCopied(f"it cannot be read ({error.strerror})") from error
    os.symlink(leads_to, name, dir_fd=target)
    return CopiedFile(stat_of(before), stat_of(os.stat(name, dir_fd=target, follow_symlinks=False)))


def _copy_file(name: str, source: int, target: int) -> CopiedFile | None:
    """None if it was written meanwhile: the copy may then have some of the old and some of the new."""
    with ExitStack() as stack:
        try:
            reading = stack.enter_context(open_file(name, folder=source, follow=False))
        except NotAFile as problem:
            raise NotCopied(f"it is {problem.kind}, not a file") from problem
        except OSError as error:
            raise NotCopied(f"it cannot be read ({error.strerror})") from error
        mode = reading.found.st_mode & MODE_BITS
        writing = os.open(name, WRITE_FLAGS, mode, dir_fd=target)
        try:
            _copy_content(reading.descriptor, writing, reading.found.st_size)
            made = os.fstat(writing)
            if made.st_mode & 0o7777 != mode:
                os.fchmod(writing, mode)
                made = os.fstat(writing)
        finally:
            os.close(writing)
        after = stat_of(os.fstat(reading.descriptor))
        whole = stat_of(reading.found) == after and made.st_size == after.size
        if whole and is_recent(after, time.time_ns()):
            # On a slow clock a write between two reads leaves no trace in the stat.
            whole = _has_same_content(reading.descriptor, name, target)
        return CopiedFile(after, stat_of(made)) if whole else None


def _has_same_content(reading: int, name: str, target: int) -> bool:
    with open_file(name, folder=target, follow=False) as copy:
        os.lseek(reading, 0, os.SEEK_SET)
        return all(os.read(reading, len(chunk)) == chunk for chunk in copy.chunks(copy.found.st_size))


def _copy_content(reading: int, writing: int, size: int) -> None:
    if size > SMALL and (_share(reading, writing) or _copy_in_kernel(reading, writing, size)):
        return
    while chunk := os.read(reading, min(size, CHUNK) or 1):
        left = memoryview(chunk)
        while left:
            left = left[os.write(writing, left) :]
        size -= len(chunk)
        if size <= 0:  # what was added meanwhile shows in its stat
            return


def _share(reading: int, writing: int) -> bool:
    """Whether both files now share the same blocks, until one of them is written."""
    try:
        fcntl.ioctl(writing, FICLONE, reading)
    except OSError as error:
        if error.errno in NOT_SHARED:
            return False
        raise
    return True


def _copy_in_kernel(reading: int, writing: int, size: int) -> bool:
    copy_range = getattr(os, "copy_file_range", None)
    copied = 0
    while copy_range and copied < size:
        try:
            count = copy_range(reading, writing, size - copied)
        except OSError as error:
            if error.errno in NOT_SHARED and not copied:
                return False
            raise
        if not count:
            break  # it became shorter
        copied += count
    return copied > 0
