"""Layers: copies of ignored folders of installed packages, which commands of a build may change.

A scratch copy shows such folders read-only. A command that installs something gets a copy of the folder in
its place. Once the result is verified, what differs is repeated in the workspace.
"""

import os
import shutil
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import groupby
from pathlib import Path, PurePosixPath

import msgspec

from handrail.config.files import write_atomically
from handrail.config.open_file import open_file, read_file
from handrail.config.places import make_private
from handrail.config.remove_tree import remove_tree
from handrail.protocol.errors import StorageFull, StorageProblem
from handrail.protocol.values import Value
from handrail.workspace.paths import open_folder
from handrail.workspace.scratch_copy.clone_file import NotCopied, copy_entry
from handrail.workspace.scratch_copy.copy import MountedLayer
from handrail.workspace.scratch_copy.wanted import DEPENDENCY_FOLDERS, is_installed
from handrail.workspace.stat_index import FileStat, StatIndex, differences, snapshot, stat_of

LAYERS = "layers"
"""The folder, beside the scratch copies of the workspace."""
MAX_BYTES = 2_000_000_000
SPARE_BYTES = 200_000_000  # left free on the disk
MAX_CHANGES, MAX_RECORD = 100_000, 100_000_000
BYTECODE = "__pycache__"
TOOL_CACHES = frozenset({".cache", ".vite", ".vite-temp", ".vitest"})
CHUNK = 1 << 20


class LayerChanges(Value):
    """What differs in a layer; what was there before has its hash."""

    path: str
    """The folder in the workspace."""
    added: tuple[str, ...] = ()
    changed: Mapping[str, str] = {}
    removed: Mapping[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)

    @property
    def words(self) -> str:
        counts = {"added": self.added, "changed": self.changed, "removed": self.removed}
        told = ", ".join(f"{len(found):,} {what}" for what, found in counts.items() if found)
        return f"{self.path}: {told or 'nothing changed'}"


class Layers:
    """The layers of one build, kept on the disk from the stage that runs commands to the one that applies."""

    def __init__(self, root: Path, copies: Path, key: str) -> None:
        """`copies` is the folder of the scratch copies; `key` names the build."""
        self._root = root
        self._folder = copies / LAYERS / key
        self._made: dict[str, StatIndex] = {}
        self._copied: dict[str, Mapping[str, FileStat]] = {}

    def make(self, paths: Sequence[str]) -> None:
        """Fresh layers for these folders, also where there is none yet; raises StorageProblem."""
        self.remove()
        make_private(self._folder)
        for number, path in enumerate(paths):
            tree = make_private(self._folder / str(number)) / "tree"
            try:
                tree.mkdir(mode=0o755)
                self._copied[path] = self._copy(path, tree) if os.path.lexists(self._root / path) else {}
                self._made[path] = snapshot(tree, everything=True)
            except OSError as error:
                raise StorageProblem(f"{path} cannot be copied: {error.strerror or error}") from error
        write_atomically(self._folder / "paths.json", msgspec.json.encode(list(paths)))

    def mounted(self, *, writable: bool) -> tuple[MountedLayer, ...]:
        """How a sandbox shows them; raises StorageProblem if they are gone."""
        return tuple(MountedLayer(str(self.tree(path)), path, writable=writable) for path in self._paths())

    def tree(self, path: str) -> Path:
        return self._folder / str(self._paths().index(path)) / "tree"

    def finish(self) -> tuple[LayerChanges, ...]:
        """What commands have changed since `make`, without compiled files and caches, which are removed."""
        found = []
        for path, before in self._made.items():
            tree = self.tree(path)
            _remove_caches(tree, before)
            after = snapshot(tree, everything=True, since=before)
            differ = differences(before, after)
            if after.cut or len(differ.added) + len(differ.changed) + len(differ.removed) > MAX_CHANGES:
                raise StorageProblem(f"Commands changed too many files in {path}.")
            if odd := next((each for each in differ.added if not _is_plain(after.files[each])), ""):
                raise StorageProblem(f"{path}/{odd} is neither a file nor a link.")
            inside = self._root / path
            changed = {each: digest(inside, each) for each in differ.changed}
            changed = {each: old for each, old in changed.items() if old != digest(tree, each)}
            removed = {each: digest(inside, each) for each in differ.removed}
            for each in (*changed, *removed):  # the hash must be of what was copied
                if _stat(inside / each) != self._copied[path].get(each):
                    raise StorageProblem(f"{path}/{each} was changed by somebody else meanwhile.")
            found.append(LayerChanges(path, differ.added, changed, removed))
        write_atomically(self._folder / "changes.json", msgspec.json.encode(found))
        return tuple(found)

    def changes(self) -> tuple[LayerChanges, ...]:
        """What `finish` found; raises StorageProblem if it is gone."""
        try:
            return msgspec.json.decode(
                read_file(self._folder / "changes.json", MAX_RECORD), type=tuple[LayerChanges, ...]
            )
        except (OSError, msgspec.MsgspecError) as error:
            raise StorageProblem(GONE) from error

    def remove(self) -> None:
        remove_tree(self._folder)

    def _paths(self) -> list[str]:
        try:
            return msgspec.json.decode(read_file(self._folder / "paths.json", MAX_RECORD), type=list[str])
        except (OSError, msgspec.MsgspecError) as error:
            raise StorageProblem(GONE) from error

    def _copy(self, path: str, tree: Path) -> Mapping[str, FileStat]:
        index = snapshot(self._root / path, everything=True)
        size = sum(each.size for each in index.files.values())
        if index.cut or size > MAX_BYTES:
            many = "too many files" if index.cut else f"{size:,} bytes"
            raise StorageProblem(f"{path} has {many}, too much for a copy that a command may change.")
        if size > shutil.disk_usage(tree).free - SPARE_BYTES:
            raise StorageFull(f"A copy of {path} needs {size:,} bytes, and the disk is nearly full.")
        for folder in sorted(index.folders):
            os.mkdir(tree / folder, index.folders[folder] & 0o777 | 0o700)
        apart = sorted((*each.rpartition("/")[::2], each) for each in index.files)
        for folder, group in groupby(apart, key=lambda each: each[0]):
            inside = self._root / path
            with (
                open_folder(inside / folder, root=inside) as source,
                open_folder(tree / folder, root=tree) as target,
            ):
                for _, name, each in group:
                    with suppress(NotCopied):  # a pipe, or a file that nobody may read
                        link = stat.S_ISLNK(index.files[each].mode)
                        copy_entry(name, link=link, source=source, target=target)
        return index.files


