"""Asks a model: retries, fallbacks, side calls; every attempt is recorded in the log."""

import time
from collections.abc import Callable, Sequence
from contextlib import aclosing, nullcontext, suppress
from typing import NamedTuple

import anyio
from anyio import get_cancelled_exc_class
from msgspec.structs import replace

from handrail.context.strategy import strategy_for
from handrail.context.token_budget import measure_request
from handrail.engine.limits import AffordedRequest
from handrail.engine.preload import preloading
from handrail.engine.requests.request_record import RequestRecord
from handrail.models.model import Model, Progress, Request, Text, Thinking
from handrail.models.reading.collector import Answer
from handrail.protocol import events
from handrail.protocol.errors import (
    Authenticate,
    BudgetReached,
    FixRequest,
    GiveUp,
    ModelProblem,
    RetryLater,
    SchemaRefused,
)
from handrail.protocol.events import Answered, AnswerEnd
from handrail.protocol.events.requests import Purpose
from handrail.protocol.ids import new_id
from handrail.protocol.upcast import is_storable
from handrail.protocol.values import Effort, Role, StructuredWay, ToolCall, Usage
from handrail.sessions.session import Session
from handrail.sessions.turn_state import OpenRequest

Cost = Callable[[Model, Usage], float | None]
FitToBudget = Callable[[Model, Request], AffordedRequest]
"""Fits a request to the budgets; raises BudgetReached where it may not be sent."""
PROBE_USAGE = Usage(input_tokens=1, output_tokens=1)  # what this costs shows whether a model is free
COMPLETE_ENDS: tuple[AnswerEnd, ...] = ("stop", "tool_calls")  # calls run only after these
FAILURE_KINDS: dict[type[ModelProblem], events.FailureKind] = {
    RetryLater: "retry_later",
    FixRequest: "fix_request",
    Authenticate: "authenticate",
}
SIDE_CALL_CUT = {
    "length": "The answer was cut off at its length limit.",
    "cut": "The answer was cut off for a reason that Handrail does not know.",
}
MEGABYTE = 1_000_000


def without_budget(_model: Model, request: Request) -> AffordedRequest:
    return AffordedRequest(request)


class Retries(NamedTuple):
    times: int = 4
    seconds: float = 180.0  # of all delays together
    first_delay: float = 1.0
    longest_delay: float = 60.0


class ModelChain(NamedTuple):
    """The model that answers and its fallbacks, with retries, prices, budgets and effort."""

    session: Session
    models: Sequence[Model]
    retries: Retries
    cost: Cost
    afford: FitToBudget = without_budget
    effort: Effort | None = None  # how much the models think; None: the provider's default


async def ask_model(chain: ModelChain, turn_id: str, request_for: Callable[[Model], Request]) -> Answered:
    """The answer of the first model that gives one. One that came before a crash is not asked for again."""
    waiting = unread_answer(chain.session)
    if waiting and (found := await _read_again(chain, waiting, request_for)):
        return found
    *others, last = chain.models
    for model in others:
        try:
            return await _ask_with_retries(chain, model, turn_id, request_for(model))
        except ModelProblem as problem:
            if isinstance(problem, FixRequest) and problem.too_long:
                raise  # the caller compacts the conversation instead of asking another model
    return await _ask_with_retries(chain, last, turn_id, request_for(last))


def unread_answer(session: Session) -> OpenRequest | None:
    """The open request of a process that ended after it had all bytes of the answer."""
    request = session.state.turn.request if session.state.turn else None
    return request if request and request.raw else None


async def _read_again(
    chain: ModelChain, waiting: OpenRequest, request_for: Callable[[Model], Request]
) -> Answered | None:
    """The answer in stored bytes; None where they cannot be read, and then the request is closed."""
    session = chain.session
    data = session.log.blob(waiting.raw)
    model = next((each for each in chain.models if each.name == waiting.model), None)
    started = events.RequestStarted(
        turn_id=session.turn.turn_id,
        request_id=waiting.request_id,
        message_id=waiting.message_id,
        model=waiting.model,
        apart=waiting.apart,
    )
    record = RequestRecord(session, started, read_again=waiting.raw)
    if data is not None and model and strategy_for(model.capabilities).reads_stored_answers:
        request = replace(request_for(model), received=data)
        with suppress(ModelProblem):
            return await _receive(chain, model, request, started, record)
    lost = Answered(
        turn_id=started.turn_id,
        request_id=started.request_id,
        message_id=started.message_id,
        model=started.model,
        text="",
        end="interrupted",
        raw=waiting.raw,
        apart=started.apart,
    )
    record.end(lost)
    return None


async def _ask_with_retries(chain: ModelChain, model: Model, turn_id: str, request: Request) -> Answered:
    patience, attempt = chain.retries.seconds, 1
    while True:
        result = await _ask_once(chain, model, turn_id, request, attempt=attempt, patience=patience)
        if isinstance(result, Answered):
            return result
        patience -= result
        attempt += 1
        await anyio.sleep(result)


