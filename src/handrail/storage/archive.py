"""Write and read the file of an exported session."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from handrail.config.files import write_atomically
from handrail.protocol.errors import UsageProblem


def write_lines(target: Path, lines: Iterable[str]) -> None:
    """Write the lines to a new file; an existing one is not overwritten."""
    try:
        write_atomically(target, (f"{line}\n".encode() for line in lines), overwrite=False)
    except FileExistsError as error:
        raise UsageProblem(f"{target} already exists. Choose another name.") from error
    except OSError as error:
        raise UsageProblem(f"{target} cannot be written: {error.strerror}.") from error


def read_lines(source: Path) -> Iterator[str]:
    try:
        with source.open(encoding="utf-8") as file:
            yield from file
    except OSError as error:
        raise UsageProblem(f"{source} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{source} is not an exported session: it is not text.") from error
