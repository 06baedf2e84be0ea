"""What became of the messages that were routed, for setting how sure a decision has to be."""

from collections.abc import Iterable
from typing import NamedTuple

from handrail.protocol.events import ChangeApplied, ChangePrepared, Recorded, Routed, RouteSet, UserMessage
from handrail.sessions.catalogue import list_sessions
from handrail.sessions.handle import Session
from handrail.storage.log import Log

PAGE = 500
BANDS = (0.0, 0.45, 0.70, 0.85)
"""Where the bands of confidence begin."""


class Outcome(NamedTuple):
    """A decision, and what the user made of it."""

    by: str
    route: str
    """Empty: the user was asked."""
    confidence: float
    applied: bool
    """Something of the user's files was changed by it."""
    corrected: bool
    """The user's next word was another route."""


class Count(NamedTuple):
    """Decisions that were made alike."""

    by: str
    route: str
    band: str
    total: int
    applied: int
    corrected: int


def outcomes(log: Log) -> list[Outcome]:
    """Those of all sessions that are not deleted."""
    found: list[Outcome] = []
    for info in list_sessions(log):
        found += outcomes_in(_events(Session(log, info.id)))
    return found


def outcomes_in(events: Iterable[Recorded]) -> list[Outcome]:
    """Those of one session, in its order."""
    found: list[Outcome] = []
    agents: set[str] = set()
    fresh = False  # nothing but the last message's own turn has come since it was routed
    for recorded in events:
        match recorded.event:
            case Routed() as event:
                decision = event.decision
                found.append(
                    Outcome(event.by, event.route, decision.confidence, applied=False, corrected=False)
                )
                fresh = True
            case UserMessage(steering=False):
                fresh = False
            case RouteSet() if found and fresh:
                found[-1] = found[-1]._replace(corrected=True)
            case ChangePrepared(by="agent") as event:
                agents.add(event.change_id)
            case ChangeApplied() as event if event.change_id in agents and found and fresh:
                found[-1] = found[-1]._replace(applied=True)
    return found


def counted(found: Iterable[Outcome]) -> list[Count]:
    """How often each way was gone, the most frequent first."""
    counts: dict[tuple[str, str, str], list[Outcome]] = {}
    for one in found:
        counts.setdefault((one.by, one.route, _band(one)), []).append(one)
    rows = [
        Count(*key, len(each), sum(one.applied for one in each), sum(one.corrected for one in each))
        for key, each in counts.items()
    ]
    return sorted(rows, key=lambda row: (-row.total, row))


def _band(one: Outcome) -> str:
    if one.by != "model":
        return ""
    begin = max(each for each in BANDS if each <= one.confidence)
    end = next((each for each in BANDS if each > begin), 1.0)
    return f"{begin:.2f}-{end:.2f}"


def _events(session: Session) -> Iterable[Recorded]:
    seq = 0
    while page := session.read_after(seq, PAGE):
        seq = page[-1].seq
        yield from page
