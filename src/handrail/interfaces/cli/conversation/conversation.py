"""The conversation in a terminal: shows what the session does and sends what the user types."""

import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol, TypeVar

import anyio
from msgspec.structs import replace
from prompt_toolkit.output.vt100 import Vt100_Output

from handrail.app.app import App
from handrail.app.command_checks import answer_with_secret
from handrail.app.history.sessions import suggested_commands
from handrail.app.mentions import complete_name
from handrail.config.places import make_private
from handrail.config.user_commands import UserCommands
from handrail.interfaces.cli.activity import Activity
from handrail.interfaces.cli.conversation import questions, slash
from handrail.interfaces.cli.conversation.input_line import Prompt
from handrail.interfaces.cli.conversation.message_input import MessageCompleter, PastedImages
from handrail.interfaces.cli.conversation.welcome import GitStatus, welcome
from handrail.interfaces.cli.render.events import next_step_lines, suggested_commands_note
from handrail.interfaces.cli.render.screen import Screen
from handrail.interfaces.cli.render.styles import Line, fit, line, one_line
from handrail.interfaces.cli.render.tool_calls import note
from handrail.interfaces.cli.terminal import program_name, use_colour, workspace_flag
from handrail.protocol import events
from handrail.protocol.commands import Cancel, Command, SendMessage
from handrail.protocol.errors import HandrailError
from handrail.protocol.values import NextStep


