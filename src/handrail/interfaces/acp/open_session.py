"""A session that the client has open: its events go out as updates, its prompts come in as messages."""

from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

import anyio
from acp import schema
from acp.helpers import text_block
from msgspec import Struct, field

from handrail.app.app import App
from handrail.app.history.changes import changed_texts
from handrail.interfaces.acp.permissions import Link, Permissions
from handrail.interfaces.acp.terminals import Terminals
from handrail.interfaces.acp.tool_calls import COMMAND_TOOL, text_content
from handrail.interfaces.acp.updates import Update, Updates
from handrail.protocol import events
from handrail.protocol.commands import AnswerQuestion, Cancel, Command, SendMessage
from handrail.protocol.errors import HandrailError
from handrail.protocol.ids import new_id
from handrail.protocol.values import FinishReason

PAGE_EVENTS = 500
OUTPUT_SECONDS = 0.1
"""Between two updates with the output of a command, which repeat its end."""
STOP_REASONS: dict[FinishReason, schema.StopReason] = {
    "cancelled": "cancelled",
    "interrupted": "cancelled",
    "budget": "max_turn_requests",
}


class Prompt(Struct, eq=False):
    """A prompt of the client that is not answered yet."""

    turn_id: str = ""
    ended: anyio.Event = field(default_factory=anyio.Event)
    stop: schema.StopReason = "end_turn"
    problem: HandrailError | None = None

    def end(self, stop: schema.StopReason) -> None:
        self.stop = stop
        self.ended.set()