GONE = "The folders of packages that commands of the build have changed are gone. Start the build again."


def remove_layers(copies: Path, seconds: float) -> None:
    """Delete the layers of builds that began so long ago: those that failed, or were killed."""
    with suppress(FileNotFoundError):
        for place in sorted((copies / LAYERS).iterdir()):
            if time.time() - place.stat().st_mtime > seconds:
                remove_tree(place)


def package_folder(root: Path, target: str) -> str:
    """The folder of installed packages that a target names; empty where it is something else.

    It may not exist yet, if its name is one of such folders.
    """
    path = str(PurePosixPath(target))
    parts = PurePosixPath(path).parts
    if not parts or parts[0] == "/" or ".." in parts:
        return ""
    place = root / path
    if not os.path.lexists(place):
        return path if parts[-1] in DEPENDENCY_FOLDERS else ""
    try:
        if not stat.S_ISDIR(os.lstat(place).st_mode) or place.resolve() != root.resolve() / path:
            return ""
    except OSError:
        return ""
    if not is_installed(root, path):
        return ""
    # Some projects keep `vendor` in git: then it is a folder like the others.
    return "" if any(each.startswith(f"{path}/") for each in snapshot(root).files) else path


def digest(root: Path, path: str) -> str:
    """A hash of the content of a file, or where a link leads; empty where there is neither."""
    folder, _, name = path.rpartition("/")
    try:
        with open_folder(root / folder, root=root) as place:
            found = os.stat(name, dir_fd=place, follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                return f"link {os.readlink(name, dir_fd=place)}"
            with open_file(name, folder=place, follow=False) as file:
                total = sha256(b"%o" % (found.st_mode & 0o111))
                for chunk in file.chunks(max(found.st_size, 1) + CHUNK):
                    total.update(chunk)
                return total.hexdigest()
    except OSError:
        return ""


def _remove_caches(tree: Path, before: StatIndex) -> None:
    """Compiled files would run in place of their sources, whatever these say."""
    now = snapshot(tree, everything=True)
    for path, found in now.files.items():
        parts = PurePosixPath(path).parts
        cached = BYTECODE in parts[:-1] or path.endswith(".pyc") or parts[0] in TOOL_CACHES
        if cached and before.files.get(path) != found:
            with suppress(OSError), open_folder((tree / path).parent, root=tree) as folder:
                os.unlink(parts[-1], dir_fd=folder)


def _stat(path: Path) -> FileStat | None:
    try:
        return stat_of(os.lstat(path))
    except OSError:
        return None


def _is_plain(found: FileStat) -> bool:
    return stat.S_ISREG(found.mode) or stat.S_ISLNK(found.mode)
