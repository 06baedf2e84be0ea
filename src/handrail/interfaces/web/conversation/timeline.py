"""The fold of a session's events into blocks: which are new or different after each event."""

import json
from collections.abc import Sequence

from msgspec import convert
from msgspec.structs import replace

from handrail.interfaces.cli.render import events as terminal
from handrail.interfaces.cli.render.rewind_preview import rewind_summary
from handrail.interfaces.cli.render.styles import clean, format_duration, one_line
from handrail.interfaces.cli.render.tool_calls import TOOLS_WITH_OWN_EVENTS, call_subject, note
from handrail.interfaces.web.conversation import answers
from handrail.interfaces.web.conversation.answers import StreamedText, TurnFacts
from handrail.interfaces.web.conversation.blocks import ROOT, Block, BlockTree, button, clock, dot, notes
from handrail.interfaces.web.conversation.calls import Call, render_call
from handrail.interfaces.web.conversation.questions import (
    batch_block,
    check_block,
    clarify_block,
    pause_block,
    plan_block,
    question_block,
)
from handrail.interfaces.web.conversation.subagents import SubagentBlocks
from handrail.interfaces.web.html import Html, h
from handrail.protocol import events

WIDTH = 100_000
"""Lines of the terminal are not wrapped here."""
OUTPUT_KEPT = 8_000
ARGUMENTS_SHOWN = 4_000


