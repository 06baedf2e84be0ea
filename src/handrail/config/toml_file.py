"""Reading one of our TOML files, with every way it can be wrong told by file and line."""

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from handrail.config.toml_lines import line_of
from handrail.protocol.errors import ConfigProblem

MOST_BYTES = 1_000_000
DEEPEST = 64
"""Levels: deeper than anything that is meant, and far from what those who walk the data can bear."""
PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
LONG_KEY = re.compile(rf"(?<![\w-]){PART}(?:[ \t]*+\.[ \t]*+{PART}){{{DEEPEST}}}")
"""Looked for before anything is parsed: what `tomllib` does for a key grows with the square of its parts."""
OTHERS_MAY_READ = 0o077


class TomlFile(NamedTuple):
    path: Path
    text: str
    data: dict[str, Any]

    def place(self, key: tuple[str, ...]) -> str:
        """`FILE:LINE` of the key."""
        return f"{self.path}:{line_of(self.text, key)}"


def read_toml(path: Path, *, private: bool = False) -> TomlFile | None:
    """The file's content, or None where there is none; `private` demands that only the user can read it."""
    raw = read_bytes(path, private=private)
    return parse_toml(path, raw) if raw is not None else None


def parse_toml(path: Path, raw: bytes) -> TomlFile:
    """What these bytes say, which were read from the path."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigProblem(f"{path}:{line}: not valid UTF-8; save the file as UTF-8.") from error
    if found := LONG_KEY.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise ConfigProblem(f"{path}:{line}: nested too deeply to be read; make it flatter.")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        line = int(at[1]) if at and at[1] else text.rstrip("\n").count("\n") + 1
        said = str(error)[: at.start()] if at else str(error)
        raise ConfigProblem(f"{path}:{line}: not valid TOML: {said}. Correct this line.") from error
    except RecursionError as error:
        raise ConfigProblem(f"{path}: nested too deeply to be read; make it flatter.") from error
    if _is_deep(data):
        raise ConfigProblem(f"{path}: nested too deeply to be read; make it flatter.")
    return TomlFile(path, text, data)


def _is_deep(data: dict[str, Any]) -> bool:
    level: list[Any] = [data]
    for _ in range(DEEPEST):
        inner = ((each.values() if isinstance(each, dict) else each) for each in level)
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
    return bool(level)


def read_bytes(path: Path, *, private: bool = False) -> bytes | None:
    """The bytes of a settings file, or None where there is none; never waits, and never reads for ever."""
    try:
        # Without O_NONBLOCK, a pipe put in the place of a workspace's file would hold us up for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        if path.is_symlink():
            raise ConfigProblem(f"{path} points to {path.readlink()}, which does not exist.") from error
        return None
    except OSError as error:
        raise ConfigProblem(f"{path} cannot be read ({error.strerror}); check its permissions.") from error
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise ConfigProblem(f"{path} is not a file; move it out of the way.")
        if private and found.st_mode & OTHERS_MAY_READ:
            raise ConfigProblem(f"{path} can be read by other users. Run: chmod 600 {path}")
        if found.st_size > MOST_BYTES:
            raise ConfigProblem(
                f"{path} is larger than {MOST_BYTES:,} bytes, more than Handrail reads of such a file."
            )
        with open(handle, "rb", closefd=False) as opened:
            return opened.read(MOST_BYTES)
    finally:
        os.close(handle)
