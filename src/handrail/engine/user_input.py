"""User input as events: messages with attachments, simple commands, answers to questions."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from handrail.context.images import images_fit
from handrail.context.map.repository_map import MapFragment, RepositoryMap
from handrail.context.mentions import ATTACHED_CAP, LookedUp, attach_mentions, mentioned_names
from handrail.context.message_context import (
    REATTACH_CAP,
    RunSummaries,
    reattach_changed_files,
    untold_run_summaries,
)
from handrail.context.strategy import strategy_for
from handrail.context.token_budget import fragment_cap, text_tokens
from handrail.models.model import Capabilities, Model
from handrail.protocol import commands, events
from handrail.protocol.events import Event, UserMessage
from handrail.protocol.values import MAX_LABELS, AttachedImage
from handrail.sessions.run_state import RunState
from handrail.sessions.session import Session
from handrail.sessions.session_state import SessionState
from handrail.sessions.transcript import AssistantEntry, UserEntry
from handrail.tools.tool import head_and_tail
from handrail.workspace.editor import MAX_KNOWN, try_look
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import IntentFile

if TYPE_CHECKING:
    from handrail.engine.context import TurnContext
    from handrail.tasks.task_list import TaskList

EARLIER_CHARACTERS, RUN_CHARACTERS, EARLIER_TURNS = 300, 800, 3
MODEL_CANNOT_SEE = (
    "{name}: {model} cannot see pictures, and is told so. /model or --model chooses one that can."
)
RUN_IGNORES_PICTURES = "{name}: a run gets only your words, no pictures. Say what it should take from it."


class BuiltMessage(NamedTuple):
    event: UserMessage
    blobs: tuple[bytes, ...]

    def with_note(self, note: str) -> "BuiltMessage":
        noted = (*self.event.unattached, *filter(None, [note]))
        return self._replace(event=replace(self.event, unattached=noted))

    def with_told(self, text: str) -> "BuiltMessage":
        """The message with a text for the model behind its attachments."""
        attached = "\n\n".join(filter(None, [self.event.attached, text]))
        return self._replace(event=replace(self.event, attached=attached))

    def for_run(self, run: RunState, command: commands.SendMessage, route: str) -> "BuiltMessage":
        """The same as an answer to a paused run, sent perhaps before it asked; `route`: the user's choice."""
        early = command.seen is not None and command.seen < run.menu
        return self._replace(event=replace(self.event, early=early, route=route))


