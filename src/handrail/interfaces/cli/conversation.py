"""The conversation: shows what the session does, and sends it what the user says."""

import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread
from prompt_toolkit.output.vt100 import Vt100_Output

from handrail.app import App
from handrail.config.places import make_private
from handrail.interfaces.cli import slash, slash_next
from handrail.interfaces.cli.activity import Activity
from handrail.interfaces.cli.asked import Asked, Reply
from handrail.interfaces.cli.batches import offered
from handrail.interfaces.cli.choices import Choice, key_of, meaning
from handrail.interfaces.cli.completion import MessageCompleter
from handrail.interfaces.cli.deciding import ALONE_SECONDS, WORDS, Deciding
from handrail.interfaces.cli.pictures import Pictures
from handrail.interfaces.cli.program import elsewhere, program
from handrail.interfaces.cli.prompt import Prompt
from handrail.interfaces.cli.queued import Queued
from handrail.interfaces.cli.screen import Screen
from handrail.interfaces.cli.styles import BAD, DIM, Line, fit, line
from handrail.interfaces.cli.terminal import takes_colour
from handrail.interfaces.cli.tool_lines import note
from handrail.interfaces.cli.welcome import Tree, welcome
from handrail.protocol.commands import Cancel, Command, SendMessage
from handrail.protocol.errors import HandrailError
from handrail.protocol.events import (
    Answered,
    BatchStarted,
    Delta,
    Event,
    Recorded,
    TurnFinished,
    TurnStarted,
    UserMessage,
)
from handrail.protocol.structured import NextStep

Action = Callable[[], Awaitable[None]]

TICK_SECONDS = 0.25
TWICE_SECONDS = 2.0
TREE_SECONDS = 10.0


