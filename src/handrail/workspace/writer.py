"""Write workspace files; only `changes` may use it. It checks hashes, not permissions.

A step takes one path from an old content to a new one. Until it is over there is a temporary file beside the
file: first with the new content, then, once the two names are exchanged, with the content that was replaced.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath

from handrail.config.open_file import open_file
from handrail.protocol.errors import PathProblem
from handrail.workspace.disk import DISK, Disk, NotSupported
from handrail.workspace.file_step import (
    LINK_MARK,
    LINK_MODE,
    FileContent,
    FileState,
    FileStep,
    entry_state,
    read_entry,
)
from handrail.workspace.paths import open_folder


class Writer:
    """Takes and undoes steps, below one folder."""

    def __init__(self, root: Path, disk: Disk = DISK) -> None:
        self.root = root
        self.disk = disk

    # Looking

    def look(self, path: str) -> FileState:
        """What is at a path now; nothing, if a folder of the path is a link."""
        try:
            with self._folder(path) as folder:
                return entry_state(PurePosixPath(path).name, folder)
        except (FileNotFoundError, NotADirectoryError):
            return FileState()

    def read(self, path: str) -> FileContent:
        """The same with its bytes."""
        try:
            with self._folder(path) as folder:
                return read_entry(PurePosixPath(path).name, folder)
        except (FileNotFoundError, NotADirectoryError):
            return FileContent()

    def missing_folders(self, path: str) -> list[str]:
        """Folders that a new file at this path needs, outermost first."""
        missing = []
        for parent in (str(each) for each in PurePosixPath(path).parents if each.name):
            if os.path.lexists(self.root / parent):
                break
            missing.append(parent)
        return missing[::-1]

    def in_the_way(self, path: str) -> str:
        """What is in the place of a folder of this path, a link included; empty where nothing is."""
        for folder in reversed([str(each) for each in PurePosixPath(path).parents if each.name]):
            if self.folder_mode(folder) is None:
                return folder if os.path.lexists(self.root / folder) else ""
        return ""

    def is_ready(self, step: FileStep) -> bool:
        """Whether only the exchange of names is missing."""
        return not step.new or self.look(step.temporary_path).sha256 == step.new

    # Before the step

    def make_folders(self, folders: Iterable[str]) -> None:
        for folder in folders:
            with self._writing(folder), self._folder(folder) as parent, suppress(FileExistsError):
                self.disk.mkdir(parent, PurePosixPath(folder).name)

    def folder_mode(self, path: str) -> int | None:
        """The permissions of a folder; None where there is none."""
        try:
            with self._folder(path) as parent:
                found = os.stat(PurePosixPath(path).name, dir_fd=parent, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return stat.S_IMODE(found.st_mode) if stat.S_ISDIR(found.st_mode) else None

    def set_mode(self, path: str, mode: int) -> None:
        with self._writing(path), self._folder(path) as parent:
            self.disk.chmod(parent, PurePosixPath(path).name, mode)

    def put(self, step: FileStep, data: bytes, mode: int | None) -> int:
        """Write the new content under the temporary name and sync it; returns its mode."""
        with self._writing(step.path), self._folder(step.path) as folder, self._original(step) as original:
            return self._put(folder, step.temporary, data, mode, original)

    # The step

    def forward(self, step: FileStep) -> None:
        """Old becomes new; raises PathProblem without a change where the file is not the base."""
        with self._writing(step.path), self._folder(step.path) as folder:
            if step.old and not step.is_base(entry_state(step.name, folder)):
                raise stale_file(step.path)
            if step.old and step.new:
                self._exchange(folder, step)
            elif step.new:
                self._appear(folder, step)
            else:
                self._vanish(folder, step)

    def back(self, step: FileStep, content: Callable[[str], bytes]) -> None:
        """New becomes old again; what somebody else wrote meanwhile stays."""
        with self._writing(step.path), self._folder(step.path) as folder:
            if step.old and step.new:
                self._exchange_back(folder, step, content)
            elif step.new:
                self._take_away(folder, step)
            else:
                self._bring_back(folder, step, content)

    def return_displaced(self, step: FileStep) -> None:
        """After a crash, put back what somebody else wrote and our content replaced."""
        if not step.old or self.look(step.path).sha256 != step.new:
            return
        if self.look(step.temporary_path).sha256 in ("", step.old, step.new):
            return
        with self._folder(step.path) as folder:
            if step.new:
                self._undo_exchange(folder, step)
            else:
                self._undo_vanish(folder, step)

    def put_back(self, step: FileStep) -> None:
        """Put back the old content if only the temporary file has it."""
        if not step.old or step.old == step.new or self.look(step.temporary_path).sha256 != step.old:
            return
        now = self.look(step.path).sha256
        with self._folder(step.path) as folder:
            if now == step.new and now:
                self._undo_exchange(folder, step)
            elif not now:
                self._undo_vanish(folder, step)

    def straighten(self, step: FileStep) -> None:
        """Finish or undo half of an exchange, where the file system exchanges names in several steps."""
        with suppress(FileNotFoundError, NotADirectoryError), self._folder(step.path) as folder:
            names = (step.name, step.temporary, step.linked)
            file, temporary, linked = (_inode(name, folder) for name in names)
            if linked and linked == file:
                self.disk.unlink(folder, step.linked)
            elif linked and temporary:
                self._tidy(folder, step, step.linked)
            elif linked:
                self.disk.replace(folder, step.linked, step.temporary)
            elif temporary and temporary == file:
                self.disk.unlink(folder, step.temporary)

    # After the step

    def tidy(self, step: FileStep) -> str:
        """Remove the temporary files; returns the path of the copy where one was somebody else's work."""
        try:
            with self._folder(step.path) as folder:
                with suppress(FileNotFoundError):
                    self.disk.unlink(folder, step.restored)
                kept = [self._tidy(folder, step, name) for name in (step.temporary, step.linked)]
        except (FileNotFoundError, NotADirectoryError):
            return ""
        return next((step.beside(name) for name in kept if name), "")

    def conflict_copy(self, step: FileStep) -> str:
        """The path of the copy that this step kept of somebody else's work; empty where there is none."""
        copy = step.beside(step.copy_name(1))
        return copy if self.look(copy).sha256 else ""

    def discard(self, step: FileStep) -> None:
        """Remove a temporary file that is not in the journal, since its writer died."""
        with suppress(OSError), self._folder(step.path) as folder:
            self.disk.unlink(folder, step.temporary)

    def remove_folders(self, folders: Iterable[str]) -> None:
        """Remove those of the folders that are empty, innermost first."""
        for folder in folders:
            with suppress(OSError), self._folder(folder) as parent:
                self.disk.rmdir(parent, PurePosixPath(folder).name)

    def sync(self, paths: Iterable[str]) -> None:
        """Sync the entries of the folders of these paths, each folder once."""
        for folder in dict.fromkeys(str(PurePosixPath(path).parent) for path in paths):
            with suppress(FileNotFoundError, NotADirectoryError), self._folder(f"{folder}/x") as opened:
                self._sync(opened)

    # Inside

    @contextmanager
    def _folder(self, path: str) -> Iterator[int]:
        """The folder of a path, opened without following links."""
        parts = PurePosixPath(path).parts
        if not parts or ".." in parts or path.startswith("/"):
            raise PathProblem(f"{path} is outside the workspace.", "outside_workspace", path)
        with open_folder(self.root.joinpath(*parts[:-1]), root=self.root) as folder:
            yield folder

    @contextmanager
    def _writing(self, path: str) -> Iterator[None]:
        """Report what cannot be written by the path that was asked for, not by a temporary one."""
        try:
            yield
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise
            folder = os.path.dirname(path)
            where = f"The folder {folder}" if folder else "The folder of the workspace"
            message = f"{where} cannot be written ({error.strerror}), so {path} was not changed."
            raise PathProblem(message, "protected_path", path) from error

    @contextmanager
    def _original(self, step: FileStep) -> Iterator[int | None]:
        """The file whose owner and attributes the new one gets."""
        if not step.like:
            yield None
            return
        name = PurePosixPath(step.like).name
        with self._folder(step.like) as folder, ExitStack() as opened:
            try:
                file = opened.enter_context(open_file(name, folder=folder, follow=False))
            except FileNotFoundError as error:  # an editor that renames first, then writes
                raise stale_file(step.like) from error
            yield file.descriptor

    def _put(self, folder: int, name: str, data: bytes, mode: int | None, like: int | None) -> int:
        if mode is not None and stat.S_ISFIFO(mode):
            self.disk.mkfifo(folder, name, stat.S_IMODE(mode))
            return mode
        if mode == LINK_MODE:
            self.disk.symlink(folder, name, data.removeprefix(LINK_MARK))
            return LINK_MODE
        descriptor = self.disk.create(folder, name, 0o666 if mode is None else 0o600)
        try:
            self.disk.write(descriptor, data)
            if like is not None:
                _copy_owner(descriptor, like)
            if mode is not None:
                os.fchmod(descriptor, mode)
            self.disk.sync(descriptor)
            return os.fstat(descriptor).st_mode & 0o7777
        finally:
            os.close(descriptor)

    def _exchange(self, folder: int, step: FileStep) -> None:
        try:
            kept = self._swap(folder, step.temporary, step)
        except FileNotFoundError as error:
            raise stale_file(step.path) from error
        if kept and not step.is_base(entry_state(step.temporary, folder)):
            self._undo_exchange(folder, step)
            raise stale_file(step.path)

    def _undo_exchange(self, folder: int, step: FileStep) -> None:
        self._copy(folder, step)
        self._swap(folder, step.temporary, step)
        if entry_state(step.temporary, folder).sha256 not in (step.new, ""):
            # Two others wrote, one after the other: the later content stays, the earlier is kept beside it.
            self._copy(folder, step)
            self._swap(folder, step.temporary, step)
            self._keep(folder, step, step.temporary)

    def _swap(self, folder: int, other: str, step: FileStep) -> bool:
        """Exchange the file with another name; False where the replaced content could not be kept."""
        try:
            self.disk.exchange(folder, other, step.name)
        except NotSupported:
            return self._swap_in_steps(folder, other, step)
        return True

    def _swap_in_steps(self, folder: int, other: str, step: FileStep) -> bool:
        # A file that is renamed here between the check and the replacing is overwritten: an exchange of names
        # does not have this race.
        try:
            self.disk.link(folder, step.name, step.linked)
        except OSError as error:
            if isinstance(error, FileNotFoundError | FileExistsError):
                raise
            if not step.is_known(entry_state(step.name, folder)):
                raise stale_file(step.path) from error
            self.disk.replace(folder, other, step.name)
            return False
        self.disk.replace(folder, other, step.name)
        self.disk.replace(folder, step.linked, other)
        return True

    def _appear(self, folder: int, step: FileStep) -> None:
        try:
            self._rename(folder, step.temporary, step.name)
        except FileExistsError as error:
            message = f"{step.path} already exists. Read it first."
            raise PathProblem(message, "file_exists", step.path) from error

    def _vanish(self, folder: int, step: FileStep) -> None:
        try:
            self._rename(folder, step.name, step.temporary)
        except FileNotFoundError as error:
            raise stale_file(step.path) from error
        if not step.is_base(entry_state(step.temporary, folder)):
            self._undo_vanish(folder, step)
            raise stale_file(step.path)

    def _undo_vanish(self, folder: int, step: FileStep) -> None:
        self._copy(folder, step)
        try:
            self._rename(folder, step.temporary, step.name)
        except FileExistsError:
            self._keep(folder, step, step.temporary)

    def _rename(self, folder: int, name: str, to: str) -> None:
        """Rename to a name that is free."""
        try:
            self.disk.move(folder, name, to)
        except NotSupported:
            self.disk.link(folder, name, to)
            self.disk.unlink(folder, name)

    def _exchange_back(self, folder: int, step: FileStep, content: Callable[[str], bytes]) -> None:
        if entry_state(step.temporary, folder).sha256 != step.old:
            now = entry_state(step.name, folder).mode
            mode = now if step.old_mode == step.new_mode else step.old_mode
            self._put_beside(folder, step, content(step.old), mode)
            self._tidy(folder, step, step.temporary)
            self._rename(folder, step.restored, step.temporary)
        if not self._swap(folder, step.temporary, step):
            return
        if entry_state(step.temporary, folder).sha256 == step.new:
            self.disk.unlink(folder, step.temporary)
        else:
            self._copy(folder, step)
            self._swap(folder, step.temporary, step)  # somebody just wrote to it: theirs stays
            self._tidy(folder, step, step.temporary)

    def _take_away(self, folder: int, step: FileStep) -> None:
        self._rename(folder, step.name, step.temporary)
        if entry_state(step.temporary, folder).sha256 == step.new:
            self.disk.unlink(folder, step.temporary)
        else:
            self._undo_vanish(folder, step)

    def _bring_back(self, folder: int, step: FileStep, content: Callable[[str], bytes]) -> None:
        name = step.temporary
        if entry_state(name, folder).sha256 != step.old:
            name = step.restored
            self._put_beside(folder, step, content(step.old), step.old_mode)
        with suppress(FileExistsError):  # somebody else has made one meanwhile: their file stays
            self._rename(folder, name, step.name)

    def _tidy(self, folder: int, step: FileStep, name: str) -> str:
        found = entry_state(name, folder).sha256
        if not found:
            return ""
        if found in (step.old, step.new):
            self.disk.unlink(folder, name)
            return ""
        return self._keep(folder, step, name)

    def _keep(self, folder: int, step: FileStep, name: str) -> str:
        """Keep what somebody else wrote beside the file, under a name of its own, once per content."""
        for copy in map(step.copy_name, range(1, 100)):
            try:
                self._rename(folder, name, copy)
            except FileExistsError:
                found = read_entry(copy, folder).data
                if found is None or found != read_entry(name, folder).data:
                    continue
                self.disk.unlink(folder, name)
            return copy
        return name

    def _copy(self, folder: int, step: FileStep) -> None:
        """Copy what somebody else wrote and we replaced, before putting it back.

        A program that read the file meanwhile did not see that content, and may save over it later.
        """
        found, data = read_entry(step.temporary, folder)
        if data is not None and not step.is_known(found):
            self._put_beside(folder, step, data, found.mode)
            self._keep(folder, step, step.restored)

    def _put_beside(self, folder: int, step: FileStep, data: bytes, mode: int | None) -> None:
        with suppress(FileNotFoundError):  # left by a process that died
            self.disk.unlink(folder, step.restored)
        self._put(folder, step.restored, data, mode, like=None)

    def _sync(self, folder: int) -> None:
        try:
            descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        except PermissionError:
            return  # a folder that may be written but not read cannot be synced
        try:
            self.disk.sync(descriptor)
        finally:
            os.close(descriptor)


