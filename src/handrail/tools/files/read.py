"""The read tool: text with line numbers and hash, or an image."""

from typing import Annotated, Any

from anyio.to_thread import run_sync
from msgspec import Meta

from handrail.protocol.errors import PathProblem
from handrail.protocol.values import HASH_DIGITS, FileSeen, Value
from handrail.tools.files.in_editor import UNSAVED_READ
from handrail.tools.tool import CallContext, Outcome, Tool, pluralize
from handrail.workspace.editor import look
from handrail.workspace.files import MAX_FILE_BYTES, Lines, Workspace
from handrail.workspace.paths import ResolvedPath

MAX_LINES = 400


class ReadArguments(Value):
    path: str
    start: Annotated[int, Meta(ge=1)] = 1
    end: Annotated[int, Meta(ge=0)] = 0


class Read(Tool[ReadArguments]):
    name = "read"
    description = "Show a text file, or its lines start to end, with its hash; or an image."
    action = "look"
    arguments = ReadArguments

    def subject(self, arguments: ReadArguments, work: CallContext) -> dict[str, Any]:
        return {"path": super().subject(arguments, work)["path"]}

    async def run(self, arguments: ReadArguments, work: CallContext) -> Outcome:
        try:
            return await self._read(arguments, work)
        except PathProblem as problem:
            if problem.reason != "file_missing":
                raise
            message = f"{problem} Do not guess its content."
            raise PathProblem(message, problem.reason, problem.path) from problem

    async def _read(self, arguments: ReadArguments, work: CallContext) -> Outcome:
        workspace, place = work.workspace, work.resolved
        if workspace.editor:
            await look(workspace, work.session.id, [place])
        image = await run_sync(workspace.image, place)
        if image and not place.inside:
            message = "is an image outside the workspace. Ask the user to attach it (--image or @)."
            raise PathProblem(f"{place.path} {message}", "outside_workspace", place.path)
        if image:
            content = f"### {image.image.name} [picture: {image.image.described}]"
            return Outcome(image.image.described, content, images=(image,))
        lines = await run_sync(read_lines, workspace, place, arguments, abandon_on_cancel=True)
        body, shown = _number_lines(lines, work.shown_characters)
        last = lines.start + shown - 1
        whole = lines.start == 1 and last == lines.total and not lines.clipped
        content = (
            f"### {place.path} [hash: {lines.sha256[:HASH_DIGITS]}]\n{body}{_omission_note(lines, last)}"
        )
        if place.path in workspace.unsaved:
            content += f"\n{UNSAVED_READ}"
        part = f"lines {lines.start}-{last} of {lines.total:,}"
        summary = pluralize(lines.total, "line") if whole else part
        seen = FileSeen(path=place.path, sha256=lines.sha256, how="agent", whole=whole, size=lines.size)
        return Outcome(summary, content, files=(seen,))


def read_lines(workspace: Workspace, place: ResolvedPath, arguments: ReadArguments) -> Lines:
    """The requested lines, up to `MAX_LINES`."""
    start, end = arguments.start, arguments.end
    if start == 1 and not end and workspace.size(place) > MAX_FILE_BYTES:
        workspace.read(place)
    last = start + MAX_LINES - 1
    return workspace.lines(place, start, min(end, last) if end else last)


def _number_lines(lines: Lines, limit: int) -> tuple[str, int]:
    """The numbered lines that fit into `limit` characters, and how many."""
    rows: list[str] = []
    size = 0
    for number, line in enumerate(lines.lines, start=lines.start):
        row = f"{number}\t{line}"
        size += len(row) + 1
        if size > limit and rows:
            break
        rows.append(row)
    return "\n".join(rows), len(rows)


def _omission_note(lines: Lines, last: int) -> str:
    notes = []
    if lines.total == 0:
        notes.append("the file is empty")
    elif lines.start > lines.total:
        notes.append(f"the file has only {pluralize(lines.total, 'line')}")
    elif last < lines.total:
        notes.append(f"lines {last + 1}-{lines.total} not shown; read with start={last + 1}")
    if lines.clipped:
        notes.append("very long lines are cut")
    return f"\n[{'; '.join(notes)}]" if notes else ""
