"""The read tool."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import anyio.to_thread
from pydantic import Field

from handrail.protocol.errors import PathProblem
from handrail.protocol.values import SHOWN_DIGITS, FileSeen, Value
from handrail.tools.base import About, Outcome, Tool, Work
from handrail.tools.clip import counted
from handrail.workspace.files import WHOLE_LIMIT, Workspace
from handrail.workspace.images import ImageFile
from handrail.workspace.places import Place
from handrail.workspace.text import Lines

MOST_LINES = 400


class ReadArguments(Value):
    path: str
    start: Annotated[int, Field(ge=1, description="first line")] = 1
    end: Annotated[int, Field(ge=0, description="last line")] = 0


class Read(Tool[ReadArguments]):
    name = "read"
    description = "Show a text file with line numbers and its hash, or a picture."
    action = "look"
    arguments = ReadArguments

    def about(self, arguments: ReadArguments) -> About:
        return About(path=arguments.path)

    def subject(self, arguments: ReadArguments, work: Work) -> dict[str, Any]:
        return {"path": super().subject(arguments, work)["path"]}

    async def run(self, arguments: ReadArguments, work: Work) -> Outcome:
        with forbidding_guesses():
            return await self._read(arguments, work)

    async def _read(self, arguments: ReadArguments, work: Work) -> Outcome:
        if image := await anyio.to_thread.run_sync(read_image, work.workspace, work.decided):
            content = f"### {image.image.name} [picture: {image.image.described}]"
            return Outcome(image.image.described, content, images=(image,))
        lines = await anyio.to_thread.run_sync(
            read_lines, work.workspace, work.decided, arguments, abandon_on_cancel=True
        )
        path = work.decided.path
        body, shown = _numbered(lines, work.shown_characters)
        last = lines.start + shown - 1
        whole = lines.start == 1 and last == lines.total and not lines.clipped
        content = f"### {path} [hash: {lines.sha256[:SHOWN_DIGITS]}]\n{body}{_left_out(lines, last)}"
        summary = counted(lines.total, "line") if whole else f"lines {lines.start}-{last} of {lines.total:,}"
        seen = FileSeen(path=path, sha256=lines.sha256, how="agent", whole=whole, size=lines.size)
        return Outcome(summary, content, files=(seen,))


def read_image(workspace: Workspace, place: Place) -> ImageFile | None:
    """The picture that the file is, if it is one; those outside the workspace are the user's to attach."""
    image = workspace.image(place)
    if image and not place.inside:
        raise PathProblem(
            f"{place.path} is a picture outside the workspace: only the user can attach it (--image, or @).",
            "outside_workspace",
            place.path,
        )
    return image


def read_lines(workspace: Workspace, place: Place, arguments: ReadArguments) -> Lines:
    """The lines that were asked for, as many as one answer takes."""
    start, end = arguments.start, arguments.end
    if start == 1 and not end and workspace.size(place) > WHOLE_LIMIT:
        workspace.read(place)
    last = start + MOST_LINES - 1
    return workspace.lines(place, start, min(end, last) if end else last)


@contextmanager
def forbidding_guesses() -> Iterator[None]:
    """What is not there is not to be made up."""
    try:
        yield
    except PathProblem as problem:
        if problem.reason != "file_missing":
            raise
        raise PathProblem(f"{problem} Do not guess its content.", problem.reason, problem.path) from problem


def _numbered(lines: Lines, most: int) -> tuple[str, int]:
    """The lines with their numbers, and how many of them fitted."""
    rows: list[str] = []
    size = 0
    for number, line in enumerate(lines.lines, start=lines.start):
        row = f"{number}\t{line}"
        size += len(row) + 1
        if size > most and rows:
            break
        rows.append(row)
    return "\n".join(rows), len(rows)


def _left_out(lines: Lines, last: int) -> str:
    notes = []
    if lines.total == 0:
        notes.append("the file is empty")
    elif lines.start > lines.total:
        notes.append(f"the file has only {counted(lines.total, 'line')}")
    elif last < lines.total:
        notes.append(f"lines {last + 1}-{lines.total} not shown: read with start={last + 1}")
    if lines.clipped:
        notes.append("very long lines are cut")
    return f"\n[{'; '.join(notes)}]" if notes else ""