class OpenSession:
    def __init__(self, app: App, session_id: str, folder: Path, link: Link, *, has_terminals: bool) -> None:
        """`has_terminals`: the client shows terminals."""
        self.app = app
        self.id = session_id
        self.folder = folder
        self._client, _, self._tasks = link
        self._own: set[str] = set()
        self._prompts: dict[str, Prompt] = {}
        """By message id."""
        self._questions: dict[str, events.QuestionAsked] = {}
        self.cancels = 0
        """How often the client has cancelled."""
        self._problem: HandrailError | None = None
        """Why the session can no longer be followed."""
        self._following = anyio.CancelScope()
        self._beside = anyio.CancelScope()
        self._updates = Updates(folder, lambda change: changed_texts(app, change), self._own)
        self._permissions = Permissions(app, session_id, link, self.tell)
        self._terminals = Terminals(link.client, session_id, folder) if has_terminals else None
        self._seq = 0

    async def replay(self) -> None:
        """Send everything that was ever shown of the session."""
        end = self.app.last_seq(self.id)
        while self._seq < end:
            found = self.app.read_events(self.id, self._seq, min(PAGE_EVENTS, end - self._seq))
            if not found:
                break
            await self._send_events(found, live=False)

    def skip(self) -> None:
        """Know what has happened so far, without sending it."""
        end = self.app.last_seq(self.id)
        while self._seq < end:
            found = self.app.read_events(self.id, self._seq, min(PAGE_EVENTS, end - self._seq))
            if not found:
                break
            for recorded in found:
                self._updates.apply(recorded)
                self._seq = recorded.seq
                self._remember(recorded.event)

    def take_over(self, earlier: "OpenSession") -> None:
        """Go on in place of another object of the session: the turn runs on, prompts are answered here."""
        earlier.leave()
        self._prompts = earlier._prompts

    def start(self) -> None:
        """Serve the session, ask what it waits for, and follow it from now on."""
        self.app.attach(self.id)
        state = self.app.state(self.id)
        for approval in state.approvals.values():
            self._permissions.approval(approval, self._updates.call_of(approval.call_id))
        for question in state.questions.values():
            self._asked(question)
        self._tasks.start_soon(self._follow)

    def leave(self) -> None:
        """Send and ask nothing more."""
        self._following.cancel()
        self._permissions.close_all()
        if self._terminals:
            self._terminals.close()

    def close(self) -> None:
        self.leave()
        for prompt in self._prompts.values():
            prompt.end("cancelled")
        self.app.detach(self.id)

    async def prompt(self, message: SendMessage) -> schema.StopReason:
        """Send a message, and wait until the turn that takes it has ended and all of it was sent."""
        if self._questions and not message.images:
            return await self._answer("\n\n".join(filter(None, (message.text, message.attached))))
        return await self.send_and_wait(message)

    async def send_and_wait(self, message: SendMessage) -> schema.StopReason:
        cancels = self.cancels
        self._own.add(message.message_id)
        with self._waiting(message.message_id, Prompt()) as prompt:
            await self.app.send(self.id, message)
            if self.cancels != cancels:
                await self.send(Cancel())  # it came before the message
            await prompt.ended.wait()
        return prompt.stop

    @contextmanager
    def _waiting(self, name: str, prompt: Prompt) -> Iterator[Prompt]:
        """For the time until the prompt has ended; raises what ended it."""
        if self._problem:
            raise self._problem
        prompts = self._prompts
        prompts[name] = prompt
        try:
            yield prompt
        finally:
            prompts.pop(name, None)
        if prompt.problem:
            raise prompt.problem

    async def send(self, command: Command) -> None:
        await self.app.send(self.id, command)

    async def cancel(self) -> None:
        """Stop the turn, whether or not the client answers what it was asked."""
        self.cancels += 1
        self._beside.cancel()
        self._permissions.close_all()
        await self.send(Cancel())

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        """For work beside the session: the user's cancel ends the block."""
        self._beside = anyio.CancelScope()
        with self._beside:
            yield

    async def choose(self, title: str, text: str, options: dict[str, str]) -> str:
        """The key of the option that the user picks; empty for none."""
        call = schema.ToolCallStart(
            session_update="tool_call",
            tool_call_id=new_id("n"),
            title=title,
            kind="think",
            status="pending",
            content=text_content(text) or None,
        )
        await self._client.session_update(self.id, call)
        about = schema.ToolCallUpdate(tool_call_id=call.tool_call_id, title=title, content=call.content)
        choices = [
            schema.PermissionOption(option_id=key, name=name, kind="allow_once")
            for key, name in options.items()
        ]
        choices.append(schema.PermissionOption(option_id="none", name="No", kind="reject_once"))
        response = await self._client.request_permission(self.id, about, choices)
        picked = response.outcome.option_id if isinstance(response.outcome, schema.AllowedOutcome) else ""
        done = schema.ToolCallProgress(
            session_update="tool_call_update",
            tool_call_id=call.tool_call_id,
            status="completed" if picked in options else "failed",
        )
        await self._client.session_update(self.id, done)
        return picked if picked in options else ""

    async def tell(self, text: str) -> None:
        """Show the user a text that is not part of the session."""
        chunk = schema.AgentMessageChunk(
            session_update="agent_message_chunk",
            content=text_block(f"{text.strip()}\n"),
            message_id=new_id("n"),
        )
        await self._client.session_update(self.id, chunk)

    async def update(self, update: Update | schema.AvailableCommandsUpdate) -> None:
        await self._client.session_update(self.id, update)

    async def _answer(self, text: str) -> schema.StopReason:
        """The prompt answers the question that waits; the turn goes on with it."""
        question_id, asked = next(iter(self._questions.items()))
        number = text.strip()
        if asked.options and number.isdecimal() and 0 < int(number) <= len(asked.options):
            text = asked.options[int(number) - 1]
        turn = self.app.state(self.id).turn
        with self._waiting(question_id, Prompt(turn_id=turn.turn_id if turn else "")) as prompt:
            await self.send(AnswerQuestion(question_id, text))
            if prompt.turn_id:
                await prompt.ended.wait()
        return prompt.stop

    async def _follow(self) -> None:
        pause = 0.0
        with self._following:
            try:
                async with aclosing(
                    self.app.follow_batches(self.id, self._seq, pace=lambda: pause)
                ) as batches:
                    async for batch in batches:
                        pause = await self._send_batch(batch)
            except ConnectionError:
                pass  # the client has gone: the turn goes on, and is in the log
            except HandrailError as problem:
                self._fail(problem)

    async def _send_batch(self, batch: list[events.Recorded] | list[events.Delta]) -> float:
        """Send what is new; returns how long to wait for more of it."""
        if not batch or isinstance(batch[0], events.Recorded):
            await self._send_events([each for each in batch if isinstance(each, events.Recorded)], live=True)
            return 0.0
        latest: dict[str, Update] = {}
        output = False
        for delta in batch:
            if not isinstance(delta, events.Delta):
                continue
            if self._terminals and delta.kind == "output":
                self._terminals.feed(delta.message_id, delta.text)
            for update in self._updates.stream(delta):
                if isinstance(update, schema.ToolCallProgress):
                    latest[update.tool_call_id] = update  # only the last state of a call counts
                    output = True
                else:
                    await self.update(update)
        for update in latest.values():
            await self.update(update)
        return OUTPUT_SECONDS if output else 0.0

    async def _send_events(self, found: list[events.Recorded], *, live: bool) -> None:
        for recorded in found:
            for update in self._updates.apply(recorded):
                await self.update(update)
            self._seq = recorded.seq
            if live:
                self._saw(recorded.event)
            else:
                self._remember(recorded.event)

    def _remember(self, event: events.Event) -> None:
        """What an event means for prompts and open questions, after it was sent."""
        match event:
            case events.UserMessage():
                if prompt := self._prompts.get(event.message_id):
                    prompt.turn_id = event.turn_id
            case events.QuestionAnswered():
                self._questions.pop(event.question_id, None)
            case events.TurnFinished():
                self._questions.clear()
                stop = STOP_REASONS.get(event.reason, "end_turn")
                for prompt in self._prompts.values():
                    if prompt.turn_id == event.turn_id:
                        prompt.end(stop)

    def _saw(self, event: events.Event) -> None:
        """The same for an event that is new: what it asks is asked, and what it answers is closed."""
        self._remember(event)
        if self._terminals and isinstance(event, events.ToolStarted | events.ToolFinished):
            self._show_output(self._terminals, event)
        match event:
            case events.ApprovalAsked():
                self._permissions.approval(event, self._updates.call_of(event.call_id))
            case events.ApprovalAnswered():
                self._permissions.close(event.approval_id)
            case events.QuestionAsked():
                self._asked(event)
            case events.QuestionAnswered():
                self._permissions.close(event.question_id)
            case events.TurnFinished():
                self._permissions.close_all()

    def _show_output(self, terminals: Terminals, event: events.ToolStarted | events.ToolFinished) -> None:
        """Show a command's output in a terminal of the client, while it runs."""
        call = self._updates.call_of(event.call_id)
        if isinstance(event, events.ToolFinished):
            terminals.finish(event.call_id, 0 if event.status == "ok" else 1)
        elif call and event.tool == COMMAND_TOOL and not event.arguments.get("background"):

            async def opened() -> None:
                if not call.over:
                    call.content = call.terminal_content()
                    await self.update(call.update())

            terminals.begin(event.call_id)
            self._tasks.start_soon(terminals.show, event.call_id, call, opened)

    def _asked(self, event: events.QuestionAsked) -> None:
        """Ask one with options, or for a secret, like a permission; the next prompt answers any other."""
        if event.options or event.secret:
            self._permissions.question(event)
            return
        self._questions[event.question_id] = event
        for prompt in self._prompts.values():
            if prompt.turn_id == event.turn_id:
                prompt.end("end_turn")

    def _fail(self, problem: HandrailError) -> None:
        self._problem = problem
        for prompt in self._prompts.values():
            prompt.problem = problem
            prompt.ended.set()
