"""Commands that become facts as they are: what each makes true."""

from collections.abc import Callable

from handrail.protocol.commands import (
    AnswerApproval,
    AnswerQuestion,
    Command,
    CompleteTodo,
    Delete,
    Rename,
    Restore,
    SelectIntent,
    SetMode,
    SetModel,
    SetRoute,
    UndoCompaction,
)
from handrail.protocol.events import (
    ApprovalAnswered,
    CompactionUndone,
    Event,
    ModelSet,
    ModeSet,
    QuestionAnswered,
    RouteSet,
    SessionDeleted,
    SessionRenamed,
    SessionRestored,
    TodoCompleted,
)
from handrail.sessions.handle import Session


def facts(session: Session, command: Command, select: Callable[[Session, str], list[Event]]) -> list[Event]:
    """What a command makes true; nothing when it came too late. `select` makes an intent the active one."""
    state = session.state
    match command:
        case AnswerApproval() if command.approval_id in state.approvals:
            return [
                ApprovalAnswered(
                    approval_id=command.approval_id, decision=command.decision, note=command.note
                )
            ]
        case AnswerQuestion() if command.question_id in state.questions:
            return [QuestionAnswered(question_id=command.question_id, answer=command.answer)]
        case SetMode() if command.mode != state.mode:
            return [ModeSet(mode=command.mode)]
        case SetRoute() if command.route != state.routes.chosen:
            return [RouteSet(route=command.route)]
        case SetModel():
            return [ModelSet(model=command.model, role=command.role, why="chosen in this session")]
        case SelectIntent():
            return select(session, command.intent_id)
        case Rename():
            return [SessionRenamed(title=command.title)]
        case Delete() if not state.deleted:
            return [SessionDeleted()]
        case Restore() if state.deleted:
            return [SessionRestored()]
        case UndoCompaction() if state.cuts:
            return [CompactionUndone(compaction_id=state.cut.compaction_id)]
        case CompleteTodo() if any(todo.id == command.todo_id for todo in state.todos):
            return [TodoCompleted(todo_id=command.todo_id, by="user")]
        case _:
            return []
