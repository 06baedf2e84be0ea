"""Opening folders step by step without following links, so that a resolved path is where it says."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# A folder that may only be passed through can be opened with O_PATH; macOS has no such flag.
FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
STEP = FOLDER | os.O_NOFOLLOW


@contextmanager
def opened_folder(folder: Path, *, make: bool = False, root: Path = Path("/")) -> Iterator[int]:
    """A descriptor of `folder`, which lies beneath `root`; a link on the way is an error."""
    descriptor = os.open(root, FOLDER)
    try:
        for name in folder.relative_to(root).parts:
            if make:
                _make(name, descriptor)
            inner = os.open(name, STEP, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _make(name: str, parent: int) -> None:
    try:
        os.mkdir(name, dir_fd=parent)
    except FileExistsError:
        return
