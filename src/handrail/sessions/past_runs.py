"""Runs of agents, finished and paused, read from the log."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from handrail.protocol.events import Recorded
from handrail.protocol.events.runs import RunStarted, StageCompleted
from handrail.sessions.run_state import RewindableRuns
from handrail.sessions.session import event_from_row
from handrail.storage.event_log import Log

RUN_EVENTS = {
    *("run_started", "stage_started", "request_started", "stage_completed", "gate_failed", "run_repaired"),
    *("run_paused", "run_resumed", "breakout_pending", "run_broken_off", "run_completed", "run_failed"),
}
SPENDING_EVENTS = {"request_started", "answered", "request_failed", "side_asked", "side_answered"}
STATE_CHANGING_EVENTS = {"rewound", "redone", "session_copied", "turn_started", "batch_started"}

RunOutcome = Literal["finished", "failed", "left", "waiting", "open"]
OUTCOMES: dict[str, RunOutcome] = {
    "run_completed": "finished",
    "run_failed": "failed",
    "run_broken_off": "left",
    # A paused run that does not wait any more was left by a rewind.
    "run_paused": "left",
    "breakout_pending": "left",
}
"""By the type of a run's last event."""


class PastRun(NamedTuple):
    run_id: str
    session_id: str
    pipeline: str
    question: str
    sha256: str
    began: float
    ended: float
    end: RunOutcome
    tokens: int
    usd: float | None
    """None if a price is not known."""
    events: tuple[Recorded, ...]

    @property
    def stages(self) -> list[str]:
        done = (one.event.stage for one in self.events if isinstance(one.event, StageCompleted))
        return list(dict.fromkeys(done))


def past_runs(log: Log, pipeline: str = "") -> list[PastRun]:
    """Runs outside the conversation, the latest first; of one pipeline if it is named."""
    found = [run for head in log.heads("session:") for run in runs_of_session(log, head.stream)]
    wanted = [run for run in found if not pipeline or run.pipeline == pipeline]
    return sorted(wanted, key=lambda run: run.began, reverse=True)


def runs_of_session(log: Log, stream: str) -> Iterator[PastRun]:
    """The runs of one session outside its conversation, in order."""
    wanted = RUN_EVENTS | SPENDING_EVENTS | STATE_CHANGING_EVENTS
    rows = [row for row in log.read(stream) if row.type in wanted]
    if not any(row.type == "run_started" for row in rows):
        return
    by_run, spent = dict[str, list[Recorded]](), dict[str, tuple[int, float | None]]()
    found = [event_from_row(row) for row in rows]
    rewindable = RewindableRuns(found)
    for one in found:
        before = rewindable.runs.current
        rewindable.apply(one)
        runs = rewindable.runs
        if one.event.type in RUN_EVENTS:
            current = runs.current.run_id if runs.current else ""
            by_run.setdefault(getattr(one.event, "run_id", current), []).append(one)
        for state in (before, runs.current, runs.paused):
            if state:
                known = all(each.known for each in state.spent.values())
                spent[state.run_id] = state.tokens(), state.usd() if known else None
    waiting = rewindable.runs.paused.run_id if rewindable.runs.paused else ""
    for run_id, events in by_run.items():
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
                end="waiting" if run_id == waiting else OUTCOMES.get(events[-1].event.type, "open"),
                tokens=tokens,
                usd=usd,
                events=tuple(events),
            )