def exchange_offered(root: Path, disk: Disk = DISK) -> bool:
    """Whether the file system can exchange names atomically; tried with two temporary files."""
    with open_folder(root, root=root) as folder:
        names = [f".{os.getpid()}-{number}.handrail-tmp" for number in (1, 2)]
        try:
            for name in names:
                os.close(disk.create(folder, name, 0o600))
            disk.exchange(folder, *names)
        except NotSupported:
            return False
        finally:
            for name in names:
                with suppress(FileNotFoundError):
                    disk.unlink(folder, name)
    return True


def _inode(name: str, folder: int) -> int:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino
    except FileNotFoundError:
        return 0


def _copy_owner(descriptor: int, like: int) -> None:
    """Copy owner and extended attributes of another file, as far as the system allows it."""
    found = os.fstat(like)
    if (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):  # changing only the group may be allowed
            os.fchown(descriptor, -1, found.st_gid)
        with suppress(PermissionError):
            os.fchown(descriptor, found.st_uid, -1)
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            for name in os.listxattr(like):
                with suppress(OSError):
                    os.setxattr(descriptor, name, os.getxattr(like, name))


def stale_file(path: str) -> PathProblem:
    message = f"Somebody else just changed {path}. Read it again, then repeat the change."
    return PathProblem(message, "stale_file", path)
