"""Runs commands that an answer suggested, one by one, and asks the model how to continue."""

from typing import NamedTuple

from msgspec.structs import replace

from handrail.context.prompt import assemble_request
from handrail.engine.context import TurnContext
from handrail.engine.requests.model_requests import SideCall
from handrail.engine.stages.work import make_room
from handrail.engine.turn_end import Ending, TurnEnd, run_end
from handrail.engine.user_input import take_steering
from handrail.models.batch_decision import ModelDecision, read_decision
from handrail.models.model import Request
from handrail.policy.commands.script import why_unreadable
from handrail.protocol import events
from handrail.protocol.commands import RunAll, RunCommand, SendMessage
from handrail.protocol.errors import LostHold
from handrail.protocol.events import Event
from handrail.protocol.events.tools import BatchEnd
from handrail.protocol.ids import new_id
from handrail.protocol.values import FinishReason, ToolCall
from handrail.sessions.session import Session
from handrail.sessions.transcript import ToolResultEntry, UserEntry
from handrail.sessions.turn_state import BatchState, NextCommand
from handrail.tools.commands.run import WITH_NETWORK
from handrail.tools.gate.approval import Asker

COMMAND_SECONDS = 600  # a long timeout, because the user watches the command and can stop it
BATCH_INTRO = "[Handrail runs the commands that you suggested. After each one you are asked how to continue.]"
FINISH_REASONS: dict[BatchEnd, FinishReason] = {"limit": "budget"}
DECISION_TRIES = 2
MAX_CORRECTIONS = 3
ANSWER_TOKENS, SHORT_OUTPUT = 1_000, 1_200
DECISION_PROMPT = """\
[Handrail: command {number} of {total} has ended: {succeeded} succeeded, {failed} failed, \
{remaining} remaining.{following} Look at its output and say how to go on. Call no tool; answer with one \
JSON object and nothing else:
{{"decision": "continue"}}: run the next one
{{"decision": "stop", "why": "..."}}: run no more of them
{{"decision": "replace", "command": "...", "why": "..."}}: run this command {place}; "network": true \
where it needs the network. The user is asked about it, as about any command of yours.]"""
UNREADABLE_DECISION = "[Handrail: that could not be read: {problem}. Answer with the JSON object alone.]"
OUTPUT_WITHHELD = "it failed, and the model is not shown the output of commands (commands.output_to_model)"
TOO_MANY_CORRECTIONS = f"it failed again after {MAX_CORRECTIONS} corrections"


class BatchOutcome(NamedTuple):
    end: BatchEnd
    why: str = ""


# The start of a batch


def batch_message(command: RunCommand | RunAll) -> SendMessage:
    """The message for the user's pick; the commands themselves are the model's words."""
    count = len(command.commands) if isinstance(command, RunAll) else 1
    text = "Run this command." if count == 1 else f"Run these {count} commands, one by one."
    return SendMessage(text=text, message_id=command.message_id)


def batch_events(
    command: RunCommand | RunAll, message: events.UserMessage, started: events.TurnStarted, *, told: bool
) -> list[Event]:
    """The events that start the turn of a batch; `told`: the model is shown the output of the commands."""
    together = isinstance(command, RunAll)
    batch = events.BatchStarted(
        turn_id=started.turn_id,
        batch_id=new_id("bt"),
        commands=command.commands if isinstance(command, RunAll) else (command.command,),
        together=together,
        network=command.network,
        told=told,
    )
    if together and told:
        numbered = (f"{number}. {each}" for number, each in enumerate(batch.commands, start=1))
        intro = "\n".join((BATCH_INTRO, *numbered))
        message = replace(message, attached="\n\n".join(filter(None, (intro, message.attached))))
    return [message, started, batch]


# Running it. Its state is in the session, as of any turn.


async def run_batch(context: TurnContext) -> TurnEnd | None:
    """Run the commands; the end of the turn, or None where the model now answers."""
    session = context.session
    if not _batch(session).finished:
        end, why = await _until_ended(context)
        session.append(_batch(session).closed(context.turn.turn_id, end, why))
        if end != "completed":
            stopped = f"Stopped: {why.rstrip('.')}." if why else "Stopped."
            return _turn_end(session, Ending(FINISH_REASONS.get(end, "answered"), stopped))
    return None if _batch(session).told else _turn_end(session, Ending("answered"))


def _turn_end(session: Session, ending: Ending) -> TurnEnd:
    return TurnEnd(ending, run_end(session.state.run, session.log.blob, ending))


async def _until_ended(context: TurnContext) -> BatchOutcome:
    session = context.session
    while True:
        for wanted in context.turn.unfinished():
            await context.gate.run(wanted.call, context.turn.turn_id)
        batch = _batch(session)
        if batch.end is not None and batch.decision is None:
            if not batch.together or (batch.end == "ok" and not batch.remaining):
                return BatchOutcome("completed")
            if reached := context.limit_reached:
                return BatchOutcome("limit", reached)
            take_steering(context)
            await make_room(context)
            session.append(await _decided(context, batch))
            batch = _batch(session)
        if batch.decision == "stop":
            return BatchOutcome("stopped", batch.why)
        following = batch.next()
        if following is None:
            return BatchOutcome("completed")
        if reached := context.limit_reached:
            return BatchOutcome("limit", reached)
        session.append(_step(context, batch, following))


