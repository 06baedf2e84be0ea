"""What the log knows: every applied change set of the workspace, and every line that it has in the trace."""

import json
from collections.abc import Container, Iterator
from typing import Any, NamedTuple

from handrail.protocol.events import ChangePrepared
from handrail.protocol.upcast import load_event, unpack_event
from handrail.protocol.values import TraceMark
from handrail.storage.log import Log, Row

PAGE = 2_000
TOLD = {"change_prepared", "change_applied", "session_copied", "turn_started"}


class KnownLine(NamedTuple):
    """A line of the trace that this log has the hash of."""

    sha256: str
    writer: str
    number: int
    file: str
    change_id: str


class Applied(NamedTuple):
    """A change set that was applied, with where it was made."""

    change: ChangePrepared
    session_id: str
    turn: int
    """Number of the turn in its session; 0 outside of one."""
    at: float


class _Made(NamedTuple):
    row: Row
    turn: int
    applied_at: int
    """Milliseconds."""


def applied_changes(log: Log) -> list[Applied]:
    """All of them, of all sessions, in the order in which they were applied."""
    found = []
    for made in _all_made(log):
        change = load_event(made.row.version, made.row.data)
        if isinstance(change, ChangePrepared):
            session_id = made.row.stream.partition(":")[2]
            found.append(Applied(change, session_id, made.turn, made.applied_at / 1000))
    return found


def known_lines(log: Log) -> list[KnownLine]:
    """All lines that are to be in the file, wherever that is now, in the order of their chains."""
    found: list[KnownLine] = []
    for made in _all_made(log):
        found += _lines(json.loads(made.row.data))
    for row in log.begun():
        if row.outcome == "applied":
            change = unpack_event(row.data)
            found += _lines(change.model_dump(mode="json"))
    return sorted(dict.fromkeys(found), key=lambda line: (line.writer, line.number))


def _all_made(log: Log) -> list[_Made]:
    settled = {row.change for row in log.begun() if row.outcome == "applied"}
    made = [each for head in log.heads("session:") for each in _made(log, head.stream, settled)]
    # Begun one after another, under the lock of the workspace. When a session heard of the end is no order:
    # after a crash that may be long after others went on.
    return sorted(made, key=lambda each: (each.row.at, each.row.seq))


def _made(log: Log, stream: str, settled: Container[str]) -> Iterator[_Made]:
    """The applied change sets of a session; what it was copied from has its own.

    `settled` are those that are known to be applied, and their session has yet to be told.
    """
    begun: dict[str, tuple[Row, int]] = {}
    made: list[_Made] = []
    turn = after = 0
    while rows := log.read(stream, after=after, limit=PAGE):
        after = rows[-1].seq
        for row in rows:
            if row.type not in TOLD:
                continue
            data = json.loads(row.data)
            if row.type == "session_copied":
                begun, made = {}, []
            elif row.type == "turn_started":
                turn = data["number"]
            elif row.type == "change_prepared":
                begun[data["change_id"]] = row, turn if data["turn_id"] else 0
            elif found := begun.pop(data["change_id"], None):
                made.append(_Made(*found, row.at))
    yield from made
    yield from (_Made(row, turn, row.at) for change, (row, turn) in begun.items() if change in settled)


def _lines(change: dict[str, Any]) -> Iterator[KnownLine]:
    if not change.get("trace"):
        return
    mark = TraceMark.model_validate(change["trace"])
    pairs = zip(mark.lines, change["files"], strict=True)
    for number, (sha256, file) in enumerate(pairs, start=mark.number):
        yield KnownLine(sha256, mark.writer, number, file["path"], change["change_id"])
