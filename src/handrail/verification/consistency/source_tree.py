"""A source tree to check: its files, read within limits. Nothing in it is run.

What cannot be read, is too large, or leads out of the tree is unknown, and an unknown raises no issue.
"""

import os
import stat
import time
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from handrail.config.open_file import FileTooLarge, read_file
from handrail.protocol.values import Value
from handrail.tools.reports.issue import Issue
from handrail.workspace.gitignore import NestedRules, is_ignored
from handrail.workspace.sensitive_names import SECRET_FOLDERS, STATE_FOLDERS, is_secret_name
from handrail.workspace.stat_index import snapshot

MAX_FILE_BYTES = 512_000
"""Larger files are data or generated."""
LONGEST_LINE = 5_000
"""Files with longer lines on average are minified."""
MAX_SEARCHED_BYTES = 200_000_000
MAX_FILES = 50_000
SECONDS = 60.0
GENERATED_FOLDERS = {"dist", "build", "out", "target", "generated", "_generated", "gen", "__generated__"}
BUILD_FILES = {
    *("pyproject.toml", "setup.py", "setup.cfg", "meson.build", "CMakeLists.txt", "BUILD", "BUILD.bazel"),
    *("Makefile", "Cargo.toml", "package.json", ".gitignore", "hatch_build.py", "build.py"),
}


class TouchedFile(NamedTuple):
    """A file of a change. Without `old` and not new: what it held before is unknown."""

    path: str
    old: bytes | None = None
    is_new: bool = False


class Consistency(Value):
    issues: tuple[Issue, ...]
    complete: bool
    """False: the change or the tree is too large, and a part was not looked at."""


class TreeTooLarge(Exception):
    """A search could not look at the whole tree, so nothing can be said about what is not in it."""


class SourceTree:
    def __init__(self, root: Path, seconds: float = SECONDS) -> None:
        self.root = Path(os.path.realpath(root))
        self._deadline = time.monotonic() + seconds
        self._rules = NestedRules(self.root)
        self._searched = MAX_SEARCHED_BYTES

    @cached_property
    def files(self) -> frozenset[str]:
        """Regular files that git does not ignore, without those that may hold secrets."""
        index = snapshot(self.root, most=MAX_FILES)
        found = (path for path, told in index.files.items() if stat.S_ISREG(told.mode))
        self.is_cut = index.cut
        return frozenset(path for path in found if not _is_private(path))

    is_cut: bool = False

    @cached_property
    def folders(self) -> frozenset[str]:
        return frozenset(str(parent) for path in self.files for parent in PurePosixPath(path).parents)

    def is_file(self, path: str) -> bool:
        return path in self.files or os.path.isfile(self.root / path)

    def is_folder(self, path: str) -> bool:
        return path in self.folders or os.path.isdir(self.root / path)

    def exists(self, path: str) -> bool:
        return os.path.lexists(self.root / path)

    def names_in(self, folder: str) -> list[str]:
        try:
            with os.scandir(self.root / folder) as found:
                return [entry.name for entry, _ in zip(found, range(MAX_FILES), strict=False)]
        except OSError:
            return []

    def read(self, path: str) -> bytes | None:
        """A file's content; None if it is missing, too large, minified, or not a file of the tree."""
        try:
            if path not in self.files:
                target = Path(os.path.realpath(self.root / path))
                if not target.is_relative_to(self.root) or _is_private(path):
                    return None
            data = read_file(os.path.join(self.root, path), MAX_FILE_BYTES)
        except (OSError, ValueError, FileTooLarge):
            return None
        return None if is_unreadable(data) else data

    def text(self, path: str) -> str:
        """A file's text; empty where `read` has nothing."""
        return (self.read(path) or b"").decode("utf-8-sig", errors="replace")

    def ignores(self, path: str) -> bool:
        """Whether git would ignore a file or folder of this name, also if there is none."""
        rules, prefix = self._rules.above, ""
        parts = PurePosixPath(path).parts
        for number, name in enumerate(parts):
            try:
                folder = os.open(self.root / prefix, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError:
                pass
            else:
                try:
                    rules = self._rules.enter(folder, prefix, rules)
                finally:
                    os.close(folder)
            last = number == len(parts) - 1
            folders = (True, False) if last else (True,)
            if any(is_ignored(rules, name, prefix + name, folder=folder) for folder in folders):
                return True
            prefix += f"{name}/"
        return False

    def may_be_generated(self, path: str) -> bool:
        """Whether a build could make this missing file or folder; the path has no ending."""
        parts = PurePosixPath(path).parts
        if not GENERATED_FOLDERS.isdisjoint(parts) or any(
            map(self.ignores, (path, f"{path}.py", f"{path}.ts"))
        ):
            return True
        name = parts[-1]
        if name.endswith(("_pb2", "_pb2_grpc")) or "generated" in name or ".gen" in name:
            return True
        return any(name in text for text in self._build_texts)

    @cached_property
    def _build_texts(self) -> tuple[str, ...]:
        found = [path for path in self.files if PurePosixPath(path).name in BUILD_FILES]
        return tuple(self.text(path) for path in sorted(found, key=len)[:100])

    def search(self, words: Iterable[bytes], endings: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
        """Files with one of these endings that contain one of these words; raises TreeTooLarge."""
        wanted = tuple(words)
        for path in sorted(self.files):
            if path.endswith(endings) and (data := self.read(path)) is not None:
                self._searched -= len(data)
                if self._searched < 0:
                    raise TreeTooLarge
                self.check_time()
                if any(word in data for word in wanted):
                    yield path, data
        if self.is_cut:
            raise TreeTooLarge

    def check_time(self) -> None:
        """Raises TreeTooLarge after the deadline."""
        if time.monotonic() > self._deadline:
            raise TreeTooLarge


def is_unreadable(data: bytes) -> bool:
    """Whether a content is binary, generated or minified."""
    return len(data) > MAX_FILE_BYTES or b"\0" in data or len(data) > LONGEST_LINE * (data.count(b"\n") + 1)


def is_generated(path: str) -> bool:
    """Whether a file is in a folder that builds write."""
    return not GENERATED_FOLDERS.isdisjoint(PurePosixPath(path).parts[:-1])


def _is_private(path: str) -> bool:
    *folders, name = PurePosixPath(path).parts or ("",)
    return is_secret_name(name) or any(each in SECRET_FOLDERS + STATE_FOLDERS for each in folders)
