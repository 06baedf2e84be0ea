"""One scratch copy: made equal to the workspace, changed by its user, compared with the workspace again.

Commands that ran in a copy could have made anything of it, so nothing here follows a link of the copy.
"""

import errno
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import compress, groupby, zip_longest
from operator import ne
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from handrail.config.open_file import open_file
from handrail.config.places import make_private
from handrail.config.remove_tree import remove_tree
from handrail.protocol.errors import PathProblem, StorageFull, StorageProblem
from handrail.workspace.files import Workspace
from handrail.workspace.paths import open_folder, printable
from handrail.workspace.scratch_copy.clone_file import (
    MODE_BITS,
    WRITE_FLAGS,
    CopiedFile,
    NotCopied,
    copy_entry,
)
from handrail.workspace.scratch_copy.record import CopyRecord
from handrail.workspace.scratch_copy.wanted import MAX_BYTES, Wanted, find_wanted
from handrail.workspace.sensitive_names import GIT
from handrail.workspace.stat_index import (
    FOLDER_FLAGS,
    Differences,
    StatIndex,
    is_recent,
    snapshot,
    stat_of,
)

SPARE_BYTES = 200_000_000  # left free on the disk
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
MAX_THREADS, FILES_A_THREAD = 4, 500
OWNER_RIGHTS = 0o700  # of every folder in a copy, to refresh it
NODE_MODULES, PACKAGES = "node_modules", ".packages"
PACKAGE_CACHES = frozenset({".cache", ".vite", ".vite-temp", ".vitest"})
CACHES = frozenset({".mypy_cache", ".ruff_cache", ".pytest_cache"})
"""Kept from one refresh to the next. Not `__pycache__`: what is in it would run in place of the source."""


class MountedLayer(NamedTuple):
    """A folder that takes the place of one of installed packages."""

    folder: str
    path: str
    """Where it is shown, as a path in the workspace."""
    writable: bool


class ShownCopy(NamedTuple):
    """How commands see a copy: its root at the path of the workspace, some paths below as they are there."""

    root: Path
    read_only: tuple[tuple[str, str], ...]
    """Paths in the workspace, and where in the copy each is shown."""
    cache: Path
    """Outside of the copy; commands may write there, and it is kept: for the caches of their tools."""
    layers: tuple[MountedLayer, ...] = ()


class Refreshed(NamedTuple):
    copied: tuple[str, ...]
    removed: tuple[str, ...]
    left_out: dict[str, str]
    """Paths that the copy lacks, each with the reason: a pipe, no permission, it kept changing."""


class CopiedGroup(NamedTuple):
    copied: dict[str, CopiedFile]
    left_out: dict[str, str]


Group = tuple[str, list[str]]  # a folder and the names of files in it
CopyGroup = Callable[[Group], CopiedGroup]


