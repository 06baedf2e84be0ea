"""Resolve a path, inspect it, and open folders without following links."""

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal
from unicodedata import normalize

from handrail.protocol.errors import PathProblem
from handrail.protocol.values import Value
from handrail.workspace.sensitive_names import GIT, leads_to_secret, leads_to_state, normalized_parts

# O_PATH also opens a folder that may only be passed through; macOS does not have it.
FOLDER_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
NO_FOLLOW_FLAGS = FOLDER_FLAGS | os.O_NOFOLLOW


@contextmanager
def open_folder(folder: Path, *, make: bool = False, root: Path = Path("/")) -> Iterator[int]:
    """A descriptor of `folder`, which lies beneath `root`; a link on the way is an error."""
    descriptor = os.open(root, FOLDER_FLAGS)
    try:
        for name in folder.relative_to(root).parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=descriptor)
            inner = os.open(name, NO_FOLLOW_FLAGS, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


MAX_PATH_BYTES = 4_096
MAGIC_FOLDERS = ("/proc/", "/dev/", "/sys/")
"""Their links lead to what the reading process has open, not to a file's path."""


class ResolvedPath(Value):
    absolute: Path
    """Links and `..` resolved."""
    path: str
    """For people, models and events: relative if it is inside the workspace."""
    inside: bool
    in_git: bool
    in_state: bool
    """Handrail's own files."""
    secret: bool
    in_program: bool = False
    """A file of the Handrail that is running."""
    links: int = 1
    """How many names (hard links) the file has."""
    given: str = ""


def resolve_path(
    root: Path, given: str, state_folders: Iterable[Path], program_paths: Iterable[Path] = ()
) -> ResolvedPath:
    """What a user's or a model's path leads to; it need not exist."""
    joined = os.path.join(root, given or ".")
    if len(joined.encode(errors="replace")) > MAX_PATH_BYTES:
        message = f"A path has at most {MAX_PATH_BYTES:,} bytes; this one is longer: {given[:100]!r}…"
        raise PathProblem(message, "invalid_path")
    try:
        absolute = Path(os.path.realpath(joined))
        os.fsencode(absolute)
    except (ValueError, OSError) as error:
        message = f"{given[:200]!r} is not a path ({error}). Give the path of a file in the workspace."
        raise PathProblem(message, "invalid_path") from error
    inside = absolute.is_relative_to(root) and not _is_magic(given, root)
    # The name as written counts too: a link called `.env` is as secret as the file it leads to.
    wanted = normalized_parts(_relative_to(os.path.normpath(joined), root))
    found = normalized_parts(_relative_to(str(absolute), root))
    return ResolvedPath(
        absolute=absolute,
        path=printable(absolute.relative_to(root).as_posix() if inside else str(absolute)),
        inside=inside,
        in_git=GIT in wanted + found or (inside and _in_repository(absolute, root)),
        in_state=leads_to_state(wanted + found)
        or any(absolute.is_relative_to(folder) for folder in state_folders),
        secret=leads_to_secret(wanted) or leads_to_secret(found),
        in_program=any(
            place.is_relative_to(each)
            for path in program_paths
            for each in {path, Path(os.path.realpath(path))}
            for place in (absolute, Path(os.path.normpath(joined)))
        ),
        links=_links(absolute),
        given=given,
    )


def printable(name: str) -> str:
    """A file's name as text that can be stored and shown, even if it is not UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def path_text(path: str) -> str:
    """The path as text that `text_path` reads back: after a NUL in hexadecimal, if it is not UTF-8."""
    return path if printable(path) == path else "\0" + os.fsencode(path).hex()


def text_path(text: str) -> str:
    return os.fsdecode(bytes.fromhex(text[1:])) if text.startswith("\0") else text


def _links(path: Path) -> int:
    try:
        found = os.lstat(path)
    except OSError:
        return 1
    return found.st_nlink if stat.S_ISREG(found.st_mode) else 1


def _relative_to(path: str, root: Path) -> str:
    return os.path.relpath(path, root) if Path(path).is_relative_to(root) else path


def _is_magic(given: str, root: Path) -> bool:
    path = "/" + os.path.normpath(given).lstrip("/") if given.startswith("/") else ""
    return path.startswith(MAGIC_FOLDERS) and not Path(path).is_relative_to(root)


def _in_repository(absolute: Path, root: Path) -> bool:
    """Whether it is in a bare repository, or in the folder that a worktree's `.git` names."""
    for folder in (absolute, *absolute.parents):
        if not folder.is_relative_to(root):
            return False
        if os.path.lexists(folder / "HEAD"):
            whole = (folder / "objects").is_dir() and (folder / "refs").is_dir()
            if whole or os.path.lexists(folder / "commondir"):
                return True
    return False


LOOK_ALIKES = str.maketrans(
    # Cyrillic, small and large; Greek; Armenian; Cherokee; rare Latin letters; dashes.
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0458\u0501\u051b\u051d\u04bb\u04af\u04cf\u043f\u0433\u0437"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0405\u0406\u0408\u0500\u051a\u051c\u04ba\u04ae\u04c0\u0417\u0474"
    "\u03b1\u03b3\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u03c9\u03b7\u03f2\u03f3"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03f9"
    "\u0561\u0566\u0570\u0575\u0578\u057d\u0581\u0584\u0585\u053c\u054f\u0555"
    "\u13aa\u13a1\u13a2\u13ac\u13b3\u13b7\u13bb\u13c0\u13c3\u13c6\u13da\u13de\u13d2\u13df\u13a0\u13cf"
    "\u0131\u0251\u0261\u026a\u1d00\u1d04\u1d0f\u1d1c\u1d20\u1d21\u1d22\u2010\u2012\u2013\u2014\u2212\u02d7",
    "abekmhopctyxsijdqwhylnr3"
    "ABEKMHOPCTYXSIJDQWHYl3V"
    "ayikvoptuxwncj"
    "ABEZHIKMNOPTYXC"
    "wqhjnugpoLSO"
    "ARTEWMHGZISLRCDb"
    "iagiacouvwz------",
)
"""Letters that look like a Latin one; letters of one alphabet stay apart from each other."""
EntryKind = Literal["nothing", "file", "folder", "other"]


TwinKind = Literal["", "case", "encoding", "letters"]


class Surroundings(Value):
    found: EntryKind
    missing: tuple[str, ...] = ()
    """Names at the end of the path that do not exist."""
    through_file: bool = False
    """A folder of the path is a file."""
    twin: str = ""
    """An existing name that differs from the first missing one only in case or encoding, or looks like it."""
    twin_by: TwinKind = ""


def inspect_path(absolute: Path, moved: Collection[Path] = ()) -> Surroundings:
    """What is at a path; files of `moved` go away, so their names are no twins in another case."""
    with suppress(OSError):
        mode = os.lstat(absolute).st_mode
        return Surroundings("file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other")
    names = [absolute.name]
    folder = absolute.parent
    while not os.path.lexists(folder) and folder != folder.parent:
        names.insert(0, folder.name)
        folder = folder.parent
    if not folder.is_dir():
        return Surroundings("nothing", tuple(names), through_file=True)
    twins = _similar_names(names[0], folder)
    if same := [twin for twin in twins if normalize("NFKC", twin) == normalize("NFKC", names[0])]:
        return Surroundings("nothing", tuple(names), twin=same[0], twin_by="encoding")
    staying = [twin for twin in twins if folder / twin not in moved]
    if other := [twin for twin in staying if without_case(twin) == without_case(names[0])]:
        return Surroundings("nothing", tuple(names), twin=other[0], twin_by="case")
    if staying:
        return Surroundings("nothing", tuple(names), twin=staying[0], twin_by="letters")
    return Surroundings("nothing", tuple(names))


def _similar_names(name: str, folder: Path) -> list[str]:
    wanted = _look_of(name)
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if _look_of(entry.name) == wanted]
    except OSError:
        return []


def without_case(name: str) -> str:
    """A name as a file system sees it that ignores case and encoding."""
    return normalize("NFKC", name).casefold()


def _look_of(name: str) -> str:
    """The same for names that look the same, whatever their case."""
    return normalize("NFKC", name).translate(LOOK_ALIKES).casefold()
