"""Which change, intent, turn and model wrote each line of a file."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import convert

from handrail.changes.change_set import sha256
from handrail.changes.trace.line_blocks import block_hash, line_keys
from handrail.changes.trace.logged_changes import AppliedChange, LoggedLine
from handrail.changes.trace.replay import MIN_WEIGHT, NO_OWNER, Contents, OwnedFile, Replay, line_weight
from handrail.changes.trace.trace_file import INTENT_EVOLUTION
from handrail.protocol.errors import PathProblem
from handrail.protocol.values import ChangedRange
from handrail.workspace.files import Workspace

MAX_BLOCK_LINES = 400  # longer blocks are not searched for by their hash


class Author(NamedTuple):
    intent_id: str
    mutation_class: str
    by: str
    model: str
    session_id: str
    turn: int  # number in its session; 0 where it is not known, or there was none
    turn_id: str
    change_id: str
    at: str  # ISO 8601, UTC


class BlamedLine(NamedTuple):
    number: int
    text: bytes
    author: Author | None


class TraceLine(NamedTuple):
    """What blame and report read of a line of the trace."""

    author: Author
    file: str
    to: str
    sha256: str
    ranges: tuple[ChangedRange, ...]
    snapshot: str = ""
    """Of an export: SHA-256 of the version that the ranges are of; empty: it is `sha256`."""


def blame(
    path: str,
    disk: Mapping[str, bytes | None],
    changes: Sequence[AppliedChange],
    contents: Contents,
    trace: Sequence[TraceLine] = (),
) -> list[BlamedLine]:
    """The lines of a file, each with its author; `trace` has lines without a change set in the log.

    `disk` has the present content of this file and of all files that changes name.
    """
    data = disk[path] or b""
    replay = Replay(changes, contents, disk)
    owned = replay.files.get(path) or OwnedFile("", [], [])
    authors: list[Author | None] = [
        author_of(changes[owner]) if owner != NO_OWNER else None for owner in owned.owners
    ]
    others = list(trace)
    for applied in (changes[number] for number in replay.unkept):
        author, files = author_of(applied), applied.change.files
        others += [
            TraceLine(author, each.path, each.destination, each.new_sha256, each.ranges) for each in files
        ]
    _fill_from_trace(authors, path, data, owned.keys, others)
    return _blamed(data, authors)


def blame_from_export(path: str, data: bytes, lines: Sequence[TraceLine]) -> list[BlamedLine]:
    """The same from an export alone: what it has for this very version, or else the blocks that it knows."""
    keys, now = line_keys(data), sha256(data)
    authors: list[Author | None] = [None] * len(keys)
    exact = [line for line in lines if line.snapshot == now]
    paths = [line.to or line.file for line in exact]
    here = path if path in paths else next(iter(paths), "")  # the file may have been renamed since
    for line in exact:
        for each in line.ranges if (line.to or line.file) == here else ():
            _fill(authors, each.start - 1, each.end, line.author)
    others = [line for line in lines if not line.snapshot or not exact]
    _fill_from_trace(authors, path, data, keys, sorted(others, key=lambda line: line.author.at))
    return _blamed(data, authors)


def _fill_from_trace(
    authors: list[Author | None], path: str, data: bytes, keys: Sequence[bytes], lines: Sequence[TraceLine]
) -> None:
    now = sha256(data)
    for line in reversed(lines):
        # It describes exactly this version.
        if not line.snapshot and (line.to or line.file) == path and line.sha256 == now:
            for each in line.ranges:
                _fill(authors, each.start - 1, each.end, line.author)
            break
    _by_blocks(authors, keys, lines)


def _blamed(data: bytes, authors: Sequence[Author | None]) -> list[BlamedLine]:
    texts = data.removesuffix(b"\n").split(b"\n")
    pairs = zip(texts, authors, strict=False)  # a binary file has no lines
    return [BlamedLine(number, text, author) for number, (text, author) in enumerate(pairs, start=1)]


def present_files(workspace: Workspace, paths: Iterable[str]) -> dict[str, bytes | None]:
    """The contents of files, None where there is none; those that cannot be read are left out."""
    found: dict[str, bytes | None] = {}
    for path in paths:
        try:
            found[path] = workspace.read(path).data
        except PathProblem as problem:
            if problem.reason == "file_missing":
                found[path] = None
    return found


def author_of(applied: AppliedChange) -> Author:
    from datetime import UTC, datetime

    change = applied.change
    at = datetime.fromtimestamp(applied.at, UTC).isoformat(timespec="milliseconds")
    who = (change.intent_id, change.mutation_class or INTENT_EVOLUTION, change.by, change.model)
    turn = (applied.session_id, applied.turn, change.turn_id)
    return Author(*who, *turn, change.change_id, at.replace("+00:00", "Z"))


def lines_of_others(data: bytes, known: Sequence[LoggedLine]) -> list[TraceLine]:
    """The lines of writers that are not in the log, oldest first; malformed lines are left out."""
    writers = {line.writer for line in known}
    found = []
    for line in data.splitlines():
        try:
            fields = json.loads(line)
            if fields["writer"] not in writers:
                found.append(trace_line(fields))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return found


def trace_line(fields: dict[str, Any]) -> TraceLine:
    """Raises ValueError, KeyError, TypeError or AttributeError if these are not the fields of a line."""
    names = ("intent_id", "mutation_class", "by", "model", "at", "file", "to", "sha256")
    intent_id, mutation_class, by, model, at, file, to, digest = (str(fields[name]) for name in names)
    session, turn, change = (str(fields["related"].get(name, "")) for name in ("session", "turn", "change"))
    number, snapshot = int(fields.get("turn", 0)), str(fields.get("snapshot", ""))
    author = Author(intent_id, mutation_class, by, model, session, number, turn, change, at)
    return TraceLine(author, file, to, digest, convert(fields["ranges"], tuple[ChangedRange, ...]), snapshot)


def _by_blocks(authors: list[Author | None], keys: Sequence[bytes], lines: Sequence[TraceLine]) -> None:
    """Find blocks by their hashes, wherever they are now; the latest writer counts."""
    wanted: dict[tuple[int, str], Author] = {}
    for line in lines:
        for each in line.ranges:
            wanted[each.end - each.start + 1, each.sha256] = line.author
    for length in sorted({length for length, _ in wanted if 0 < length <= MAX_BLOCK_LINES}, reverse=True):
        for start in range(len(keys) - length + 1):
            if all(authors[start : start + length]):
                continue
            block = keys[start : start + length]
            author = wanted.get((length, block_hash(block)))
            if author and sum(map(line_weight, block)) >= MIN_WEIGHT:
                _fill(authors, start, start + length, author)


def _fill(authors: list[Author | None], start: int, end: int, author: Author) -> None:
    for at in range(max(0, start), min(end, len(authors))):
        authors[at] = authors[at] or author