class MessageBuilder(NamedTuple):
    """Builds messages for the model that will read them, if one is known."""

    workspace: Workspace
    map: RepositoryMap
    model: Model | None
    intents: IntentFile
    tasks: "Callable[[], TaskList]"

    def build(
        self,
        command: commands.SendMessage,
        state: SessionState,
        turn_id: str,
        *,
        steering: bool,
        run_id: str = "",
        told: str = "",
        pictures: bool = True,
        looked_up: Mapping[str, LookedUp] | None = None,
    ) -> BuiltMessage:
        """The message with its attachments; `run_id`: the paused run which it answers.

        `told` is what the model needs to know to understand it; `pictures`: its reader can see images;
        `looked_up`: mentions that are no paths, by default only those that need no program and no network.
        """
        bare = steering or bool(run_id)
        can = self.model.capabilities if self.model else Capabilities(images=True)
        cap = fragment_cap(can.context_window, most=ATTACHED_CAP, share=3)
        strategy = strategy_for(can)
        also = strategy.files_to_attach(command.text, state.files.files, self.workspace)
        named = "" if command.suggested else command.text
        if looked_up is None and "@" in named:
            from handrail.engine.mention_lookup import look_up_names

            looked_up = look_up_names(named, self.workspace, self.intents, self.tasks)
        attached = attach_mentions(
            named,
            self.workspace,
            cap,
            command.images,
            also,
            looked_up=looked_up or {},
            chosen=command.chosen,
        )
        again_cap = fragment_cap(can.context_window, most=REATTACH_CAP, share=6)
        shown = {seen.path for seen in attached.files}
        again = reattach_changed_files(state, self.workspace, again_cap, shown, own=not bare)
        files = (*attached.files, *again.files)
        known = "" if bare else strategy.known_files(state, files, again.gone, again.stale)
        now = "" if bare else strategy.status(state, self.workspace)
        runs = RunSummaries() if bare else untold_run_summaries(state, can.context_window)
        window = can.context_window if strategy.shows_map else 0
        mapped = MapFragment() if bare else self.map.part(state, command.text, window)
        before = (
            f"[What was said before, as the sender tells it:]\n{command.earlier}" if command.earlier else ""
        )
        images = (*command.images, *(each.image for each in attached.images))
        event = UserMessage(
            message_id=command.message_id,
            turn_id=turn_id,
            text=command.text,
            attached="\n\n".join(
                filter(
                    None,
                    (
                        attached.text,
                        command.attached,
                        again.text,
                        mapped.text,
                        known,
                        runs.text,
                        now,
                        told,
                        before,
                    ),
                )
            ),
            files=files,
            gone=again.gone,
            images=images,
            unattached=(*attached.unattached, *self._unseen_notes(command.text, images, pictures=pictures)),
            mapped=mapped.paths,
            steering=steering,
            suggested=command.suggested,
            runs=runs.runs,
            run_id=run_id,
            proposes=command.proposes,
            earlier=command.earlier,
        )
        return BuiltMessage(event, tuple(each.data for each in attached.images))

    def _unseen_notes(self, text: str, images: Sequence[AttachedImage], *, pictures: bool) -> list[str]:
        """For the user: what the model will not see."""
        if not pictures:
            return [RUN_IGNORES_PICTURES.format(name=image.name) for image in images]
        if self.model is None:
            return []
        can, name = self.model.capabilities, self.model.name
        notes = []
        if text_tokens(text) > can.context_window / 2:
            notes = [f"your message is too long for {name}: its middle may be left out"]
        if not can.images:
            return notes + [MODEL_CANNOT_SEE.format(name=image.name, model=name) for image in images]
        if images_fit(images, can.context_window):
            return notes
        return notes + [f"{image.name}: too large for {name}" for image in images]


async def look_before_steering(context: "TurnContext") -> None:
    """Note unsaved text of the files that waiting messages mention."""
    if context.workspace.editor is None:
        return
    for _, command in context.session.waiting():
        if isinstance(command, commands.SendMessage):
            await try_look(context.workspace, context.session.id, mentioned_names(command.text))


def take_steering(context: "TurnContext", *, pictures: bool = True) -> None:
    """Commit messages that the user sent since the last step; `pictures`: the next stages can see images."""
    session = context.session
    turn = session.state.turn
    if turn is None or context.scope.cancel_called:
        return  # what is sent after a cancel starts its own turn
    for number, command in session.waiting():
        if not isinstance(command, commands.SendMessage):
            continue
        own = command.check or command.resume or command.output_schema is not None
        if own or context.router.named_route(command):
            return  # it starts its own turn, and so does what was sent after it
        if not _is_for_paused_run(session.state, command):
            message = context.messages.build(
                command, session.state, turn.turn_id, steering=True, pictures=pictures
            )
            session.append(message.event, take=[number], blobs=message.blobs)


def _is_for_paused_run(state: SessionState, command: commands.SendMessage) -> bool:
    """Whether the message answers a paused run while another turn runs; it waits for that turn to end."""
    if state.paused is None:
        return False
    from handrail.engine.breakout.table import is_answer

    return is_answer(state.paused, command.text)


async def look_before_message(session: Session, workspace: Workspace, text: str) -> str:
    """Note unsaved text of the files that a message mentions, and of those known best.

    Returns what the user has to know where the editor does not answer.
    """
    if workspace.editor is None:
        return ""
    known = list(session.state.files.files)[-MAX_KNOWN:]
    return await try_look(workspace, session.id, [*mentioned_names(text), *known])


def turn_message(session: Session) -> UserMessage:
    (recorded,) = session.read_after(session.turn.message_seq - 1, 1)
    if not isinstance(recorded.event, UserMessage):
        raise AssertionError("a turn begins with a message")
    return recorded.event


