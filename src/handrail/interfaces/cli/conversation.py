"""The conversation: shows what the session does, and sends it what the user says."""

import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable

import anyio
from prompt_toolkit.output.vt100 import Vt100_Output

from handrail.app import App
from handrail.config.places import make_private
from handrail.interfaces.cli import slash
from handrail.interfaces.cli.activity import Activity
from handrail.interfaces.cli.approvals import whole
from handrail.interfaces.cli.choices import Choice, chosen_option, key_of
from handrail.interfaces.cli.completion import MessageCompleter
from handrail.interfaces.cli.deciding import ALONE_SECONDS, WORDS, Deciding
from handrail.interfaces.cli.pasting import dropped_file
from handrail.interfaces.cli.program import elsewhere, program
from handrail.interfaces.cli.prompt import Prompt
from handrail.interfaces.cli.rendering import note
from handrail.interfaces.cli.screen import Screen
from handrail.interfaces.cli.styles import BAD, DIM, Line, fit, line
from handrail.interfaces.cli.terminal import takes_colour
from handrail.interfaces.cli.welcome import Tree, welcome
from handrail.protocol.commands import AnswerApproval, AnswerQuestion, Cancel, Command, SendMessage
from handrail.protocol.errors import HandrailError, UsageProblem
from handrail.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Delta,
    QuestionAnswered,
    QuestionAsked,
    Recorded,
    TurnFinished,
    UserMessage,
)
from handrail.protocol.values import AttachedImage

Action = Callable[[], Awaitable[None]]

