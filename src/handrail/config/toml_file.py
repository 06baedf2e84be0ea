"""Read TOML files with bounded size and depth; find the line of every key."""

import functools
import re
import tomllib
from collections.abc import Iterator
from itertools import takewhile
from operator import eq
from pathlib import Path
from typing import Any, Literal, NamedTuple

from handrail.config.open_file import FileTooLarge, NotAFile, open_file
from handrail.protocol.errors import ConfigProblem
from handrail.protocol.values import is_deeper

KeyPath = tuple[str, ...]

STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}'
    r"|'''(?:[^']|'{1,2}(?!'))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
COMMENT = re.compile(r"#[^\n]*")
BLANK = re.compile(r"[ \t\r\n]+|#[^\n]*")
MAX_BYTES = 1_000_000
MAX_DEPTH = 64
"""Levels: more than any real file has, and far below the recursion limit."""
KEY_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
LONG_KEY = re.compile(rf"(?<![\w-]){KEY_PART}(?:[ \t]*+\.[ \t]*+{KEY_PART}){{{MAX_DEPTH}}}")
"""Rejected before parsing: the time `tomllib` needs for a key grows with the square of its parts."""
OTHERS_MAY_READ = 0o077


class Statement(NamedTuple):
    """A header or a `key = value` in the text. Offsets are in characters; `end` is before any comment."""

    kind: Literal["header", "list_header", "pair"]
    path: KeyPath
    """From the top of the document."""
    section: KeyPath
    """The header above it."""
    start: int
    value: int
    """Where the value begins; `end` for a header."""
    end: int


@functools.lru_cache(maxsize=8)
def statements(text: str) -> tuple[Statement, ...]:
    """The statements of a valid document, in order."""
    found: list[Statement] = []
    section: KeyPath = ()
    at = 0
    while at < len(text):
        if blank := BLANK.match(text, at):
            end = blank.end()
        elif text[at] == "[":
            double = text.startswith("[[", at)
            first = at + (2 if double else 1)
            last = _find(text, first, "]")
            section = _key(text[first:last])
            end = last + (2 if double else 1)
            kind: Literal["header", "list_header"] = "list_header" if double else "header"
            found.append(Statement(kind, section, section, at, end, end))
        else:
            equals = _find(text, at, "=")
            value = equals + 1
            while text[value] in " \t":
                value += 1
            end = _end_of_value(text, value)
            found.append(Statement("pair", section + _key(text[at:equals]), section, at, value, end))
        at = end
    return tuple(found)


def line_of(text: str, path: KeyPath) -> int:
    """The line, from 1, of a key or section, or of the value that contains it.

    Sections of a list may be numbered from 0: `("hooks", "1", "run")`.
    """
    best, best_rank = 0, (-1, False)
    for statement, written in _addresses(text):
        shared = len([*takewhile(bool, map(eq, written, path))])
        inside = shared == len(written)
        matches = shared == len(path) or (inside and shared > 0)
        if matches and (shared, inside) > best_rank:
            best, best_rank = statement.start, (shared, inside)
    return text.count("\n", 0, best) + 1


def _addresses(text: str) -> Iterator[tuple[Statement, KeyPath]]:
    """Each statement with its path, and again with the path in which list sections are numbered."""
    counts: dict[KeyPath, int] = {}
    for statement in statements(text):
        section, path = statement.section, statement.path
        if statement.kind == "list_header":
            number = counts.get(section, -1) + 1
            counts = {list_: at for list_, at in counts.items() if list_[: len(section)] != section}
            counts[section] = number
        yield statement, path
        numbered = _numbered(path, section, counts)
        if numbered != path:
            yield statement, numbered


def _numbered(path: KeyPath, section: KeyPath, counts: dict[KeyPath, int]) -> KeyPath:
    """`("stages", "gates", "check")` as `("stages", "1", "gates", "0", "check")`."""
    parts: list[str] = []
    for length, name in enumerate(path, 1):
        parts.append(name)
        if length <= len(section) and section[:length] in counts:
            parts.append(str(counts[section[:length]]))
    return tuple(parts)


def _find(text: str, at: int, wanted: str) -> int:
    """The next `wanted` outside quotes."""
    while text[at] != wanted:
        quoted = STRING.match(text, at)
        at = quoted.end() if quoted else at + 1
    return at


def _end_of_value(text: str, start: int) -> int:
    at, depth = start, 0
    while at < len(text) and (depth or text[at] not in "#\n"):
        if skipped := STRING.match(text, at) or COMMENT.match(text, at):
            at = skipped.end()
        else:
            depth += (text[at] in "[{") - (text[at] in "]}")
            at += 1
    return start + len(text[start:at].rstrip(" \t\r"))


def _key(text: str) -> KeyPath:
    """The parts of a key as written, with quotes and dots resolved."""
    inner: object = tomllib.loads(f"{text.strip()} = 0")
    parts = []
    while isinstance(inner, dict):
        [(name, inner)] = inner.items()
        parts.append(name)
    return tuple(parts)


class TomlFile(NamedTuple):
    path: Path
    text: str
    data: dict[str, Any]

    def place(self, key: KeyPath) -> str:
        return f"{self.path}:{line_of(self.text, key)}"


def read_toml(path: Path, *, private: bool = False) -> TomlFile | None:
    """The file's content, or None if it does not exist; `private`: only the user may be able to read it."""
    raw = read_bytes(path, private=private)
    return parse_toml(path, raw) if raw is not None else None


def parse_toml(path: Path, raw: bytes) -> TomlFile:
    """The content of these bytes, which were read from the path."""
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
        problem = str(error)[: at.start()] if at else str(error)
        raise ConfigProblem(f"{path}:{line}: not valid TOML: {problem}. Correct this line.") from error
    except RecursionError as error:
        raise ConfigProblem(f"{path}: nested too deeply to be read; make it flatter.") from error
    if is_deeper(data, MAX_DEPTH):
        raise ConfigProblem(f"{path}: nested too deeply to be read; make it flatter.")
    return TomlFile(path, text, data)


def read_bytes(path: Path, *, private: bool = False) -> bytes | None:
    """The bytes of a settings file, or None if it does not exist; never blocks, never reads without end."""
    try:
        with open_file(path) as file:
            if private and file.found.st_mode & OTHERS_MAY_READ:
                raise ConfigProblem(f"{path} can be read by other users. Run: chmod 600 {path}")
            return b"".join(file.chunks(MAX_BYTES))
    except (FileNotFoundError, NotADirectoryError) as error:
        if path.is_symlink():
            raise ConfigProblem(
                f"{path} points to {path.readlink()}, which does not exist. Correct or remove the link."
            ) from error
        return None
    except NotAFile as error:
        raise ConfigProblem(f"{path} is not a file: {error.strerror}. Move it out of the way.") from error
    except FileTooLarge as error:
        raise ConfigProblem(f"{path} is larger than {MAX_BYTES:,} bytes; make it smaller.") from error
    except OSError as error:
        raise ConfigProblem(f"{path} cannot be read ({error.strerror}); check its permissions.") from error
