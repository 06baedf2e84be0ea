"""The bottom of the terminal: what is being written, the status, and the line where the user types.

Everything finished goes above it, into the terminal's own scrollback: no alternate screen, nothing redrawn.
"""

import asyncio
import signal
from pathlib import Path
from typing import Any, Protocol

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.auto_suggest import DummyAutoSuggest
from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import CompleteEvent, Completer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import (
    BufferControl,
    CompletionsMenu,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from handrail.interfaces.cli.styles import Line, ansi

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
INPUT_LINES = 12
MENU_LINES = 8
ANSWER_KEYS = "ynavw?YNAVW"


class Listener(Protocol):
    """Who is told what the user does, and says what the bottom of the terminal shows."""

    def submitted(self, text: str) -> None: ...

    def interrupted(self) -> None:
        """Ctrl-C with nothing typed, or while a turn runs."""

    def ended(self) -> None:
        """Ctrl-D with nothing typed."""

    def expects_key(self) -> bool:
        """Whether one of `ANSWER_KEYS`, with nothing typed, is an answer."""

    def pressed(self, key: str) -> None:
        """One of them was; it stands in the input line like any other text."""

    def busy(self) -> bool:
        """Whether there is something that Ctrl-C stops."""

    def typed(self) -> None:
        """The text has changed."""

    def pasted(self, text: str) -> str:
        """What is to stand in the input for what was pasted."""

    def wants_clipboard(self) -> None:
        """Ctrl-V: a terminal pastes text by itself, and pictures not at all."""

    def live(self, width: int) -> list[Line]:
        """The lines above the input, as they are now."""

    def label(self) -> str:
        """What stands before the input."""


class Prompt:
    def __init__(
        self, listener: Listener, output: Vt100_Output, *, history: Path, completer: Completer, colour: bool
    ) -> None:
        self._listener = listener
        self._output = output
        self._colour = colour
        self._left = False
        self.buffer = Buffer(
            multiline=True,
            history=FileHistory(str(history)),
            completer=completer,
            complete_while_typing=True,
            auto_suggest=DummyAutoSuggest(),
            on_text_changed=lambda _: listener.typed(),
        )
        # No cursor position requests: a terminal that never answers them would be complained about.
        output.enable_cpr = False
        self._application: Application[None] = Application(
            layout=self._layout(),
            key_bindings=bindings(listener, self.buffer),
            style=STYLE,
            color_depth=None if colour else ColorDepth.DEPTH_1_BIT,
            input=create_input(),
            output=output,
            erase_when_done=True,
        )
        # Pressed alone, Escape stops a turn; what follows it in another key (Alt-Enter) comes at once.
        self._application.ttimeoutlen = 0.05
        self._application.timeoutlen = 0.1

    async def run(self) -> None:
        """Show the prompt until `leave`. What goes wrong while a key is handled or a line drawn is raised."""
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
        """Put finished lines above the prompt, without a moment in which it is not there."""
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
                application.render_counter += 1  # what the listener shows may have changed, too
                application.renderer.render(application, application.layout)

    def refresh(self) -> None:
        """What the listener shows has changed."""
        self._application.invalidate()

    @property
    def text(self) -> str:
        """What is being typed."""
        return self.buffer.text

    def empty(self) -> None:
        """Take back what was typed."""
        self.buffer.reset()

    def insert(self, text: str) -> None:
        """Put text where the cursor is."""
        self.buffer.insert_text(text)

    def put_back(self, text: str) -> None:
        """Give the user a message back, on lines before what is being typed, or is typed next."""
        if text:
            self.buffer.document = Document(f"{text}\n{self.buffer.text}")

    def bell(self) -> None:
        self._output.bell()

    def _layout(self) -> Layout:
        def live() -> StyleAndTextTuples:
            room = max(3, self._output.get_size().rows - INPUT_LINES // 2 - 2)
            rows = self._listener.live(self.width)[-room:]
            return fragments(rows)

        def prefix(number: int, wrapped: int) -> StyleAndTextTuples:
            label = self._listener.label()
            first = number == 0 and wrapped == 0
            return [("class:accent", label if first else " " * len(label))]

        entry = Window(
            BufferControl(self.buffer),
            get_line_prefix=prefix,
            wrap_lines=True,
            dont_extend_height=True,
            height=Dimension(min=1, max=INPUT_LINES),
        )
        above = Window(FormattedTextControl(live), dont_extend_height=True)
        menu = ConditionalContainer(
            CompletionsMenu(max_height=MENU_LINES, extra_filter=~Condition(self._listener.expects_key)),
            filter=has_completions,
        )
        has_live = Condition(lambda: bool(self._listener.live(self.width)))
        return Layout(HSplit([ConditionalContainer(above, has_live), entry, menu]), focused_element=entry)


def fragments(rows: list[Line]) -> StyleAndTextTuples:
    """Lines as prompt_toolkit wants them."""
    parts: StyleAndTextTuples = []
    for number, row in enumerate(rows):
        if number:
            parts.append(("", "\n"))
        parts += [(f"class:{style}" if style else "", text) for style, text in row]
    return parts


def bindings(listener: Listener, buffer: Buffer) -> KeyBindings:
    """The keys that mean something of their own here."""
    keys = KeyBindings()
    empty = Condition(lambda: not buffer.text)

    # Enter is c-j when it was typed before the terminal was ours.
    @keys.add("enter")
    @keys.add("c-j")
    def _(_event: KeyPressEvent) -> None:
        if buffer.complete_state and buffer.complete_state.current_completion:
            buffer.complete_state = None
            return
        text = buffer.text.rstrip("\n")
        if text.strip():
            buffer.text = text
            buffer.append_to_history()
        buffer.reset()
        listener.submitted(text)

    add_pasting(keys, listener, buffer)

    @keys.add("escape", "enter")
    @keys.add("escape", "c-j")
    def _(_event: KeyPressEvent) -> None:
        buffer.newline(copy_margin=False)

    add_stopping(keys, listener, buffer)

    @keys.add("tab")
    def _(_event: KeyPressEvent) -> None:
        # Asked for here and now: the search that runs while typing may not have come to an end.
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
        listener.ended()

    for key in ANSWER_KEYS:

        @keys.add(key, filter=empty & Condition(listener.expects_key))
        def _(event: KeyPressEvent) -> None:
            buffer.insert_text(event.data)
            listener.pressed(event.data)

    return keys


def add_stopping(keys: KeyBindings, listener: Listener, buffer: Buffer) -> None:
    """What stops a turn."""

    @keys.add("c-c")
    @keys.add("<sigint>")
    def _(_event: KeyPressEvent) -> None:
        if buffer.text and not listener.busy():
            buffer.reset()
        else:
            listener.interrupted()

    @keys.add("escape", filter=Condition(listener.busy))
    def _(_event: KeyPressEvent) -> None:
        # What is being typed stays: sent now, it takes the place of what was stopped.
        if buffer.complete_state:
            buffer.complete_state = None
        else:
            listener.interrupted()


def add_pasting(keys: KeyBindings, listener: Listener, buffer: Buffer) -> None:
    """What comes in by pasting: text from the terminal, pictures by Ctrl-V."""

    @keys.add(Keys.BracketedPaste)
    def _(event: KeyPressEvent) -> None:
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        buffer.insert_text(listener.pasted(text))

    @keys.add("c-v")
    def _(_event: KeyPressEvent) -> None:
        listener.wants_clipboard()
