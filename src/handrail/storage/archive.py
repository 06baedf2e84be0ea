"""A session as one file: written whole or not at all."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from handrail.protocol.errors import UsageProblem


def write_lines(target: Path, lines: Iterable[str]) -> None:
    """The lines as a new file; an existing one is not touched."""
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)
                file.flush()
                os.fsync(file.fileno())
            os.link(name, target)
        finally:
            os.unlink(name)
    except FileExistsError as error:
        raise UsageProblem(f"{target} exists already: choose another name.") from error
    except OSError as error:
        raise UsageProblem(f"{target} cannot be written: {error.strerror}.") from error


def read_lines(source: Path) -> Iterator[str]:
    """The lines of a file that somebody says is an export."""
    try:
        with source.open(encoding="utf-8") as file:
            yield from file
    except OSError as error:
        raise UsageProblem(f"{source} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{source} is not an export of a session: it is not text.") from error
