"""The list, glob and search tools."""

import json
import time
from collections import Counter
from pathlib import PurePosixPath
from typing import Annotated

import anyio.to_thread
from pydantic import Field

from handrail.protocol.errors import ToolError, ToolRefused
from handrail.protocol.values import Value
from handrail.tools.base import About, Outcome, Tool, Work, failure
from handrail.tools.clip import counted, head
from handrail.tools.glob_pattern import LONGEST, matcher
from handrail.tools.schema import Unsaid
from handrail.tools.search import MISSING, find_ripgrep, ripgrep
from handrail.workspace.listing import list_folder
from handrail.workspace.names import SECRET_FOLDERS, is_secret
from handrail.workspace.places import Place

MOST_HITS = 100
MOST_HITS_A_FILE = 50
MOST_FILES = 200
MOST_CHARACTERS = 12_000
COLUMNS = 300
MATCHING_SECONDS = 3.0
"""Time for comparing names with a pattern, during which nothing else happens."""
NEVER = ("--glob=!.git", "--glob=!*\n*")
"""A name with a line end in it would be read as that of another file."""
LATE = "[stopped at the time limit: there may be more]"


class ListArguments(Value):
    path: str = "."
    depth: Annotated[int, Field(ge=1, le=5, description="levels, 1 if left out")] = 1


class ListFolder(Tool[ListArguments]):
    name = "list"
    description = "List a folder."
    action = "look"
    arguments = ListArguments

    def about(self, arguments: ListArguments) -> About:
        return About(path=arguments.path)

    async def run(self, arguments: ListArguments, work: Work) -> Outcome:
        text = await anyio.to_thread.run_sync(
            list_folder, work.workspace, work.decided, arguments.depth, abandon_on_cancel=True
        )
        lines = [line for line in text.split("\n") if not line.startswith("[")]
        return Outcome("1 entry" if len(lines) == 1 else f"{len(lines)} entries", text)


class GlobArguments(Value):
    pattern: Annotated[str, Field(min_length=1, max_length=LONGEST, description="such as src/**/*.py")]
    path: str = "."


class Glob(Tool[GlobArguments]):
    name = "glob"
    description = "Find files by name; gitignored ones are left out."
    action = "look"
    arguments = GlobArguments

    def about(self, arguments: GlobArguments) -> About:
        return About(path=arguments.path)

    def summary(self, arguments: GlobArguments, work: Work) -> str:
        return _with_folder(arguments.pattern, work)

    async def run(self, arguments: GlobArguments, work: Work) -> Outcome:
        place = work.decided
        work.workspace.check_still(place)
        if not place.absolute.is_dir():
            raise _refused(self.name, f"{place.path} is not a folder. Give a folder, or leave path out.")
        program = find_ripgrep()
        if program is None:
            return failure(self.name, "command_failed", MISSING)
        matches = matcher(arguments.pattern)
        found: list[str] = []
        spent = 0.0

        def take(line: str) -> bool:
            nonlocal spent
            name, began = line.removeprefix("./"), time.monotonic()
            if matches(name):
                found.append(name if place.path == "." else f"{place.path}/{name}")
            spent += time.monotonic() - began
            return len(found) <= MOST_FILES and spent < MATCHING_SECONDS

        ended = await ripgrep(program, ["--files", *NEVER, "."], place.absolute, take)
        late = LATE if ended.timed_out or spent >= MATCHING_SECONDS else ""
        if not found:
            return Outcome("no files", f"No file matches {arguments.pattern}.{late and f' {late}'}")
        cut = f"[cut after {MOST_FILES} files: use a narrower pattern]" if len(found) > MOST_FILES else ""
        many = "more than " if cut or late else ""
        summary = many + counted(min(len(found), MOST_FILES), "file")
        return Outcome(summary, "\n".join(line for line in (*found[:MOST_FILES], cut, late) if line))


class SearchArguments(Value):
    pattern: Annotated[str, Field(min_length=1)]
    path: str = "."
    glob: Annotated[str, Field(description="such as *.py")] = ""
    regex: Annotated[bool, Field(description="pattern is a regular expression")] = False
    rows: Annotated[bool, Unsaid()] = False
    """For code: each hit as a JSON list of path, line and text."""
    sought: Annotated[str, Unsaid()] = ""
    """For code: what a pattern that it has made means, in words for a person."""


