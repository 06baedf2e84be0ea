"""How a turn and its run end: the reason, the text for the user, events, and the summary for later turns."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from handrail.engine.pipeline import Outputs
from handrail.engine.plans import NOTHING_OFFERED, OfferedSteps
from handrail.engine.run_record import Stored, outputs_of
from handrail.protocol.errors import GiveUp, ToolError
from handrail.protocol.events import (
    Answered,
    Event,
    HookSpoke,
    RunBrokenOff,
    RunCompleted,
    RunFailed,
    ToolFinished,
    TurnFinished,
)
from handrail.protocol.events.tools import BatchEnd
from handrail.protocol.values import FinishReason, StructuredAnswer, ToolCall
from handrail.sessions.run_state import RunState
from handrail.sessions.session import Session
from handrail.sessions.transcript import AssistantEntry
from handrail.sessions.turn_state import TurnState
from handrail.tools.tool import error_json

if TYPE_CHECKING:
    from handrail.tools.gate.hooks import Hooks

MOST_DEMANDS = 3  # how often hooks can make a turn go on
HOOK_STILL_DEMANDS = f"The hook {{hook}} still demands more work, after {MOST_DEMANDS} rounds of it: {{text}}"
HOOK_DEMANDED = "The hook {hook} does not accept the end of the run: {text}"
HOOK_FAILED = "The hook {hook} failed and did not check this turn: {text}. Fix it or remove it."
OUTCOME_UNKNOWN = "Handrail ended while this ran: it may have happened in full, in part or not at all."
BATCH_ENDS: dict[FinishReason, BatchEnd] = {"cancelled": "cancelled", "interrupted": "interrupted"}
CUTS = {
    "length": "The answer reached its length limit",
    "filtered": "The provider withheld the rest of the answer",
    "cut": "The provider ended the answer for a reason that Handrail does not know",
}


class Ending(NamedTuple):
    reason: FinishReason
    detail: str = ""  # for the user: why, and what to do


class TurnEnd(NamedTuple):
    """The end of a turn, and what is committed together with it."""

    ending: Ending
    events: Sequence[Event] = ()
    blobs: Sequence[bytes] = ()


def cut_short(answered: Answered) -> str:
    """For the user: that the answer is incomplete, and what to do; empty where it is complete."""
    cut = CUTS.get(answered.end, "")
    if answered.recovered:
        return f"{cut or 'The answer was cut'}. {recovered_note(answered.recovered)}"
    if not cut:
        return ""
    calls = f". None of its calls ran; they can be read in part: {'; '.join(answered.blocked)}"
    return f"{cut}{calls if answered.blocked else ''}. /continue asks for the rest, /retry for a new answer."


def recovered_note(recovered: StructuredAnswer) -> str:
    """For the user: what was kept of a cut answer, and what to do."""
    from handrail.models.reading.cut_answer import count_parts

    made = ", of which no change is made" if recovered.changes else ""
    ways = "/continue accepts this and asks for the rest, /retry repeats the request"
    return f"Recovered: {count_parts(recovered)}{made}. {ways}."


# The user's hooks at the end


async def end_by_hooks(hooks: "Hooks | None", session: Session, ending: Ending) -> Ending | None:
    """The ending that the user's hooks allow; None: one demands more work, and the model is told so."""
    spoke = await _ask_hooks(hooks, session, ending)
    if spoke is None:
        return ending
    if spoke.did != "failed" and session.turn.demands >= MOST_DEMANDS:
        return Ending("unverified", HOOK_STILL_DEMANDS.format(hook=spoke.hook, text=spoke.text))
    session.append(spoke)
    if spoke.did != "failed":
        return None
    return Ending("unverified", HOOK_FAILED.format(hook=spoke.hook, text=spoke.text))


async def end_of_run_by_hooks(hooks: "Hooks | None", session: Session, ending: Ending) -> Ending:
    """The same where the last stage was not in the conversation: no model can be sent back to work."""
    spoke = await _ask_hooks(hooks, session, ending)
    if spoke is None:
        return ending
    session.append(spoke)
    text = HOOK_FAILED if spoke.did == "failed" else HOOK_DEMANDED
    return Ending("unverified", text.format(hook=spoke.hook, text=spoke.text))


async def _ask_hooks(hooks: "Hooks | None", session: Session, ending: Ending) -> HookSpoke | None:
    if hooks is None or ending.reason != "answered":
        return None
    replies = (entry.text for entry in reversed(session.transcript) if isinstance(entry, AssistantEntry))
    return await hooks.before_end(session.turn.turn_id, next(replies, ""))


# Events that end a turn


def unfinished_call(
    turn_id: str,
    call: ToolCall,
    status: Literal["cancelled", "interrupted"],
    message: str,
    summary: str = "not run",
    *,
    apart: bool = False,
) -> ToolFinished:
    """The end of a call that was cancelled or interrupted, with a message for the model."""
    error = ToolError(tool=call.name, reason=status, message=message)
    return ToolFinished(
        turn_id=turn_id,
        call_id=call.id,
        tool=call.name,
        status=status,
        summary=summary,
        content=error_json(error),
        error=error,
        apart=apart,
    )


