"""The change sets of a session, oldest first: a fold of its events, made when somebody asks for it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal, NamedTuple

from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import (
    ChangeAbandoned,
    ChangeApplied,
    ChangePrepared,
    CheckFinished,
    Recorded,
    SessionCopied,
    TurnStarted,
    UserMessage,
)
from handrail.protocol.ids import session_stream
from handrail.sessions.handle import recorded
from handrail.storage.log import Log

PAGE = 500
LONGEST_NUMBER = 6
"""Digits alone, up to so many, are a number; more of them are the end of an id."""
SPOKEN = {
    "change_prepared",
    "change_applied",
    "change_abandoned",
    "check_finished",
    "session_copied",
    "turn_started",
    "user_message",
}

Status = Literal["applied", "taken back", "not applied", "unfinished", "elsewhere"]


@dataclass(slots=True)
class Change:
    """A change set with what has become of it."""

    prepared: ChangePrepared
    seq: int
    at: float
    turn: int
    number: int
    """Its place in the session, from 1: what a person calls it."""
    status: Status = "unfinished"
    """`elsewhere`: applied in the session that this one was imported from, which had other files."""
    why: str = ""
    """Of one that was not applied."""
    taken_back_by: str = ""
    verified: bool | None = None
    """Whether the check of its turn passed after it; None without one."""

    @property
    def id(self) -> str:
        return self.prepared.change_id

    @property
    def in_place(self) -> bool:
        """Whether it has changed files here, be it that another set took it back."""
        return self.status in ("applied", "taken back")


def changes_of(log: Log, session_id: str) -> list[Change]:
    """All change sets of a session, each with its outcome."""
    found: dict[str, Change] = {}
    turn = 0
    for one in _spoken(log, session_id):
        match one.event:
            case TurnStarted(number=number):
                turn = number
            case ChangePrepared() as prepared:
                found[prepared.change_id] = Change(prepared, one.seq, one.at, turn, len(found) + 1)
            case ChangeApplied(change_id=change_id) if change_id in found:
                _applied(found, found[change_id])
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


def find_change(changes: Sequence[Change], text: str) -> Change:
    """The change set that is meant: a number, an id, or the end of one; the last when empty."""
    if not changes:
        raise UsageProblem("No file was changed in this session.")
    if not text:
        return changes[-1]
    if text.isdecimal() and len(text) <= LONGEST_NUMBER:
        if 0 < int(text) <= len(changes):
            return changes[int(text) - 1]
        raise UsageProblem(f"There is no change set {text} in this session: they are 1 to {len(changes)}.")
    matching = [change for change in changes if change.id == text]
    matching = matching or [change for change in changes if change.id.endswith(text)]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        raise UsageProblem(
            f"No change set of this session is called {text!r}; `handrail changes` lists them."
        )
    listed = ", ".join(change.id for change in matching[:5])
    raise UsageProblem(f"{text!r} means {len(matching)} change sets: {listed}. Give more of the id.")


class Point(NamedTuple):
    """A place in a session that can be gone back to: before a message of the user's and what it led to."""

    seq: int
    """Change sets after this event come after the point."""
    keep: int
    """The last event of the conversation that stays."""
    turns: int
    """How many turns the conversation then has."""


def point_before(log: Log, session_id: str, to: str) -> Point:
    """The point that a change set's id, or the end of one, or a message's id means."""
    seq = 0 if to.startswith("m_") else find_change(changes_of(log, session_id), to).seq
    keep = turns = started = 0
    for one in _spoken(log, session_id):
        match one.event:
            case UserMessage(message_id=message_id, steering=steering):
                if not steering:
                    keep, turns = one.seq - 1, started
                if message_id == to:
                    return Point(one.seq, keep, turns)
            case TurnStarted():
                started += 1
        if one.seq == seq:
            return Point(seq - 1, keep, turns)
    raise UsageProblem(f"No message of this session has the id {to!r}.")


def message_of_turn(log: Log, session_id: str, number: int) -> str:
    """The id of the message that began a turn."""
    message_id = ""
    for one in _spoken(log, session_id):
        match one.event:
            case UserMessage(steering=False) as message:
                message_id = message.message_id
            case TurnStarted() as turn if turn.number == number:
                return message_id
    raise UsageProblem(f"There is no turn {number} in this session.")


def _applied(found: dict[str, Change], change: Change) -> None:
    change.status = "applied"
    for each in change.prepared.takes_back:
        if each in found:
            _turn_over(found, found[each], by=change.id)


def _turn_over(found: dict[str, Change], change: Change, by: str) -> None:
    """What takes back a change set that itself took others back brings those to life again."""
    change.status, change.taken_back_by = "taken back", by
    for each in change.prepared.takes_back:
        if each in found and found[each].taken_back_by == change.id:
            found[each].status, found[each].taken_back_by = "applied", ""


def _spoken(log: Log, session_id: str) -> Iterator[Recorded]:
    after = 0
    while rows := log.read(session_stream(session_id), after=after, limit=PAGE):
        yield from (recorded(row) for row in rows if row.type in SPOKEN)
        after = rows[-1].seq
