"""Setting one key in a TOML file of the user's, leaving every other character as it is."""

import copy
import fcntl
import json
import os
import re
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from handrail.config.places import Places, make_private
from handrail.config.toml_file import read_toml
from handrail.config.toml_lines import KeyPath, Statement, line_of, statements
from handrail.config.validation import from_text
from handrail.protocol.errors import ConfigProblem

LOCK_SECONDS = 5.0


def save_setting(places: Places, key: str, text: str) -> Any:
    """Writes what a person means by `text` into the user's settings; gives the value that is now set."""
    value = from_text(key, text)
    # Only what is set must be right: this is also how a wrong value in the file is mended.
    set_in_file(places.settings, tuple(key.split(".")), value)
    return value


def set_in_file(path: Path, key: KeyPath, value: Any) -> None:
    """Sets one key, making the file (readable by the user alone) where there is none; all or nothing."""
    real = path.resolve()
    make_private(real.parent)
    with _alone(real.parent):
        file = read_toml(path)
        text = set_in_text(file.text if file else "", key, value, str(path))
        _replace(real, text)


def add_in_file(path: Path, key: KeyPath, value: str) -> None:
    """Adds one value to a list, making file and list where there is none; all or nothing."""
    real = path.resolve()
    make_private(real.parent)
    with _alone(real.parent):
        file = read_toml(path)
        inner: Any = file.data if file else {}
        for part in key:
            inner = inner.get(part, {}) if isinstance(inner, dict) else {}
        found = inner if isinstance(inner, list) else []
        if value not in found:
            _replace(real, set_in_text(file.text if file else "", key, [*found, value], str(path)))


def set_in_text(text: str, key: KeyPath, value: Any, name: str = "the file") -> str:
    """The text with one key set and nothing else changed; ConfigProblem where that cannot be done safely."""
    wanted = copy.deepcopy(tomllib.loads(text))
    inner = wanted
    for part in key[:-1]:
        inner = inner.setdefault(part, {})
        if not isinstance(inner, dict):
            raise ConfigProblem(f"{name}:{line_of(text, key)}: {part} is a value, not a section.")
    written = toml_value(value)
    inner[key[-1]] = tomllib.loads(f"value = {written}")["value"]
    for changed in _ways(text, statements(text), key, written):
        try:
            if tomllib.loads(changed) == wanted:
                return changed
        except tomllib.TOMLDecodeError:
            continue
    raise ConfigProblem(
        f"{name}:{line_of(text, key)}: the way {'.'.join(key)} is written here can only be changed by hand."
    )


def toml_value(value: Any) -> str:
    """A value as TOML writes it, on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        # JSON's escapes are TOML's, apart from DEL, which TOML wants escaped too.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml_key((name,))} = {toml_value(v)}" for name, v in value.items()) + "}"
    return "[" + ", ".join(toml_value(inner) for inner in value) + "]"


def toml_key(key: KeyPath) -> str:
    """A dotted key, quoted where it must be."""
    return ".".join(part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else toml_value(part) for part in key)


def _ways(text: str, found: Sequence[Statement], key: KeyPath, written: str) -> Iterator[str]:
    """Texts that may be what is wanted, the most natural first."""
    for statement in found:
        if statement.kind == "pair" and statement.path == key:
            yield text[: statement.value] + written + text[statement.end :]
            return
    newline = "\r\n" if "\r\n" in text else "\n"
    parent = key[:-1]
    line = f"{toml_key(key[-1:])} = {written}"
    in_section = [statement for statement in found if statement.section == parent]
    if in_section:
        yield _after(text, in_section[-1], line, newline)
    for statement in reversed(found):
        beside = statement.path[: len(parent)] == parent and statement.section != parent
        if (
            parent
            and statement.kind == "pair"
            and beside
            and parent[: len(statement.section)] == statement.section
        ):
            relative = toml_key(key[len(statement.section) :])
            yield _after(text, statement, f"{relative} = {written}", newline)
    if not parent:
        yield _before_sections(text, found, line, newline)
        return
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    yield f"{text}{gap}[{toml_key(parent)}]{newline}{line}{newline}"


def _after(text: str, statement: Statement, line: str, newline: str) -> str:
    end = text.find("\n", statement.end)
    if end < 0:
        return f"{text}{newline}{line}{newline}"
    return f"{text[: end + 1]}{line}{newline}{text[end + 1 :]}"


def _before_sections(text: str, found: Sequence[Statement], line: str, newline: str) -> str:
    """Before the first section and the comment that stands right above it."""
    if not found:
        gap = newline if text and not text.endswith("\n") else ""
        return f"{text}{gap}{line}{newline}"
    at = text.rfind("\n", 0, found[0].start) + 1
    while at:
        above = text.rfind("\n", 0, at - 1) + 1
        if not text[above:at].lstrip().startswith("#"):
            break
        at = above
    return f"{text[:at]}{line}{newline}{newline}{text[at:]}"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """No other process edits a file of this folder meanwhile."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigProblem(f"{folder} cannot be opened ({error.strerror}).") from error
    try:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise ConfigProblem(f"Another process is changing {folder}; try again.") from error
                time.sleep(0.02)
        yield
    finally:
        os.close(handle)


def _replace(path: Path, text: str) -> None:
    """Puts the text in the file's place in one step: a reader sees the old file or the new one."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with open(handle, "wb") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(handle)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except UnicodeEncodeError as error:
        raise ConfigProblem("The value has characters that are not valid text; write it again.") from error
    except OSError as error:
        raise ConfigProblem(f"{path} cannot be written ({error.strerror}).") from error
