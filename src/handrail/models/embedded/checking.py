"""Whether a file is the known one: every byte by SHA-256, once, and again whenever it may have changed."""

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from handrail.config.places import make_private
from handrail.models.embedded.files import LOCAL_MODEL, ModelFile, stamp_of
from handrail.protocol.errors import ConfigProblem, GiveUp
from handrail.protocol.values import Value

BLOCK = 8 << 20
YOUNG_NS = 2_000_000_000
"""Some file systems keep times to two seconds: within them a change might leave no trace."""


class Stamp(Value):
    """What the file system said of a file when its bytes were checked."""

    sha256: str
    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int
    """Set by the system on every change, also where a program puts the other time back."""


def check(file: ModelFile, path: Path, folder: Path) -> Iterator[int]:
    """Bytes read so far, until it is sure that these are the known ones; GiveUp where they are not.

    Nothing is read when the file is as it was at the last check, of which a stamp lies in `folder`.
    """
    try:
        with path.open("rb", buffering=0) as content:
            before = stamp(file, content.fileno())
            if before.size == file.size and read_stamp(path, folder) == before:
                return
            digest = hashlib.sha256()
            while before.size == file.size and (block := content.read(BLOCK)):
                digest.update(block)
                yield content.tell()
            after = stamp(file, content.fileno())
    except OSError as error:
        raise GiveUp(f"The model file {path} cannot be read: {error.strerror}.") from error
    if digest.hexdigest() != file.sha256 or after != before:
        with suppress(OSError):
            stamp_of(path, folder).unlink(missing_ok=True)
        raise GiveUp(
            f"{path} is not {file.name} as it was published (its SHA-256 differs), so it is not loaded. "
            + (
                "Run `handrail model fetch`, which replaces it."
                if path.parent == folder
                else f"Unset {LOCAL_MODEL}, or let it name a good copy."
            )
        )
    _write_stamp(after, path, folder)


def is_checked(file: ModelFile, path: Path, folder: Path) -> bool:
    """Whether the file was found good and has not been touched since."""
    try:
        with path.open("rb") as content:
            return read_stamp(path, folder) == stamp(file, content.fileno())
    except OSError:
        return False


def stamp(file: ModelFile, descriptor: int) -> Stamp:
    found = os.fstat(descriptor)
    return Stamp(
        sha256=file.sha256,
        device=found.st_dev,
        inode=found.st_ino,
        size=found.st_size,
        modified_ns=found.st_mtime_ns,
        changed_ns=found.st_ctime_ns,
    )


def read_stamp(path: Path, folder: Path) -> Stamp | None:
    try:
        return Stamp.model_validate_json(stamp_of(path, folder).read_bytes())
    except (OSError, ValidationError):
        return None


def _write_stamp(checked: Stamp, path: Path, folder: Path) -> None:
    """Kept where it can be; a stamp that is missing costs a second look and no more."""
    if time.time_ns() - max(checked.modified_ns, checked.changed_ns) < YOUNG_NS:
        return
    with suppress(OSError, ConfigProblem):
        target = stamp_of(path, make_private(folder))
        draft = target.with_suffix(f".{os.getpid()}")
        draft.write_text(checked.model_dump_json(), encoding="utf-8")
        draft.replace(target)
