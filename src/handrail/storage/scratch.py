"""Temporary folders for one command or process, and cached facts that expire."""

import atexit
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from handrail.config.files import write_atomically
from handrail.config.places import make_private
from handrail.config.remove_tree import remove_tree
from handrail.protocol.errors import ConfigProblem


def make_scratch() -> Path:
    """An empty folder that only the user can read."""
    return Path(os.path.realpath(tempfile.mkdtemp(prefix="handrail-")))


def put_into_scratch(folder: Path, path: str, data: bytes, mode: int) -> None:
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    target.chmod(mode)


def kept_scratch(files: Mapping[str, bytes], links: Mapping[str, str]) -> Path:
    """A private folder with exactly these, kept until the process ends; what was changed is made again."""
    if not _is_private(_process_scratch()):  # somebody tidied up, and perhaps somebody else took the name
        _process_scratch.cache_clear()
    key = repr((sorted(files.items()), sorted(links.items()))).encode(errors="surrogateescape")
    folder = _process_scratch() / hashlib.sha256(key).hexdigest()[:32]
    folder.mkdir(exist_ok=True)
    for name, target in links.items():
        link = folder / name
        if not link.is_symlink() or os.readlink(link) != target:
            link.unlink(missing_ok=True)
            link.symlink_to(target)
    for name, data in files.items():
        file = folder / name
        if not file.is_file() or file.read_bytes() != data:
            file.write_bytes(data)
    return folder


@lru_cache(maxsize=1)
def _process_scratch() -> Path:
    folder = make_scratch()
    atexit.register(remove_tree, folder)
    return folder


def _is_private(folder: Path) -> bool:
    with suppress(OSError):
        found = os.lstat(folder)
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
    return False


def remove_empty(paths: Iterable[str]) -> None:
    """Remove those of the paths that are empty folders or empty read-only files."""
    for path in paths:
        with suppress(OSError):
            found = os.lstat(path)
            if stat.S_ISDIR(found.st_mode):
                os.rmdir(path)
            elif stat.S_ISREG(found.st_mode) and not found.st_size and not found.st_mode & 0o222:
                os.unlink(path)


def read_cached(file: Path, key: str, seconds: float) -> str:
    """The text that was cached under this key, if it is not older than this; else empty."""
    try:
        kept, _, text = file.read_text("utf-8").partition("\n")
        age = time.time() - file.stat().st_mtime
    except (OSError, UnicodeDecodeError):
        return ""
    return text if kept == key and 0 <= age < seconds else ""


def write_cached(file: Path, key: str, text: str) -> None:
    """Cache a text; a failure to write is ignored."""
    with suppress(OSError, ConfigProblem):
        make_private(file.parent)
        write_atomically(file, f"{key}\n{text}".encode())