async def _ask_once(
    chain: ModelChain, model: Model, turn_id: str, request: Request, *, attempt: int, patience: float
) -> Answered | float:
    """The answer, or the delay before the next attempt; every attempt is recorded."""
    state = chain.session.state
    request, most_tokens, most_usd = chain.afford(model, replace(request, effort=chain.effort))
    size = measure_request(request)
    started = events.RequestStarted(
        turn_id=turn_id,
        request_id=new_id("r"),
        message_id=new_id("m"),
        model=model.name,
        attempt=attempt,
        prompt_bytes=size.bytes,
        prompt_tokens_estimate=size.tokens,
        stage_id=state.stage_id,
        apart=state.is_apart,
        most_tokens=most_tokens,
        most_usd=most_usd,
        effort=request.effort,
        effort_sent=model.capabilities.effort_for(request) is not None,
    )
    record = RequestRecord(chain.session, started)
    try:
        return await _receive(chain, model, request, started, record)
    except ModelProblem as problem:
        delay = _delay(problem, attempt, chain.retries, patience)
        _record_failure(chain, model, record, problem, delay)
        if delay is None:
            raise
        return delay


async def _receive(
    chain: ModelChain, model: Model, request: Request, started: events.RequestStarted, record: RequestRecord
) -> Answered:
    """The whole answer, in the log; raises the model's problem, which the caller records."""
    session, way, began = chain.session, model.capabilities.structured, time.monotonic()
    loading = preloading() if request.tools else nullcontext()
    try:
        with loading:
            async with aclosing(model.stream(request)) as parts:
                async for part in parts:
                    record.add(part)
                    if isinstance(part, Text | Thinking):
                        kind = "text" if isinstance(part, Text) else "thinking"
                        session.live.add(started.message_id, kind, part.text)
                    elif isinstance(part, Progress):
                        session.live.progress(started.message_id, progress_words(part, model.name))
    except ModelProblem:
        raise
    except get_cancelled_exc_class():
        answer = record.answer()._replace(calls=())
        cut = _answered(chain, model, started, answer, record.raw, end="cancelled", seconds=_since(began))
        record.end(cut)
        raise
    except BaseException:
        record.save()
        raise
    answer = record.answer()
    end: AnswerEnd = answer.finish or "cut"
    if end not in COMPLETE_ENDS:
        answer = answer._replace(calls=())
    answered = _answered(chain, model, started, answer, record.raw, end=end, seconds=_since(began))
    if not is_storable(answered):
        raise GiveUp(f"{model.name} answered with something that cannot be stored. Ask again.")
    record.end(answered)
    _note_way(session, model, way)
    return answered


def _note_way(session: Session, model: Model, before: StructuredWay) -> None:
    """Tell the user if a server ignored the schema of the answer that has just come."""
    if (now := model.capabilities.structured) != before:
        session.append(events.StructuredOutputChanged(model=model.name, way=now))


def _since(began: float) -> float:
    return time.monotonic() - began


def _delay(problem: ModelProblem, attempt: int, retries: Retries, patience: float) -> float | None:
    """Seconds until the next attempt, as the server says or with backoff; None: no more attempts."""
    if isinstance(problem, SchemaRefused):
        return 0.0  # in another way: there are only a few
    if not isinstance(problem, RetryLater) or attempt > retries.times:
        return None
    import random

    backoff = min(retries.longest_delay, retries.first_delay * 2 ** (attempt - 1))
    delay = problem.delay if problem.delay is not None else backoff * random.uniform(0.5, 1.0)
    return delay if delay <= patience else None


def _record_failure(
    chain: ModelChain, model: Model, record: RequestRecord, problem: ModelProblem, delay: float | None
) -> None:
    answer = record.answer()
    billed = answer.usage != Usage() or problem.billed
    failed = events.RequestFailed(
        request_id=record.request_id,
        kind=next((kind for error, kind in FAILURE_KINDS.items() if isinstance(problem, error)), "give_up"),
        message=str(problem),
        retry_in=delay,
        raw=record.raw,
        usage=answer.usage,
        cost_usd=request_cost(chain.cost, model, answer.usage) if billed else 0.0,
        recovered=answer.recovered,
    )
    if not is_storable(failed):
        failed = replace(failed, recovered=None)
    record.end(failed)


def _answered(
    chain: ModelChain,
    model: Model,
    started: events.RequestStarted,
    answer: Answer,
    raw: str,
    *,
    end: AnswerEnd,
    seconds: float,
) -> Answered:
    return Answered(
        turn_id=started.turn_id,
        request_id=started.request_id,
        message_id=started.message_id,
        model=model.name,
        text=answer.text,
        thinking=answer.thinking,
        opaque=answer.opaque,
        calls=_with_unique_ids(answer.calls),
        blocked=answer.blocked,
        end=end,
        usage=answer.usage,
        cost_usd=request_cost(chain.cost, model, answer.usage),
        seconds=seconds,
        raw=raw,
        apart=started.apart,
        structured=answer.structured,
        unread=answer.problems,
        read=answer.read,
        recovered=answer.recovered,
    )