class Timeline:
    """Apply events in order; each call returns the blocks to add or replace."""

    def __init__(self, changes: int = 0, knowledge: str = "") -> None:
        """`changes`: how many change sets came before the first event; less than zero: not known.

        `knowledge`: the address of the place Knowledge; empty: reports have no links to it.
        """
        self._knowledge = knowledge
        self.tree = BlockTree()
        self.seq = 0
        self.turn: TurnFacts | None = None
        self.running = False
        self.waiting: dict[str, str] = {}
        """{approval or question: what it is about} of what waits for the user."""
        self.suggestions = ""
        """The last answer's text, in which commands may be suggested."""
        self._changes = changes
        self._calls: dict[str, Call] = {}
        """By call id: the latest call of that id."""
        self._approvals: dict[str, Call] = {}
        self._by_change: dict[str, list[Call]] = {}
        self._takes_back: dict[str, tuple[str, ...]] = {}
        self._rollback: events.ChangePrepared | None = None
        self._questions: dict[str, events.QuestionAsked] = {}
        self._streams: dict[str, StreamedText] = {}
        self._thoughts: dict[str, str] = {}
        self._apart: set[str] = set()
        self._stages: dict[str, tuple[events.StageStarted, float]] = {}
        self._stage = ""
        self._agent_run = ""
        """The last run of an agent in a folder: its result is Markdown."""
        self._turns: dict[str, int] = {}
        """{block of a turn: sequence number of its message}"""
        self._batches: dict[str, events.BatchStarted] = {}
        self._batch_calls: dict[str, tuple[str, int]] = {}
        self._batch_results: dict[str, dict[int, str]] = {}
        """{batch: {number of a command: how it ended}}"""
        self._plan: tuple[events.PlanChanged, str] | None = None
        """The plan that waits for approval, and the parent of its block."""
        self._clarify: tuple[str, events.Routed] | None = None
        self._pause: events.RunPaused | None = None
        self._subagents = SubagentBlocks()
        self._number = 0

    def html(self) -> Html:
        return self.tree.html()

    def apply(self, recorded: events.Recorded) -> list[Block]:
        self.seq, self._number = recorded.seq, 0
        return [self.tree.put(block) for block in self._apply(recorded.event, recorded.at)]

    def stream(self, delta: events.Delta) -> list[Block]:
        """The blocks that streaming text changes; text that was drawn already is skipped."""
        return [self.tree.put(block) for block in self._stream(delta)]

    def suggest(self, commands: Sequence[str]) -> list[Block]:
        """The commands of the last answer, which are found outside of the fold."""
        turn_id = self.turn.turn_id if self.turn else ""
        return [self.tree.put(block) for block in answers.commands_block(turn_id, self._parent, commands)]

    @property
    def _parent(self) -> str:
        return f"turn-{self.turn.turn_id}" if self.turn else ROOT

    def _new_id(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}-{self.seq}-{self._number}"

    def _apply(self, event: events.Event, at: float) -> list[Block]:
        match event:
            case events.UserMessage():
                return self._user_message(event, at)
            case events.TurnStarted():
                self.running = True
                if self.turn:
                    self.turn.since = at
                return []
            case events.RequestStarted() if event.apart:
                self._apart.add(event.message_id)
                return []
            case events.Answered():
                return self._answered(event)
            case events.RequestFailed() if event.retry_in is None:
                if event.recovered and self.turn:
                    self.turn.recovered = True
                    return [answers.recovery_banner(event, self._parent)]
                return [answers.failure_banner(event, self._parent)]
            case events.TurnFinished():
                return self._turn_finished(event)
            case events.Rewound() | events.Redone():
                return self._went_back(event)
            case events.SubagentStarted() | events.SubagentEvent() | events.SubagentFinished():
                return [*self._subagent_call(event), *self._subagents.apply(event, at, self._parent)]
        return self._apply_call(event, at) or self._apply_run(event, at) or self._as_notes(event)

    def _as_notes(self, event: events.Event) -> list[Block]:
        """All other events in the words of the terminal."""
        match event:
            case (
                events.TodosChanged()
                | events.TodoCompleted()
                | events.CheckStarted()
                | events.QuestionAsked()
            ):
                return []
        lines = terminal.run_lines(event, WIDTH) or terminal.plan_lines(event, WIDTH)
        lines = lines or terminal.other_event_lines(event, WIDTH)
        return notes(self._new_id("note"), self._parent, lines)

    def _user_message(self, event: events.UserMessage, at: float) -> list[Block]:
        found: list[Block] = []
        turn = f"turn-{event.turn_id}"
        if not self.turn or self.turn.turn_id != event.turn_id:
            self.turn = TurnFacts(event.turn_id, self.seq, at)
            self._turns[turn] = self.seq
            self._stage = ""
            if self.tree.get(turn) is None:
                found.append(Block(turn, ROOT, tag="section", classes="turn"))
        if not event.text.strip() and event.keep is not None:
            return found
        names = [seen.path for seen in event.files if seen.how != "auto"]
        names += [f"{image.name} ({image.described})" for image in event.images]
        again = [seen.path for seen in event.files if seen.how == "auto"]
        extras = (
            [h("div", "attached ", *[h("code", one_line(name)) for name in names], class_="soft")]
            if names
            else []
        )
        if again:
            extras.append(h("div", f"changed since the model last looked: {', '.join(again)}", class_="soft"))
        extras += [h("div", text, class_="t-bad") for text in event.unattached]
        bubble = h("div", clean(event.text.strip(), tab="\t"), class_="bubble")
        actions = h(
            "div",
            button("Go back to here", "rewind-message", class_="quiet small", message=event.message_id),
            class_="row-actions",
        )
        block_id = f"msg-{event.message_id}"
        element = h("div", bubble, *extras, None if event.steering else actions, id=block_id, class_="user")
        return [*found, *self._settle_pause(event.text), Block(block_id, turn, element)]

    def _settle_pause(self, answer: str) -> list[Block]:
        """A message answers what was asked before it: the chosen chip stays."""
        found = []
        if self._clarify:
            block_id, asked = self._clarify
            found.append(clarify_block(block_id, f"turn-{asked.turn_id}", asked, chosen=answer))
            self._clarify = None
        if self._pause:
            pause, self._pause = self._pause, None
            if block := self.tree.get(f"pause-{pause.run_id}-{pause.stage}"):
                found.append(pause_block(pause, block.parent, chosen=answer))
        return found

    def _answered(self, event: events.Answered) -> list[Block]:
        for call in event.calls:
            self._calls.pop(call.id, None)
            subject = call_subject(call.arguments)
            arguments = json.dumps(call.arguments, ensure_ascii=False, indent=2)[:ARGUMENTS_SHOWN]
            self._calls[call.id] = Call(self._new_id("call"), call.name, subject, arguments=arguments)
        self._streams.pop(event.message_id, None)
        self._thoughts.pop(event.message_id, None)
        if event.apart:
            return []
        found: list[Block] = []
        self.tree.drop_children(f"ans-{event.message_id}")
        if event.thinking.strip():
            found.append(answers.thinking_block(event.message_id, self._parent, event.thinking))
        if block := answers.answer_block(event, self._parent):
            found.append(block)
            self.suggestions = event.text
        elif self.tree.get(f"ans-{event.message_id}"):
            empty = h("article", id=f"ans-{event.message_id}", class_="answer", hidden=True)
            found.append(Block(f"ans-{event.message_id}", self._parent, empty))
        if self.turn:
            self.turn.last_answer = event.message_id
            self.turn.next_steps = event.structured.next_steps if event.structured else ()
            if event.structured:
                self.turn.commands_suggested = event.structured.commands
            if event.recovered:
                self.turn.recovered = True
                found.append(answers.recovery_banner(event, self._parent))
        if event.blocked:
            words = [note("not run", text, WIDTH, "bad") for text in event.blocked]
            found += notes(self._new_id("note"), self._parent, [row for rows in words for row in rows])
        return found

    def _turn_finished(self, event: events.TurnFinished) -> list[Block]:
        self.running, self.waiting = False, {}
        if not self.turn:
            return []
        found = [self._call_block(call) for call in self._close_calls()]
        found += answers.next_steps_block(self.turn, self._parent, self.turn.next_steps)
        return [*found, answers.turn_end(event, self.turn, self._parent)]

    def _close_calls(self) -> list[Call]:
        """Questions that were never answered are over with their turn."""
        closed = [call for call in self._approvals.values() if not call.decision and not call.finished]
        for call in closed:
            call.decision = "cancelled"
        self._approvals.clear()
        return closed

    def _stream(self, delta: events.Delta) -> list[Block]:
        if delta.message_id in self._apart:
            return []
        if delta.kind == "text":
            stream = self._streams.setdefault(delta.message_id, StreamedText(delta.message_id))
            stream.feed(delta.offset, delta.text)
            container = f"ans-{delta.message_id}"
            drawn = stream.changed()
            if drawn and self.tree.get(container) is None:
                drawn.insert(0, Block(container, self._parent, tag="article", classes="answer prose live"))
            return drawn
        if delta.kind == "thinking":
            before = self._thoughts.get(delta.message_id, "")
            self._thoughts[delta.message_id] = before + delta.text[max(0, len(before) - delta.offset) :]
            return [answers.thinking_block(delta.message_id, self._parent, self._thoughts[delta.message_id])]
        if delta.kind == "output" and (call := self._calls.get(delta.message_id)):
            call.output = (call.output + delta.text)[-OUTPUT_KEPT:]
            return [self._call_block(call)]
        return []

    def _call_block(self, call: Call) -> Block:
        known = self.tree.get(call.block_id)
        parent = known.parent if known else self._parent
        return Block(call.block_id, parent, render_call(call))

    def _call(self, call_id: str, tool: str) -> Call:
        if call_id not in self._calls:
            self._calls[call_id] = Call(self._new_id("call"), tool)
        return self._calls[call_id]

    def _apply_call(self, event: events.Event, at: float) -> list[Block]:
        match event:
            case events.ApprovalAsked():
                call = self._call(event.call_id, event.tool)
                call.asked, call.decision, call.subject = event, "", event.summary
                self._approvals[event.approval_id] = call
                self.waiting[event.approval_id] = event.summary
                return [self._call_block(call)]
            case events.ApprovalAnswered():
                self.waiting.pop(event.approval_id, None)
                if not (answered := self._approvals.get(event.approval_id)):
                    return []
                answered.decision, answered.note, answered.since = event.decision, event.note, at
                return [self._call_block(answered)]
            case events.ToolStarted():
                call = self._call(event.call_id, event.tool)
                call.subject, call.since = event.summary, at
                if event.kind == "safe" and self._stage and self.tree.get(call.block_id) is None:
                    return [Block(call.block_id, self._stage, render_call(call))]
                return [self._call_block(call)] if event.tool not in TOOLS_WITH_OWN_EVENTS else []
            case events.ToolFinished():
                return self._tool_finished(event)
            case events.ChangePrepared():
                self._changes += self._changes >= 0
                self._takes_back[event.change_id] = event.takes_back
                if event.by == "rollback":
                    self._rollback = event
                return self._change_of_calls(event)
            case events.ChangeApplied():
                return self._change_applied(event.change_id)
            case events.QuestionAsked():
                self._questions[event.question_id] = event
                self.waiting[event.question_id] = event.question
                return [question_block(event, self._parent)]
            case events.QuestionAnswered():
                self.waiting.pop(event.question_id, None)
                asked = self._questions.pop(event.question_id, None)
                return [question_block(asked, self._parent, answered=event)] if asked else []
            case events.CheckFinished():
                if self.turn:
                    self.turn.verified = event.passed
                return [check_block(self._new_id("check"), self._parent, event)]
        return []

    def _subagent_call(self, event: events.Event) -> list[Block]:
        """The card of a sub-agent's call that the user was asked about, once the call has ended."""
        match event:
            case events.SubagentEvent(event={"type": "tool_finished", "call_id": str() as inner}):
                call_id = f"{event.subagent_id}.{inner}"
                if call_id in self._calls:
                    ended = convert(event.event, events.ToolFinished)
                    return self._tool_finished(replace(ended, call_id=call_id))
        return []

    def _tool_finished(self, event: events.ToolFinished) -> list[Block]:
        call = self._call(event.call_id, event.tool)
        call.finished = event
        if event.call_id in self._batch_calls:
            batch_id, number = self._batch_calls.pop(event.call_id)
            self._batch_results.setdefault(batch_id, {})[number] = event.status
        if event.tool in TOOLS_WITH_OWN_EVENTS and event.status == "ok":
            return []
        if self.turn and event.status == "ok":
            self.turn.edits += [call.subject] if call.diff else []
            self.turn.commands += call.is_command
        batch = [
            each
            for each in self._approvals.values()
            if each is not call and each.asked and each.asked.tool == "changes" and not each.finished
        ]
        # Several edits are asked about as one: the question's card ends with the first of them.
        for each in batch:
            each.finished = replace(event, shown="")
        return [self._call_block(each) for each in (*batch, call)]

    def _change_of_calls(self, event: events.ChangePrepared) -> list[Block]:
        paths = {path for file in event.files for path in (file.path, file.destination)}
        calls = [
            call
            for call_id, call in self._calls.items()
            if call_id == event.call_id or (not call.finished and call.subject in paths)
        ]
        for call in calls:
            call.change_id, call.change_number = event.change_id, max(0, self._changes)
        self._by_change[event.change_id] = calls
        return []

    def _change_applied(self, change_id: str) -> list[Block]:
        changed: list[Call] = []
        for other in self._takes_back.get(change_id, ()):
            again = self._takes_back.get(other, ())
            for call in self._by_change.get(other, []):
                call.undone = True
                changed.append(call)
            for call in (call for each in again for call in self._by_change.get(each, [])):
                call.undone = False
                changed.append(call)
        return [self._call_block(call) for call in changed if self.tree.get(call.block_id)]

    def _went_back(self, event: events.Rewound | events.Redone) -> list[Block]:
        found = []
        for turn, seq in self._turns.items():
            aside = isinstance(event, events.Rewound) and event.keep is not None and seq > event.keep
            back = isinstance(event, events.Redone) and event.conversation
            block = self.tree.get(turn)
            if block and (aside or back):
                found.append(block._replace(classes="turn aside" if aside else "turn"))
        word = "undone" if isinstance(event, events.Rewound) else "redone"
        self.turn = None
        return [
            *found,
            *notes(self._new_id("note"), ROOT, note(word, rewind_summary(event, self._rollback), WIDTH)),
        ]

    def _apply_run(self, event: events.Event, at: float) -> list[Block]:
        match event:
            case events.RunStarted() if event.sha256:
                self._agent_run = event.run_id
                return self._as_notes(event)
            case events.RunCompleted() if event.text and event.run_id == self._agent_run:
                return [answers.report_block(event, self._parent, self._knowledge)]
            case events.StageStarted():
                return self._stage_started(event, at)
            case events.StageCompleted():
                return self._stage_ended(event.stage_id, at, dot("ok", "done"))
            case events.GateFailed():
                stage = self._stage_ended(event.stage_id, at, dot("bad", "rejected by a gate"))
                return [*stage, *notes(self._new_id("note"), self._parent, terminal.run_lines(event, WIDTH))]
            case events.Routed(route=""):
                block_id = self._new_id("clarify")
                self._clarify = (block_id, event)
                return [clarify_block(block_id, self._parent, event)]
            case events.RunPaused():
                self._pause = event
                return [pause_block(event, self._parent)]
            case events.PlanChanged():
                earlier = [plan_block(*self._plan, "replaced")] if self._plan else []
                self._plan = event, self._parent
                return [*earlier, plan_block(event, self._parent)]
            case events.PlanApproved() if self._plan and self._plan[0].plan_id == event.plan_id:
                block = plan_block(*self._plan, "approved")
                self._plan = None
                return [block]
            case events.BatchStarted():
                self._batches[event.batch_id] = event
                return []
            case events.BatchStep() | events.BatchFinished():
                batch = self._batches.get(event.batch_id)
                if isinstance(event, events.BatchStep):
                    self._call(event.call.id, event.call.name).subject = call_subject(event.call.arguments)
                    self._batch_calls[event.call.id] = (event.batch_id, event.number)
                if not batch or event.total < 2:
                    return []
                results = self._batch_results.get(event.batch_id, {})
                return [batch_block(batch, event, self._parent, results)]
        return []

    def _stage_started(self, event: events.StageStarted, at: float) -> list[Block]:
        self._stage = ""
        if event.kind not in ("ask", "code") or event.of < 2:
            return []
        self._stage = f"stage-{event.stage_id}"
        self._stages[event.stage_id] = (event, at)
        head = self._stage_head(event, clock(at), dot("run", "running"))
        return [Block(self._stage, self._parent, tag="details", classes="stage", open=True), head]

    def _stage_head(self, event: events.StageStarted, time: Html, sign: Html) -> Block:
        block_id = f"stage-{event.stage_id}-head"
        words = h("span", f"{event.stage}", class_="words")
        number = h("span", f"stage {event.number} of {event.of}", class_="soft")
        element = h("summary", sign, words, number, h("span", class_="space"), time, id=block_id)
        return Block(block_id, f"stage-{event.stage_id}", element)

    def _stage_ended(self, stage_id: str, at: float, sign: Html) -> list[Block]:
        if stage_id not in self._stages:
            return []
        event, since = self._stages.pop(stage_id)
        self._stage = ""
        took = h("span", format_duration(at - since), class_="soft")
        container = self.tree.get(f"stage-{stage_id}")
        closed = [container._replace(open=False)] if container else []
        return [*closed, self._stage_head(event, took, sign)]
