"""Running what an answer suggests: one command, or a batch one by one, and what the model makes of it."""

from typing import NamedTuple

from handrail.engine.batch_deciding import BatchDeciding
from handrail.engine.ending import Ending
from handrail.engine.turn import Turn
from handrail.protocol.commands import RunAll, RunCommand, SendMessage
from handrail.protocol.errors import LostHold
from handrail.protocol.events import BatchStarted, BatchStep, UserMessage
from handrail.protocol.events.batches import BatchEnd
from handrail.protocol.ids import new_id
from handrail.protocol.values import FinishReason, ToolCall
from handrail.sessions.batch import Batch, Next
from handrail.sessions.turn_state import TurnState

SECONDS = 600
"""The user watches what they picked, and can stop it: a test suite is not cut off as a call of a model is."""
ONE = "Run this command."
ALL = "Run these {count} commands, one by one."
TOLD = "[Handrail runs what you suggested, in your place. After each command you are asked how to go on.]"
REASONS: dict[BatchEnd, FinishReason] = {"limit": "budget"}


class Ended(NamedTuple):
    end: BatchEnd
    why: str = ""


def as_message(command: RunCommand | RunAll) -> SendMessage:
    """What the user says by it. The words of the commands are the model's, and no part of that."""
    count = len(command.commands) if isinstance(command, RunAll) else 1
    text = ONE if count == 1 else ALL.format(count=count)
    return SendMessage(text=text, message_id=command.message_id)


def with_commands(message: UserMessage, started: BatchStarted) -> UserMessage:
    """The message with what the model has to know of a batch."""
    if not (started.together and started.told):
        return message
    commands = (f"{number}. {command}" for number, command in enumerate(started.commands, start=1))
    told = "\n".join((TOLD, *commands))
    return message.model_copy(update={"attached": "\n\n".join(filter(None, (told, message.attached)))})


def batch_of(command: RunCommand | RunAll, turn_id: str, *, told: bool) -> BatchStarted:
    """The event that begins it."""
    together = isinstance(command, RunAll)
    return BatchStarted(
        turn_id=turn_id,
        batch_id=new_id("bt"),
        commands=command.commands if isinstance(command, RunAll) else (command.command,),
        together=together,
        network=command.network,
        told=told,
    )


class RunningAll:
    """A turn that runs commands first. All it knows is in the session's state, as of any turn."""

    def __init__(self, turn: Turn, deciding: BatchDeciding) -> None:
        self._turn = turn
        self._deciding = deciding

    async def run(self) -> None:
        """Go on until the turn has its end in the log."""
        if not self._batch.finished:
            ended = await self._until_ended()
            self._turn.session.append(self._batch.closed(self._state.turn_id, ended.end, ended.why))
            if ended.end != "completed":
                await self._turn.end(Ending(REASONS.get(ended.end, "answered"), _stopped(ended.why)))
                return
        if self._batch.told:
            await self._turn.run()  # the output is the model's next step
        else:
            await self._turn.end(Ending("answered"))

    async def _until_ended(self) -> Ended:
        while True:
            for wanted in self._state.unfinished():
                await self._turn.gate.run(wanted.call, self._state.turn_id)
            batch = self._batch
            if batch.end is not None and batch.decision is None:
                if not batch.together or (batch.end == "ok" and not batch.remaining):
                    return Ended("completed")
                if reached := self._turn.reached():
                    return Ended("limit", reached)
                await self._decide(batch)
                batch = self._batch
            if batch.decision == "stop":
                return Ended("stopped", batch.why)
            following = batch.next()
            if following is None:
                return Ended("completed")
            if reached := self._turn.reached():
                return Ended("limit", reached)
            self._turn.session.append(self._step(batch, following))

    async def _decide(self, batch: Batch) -> None:
        self._turn.take_steering()
        await self._turn.make_room()
        self._turn.session.append(await self._deciding.decided(batch, self._state.turn_id))

    def _step(self, batch: Batch, following: Next) -> BatchStep:
        number, planned = following
        again = number == batch.number
        arguments = {"command": planned.command, "timeout": SECONDS}
        return BatchStep(
            turn_id=self._state.turn_id,
            batch_id=batch.batch_id,
            number=number,
            call=ToolCall(
                id=new_id("call"),
                name="run",
                arguments=arguments | ({"network": True} if planned.network else {}),
            ),
            by="user" if planned.by_user else "model",
            model=self._turn.asking.models[0].name,
            told=batch.told,
            total=batch.total,
            succeeded=batch.succeeded,
            failed=batch.failed - again,
            remaining=batch.total - number,
        )

    @property
    def _state(self) -> TurnState:
        return self._turn.session.turn

    @property
    def _batch(self) -> Batch:
        batch = self._state.batch
        if batch is None:
            raise LostHold(f"The batch of session {self._turn.session.id} was ended by another process.")
        return batch


def _stopped(why: str) -> str:
    return f"Stopped: {why.rstrip('.')}." if why else "Stopped."
