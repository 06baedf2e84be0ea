"""The list, glob and search tools, and ripgrep, which does the searching.

Ripgrep gets a list of what it must not read, made from names alone. So it opens no `.gitignore` of the
repository, and no file that may hold secrets: the content of those has no effect on a result.
"""

import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, NamedTuple

from anyio.to_thread import run_sync
from msgspec import Meta

from handrail.protocol.globs import covers, parse_pattern
from handrail.protocol.values import Value
from handrail.tools.process import find_program, run_process
from handrail.tools.secrets import without_secrets
from handrail.tools.tool import (
    CallContext,
    HiddenFromModel,
    Outcome,
    Tool,
    failure,
    pluralize,
    tool_refused,
    truncate,
)
from handrail.workspace.files import MAX_LINES_FILE_BYTES, list_folder
from handrail.workspace.walk import LeftOut, TooManyEntries, find_left_out

MAX_PATTERN_LENGTH = 200
RIPGREP_SECONDS = 20.0
RIPGREP_OPTIONS = (
    *("--no-config", "--no-messages", "--color=never", "--hidden", "--sort=path", "--no-ignore"),
    *("--ignore-file=/dev/stdin", f"--max-filesize={MAX_LINES_FILE_BYTES}"),
    *("--glob=!.git", "--glob=!*\n*"),  # a name with a line end in it would look like two files
)
SPECIAL = re.compile(r"[][*?{}\\!#\s]")
RIPGREP_MISSING = "ripgrep (rg) is not installed, so files cannot be searched. Ask the user to install it."

OnLine = Callable[[str], bool]


def find_ripgrep() -> str | None:
    """The program installed beside ours, else the system's."""
    ours = Path(sys.executable).with_name("rg")
    return str(ours) if os.access(ours, os.X_OK) else find_program("rg")


class RipgrepResult(NamedTuple):
    code: int | None
    timed_out: bool
    unsearched: int
    """Files and folders that may hold secrets. Depends on names alone, never on contents."""


async def ripgrep(
    program: str, words: list[str], folder: Path, on_line: OnLine, *, start: str = ".", secrets: bool = False
) -> RipgrepResult:
    """Run ripgrep on `start`, a path from the folder; each line goes to `on_line`, until that returns False.

    Ignored files are left out, and those that may hold secrets unless `secrets`.
    """
    left_out = LeftOut([], [])
    if (folder / start).is_dir():
        left_out = await run_sync(_left_out, folder, start, abandon_on_cancel=True)
    if secrets:
        left_out = left_out._replace(secret=[])
    rest, wanted = b"", True

    def split(chunk: bytes) -> bool:
        nonlocal rest, wanted
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            wanted = wanted and on_line(line.decode(errors="replace").removesuffix("\r"))
        return wanted

    with TemporaryFile() as file:
        file.writelines(f"{_anchored(path)}\n".encode() for path in (*left_out.ignored, *left_out.secret))
        file.seek(0)
        ended = await run_process(
            [program, *RIPGREP_OPTIONS, *words, "--", "." if start == "." else f"./{start}"],
            folder=folder,
            environment=without_secrets(os.environ),
            timeout=RIPGREP_SECONDS,
            on_output=split,
            stdin=file.fileno(),
        )
    if rest:
        split(b"\n")
    return RipgrepResult(ended.code, ended.timed_out, len(left_out.secret))


def _left_out(folder: Path, start: str) -> LeftOut:
    try:
        return find_left_out(folder, start)
    except TooManyEntries as error:
        raise tool_refused("search", "invalid_arguments", TOO_MANY_FILES) from error
    except OSError as error:
        message = f"{start} cannot be listed: {error.strerror or error}."
        raise tool_refused("search", "invalid_arguments", message) from error


def _anchored(path: str) -> str:
    """The glob that matches exactly this path from the root; a byte that is not UTF-8 becomes a star."""
    escaped = SPECIAL.sub(lambda found: "?" if found[0].isspace() else f"\\{found[0]}", path)
    return "/" + escaped.encode(errors="replace").decode().translate({0xFFFD: "*"})


MAX_HITS = 100
MAX_HITS_PER_FILE = 50
MAX_FILES = 200
MAX_CHARACTERS = 12_000
MAX_COLUMNS = 300
MATCHING_SECONDS = 3.0  # time for comparing names with a pattern, which blocks everything else
TOO_MANY_FILES = "There are too many files here to search at once. Search one folder or file."
TIMED_OUT_NOTE = "[stopped at the time limit; there may be more]"