def turn_finished(
    turn: TurnState, ending: Ending, seconds: float, offered: OfferedSteps = NOTHING_OFFERED
) -> TurnFinished:
    return TurnFinished(
        turn_id=turn.turn_id,
        reason=ending.reason,
        detail=ending.detail,
        usage=turn.usage,
        cost_usd=turn.cost_usd if turn.cost_known else None,
        seconds=seconds,
        steps=turn.steps,
        next_steps=offered.steps,
        offered_by=offered.by,
    )


def early_end(session: Session, ending: Ending, now: float) -> list[Event]:
    """The events that end a turn early: the model is told of each call that will not run."""
    turn = session.state.turn
    if turn is None:
        return []
    return [
        *(
            unfinished_call(turn.turn_id, state.call, "cancelled", f"Not run: {ending.detail}")
            for state in turn.unfinished()
        ),
        *batch_end(turn, ending),
        *run_end(session.state.run, session.log.blob, ending),
        turn_finished(turn, ending, seconds=turn.seconds(now)),
    ]


def batch_end(turn: TurnState, ending: Ending) -> list[Event]:
    """The end of the user's batch of commands, where the turn ends before it."""
    if turn.batch is None or turn.batch.finished:
        return []
    return [turn.batch.closed(turn.turn_id, BATCH_ENDS.get(ending.reason, "stopped"), ending.detail)]


# Events that end a run


def run_end(
    run: RunState | None, stored: Stored, ending: Ending, text: str = "", tells: str = ""
) -> list[Event]:
    """The events that end the run with its turn; none where it waits, or where there is none.

    `text` is for the user, `tells` for later turns, in place of a summary.
    """
    if run is None or ending.reason == "waiting":
        return []
    if ending.reason == "answered":
        summary = tells if tells or run.spoke else _summary(run, stored, "finished")
        return [RunCompleted(run_id=run.run_id, text=text, summary=summary)]
    summary = _summary(run, stored, f"{ending.reason}, partial: {ending.detail.rstrip('.')}")
    return [RunFailed(run_id=run.run_id, reason=ending.reason, detail=ending.detail, summary=summary)]


def broken_off(run: RunState, stored: Stored) -> RunBrokenOff:
    """The event that ends a run which the user has left."""
    return RunBrokenOff(run_id=run.run_id, summary=_summary(run, stored, "the user left it, partial"))


def _summary(run: RunState, stored: Stored, how: str) -> str:
    """What later turns are told about the run; empty where the conversation itself has it."""
    if run.conversational or run.spoke:
        return ""
    try:
        outputs = outputs_of(run, stored, {})
    except GiveUp:
        outputs = {name: done.output for name, done in run.stages.items() if done.output is not None}
    return run_summary(run, outputs, how)


# The summary of a run, made by code from the outputs

SUMMARY_CHARACTERS, HOW_CHARACTERS, QUESTION_CHARACTERS, USER_CHARACTERS = 1_500, 300, 300, 200
FIELD_CHARACTERS = (1_200, 800, 500)  # characters of one field: the first number that leaves room for all
FIELD_TITLES = {
    "Findings": re.compile(r"finding|fact|evidence|answer|result|quote", re.IGNORECASE),
    "Conclusions": re.compile(r"conclu|summar|recommend|verdict|decision", re.IGNORECASE),
    "Scores": re.compile(r"score|confidence|rating|coverage|grade", re.IGNORECASE),
}


def run_summary(run: RunState, outputs: Outputs, how: str) -> str:
    """The run in a few lines; `how` says how it ended. What does not fit is cut off at the end."""
    # The last stages first: their findings count most.
    fields = [
        (f"{stage}.{name}", _field_words(value))
        for stage, output in reversed(list(outputs.items()))
        for name, value in output.items()
    ]
    texts = ["\n".join(_summary_lines(run, fields, how, most)) for most in FIELD_CHARACTERS]
    whole = next((text for text in texts if len(text) <= SUMMARY_CHARACTERS), texts[-1])
    return whole if len(whole) <= SUMMARY_CHARACTERS else f"{whole[: SUMMARY_CHARACTERS - 1].rstrip()}…"


def _summary_lines(run: RunState, fields: Sequence[tuple[str, str]], how: str, most: int) -> Iterator[str]:
    end = _short(how, HOW_CHARACTERS)
    yield f"Run of {run.pipeline}: {end}{'' if end.endswith(('?', '!', '…')) else '.'}"
    yield f"Question: {_short(run.question, QUESTION_CHARACTERS)}"
    yield f"Stages done: {', '.join(run.stages) or 'none'}."
    for title, names in FIELD_TITLES.items():
        if found := [value for name, value in fields if names.search(name)]:
            yield f"{title}: {_short('; '.join(found), most)}"
    yield from (f"The user said: {_short(each, USER_CHARACTERS)}" for each in run.feedback)
    for name, value in fields:
        if not any(names.search(name) for names in FIELD_TITLES.values()):
            yield _short(f"{name}: {value}", most)


def _field_words(value: Any) -> str:
    match value:
        case str():
            return value
        case bool() | int() | float() | None:
            return json.dumps(value)
        case list():
            return "; ".join(map(_field_words, value))
        case Mapping():
            return ", ".join(f"{name}: {_field_words(each)}" for name, each in value.items())
        case _:
            return str(value)


def _short(text: str, most: int) -> str:
    """The text cut to one line, so that nothing in it looks like a line by Handrail."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