def request_cost(cost: Cost, model: Model, usage: Usage) -> float | None:
    """The cost of a billed request; None when the provider did not report its tokens."""
    if usage == Usage() and cost(model, PROBE_USAGE) != 0.0:
        return None
    return cost(model, usage)


def _with_unique_ids(calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """The calls with unique ids: some servers repeat an id within an answer."""
    ids: set[str] = set()
    unique = []
    for call in calls:
        unique.append(replace(call, id=new_id("call")) if call.id in ids else call)
        ids.add(call.id)
    return tuple(unique)


def progress_words(progress: Progress, model: str) -> str:
    """What a slow model is doing before its first word, for the user."""
    what, done, total = progress.what, progress.done, progress.total
    name = model.rpartition("/")[2]
    match what:
        case "reading":
            return f"reading the prompt  {done}/{total} tokens" if done < total else "answering"
        case "checking":
            return f"checking {name}  {done // MEGABYTE}/{total // MEGABYTE} MB"
        case "loading":
            return f"loading {name}"
        case "writing":
            return f"writing code  {done} tokens"
        case "weighing":
            return f"looking for a better line  {done}/{total}"


class SideAttempt(NamedTuple):
    """The recorded end of a side request, and the error if that is a problem of the model or a budget."""

    answered: events.SideAnswered
    problem: ModelProblem | BudgetReached | None = None


class SideCall(NamedTuple):
    """A model that answers short questions beside the conversation."""

    session: Session
    model: Model
    role: Role
    cost: Cost
    afford: FitToBudget = without_budget
    effort: Effort | None = None

    async def ask(
        self, request: Request, purpose: Purpose = "summary", doing: str = ""
    ) -> events.SideAnswered:
        """The answer or the problem. There is one attempt: callers can do without the answer.

        `doing` is shown to the user while they wait; empty: nothing is.
        """
        return (await self.attempt(request, purpose, doing)).answered

    async def attempt(
        self, request: Request, purpose: Purpose, doing: str = "", key: str = ""
    ) -> "SideAttempt":
        """The same with the problem as an error; `key` names an answer that is not asked for twice."""
        request_id = new_id("r")
        try:
            named = replace(request, effort=self.effort, key=f"{self.session.id}/{key}" if key else "")
            request, most_tokens, most_usd = self.afford(self.model, named)
        except BudgetReached as reached:
            unsent = events.SideAnswered(request_id=request_id, problem=str(reached), cost_usd=0.0)
            return SideAttempt(unsent, reached)
        size = measure_request(request)
        asked = events.SideAsked(
            request_id=request_id,
            purpose=purpose,
            model=self.model.name,
            role=self.role,
            prompt_bytes=size.bytes,
            prompt_tokens_estimate=size.tokens,
            most_tokens=most_tokens,
            most_usd=most_usd,
            effort=request.effort,
            effort_sent=self.model.capabilities.effort_for(request) is not None,
            key=key,
        )
        record, began = RequestRecord(self.session, asked), time.monotonic()
        way = self.model.capabilities.structured
        try:
            async with aclosing(self.model.stream(request)) as parts:
                async for part in parts:
                    record.add(part)
                    if doing and isinstance(part, Progress):
                        words = f"{doing}: {progress_words(part, self.model.name)}"
                        self.session.live.progress(request_id, words)
        except ModelProblem as problem:
            billed = problem.billed or record.answer().usage != Usage()
            ended = self._end(record, str(problem), began, billed=billed)
            if isinstance(problem, SchemaRefused):
                return await self.attempt(request, purpose, doing, key)
            return SideAttempt(ended, problem)
        except get_cancelled_exc_class():
            self._end(record, "It was cancelled.", began, billed=True)
            raise
        except BaseException:
            record.save()
            raise
        cut = SIDE_CALL_CUT.get(record.answer().finish or "cut", "")
        _note_way(self.session, self.model, way)
        return SideAttempt(self._end(record, cut, began, billed=True))

    def _end(self, record: RequestRecord, problem: str, began: float, *, billed: bool) -> events.SideAnswered:
        answer = record.answer()
        ended = events.SideAnswered(
            request_id=record.request_id,
            text=answer.text,
            problem=problem,
            usage=answer.usage,
            cost_usd=request_cost(self.cost, self.model, answer.usage) if billed else 0.0,
            seconds=_since(began),
            raw=record.raw,
        )
        if not is_storable(ended):
            ended = replace(ended, text="", problem="The answer cannot be stored.")
        record.end(ended)
        return ended
