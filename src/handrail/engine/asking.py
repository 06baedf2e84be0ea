"""Asking a model: retries, fallbacks, and the facts of each attempt in the log."""

import hashlib
import random
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import NamedTuple

import anyio
from anyio import get_cancelled_exc_class

from handrail.context.budget import request_bytes, request_tokens
from handrail.engine.limits import Afforded
from handrail.engine.progress import words_of
from handrail.models.answer import Answer, Collector
from handrail.models.base import Model, Progress, Request, Text, Thinking
from handrail.protocol.errors import Authenticate, FixRequest, GiveUp, ModelProblem, RetryLater
from handrail.protocol.events import Answered, AnswerEnd, FailureKind, RequestFailed, RequestStarted
from handrail.protocol.ids import new_id
from handrail.protocol.upcast import is_storable
from handrail.protocol.values import Effort, ToolCall, Usage
from handrail.sessions.handle import Session

Cost = Callable[[Model, Usage], float | None]
Afford = Callable[[Model, Request], Afforded]
"""The request as it may be sent; raises BudgetReached where it may not."""
A_LITTLE = Usage(input_tokens=1, output_tokens=1)
"""What this costs tells a model that is free from one that is not."""


def as_it_is(_model: Model, request: Request) -> Afforded:
    """No budget holds."""
    return Afforded(request)


class Retries(NamedTuple):
    """How patient to be with one model."""

    times: int = 4
    seconds: float = 180.0
    """All waiting together."""
    first_delay: float = 1.0
    longest_delay: float = 60.0


class Asking(NamedTuple):
    """What is needed to ask: where to record, whom to ask in which order, how patiently, at what price."""

    session: Session
    models: Sequence[Model]
    retries: Retries
    cost: Cost
    afford: Afford = as_it_is
    effort: Effort | None = None
    """How much the models are to think; None: as their providers have it."""


async def ask(asking: Asking, turn_id: str, request_for: Callable[[Model], Request]) -> Answered:
    """The answer of the first model that gives one."""
    *others, last = asking.models
    for model in others:
        try:
            return await _ask_patiently(asking, model, turn_id, request_for(model))
        except ModelProblem as problem:
            if isinstance(problem, FixRequest) and problem.too_long:
                raise  # to be compacted first; another model is no answer to that
            # Recorded as an event; the next model is the user's own fallback.
    return await _ask_patiently(asking, last, turn_id, request_for(last))


async def _ask_patiently(asking: Asking, model: Model, turn_id: str, request: Request) -> Answered:
    patience, attempt = asking.retries.seconds, 1
    while True:
        try:
            return await _ask_once(asking, model, turn_id, request, attempt=attempt, patience=patience)
        except _Again as again:
            patience -= again.delay
            attempt += 1
            await anyio.sleep(again.delay)


class _Again(Exception):
    """The attempt failed and is recorded; another one follows after the delay."""

    def __init__(self, delay: float) -> None:
        self.delay = delay


