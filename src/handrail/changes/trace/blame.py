"""Which change, and with it which intent, turn and model, wrote each line of a file."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from handrail.changes.change_set import sha256
from handrail.changes.trace.blocks import block_hash
from handrail.changes.trace.known import Applied, KnownLine
from handrail.changes.trace.line import EVOLUTION
from handrail.changes.trace.moving import ENOUGH, NOBODY, weight
from handrail.changes.trace.replay import Contents, Owned, Replay
from handrail.protocol.values import ChangedRange

LONGEST = 400
"""Lines of a block that is looked for by its hash."""


class Author(NamedTuple):
    """Who a line is by."""

    intent_id: str
    mutation_class: str
    by: str
    model: str
    session_id: str
    turn: int
    """Number in its session; 0 where that is not known here, or there was none."""
    turn_id: str
    change_id: str
    at: str
    """ISO 8601, UTC."""


class BlamedLine(NamedTuple):
    number: int
    text: bytes
    author: Author | None
    """None: nobody that is known."""


class TraceLine(NamedTuple):
    """A line of the trace, as far as blame and report read it."""

    author: Author
    file: str
    to: str
    sha256: str
    ranges: tuple[ChangedRange, ...]


def blame(
    path: str,
    disk: Mapping[str, bytes | None],
    changes: Sequence[Applied],
    contents: Contents,
    trace: Sequence[TraceLine] = (),
) -> list[BlamedLine]:
    """The lines of a file, each with its author; `trace` has lines of which the log has no change set.

    `disk` are all files that changes speak of, as they are now, this one among them.
    """
    data = disk[path] or b""
    replay = Replay(changes, contents, disk)
    owned = replay.files.get(path) or Owned("", [], [])
    authors: list[Author | None] = [
        author_of(changes[owner]) if owner != NOBODY else None for owner in owned.owners
    ]
    others = [*trace, *(line for number in replay.unkept for line in lines_from(changes[number]))]
    _by_version(authors, path, sha256(data), others)
    _by_blocks(authors, owned.keys, others)
    texts = data.removesuffix(b"\n").split(b"\n")
    pairs = zip(texts, authors, strict=False)  # what is no text has no lines
    return [BlamedLine(number, text, author) for number, (text, author) in enumerate(pairs, start=1)]


def author_of(applied: Applied) -> Author:
    """Whose a change set is."""
    from datetime import UTC, datetime

    change = applied.change
    at = datetime.fromtimestamp(applied.at, UTC).isoformat(timespec="milliseconds")
    return Author(
        change.intent_id,
        change.mutation_class or EVOLUTION,
        change.by,
        change.model,
        applied.session_id,
        applied.turn,
        change.turn_id,
        change.change_id,
        at.replace("+00:00", "Z"),
    )


def lines_from(applied: Applied) -> Iterator[TraceLine]:
    """A change set as the trace would tell it."""
    author = author_of(applied)
    for file in applied.change.files:
        yield TraceLine(author, file.path, file.destination, file.new_sha256, file.ranges)


def lines_of_others(data: bytes, known: Sequence[KnownLine]) -> list[TraceLine]:
    """What writers wrote that are not known here, oldest first; what is no line of a trace is left out."""
    writers = {line.writer for line in known}
    found = []
    for line in data.splitlines():
        try:
            said = json.loads(line)
            if said["writer"] not in writers:
                found.append(_read(said))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return found


def _read(said: dict[str, Any]) -> TraceLine:
    related = {key: str(value) for key, value in said["related"].items()}
    author = Author(
        intent_id=str(said["intent_id"]),
        mutation_class=str(said["mutation_class"]),
        by=str(said["by"]),
        model=str(said["model"]),
        session_id=related.get("session", ""),
        turn=0,
        turn_id=related.get("turn", ""),
        change_id=related.get("change", ""),
        at=str(said["at"]),
    )
    ranges = tuple(map(ChangedRange.model_validate, said["ranges"]))
    return TraceLine(author, str(said["file"]), str(said["to"]), str(said["sha256"]), ranges)


def _by_version(authors: list[Author | None], path: str, now: str, lines: Sequence[TraceLine]) -> None:
    """Where the file is exactly what a line speaks of, its ranges hold as they are."""
    for line in reversed(lines):
        if (line.to or line.file) == path and line.sha256 == now:
            for each in line.ranges:
                _give(authors, each.start - 1, each.end, line.author)
            return


def _by_blocks(authors: list[Author | None], keys: Sequence[bytes], lines: Sequence[TraceLine]) -> None:
    """Blocks that are found again by their hashes, wherever they are now; the latest writer counts."""
    wanted: dict[tuple[int, str], Author] = {}
    for line in lines:
        for each in line.ranges:
            wanted[each.end - each.start + 1, each.sha256] = line.author
    for length in sorted({length for length, _ in wanted if 0 < length <= LONGEST}, reverse=True):
        for start in range(len(keys) - length + 1):
            if all(authors[start : start + length]):
                continue
            block = keys[start : start + length]
            author = wanted.get((length, block_hash(block)))
            if author and sum(map(weight, block)) >= ENOUGH:
                _give(authors, start, start + length, author)


def _give(authors: list[Author | None], start: int, end: int, author: Author) -> None:
    for at in range(max(0, start), min(end, len(authors))):
        authors[at] = authors[at] or author
