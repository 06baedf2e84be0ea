"""Read workspace files and folders: text with its hash and encoding, images."""

import codecs
import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from handrail.config.open_file import FileTooLarge, NotAFile, OpenFile, open_file
from handrail.config.places import program_paths
from handrail.protocol.errors import PathProblem
from handrail.protocol.values import Value
from handrail.workspace.images import HEADER_BYTES, IMAGE_LIMIT, ImageFile, NotImage, image_type, parse_image
from handrail.workspace.paths import ResolvedPath, open_folder, resolve_path
from handrail.workspace.sensitive_names import leads_to_secret, normalized_parts
from handrail.workspace.walk import Entry, did_you_mean, walk

if TYPE_CHECKING:
    from handrail.workspace.editor import Editor

BOM = codecs.BOM_UTF8
MAX_LINE_LENGTH = 2_000
"""Characters kept of one line when lines are read one by one."""


class NotText(ValueError):
    """The bytes are not text; the message says why."""


class Text(NamedTuple):
    """A file's text without its byte order mark, line endings as they are."""

    text: str
    bom: bool


class Lines(NamedTuple):
    """Some lines of a file, without their endings; long ones are cut to `MAX_LINE_LENGTH`."""

    start: int
    lines: tuple[str, ...]
    total: int
    sha256: str
    clipped: bool
    size: int
    """Bytes of the file."""


def decode(data: bytes) -> Text:
    _refuse_nul(data)
    bom = data.startswith(BOM)
    try:
        return Text(data[len(BOM) :].decode() if bom else data.decode(), bom)
    except UnicodeDecodeError as error:
        raise NotText(_not_utf8(error.start + (len(BOM) if bom else 0))) from error


def decode_lossy(data: bytes) -> str:
    """The text of any bytes, for display; undecodable bytes are replaced."""
    try:
        return decode(data).text
    except NotText:
        return data.decode(errors="replace")


def encode(text: str, *, bom: bool) -> bytes:
    return (BOM if bom else b"") + text.encode()


def pick_lines(chunks: Iterable[bytes], start: int, end: int) -> Lines:
    """Lines `start` to `end` (from 1, both included), without keeping the rest in memory."""
    digest, decoder = hashlib.sha256(), codecs.getincrementaldecoder("utf-8")()
    number, read, last = 1, 0, "\n"
    kept: dict[int, str] = {}
    clipped = False
    for chunk in chunks:
        _refuse_nul(chunk)
        digest.update(chunk)
        try:
            text = decoder.decode(chunk)
        except UnicodeDecodeError as error:
            raise NotText(_not_utf8(read + error.start)) from error
        read += len(chunk)
        breaks = text.count("\n")
        if number + breaks >= start and number <= end:
            for line, piece in enumerate(text.split("\n"), start=number):
                if start <= line <= end:
                    whole = kept.get(line, "") + piece
                    clipped = clipped or len(whole) > MAX_LINE_LENGTH + 1
                    kept[line] = whole[: MAX_LINE_LENGTH + 1]
        number += breaks
        last = text[-1:] or last
    if decoder.getstate()[0]:
        raise NotText(_not_utf8(read))
    if last == "\n":
        kept.pop(number, None)
        number -= 1
    lines = tuple(kept[line].removesuffix("\r")[:MAX_LINE_LENGTH] for line in sorted(kept))
    if lines and start == 1:
        lines = (lines[0].removeprefix("\ufeff"), *lines[1:])
    return Lines(start, lines, number, digest.hexdigest(), clipped, read)


def _refuse_nul(data: bytes) -> None:
    if b"\0" in data:
        raise NotText("it has NUL bytes, as binary files do")


def _not_utf8(position: int) -> str:
    return f"it is not UTF-8 (first bad byte near {position:,})"


MAX_FILE_BYTES = 1_000_000
"""Of a file that is read, shown or edited as a whole."""
TOO_LARGE = "too large"
MAX_LINES_FILE_BYTES = 256_000_000
"""Of a file that is read by lines; all of it is hashed."""


class TextFile(Value):
    path: str
    data: bytes
    sha256: str
    text: str
    """Without byte order mark, line endings as they are."""
    bom: bool