class ListArguments(Value):
    path: str = "."
    depth: Annotated[int, Meta(ge=1, le=5, description="levels")] = 1


class ListFolder(Tool[ListArguments]):
    name = "list"
    description = "List a folder."
    action = "look"
    arguments = ListArguments

    async def run(self, arguments: ListArguments, work: CallContext) -> Outcome:
        folder = (work.workspace, work.resolved, arguments.depth)
        text = await run_sync(list_folder, *folder, abandon_on_cancel=True)
        lines = [line for line in text.split("\n") if not line.startswith("[")]
        return Outcome("1 entry" if len(lines) == 1 else f"{len(lines)} entries", text)


class GlobArguments(Value):
    pattern: Annotated[
        str, Meta(min_length=1, max_length=MAX_PATTERN_LENGTH, description="such as src/**/*.py")
    ]
    path: str = "."


class Glob(Tool[GlobArguments]):
    name = "glob"
    description = "Find files by name; gitignored ones are left out."
    action = "look"
    arguments = GlobArguments

    def summary(self, arguments: GlobArguments, work: CallContext) -> str:
        return _with_folder(arguments.pattern, work)

    async def run(self, arguments: GlobArguments, work: CallContext) -> Outcome:
        place = work.resolved
        work.workspace.check_still(place)
        if not place.absolute.is_dir():
            message = f"{place.path} is not a folder. Give a folder, or leave path out."
            raise tool_refused(self.name, "invalid_arguments", message)
        program = find_ripgrep()
        if program is None:
            return failure(self.name, "command_failed", RIPGREP_MISSING)
        pattern = at_any_depth(arguments.pattern)
        if parse_pattern(pattern) is None:
            message = "The pattern has too many choices in braces. Use fewer."
            raise tool_refused(self.name, "invalid_arguments", message)
        root, start, prefix = _searched_folder(work)
        found: list[str] = []
        spent = 0.0

        def take(line: str) -> bool:
            nonlocal spent
            path, began = line.removeprefix("./"), time.monotonic()
            if covers(pattern, path.removeprefix(f"{start}/")):
                found.append(prefix + path)
            spent += time.monotonic() - began
            return len(found) <= MAX_FILES and spent < MATCHING_SECONDS

        ended = await ripgrep(program, ["--files"], root, take, start=start, secrets=True)
        late = TIMED_OUT_NOTE if ended.timed_out or spent >= MATCHING_SECONDS else ""
        if not found:
            return Outcome("no files", f"No file matches {arguments.pattern}.{late and f' {late}'}")
        cut = f"[cut after {MAX_FILES} files; use a narrower pattern]" if len(found) > MAX_FILES else ""
        many = "more than " if cut or late else ""
        summary = many + pluralize(min(len(found), MAX_FILES), "file")
        return Outcome(summary, "\n".join(line for line in (*found[:MAX_FILES], cut, late) if line))


def at_any_depth(pattern: str) -> str:
    """The glob that finds names at any depth for a pattern without a slash."""
    return pattern if "/" in pattern else f"**/{pattern}"


class SearchArguments(Value):
    pattern: Annotated[str, Meta(min_length=1)]
    path: str = "."
    glob: str = ""
    regex: bool = False
    rows: Annotated[bool, HiddenFromModel()] = False  # for code stages: each hit as JSON: path, line, text
    sought: Annotated[str, HiddenFromModel()] = ""  # for code stages: what they look for, in words


class Search(Tool[SearchArguments]):
    name = "search"
    description = "Find text in files."
    action = "look"
    sees_disk = True
    arguments = SearchArguments

    def summary(self, arguments: SearchArguments, work: CallContext) -> str:
        sought = arguments.sought if work.by_code else ""  # a model could hide what it searches for
        return _with_folder(sought or f'"{arguments.pattern}"', work)

    async def run(self, arguments: SearchArguments, work: CallContext) -> Outcome:
        place = work.resolved
        work.workspace.check_still(place)
        if not place.absolute.exists():
            message = f"{place.path} does not exist. Search a folder or file that does."
            raise tool_refused(self.name, "invalid_arguments", message)
        if not place.absolute.is_dir() and work.workspace.size(place) > MAX_LINES_FILE_BYTES:
            message = f"{place.path} has more than {MAX_LINES_FILE_BYTES:,} bytes: use a command such as grep"
            raise tool_refused(self.name, "invalid_arguments", message)
        program = find_ripgrep()
        if program is None:
            return failure(self.name, "command_failed", RIPGREP_MISSING)
        root, start, prefix = _searched_folder(work)
        hits = _Hits(prefix, arguments.glob)
        words = _ripgrep_arguments(arguments)
        ended = await ripgrep(program, words, root, hits.add, start=start, secrets=place.secret)
        if ended.code == 2 and not hits.lines:
            message = f"ripgrep failed: {' '.join(' '.join(hits.other).split())[:600]}"
            raise tool_refused(self.name, "invalid_arguments", message)
        return hits.outcome(arguments, ended)


