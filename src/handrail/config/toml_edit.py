"""Set one key in a TOML file; every other character stays as it is."""

import copy
import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from handrail.config.files import FileLock, write_atomically
from handrail.config.places import Places, make_private
from handrail.config.toml_file import KeyPath, Statement, line_of, read_toml, statements
from handrail.config.validation import parse_value
from handrail.protocol.errors import ConfigProblem

LOCK_SECONDS = 5.0


def save_setting(places: Places, key: str, text: str) -> Any:
    """Save what a person means by `text` in the user's settings; returns the new value."""
    value = parse_value(key, text)
    # The rest of the file is not checked: this is also how a wrong value in it is corrected.
    set_in_file(places.settings, tuple(key.split(".")), value)
    return value


def set_in_file(path: Path, key: KeyPath, value: Any) -> None:
    """Set one key, creating the file (readable only by the user) if needed; all or nothing."""
    with locked(path) as real:
        file = read_toml(path)
        _replace(real, set_in_text(file.text if file else "", key, value, str(path)))


def add_in_file(path: Path, key: KeyPath, value: str) -> None:
    """Add one value to a list, creating file and list if needed; all or nothing."""
    with locked(path) as real:
        file = read_toml(path)
        inner: Any = file.data if file else {}
        for part in key:
            inner = inner.get(part, {}) if isinstance(inner, dict) else {}
        found = inner if isinstance(inner, list) else []
        if value not in found:
            _replace(real, set_in_text(file.text if file else "", key, [*found, value], str(path)))


def set_in_text(text: str, key: KeyPath, value: Any, name: str = "the file") -> str:
    """The text with one key set and nothing else changed; raises ConfigProblem if that is not possible."""
    wanted = copy.deepcopy(tomllib.loads(text))
    inner = wanted
    for part in key[:-1]:
        inner = inner.setdefault(part, {})
        if not isinstance(inner, dict):
            raise ConfigProblem(f"{name}:{line_of(text, key)}: {part} is a value, not a section.")
    written = toml_value(value)
    inner[key[-1]] = tomllib.loads(f"value = {written}")["value"]
    for changed in _candidates(text, statements(text), key, written):
        try:
            if tomllib.loads(changed) == wanted:
                return changed
        except tomllib.TOMLDecodeError:
            continue
    raise ConfigProblem(
        f"{name}:{line_of(text, key)}: change {'.'.join(key)} by hand; it is written in an unusual form."
    )


def toml_value(value: Any) -> str:
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


def _candidates(text: str, found: Sequence[Statement], key: KeyPath, written: str) -> Iterator[str]:
    """Edited texts to try, the most natural first."""
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
        section = statement.section
        # A dotted key beside which a sibling can stand, such as `limits.usd = 1` at the top.
        is_sibling = statement.path[: len(parent)] == parent and len(section) < len(parent)
        if parent and statement.kind == "pair" and is_sibling and parent[: len(section)] == section:
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
    """The text with the line inserted before the first section and the comment directly above it."""
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
def locked(path: Path) -> Iterator[Path]:
    """The real path of a file that no other process edits meanwhile; its folder is created if needed."""
    real = path.resolve()
    folder = make_private(real.parent)
    try:
        lock = FileLock(folder)
    except OSError as error:
        raise ConfigProblem(
            f"{folder} cannot be opened ({error.strerror}); check its permissions."
        ) from error
    with lock:
        if not lock.wait(LOCK_SECONDS):
            raise ConfigProblem(f"Another process is changing files in {folder}; try again.")
        yield real


def _replace(path: Path, text: str) -> None:
    try:
        write_atomically(path, text.encode())
    except UnicodeEncodeError as error:
        raise ConfigProblem("The value has characters that are not valid text; write it again.") from error
    except OSError as error:
        raise ConfigProblem(f"{path} cannot be written ({error.strerror}); check its permissions.") from error