class MessageQueue:
    """Messages that wait to be sent. One that was withdrawn before it was sent is not sent."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._withdrawn: set[str] = set()

    @property
    def texts(self) -> Iterable[str]:
        return self._texts.values()

    def add(self, message: SendMessage) -> None:
        self._texts[message.message_id] = message.text

    def remove(self, message_id: str) -> None:
        self._texts.pop(message_id, None)

    def withdraw(self) -> tuple[str, ...]:
        ids = tuple(self._texts)
        self._withdrawn.update(ids)
        self._texts.clear()
        return ids

    def pop_withdrawn(self, message_id: str) -> bool:
        """Whether the message was withdrawn; asked once, when it is about to be sent."""
        withdrawn = message_id in self._withdrawn
        self._withdrawn.discard(message_id)
        return withdrawn

    def clear(self) -> None:
        self._texts.clear()


Action = Callable[[], Awaitable[object]]
Result = TypeVar("Result")

TICK_SECONDS = 0.25
TWICE_SECONDS = 2.0
GIT_SECONDS = 10.0


class Beside(Protocol):
    """What runs beside the conversation, with lines that show how far it is."""

    def rows(self, width: int) -> list[Line]: ...

    def stop(self) -> None: ...

    async def run(self, talk: "Conversation") -> None: ...


class Conversation:
    def __init__(self, app: App) -> None:
        self.app = app
        self.session_id = ""
        self._colour = use_colour(sys.stdout, app.settings.display)
        self.own_commands = UserCommands(app.places, app.workspace.root, slash.COMMANDS)
        self._completer = MessageCompleter(
            app.workspace.root, self._meanings, app.agents.names, lambda typed: complete_name(app, typed)
        )
        self._prompt = Prompt(
            self,
            Vt100_Output.from_pty(sys.stdout),
            history=make_private(app.places.data) / "history",
            completer=self._completer,
            colour=self._colour,
        )
        self._actions, self._to_do = anyio.create_memory_object_stream[Action](100)
        self._following: anyio.CancelScope | None = None
        self._queued = MessageQueue()
        self.beside: Beside | None = None
        self._reset()

    def _meanings(self) -> dict[str, str]:
        """Every slash command with its help, for completion."""
        own = {each.name: one_line(each.description) for each in self.own_commands.all()[0] if each.usable}
        return {name: command.help for name, command in slash.COMMANDS.items()} | own

    def _reset(self) -> None:
        self._screen = Screen(self._prompt.width, colour=self._colour)
        self._activity = Activity()
        self._asked = questions.PendingQuestions()
        self._queued.clear()
        self._images = PastedImages(self.app)
        self._choice: questions.Choice | None = None
        self._answer, self._ran = "", False
        self.suggested: tuple[str, ...] = ()
        self.next_steps: tuple[NextStep, ...] = ()
        self.steps_by = ""
        self._hint = ""
        self._hinted = 0.0
        self._opened = time.time()
        self._holds: bool | None = None
        self._seen = 0

    async def run(self, session_id: str = "", message: str = "") -> None:
        async def show_git() -> None:
            if await git.within(GIT_SECONDS) and git.words:
                self.tell("git", git.words)
                self._prompt.refresh()

        async def leave_on_signals() -> None:
            with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGHUP) as signals:
                async for _ in signals:
                    self.leave()

        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._act)
            self._tasks.start_soon(self._tick)
            self._tasks.start_soon(leave_on_signals)
            git = GitStatus(self.app, resumed=bool(session_id))
            self._tasks.start_soon(git.ask)
            first = await welcome(self.app, session_id, self.width, git)
            self.say([*first, ()])
            if not await git.within(0):
                self._tasks.start_soon(show_git)
            if session_id:
                await self.open(session_id)
            if message:
                self.submitted(message)
            else:
                self.app.warm(session_id)
            await self._prompt.run()
            self._tasks.cancel_scope.cancel()
        if self.session_id and self.app.state(self.session_id).turns:
            again = f"{program_name()} resume {self.session_id}{workspace_flag(self.app.workspace.root)}"
            self._prompt.write([line(("dim", f"`{again}` continues it."))])

    def say(self, rows: list[Line]) -> None:
        """Show lines that are not part of the session."""
        self._prompt.write(rows)

    def tell(self, name: str, text: str) -> None:
        self.say(note(name, text, self._prompt.width))

    @property
    def width(self) -> int:
        return self._prompt.width

    async def send(self, command: Command) -> None:
        """Send the session a command; creates the session where there is none yet."""
        if not self.session_id:
            await self.open(self.app.new_session())
        if isinstance(command, SendMessage):
            command = replace(command, chosen=self._completer.chosen(command.text))
        await self.app.send(self.session_id, command)

    async def open(self, session_id: str) -> None:
        """Show another session: its last exchange, then everything as it happens."""
        self.close()
        self.session_id = session_id
        self._seen = self.app.last_seq(session_id)  # opening it counts as having seen it
        self.app.attach(session_id)
        self._tasks.start_soon(self._follow, session_id, self.app.last_exchange(session_id))

    def close(self) -> None:
        """Show no session; the next message starts a new one."""
        if self._following:
            self._following.cancel()
        if self.session_id:
            self.app.detach(self.session_id)
        self.session_id = ""
        self._reset()

    def compose(self, text: str) -> None:
        """Let the user edit a text, and send it with Enter."""
        self._prompt.compose(text)

    async def suspended(self, call: Callable[[], Result]) -> Result:
        """What the call returns, which has the terminal for itself, as an editor needs it."""
        return await self._prompt.suspended(call)

    def choose(self, choice: questions.Choice) -> None:
        """Ask a question that is not part of the session; the next line answers it."""
        self._choice = choice
        self._prompt.refresh()

    def run_beside(self, work: "Beside") -> None:
        """Run checks or a split, while the user can go on typing."""

        async def run() -> None:
            try:
                await work.run(self)
            finally:
                self.beside = None
                self._prompt.refresh()

        self.beside = work
        self._tasks.start_soon(self._guarded, run)

    def leave(self) -> None:
        self._prompt.leave()

    def submitted(self, text: str) -> None:
        deciding, now = self._asked.deciding, time.monotonic()
        self._hint, deciding.typed, deciding.pressed = "", 0.0, ""
        word = text.strip().lower()
        if self._asked.rejecting:
            self._reply(self._asked.reject(text.strip(), now))
        elif asked := self._asked.secret:
            session_id, question = self.session_id, asked.question_id

            async def answer() -> None:
                await answer_with_secret(self.app, session_id, question, text)

            self._do(answer)
        elif self._choice:
            self._chosen(self._choice, word)
        elif not text.strip():
            return
        elif deciding.waiting and word in questions.ANSWER_WORDS:
            self._decide(questions.ANSWER_WORDS[word], spelled=word in ("yes", "always", "write"))
        elif called := slash.SLASH_PATTERN.match(text):
            self._do(lambda: slash.run_slash(self, called[1].lower(), (called[2] or "").strip()))
        elif self._asked.questions:
            self._reply(self._asked.answer_question(text, self.width))
        else:
            message = SendMessage(text=text, images=self._images.mentioned(text), seen=self._seen)
            if self._activity.running:
                self._queued.add(message)
            shown = self.session_id

            async def send_unless_withdrawn() -> None:
                # It may have waited behind a slow command, which may have opened another session, of which
                # the user had seen nothing.
                if not self._queued.pop_withdrawn(message.message_id):
                    seen = message.seen if self.session_id == shown else 0
                    await self.send(replace(message, seen=seen))

            self._do(send_unless_withdrawn)

    def interrupted(self) -> None:
        """Ctrl-C with nothing typed, or while a turn is running."""
        now = time.monotonic()
        if self._asked.rejecting:
            self._asked.rejecting = ""
        elif self._choice:
            self._chosen(self._choice, "n")
        elif self.beside and not self._activity.running:
            self.beside.stop()
        elif self._activity.running:
            if self._asked.deciding.pressed:
                self._prompt.buffer.reset()
            self._activity.set("stopping", "", time.time())
            self._prompt.put_back("\n".join(self._queued.texts))
            stop = Cancel(withdraw=self._queued.withdraw())
            self._tasks.start_soon(self._guarded, lambda: self.app.send(self.session_id, stop))
        elif self._hint and now - self._hinted < TWICE_SECONDS:
            self.leave()
        else:
            self._hint, self._hinted = "Press Ctrl-C again, or Ctrl-D, to leave.", now
        self._prompt.refresh()

    def ended(self) -> None:
        """Ctrl-D with nothing typed."""
        now = time.monotonic()
        if not self._activity.running or (self._hint and now - self._hinted < TWICE_SECONDS):
            self.leave()
        else:
            self._hint, self._hinted = "A turn is running: Ctrl-C stops it, Ctrl-D again leaves.", now
            self._prompt.refresh()

    def typed(self) -> None:
        self._asked.deciding.typed, self._asked.deciding.pressed = time.monotonic(), ""
        self._hint = ""

    def pasted(self, text: str) -> str:
        return text if self.expects_secret() else self._images.dropped(text)

    def wants_clipboard(self) -> None:
        """Ctrl-V: terminals paste text by themselves, but not images."""

        async def paste_image() -> None:
            if mention := await self._images.pasted():
                self._prompt.buffer.insert_text(mention)
            else:
                self._hint, self._hinted = "There is no image in the clipboard.", time.monotonic()

        self._tasks.start_soon(self._guarded, paste_image)

    def expects_key(self) -> bool:
        """Whether one of `ANSWER_KEYS`, with nothing typed, is an answer."""
        return self._asked.deciding.ready(time.monotonic()) and not self._asked.rejecting and not self._choice

    def expects_number(self, number: int) -> bool:
        """Whether the number, with nothing typed, is a choice of a menu."""
        asked = self._asked.deciding.waiting or self._asked.rejecting or self._choice
        return not (asked or self.busy()) and self._asked.expects_number(number, time.monotonic())

    def pressed(self, key: str) -> None:
        """A key was typed that is an answer, unless more text follows."""
        deciding = self._asked.deciding
        deciding.pressed, typed = key, deciding.typed

        async def decide_if_alone() -> None:
            await anyio.sleep(questions.ALONE_SECONDS)
            if deciding is self._asked.deciding and deciding.typed == typed and deciding.pressed:
                self._prompt.buffer.reset()
                deciding.typed, deciding.pressed = 0.0, ""
                if key.isdigit():
                    self.submitted(key)
                else:
                    self._decide(questions.ANSWER_WORDS[key.lower()], spelled=False)
                self._prompt.refresh()

        self._tasks.start_soon(decide_if_alone)

    def _decide(self, key: str, *, spelled: bool) -> None:
        self._reply(self._asked.decide(key, time.monotonic(), self.width, spelled=spelled))

    def _reply(self, reply: questions.Reply) -> None:
        if reply.rows:
            self.say(list(reply.rows))
        if answer := reply.answer:
            self._do(lambda: self.send(answer))

    def expects_secret(self) -> bool:
        """Whether what is typed is a secret: it is neither shown nor kept in the history."""
        return self._asked.secret is not None

    def busy(self) -> bool:
        """Whether there is something that Ctrl-C stops."""
        return self._activity.running or bool(self._asked.rejecting or self._choice or self.beside)

    def label(self) -> str:
        return self._choice.label if self._choice and not self._asked.rejecting else self._asked.label()

    def live(self, width: int) -> list[Line]:
        rows = self._screen.unfinished()
        if rows and self._screen.after_user:
            rows = [(), *rows]
        deciding = self._asked.deciding
        if deciding.waiting and not self._asked.rejecting:
            rows = rows + deciding.lines(time.monotonic(), width, self._prompt.buffer.text)
        elif not deciding.waiting and (status := self._activity.lines(time.time(), width)):
            rows = rows + ([()] if rows or self._screen.after_user else []) + status
        rows = rows + (self.beside.rows(width) if self.beside else [])
        for text in self._queued.texts:
            rows = rows + note("queued", fit(text, width - 12), width)
        rows = rows + self._activity.behind(width)
        if self._hint and time.monotonic() - self._hinted < TWICE_SECONDS:
            rows = [*rows, line(("dim", self._hint))]
        elif not self._prompt.buffer.text and self.expects_number(1):
            rows = [*rows, line(("dim", f"  1 to {self._asked.numbers}: one key chooses, without Enter"))]
        return [*rows, ()]

    def _chosen(self, choice: questions.Choice, word: str) -> None:
        if key := questions.choice_key(word, choice.keys):
            self._choice = None
            self._prompt.buffer.reset()
            self._do(lambda: choice.answered(key))
        else:
            self.tell("asked", f"answer with {questions.describe_keys(choice.keys)}")

    def _do(self, action: Action) -> None:
        """Do it after everything the user did before."""
        self._actions.send_nowait(action)

    async def _act(self) -> None:
        async for action in self._to_do:
            await self._guarded(action)

    async def _guarded(self, action: Action) -> None:
        try:
            await action()
        except HandrailError as problem:
            for text in str(problem).splitlines():
                self.say(note("problem", text, self.width, "bad"))
        self._prompt.refresh()

    async def _follow(self, session_id: str, after: int) -> None:
        with anyio.CancelScope() as scope:
            self._following = scope
            async for item in self.app.follow(session_id, after):
                self._screen.width = self.width
                if isinstance(item, events.Delta):
                    self._activity.heard(item, time.time())
                    self._prompt.write(self._screen.stream(item))
                else:
                    self._saw(item)
                    await self._offer(item.event)
                self._prompt.refresh()

    def _saw(self, recorded: events.Recorded) -> None:
        self._seen = max(self._seen, recorded.seq)
        if self._activity.rings(recorded, self._opened):
            self._prompt.bell()
        self._activity.saw(recorded)
        typing_secret = self.expects_secret()
        self._asked.saw(recorded.event, time.monotonic())
        if typing_secret and not self.expects_secret():
            self._prompt.buffer.reset()  # a secret that was half typed must not become a message
        if isinstance(recorded.event, events.UserMessage):
            self._queued.remove(recorded.event.message_id)
        self._prompt.write(self._screen.show(recorded.event))

    async def _offer(self, event: events.Event) -> None:
        """Once a turn has ended, show which commands and next steps its answer suggests."""
        match event:
            case events.TurnStarted():
                self._ran = False
            case events.BatchStarted():
                self._ran = True
            case events.Answered(apart=False) if event.text.strip():
                self._answer = event.text
                offers = event.structured or event.recovered
                self.next_steps, self.steps_by = offers.next_steps if offers else (), "model"
            case events.TurnFinished() if event.next_steps:
                self.next_steps, self.steps_by = event.next_steps, event.offered_by
                self.say(next_step_lines(event.next_steps, self.width))
            case events.SessionCopied(how="import"):
                self.next_steps, self.steps_by = (), ""  # somebody else's file chose them
        if not isinstance(event, events.TurnFinished):
            return
        answer, self._answer = self._answer, ""
        found = await suggested_commands(answer) if answer else ()
        if answer and (found or not self._ran):  # after one has run, the others of the list can still be run
            self.suggested = found
        if found:
            self.say(suggested_commands_note(found, self.width))
        if (answer or event.next_steps) and (count := len(self.next_steps)):
            up_to = f", up to /next {count}" if count > 2 else ""
            ways = f"/next sends the first, /next 2 the second{up_to}"
            self.tell("next", "/next sends it" if count == 1 else ways)

    async def _tick(self) -> None:
        """Redraw clocks, and say when another process holds the session or has left it to this one."""
        while True:
            await anyio.sleep(TICK_SECONDS)
            if self._activity.word or self._hint or self.beside or self._asked.numbers:
                self._prompt.refresh()
            holds = self.app.is_holder(self.session_id) if self.session_id else self._holds
            if self._holds is None and holds is False:
                self.tell("follows", "another process runs this session; what you type here is sent to it.")
            elif self._holds is False and holds:
                self.tell("holds", "the other process has left; this one continues the session.")
            self._holds = holds