def turn_words(session: Session) -> str:
    """The text of the turn's first message, without attachments; empty where no turn runs."""
    first = session.state.turn.message_seq if session.state.turn else 0
    found = (entry for entry in session.transcript if entry.seq == first)
    return next((entry.words for entry in found if isinstance(entry, UserEntry)), "")


def earlier_turns(session: Session, *, runs: bool = True) -> str:
    """The last turns in short, so that "it" and "that" in the turn's message can be understood.

    `runs`: with what runs outside the conversation have found.
    """
    first = session.state.turn.message_seq if session.state.turn else 0
    lines: list[tuple[int, str]] = []
    turns = since = 0
    for entry in reversed(session.transcript):
        match entry:
            case UserEntry(by="user") if entry.seq < first:
                turns, since = turns + 1, entry.seq
                lines.append((entry.seq, f"user: {head_and_tail(entry.words, EARLIER_CHARACTERS)}"))
            case AssistantEntry() if entry.text and entry.seq < first:
                lines.append((entry.seq, f"assistant: {head_and_tail(entry.text, EARLIER_CHARACTERS)}"))
        if turns == EARLIER_TURNS:
            break
    lines += [
        (run.seq, f"assistant: {head_and_tail(run.summary, RUN_CHARACTERS)}")
        for run in session.state.runs.ended
        if runs and since < run.seq < first
    ]
    told = turn_message(session).earlier if session.state.turn else ""
    return "\n".join(filter(None, [*(line for _, line in sorted(lines)), told]))


def command_events(session: Session, command: commands.Command, intents: IntentFile) -> list[Event]:
    """The events that a command becomes; none when it came too late."""
    state = session.state
    match command:
        case commands.AnswerApproval() if command.approval_id in state.approvals:
            return [
                events.ApprovalAnswered(
                    approval_id=command.approval_id, decision=command.decision, note=command.note
                )
            ]
        case commands.AnswerQuestion() if command.question_id in state.questions:
            return [events.QuestionAnswered(question_id=command.question_id, answer=command.answer)]
        case commands.SetMode() if command.mode != state.mode:
            return [events.ModeSet(mode=command.mode)]
        case commands.SetRoute() if command.route != state.routes.chosen:
            return [events.RouteSet(route=command.route)]
        case commands.SetModel():
            return [events.ModelSet(model=command.model, role=command.role, why="chosen in this session")]
        case commands.SelectIntent():
            from handrail.engine.admin.workspace_intents import select_intent_events

            return select_intent_events(session, intents, command.intent_id)
        case commands.Rename() | commands.SetStatus() | commands.ChangeLabels():
            return list_events(state, command)
        case commands.Delete() if not state.deleted:
            return [events.SessionDeleted()]
        case commands.Restore() if state.deleted:
            return [events.SessionRestored()]
        case commands.UndoCompaction() if state.cuts:
            return [events.CompactionUndone(compaction_id=state.cut.compaction_id)]
        case commands.SetAutoContinue() if command.on != state.routes.auto_continue:
            return [events.AutoContinueSet(on=command.on)]
        case commands.SetPlan() | commands.ApprovePlan():
            from handrail.engine.plans import plan_events

            return plan_events(state, command)
        case commands.CompleteTodo() if any(todo.id == command.todo_id for todo in state.todos):
            return [events.TodoCompleted(todo_id=command.todo_id, by="user")]
        case _:
            return []


def list_events(
    state: SessionState, command: commands.Rename | commands.SetStatus | commands.ChangeLabels
) -> list[Event]:
    """What changes how the session stands in lists: its title, status or labels."""
    match command:
        case commands.Rename():
            return [events.SessionRenamed(title=command.title)]
        case commands.SetStatus():
            return [events.SessionStatusSet(status=command.status)] if command.status != state.status else []
    kept = [each for each in state.labels if each not in command.remove]
    labels = tuple(dict.fromkeys([*kept, *command.add]))[:MAX_LABELS]
    return [events.SessionLabelled(labels=labels)] if list(labels) != state.labels else []
