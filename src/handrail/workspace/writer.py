"""The only code that writes workspace files. For `changes` alone: it checks hashes, not permissions."""

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from handrail.protocol.errors import PathProblem
from handrail.workspace.beneath import opened_folder
from handrail.workspace.files import WHOLE_LIMIT

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


def replace_file(root: Path, path: str, data: bytes, *, old_sha256: str, change_id: str) -> None:
    """Put `data` in the place of the file with this hash: readers see the old or the new, never a mix."""
    target = root / path
    with (
        _writing(path),
        opened_folder(target.parent, root=root) as folder,
        _temporary(change_id, folder) as temporary,
    ):
        found = os.stat(target.name, dir_fd=folder, follow_symlinks=False)
        _write(temporary, folder, data, like=found)
        # As late as can be: what somebody wrote a moment ago must not be overwritten.
        if _sha256(target.name, folder) != old_sha256:
            raise PathProblem(
                f"{path} was changed by somebody else just now. Read it again.", "stale_file", path
            )
        os.replace(temporary, target.name, src_dir_fd=folder, dst_dir_fd=folder)
        _sync(folder)


def create_file(root: Path, path: str, data: bytes, *, change_id: str) -> None:
    """A new file, with the folders it needs; never in the place of something that is there."""
    target = root / path
    with (
        _writing(path),
        opened_folder(target.parent, make=True, root=root) as folder,
        _temporary(change_id, folder) as temporary,
    ):
        _write(temporary, folder, data, like=None)
        try:
            os.link(temporary, target.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError as error:
            raise PathProblem(f"{path} exists already. Read it first.", "file_exists", path) from error
        os.unlink(temporary, dir_fd=folder)
        _sync(folder)


def remove_file(root: Path, path: str, *, old_sha256: str) -> None:
    """Take away the file with this hash."""
    target = root / path
    with _writing(path), opened_folder(target.parent, root=root) as folder:
        if _sha256(target.name, folder) != old_sha256:
            raise PathProblem(f"{path} was changed by somebody else just now.", "stale_file", path)
        os.unlink(target.name, dir_fd=folder)
        _sync(folder)


def discard_temporary(root: Path, path: str, change_id: str) -> None:
    """Remove what a killed process left beside the file."""
    with suppress(OSError), opened_folder((root / path).parent, root=root) as folder:
        os.unlink(_temporary_name(change_id), dir_fd=folder)


@contextmanager
def _writing(path: str) -> Iterator[None]:
    """Say what cannot be written in the words of the one who wanted it, not of the steps to it."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        folder = os.path.dirname(path)
        where = f"The folder {folder}" if folder else "The folder of the workspace"
        raise PathProblem(
            f"{where} cannot be written ({error.strerror}), so {path} is as it was.", "protected_path", path
        ) from error


def _temporary_name(change_id: str) -> str:
    return f".{change_id}.handrail-tmp"


@contextmanager
def _temporary(change_id: str, folder: int) -> Iterator[str]:
    name = _temporary_name(change_id)
    try:
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)


def _write(name: str, folder: int, data: bytes, *, like: os.stat_result | None) -> None:
    descriptor = os.open(name, NEW, 0o666 if like is None else 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        if like is not None:
            if (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(PermissionError):
                    os.fchown(descriptor, like.st_uid, like.st_gid)
            os.fchmod(descriptor, like.st_mode & 0o7777)
        os.fsync(descriptor)


def _sha256(name: str, folder: int) -> str:
    with os.fdopen(os.open(name, READ, dir_fd=folder), "rb") as file:
        # What is larger was not made by us, and any hash says so.
        return hashlib.sha256(file.read(WHOLE_LIMIT + 1)).hexdigest()


def _sync(folder: int) -> None:
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
