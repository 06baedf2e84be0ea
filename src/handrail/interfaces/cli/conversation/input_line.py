"""The bottom of the terminal: live status, input line and key bindings.

Everything finished goes above it, into the terminal's own scrollback: no alternate screen, nothing redrawn.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from prompt_toolkit import layout
from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.application.current import set_app
from prompt_toolkit.auto_suggest import DummyAutoSuggest
from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import CompleteEvent, Completer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import ConditionalContainer, Layout, Window
from prompt_toolkit.layout.processors import ConditionalProcessor, PasswordProcessor
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from handrail.interfaces.cli.render.styles import Line, ansi, clean

if TYPE_CHECKING:
    from handrail.interfaces.cli.conversation.conversation import Conversation

STYLE = Style.from_dict(
    {
        "accent": "ansicyan",
        "bad": "ansired",
        "bold": "bold",
        "code": "ansicyan",
        "dim": "dim",
        "good": "ansigreen",
        "italic": "italic",
        "completion-menu": "bg:default",
        "completion-menu.completion": "bg:default fg:default",
        "completion-menu.completion.current": "bg:default fg:ansicyan bold noreverse",
        "completion-menu.meta.completion": "bg:default dim",
        "completion-menu.meta.completion.current": "bg:default fg:ansicyan noreverse",
        "scrollbar.background": "bg:default",
        "scrollbar.button": "bg:default",
    }
)
Result = TypeVar("Result")
INPUT_LINES = 12
MENU_LINES = 8
ANSWER_KEYS = "ynavw?YNAVW"


class Prompt:
    def __init__(
        self,
        conversation: "Conversation",
        output: Vt100_Output,
        *,
        history: Path,
        completer: Completer,
        colour: bool,
    ) -> None:
        self._conversation = conversation
        self._output = output
        self._colour = colour
        self._left = False
        self.buffer = Buffer(
            multiline=True,
            history=FileHistory(str(history)),
            completer=completer,
            complete_while_typing=~Condition(conversation.expects_secret),
            auto_suggest=DummyAutoSuggest(),
            on_text_changed=lambda _: conversation.typed(),
        )
        # No cursor position requests: prompt_toolkit warns where a terminal does not answer them.
        output.enable_cpr = False
        self._application: Application[None] = Application(
            layout=self._layout(),
            key_bindings=make_key_bindings(conversation, self.buffer),
            style=STYLE,
            color_depth=None if colour else ColorDepth.DEPTH_1_BIT,
            input=create_input(),
            output=output,
            erase_when_done=True,
        )
        # Escape alone stops a turn; in Alt-Enter the next character follows at once.
        self._application.ttimeoutlen = 0.05
        self._application.timeoutlen = 0.1

    async def run(self) -> None:
        """Show the prompt until `leave`; raises errors of key handlers and of drawing."""
        loop = asyncio.get_running_loop()
        failures: list[BaseException] = []

        def failed(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            if "handle" in context and "exception" in context:
                failures.append(context["exception"])
                self.leave()

        loop.set_exception_handler(failed)
        try:
            if not self._left:
                await self._application.run_async(set_exception_handler=False)
        finally:
            loop.set_exception_handler(None)
        if failures:
            raise failures[0]

    def leave(self) -> None:
        self._left = True
        if self._application.is_running and not self._application.is_done:
            self._application.exit()

    @property
    def width(self) -> int:
        # A full last column makes some terminals wrap.
        return max(20, self._output.get_size().columns - 1)

    def write(self, rows: list[Line]) -> None:
        """Put finished lines above the prompt, without flicker."""
        if not rows:
            return
        text = "".join(f"{ansi(row, colour=self._colour)}\r\n" for row in rows)
        application = self._application
        shown = application.is_running and not application.is_done
        if shown:
            application.renderer.erase()
        self._output.write_raw(text)
        self._output.flush()
        if shown:
            with set_app(application):
                application.render_counter += 1  # what the conversation shows may have changed, too
                application.renderer.render(application, application.layout)

    def refresh(self) -> None:
        """What the conversation shows has changed."""
        self._application.invalidate()

    def put_back(self, text: str) -> None:
        """Put a withdrawn message before what is being typed."""
        if text:
            self.buffer.document = Document(f"{text}\n{self.buffer.text}")

    def compose(self, text: str) -> None:
        """Put a text into the input line, and open the user's editor on it where they have named one."""
        self.buffer.document = Document(text)
        if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
            with set_app(self._application):
                self.buffer.open_in_editor()

    async def suspended(self, call: Callable[[], Result]) -> Result:
        """Hide the prompt, and leave the terminal to the call, which runs in a thread, until it returns."""
        with set_app(self._application):
            return await run_in_terminal(call, in_executor=True)

    def bell(self) -> None:
        self._output.bell()

    def _layout(self) -> Layout:
        def live() -> StyleAndTextTuples:
            room = max(3, self._output.get_size().rows - INPUT_LINES // 2 - 2)
            parts: StyleAndTextTuples = []
            for number, row in enumerate(self._conversation.live(self.width)[-room:]):
                parts += [("", "\n")] if number else []
                parts += [(f"class:{style}" if style else "", clean(text)) for style, text in row]
            return parts

        def prefix(number: int, wrapped: int) -> StyleAndTextTuples:
            label = self._conversation.label()
            first = number == 0 and wrapped == 0
            return [("class:accent", label if first else " " * len(label))]

        hidden = ConditionalProcessor(PasswordProcessor(), Condition(self._conversation.expects_secret))
        entry = Window(
            layout.BufferControl(self.buffer, input_processors=[hidden]),
            get_line_prefix=prefix,
            wrap_lines=True,
            dont_extend_height=True,
            height=layout.Dimension(min=1, max=INPUT_LINES),
        )
        above = Window(layout.FormattedTextControl(live), dont_extend_height=True)
        unless_key = ~Condition(self._conversation.expects_key)
        menu = layout.CompletionsMenu(max_height=MENU_LINES, extra_filter=unless_key)
        has_live = Condition(lambda: bool(self._conversation.live(self.width)))
        whole = layout.HSplit([ConditionalContainer(above, has_live), entry, menu])
        return Layout(whole, focused_element=entry)


def make_key_bindings(conversation: "Conversation", buffer: Buffer) -> KeyBindings:
    """The key bindings of the conversation."""
    keys = KeyBindings()
    empty = Condition(lambda: not buffer.text)

    # Enter is c-j when it was typed before raw mode.
    @keys.add("enter")
    @keys.add("c-j")
    def _(_event: KeyPressEvent) -> None:
        if buffer.complete_state and buffer.complete_state.current_completion:
            buffer.complete_state = None
            return
        text = buffer.text.rstrip("\n")
        if text.strip() and not conversation.expects_secret():
            buffer.text = text
            buffer.append_to_history()
        buffer.reset()
        conversation.submitted(text)

    @keys.add(Keys.BracketedPaste)
    def _(event: KeyPressEvent) -> None:
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        buffer.insert_text(conversation.pasted(text))

    @keys.add("c-v")
    def _(_event: KeyPressEvent) -> None:
        conversation.wants_clipboard()

    @keys.add("escape", "enter")
    @keys.add("escape", "c-j")
    def _(_event: KeyPressEvent) -> None:
        buffer.newline(copy_margin=False)

    add_stop_keys(keys, conversation, buffer)

    @keys.add("tab")
    def _(_event: KeyPressEvent) -> None:
        # Completed here: the search that runs while typing may not have finished.
        state = buffer.complete_state or CompletionState(
            buffer.document,
            list(buffer.completer.get_completions(buffer.document, CompleteEvent(completion_requested=True))),
        )
        if len(state.completions) == 1:
            buffer.apply_completion(state.completions[0])
        elif state.completions:
            buffer.complete_state = state
            buffer.complete_next()

    @keys.add("c-z", filter=Condition(lambda: hasattr(signal, "SIGTSTP")))
    def _(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add("c-d", filter=empty)
    def _(_event: KeyPressEvent) -> None:
        conversation.ended()

    add_answer_keys(keys, conversation, buffer)
    return keys


def add_answer_keys(keys: KeyBindings, conversation: "Conversation", buffer: Buffer) -> None:
    """Keys that answer a question, or choose from a menu, without Enter."""
    empty = Condition(lambda: not buffer.text)
    expected = dict.fromkeys(ANSWER_KEYS, conversation.expects_key)
    expected |= {str(number): partial(conversation.expects_number, number) for number in range(1, 10)}
    for key, expects in expected.items():

        @keys.add(key, filter=empty & Condition(expects))
        def _(event: KeyPressEvent) -> None:
            buffer.insert_text(event.data)
            conversation.pressed(event.data)


def add_stop_keys(keys: KeyBindings, conversation: "Conversation", buffer: Buffer) -> None:
    """Keys that stop a turn."""

    @keys.add("c-c")
    @keys.add("<sigint>")
    def _(_event: KeyPressEvent) -> None:
        if buffer.text and not conversation.busy():
            buffer.reset()
        else:
            conversation.interrupted()

    @keys.add("escape", filter=Condition(conversation.busy))
    def _(_event: KeyPressEvent) -> None:
        # What is being typed stays; it can be sent instead of what was stopped.
        if buffer.complete_state:
            buffer.complete_state = None
        else:
            conversation.interrupted()