DECISIONS = {"y": "once", "a": "always", "w": "allow"}
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
            completer=MessageCompleter(app.workspace.root, slash.meanings()),
            colour=colour,
        )
        self._colour = colour
        self._actions, self._to_do = anyio.create_memory_object_stream[Action](100)
        self._following: anyio.CancelScope | None = None
        self._reset()

    def _reset(self) -> None:
        """Forget the session that was shown."""
        self._screen = Screen(self._prompt.width, colour=self._colour)
        self._activity = Activity()
        self._deciding = Deciding()
        self._questions: dict[str, QuestionAsked] = {}
        self._queued: dict[str, str] = {}
        self._images: dict[str, AttachedImage] = {}
        """Pictures that were dropped here, by the mention that stands for each."""
        self._rejecting = ""
        self._choice: Choice | None = None
        self._hint = ""
        self._hinted = 0.0
        self._opened = time.time()
        self._holds: bool | None = None

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
        self._hint, self._deciding.typed, self._deciding.pressed = "", 0.0, ""
        word = text.strip().lower()
        if self._rejecting:
            self._answer_approval("reject", note=text.strip())
        elif self._choice:
            self._chosen(self._choice, word)
        elif not text.strip():
            return
        elif self._deciding.waiting and word in WORDS:
            self._decide(WORDS[word], spelled=word in ("yes", "always", "write"))
        elif called := slash.parse(text):
            self._do(lambda: slash.call(self, called))
        elif self._questions:
            self._answer_question(next(iter(self._questions.values())), text)
        else:
            message = SendMessage(text=text, images=self._images_in(text))
            if self._activity.running:
                self._queued[message.message_id] = text
            self._do(lambda: self.send(message))

    def interrupted(self) -> None:
        now = time.monotonic()
        if self._rejecting:
            self._rejecting = ""
        elif self._choice:
            self._chosen(self._choice, "n")
        elif self._activity.running:
            if self._deciding.pressed:
                self._prompt.empty()
            self._activity.stopping(time.time())
            stop = Cancel(withdraw=tuple(self._queued))
            self._prompt.put_back("\n".join(self._queued.values()))
            self._queued.clear()
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
        self._deciding.typed, self._deciding.pressed = time.monotonic(), ""
        self._hint = ""

    def pasted(self, text: str) -> str:
        """A picture that was dropped on the terminal becomes a mention, wherever it is: the user named it."""
        file = dropped_file(text)
        if file is None:
            return text
        try:
            image = self.app.images.named(file)
        except UsageProblem:
            return text
        return self._mention(image)

    def _mention(self, image: AttachedImage) -> str:
        mention = f'@"{image.name}"'
        self._images[mention] = image
        return f"{mention} "

    def wants_clipboard(self) -> None:
        self._tasks.start_soon(self._guarded, self._paste_image)

    async def _paste_image(self) -> None:
        image = await self.app.images.in_clipboard()
        if image:
            self._prompt.insert(self._mention(image))
        else:
            self._hint, self._hinted = "There is no picture in the clipboard.", time.monotonic()

    def _images_in(self, text: str) -> tuple[AttachedImage, ...]:
        return tuple(image for mention, image in self._images.items() if mention in text)

    def expects_key(self) -> bool:
        return self._deciding.ready(time.monotonic()) and not self._rejecting and not self._choice

    def pressed(self, key: str) -> None:
        self._deciding.pressed = key
        self._tasks.start_soon(self._decide_if_alone, self._deciding, self._deciding.typed)

    async def _decide_if_alone(self, deciding: Deciding, typed: float) -> None:
        await anyio.sleep(ALONE_SECONDS)
        if deciding is self._deciding and deciding.typed == typed and deciding.pressed:
            key = deciding.pressed
            self._prompt.empty()
            deciding.typed, deciding.pressed = 0.0, ""
            self._decide(WORDS[key.lower()], spelled=False)
            self._prompt.refresh()

    def _decide(self, key: str, *, spelled: bool) -> None:
        """Do what the key says; a yes to what was not seen only shows it."""
        deciding, asked = self._deciding, self._deciding.asked
        if asked is None:
            return
        unseen, out_of_sight = deciding.unseen(self.width), deciding.out_of_sight()
        if key == "n":
            self._rejecting = asked.approval_id
        elif key == "?":
            self.tell("why", asked.why)
        elif key == "w" and not asked.entry:
            self.tell("allow?", "no entry of the allowed commands can say this: y, n or a.")
        elif key == "v" or (unseen and not spelled):
            deciding.viewed.add(asked.approval_id)
            deciding.since = time.monotonic()
            self.say(whole(asked, self.width))
        elif out_of_sight and not spelled:
            self.tell("allow?", f"{out_of_sight} lines cannot be shown here: type the word, yes or always.")
        else:
            self._answer_approval(DECISIONS[key])

    def busy(self) -> bool:
        return self._activity.running or bool(self._rejecting or self._choice)

    # What the bottom of the terminal shows

    def label(self) -> str:
        if self._rejecting:
            return "why not? (Enter: no reason) > "
        if self._choice:
            return self._choice.label
        if not self._questions:
            return "> "
        options = next(iter(self._questions.values())).options
        return "answer (a number or your own words) > " if options else "answer > "

    def live(self, width: int) -> list[Line]:
        rows = self._screen.unfinished()
        if rows and self._screen.after_user:
            rows = [(), *rows]
        deciding = self._deciding
        if deciding.waiting and not self._rejecting:
            rows = rows + deciding.lines(time.monotonic(), width, self._prompt.text)
        elif not deciding.waiting and (status := self._activity.lines(time.time(), width)):
            rows = rows + ([()] if rows or self._screen.after_user else []) + status
        rows = rows + [
            row for text in self._queued.values() for row in note("queued", fit(text, width - 12), width)
        ]
        if self._hint and time.monotonic() - self._hinted < TWICE_SECONDS:
            rows = [*rows, line((DIM, self._hint))]
        return [*rows, ()]

    # Inside

    def _chosen(self, choice: Choice, word: str) -> None:
        if key := key_of(word, choice.keys):
            self._choice = None
            self._prompt.empty()
            self._do(lambda: choice.answered(key))

    def _answer_approval(self, decision: str, note: str = "") -> None:
        asked = self._deciding.asked
        self._rejecting = ""
        if asked:
            command = AnswerApproval.model_validate(
                {"approval_id": asked.approval_id, "decision": decision, "note": note}
            )
            self._deciding.drop(asked.approval_id, time.monotonic())
            self._do(lambda: self.send(command))

    def _answer_question(self, question: QuestionAsked, text: str) -> None:
        chosen = chosen_option(question, text)
        if chosen is None:
            last = len(question.options)
            self.tell("answer", f"there is no {text.strip()}: a number from 1 to {last}, or your own words")
            return
        answer = AnswerQuestion(question_id=question.question_id, answer=chosen)
        self._do(lambda: self.send(answer))

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
                self._prompt.refresh()

    def _saw(self, recorded: Recorded) -> None:
        if self._activity.rings(recorded, self._opened):
            self._prompt.bell()
        self._activity.saw(recorded)
        match recorded.event:
            case UserMessage() as event:
                self._queued.pop(event.message_id, None)
            case ApprovalAsked() as event:
                self._deciding.ask(event, time.monotonic())
            case ApprovalAnswered() as event:
                self._deciding.drop(event.approval_id, time.monotonic())
            case QuestionAsked() as event:
                self._questions[event.question_id] = event
            case QuestionAnswered() as event:
                self._questions.pop(event.question_id, None)
            case TurnFinished():
                self._deciding, self._questions, self._rejecting = Deciding(), {}, ""
        self._prompt.write(self._screen.show(recorded.event))

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