class Workspace:
    """The folder worked on. Paths may be relative to it, absolute, or already resolved."""

    def __init__(self, root: Path, state_folders: tuple[Path, ...] = ()) -> None:
        self.root = Path(os.path.realpath(root))
        self.state_folders = tuple(Path(os.path.realpath(folder)) for folder in state_folders)
        self.program_paths = program_paths(self.root)
        """Files of the running Handrail that are in the workspace."""
        self.editor: Editor | None = None
        """The editor that has the workspace's files open."""
        self.unsaved: dict[str, bytes] = {}
        """{path: what the editor would save} of files that it was asked for (`workspace/editor.py`)"""

    def resolve(self, given: str | ResolvedPath) -> ResolvedPath:
        """Where a path leads, whether or not a file is there."""
        if isinstance(given, ResolvedPath):
            return given
        return resolve_path(self.root, given, self.state_folders, self.program_paths)

    def check_still(self, place: ResolvedPath) -> None:
        """Raises PathProblem where a link now leads away from a resolved path."""
        if Path(os.path.realpath(place.absolute)) != place.absolute:
            message = f"{place.path} now leads somewhere else, so it was not used. Try again."
            raise PathProblem(message, "stale_file", place.path)

    def read(self, given: str | ResolvedPath) -> TextFile:
        """The whole text of a file; raises PathProblem if it is missing, not text, or too large."""
        place = self.resolve(given)
        data = self.unsaved.get(place.path)
        data = self.saved(place) if data is None else data
        return TextFile(place.path, data, hashlib.sha256(data).hexdigest(), *decode(data))

    def saved(self, given: str | ResolvedPath) -> bytes:
        """The bytes of a text file on disk, whatever an editor has; raises as `read` does."""
        place = self.resolve(given)
        with self._opened(place) as file:
            try:
                data = b"".join(file.chunks(MAX_FILE_BYTES))
            except FileTooLarge as error:
                advice = "Read a range of lines (start, end), or search it."
                raise _too_large(file, place, "whole files", MAX_FILE_BYTES, advice) from error
        with _text_problems(place):
            decode(data)
        return data

    def lines(self, given: str | ResolvedPath, start: int, end: int) -> Lines:
        """Lines `start` to `end` of a file, which may be larger than `read` allows."""
        place = self.resolve(given)
        if (data := self.unsaved.get(place.path)) is not None:
            return pick_lines([data], start, end)
        with self._opened(place) as file, _text_problems(place):
            try:
                return pick_lines(file.chunks(MAX_LINES_FILE_BYTES), start, end)
            except FileTooLarge as error:
                advice = "Search it, or use a command such as sed or tail."
                raise _too_large(file, place, "lines", MAX_LINES_FILE_BYTES, advice) from error

    def image(self, given: str | ResolvedPath) -> ImageFile | None:
        """An image with its bytes; None for anything else; raises PathProblem for an unusable image."""
        place = self.resolve(given)
        with self._opened(place) as file:
            before, size = file.found, file.found.st_size
            data = file.read(HEADER_BYTES)
            if image_type(data) is None:
                return None
            if size <= IMAGE_LIMIT:
                data += file.read(IMAGE_LIMIT + 1 - len(data))
            if max(size, len(data)) > IMAGE_LIMIT:
                raise _too_large(file, place, "images", IMAGE_LIMIT, "Make it smaller, or crop it.")
            after = os.fstat(file.descriptor)
        if (before.st_mtime_ns, before.st_size, len(data)) != (after.st_mtime_ns, after.st_size, size):
            message = f"{place.path} changed while it was read. Try again when it is finished."
            raise PathProblem(message, "stale_file", place.path)
        try:
            return parse_image(place.path, data)
        except NotImage as problem:
            message = f"{place.path} cannot be used as an image: {problem}."
            raise PathProblem(message, "not_text", place.path) from problem

    def sha256(self, given: str | ResolvedPath) -> str | None:
        """The hash of a file's present bytes; None where no regular file can be read.

        A file too large to be edited is not read: its hash is `TOO_LARGE`, which equals no other.
        """
        try:
            place = self.resolve(given)
            if (data := self.unsaved.get(place.path)) is not None:
                return hashlib.sha256(data).hexdigest()
            with self._opened(place) as file:
                return hashlib.sha256(b"".join(file.chunks(MAX_FILE_BYTES))).hexdigest()
        except FileTooLarge:
            return TOO_LARGE
        except PathProblem:
            return None

    def size(self, given: str | ResolvedPath) -> int:
        """Bytes of a regular file; raises PathProblem where there is none."""
        place = self.resolve(given)
        if (data := self.unsaved.get(place.path)) is not None:
            return len(data)
        with self._opened(place) as file:
            return file.found.st_size

    def exists(self, given: str | ResolvedPath) -> bool:
        place = self.resolve(given)
        return place.path in self.unsaved or os.path.lexists(place.absolute)

    @contextmanager
    def _opened(self, place: ResolvedPath) -> Iterator[OpenFile]:
        try:
            # A link made after resolving is not followed.
            with (
                open_folder(place.absolute.parent) as folder,
                open_file(place.absolute.name or ".", folder=folder, follow=False) as file,
            ):
                yield file
        except FileTooLarge:
            raise
        except OSError as error:
            raise self._problem(place, error) from error

    def _problem(self, place: ResolvedPath, error: OSError) -> PathProblem:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            hint = did_you_mean(place, self.root)
            return PathProblem(f"{place.path} does not exist.{hint}", "file_missing", place.path)
        if isinstance(error, NotAFile) and error.kind == "a folder":
            message = f"{place.path} is a folder, not a file. List it, and read a file in it."
            return PathProblem(message, "not_text", place.path)
        if isinstance(error, NotAFile):
            return PathProblem(f"{place.path} is {error.kind}: it is never opened.", "not_text", place.path)
        why = error.strerror or str(error)
        return PathProblem(f"{place.path} cannot be read: {why}.", "protected_path", place.path)


