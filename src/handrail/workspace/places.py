"""Where a path leads: resolved with its links and `..`, and told apart by what lies there."""

import os
import stat
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from handrail.protocol.errors import PathProblem
from handrail.protocol.record import Record

STATE_FOLDERS = (".handrail", ".orchestration")
SECRET_NAMES = (
    ".env*",
    "*.env",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    ".netrc",
    ".pgpass",
    ".pypirc",
    ".git-credentials",
    "credentials",
    "credentials.json",
    "credentials.toml",
)
SECRET_FOLDERS = (".ssh", ".gnupg", ".aws")
LONGEST_PATH = 4_096
"""Bytes, as the system has it."""
EXAMPLES = (".env.example", ".env.sample", ".env.template", ".env.dist")
"""Made to be shared: they look like secrets and are none."""


class Place(Record):
    """A path with all that a decision about it needs."""

    absolute: Path
    """Links and `..` resolved."""
    path: str
    """For people, models and events: relative to the workspace where it is inside."""
    inside: bool
    in_git: bool
    in_state: bool
    """Handrail's own files."""
    secret: bool
    links: int = 1
    """Names that the file has; more than one are hard links."""


def resolve(root: Path, given: str, state_folders: Iterable[Path]) -> Place:
    """The place that a user's or a model's path means; it need not exist."""
    if len(given.encode(errors="replace")) > LONGEST_PATH:
        message = f"A path has at most {LONGEST_PATH:,} bytes; this one is longer: {given[:100]!r}…"
        raise PathProblem(message, "invalid_arguments")
    try:
        wanted = os.path.normpath(os.path.join(root, given or "."))
        absolute = Path(os.path.realpath(os.path.join(root, given or ".")))
        os.fsencode(absolute)
    except (ValueError, OSError) as error:
        raise PathProblem(
            f"{given[:200]!r} is not a path ({error}). Give a path of a file in the workspace.",
            "invalid_arguments",
        ) from error
    inside = absolute.is_relative_to(root)
    # The name as it was given counts too: a link called `.env` is as secret as what it leads to.
    parts = [*_parts(Path(wanted), root), *_parts(absolute, root)]
    names = (os.path.basename(wanted).lower(), absolute.name.lower())
    return Place(
        absolute=absolute,
        path=printable(absolute.relative_to(root).as_posix() if inside else str(absolute)),
        inside=inside,
        in_git=".git" in parts,
        in_state=any(name in parts for name in STATE_FOLDERS)
        or any(absolute.is_relative_to(folder) for folder in state_folders),
        secret=any(is_secret(name) for name in names) or any(name in parts for name in SECRET_FOLDERS),
        links=_links(absolute),
    )


def is_secret(name: str) -> bool:
    """Whether a file of this name is likely to hold a secret."""
    lower = name.lower()
    return lower not in EXAMPLES and any(fnmatchcase(lower, pattern) for pattern in SECRET_NAMES)


def printable(name: str) -> str:
    """A file's name as text that can be stored and shown, whatever bytes it is made of."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _links(path: Path) -> int:
    try:
        found = os.lstat(path)
    except OSError:
        return 1
    return found.st_nlink if stat.S_ISREG(found.st_mode) else 1


def _parts(path: Path, root: Path) -> list[str]:
    below = path.relative_to(root) if path.is_relative_to(root) else path
    return [part.lower() for part in below.parts]