class _Hits:
    """Lines of ripgrep, `path NUL number:text`, in files that the glob matches."""

    def __init__(self, prefix: str, glob: str) -> None:
        self.lines: list[tuple[str, str]] = []
        self.other: list[str] = []
        self._files: Counter[str] = Counter()
        self._prefix = prefix
        # A glob given to ripgrep would include ignored files.
        self._glob = at_any_depth(glob.removeprefix("!")) if _is_path_glob(glob) else ""
        self._wanted = not glob.startswith("!")
        self._last = ("", False)

    def add(self, line: str) -> bool:
        path, separator, rest = line.partition("\0")
        if not separator:
            self.other.append(line)
            return len(self.other) <= MAX_HITS
        path = path.removeprefix("./")
        if self._glob and path != self._last[0]:
            self._last = (path, covers(self._glob, path) is self._wanted)
        if not self._glob or self._last[1]:
            path = self._prefix + path
            self._files[path] += 1
            if self._files[path] <= MAX_HITS_PER_FILE:
                self.lines.append((path, rest))
        return len(self.lines) <= MAX_HITS

    def outcome(self, arguments: SearchArguments, ended: RipgrepResult) -> Outcome:
        notes = []
        if len(self.lines) > MAX_HITS:
            notes.append(f"[cut after {MAX_HITS} hits; use a longer pattern, or search one folder]")
        full = [path for path, hits in self._files.items() if hits > MAX_HITS_PER_FILE]
        if full:
            notes.append(f"[cut after {MAX_HITS_PER_FILE} hits in {', '.join(full)}]")
        if ended.timed_out:
            notes.append(TIMED_OUT_NOTE)
        if ended.unsearched:
            notes.append(
                f"[not searched, because they may hold secrets: {pluralize(ended.unsearched, 'name')}]"
            )
        many = "more than " if len(self.lines) > MAX_HITS or full or ended.timed_out else ""
        shown = [_json_row(*line) if arguments.rows else ":".join(line) for line in self.lines[:MAX_HITS]]
        where = next(iter(self._files)) if len(self._files) == 1 else pluralize(len(self._files), "file")
        summary = f"{many}{pluralize(len(shown), 'hit')} in {where}" if shown else "no hits"
        text = truncate("\n".join(shown), MAX_CHARACTERS, "Search one folder or file.")
        return Outcome(summary, "\n".join([text or f"No hits for {arguments.pattern}.", *notes]))


def _json_row(path: str, rest: str) -> str:
    number, _, text = rest.partition(":")
    return json.dumps([path, int(number), text], ensure_ascii=False)


def _is_path_glob(glob: str) -> bool:
    return "/" in glob or glob.startswith("!")


def _ripgrep_arguments(arguments: SearchArguments) -> list[str]:
    words = ["--line-number", "--no-heading", "--with-filename", "--null"]
    words += [f"--max-columns={MAX_COLUMNS}", "--max-columns-preview", f"--max-count={MAX_HITS_PER_FILE + 1}"]
    words += [] if arguments.regex else ["--fixed-strings"]
    if arguments.glob and not _is_path_glob(arguments.glob):
        words += [f"--type-add=wanted:{arguments.glob}", "--type=wanted"]
    return [*words, f"--regexp={arguments.pattern}"]


class _SearchedFolder(NamedTuple):
    root: Path
    start: str
    """The path from the root that is searched."""
    prefix: str
    """What comes before the paths that are shown."""


def _searched_folder(work: CallContext) -> _SearchedFolder:
    place = work.resolved
    if place.inside:
        return _SearchedFolder(work.workspace.root, str(place.absolute.relative_to(work.workspace.root)), "")
    folder = place.absolute if place.absolute.is_dir() else place.absolute.parent
    return _SearchedFolder(folder, str(place.absolute.relative_to(folder)), f"{folder}/")


def _with_folder(what: str, work: CallContext) -> str:
    return what if work.resolved.path == "." else f"{what} in {work.resolved.path}"
