"""The context of a sub-agent: a session inside another, whose events are kept in that session's log."""

import copy
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from handrail.protocol.commands import Command
from handrail.protocol.events import EVENT, Event
from handrail.protocol.events.approvals import (
    ApprovalAnswered,
    ApprovalAsked,
    QuestionAnswered,
    QuestionAsked,
)
from handrail.protocol.events.base import Recorded
from handrail.protocol.events.changes import ChangeAbandoned, ChangeApplied, ChangePrepared, CopyKept
from handrail.protocol.events.conversation import TurnFinished
from handrail.protocol.events.intents import IntentSelected
from handrail.protocol.events.requests import Answered, RequestFailed, RequestStarted, SideAnswered
from handrail.protocol.events.runs import RunCompleted
from handrail.protocol.events.session import ModeSet
from handrail.protocol.events.subagents import (
    SubagentEvent,
    SubagentFinished,
    SubagentReport,
    SubagentsEvent,
    SubagentStarted,
)
from handrail.protocol.events.tools import BackgroundEnded, BackgroundStarted, ToolFinished, ToolStarted
from handrail.protocol.values import NARROWER_MODES, Mode, to_dict, to_json
from handrail.sessions.live_text import LiveText
from handrail.sessions.session import Session
from handrail.sessions.session_state import SessionState
from handrail.sessions.transcript import SHOWN_EVENTS, AssistantEntry
from handrail.storage.event_log import PartialText

ForAll = ChangeApplied | ChangeAbandoned | CopyKept | BackgroundStarted | BackgroundEnded
Answer = ApprovalAnswered | QuestionAnswered
MAX_FILES = 200


def inner_event(event: SubagentEvent) -> Event:
    """The event in the context of the sub-agent."""
    return EVENT.decode(to_json(event.event))


class SubagentLive(LiveText):
    """The streaming texts of a sub-agent: followers get a status line on the call that started it."""

    def __init__(self, root: LiveText, shown_on: str) -> None:
        super().__init__(root.stream)
        self._root = root
        self._shown_on = shown_on

    def progress(self, message_id: str, status: str) -> None:
        self._root.progress(self._shown_on, f"subagent {status}")

    def receive(self, request_id: str, data: bytearray) -> None:
        self._root.receive(request_id, data)

    def unsaved(self) -> list[PartialText]:
        return self._root.unsaved()

    def settle(self, message_id: str) -> None:
        super().settle(message_id)
        self._root.settle(message_id)


