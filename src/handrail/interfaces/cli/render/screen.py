"""Turns events and streaming text into finished lines; remembers what later lines need."""

from typing import Literal

from msgspec.structs import replace

from handrail.interfaces.cli.render import diffs
from handrail.interfaces.cli.render.approvals import hidden_lines
from handrail.interfaces.cli.render.events import event_lines
from handrail.interfaces.cli.render.markdown import Markdown
from handrail.interfaces.cli.render.styles import Line
from handrail.interfaces.cli.render.tool_calls import DIFF_LINES, RenderContext, call_subject
from handrail.protocol import events

Block = Literal["", "user", "text", "tool", "end"]


class Screen:
    def __init__(self, width: int, *, colour: bool = True) -> None:
        self.width = width
        self.colour = colour
        self.known = RenderContext(colour=colour)
        self._message_id = ""
        self._apart = ""
        """The message of a stage's own request, which is not shown: its result comes later."""
        self._streamed = ""
        self._markdown: Markdown | None = None
        self._last: Block = ""

    def show(self, event: events.Event) -> list[Line]:
        match event:
            case events.RequestStarted(apart=True):
                self._apart = event.message_id
                return []
            case events.Answered(apart=True):
                return []
            case events.Answered():
                rows = self._answered(event)
                self.known.calls.update({call.id: call_subject(call.arguments) for call in event.calls})
                return rows
            case events.RequestFailed():
                return self._close() + self._spaced("tool", event_lines(event, self.known, self.width))
        rows = event_lines(event, self.known, self.width)
        self._learn(event)
        end: Block = "end" if isinstance(event, events.TurnFinished) else "tool"
        return self._spaced("user" if isinstance(event, events.UserMessage) else end, rows)

    def stream(self, delta: events.Delta) -> list[Line]:
        """The lines that this text finishes; text that was shown already is skipped."""
        if delta.kind != "text" or delta.message_id == self._apart:
            return []
        rows: list[Line] = []
        if delta.message_id != self._message_id:
            rows = self._close()
            self._message_id, self._streamed = delta.message_id, ""
        new = delta.text[max(0, len(self._streamed) - delta.offset) :]
        return rows + self._feed(new)

    def unfinished(self) -> list[Line]:
        return self._markdown.unfinished() if self._markdown else []

    @property
    def after_user(self) -> bool:
        return self._last == "user"

    def _answered(self, event: events.Answered) -> list[Line]:
        rows: list[Line] = []
        if event.message_id != self._message_id:
            rows = self._close()
            self._message_id, self._streamed = event.message_id, ""
        # The final text may differ from what streamed: a call written as text is removed from it.
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

    def _learn(self, event: events.Event) -> None:
        match event:
            case events.ToolStarted():
                self.known.calls[event.call_id] = event.summary
            case events.ApprovalAsked():
                self.known.asked[event.approval_id] = event
                self.known.calls[event.call_id] = event.summary
                self.known.previewed.add(event.call_id)
                if not hidden_lines(event, self.width):
                    self._saw_written(event.preview, event.summary)
            case events.ToolFinished(status="ok") if event.call_id not in self.known.previewed:
                if len(event.shown.splitlines()) < DIFF_LINES:
                    self._saw_written(event.shown, self.known.calls.get(event.call_id, ""))
            case events.RunStarted() if event.sha256:
                self.known.agent_run = event.run_id
            case events.GateFailed():
                self.known.gate_issue = " ".join(event.issues[0].split()) if event.issues else ""
            case events.TurnFinished():
                self.known.written, self.known.gate_issue = {}, ""
            case events.ChangePrepared(by="rollback"):
                self.known.going_back = event
            case events.TodosChanged():
                self.known.todos = event.todos
            case events.TodoCompleted():
                self.known.todos = tuple(
                    replace(todo, done=True) if todo.id == event.todo_id else todo
                    for todo in self.known.todos
                )

    def _saw_written(self, diff: str, path: str) -> None:
        if text := diffs.created_text(diff, path).strip():
            self.known.written[text] = path

    def _spaced(self, block: Block, rows: list[Line]) -> list[Line]:
        """The rows with an empty line before them, next to the user's message and where tools follow text."""
        if not rows:
            return rows
        apart = "user" in (block, self._last) or (self._last, block) in (("text", "tool"), ("end", "tool"))
        first, self._last = not self._last, block
        return [(), *rows] if apart and not first else rows
