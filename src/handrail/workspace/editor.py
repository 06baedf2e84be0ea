"""Files as an editor has them open, perhaps with text that is not saved.

What the editor has is asked for before it is needed, and kept where it differs from the disk; readers of the
workspace then see it in place of the file. A file without unsaved text is read from the disk, byte by byte.
"""

from collections.abc import Iterable
from typing import Protocol

import anyio

from handrail.protocol.errors import PathProblem
from handrail.workspace.files import BOM, MAX_FILE_BYTES, NotText, Workspace, decode
from handrail.workspace.paths import ResolvedPath

MAX_KNOWN = 20
"""Files seen last, whose unsaved text is looked for at the start of a turn and before a command."""


class Editor(Protocol):
    """An editor's files. Paths are relative to the workspace; PathProblem where it does not answer."""

    @property
    def writes(self) -> bool:
        """Whether it also writes files."""

    def has(self, session_id: str) -> bool:
        """Whether the session is open in it."""

    async def read(self, session_id: str, path: str) -> str | None:
        """The text that it has, or would open; None where it says that there is no such text."""

    async def write(self, session_id: str, path: str, text: str) -> None:
        """Replace the text. Most editors then save it, and may format it before."""


async def look(workspace: Workspace, session_id: str, paths: Iterable[str | ResolvedPath]) -> None:
    """Note which of the files have unsaved text; raises PathProblem where the editor does not answer."""
    editor, problems = workspace.editor, list[PathProblem]()
    if editor is None or not editor.has(session_id):
        return
    places = {place.path: place for place in map(workspace.resolve, paths) if place.inside}

    async def look_at(place: ResolvedPath) -> None:
        try:
            await current_text(workspace, session_id, place)
        except PathProblem as problem:
            problems.append(problem)

    async with anyio.create_task_group() as tasks:
        for place in places.values():
            tasks.start_soon(look_at, place)
    if problems:
        raise problems[0]


async def try_look(workspace: Workspace, session_id: str, paths: Iterable[str | ResolvedPath]) -> str:
    """The same; returns what the user has to know where the editor does not answer."""
    try:
        await look(workspace, session_id, [path for path in paths if _resolves(workspace, path)])
    except PathProblem as problem:
        return f"{problem} What is shown is the file on disk."
    return ""


async def current_text(workspace: Workspace, session_id: str, place: ResolvedPath) -> str | None:
    """The editor's text of a file, as it gives it; notes whether that is unsaved.

    None for files that it cannot have: those that are not text, or too large to be edited.
    """
    editor = workspace.editor
    try:
        disk = workspace.saved(place)
    except PathProblem as problem:
        if editor is None or problem.reason != "file_missing":
            workspace.unsaved.pop(place.path, None)
            return None
        disk = None
    text = await editor.read(session_id, place.path) if editor else None
    if text is None or (disk is None and not text):
        workspace.unsaved.pop(place.path, None)
        return None
    data = as_saved(text, disk, place.path)
    if disk is not None and is_same(data, disk):
        workspace.unsaved.pop(place.path, None)
    else:
        workspace.unsaved[place.path] = data
    return text


def as_saved(text: str, like: bytes | None, path: str = "") -> bytes:
    """An editor's text as it saves it: with the byte order mark and the line endings of the file."""
    if len(text) > MAX_FILE_BYTES:
        message = f"{path} has {len(text):,} characters in the editor; the limit is {MAX_FILE_BYTES:,}."
        raise PathProblem(message, "too_large", path)
    if like is not None and "\r" not in text and has_crlf(like):
        text = text.replace("\n", "\r\n")
    try:
        data = text.removeprefix("\ufeff").encode()
        decode(data)
    except (UnicodeEncodeError, NotText) as problem:
        raise PathProblem(f"{path} is not text in the editor: {problem}.", "not_text", path) from problem
    return BOM + data if text.startswith("\ufeff") or (like or b"").startswith(BOM) else data


def as_given(data: bytes, before: str | None) -> str:
    """Text for the editor, with the line endings that it uses itself."""
    text = decode(data).text
    return text if before is None or "\r" in before else text.replace("\r\n", "\n")


def has_crlf(data: bytes) -> bool:
    return b"\r\n" in data and data.count(b"\r\n") == data.count(b"\n")


def is_same(one: bytes, other: bytes) -> bool:
    """Whether they differ at most in the final line break, which some editors leave out."""
    return one == other or _without_break(one) == _without_break(other)


def _without_break(data: bytes) -> bytes:
    return data.removesuffix(b"\n").removesuffix(b"\r")


def _resolves(workspace: Workspace, path: str | ResolvedPath) -> bool:
    try:
        workspace.resolve(path)
    except PathProblem:
        return False
    return True
