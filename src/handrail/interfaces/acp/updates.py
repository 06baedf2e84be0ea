"""The fold of a session's events into updates for the client: the same live and when it is loaded."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from acp import schema
from acp.helpers import text_block
from msgspec import Struct

from handrail.app.history.changes import ChangedText
from handrail.interfaces.acp import notes
from handrail.interfaces.acp.tool_calls import (
    STATES,
    WITHOUT_CALL,
    Call,
    asked_content,
    change_places,
    diff_content,
    finished_content,
    new_call,
    output_content,
    text_content,
    titled,
)
from handrail.protocol import events
from handrail.protocol.values import Todo

Update = (
    schema.UserMessageChunk
    | schema.AgentMessageChunk
    | schema.AgentThoughtChunk
    | schema.ToolCallStart
    | schema.ToolCallProgress
    | schema.AgentPlanUpdate
    | schema.CurrentModeUpdate
    | schema.SessionInfoUpdate
)
STEPS_SHOWN = 20
"""Of what a sub-agent did."""


class Sent(Struct):
    """What was sent of a text that streams."""

    text: str = ""
    thinking: str = ""


class Updates:
    """Apply events in order; each call returns what the client has to be told."""

    def __init__(
        self, root: Path, texts: Callable[[events.ChangePrepared], list[ChangedText]], own: Collection[str]
    ) -> None:
        """`texts` reads a change's contents; `own`: messages that the client itself sent."""
        self.todos: dict[str, Todo] = {}
        self._root = root
        self._texts = texts
        self._own = own
        self._calls: dict[str, Call] = {}
        """By the model's id: the latest call of that id."""
        self._used: set[str] = set()
        self._sent: dict[str, Sent] = {}
        self._apart: set[str] = set()
        self._stages: dict[str, Call] = {}
        self._subagents: dict[str, Call] = {}
        self._changes: dict[str, events.ChangePrepared] = {}
        self._seq = 0

    def apply(self, recorded: events.Recorded) -> list[Update]:
        event, self._seq = recorded.event, recorded.seq
        match event:
            case events.UserMessage():
                return self._user_message(event)
            case events.RequestStarted(apart=True):
                self._apart.add(event.message_id)
                return []
            case events.Answered():
                return self._answered(event)
            case events.TodosChanged() | events.TodoCompleted():
                return self._todos_changed(event)
            case events.ModeSet():
                mode = schema.CurrentModeUpdate(
                    session_update="current_mode_update", current_mode_id=event.mode
                )
                return [mode]
            case events.SessionTitled() | events.SessionRenamed():
                return [schema.SessionInfoUpdate(session_update="session_info_update", title=event.title)]
            case events.TurnFinished():
                return self._turn_finished(event)
            case events.SubagentStarted() | events.SubagentEvent() | events.SubagentFinished():
                return self._subagent(event)
        found = self._call_changed(event) or self._stage_changed(event)
        if text := notes.plain_text(event):
            return [*found, self._message(f"\n\n{text}\n\n")]
        return [*found, *self._noted(notes.note(event))]

    def stream(self, delta: events.Delta) -> list[Update]:
        """What streaming text adds; what was sent before is skipped."""
        if delta.message_id in self._apart:
            return []
        if delta.kind == "output" and (call := self._calls.get(delta.message_id)) and not call.terminal:
            call.output = (call.output + delta.text)[-10_000:]
            call.content = output_content(call.output)
            return [call.update()]
        if delta.kind not in ("text", "thinking"):
            return []
        sent = self._sent.setdefault(delta.message_id, Sent())
        before = sent.text if delta.kind == "text" else sent.thinking
        if delta.offset > len(before):
            return []  # it began before this client followed; the whole text comes with its event
        new = delta.text[len(before) - delta.offset :]
        return self._grown(delta.message_id, sent, delta.kind, new)

    def call_of(self, call_id: str) -> Call | None:
        return self._calls.get(call_id)

    def _grown(self, message_id: str, sent: Sent, kind: str, new: str) -> list[Update]:
        if not new:
            return []
        if kind == "text":
            sent.text += new
            return [self._message(new, message_id)]
        sent.thinking += new
        chunk = schema.AgentThoughtChunk(
            session_update="agent_thought_chunk", content=text_block(new), message_id=message_id
        )
        return [chunk]

    def _message(self, text: str, message_id: str | None = None) -> schema.AgentMessageChunk:
        return schema.AgentMessageChunk(
            session_update="agent_message_chunk",
            content=text_block(text),
            message_id=message_id or f"note-{self._seq}",
        )

    def _noted(self, text: str) -> list[Update]:
        return [self._message(f"\n\n*{text.strip()}*\n\n")] if text.strip() else []

    def _user_message(self, event: events.UserMessage) -> list[Update]:
        found: list[Update] = []
        if event.message_id not in self._own and event.text.strip():
            names = "".join(f"\n[{image.name}]" for image in event.images)
            chunk = schema.UserMessageChunk(
                session_update="user_message_chunk",
                content=text_block(event.text + names),
                message_id=event.message_id,
            )
            found.append(chunk)
        return found + self._noted("; ".join(event.unattached))

    def _answered(self, event: events.Answered) -> list[Update]:
        sent = self._sent.pop(event.message_id, None) or Sent()
        found: list[Update] = []
        if not event.apart:
            for kind, whole, before in (
                ("thinking", event.thinking, sent.thinking),
                ("text", event.text, sent.text),
            ):
                new = whole[len(before) :] if whole.startswith(before) else f"\n\n{whole}"
                found += self._grown(event.message_id, sent, kind, new)
            found += self._noted(notes.note(event))
        for each in event.calls:
            self._calls.pop(each.id, None)
            if each.name not in WITHOUT_CALL and not event.apart:
                found.append(self._new(each.id, each.name, each.arguments).start())
        return found

    def _new(self, call_id: str, tool: str, arguments: dict[str, Any]) -> Call:
        unique = call_id if call_id not in self._used else f"{call_id}-{self._seq}"
        self._used.add(unique)
        call = self._calls[call_id] = new_call(unique, tool, arguments, self._root)
        return call

    def _todos_changed(self, event: events.TodosChanged | events.TodoCompleted) -> list[Update]:
        if isinstance(event, events.TodosChanged):
            self.todos = {todo.id: todo for todo in event.todos}
        elif todo := self.todos.get(event.todo_id):
            self.todos[todo.id] = Todo(todo.id, todo.text, done=True, command=todo.command)
        entries = [
            schema.PlanEntry(
                content=todo.text, priority="medium", status="completed" if todo.done else "pending"
            )
            for todo in self.todos.values()
        ]
        return [schema.AgentPlanUpdate(session_update="plan", entries=entries)]

    def _turn_finished(self, event: events.TurnFinished) -> list[Update]:
        found: list[Update] = []
        for call in [*self._calls.values(), *self._stages.values()]:
            if not call.over:
                call.state = "failed"
                found.append(call.update())
        self._stages.clear()
        self._sent.clear()
        return found + self._noted(notes.turn_end(event))

    # Calls

    def _call_changed(self, event: events.Event) -> list[Update]:
        match event:
            case events.ApprovalAsked():
                return self._asked(event)
            case events.ToolStarted() if event.tool not in WITHOUT_CALL:
                return self._started(event)
            case events.ToolFinished():
                return self._finished(event)
            case events.ChangePrepared():
                return self._changed(event)
        return []

    def _asked(self, event: events.ApprovalAsked) -> list[Update]:
        call, found = self._calls.get(event.call_id), list[Update]()
        if call is None or call.over:
            call = self._new(event.call_id, event.tool, {})
            call.title = titled(event.tool, event.summary)
            found.append(call.start())
        call.content = asked_content(event)
        return [*found, call.update()]

    def _started(self, event: events.ToolStarted) -> list[Update]:
        call, new = self._calls.get(event.call_id), False
        if call is None or call.over:
            call, new = self._new(event.call_id, event.tool, event.arguments), True
        call.state, call.title = "in_progress", titled(event.tool, event.summary) or call.title
        return [call.start() if new else call.update()]

    def _finished(self, event: events.ToolFinished) -> list[Update]:
        call = self._calls.get(event.call_id)
        if call is None:
            if event.tool in WITHOUT_CALL and event.status == "ok":
                return []
            call = self._new(event.call_id, event.tool, {})
            call.state, call.content = STATES.get(event.status, "failed"), finished_content(call, event)
            return [call.start()]
        call.state = STATES.get(event.status, "failed")
        call.content = finished_content(call, event)
        return [call.update()]

    def _changed(self, event: events.ChangePrepared) -> list[Update]:
        """The diffs of an edit, at the call that makes it; edits of one answer share a change."""
        paths = {path for file in event.files for path in (file.path, file.destination) if path}
        calls = {
            call.id: call
            for call_id, call in self._calls.items()
            if call_id == event.call_id
            or (call.state == "in_progress" and call.arguments.get("path") in paths)
        }
        if event.by == "rollback" or not calls:
            return []
        texts, found = self._texts(event), list[Update]()
        for call in calls.values():
            own = call.arguments.get("path")
            mine = [each for each in texts if len(calls) == 1 or own in (each.path, each.was)]
            files = [file for file in event.files if len(calls) == 1 or own in (file.path, file.destination)]
            if event.by == "command":
                call.places = change_places(files, self._root)
            elif mine:
                call.content, call.places = diff_content(mine, self._root), change_places(files, self._root)
            found.append(call.update())
        return found

    def _subagent(
        self, event: events.SubagentStarted | events.SubagentEvent | events.SubagentFinished
    ) -> list[Update]:
        if isinstance(event, events.SubagentStarted):
            call = self._subagents.get(event.parent) or self._calls.get(event.call_id)
            if call:
                self._subagents[event.subagent_id] = call
            return []
        call = self._subagents.get(event.subagent_id)
        if call is None or not isinstance(event, events.SubagentEvent):
            return []
        if event.event.get("type") != "tool_started":
            return []
        call.steps.append(f"- {titled(str(event.event.get('tool')), str(event.event.get('summary', '')))}")
        call.content = text_content("\n".join(call.steps[-STEPS_SHOWN:]))
        return [call.update()]

    def _stage_changed(self, event: events.Event) -> list[Update]:
        match event:
            case events.StageStarted(kind="ask" | "code") if event.of > 1:
                unique = f"stage-{event.stage_id}"
                call = Call(unique, "subagent", f"{event.stage} ({event.number} of {event.of})")
                call.state = "in_progress"
                self._stages[event.stage_id] = call
                return [call.start()]
            case events.StageCompleted() | events.GateFailed() if event.stage_id in self._stages:
                call = self._stages.pop(event.stage_id)
                call.state = "completed" if isinstance(event, events.StageCompleted) else "failed"
                return [call.update()]
        return []
