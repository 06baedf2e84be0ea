"""The change sets of a session, oldest first, each with its outcome."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Literal, NamedTuple

from msgspec import Struct

from handrail.protocol.errors import UsageProblem
from handrail.protocol.events.base import Recorded
from handrail.protocol.events.changes import ChangeAbandoned, ChangeApplied, ChangePrepared
from handrail.protocol.events.checks import CheckFinished
from handrail.protocol.events.conversation import TurnStarted, UserMessage
from handrail.protocol.events.session import SessionCopied
from handrail.protocol.ids import session_stream
from handrail.sessions.session import event_from_row
from handrail.storage.event_log import Log

PAGE_EVENTS = 500
MAX_NUMBER_DIGITS = 6
"""Up to so many digits are a number; more are the end of an id."""
CHANGE_EVENTS = {
    *("change_prepared", "change_applied", "change_abandoned"),
    *("check_finished", "session_copied", "turn_started", "user_message"),
}

ChangeStatus = Literal["applied", "taken back", "not applied", "unfinished", "elsewhere"]


class PastChange(Struct):
    prepared: ChangePrepared
    seq: int
    at: float
    turn: int
    number: int
    """Its place in the session, from 1; a person names it by this."""
    status: ChangeStatus = "unfinished"
    """`elsewhere`: applied before the session was imported, to other files."""
    why: str = ""
    taken_back_by: str = ""
    verified: bool | None = None
    """Whether the turn's check passed after it; None without a check."""

    @property
    def id(self) -> str:
        return self.prepared.change_id

    @property
    def in_place(self) -> bool:
        """Whether it changed files here, even if another change set undid it later."""
        return self.status in ("applied", "taken back")


def session_changes(log: Log, session_id: str) -> list[PastChange]:
    found: dict[str, PastChange] = {}
    turn = 0
    for one in _change_events(log, session_id):
        match one.event:
            case TurnStarted(number=number):
                turn = number
            case ChangePrepared() as prepared:
                found[prepared.change_id] = PastChange(prepared, one.seq, one.at, turn, len(found) + 1)
            case ChangeApplied(change_id=change_id) if change_id in found:
                found[change_id].status = "applied"
                for each in found[change_id].prepared.takes_back:
                    if each in found:
                        _mark_undone(found, found[each], by=change_id)
            case ChangeAbandoned(change_id=change_id, why=why) if change_id in found:
                found[change_id].status, found[change_id].why = "not applied", why
            case CheckFinished(turn_id=turn_id, passed=passed):
                latest = takewhile(lambda each: each.prepared.turn_id == turn_id, reversed(found.values()))
                for change in latest:
                    change.verified = passed
            case SessionCopied(how="import"):
                for change in found.values():
                    change.status = "elsewhere" if change.in_place else change.status
    return list(found.values())


def find_change(changes: Sequence[PastChange], text: str) -> PastChange:
    """The change set that the text names: a number, an id, or the end of one; empty: the last one."""
    if not changes:
        raise UsageProblem("No file was changed in this session.")
    if not text:
        return changes[-1]
    if text.isdecimal() and len(text) <= MAX_NUMBER_DIGITS:
        if 0 < int(text) <= len(changes):
            return changes[int(text) - 1]
        raise UsageProblem(f"There is no change set {text} in this session: choose 1 to {len(changes)}.")
    matching = [change for change in changes if change.id == text]
    matching = matching or [change for change in changes if change.id.endswith(text)]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        raise UsageProblem(
            f"No change set of this session is called {text!r}. `handrail changes` lists them."
        )
    listed = ", ".join(change.id for change in matching[:5])
    raise UsageProblem(f"{text!r} matches {len(matching)} change sets: {listed}. Give more of the id.")


class RewindPoint(NamedTuple):
    """A point in a session to rewind to: before a user message and its effects."""

    seq: int
    """Change sets after this event are undone."""
    keep: int
    """The last event of the conversation that is kept."""
    turns: int


def find_rewind_point(log: Log, session_id: str, to: str) -> RewindPoint:
    """The point before a change set (by id or the end of one) or before a message (by id)."""
    seq = 0 if to.startswith("m_") else find_change(session_changes(log, session_id), to).seq
    keep = turns = started = 0
    for one in _change_events(log, session_id):
        match one.event:
            case UserMessage(message_id=message_id, steering=steering):
                if not steering:
                    keep, turns = one.seq - 1, started
                if message_id == to:
                    return RewindPoint(one.seq, keep, turns)
            case TurnStarted():
                started += 1
        if one.seq == seq:
            return RewindPoint(seq - 1, keep, turns)
    raise UsageProblem(f"This session has no message with the id {to!r}.")


def message_of_turn(log: Log, session_id: str, number: int) -> str:
    message_id = ""
    for one in _change_events(log, session_id):
        match one.event:
            case UserMessage(steering=False) as message:
                message_id = message.message_id
            case TurnStarted() as turn if turn.number == number:
                return message_id
    raise UsageProblem(f"There is no turn {number} in this session.")


def _mark_undone(found: dict[str, PastChange], change: PastChange, by: str) -> None:
    """Undoing a change set that undid others re-applies those."""
    change.status, change.taken_back_by = "taken back", by
    for each in change.prepared.takes_back:
        if each in found and found[each].taken_back_by == change.id:
            found[each].status, found[each].taken_back_by = "applied", ""


def _change_events(log: Log, session_id: str) -> Iterator[Recorded]:
    after = 0
    while rows := log.read(session_stream(session_id), after=after, limit=PAGE_EVENTS):
        yield from (event_from_row(row) for row in rows if row.type in CHANGE_EVENTS)
        after = rows[-1].seq
