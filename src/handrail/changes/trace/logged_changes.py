"""The applied change sets in the log, and the trace lines they should have."""

import json
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any, NamedTuple, overload

from msgspec import convert

from handrail.protocol.events import ChangePrepared
from handrail.protocol.upcast import load_event, unpack_event
from handrail.protocol.values import TraceMark, to_dict
from handrail.storage.event_log import Log, Row

PAGE = 2_000
READ_TYPES = {"change_prepared", "change_applied", "session_copied", "turn_started"}


class LoggedLine(NamedTuple):
    sha256: str
    writer: str
    number: int
    file: str
    change_id: str


class AppliedChange(NamedTuple):
    change: ChangePrepared
    session_id: str
    turn: int  # number of the turn in its session; 0 outside a turn
    at: float


class _LoggedChange(NamedTuple):
    row: Row
    turn: int
    applied_at: int  # milliseconds

    @property
    def loaded(self) -> AppliedChange:
        change = load_event(self.row.version, self.row.data)
        if not isinstance(change, ChangePrepared):
            raise AssertionError("the row of a change set holds another event")
        return AppliedChange(change, self.row.stream.partition(":")[2], self.turn, self.applied_at / 1000)


Note = Callable[[dict[str, Any]], None]


def applied_changes(log: Log) -> list[AppliedChange]:
    """All of them, of all sessions, in the order in which they were applied."""
    return [logged.loaded for logged in _all_logged(log)]


class StoredChanges(Sequence[AppliedChange]):
    """The same, each loaded when it is needed: a long log need not fit into memory."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.paths: dict[str, None] = {}
        """All paths that they name."""
        self.writers: set[str] = set()
        """Writers of the trace whose lines are in the log."""
        self._places = _all_logged(log, self._note)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, at: int) -> AppliedChange: ...
    @overload
    def __getitem__(self, at: slice) -> list[AppliedChange]: ...
    def __getitem__(self, at: int | slice) -> AppliedChange | list[AppliedChange]:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        place = self._places[at]
        (row,) = self._log.read(place.row.stream, after=place.row.seq - 1, limit=1)
        return place._replace(row=row).loaded

    def _note(self, change: dict[str, Any]) -> None:
        for file in change["files"]:
            self.paths |= dict.fromkeys(filter(None, (file["path"], file.get("destination"))))
        if mark := change.get("trace"):
            self.writers.add(mark["writer"])


def logged_lines(log: Log) -> list[LoggedLine]:
    """All lines that the trace file should have, in the order of their chains."""
    found: list[LoggedLine] = []
    for logged in _all_logged(log):
        found += _lines(json.loads(logged.row.data))
    for row in log.begun():
        if row.outcome == "applied":
            found += _lines(to_dict(unpack_event(row.data)))
    return sorted(dict.fromkeys(found), key=lambda line: (line.writer, line.number))


def _all_logged(log: Log, note: Note | None = None) -> list[_LoggedChange]:
    """With `note`, which is told of each change, the rows are without data."""
    settled = {row.change for row in log.begun() if row.outcome == "applied"}
    found = [each for head in log.heads("session:") for each in _logged(log, head.stream, settled, note)]
    # They were begun one after another, under the workspace lock. The time of the outcome gives no order:
    # after a crash a session may record it long after others went on.
    return sorted(found, key=lambda each: (each.row.at, each.row.seq))


def _logged(log: Log, stream: str, settled: Container[str], note: Note | None) -> list[_LoggedChange]:
    """The applied change sets of a session, without those of the session it was copied from.

    `settled` are applied change sets whose session has not recorded it yet.
    """
    begun: dict[str, tuple[Row, int]] = {}
    applied: list[_LoggedChange] = []
    turn = after = 0
    while rows := log.read(stream, after=after, limit=PAGE):
        after = rows[-1].seq
        for row in rows:
            if row.type not in READ_TYPES:
                continue
            data = json.loads(row.data)
            if row.type == "session_copied":
                begun, applied = {}, []
            elif row.type == "turn_started":
                turn = data["number"]
            elif row.type == "change_prepared":
                if note:
                    note(data)
                slim = row._replace(stream=stream, data="", hash=b"") if note else row
                begun[data["change_id"]] = slim, turn if data["turn_id"] else 0
            elif found := begun.pop(data["change_id"], None):
                applied.append(_LoggedChange(*found, row.at))
    late = (found for change, found in begun.items() if change in settled)
    return [*applied, *(_LoggedChange(row, turn, row.at) for row, turn in late)]


def _lines(change: dict[str, Any]) -> Iterator[LoggedLine]:
    if not change.get("trace"):
        return
    mark = convert(change["trace"], TraceMark)
    pairs = zip(mark.lines, change["files"], strict=True)
    for number, (sha256, file) in enumerate(pairs, start=mark.number):
        yield LoggedLine(sha256, mark.writer, number, file["path"], change["change_id"])
