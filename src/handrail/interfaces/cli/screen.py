"""One follower's screen: events and streaming text in, finished lines out, the unfinished one at hand."""

from typing import Literal

from handrail.interfaces.cli import diffs
from handrail.interfaces.cli.approvals import hidden
from handrail.interfaces.cli.markdown import Markdown
from handrail.interfaces.cli.rendering import lines_of
from handrail.interfaces.cli.styles import Line
from handrail.interfaces.cli.tool_lines import DIFF_LINES, Known, about
from handrail.protocol.events import (
    Answered,
    ApprovalAsked,
    ChangePrepared,
    Delta,
    Event,
    GateFailed,
    RequestFailed,
    RequestStarted,
    TodoCompleted,
    TodosChanged,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UserMessage,
)

Block = Literal["", "user", "text", "tool", "end"]


class Screen:
    """Remembers just what is needed to show the next event."""

    def __init__(self, width: int, *, colour: bool = True) -> None:
        self.width = width
        self.colour = colour
        self.known = Known()
        self._message_id = ""
        self._apart = ""
        """An answer that is a stage's alone: what a person is to see of it comes later."""
        self._streamed = ""
        self._markdown: Markdown | None = None
        self._last: Block = ""

    def show(self, event: Event) -> list[Line]:
        """The lines that this event adds."""
        match event:
            case RequestStarted(apart=True):
                self._apart = event.message_id
                return []
            case Answered(apart=True):
                return []
            case Answered():
                rows = self._answered(event)
                self.known.calls.update({call.id: about(call.arguments) for call in event.calls})
                return rows
            case RequestFailed():
                rows = self._close()
                return rows + self._spaced("tool", lines_of(event, self.known, self.width))
        rows = lines_of(event, self.known, self.width)
        self._learn(event)
        return self._spaced(block_of(event), rows)

    def stream(self, delta: Delta) -> list[Line]:
        """The lines that this text finishes. Text that was seen already is left out."""
        if delta.kind != "text" or delta.message_id == self._apart:
            return []
        rows: list[Line] = []
        if delta.message_id != self._message_id:
            rows = self._close()
            self._message_id, self._streamed = delta.message_id, ""
        new = delta.text[max(0, len(self._streamed) - delta.offset) :]
        return rows + self._feed(new)

    def unfinished(self) -> list[Line]:
        """The line that is being written."""
        return self._markdown.unfinished() if self._markdown else []

    @property
    def after_user(self) -> bool:
        """Whether what was shown last are the user's words."""
        return self._last == "user"

    def _answered(self, event: Answered) -> list[Line]:
        if event.message_id != self._message_id:
            rows = self._close()
            self._message_id, self._streamed = event.message_id, ""
        else:
            rows = []
        # The text of the fact may differ from what streamed (a call that was written as text is taken out).
        if event.text.startswith(self._streamed):
            rows += self._feed(event.text[len(self._streamed) :])
        return rows + self._close()

    def _feed(self, text: str) -> list[Line]:
        blank = not self._streamed.strip("\n")
        self._streamed += text
        text = text.lstrip("\n") if blank else text
        if not text:
            return []
        if self._markdown is None:
            self._markdown = Markdown(self.width, colour=self.colour)
        self._markdown.width = self.width
        return self._spaced("text", self._markdown.feed(text))

    def _close(self) -> list[Line]:
        if self._markdown is None:
            return []
        rows, self._markdown = self._markdown.close(), None
        return self._spaced("text", rows)

    def _learn(self, event: Event) -> None:
        match event:
            case ToolStarted():
                self.known.calls[event.call_id] = event.summary
            case ApprovalAsked():
                self.known.asked[event.approval_id] = event
                self.known.calls[event.call_id] = event.summary
                self.known.previewed.add(event.call_id)
                if not hidden(event, self.width):
                    self._saw_written(event.preview, event.summary)
            case ToolFinished(status="ok") if event.call_id not in self.known.previewed:
                if len(event.shown.splitlines()) < DIFF_LINES:
                    self._saw_written(event.shown, self.known.calls.get(event.call_id, ""))
            case GateFailed():
                self.known.wanting = " ".join(event.issues[0].split()) if event.issues else ""
            case TurnFinished():
                self.known.written, self.known.wanting = {}, ""
            case ChangePrepared(by="rollback"):
                self.known.going_back = event
            case TodosChanged():
                self.known.todos = event.todos
            case TodoCompleted():
                self.known.todos = tuple(
                    todo.model_copy(update={"done": True}) if todo.id == event.todo_id else todo
                    for todo in self.known.todos
                )

    def _saw_written(self, diff: str, path: str) -> None:
        if text := diffs.whole_of(diff, path).strip():
            self.known.written[text] = path

    def _spaced(self, block: Block, rows: list[Line]) -> list[Line]:
        """An empty line around what the user said, and where tools follow text."""
        if not rows:
            return rows
        apart = "user" in (block, self._last) or (self._last, block) in (("text", "tool"), ("end", "tool"))
        first, self._last = not self._last, block
        return [(), *rows] if apart and not first else rows


def block_of(event: Event) -> Block:
    if isinstance(event, UserMessage):
        return "user"
    return "end" if isinstance(event, TurnFinished) else "tool"