def _too_large(file: OpenFile, place: ResolvedPath, what: str, limit: int, advice: str) -> PathProblem:
    size = max(file.found.st_size, limit + 1)  # it may have grown, or not know its size
    why = f"{place.path} has {size:,} bytes; the limit for {what} is {limit:,}."
    return PathProblem(f"{why} {advice}", "too_large", place.path)


@contextmanager
def _text_problems(place: ResolvedPath) -> Iterator[None]:
    try:
        yield
    except NotText as problem:
        raise PathProblem(f"{place.path} is not text: {problem}.", "not_text", place.path) from problem


MAX_ENTRIES = 200


def list_folder(
    workspace: Workspace, given: str | ResolvedPath, depth: int = 1, most: int = MAX_ENTRIES
) -> str:
    """One entry per line, folders with a slash, files with their size, and a note if there are more."""
    place = workspace.resolve(given)
    workspace.check_still(place)
    try:
        found = walk(place.absolute, depth, most + 1)
    except NotADirectoryError as error:
        message = f"{place.path} is a file, not a folder: read it."
        raise PathProblem(message, "not_text", place.path) from error
    except FileNotFoundError as error:
        message = f"There is no folder {place.path}. List the folder above it."
        raise PathProblem(message, "file_missing", place.path) from error
    except OSError as error:
        why = error.strerror or str(error)
        raise PathProblem(f"{place.path} cannot be listed: {why}.", "protected_path", place.path) from error
    lines = [entry_line(entry) for entry in sorted(found[:most])]
    if len(found) > most:
        lines.append(f"[cut after {most} entries: list a subfolder, or use glob]")
    return "\n".join(lines) or "[empty folder]"


def entry_line(entry: Entry) -> str:
    match entry.kind:
        case "folder":
            return f"{entry.path}/"
        case "link":
            return f"{entry.path} -> {entry.target}"
        case "file" if leads_to_secret(normalized_parts(entry.path)):
            return f"{entry.path}  (may hold secrets)"  # its size tells something about its content
        case "file":
            return f"{entry.path}  {entry.size:,} bytes"
        case _:
            return f"{entry.path}  (not a regular file)"