class SubagentSession(Session):
    """A session that appends to the one that it is part of, and sees of it what concerns the workspace.

    Changes, approvals and questions are events of the whole session, so that history, undo and interfaces
    need not know about sub-agents. Everything else is wrapped.
    """

    def __init__(self, root: Session, started: SubagentStarted) -> None:
        super().__init__(root.log, root.id)
        self.root = root
        self.started = started
        self.live: LiveText = SubagentLive(root.live, self._top_call())
        self.seq = root.seq
        self.report = SubagentReport(reason="interrupted")
        """How it ended, and what it has done so far."""
        self._tree = {started.subagent_id}
        self._files: dict[str, tuple[str, ...]] = {}
        """Files of its change sets, by their ids."""
        state = root.state
        self.state = SessionState(
            session_id=state.session_id,
            workspace=state.workspace,
            mode=started.mode,
            models=dict(state.models),
            intent=state.intent,
            always=list(state.always),
            hooked=state.hooked,
        )

    def open(self) -> "SubagentSession":
        """Follow the session, after what the sub-agent did before a restart; `close` ends it."""
        if known := self.root.state.subagents.get(self.id_inside):
            for one in self.root.read_after(known.seq - 1, self.root.seq - known.seq + 1):
                self._follow(one)
        # What concerns the workspace is the same for all.
        root = self.root.state
        self.state.trace, self.state.background = copy.deepcopy((root.trace, root.background))
        self.state.always, self.state.intent = list(root.always), root.intent
        self.state.mode = self._mode(root.mode)
        self.seq = self.root.seq
        self.root.followers.append(self._follow)
        return self

    def _top_call(self) -> str:
        """The call of the conversation itself under which it runs."""
        call_id, parent = self.started.call_id, self.started.parent
        while above := self.root.state.subagents.get(parent):
            call_id, parent = above.call_id, above.parent
        return call_id

    def close(self) -> None:
        self.root.followers.remove(self._follow)

    @property
    def id_inside(self) -> str:
        return self.started.subagent_id

    @property
    def held(self) -> bool:
        return self.root.held

    def finished(self) -> SubagentReport:
        """The report as of now."""
        replies = (entry.text for entry in reversed(self.transcript) if isinstance(entry, AssistantEntry))
        cost = self.state.cost_usd if self.state.cost_known else None
        text = self.report.text or next(replies, "")
        return replace(self.report, text=text, usage=self.state.usage, cost_usd=cost)

    def append(
        self,
        *events: Event,
        take: Iterable[int] = (),
        blobs: Iterable[bytes] = (),
        settle: Iterable[str] = (),
        partials: Iterable[PartialText] = (),
    ) -> list[Recorded]:
        outer = [self.outer_event(event) for event in events]
        facts = self.root.append(*outer, take=take, blobs=blobs, settle=settle, partials=partials)
        return [one._replace(event=event) for one, event in zip(facts, events, strict=True)]

    def read_after(self, seq: int, limit: int) -> list[Recorded]:
        return [self._unwrapped(one) for one in self.root.read_after(seq, limit)]

    def waiting(self) -> list[tuple[int, Command]]:
        """Nothing: what the user sends is for the conversation."""
        return []

    def keep_live(self) -> None:
        self.root.keep_live()

    def save_snapshot(self) -> None:
        """The state is computed again from the log."""

    def outer_event(self, event: Event) -> Event:
        """The event as it stands in the log of the whole session."""
        match event:
            case ChangePrepared(call_id=call_id):
                turn = self.root.turn.turn_id
                return replace(event, turn_id=turn, call_id=self._outside(call_id), subagent=self.id_inside)
            case ApprovalAsked(call_id=call_id) | QuestionAsked(call_id=call_id):
                return replace(event, turn_id=self.root.turn.turn_id, call_id=self._outside(call_id))
            case Answered() | RequestFailed() | SideAnswered():
                return SubagentEvent(
                    subagent_id=self.id_inside,
                    event=to_dict(event),
                    usage=event.usage,
                    cost_usd=event.cost_usd,
                )
            case _ if isinstance(event, ForAll | Answer | SubagentsEvent):
                return event
        return SubagentEvent(subagent_id=self.id_inside, event=to_dict(event))

    def _shown_events(self, after: int) -> Iterator[Recorded]:
        rows = self.root.read_after(max(after, self._first - 1), self.seq)
        return (
            self._unwrapped(one)
            for one in rows
            if isinstance(one.event, SubagentEvent)
            and one.event.subagent_id == self.id_inside
            and one.event.event["type"] in SHOWN_EVENTS
        )

    @property
    def _first(self) -> int:
        known = self.root.state.subagents.get(self.id_inside)
        return known.seq if known else self.seq

    def _unwrapped(self, one: Recorded) -> Recorded:
        match one.event:
            case SubagentEvent(subagent_id=self.id_inside) as event:
                return one._replace(event=inner_event(event))
        return one

    def _outside(self, call_id: str) -> str:
        return f"{self.id_inside}.{call_id}"

    def _follow(self, one: Recorded) -> None:
        event = self._seen(one.event)
        self.seq = one.seq
        if event is not None:
            self._fold([one._replace(event=event)])
            self._count(event)

    def _seen(self, event: Event) -> Event | None:
        """What an event of the whole session is in this context; None: nothing."""
        match event:
            case SubagentEvent(subagent_id=who):
                return inner_event(event) if who == self.id_inside else event if who in self._tree else None
            case SubagentStarted(subagent_id=who, parent=parent):
                if parent in self._tree:
                    self._tree.add(who)
                    return event
            case SubagentFinished(subagent_id=who):
                return event if who in self._tree and who != self.id_inside else None
            case ChangePrepared(subagent=who, call_id=call_id):
                if who == self.id_inside:
                    return replace(event, subagent="", call_id=call_id.removeprefix(self._outside("")))
                return replace(event, subagent=who or "parent")
            case ApprovalAsked(call_id=call_id) | QuestionAsked(call_id=call_id):
                if call_id.startswith(self._outside("")):
                    return replace(event, call_id=call_id.removeprefix(self._outside("")))
                return event if any(call_id.startswith(f"{each}.") for each in self._tree) else None
            case ApprovalAnswered(approval_id=asked):
                return event if asked in self.state.approvals else None
            case QuestionAnswered(question_id=asked):
                return event if asked in self.state.questions else None
            case ModeSet(mode=mode):
                return replace(event, mode=self._mode(mode))
            case _ if isinstance(event, ForAll | IntentSelected):
                return event
        return None

    def _mode(self, mode: Mode) -> Mode:
        """Its own mode, unless the user has set the session to a narrower one."""
        return self.started.mode if self.started.mode in NARROWER_MODES[mode] else mode

    def _count(self, event: Event) -> None:
        report = self.report
        match event:
            case ChangePrepared(subagent=who) if who in ("", *self._tree):
                self._files[event.change_id] = tuple(file.path for file in event.files)
            case ChangeApplied(change_id=change):
                files = dict.fromkeys((*report.files, *self._files.pop(change, ())))
                self.report = replace(report, files=tuple(files)[:MAX_FILES])
            case ToolStarted(tool=tool, summary=summary) if tool != "run":
                self.live.progress("", f"{tool} {summary}".strip())
            case RequestStarted(attempt=1):
                self.live.progress("", f"asking {event.model}")
                self.report = replace(report, steps=report.steps + 1)
            case ToolStarted(tool="run", summary=summary):
                self.live.progress("", f"run {summary}")
                self.report = replace(report, commands=report.commands + 1)
            case ToolFinished(status="refused"):
                self.report = replace(report, refused=report.refused + 1)
            case RunCompleted(text=text):
                self.report = replace(report, text=text)
            case TurnFinished(reason=reason, detail=detail):
                self.report = replace(report, reason=reason, detail=detail)
