"""The trace file: its lines and their hash chain; append whole lines under a lock.

The log has a line before the file does. So the next writer adds lines that are missing at the end after a
crash, and writes a line again that a crash left incomplete.
"""

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from handrail.config.open_file import FileTooLarge, OpenFile, open_file
from handrail.protocol.errors import PathProblem, StorageFull
from handrail.protocol.events import ChangePrepared
from handrail.protocol.values import FileChange, TraceMark, to_dict
from handrail.storage.event_log import Log
from handrail.storage.locks import trace_lock
from handrail.storage.protected_copies import own_write
from handrail.workspace.disk import DISK, Disk
from handrail.workspace.paths import open_folder
from handrail.workspace.writer import Writer

FORMAT = 1
ExportFormat = Literal["agent-trace", "flat"]
INTENT_EVOLUTION = "INTENT_EVOLUTION"  # the class of changes that nobody declared a refactor


def line_hash(line: bytes) -> str:
    """The hash of a line without its line break."""
    return hashlib.sha256(line.rstrip(b"\r\n")).hexdigest()


def change_lines(change: ChangePrepared, mark: TraceMark) -> list[bytes]:
    """The lines of a change set, one per file, without line breaks."""
    lines: list[bytes] = []
    before = mark.before
    traced = (file for file in change.files if not file.ignored)
    for number, file in enumerate(traced, start=mark.number):
        place = {"v": FORMAT, "writer": mark.writer, "number": number, "before": before}
        fields = {**place, **line_fields(change, file, mark.at, mark.session_id)}
        lines.append(json.dumps(fields, separators=(",", ":")).encode())
        before = line_hash(lines[-1])
    return lines


def line_fields(change: ChangePrepared, file: FileChange, at: str, session_id: str) -> dict[str, Any]:
    """What a line says about one file of a change set."""
    related = {"turn": change.turn_id, "call": change.call_id, "change": change.change_id}
    return {
        "at": at,
        "request_id": change.request_id,
        "intent_id": change.intent_id,
        "file": file.path,
        "op": file.op,
        "to": file.destination,
        "mutation_class": change.mutation_class or INTENT_EVOLUTION,
        **({"mutation_problem": change.mutation_problem} if change.mutation_problem else {}),
        "by": change.by,
        "model": change.model,
        "sha256": file.new_sha256,
        "base_sha256": file.old_sha256,
        "related": {"session": session_id, **related},
        "ranges": [to_dict(each) for each in file.ranges],
    }


def verified_lines(change: ChangePrepared) -> list[bytes]:
    """The same for a marked change set; raises PathProblem where another version would write other lines."""
    if change.trace is None:
        return []
    lines = change_lines(change, change.trace)
    if tuple(map(line_hash, lines)) != change.trace.lines:
        why = f"The trace lines of {change.change_id} were begun by another version of Handrail."
        message = f"{why} Open the workspace with that version once, to finish them."
        raise PathProblem(message, "storage_failed")
    return lines


def with_line_hashes(change: ChangePrepared, mark: TraceMark) -> ChangePrepared:
    lines = tuple(map(line_hash, change_lines(change, mark)))
    return replace(change, trace=replace(mark, lines=lines))


FOLDER = ".orchestration"
NAME = "agent_trace.jsonl"
PATH = f"{FOLDER}/{NAME}"
ATTRIBUTES = ".gitattributes"
UNION = f"{NAME} -text merge=union\n"  # tells git to keep the lines that two branches added at the end
WINDOW = 1 << 16
MAX_WINDOW = 1 << 26  # how far back to search for a writer's last line; beyond that, a new chain begins
MAX_TRACE_BYTES = 256_000_000
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class ChainTail(NamedTuple):
    number: int = 0
    sha256: str = ""


