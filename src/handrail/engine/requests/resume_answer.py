"""`/retry` and `/continue`: repeat the last request, or accept what was recovered of its answer and go on."""

import json
from typing import NamedTuple

from msgspec.structs import replace

from handrail.engine.pipeline import IN_CONVERSATION, Pipeline
from handrail.engine.router.router import Router, run_events
from handrail.engine.run_record import kept_before
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import Answered, Event, RequestFailed, StageStarted, UserMessage
from handrail.protocol.values import StructuredAnswer, to_dict
from handrail.sessions.projections import LastTurn
from handrail.sessions.session import Session
from handrail.sessions.transcript import AssistantEntry
from handrail.tools.tool import head_and_tail

KEPT = (
    "[Handrail: your last answer was cut. The user accepts its complete parts; Handrail has kept them, and "
    "uses them together with your next answer. Answer with the rest alone, in the same form; do not repeat "
    "any of these:\n{parts}]"
)
MAX_SHOWN = 2_000
"""Characters of each text of a kept change: the model has written it, and only has to recognise it."""


class ResumedTurn(NamedTuple):
    """How a turn starts that repeats or continues the last one."""

    command: SendMessage
    run: list[Event] | None = None
    """The events that start its run; None: it is routed like every other message."""
    told: str = ""
    accepts: int = 0
    keep: int | None = None
    repeats: int = 0

    def message(self, built: UserMessage) -> UserMessage:
        """The turn's message: one that repeats a request adds nothing to the conversation."""
        if self.keep is None:
            return replace(built, accepts=self.accepts)
        return UserMessage(built.message_id, built.turn_id, "/retry", keep=self.keep)


def resume_turn(session: Session, router: Router, command: SendMessage, turn_id: str) -> ResumedTurn:
    """The turn that `/retry` or `/continue` starts."""
    last, plain = session.state.last, replace(command, resume="")
    asks_more = command.resume == "continue" and last and last.reads_only and not last.recovered
    if last is None or session.state.paused or asks_more:
        return ResumedTurn(plain)
    pipeline = router.catalogue.find(last.pipeline)
    words = _message(session, last)
    skips = _skips(pipeline, last)
    if skips is None or last.check:
        # It needs its earlier stages, or the files as they were: the message is sent again.
        route = replace(plain, route=last.pipeline)
        if command.resume == "continue" or words is None:
            return ResumedTurn(route)
        again = {"check": last.check, "attempts": last.attempts, "suggested": words.suggested}
        return ResumedTurn(replace(route, text=words.text, images=words.images, **again))
    run = run_events(
        pipeline,
        turn_id,
        words.text if words else "",
        reads_only=last.reads_only,
        skips=skips,
        continues=router.continues_in(session.state, pipeline),
        kept=kept_before(session.log, pipeline),
    )
    # The conversation has the stage's prompt already.
    run = [replace(event, text="") if isinstance(event, StageStarted) else event for event in run]
    if command.resume == "retry":
        return ResumedTurn(plain, run, keep=_keep(session), repeats=last.message)
    kept = recovered_in(session, last.recovered)
    told = KEPT.format(parts=json.dumps(_shown(kept), ensure_ascii=False)) if kept else ""
    return ResumedTurn(plain, run, told=told, accepts=last.recovered)


def accepted_parts(session: Session, message: UserMessage) -> StructuredAnswer | None:
    """The parts of a cut answer that the turn's message accepts."""
    return recovered_in(session, message.accepts)


def recovered_in(session: Session, seq: int) -> StructuredAnswer | None:
    found = session.read_after(seq - 1, 1)[0].event if seq else None
    return found.recovered if isinstance(found, Answered | RequestFailed) else None


def _keep(session: Session) -> int:
    """The last event that the model saw before its last answer; calls that have run are not taken back."""
    last = session.transcript[-1] if session.transcript else None
    return last.seq - 1 if isinstance(last, AssistantEntry) and not last.calls else session.seq


def _message(session: Session, last: LastTurn) -> UserMessage | None:
    found = session.read_after(last.message - 1, 1)[0].event if last.message else None
    return found if isinstance(found, UserMessage) else None


def _skips(pipeline: Pipeline, last: LastTurn) -> tuple[str, ...] | None:
    """The stages before the one that asked last; None if the run cannot start with that one."""
    names = [stage.name for stage in pipeline.stages]
    if last.stage not in names or pipeline.stage(last.stage).kind not in IN_CONVERSATION:
        return None
    at = names.index(last.stage)
    if any(set(stage.inputs) & set(names[:at]) for stage in pipeline.stages[at:]):
        return None
    return tuple(dict.fromkeys((*last.skips, *names[:at])))


def _shown(kept: StructuredAnswer) -> dict[str, object]:
    parts = {name: value for name, value in to_dict(kept).items() if value and name != "summary"}
    for change in parts.get("changes", ()):
        texts = {name: text for name, text in change.items() if isinstance(text, str)}
        change |= {name: head_and_tail(text, MAX_SHOWN) for name, text in texts.items()}
    return parts