def _step(context: TurnContext, batch: BatchState, following: NextCommand) -> events.BatchStep:
    number, planned = following
    again = number == batch.number
    arguments = {"command": planned.command, "timeout": COMMAND_SECONDS}
    return events.BatchStep(
        turn_id=context.turn.turn_id,
        batch_id=batch.batch_id,
        number=number,
        call=ToolCall(
            id=new_id("call"),
            name="run",
            arguments=arguments | ({"network": True} if planned.network else {}),
        ),
        by="user" if planned.by_user else "model",
        model=context.main.models[0].name,
        told=batch.told,
        total=batch.total,
        succeeded=batch.succeeded,
        failed=batch.failed - again,
        remaining=batch.total - number,
    )


def _batch(session: Session) -> BatchState:
    batch = session.turn.batch
    if batch is None:
        raise LostHold(f"The batch of session {session.id} was ended by another process.")
    return batch


# The decision after each command: by a rule where one is enough, else by the model


async def _decided(context: TurnContext, batch: BatchState) -> events.BatchDecided:
    """The decision and who made it; the batch stops where the model's answer cannot be read twice."""
    by_rule = _by_rule(batch, asks=context.strategy.side_work and batch.told)
    decided = by_rule or await _by_model(context, batch)
    unread = f"the model gave no usable decision: {decided.problem}" if decided.problem else ""
    return events.BatchDecided(
        turn_id=context.turn.turn_id,
        batch_id=batch.batch_id,
        number=batch.number,
        decision=decided.decision,
        by="rule" if by_rule or unread else "model",
        why=unread or decided.why,
        command=decided.command,
        network=decided.network,
    )


def _by_rule(batch: BatchState, *, asks: bool) -> ModelDecision | None:
    if batch.end == "ok":
        return None if asks else ModelDecision("continue")
    if batch.rejected:
        return ModelDecision("stop", why="you said no to it")
    if not batch.told:
        return ModelDecision("stop", why=OUTPUT_WITHHELD)
    return ModelDecision("stop", why=TOO_MANY_CORRECTIONS) if batch.corrections >= MAX_CORRECTIONS else None


async def _by_model(context: TurnContext, batch: BatchState) -> ModelDecision:
    side = SideCall(
        context.session, context.main.models[0], "main", context.main.cost, effort=context.main.effort
    )
    decided = ModelDecision()
    for _ in range(DECISION_TRIES):
        answered = await side.ask(_request(context, batch, decided.problem), "batch")
        problem = answered.problem.rstrip(".")
        decided = ModelDecision(problem=problem) if problem else read_decision(answered.text)
        if not decided.problem:
            return decided
    return decided


def _request(context: TurnContext, batch: BatchState, problem: str) -> Request:
    model = context.main.models[0]
    # The conversation as it was shown, tools included, so that the provider's cache is used.
    again = UNREADABLE_DECISION.format(problem=problem) if problem else ""
    question = "\n\n".join(filter(None, (_decision_question(batch), again)))
    asked = UserEntry(context.session.seq, question, by="handrail")
    full = assemble_request(
        prompt=context.prompt,
        cut=context.session.state.cut,
        transcript=[*context.compactor.shown(model), asked],
        capabilities=model.capabilities,
        model=model.name,
        max_output=ANSWER_TOKENS,
        deadlines=context.deadlines,
        secrets=context.secrets,
        stored=context.stored,
    )
    results = [each for each in context.session.transcript if isinstance(each, ToolResultEntry)]
    output = results[-1].content[-SHORT_OUTPUT:] if results else ""
    short = f"Command: {batch.planned[batch.number - 1].command}\nIt wrote:\n{output}"
    short = context.secrets.hide(f"{short}\n{again}" if again else short)
    return context.strategy.side_request("batch", full, short)


def _decision_question(batch: BatchState) -> str:
    coming = batch.planned[batch.number].command if batch.remaining else ""
    return DECISION_PROMPT.format(
        number=batch.number,
        total=batch.total,
        succeeded=batch.succeeded,
        failed=batch.failed,
        remaining=batch.remaining,
        following=f" The next is: {coming}" if coming else "",
        place="in place of the next" if batch.end == "ok" else "in its place",
    )


# By picking a command the user approves it, once and word for word


class PickedAsker(NamedTuple):
    """Asks about everything except the picked command; denied commands never get here."""

    session: Session
    asker: Asker

    async def approval(self, asked: events.ApprovalAsked) -> events.ApprovalAnswered:
        """The pick counts as the answer and is recorded; the user is asked about what they could not see."""
        turn = self.session.state.turn
        batch = turn.batch if turn else None
        planned = batch.planned[batch.number - 1] if batch and batch.call_id == asked.call_id else None
        seen = planned and asked.preview == f"{WITH_NETWORK * planned.network}{planned.command}"
        if planned is None or not planned.by_user or not seen or why_unreadable(planned.command):
            return await self.asker.approval(asked)
        self.session.append(
            events.ApprovalPicked(
                turn_id=asked.turn_id,
                call_id=asked.call_id,
                tool=asked.tool,
                preview=asked.preview,
                why=asked.why,
                key=asked.key,
            )
        )
        return events.ApprovalAnswered(approval_id=asked.approval_id, decision="once")

    async def question(self, asked: events.QuestionAsked) -> events.QuestionAnswered:
        return await self.asker.question(asked)
