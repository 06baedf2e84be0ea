"""Runs of agents, past and paused, as the log tells of them."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from handrail.protocol.events import (
    BreakoutPending,
    Event,
    GateFailed,
    Recorded,
    RequestStarted,
    RunBrokenOff,
    RunCompleted,
    RunFailed,
    RunPaused,
    RunRepaired,
    RunResumed,
    RunStarted,
    StageCompleted,
    StageStarted,
)
from handrail.sessions.handle import recorded
from handrail.sessions.standing import Standing
from handrail.storage.log import Log

TOLD = (
    RunStarted,
    StageStarted,
    RequestStarted,
    StageCompleted,
    GateFailed,
    RunRepaired,
    RunPaused,
    RunResumed,
    BreakoutPending,
    RunBrokenOff,
    RunCompleted,
    RunFailed,
)
TYPES = frozenset(kind.model_fields["type"].default for kind in TOLD)
COUNTED = frozenset({"request_started", "answered", "request_failed", "side_asked", "side_answered"})
"""What says what a run has spent."""
MOVED = frozenset({"rewound", "redone", "session_copied", "turn_started", "batch_started"})
"""After these a run may stand elsewhere."""

End = Literal["finished", "failed", "left", "waiting", "open"]


class PastRun(NamedTuple):
    """One run, with its events in order."""

    run_id: str
    session_id: str
    pipeline: str
    question: str
    sha256: str
    began: float
    ended: float
    """Of its last event."""
    end: End
    tokens: int
    usd: float | None
    """None: a price is not known."""
    events: tuple[Recorded, ...]

    @property
    def stages(self) -> list[str]:
        """Those that were completed, each once."""
        done = (one.event.stage for one in self.events if isinstance(one.event, StageCompleted))
        return list(dict.fromkeys(done))


def past_runs(log: Log, pipeline: str = "") -> list[PastRun]:
    """Runs that are more than the conversation, the latest first; of one pipeline where it is named."""
    found = [run for head in log.heads("session:") for run in _of_session(log, head.stream)]
    wanted = [run for run in found if not pipeline or run.pipeline == pipeline]
    return sorted(wanted, key=lambda run: run.began, reverse=True)


def _of_session(log: Log, stream: str) -> Iterator[PastRun]:
    rows = [row for row in log.read(stream) if row.type in TYPES | COUNTED | MOVED]
    if not any(row.type == "run_started" for row in rows):
        return
    told, spent = dict[str, list[Recorded]](), dict[str, tuple[int, float | None]]()
    found = [recorded(row) for row in rows]
    standing = Standing(found)
    for one in found:
        before = standing.runs.current
        standing.apply(one)
        runs = standing.runs
        of_request = runs.current.run_id if runs.current else ""
        run_id = getattr(one.event, "run_id", of_request)
        if isinstance(one.event, TOLD):
            told.setdefault(run_id, []).append(one)
        for state in (before, runs.current, runs.paused):
            if state:
                known = all(each.known for each in state.spent.values())
                spent[state.run_id] = state.tokens(), state.usd() if known else None
    waiting = standing.runs.paused.run_id if standing.runs.paused else ""
    for run_id, events in told.items():
        started = events[0].event
        if isinstance(started, RunStarted) and not started.conversational:
            tokens, usd = spent.get(run_id, (0, 0.0))
            yield PastRun(
                run_id=run_id,
                session_id=stream.partition(":")[2],
                pipeline=started.pipeline,
                question=started.question,
                sha256=started.sha256,
                began=events[0].at,
                ended=events[-1].at,
                end=_end(events[-1].event, waits=run_id == waiting),
                tokens=tokens,
                usd=usd,
                events=tuple(events),
            )


def _end(last: Event, *, waits: bool) -> End:
    if waits:
        return "waiting"
    match last:
        case RunCompleted():
            return "finished"
        case RunFailed():
            return "failed"
        case RunBrokenOff() | RunPaused() | BreakoutPending():
            return "left"  # one that waits no more was left by a rewind
        case _:
            return "open"