class Conversation:
    def __init__(self, app: App) -> None:
        self.app = app
        self.session_id = ""
        colour = takes_colour(sys.stdout, app.settings.display, os.environ)
        self._prompt = Prompt(
            self,
            Vt100_Output.from_pty(sys.stdout),
            history=make_private(app.places.data) / "history",
            completer=MessageCompleter(app.workspace.root, slash.meanings(), app.agents.names),
            colour=colour,
        )
        self._colour = colour
        self._actions, self._to_do = anyio.create_memory_object_stream[Action](100)
        self._following: anyio.CancelScope | None = None
        self._queued = Queued()
        self._reset()

    def _reset(self) -> None:
        """Forget the session that was shown."""
        self._screen = Screen(self._prompt.width, colour=self._colour)
        self._activity = Activity()
        self._asked = Asked()
        self._queued.forget()
        self._pictures = Pictures(self.app.images)
        self._choice: Choice | None = None
        self._answer, self._ran = "", False
        self.suggested: tuple[str, ...] = ()
        """Commands of the last answer."""
        self.next_steps: tuple[NextStep, ...] = ()
        self._hint = ""
        self._hinted = 0.0
        self._opened = time.time()
        self._holds: bool | None = None
        self._seen = 0
        """The last event that was shown."""

    async def run(self, session_id: str = "", message: str = "") -> None:
        """Talk until the user leaves."""
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._act)
            self._tasks.start_soon(self._tick)
            self._tasks.start_soon(self._end_on_signals)
            tree = Tree(self.app, resumed=bool(session_id))
            self._tasks.start_soon(tree.ask)
            first = await welcome(self.app, session_id, self.width, tree)
            self.say([*first, ()])
            if not await tree.within(0):
                self._tasks.start_soon(self._tell_tree, tree)
            if session_id:
                await self.open(session_id)
            if message:
                self.submitted(message)
            else:
                self.app.warm(session_id)
            await self._prompt.run()
            self._tasks.cancel_scope.cancel()
        if self.session_id and self.app.state(self.session_id).turns:
            again = f"{program()} resume {self.session_id}{elsewhere(self.app.workspace.root)}"
            self._prompt.write([line((DIM, f"`{again}` goes on here."))])

    async def _tell_tree(self, tree: Tree) -> None:
        """What the first lines could not wait for."""
        if await tree.within(TREE_SECONDS) and tree.words:
            self.tell("git", tree.words)
            self._prompt.refresh()

    # What slash commands use

    def say(self, rows: list[Line]) -> None:
        """Show lines that are no part of the session."""
        self._prompt.write(rows)

    def tell(self, name: str, text: str) -> None:
        """Show one note."""
        self.say(note(name, text, self._prompt.width))

    @property
    def width(self) -> int:
        return self._prompt.width

    async def send(self, command: Command) -> None:
        """Give the session a command; the session is made when there is none yet."""
        if not self.session_id:
            await self.open(self.app.new_session())
        await self.app.send(self.session_id, command)

    async def open(self, session_id: str) -> None:
        """Show another session: its last exchange, then all that happens."""
        self.close()
        self.session_id = session_id
        self._seen = self.app.last_seq(session_id)  # whoever opens it knows how it stands
        self.app.attach(session_id)
        self._tasks.start_soon(self._follow, session_id, self.app.last_exchange(session_id))

    def close(self) -> None:
        """Show no session; the next message begins a new one."""
        if self._following:
            self._following.cancel()
        if self.session_id:
            self.app.detach(self.session_id)
        self.session_id = ""
        self._reset()

    def choose(self, choice: Choice) -> None:
        """Ask a question that is no part of the session; the next line that is entered answers it."""
        self._choice = choice
        self._prompt.refresh()

    def leave(self) -> None:
        self._prompt.leave()

    # What the user does

    def submitted(self, text: str) -> None:
        deciding, now = self._asked.deciding, time.monotonic()
        self._hint, deciding.typed, deciding.pressed = "", 0.0, ""
        word = text.strip().lower()
        if self._asked.rejecting:
            self._reply(self._asked.reject(text.strip(), now))
        elif self._choice:
            self._chosen(self._choice, word)
        elif not text.strip():
            return
        elif deciding.waiting and word in WORDS:
            self._decide(WORDS[word], spelled=word in ("yes", "always", "write"))
        elif called := slash.parse(text):
            self._do(lambda: slash.call(self, called))
        elif self._asked.questions:
            self._reply(self._asked.answer_question(text, self.width))
        else:
            message = SendMessage(text=text, images=self._pictures.mentioned(text), seen=self._seen)
            if self._activity.running:
                self._queued.add(message)
            shown = self.session_id
            self._do(lambda: self._send_unless_back(message, shown))

    async def _send_unless_back(self, message: SendMessage, shown: str) -> None:
        """A message may have waited behind a slow command when the user stopped the turn.

        Or when that command opened another session than the one shown: of that one its sender saw nothing.
        """
        if not self._queued.is_back(message.message_id):
            seen = message.seen if self.session_id == shown else 0
            await self.send(message.model_copy(update={"seen": seen}))

    def interrupted(self) -> None:
        now = time.monotonic()
        if self._asked.rejecting:
            self._asked.rejecting = ""
        elif self._choice:
            self._chosen(self._choice, "n")
        elif self._activity.running:
            if self._asked.deciding.pressed:
                self._prompt.empty()
            self._activity.stopping(time.time())
            self._prompt.put_back("\n".join(self._queued.texts))
            stop = Cancel(withdraw=self._queued.give_back())
            self._tasks.start_soon(self._guarded, lambda: self.app.send(self.session_id, stop))
        elif self._hint and now - self._hinted < TWICE_SECONDS:
            self.leave()
        else:
            self._hint, self._hinted = "Ctrl-C again, or Ctrl-D, leaves.", now
        self._prompt.refresh()

    def ended(self) -> None:
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
        return self._pictures.dropped(text)

    def wants_clipboard(self) -> None:
        self._tasks.start_soon(self._guarded, self._paste_image)

    async def _paste_image(self) -> None:
        if mention := await self._pictures.pasted():
            self._prompt.insert(mention)
        else:
            self._hint, self._hinted = "There is no picture in the clipboard.", time.monotonic()

    def expects_key(self) -> bool:
        return self._asked.deciding.ready(time.monotonic()) and not self._asked.rejecting and not self._choice

    def pressed(self, key: str) -> None:
        deciding = self._asked.deciding
        deciding.pressed = key
        self._tasks.start_soon(self._decide_if_alone, deciding, deciding.typed)

    async def _decide_if_alone(self, deciding: Deciding, typed: float) -> None:
        await anyio.sleep(ALONE_SECONDS)
        if deciding is self._asked.deciding and deciding.typed == typed and deciding.pressed:
            key = deciding.pressed
            self._prompt.empty()
            deciding.typed, deciding.pressed = 0.0, ""
            self._decide(WORDS[key.lower()], spelled=False)
            self._prompt.refresh()

    def _decide(self, key: str, *, spelled: bool) -> None:
        self._reply(self._asked.decide(key, time.monotonic(), self.width, spelled=spelled))

    def _reply(self, reply: Reply) -> None:
        if reply.rows:
            self.say(list(reply.rows))
        if answer := reply.answer:
            self._do(lambda: self.send(answer))

    def busy(self) -> bool:
        return self._activity.running or bool(self._asked.rejecting or self._choice)

    # What the bottom of the terminal shows

    def label(self) -> str:
        return self._choice.label if self._choice and not self._asked.rejecting else self._asked.label()

    def live(self, width: int) -> list[Line]:
        rows = self._screen.unfinished()
        if rows and self._screen.after_user:
            rows = [(), *rows]
        deciding = self._asked.deciding
        if deciding.waiting and not self._asked.rejecting:
            rows = rows + deciding.lines(time.monotonic(), width, self._prompt.text)
        elif not deciding.waiting and (status := self._activity.lines(time.time(), width)):
            rows = rows + ([()] if rows or self._screen.after_user else []) + status
        rows = rows + [
            row for text in self._queued.texts for row in note("queued", fit(text, width - 12), width)
        ]
        rows = rows + self._activity.behind(width)
        if self._hint and time.monotonic() - self._hinted < TWICE_SECONDS:
            rows = [*rows, line((DIM, self._hint))]
        return [*rows, ()]

    # Inside

    def _chosen(self, choice: Choice, word: str) -> None:
        if key := key_of(word, choice.keys):
            self._choice = None
            self._prompt.empty()
            self._do(lambda: choice.answered(key))
        else:
            self.tell("asked", f"an answer is {meaning(choice.keys)}")

    def _do(self, action: Action) -> None:
        """Do it after all that was asked for before."""
        self._actions.send_nowait(action)

    async def _act(self) -> None:
        async for action in self._to_do:
            await self._guarded(action)

    async def _guarded(self, action: Action) -> None:
        try:
            await action()
        except HandrailError as problem:
            for text in str(problem).splitlines():
                self.say(note("problem", text, self.width, BAD))
        self._prompt.refresh()

    async def _follow(self, session_id: str, after: int) -> None:
        with anyio.CancelScope() as scope:
            self._following = scope
            async for item in self.app.follow(session_id, after):
                self._screen.width = self.width
                if isinstance(item, Delta):
                    self._activity.heard(item, time.time())
                    self._prompt.write(self._screen.stream(item))
                else:
                    self._saw(item)
                    await self._offer(item.event)
                self._prompt.refresh()

    def _saw(self, recorded: Recorded) -> None:
        self._seen = max(self._seen, recorded.seq)
        if self._activity.rings(recorded, self._opened):
            self._prompt.bell()
        self._activity.saw(recorded)
        self._asked.saw(recorded.event, time.monotonic())
        if isinstance(recorded.event, UserMessage):
            self._queued.taken(recorded.event.message_id)
        self._prompt.write(self._screen.show(recorded.event))

    async def _offer(self, event: Event) -> None:
        """Once a turn has ended, say which commands and next steps its answer suggests."""
        match event:
            case TurnStarted():
                self._ran = False
            case BatchStarted():
                self._ran = True
            case Answered(apart=False) if event.text.strip():
                self._answer = event.text
                self.next_steps = event.structured.next_steps if event.structured else ()
        if not isinstance(event, TurnFinished) or not self._answer:
            return
        from handrail.tools.suggested import has_shell_block, suggested_commands

        answer, self._answer = self._answer, ""
        found: tuple[str, ...] = ()
        if has_shell_block(answer):
            found = await anyio.to_thread.run_sync(suggested_commands, answer)
        if found or not self._ran:  # what is left of the list can be run after one of it was
            self.suggested = found
        if found:
            self.say(offered(found, self.width))
        if self.next_steps:
            self.say(slash_next.offered(len(self.next_steps), self.width))

    async def _tick(self) -> None:
        """Let clocks go on, and say when the session comes to this terminal or is in another."""
        while True:
            await anyio.sleep(TICK_SECONDS)
            if self._activity.word or self._hint:
                self._prompt.refresh()
            holds = self.app.is_holder(self.session_id) if self.session_id else self._holds
            if self._holds is None and holds is False:
                self.tell("follows", "another process holds this session; it takes what you say here.")
            elif self._holds is False and holds:
                self.tell("holds", "the other process has left; this one goes on.")
            self._holds = holds

    async def _end_on_signals(self) -> None:
        """Give the terminal back as it was."""
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGHUP) as signals:
            async for _ in signals:
                self.leave()
