"""The stage `work`: the tool loop. Ask the model and run its calls, until it answers without a call."""

from collections.abc import Callable, Sequence
from functools import partial

from handrail.context.message_context import with_run_summaries
from handrail.context.prompt import assemble_request
from handrail.engine.attempts import ENDED_EARLY, Attempts
from handrail.engine.context import StageResult, TurnContext
from handrail.engine.pipeline import Outputs, Stage
from handrail.engine.requests.model_requests import ModelChain, ask_model, unread_answer
from handrail.engine.turn_end import Ending, cut_short, end_by_hooks, end_of_run_by_hooks
from handrail.engine.user_input import look_before_steering, take_steering
from handrail.models.model import Model, Request
from handrail.protocol.errors import BudgetReached, FixRequest, ModelProblem
from handrail.protocol.events import Answered, Compacted, Nudged
from handrail.sessions.run_state import RunState
from handrail.sessions.session import Session
from handrail.sessions.transcript import AssistantEntry
from handrail.sessions.turn_state import FinishedCall

CUT_OFF = "[Handrail was closed while you answered. Answer again, from the start.]"
RequestFor = Callable[[Model], Request]


async def run(context: TurnContext, stage: Stage, state: RunState, outputs: Outputs) -> StageResult:
    """The model's answer; with a check, the first one that passes it."""
    chain = context.main._replace(effort=stage.effort or context.main.effort)
    ending = await (_until_check_passes(context, chain) if context.turn.check else _answer(context, chain))
    # The conversation has the answer; only later stages need it too.
    began = state.open.seq if state.open else 0
    replies = [
        each for each in context.session.transcript if isinstance(each, AssistantEntry) and each.seq > began
    ]
    text = replies[-1].text if replies and not state.conversational else ""
    return StageResult(ending, {"answer": text} if text else {})


async def _until_check_passes(context: TurnContext, chain: ModelChain) -> Ending:
    """Answered when the check passed; otherwise the files are restored, and the ending says so."""
    if context.strategy.searches:
        from handrail.engine.search.check_turn import search_until_check_passes

        if found := await search_until_check_passes(context):
            return await end_of_run_by_hooks(context.hooks, context.session, found)
    attempts = Attempts(context)
    await attempts.check_before()
    ending = Ending("failed", "")
    for number in range(1, context.turn.attempts + 1):
        attempts.begin(number)
        ending = await _answer(context, chain)
        if ending.reason in ENDED_EARLY:
            break
        if await attempts.passes():
            return attempts.success()
    return await attempts.failure(ending)


async def _answer(context: TurnContext, chain: ModelChain) -> Ending:
    """The ending of the model's answer, once the user's hooks accept it."""
    try:
        while True:
            ending = await _until_answered(context, chain)
            if context.turn.output_schema is not None and ending.reason == "answered":
                from handrail.engine.output_schema import fit_answer

                ending = await fit_answer(context, chain)
            if allowed := await end_by_hooks(context.hooks, context.session, ending):
                return allowed
    except BudgetReached as problem:
        return Ending("budget", str(problem))
    except ModelProblem as problem:
        return Ending("failed", str(problem))


async def _until_answered(context: TurnContext, chain: ModelChain) -> Ending:
    session = context.session
    if before := _last_answer(session):
        if before.end not in ("cancelled", "interrupted"):
            return Ending("answered", cut_short(before))
        session.append(Nudged(turn_id=context.turn.turn_id, text=CUT_OFF))
    while True:
        if calls := [call.call for call in context.turn.unfinished()]:
            await context.gate.run_all(calls, context.turn.turn_id)
        if context.strategy.turn_is_done(context.turn):
            return Ending("answered")
        if reached := context.limit_reached:
            return Ending("budget", reached)
        if circles := stuck_reason(context.turn.recent):
            if context.turn.nudges:
                return Ending("stuck", f"The model was told that it repeats itself, and went on: {circles}")
            text = f"[Handrail: {circles} Try something else, or say what the problem is.]"
            session.append(Nudged(turn_id=context.turn.turn_id, text=text))
        answered = await ask_conversation(context, chain, partial(conversation_request, context))
        if not answered.calls:
            return Ending("answered", cut_short(answered))


def _last_answer(session: Session) -> Answered | None:
    """The last answer of the open stage, from before this process continued it."""
    run = session.state.run
    last = session.transcript[-1] if session.transcript else None
    if run is None or run.open is None or not isinstance(last, AssistantEntry):
        return None
    if last.calls or last.seq <= run.open.seq:
        return None
    (recorded,) = session.read_after(last.seq - 1, 1)
    return recorded.event if isinstance(recorded.event, Answered) else None


# Asking in the session's conversation


async def ask_conversation(context: TurnContext, chain: ModelChain, request_for: RequestFor) -> Answered:
    """The model's next answer, after taking the user's new messages and compacting where it is due."""
    if not unread_answer(context.session):  # that answer was given before what would be added now
        await look_before_steering(context)
        take_steering(context)
        await make_room(context)
    try:
        return await ask_model(chain, context.turn.turn_id, request_for)
    except FixRequest as problem:
        # The provider counts more tokens than our estimate: compact, and try once more.
        if not problem.too_long or not _compact(context, context.compactor.event_by_code()):
            raise
    return await ask_model(chain, context.turn.turn_id, request_for)


async def make_room(context: TurnContext) -> None:
    """Compact the conversation, where the next request would not fit."""
    if context.compactor.is_due:
        _compact(context, await context.compactor.event())


def _compact(context: TurnContext, event: Compacted | None) -> bool:
    """Whether there was anything to compact."""
    if event:
        context.session.append(event)
        # Another intent may have been selected since the turn began.
        intents = context.strategy.intents_prompt(context.intents.now(), context.session.state.intent)
        context.prompt = context.prompt._replace(intents=intents)
    return event is not None


def conversation_request(context: TurnContext, model: Model) -> Request:
    """The conversation as the model can be shown it, with the tools it may call."""
    prompt = context.strategy.prompt_for_request(context.prompt, context.session)
    if run := context.session.state.run:
        prompt = prompt._replace(tools=tuple(each for each in prompt.tools if run.allows(each.name)))
    return assemble_request(
        prompt=prompt,
        cut=with_run_summaries(context.session.state, model.capabilities.context_window),
        transcript=context.compactor.shown(model),
        capabilities=model.capabilities,
        model=model.name,
        max_output=context.limits.max_output_tokens,
        deadlines=context.deadlines,
        temperature=context.turn.temperature,
        secrets=context.secrets,
        stored=context.stored,
    )


# Noticing that a model is stuck

REPEATS, FAILURES, ALTERNATIONS = 3, 4, 6


def stuck_reason(recent: Sequence[FinishedCall]) -> str:
    """How the model repeats itself, in words for it; empty when it makes progress."""
    last = recent[-1] if recent else None
    same = [done for done in recent[-REPEATS:] if last and done[:2] == last[:2]]
    if len(same) == REPEATS:
        return f"You have made the same call {REPEATS} times with the same result."
    failures = recent[-FAILURES:]
    same_results = len({done.result for done in failures}) == 1
    if len(failures) == FAILURES and all(done.failed for done in failures) and same_results:
        return f"Your last {FAILURES} calls failed in the same way."
    tail = recent[-ALTERNATIONS:]
    circling = len(tail) == ALTERNATIONS and len({done[:2] for done in tail}) <= 2
    if circling and any(done.failed for done in tail):
        return "You are alternating between two calls that keep giving the same results."
    return ""