async def _ask_once(
    asking: Asking, model: Model, turn_id: str, request: Request, *, attempt: int, patience: float
) -> Answered:
    state = asking.session.state
    request, most_tokens, most_usd = asking.afford(model, request.changed(effort=asking.effort))
    started = RequestStarted(
        turn_id=turn_id,
        request_id=new_id("r"),
        message_id=new_id("m"),
        model=model.name,
        attempt=attempt,
        prompt_bytes=request_bytes(request),
        prompt_tokens_estimate=request_tokens(request),
        stage_id=state.stage_id,
        apart=state.is_apart,
        most_tokens=most_tokens,
        most_usd=most_usd,
        effort=request.effort,
        effort_sent=model.capabilities.effort_for(request) is not None,
    )
    session, collector, began = asking.session, Collector(), time.monotonic()
    session.append(started)
    try:
        async with aclosing(model.stream(request)) as parts:
            async for part in parts:
                collector.add(part)
                if isinstance(part, Text | Thinking):
                    kind = "text" if isinstance(part, Text) else "thinking"
                    session.live.add(started.message_id, kind, part.text)
                elif isinstance(part, Progress):
                    session.live.progress(started.message_id, words_of(part, model.name))
    except ModelProblem as problem:
        delay = _delay(problem, attempt, asking.retries, patience)
        answer = collector.answer()
        failed = _failed(asking, model, started, answer, problem=problem, delay=delay)
        session.append(failed, blobs=_kept(answer), settle=[started.message_id])
        if delay is None:
            raise
        raise _Again(delay) from problem
    except get_cancelled_exc_class():
        answer = collector.answer()._replace(calls=())
        cut = _answered(asking, model, started, answer, end="cancelled", seconds=time.monotonic() - began)
        session.append(cut, blobs=_kept(answer), settle=[started.message_id])
        raise
    answer = collector.answer()
    answered = _answered(
        asking, model, started, answer, end=answer.finish or "stop", seconds=time.monotonic() - began
    )
    if not is_storable(answered):
        useless = GiveUp(f"{model.name} answered with something that cannot be stored. Ask again.")
        failed = _failed(asking, model, started, answer, problem=useless, delay=None)
        session.append(failed, blobs=_kept(answer), settle=[started.message_id])
        raise useless
    session.append(answered, blobs=_kept(answer), settle=[started.message_id])
    return answered


def _delay(problem: ModelProblem, attempt: int, retries: Retries, patience: float) -> float | None:
    """Seconds until the next attempt; None when there is none. A server's own wish goes before ours."""
    if not isinstance(problem, RetryLater) or attempt > retries.times:
        return None
    backoff = min(retries.longest_delay, retries.first_delay * 2 ** (attempt - 1))
    delay = problem.delay if problem.delay is not None else backoff * random.uniform(0.5, 1.0)
    return delay if delay <= patience else None


def kind_of(problem: ModelProblem) -> FailureKind:
    """What a failure means, as events name it."""
    match problem:
        case RetryLater():
            return "retry_later"
        case FixRequest():
            return "fix_request"
        case Authenticate():
            return "authenticate"
        case _:
            return "give_up"


def _failed(
    asking: Asking,
    model: Model,
    started: RequestStarted,
    answer: Answer,
    *,
    problem: ModelProblem,
    delay: float | None,
) -> RequestFailed:
    return RequestFailed(
        request_id=started.request_id,
        kind=kind_of(problem),
        message=str(problem),
        retry_in=delay,
        raw=_sha256(answer.raw),
        usage=answer.usage,
        cost_usd=spent(asking.cost, model, answer.usage)
        if answer.usage != Usage() or problem.billed
        else 0.0,
    )


def _answered(
    asking: Asking, model: Model, started: RequestStarted, answer: Answer, *, end: AnswerEnd, seconds: float
) -> Answered:
    return Answered(
        turn_id=started.turn_id,
        request_id=started.request_id,
        message_id=started.message_id,
        model=model.name,
        text=answer.text,
        thinking=answer.thinking,
        opaque=answer.opaque,
        calls=_told_apart(answer.calls),
        blocked=answer.blocked,
        end=end,
        usage=answer.usage,
        cost_usd=spent(asking.cost, model, answer.usage),
        seconds=seconds,
        raw=_sha256(answer.raw),
        apart=started.apart,
        structured=answer.structured,
        unread=answer.problems,
        read=answer.read,
    )


def spent(cost: Cost, model: Model, usage: Usage) -> float | None:
    """What a request that was billed cost; None when nobody said how many tokens it took."""
    if usage == Usage() and cost(model, A_LITTLE) != 0.0:
        return None
    return cost(model, usage)


def _told_apart(calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """The calls with ids of their own; some servers give two calls of one answer the same."""
    ids: set[str] = set()
    apart = []
    for call in calls:
        apart.append(call.model_copy(update={"id": new_id("call")}) if call.id in ids else call)
        ids.add(call.id)
    return tuple(apart)


def _kept(answer: Answer) -> list[bytes]:
    return [answer.raw] if answer.raw else []


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest() if data else ""