class ScratchCopy:
    """A copy that its holder alone uses. It must not be refreshed while commands run in it."""

    def __init__(self, workspace: Workspace, folder: Path) -> None:
        self._workspace = workspace
        self._folder = folder
        self._record = CopyRecord(folder / "record")
        self._mark = folder / "used"  # while it exists, the copy may have more or less than the record says
        self._read_only: tuple[str, ...] = ()
        self.root = folder / "tree"
        self.cache = folder / "cache"
        self.shown_at = workspace.root
        """The path at which commands see the copy."""

    def refresh(self) -> Refreshed:
        """Make the copy equal to the workspace; only what differs is written.

        Raises StorageProblem if there is too much to copy, and StorageFull if the disk has no space for it.
        """
        with _storage_errors():
            if not self._record.exists or not self.root.is_dir():
                self.remove()
                self._record = CopyRecord(self._folder / "record")
            make_private(self.root)
            make_private(self.cache)
            self.root.chmod(os.stat(self.shown_at).st_mode & MODE_BITS | OWNER_RIGHTS)
            wanted = find_wanted(self._workspace)
            self._read_only = wanted.read_only
            there = snapshot(self.root, ignored=True) if os.path.lexists(self._mark) else None
            try:
                return self._make_equal(wanted, there)
            except FileExistsError:  # the record was cut, or somebody changed the copy without this process
                return self._make_equal(wanted, snapshot(self.root, ignored=True))

    def shown(self, layers: Sequence[MountedLayer] = ()) -> ShownCopy:
        """What the sandbox needs to run commands in the copy, as it was refreshed last.

        `layers` take the place of folders of packages that would be shown as they are in the workspace.
        """
        self._mark.touch(mode=0o600)
        replaced = {layer.path for layer in layers}
        paths = [path for path in self._read_only if path not in replaced]
        shown = [self._packages(path, self.shown_at / path) for path in paths if path.endswith(NODE_MODULES)]
        shown += [(path, path) for path in paths if not path.endswith(NODE_MODULES)]
        ready = [(path, at) for path, at in shown if self._make_mount_point(self.shown_at / path, at)]
        mounted = []
        for layer in layers:
            folder, at = Path(layer.folder), layer.path
            if at.endswith(NODE_MODULES) and not layer.writable:
                _, at = self._packages(at, folder)
            if self._make_mount_point(folder, at):
                mounted.append(layer._replace(path=at))
        self._make_mount_point(self.shown_at / GIT, GIT)
        return ShownCopy(self.root, tuple(ready), self.cache, tuple(mounted))

    def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file of the copy, with its folders; raises PathProblem if the path leads elsewhere."""
        with self._folder_of(path, make=True) as (folder, name):
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            descriptor = os.open(name, WRITE_FLAGS, 0o600, dir_fd=folder)
            with open(descriptor, "wb") as file:
                file.write(data)
                os.fchmod(descriptor, mode & MODE_BITS)
            _remove_bytecode(folder, name)

    def delete(self, path: str) -> None:
        """Delete a file of the copy; raises PathProblem if there is none, or the path leads elsewhere."""
        with self._folder_of(path, make=False) as (folder, name):
            os.unlink(name, dir_fd=folder)
            _remove_bytecode(folder, name)

    def differences(self) -> Differences:
        """Files that only the copy has (`added`), that differ, and that only the workspace has (`removed`).

        Ignored files do not count. Content and permissions decide, not times.
        """
        here, there = find_wanted(self._workspace).files, snapshot(self.root, rules_of=self.shown_at).files
        sources, copies, doubtful = self._record.sources, self._record.copies, self._record.doubtful
        unequal = [
            path
            for path in here.keys() & there.keys()
            if sources.get(path) != here[path] or copies.get(path) != there[path] or path in doubtful
        ]
        missing = [path for path in here.keys() - there.keys() if _is_copied(here[path].mode)]
        return Differences(
            tuple(sorted(path for path in there.keys() - here.keys() if not _exists(self.shown_at, path))),
            tuple(sorted(path for path in unequal if not self._same(path))),
            tuple(sorted(path for path in missing if not _exists(self.root, path))),
        )

    def remove(self) -> None:
        """Delete the copy and its cache; the next refresh makes it anew."""
        self._record.remove()  # first: without it, whatever is left of the copy is not used
        remove_tree(self.root)
        remove_tree(self.cache)
        self._mark.unlink(missing_ok=True)

    def _make_equal(self, wanted: Wanted, there: StatIndex | None) -> Refreshed:
        """`there` is what the copy has now; None: what the record says."""
        record, looked = self._record, there is not None
        sources, copies = record.sources, record.copies
        files = there.files if there else copies
        folders = there.folders if there else record.folders
        # All files are compared at every refresh: without a loop in Python.
        stale = set(compress(wanted.files, map(ne, wanted.files.values(), map(sources.get, wanted.files))))
        if looked:
            stale.update(
                compress(wanted.files, map(ne, map(files.get, wanted.files), map(copies.get, wanted.files)))
            )
        left_out = dict(wanted.left_out)
        unsure = record.doubtful.intersection(wanted.files).difference(stale)
        gone = files.keys() - wanted.files.keys()
        extra = folders.keys() - wanted.folders.keys()
        extra |= _left_over(there, wanted) if there else set()
        if not (stale or unsure or gone or extra) and _with_rights(wanted.folders) == _with_rights(folders):
            self._mark.unlink(missing_ok=True)
            return Refreshed((), (), left_out)
        self._check_space(wanted, stale)
        self._mark.touch(mode=0o600)
        self._unlink(gone | (stale & files.keys()))
        for path in sorted(extra):
            remove_tree(self.root / path)
        self._make_folders(wanted.folders, folders)
        kept = {path: pair for path in unsure if (pair := self._same(path))}
        self._unlink(unsure - kept.keys())
        copied = self._copy(stale | (unsure - kept.keys()), wanted, left_out)
        pairs, now = kept | copied, time.time_ns()
        record.update(
            pairs,
            removed=(sources.keys() - wanted.files.keys()) | left_out.keys(),
            doubtful=[path for path, pair in pairs.items() if any(is_recent(each, now) for each in pair)],
            folders=wanted.folders,
        )
        self._mark.unlink(missing_ok=True)
        return Refreshed(tuple(sorted(copied)), tuple(sorted(gone)), left_out)

    def _copy(self, paths: Iterable[str], wanted: Wanted, left_out: dict[str, str]) -> dict[str, CopiedFile]:
        apart = sorted(path.rpartition("/") for path in paths)
        groups = [
            (folder, [name for _, _, name in group])
            for folder, group in groupby(apart, key=lambda parts: parts[0])
        ]
        copied: dict[str, CopiedFile] = {}
        for done, reasons in _in_threads(lambda group: self._copy_group(*group, wanted), groups, len(apart)):
            copied |= done
            left_out |= reasons
        return copied

    def _copy_group(self, folder: str, names: list[str], wanted: Wanted) -> CopiedGroup:
        """Copy files of one folder."""
        done = CopiedGroup({}, {})
        start = f"{folder}/" if folder else ""
        with ExitStack() as stack:
            target = stack.enter_context(open_folder(self.root / folder, root=self.root))
            try:
                source = stack.enter_context(open_folder(self.shown_at / folder, root=self.shown_at))
            except OSError:
                return CopiedGroup({}, {start + name: "its folder is gone" for name in names})
            for name in names:
                path = start + name
                link = stat.S_ISLNK(wanted.files[path].mode)
                try:
                    done.copied[path] = copy_entry(name, link=link, source=source, target=target)
                except NotCopied as reason:
                    done.left_out[path] = str(reason)
        return done

    def _unlink(self, paths: Iterable[str]) -> None:
        for folder, group in groupby(
            sorted(path.rpartition("/") for path in paths), key=lambda each: each[0]
        ):
            with (
                suppress(FileNotFoundError),  # a folder that is gone has no files
                open_folder(self.root / folder, root=self.root) as target,
            ):
                for _, _, name in group:
                    with suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=target)

    def _make_folders(self, wanted: Mapping[str, int], there: Mapping[str, int]) -> None:
        for path in sorted(wanted):
            mode = wanted[path] & MODE_BITS | OWNER_RIGHTS
            if path in there and there[path] & MODE_BITS | OWNER_RIGHTS == mode:
                continue
            folder, _, name = path.rpartition("/")
            with open_folder(self.root / folder, root=self.root) as above:
                with suppress(FileExistsError):
                    os.mkdir(name, OWNER_RIGHTS, dir_fd=above)
                descriptor = os.open(name, FOLDER_FLAGS, dir_fd=above)
                try:
                    os.fchmod(descriptor, mode)
                finally:
                    os.close(descriptor)

    def _same(self, path: str) -> CopiedFile | None:
        """The stats of both sides before they were compared; None if they differ."""
        folder, _, name = path.rpartition("/")
        try:
            with (
                open_folder(self.shown_at / folder, root=self.shown_at) as source,
                open_folder(self.root / folder, root=self.root) as target,
            ):
                found = CopiedFile(
                    stat_of(os.stat(name, dir_fd=source, follow_symlinks=False)),
                    stat_of(os.stat(name, dir_fd=target, follow_symlinks=False)),
                )
                return found if _equal(name, found, source, target) else None
        except OSError:
            return None

    def _check_space(self, wanted: Wanted, stale: Iterable[str]) -> None:
        needed = sum(wanted.files[path].size for path in stale)
        free = shutil.disk_usage(self.root).free
        if needed > free - SPARE_BYTES and needed > SPARE_BYTES:
            message = f"A scratch copy needs {needed:,} bytes, and the disk of {self.root} has {free:,} left."
            raise StorageFull(f"{message} Free some space, or move Handrail's data with HANDRAIL_HOME.")

    def _packages(self, path: str, inside: Path) -> tuple[str, str]:
        """Where the packages of Node are shown: in a folder with a link to each, as pnpm has it.

        Many tools keep a cache in `node_modules` and fail if they cannot.
        """
        with suppress(OSError, PathProblem):
            if self._make_mount_point(inside, path, new=True):
                self._link_packages(path, inside)
        return path, f"{path}/{PACKAGES}"

    def _link_packages(self, path: str, inside: Path) -> None:
        for name in os.listdir(inside):
            scope = name.startswith("@") and os.path.isdir(inside / name)
            for each in [f"{name}/{inner}" for inner in os.listdir(inside / name)] if scope else [name]:
                leads_to = f"{'../' * each.count('/')}{PACKAGES}/{each}"
                if os.path.islink(inside / each):
                    leads_to = os.readlink(inside / each)
                if name not in PACKAGE_CACHES:
                    with self._folder_of(f"{path}/{each}", make=True) as (folder, last):
                        os.symlink(leads_to, last, dir_fd=folder)

    def _make_mount_point(self, source: Path, at: str, *, new: bool = False) -> bool:
        """Whether there is now something to mount on, with `new`: where there was nothing.

        The sandbox itself would follow a link that leads elsewhere.
        """
        try:
            mode = os.stat(source, follow_symlinks=False).st_mode
            with self._folder_of(at, make=True) as (folder, name):
                with suppress(FileNotFoundError):
                    found = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
                    if stat.S_IFMT(found) == stat.S_IFMT(mode):
                        return not stat.S_ISLNK(mode) and not new
                    if not stat.S_ISDIR(found):
                        os.unlink(name, dir_fd=folder)
                if stat.S_ISDIR(mode):
                    os.mkdir(name, OWNER_RIGHTS, dir_fd=folder)
                elif stat.S_ISREG(mode):
                    os.close(os.open(name, WRITE_FLAGS, 0o600, dir_fd=folder))
                else:
                    return False
        except (OSError, PathProblem):
            return False
        return True

    @contextmanager
    def _folder_of(self, path: str, *, make: bool) -> Iterator[tuple[int, str]]:
        parts = PurePosixPath(path).parts
        if not parts or parts[0] == "/" or ".." in parts:
            raise PathProblem(f"{printable(path)} is no path in a scratch copy.", "invalid_path", path)
        self._mark.touch(mode=0o600)
        try:
            with open_folder(self.root.joinpath(*parts[:-1]), make=make, root=self.root) as folder:
                yield folder, parts[-1]
        except OSError as error:
            why = error.strerror or str(error)
            message = f"{printable(path)} cannot be changed in the scratch copy: {why}."
            raise PathProblem(message, "file_missing", path) from error


def _in_threads(copy: CopyGroup, groups: list[Group], files: int) -> Iterable[CopiedGroup]:
    """What was copied of each group; making a file is work of the kernel, which several cores can share."""
    workers = min(os.cpu_count() or 1, MAX_THREADS, files // FILES_A_THREAD)
    if workers < 2:
        return map(copy, groups)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(copy, groups))


def _equal(name: str, found: CopiedFile, source: int, target: int) -> bool:
    kinds = {stat.S_IFMT(each.mode) for each in found}
    if kinds == {stat.S_IFLNK}:
        return os.readlink(name, dir_fd=source) == os.readlink(name, dir_fd=target)
    if kinds != {stat.S_IFREG} or found.source.size != found.copy.size:
        return False
    if (found.source.mode ^ found.copy.mode) & MODE_BITS:
        return False
    with (
        open_file(name, folder=source, follow=False) as one,
        open_file(name, folder=target, follow=False) as other,
    ):
        return all(a == b for a, b in zip_longest(one.chunks(MAX_BYTES), other.chunks(MAX_BYTES)))


def _left_over(there: StatIndex, wanted: Wanted) -> set[str]:
    """Folders in the copy that were not looked into, but for caches in a folder that stays."""
    apart = ((path, *path.rpartition("/")) for path in there.unentered)
    return {
        path
        for path, above, _, name in apart
        if name not in CACHES or (above and above not in wanted.folders)
    }


def _with_rights(folders: Mapping[str, int]) -> dict[str, int]:
    return {path: mode & MODE_BITS | OWNER_RIGHTS for path, mode in folders.items()}


def _remove_bytecode(folder: int, name: str) -> None:
    """Python takes a compiled file for that of a source with the same size from the same second."""
    with suppress(OSError), ExitStack() as stack:
        if name.endswith(".py"):
            cache = os.open("__pycache__", FOLDER_FLAGS, dir_fd=folder)
            stack.callback(os.close, cache)
            for each in os.listdir(cache):
                if each.startswith(f"{name[:-3]}."):
                    os.unlink(each, dir_fd=cache)


def _is_copied(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _exists(root: Path, path: str) -> bool:
    """Whether there is such an entry, and no link on the way to it."""
    folder, _, name = path.rpartition("/")
    try:
        with open_folder(root / folder, root=root) as found:
            os.stat(name, dir_fd=found, follow_symlinks=False)
    except OSError:
        return False
    return True


@contextmanager
def _storage_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in NO_SPACE:
            message = "The disk has no space for a scratch copy. Free some space, and try again."
            raise StorageFull(message) from error
        raise StorageProblem(f"The scratch copy cannot be made: {error}.") from error
