"""How calls begin and end in the log, and what is said where one is not let through."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from handrail.policy.facts import Facts, kind_of
from handrail.protocol.errors import PathProblem, RefusalReason, ToolError, ToolRefused
from handrail.protocol.events import ToolFinished, ToolStarted
from handrail.protocol.values import ToolCall
from handrail.tools.base import Outcome, error_json
from handrail.tools.secrets import Secrets


def started(call: ToolCall, turn_id: str, facts: Facts, summary: str, *, stage_id: str) -> ToolStarted:
    return ToolStarted(
        turn_id=turn_id,
        call_id=call.id,
        tool=call.name,
        arguments=call.arguments,
        kind=kind_of(facts),
        summary=summary,
        stage_id=stage_id,
    )


def finished(call: ToolCall, turn_id: str, outcome: Outcome, *, seconds: float, apart: bool) -> ToolFinished:
    return ToolFinished(
        turn_id=turn_id,
        call_id=call.id,
        tool=call.name,
        status=outcome.status,
        summary=outcome.summary,
        content=outcome.content,
        shown=outcome.shown,
        error=outcome.error,
        output=hashlib.sha256(outcome.output).hexdigest() if outcome.output else "",
        files=outcome.files,
        images=tuple(each.image for each in outcome.images),
        seconds=seconds,
        apart=apart,
    )


def failed(call: ToolCall, error: OSError) -> Outcome:
    """A call that the system did not let happen."""
    message = f"{call.name} failed: {error.strerror or error}."
    return Outcome("failed", message, shown=message, status="failed")


def without(secrets: Secrets, outcome: Outcome) -> Outcome:
    """The outcome as it may be stored, shown and told to a model."""
    error = outcome.error
    return outcome.changed(
        summary=secrets.hide(outcome.summary),
        content=secrets.hide(outcome.content),
        shown=secrets.hide(outcome.shown),
        error=error.model_copy(update={"message": secrets.hide(error.message)}) if error else None,
        output=secrets.hide_bytes(outcome.output),
    )


def with_intent(outcome: Outcome, intent_id: str) -> Outcome:
    """The outcome whose refusal names the intent that was active."""
    before = outcome.error
    if before is None or not intent_id or before.intent_id:
        return outcome
    error = before.model_copy(update={"intent_id": intent_id})
    content = outcome.content.replace(error_json(before), error_json(error), 1)
    return outcome.changed(error=error, content=content)


@contextmanager
def refusals(tool: str) -> Iterator[None]:
    """Turn a path that cannot be used into the refusal that model, log and screen see."""
    try:
        yield
    except PathProblem as problem:
        raise refused(tool, problem.reason, str(problem), problem.path) from problem


def refused(tool: str, reason: RefusalReason, message: str, file: str = "") -> ToolRefused:
    return ToolRefused(ToolError(tool=tool, reason=reason, message=message, file=file))


def refusal(error: ToolError) -> Outcome:
    """A call that was not let through."""
    return Outcome(error.reason, error_json(error), status="refused", error=error)