class Search(Tool[SearchArguments]):
    name = "search"
    description = "Find text in files; gitignored ones are left out."
    action = "look"
    arguments = SearchArguments

    def about(self, arguments: SearchArguments) -> About:
        return About(path=arguments.path)

    def summary(self, arguments: SearchArguments, work: Work) -> str:
        said = arguments.sought if work.by_code else ""  # a model's words could hide what it looks for
        return _with_folder(said or f'"{arguments.pattern}"', work)

    async def run(self, arguments: SearchArguments, work: Work) -> Outcome:
        place = work.decided
        work.workspace.check_still(place)
        if not place.absolute.exists():
            raise _refused(self.name, f"{place.path} does not exist. Search a folder or file that does.")
        program = find_ripgrep()
        if program is None:
            return failure(self.name, "command_failed", MISSING)
        hits = _Hits(place)
        ended = await ripgrep(program, _words(arguments, place), work.workspace.root, hits.take)
        if ended.code == 2 and not hits.lines:
            raise _refused(self.name, f"ripgrep says: {' '.join(' '.join(hits.other).split())[:600]}")
        return hits.outcome(arguments, stopped=ended.timed_out)


class _Hits:
    """Lines of ripgrep's, `path NUL number:text`; those of secret files are counted and not shown."""

    def __init__(self, place: Place) -> None:
        self.lines: list[tuple[str, str]] = []
        self.other: list[str] = []
        self._files: Counter[str] = Counter()
        self._secret = 0
        self._show_secrets = place.secret

    def take(self, line: str) -> bool:
        path, separator, rest = line.partition("\0")
        if not separator:
            self.other.append(line)
            return len(self.other) <= MOST_HITS
        path = path.removeprefix("./")
        if not self._show_secrets and _may_be_secret(path):
            self._secret += 1
        else:
            self._files[path] += 1
            if self._files[path] <= MOST_HITS_A_FILE:
                self.lines.append((path, rest))
        return len(self.lines) <= MOST_HITS

    def outcome(self, arguments: SearchArguments, *, stopped: bool) -> Outcome:
        notes = []
        if len(self.lines) > MOST_HITS:
            notes.append(f"[cut after {MOST_HITS} hits: search for more, or in one folder]")
        full = [path for path, hits in self._files.items() if hits > MOST_HITS_A_FILE]
        if full:
            notes.append(f"[cut after {MOST_HITS_A_FILE} hits in {', '.join(full)}]")
        if stopped:
            notes.append(LATE)
        if self._secret:
            notes.append(f"[{counted(self._secret, 'hit')} in files that may hold secrets not shown]")
        many = "more than " if len(self.lines) > MOST_HITS or full or stopped else ""
        shown = [(_row if arguments.rows else ":".join)(line) for line in self.lines[:MOST_HITS]]
        where = next(iter(self._files)) if len(self._files) == 1 else counted(len(self._files), "file")
        summary = f"{many}{counted(len(shown), 'hit')} in {where}" if shown else "no hits"
        text = head("\n".join(shown), MOST_CHARACTERS, "Search in one folder or file.")
        return Outcome(summary, "\n".join([text or f"No hits for {arguments.pattern}.", *notes]))


def _row(line: tuple[str, str]) -> str:
    path, rest = line
    number, _, text = rest.partition(":")
    return json.dumps([path, int(number), text], ensure_ascii=False)


def _words(arguments: SearchArguments, place: Place) -> list[str]:
    words = ["--line-number", "--no-heading", "--with-filename", "--null"]
    words += [f"--max-columns={COLUMNS}", "--max-columns-preview", f"--max-count={MOST_HITS_A_FILE + 1}"]
    words += [] if arguments.regex else ["--fixed-strings"]
    words += _only(arguments.glob) if arguments.glob else []
    # The last glob that matches decides, so these stand last.
    return [*words, *NEVER, f"--regexp={arguments.pattern}", "--", place.path]


def _only(glob: str) -> list[str]:
    # A positive glob would bring ignored files back; a type of our own does not, but knows names only.
    if "/" in glob or glob.startswith("!"):
        return [f"--glob={glob}"]
    return [f"--type-add=wanted:{glob}", "--type=wanted"]


def _may_be_secret(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return is_secret(parts[-1]) or any(part in SECRET_FOLDERS for part in parts)


def _with_folder(what: str, work: Work) -> str:
    return what if work.decided.path == "." else f"{what} in {work.decided.path}"


def _refused(tool: str, message: str) -> ToolRefused:
    return ToolRefused(ToolError(tool=tool, reason="invalid_arguments", message=message))
