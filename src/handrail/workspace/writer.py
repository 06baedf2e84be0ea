"""The only code that writes workspace files. For `changes` alone: it checks hashes, not permissions.

A step leads one path from an old content to a new one. Beside the file lies, until the step is over, a
temporary name: first of the new content, then, once both have been exchanged, of the one that was displaced.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from handrail.protocol.errors import PathProblem
from handrail.workspace.beneath import opened_folder
from handrail.workspace.disk import DISK, Disk, NotOffered
from handrail.workspace.found import Content, Found, Step, look_at, read_at

LONGEST_NAME = 200


class Writer:
    """Takes steps and takes them back, beneath one folder."""

    def __init__(self, root: Path, disk: Disk = DISK) -> None:
        self.root = root
        self.disk = disk

    # Looking

    def look(self, path: str) -> Found:
        """What is at a path now; a link on the way means that there is nothing of ours."""
        name = PurePosixPath(path).name
        try:
            with self._folder(path) as folder:
                return look_at(name, folder)
        except (FileNotFoundError, NotADirectoryError):
            return Found()

    def read(self, path: str) -> Content:
        """The same with its bytes, read once."""
        try:
            with self._folder(path) as folder:
                return read_at(PurePosixPath(path).name, folder)
        except (FileNotFoundError, NotADirectoryError):
            return Content()

    def missing_folders(self, path: str) -> list[str]:
        """Folders that a new file at this path needs, outermost first."""
        missing = []
        for parent in (str(each) for each in PurePosixPath(path).parents if each.name):
            if os.path.lexists(self.root / parent):
                break
            missing.append(parent)
        return missing[::-1]

    def in_the_way(self, path: str) -> str:
        """What stands where a folder of this path would have to be; empty where there is nothing."""
        folders = (str(each) for each in PurePosixPath(path).parents if each.name)
        nearest = next((each for each in folders if os.path.lexists(self.root / each)), "")
        return "" if os.path.isdir(self.root / nearest) else nearest

    def is_ready(self, step: Step) -> bool:
        """Whether nothing but an exchange of names is missing."""
        return not step.new or self.look(step.temporary_path).sha256 == step.new

    # Before the step

    def make_folders(self, folders: Iterable[str]) -> None:
        for folder in folders:
            with self._writing(folder), self._folder(folder) as parent, suppress(FileExistsError):
                self.disk.mkdir(parent, PurePosixPath(folder).name)

    def put(self, step: Step, data: bytes, mode: int | None) -> int:
        """The new content under the temporary name, forced to the disk; the mode that it has."""
        with self._writing(step.path), self._folder(step.path) as folder, self._original(step) as original:
            return self._put(folder, step.temporary, data, mode, original)

    # The step

    def forward(self, step: Step) -> None:
        """Old becomes new; raises PathProblem, and nothing has happened, where the file is not the base."""
        with self._writing(step.path), self._folder(step.path) as folder:
            if step.old and step.new:
                self._exchange(folder, step)
            elif step.new:
                self._appear(folder, step)
            else:
                self._vanish(folder, step)

    def back(self, step: Step, content: Callable[[str], bytes]) -> None:
        """New becomes old again; what somebody else wrote meanwhile stays where it is."""
        with self._writing(step.path), self._folder(step.path) as folder:
            if step.old and step.new:
                self._exchange_back(folder, step, content)
            elif step.new:
                self._take_away(folder, step)
            else:
                self._bring_back(folder, step, content)

    def return_displaced(self, step: Step) -> None:
        """Where somebody's own content was displaced by ours and a crash came, put it back in its place."""
        if not step.old or self.look(step.path).sha256 != step.new:
            return
        if self.look(step.temporary_path).sha256 in ("", step.old, step.new):
            return
        with self._folder(step.path) as folder:
            if step.new:
                self._undo_exchange(folder, step)
            else:
                self._undo_vanish(folder, step)

    def put_back(self, step: Step) -> None:
        """Where the old content lies beside the file, and there only, bring it back to its place."""
        if not step.old or step.old == step.new or self.look(step.temporary_path).sha256 != step.old:
            return
        now = self.look(step.path).sha256
        with self._folder(step.path) as folder:
            if now == step.new and now:
                self._undo_exchange(folder, step)
            elif not now:
                self._undo_vanish(folder, step)

    def straighten(self, step: Step) -> None:
        """Where names cannot be exchanged at once, bring a half-done renaming to one of its two ends."""
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

    def tidy(self, step: Step) -> str:
        """Remove what lies beside the file; the path of the copy where that was somebody else's work."""
        try:
            with self._folder(step.path) as folder:
                with suppress(FileNotFoundError):
                    self.disk.unlink(folder, step.restored)
                kept = [self._tidy(folder, step, name) for name in (step.temporary, step.linked)]
        except (FileNotFoundError, NotADirectoryError):
            return ""
        return next((step.beside(name) for name in kept if name), "")

    def discard(self, step: Step) -> None:
        """Remove a temporary file that no journal knows of: its writer died over it."""
        with suppress(OSError), self._folder(step.path) as folder:
            self.disk.unlink(folder, step.temporary)

    def remove_folders(self, folders: Iterable[str]) -> None:
        """Remove the folders in which nothing is left, innermost first."""
        for folder in folders:
            with suppress(OSError), self._folder(folder) as parent:
                self.disk.rmdir(parent, PurePosixPath(folder).name)

    def sync(self, paths: Iterable[str]) -> None:
        """Force the entries of the folders of these paths to the disk, each folder once."""
        for folder in dict.fromkeys(str(PurePosixPath(path).parent) for path in paths):
            with suppress(FileNotFoundError, NotADirectoryError), self._folder(f"{folder}/x") as opened:
                self._sync(opened)

    # Inside

    @contextmanager
    def _folder(self, path: str) -> Iterator[int]:
        """The folder of a path, opened step by step without following links."""
        parts = PurePosixPath(path).parts
        if not parts or ".." in parts or path.startswith("/"):
            raise PathProblem(f"{path} is outside the workspace.", "outside_workspace", path)
        with opened_folder(self.root.joinpath(*parts[:-1]), root=self.root) as folder:
            yield folder

    @contextmanager
    def _writing(self, path: str) -> Iterator[None]:
        """Say what cannot be written in the words of the one who wanted it, not of the steps to it."""
        try:
            yield
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise
            folder = os.path.dirname(path)
            where = f"The folder {folder}" if folder else "The folder of the workspace"
            message = f"{where} cannot be written ({error.strerror}), so {path} is as it was."
            raise PathProblem(message, "protected_path", path) from error

    @contextmanager
    def _original(self, step: Step) -> Iterator[int | None]:
        """The file whose owner and attributes the new one gets."""
        if not step.like:
            yield None
            return
        with self._folder(step.like) as folder:
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                descriptor = os.open(PurePosixPath(step.like).name, flags, dir_fd=folder)
            except FileNotFoundError as error:  # an editor that renames first, then writes
                raise _stale(step.like) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _put(self, folder: int, name: str, data: bytes, mode: int | None, like: int | None) -> int:
        descriptor = self.disk.create(folder, name, 0o666 if mode is None else 0o600)
        try:
            self.disk.write(descriptor, data)
            if like is not None:
                _dress(descriptor, like)
            if mode is not None:
                os.fchmod(descriptor, mode)
            self.disk.sync(descriptor)
            return os.fstat(descriptor).st_mode & 0o7777
        finally:
            os.close(descriptor)

    def _exchange(self, folder: int, step: Step) -> None:
        try:
            displaced_is_there = self._swap(folder, step.temporary, step)
        except FileNotFoundError as error:
            raise _stale(step.path) from error
        if displaced_is_there and not step.is_base(look_at(step.temporary, folder)):
            self._undo_exchange(folder, step)
            raise _stale(step.path)

    def _undo_exchange(self, folder: int, step: Step) -> None:
        self._swap(folder, step.temporary, step)
        came = look_at(step.temporary, folder)
        if came.sha256 not in (step.new, ""):
            # Two others wrote, one after the other: the later one stays in place, the earlier one beside it.
            self._swap(folder, step.temporary, step)
            self._keep(folder, step, step.temporary)

    def _swap(self, folder: int, other: str, step: Step) -> bool:
        """Exchange the file with another name; False where what was displaced could not be kept at all."""
        try:
            self.disk.exchange(folder, other, step.name)
        except NotOffered:
            return self._swap_in_steps(folder, other, step)
        return True

    def _swap_in_steps(self, folder: int, other: str, step: Step) -> bool:
        # Who replaces the file by renaming between the look and the replacing is overwritten: it is this
        # moment that the exchange of names does not have.
        try:
            self.disk.link(folder, step.name, step.linked)
        except OSError as error:
            if isinstance(error, FileNotFoundError | FileExistsError):
                raise
            if not step.is_known(look_at(step.name, folder)):
                raise _stale(step.path) from error
            self.disk.replace(folder, other, step.name)
            return False
        self.disk.replace(folder, other, step.name)
        self.disk.replace(folder, step.linked, other)
        return True

    def _appear(self, folder: int, step: Step) -> None:
        try:
            self._rename(folder, step.temporary, step.name)
        except FileExistsError as error:
            message = f"{step.path} exists already. Read it first."
            raise PathProblem(message, "file_exists", step.path) from error

    def _vanish(self, folder: int, step: Step) -> None:
        try:
            self._rename(folder, step.name, step.temporary)
        except FileNotFoundError as error:
            raise _stale(step.path) from error
        if not step.is_base(look_at(step.temporary, folder)):
            self._undo_vanish(folder, step)
            raise _stale(step.path)

    def _undo_vanish(self, folder: int, step: Step) -> None:
        try:
            self._rename(folder, step.temporary, step.name)
        except FileExistsError:
            self._keep(folder, step, step.temporary)

    def _rename(self, folder: int, name: str, to: str) -> None:
        """Another name that nothing has yet."""
        try:
            self.disk.move(folder, name, to)
        except NotOffered:
            self.disk.link(folder, name, to)
            self.disk.unlink(folder, name)

    def _exchange_back(self, folder: int, step: Step, content: Callable[[str], bytes]) -> None:
        name = step.temporary
        if look_at(name, folder).sha256 != step.old:
            name = step.restored
            now = look_at(step.name, folder).mode
            mode = now if step.old_mode == step.new_mode else step.old_mode
            self._put(folder, name, content(step.old), mode, like=None)
        if not self._swap(folder, name, step):
            return
        if look_at(name, folder).sha256 == step.new:
            self.disk.unlink(folder, name)
        else:
            self._swap(folder, name, step)  # somebody wrote to it in this moment: theirs stays
            self._tidy(folder, step, name)

    def _take_away(self, folder: int, step: Step) -> None:
        self._rename(folder, step.name, step.temporary)
        if look_at(step.temporary, folder).sha256 == step.new:
            self.disk.unlink(folder, step.temporary)
        else:
            self._undo_vanish(folder, step)

    def _bring_back(self, folder: int, step: Step, content: Callable[[str], bytes]) -> None:
        name = step.temporary
        if look_at(name, folder).sha256 != step.old:
            name = step.restored
            self._put(folder, name, content(step.old), step.old_mode, like=None)
        with suppress(FileExistsError):  # somebody else has made one meanwhile: theirs stays
            self._rename(folder, name, step.name)

    def _tidy(self, folder: int, step: Step, name: str) -> str:
        found = look_at(name, folder).sha256
        if not found:
            return ""
        if found in (step.old, step.new):
            self.disk.unlink(folder, name)
            return ""
        return self._keep(folder, step, name)

    def _keep(self, folder: int, step: Step, name: str) -> str:
        """Give what somebody else wrote a name of its own beside the file."""
        stem = step.name.encode()[:LONGEST_NAME].decode(errors="ignore")
        for number in range(1, 100):
            copy = f"{stem}.conflict-{step.tail}" + (f"-{number}" if number > 1 else "")
            with suppress(FileExistsError):
                self._rename(folder, name, copy)
                return copy
        return name

    def _sync(self, folder: int) -> None:
        try:
            descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        except PermissionError:
            return  # a folder that may be written and not read cannot be forced to the disk
        try:
            self.disk.sync(descriptor)
        finally:
            os.close(descriptor)


def exchange_offered(root: Path, disk: Disk = DISK) -> bool:
    """Whether names can be exchanged in this folder at once; tried with two files that are gone again."""
    with opened_folder(root, root=root) as folder:
        names = [f".{os.getpid()}-{number}.handrail-tmp" for number in (1, 2)]
        try:
            for name in names:
                os.close(disk.create(folder, name, 0o600))
            disk.exchange(folder, *names)
        except NotOffered:
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


def _dress(descriptor: int, like: int) -> None:
    """Owner and extended attributes of another file, as far as the system lets us."""
    found = os.fstat(like)
    if (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):  # who may not give it away may still give it to the same group
            os.fchown(descriptor, -1, found.st_gid)
        with suppress(PermissionError):
            os.fchown(descriptor, found.st_uid, -1)
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            for name in os.listxattr(like):
                with suppress(OSError):
                    os.setxattr(descriptor, name, os.getxattr(like, name))


def _stale(path: str) -> PathProblem:
    return PathProblem(
        f"{path} was changed by somebody else just now. Read it again, then repeat the change.",
        "stale_file",
        path,
    )
