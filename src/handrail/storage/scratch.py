"""Folders that last as long as one command, and facts that are good for a day."""

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from handrail.config.places import make_private
from handrail.protocol.errors import ConfigProblem


def make_scratch() -> Path:
    """An empty folder that only the user can look into."""
    return Path(os.path.realpath(tempfile.mkdtemp(prefix="handrail-")))


def put_into_scratch(folder: Path, path: str, data: bytes, mode: int) -> None:
    """A file of the folder, with the folders that its path names."""
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    target.chmod(mode)


def remove_scratch(folder: Path) -> None:
    """Remove the folder with all in it, also what a program has closed to us; nothing outside is touched."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        _open_up(folder)
        shutil.rmtree(folder, ignore_errors=True)


def remove_empty(paths: Iterable[str]) -> None:
    """Remove those of the folders that hold nothing, and of the empty files that nobody may write."""
    for path in paths:
        with suppress(OSError):
            found = os.lstat(path)
            if stat.S_ISDIR(found.st_mode):
                os.rmdir(path)
            elif stat.S_ISREG(found.st_mode) and not found.st_size and not found.st_mode & 0o222:
                os.unlink(path)


@contextmanager
def in_use(file: Path) -> Iterator[None]:
    """Whoever asks `is_used` of this file is told so until the block ends, or this process does."""
    with file.open("a") as opened:
        fcntl.flock(opened, fcntl.LOCK_SH)
        yield


def is_used(file: Path) -> bool:
    """Whether a process is in a block of `in_use`."""
    try:
        with file.open("rb") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _open_up(folder: Path) -> None:
    with suppress(OSError):
        folder.chmod(stat.S_IRWXU)
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                _open_up(Path(entry.path))


def recall(file: Path, key: str, seconds: float) -> str:
    """What was remembered under this key within so many seconds; empty otherwise."""
    try:
        kept, _, text = file.read_text("utf-8").partition("\n")
        age = time.time() - file.stat().st_mtime
    except (OSError, UnicodeDecodeError):
        return ""
    return text if kept == key and 0 <= age < seconds else ""


def remember(file: Path, key: str, text: str) -> None:
    """Keep a fact that can be found out again; a disk that takes nothing costs only that."""
    with suppress(OSError, ConfigProblem):
        descriptor, name = tempfile.mkstemp(dir=make_private(file.parent), prefix=f".{file.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8") as new:
            new.write(f"{key}\n{text}")
        os.replace(name, file)
