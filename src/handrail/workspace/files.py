"""Reading the workspace: text with its hash, and a clear word where there is none to be had."""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from handrail.protocol.errors import PathProblem, RefusalReason
from handrail.protocol.record import Record
from handrail.workspace.beneath import opened_folder
from handrail.workspace.images import HEAD, IMAGE_LIMIT, ImageFile, NotImage, image_of, image_type
from handrail.workspace.nearest import nearest
from handrail.workspace.places import Place, resolve
from handrail.workspace.text import LineEnding, Lines, NotText, decode, pick_lines

WHOLE_LIMIT = 1_000_000
"""Bytes of a file that is read, shown or edited as a whole."""
TOO_LARGE = "too large"
LINES_LIMIT = 256_000_000
"""Bytes of a file of which single lines can be read; all of it passes through the hash."""
CHUNK = 1 << 18
# Never wait for a writer at the other end, never follow a link put there after the path was resolved.
OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class TextFile(Record):
    """A text file as it was at one moment."""

    path: str
    data: bytes
    sha256: str
    text: str
    """Without byte order mark, line endings as they are."""
    bom: bool
    ending: LineEnding


class Workspace:
    """The folder worked on. Paths may be relative to it or absolute, or places found before."""

    def __init__(self, root: Path, state_folders: tuple[Path, ...] = ()) -> None:
        self.root = Path(os.path.realpath(root))
        self.state_folders = tuple(Path(os.path.realpath(folder)) for folder in state_folders)

    def resolve(self, given: str | Place) -> Place:
        """Where a path leads, whether or not anything is there; a place stays what it was found to be."""
        return given if isinstance(given, Place) else resolve(self.root, given, self.state_folders)

    def check_still(self, place: Place) -> None:
        """Raises PathProblem where a link now leads away from the place that was decided about."""
        if Path(os.path.realpath(place.absolute)) != place.absolute:
            raise PathProblem(
                f"{place.path} leads somewhere else than a moment ago, so it was not used. Try again.",
                "stale_file",
                place.path,
            )

    def read(self, given: str | Place) -> TextFile:
        """The whole text of a file; raises PathProblem for what is missing, no text, or too large."""
        place = self.resolve(given)
        with self._opened(place) as (file, size):
            if size > WHOLE_LIMIT:
                raise _too_large(place, size)
            data = file.read(WHOLE_LIMIT + 1)
        if len(data) > WHOLE_LIMIT:
            raise _too_large(place, len(data))
        with _text_of(place):
            text = decode(data)
        return TextFile(place.path, data, hashlib.sha256(data).hexdigest(), *text)

    def lines(self, given: str | Place, start: int, end: int) -> Lines:
        """Lines `start` to `end` of a file, which may be larger than what `read` takes."""
        place = self.resolve(given)
        with self._opened(place) as (file, size):
            if size > LINES_LIMIT:
                raise PathProblem(
                    f"{place.path} has {size:,} bytes; lines are read of files up to {LINES_LIMIT:,}."
                    " Search it, or use a command such as sed or tail.",
                    "too_large",
                    place.path,
                )
            with _text_of(place):
                return pick_lines(iter(lambda: file.read(CHUNK), b""), start, end)

    def image(self, given: str | Place) -> ImageFile | None:
        """A picture with its bytes; None for what does not begin like one, PathProblem for an unfit one."""
        place = self.resolve(given)
        with self._opened(place) as (file, size):
            before = os.fstat(file.fileno())
            data = file.read(HEAD)
            if image_type(data) is None:
                return None
            if size <= IMAGE_LIMIT:
                data += file.read(IMAGE_LIMIT + 1 - len(data))
            if max(size, len(data)) > IMAGE_LIMIT:
                raise PathProblem(
                    f"{place.path} has {max(size, len(data)):,} bytes; a picture may have {IMAGE_LIMIT:,}."
                    " Make it smaller, or cut out what matters.",
                    "too_large",
                    place.path,
                )
            after = os.fstat(file.fileno())
        if (before.st_mtime_ns, before.st_size, len(data)) != (after.st_mtime_ns, after.st_size, size):
            message = f"{place.path} changed while it was read. Try again when it is finished."
            raise PathProblem(message, "stale_file", place.path)
        try:
            return image_of(place.path, data)
        except NotImage as problem:
            raise PathProblem(
                f"{place.path} cannot be used as a picture: {problem}.", "not_text", place.path
            ) from problem

    def sha256(self, given: str | Place) -> str | None:
        """The hash of a file's bytes as they are now; None where no regular file can be read.

        Nothing larger than what can be changed is read: the hash is then `TOO_LARGE`, which equals no other.
        """
        try:
            with self._opened(self.resolve(given)) as (file, size):
                data = file.read(WHOLE_LIMIT + 1) if size <= WHOLE_LIMIT else b""
                fits = size <= WHOLE_LIMIT and len(data) <= WHOLE_LIMIT
                return hashlib.sha256(data).hexdigest() if fits else TOO_LARGE
        except PathProblem:
            return None

    def size(self, given: str | Place) -> int:
        """Bytes of a regular file; raises PathProblem where there is none."""
        with self._opened(self.resolve(given)) as (_, size):
            return size

    def exists(self, given: str | Place) -> bool:
        """Whether anything of this name is there, of whatever kind."""
        return os.path.lexists(self.resolve(given).absolute)

    @contextmanager
    def _opened(self, place: Place) -> Iterator[tuple[BufferedReader, int]]:
        try:
            _refuse_other_kinds(place, os.lstat(place.absolute))
            with opened_folder(place.absolute.parent) as folder:
                descriptor = os.open(place.absolute.name, OPEN, dir_fd=folder)
        except OSError as error:
            raise self._problem(place, error) from error
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            _refuse_other_kinds(place, found)
            try:
                yield file, found.st_size
            except OSError as error:
                raise self._problem(place, error) from error

    def _problem(self, place: Place, error: OSError) -> PathProblem:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            hint = nearest(place, self.root)
            return PathProblem(f"{place.path} does not exist.{hint}", "file_missing", place.path)
        why = error.strerror or str(error)
        return PathProblem(f"{place.path} cannot be read: {why}.", "protected_path", place.path)


def _refuse_other_kinds(place: Place, found: os.stat_result) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFREG:
        return
    if kind == stat.S_IFDIR:
        message = f"{place.path} is a folder, not a file. List it, and read a file in it."
    else:
        message = f"{place.path} is {KINDS.get(kind, 'no regular file')}: it is never opened."
    raise PathProblem(message, "not_text", place.path)


def _too_large(place: Place, size: int) -> PathProblem:
    reason: RefusalReason = "too_large"
    message = (
        f"{place.path} has {size:,} bytes; whole files are read up to {WHOLE_LIMIT:,}."
        " Read a range of its lines (start, end), or search it."
    )
    return PathProblem(message, reason, place.path)


@contextmanager
def _text_of(place: Place) -> Iterator[None]:
    try:
        yield
    except NotText as problem:
        raise PathProblem(f"{place.path} is not text: {problem}.", "not_text", place.path) from problem
