"""How a run ends in the log, whatever ends it."""

from handrail.engine.ending import Ending
from handrail.engine.pipeline.outputs import Stored, outputs_of
from handrail.protocol.errors import GiveUp
from handrail.protocol.events import Event, RunBrokenOff, RunCompleted, RunFailed
from handrail.sessions.run_state import RunState


def run_end(
    run: RunState | None, stored: Stored, ending: Ending, text: str = "", tells: str = ""
) -> list[Event]:
    """The events that end the run with its turn; none where it goes on, or where there is none.

    `text` is for the user, `tells` for later turns where the conversation has the answer.
    """
    if run is None or ending.reason == "waiting":
        return []
    if ending.reason == "answered":
        summary = tells if run.spoke else told(run, stored, "finished")
        return [RunCompleted(run_id=run.run_id, text=text, summary=summary)]
    partly = f"{ending.reason}, partial: {ending.detail.rstrip('.')}"
    return [
        RunFailed(
            run_id=run.run_id,
            reason=ending.reason,
            detail=ending.detail,
            summary=told(run, stored, partly),
        )
    ]


def broken_off(run: RunState, stored: Stored) -> RunBrokenOff:
    return RunBrokenOff(run_id=run.run_id, summary=told(run, stored, "the user left it, partial"))


def told(run: RunState, stored: Stored, how: str) -> str:
    """What later turns are told; nothing of a run that the conversation itself tells of."""
    if run.conversational or run.spoke:
        return ""
    from handrail.engine.pipeline.summary import summary

    try:
        outputs = outputs_of(run, stored, {})
    except GiveUp:
        outputs = {name: done.output for name, done in run.stages.items() if done.output is not None}
    return summary(run, outputs, how)