class TraceFile:
    """The trace of one workspace. Writers take the lock in `state`, the folder of the workspace's log."""

    def __init__(self, root: Path, state: Path, disk: Disk = DISK) -> None:
        self.root = root
        self._state = state
        self._disk = disk

    def read(self) -> bytes | None:
        with _path_errors(), suppress(FileNotFoundError), self._opened() as file:
            return b"".join(file.chunks(MAX_TRACE_BYTES))
        return None

    def lines(self) -> Iterator[bytes]:
        """The same line by line."""
        with _path_errors(), suppress(FileNotFoundError), self._opened() as file:
            begun: list[bytes] = []  # joined only once, however long a line is
            for chunk in file.chunks(MAX_TRACE_BYTES):
                *whole, rest = chunk.split(b"\n")
                for line in whole:
                    yield b"".join((*begun, line, b"\n"))
                    begun = []
                begun.append(rest)
            if last := b"".join(begun):
                yield last

    def tail(self, writer: str) -> ChainTail:
        with _path_errors(), suppress(FileNotFoundError), self._opened() as file:
            return _tail(file.descriptor, writer)
        return ChainTail()

    def add(self, writer: str, number: int, lines: Sequence[bytes], *, fresh: bool = False) -> bool:
        """Append those of a writer's lines that the file lacks; the first one has this number.

        False where the file lacks an earlier line, as on another branch. `fresh`: the writer has no line yet,
        so none is searched for. Raises OSError or StorageProblem.
        """
        with self._own_write(), trace_lock(self._state), self._folder(make=True) as folder:
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

    @contextmanager
    def _own_write(self) -> Iterator[None]:
        """For a new trace; an old one only grows, which is known to be Handrail's work."""
        if os.path.lexists(self.root / PATH):
            yield
        else:
            files = {f"{FOLDER}/{ATTRIBUTES}": UNION.encode(), PATH: b""}
            new = {path: data for path, data in files.items() if not os.path.lexists(self.root / path)}
            with own_write(self._state, new):
                yield

    def _write(self, descriptor: int, lines: Sequence[bytes]) -> None:
        size = os.fstat(descriptor).st_size
        start = max(0, size - len(lines[0]) - 1)
        rest = os.pread(descriptor, size - start, start).rpartition(b"\n")[2]
        end = size - len(rest) if lines[0].startswith(rest) else size
        if end < size:
            self._disk.cut(descriptor, end)  # a crash left the first part of this very line
        unended = end > 0 and os.pread(descriptor, 1, end - 1) != b"\n"
        data = b"\n" * unended + b"".join(line + b"\n" for line in lines)
        try:
            self._disk.write(descriptor, data)
            self._disk.sync(descriptor)
        except OSError:
            with suppress(OSError):
                self._disk.cut(descriptor, end)
            raise

    def _attributes(self, folder: int) -> bool:
        """Tell git how to merge the lines of a new trace; False if the trace exists already."""
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
    def _opened(self) -> Iterator[OpenFile]:
        with self._folder() as folder, open_file(NAME, folder=folder, follow=False) as file:
            yield file

    @contextmanager
    def _folder(self, *, make: bool = False) -> Iterator[int]:
        with open_folder(self.root / FOLDER, make=make, root=self.root) as folder:
            # A folder that is only open for passing through cannot be synced.
            descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
            try:
                yield descriptor
            finally:
                os.close(descriptor)


def open_trace(writer: Writer, log: Log) -> TraceFile:
    return TraceFile(writer.root, log.folder, writer.disk)


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn system errors of writing the trace into messages that a user can act on."""
    try:
        with _path_errors():
            yield
    except OSError as error:
        if error.errno in DISK_FULL:
            message = f"The disk has no room for a line in {PATH}, so nothing more is changed."
            raise StorageFull(f"{message} Free some disk space, then continue.") from error
        message = f"{PATH} cannot be written ({error.strerror}), so nothing was changed: "
        why = f"{message}every change is traced. Fix that, then try again."
        raise PathProblem(why, "storage_failed", PATH) from error


@contextmanager
def _path_errors() -> Iterator[None]:
    try:
        yield
    except FileTooLarge as error:
        why = f"{PATH} has more than {MAX_TRACE_BYTES // 1_000_000} MB: no session wrote that."
        raise PathProblem(f"{why} Look at it, then move it away.", "too_large", PATH) from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EINVAL, errno.ENXIO):
            message = f"{PATH} is not a file of this workspace, but a link or something else. Move it away."
            raise PathProblem(message, "storage_failed", PATH) from error
        raise


def _regular(descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def _tail(descriptor: int, writer: str) -> ChainTail:
    """The writer's last whole line; reads backwards, most often one window."""
    token = f'"writer":{json.dumps(writer)},"number":'.encode()  # only lines of this writer have it
    size = os.fstat(descriptor).st_size
    window = WINDOW
    while True:
        start = max(0, size - window)
        data = os.pread(descriptor, size - start, start)
        # What follows the last line break was never finished.
        whole = data[: data.rfind(b"\n") + 1]
        at = whole.rfind(token)
        begins = whole.rfind(b"\n", 0, at) + 1 if at >= 0 else 0
        if at >= 0 and (begins or not start):
            line = whole[begins : whole.index(b"\n", at)]
            return ChainTail(_number(line), line_hash(line))
        if not start or window >= MAX_WINDOW:
            return ChainTail()
        window *= 8


def _number(line: bytes) -> int:
    with suppress(ValueError, RecursionError):
        match json.loads(line):
            case {"number": int(number)}:
                return number
    return 0
