"""Questions about sessions: status, labels, routes, background commands, commands that an answer suggests."""

from collections.abc import Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple, get_args

import anyio
import anyio.to_thread
from msgspec import ValidationError, convert

from handrail.protocol.commands import (
    ChangeLabels,
    Command,
    CompleteTodo,
    Delete,
    Rename,
    Restore,
    SelectIntent,
    SetMode,
    SetModel,
    SetRoute,
    SetStatus,
)
from handrail.protocol.errors import ConfigProblem, StorageBusy, UsageProblem
from handrail.protocol.events import Recorded
from handrail.protocol.ids import session_stream
from handrail.protocol.values import MAX_LABELS, SessionStatus
from handrail.sessions.live_text import BACKGROUND, forget_offset, stored_text
from handrail.sessions.projections import PlanState
from handrail.sessions.run_state import RunState
from handrail.sessions.session import start_of_turns
from handrail.sessions.session_list import SessionInfo
from handrail.sessions.session_state import SessionState

if TYPE_CHECKING:
    from handrail.app.app import App
    from handrail.engine.router.confidence import OutcomeCount

SEARCH_PAGE = 500
EXCERPT_CHARS = 200
SEARCHED = {
    "user_message": ("text",),
    "answered": ("text", "thinking"),
    "tool_started": ("summary",),
    "tool_finished": ("content", "shown"),
    "question_asked": ("question",),
    "question_answered": ("answer",),
    "turn_finished": ("detail",),
}
"""The fields that a search looks at, by the type of the event."""

__all__ = ["PlanState", "RunState", "SessionInfo", "SessionState", "forget_offset"]

HOLDER_SECONDS = 10.0


def background_output(app: "App", session_id: str, background_id: str, chars: int) -> str:
    """The end of what a background command has written: from this process, else from the log."""
    if found := app.turn_factory.background.find(session_id, background_id):
        return found.latest(chars)
    return stored_text(app.log, session_stream(session_id), background_id, BACKGROUND)[-chars:]


def named_status(text: str) -> SessionStatus | None:
    """The status that a person means, as in `in progress`; None where there is no such status."""
    word = "_".join(text.lower().replace("-", " ").replace("_", " ").split())
    found: SessionStatus | None = next((each for each in get_args(SessionStatus) if each == word), None)
    return found


def set_status(text: str) -> SetStatus:
    if status := named_status(text):
        return SetStatus(status)
    known = ", ".join(each.replace("_", " ") for each in get_args(SessionStatus))
    raise UsageProblem(f"There is no status {text!r}. A session is {known}.")


def change_labels(state: SessionState, add: Iterable[str] = (), remove: Iterable[str] = ()) -> ChangeLabels:
    """The command that changes the session's labels; raises UsageProblem where it cannot be done."""
    missing = [each for each in remove if each not in state.labels]
    if missing:
        has = f"It has {', '.join(state.labels)}." if state.labels else "It has none."
        raise UsageProblem(f"The session has no label {missing[0]!r}. {has}")
    try:
        command = convert({"type": "change_labels", "add": tuple(add), "remove": tuple(remove)}, ChangeLabels)
    except ValidationError as error:
        text = "A label is one word of at most 40 letters, digits and . : / + - _"
        raise UsageProblem(f"{text}, beginning with a letter or digit.") from error
    if len({*state.labels, *command.add} - {*command.remove}) > MAX_LABELS:
        raise UsageProblem(f"A session has at most {MAX_LABELS} labels. Remove one first.")
    return command


async def send_and_wait(app: "App", session_id: str, *wanted: Command) -> None:
    """Send commands and wait until they are done; raises StorageBusy where nobody does them."""
    seq = app.last_seq(session_id)
    sent = [await app.send(session_id, command) for command in wanted]

    def all_done() -> bool:
        state = app.state(session_id)
        return all(_is_done(command, state) for command in sent)

    with anyio.move_on_after(HOLDER_SECONDS):
        if all_done():
            return
        async with aclosing(app.follow(session_id, seq)) as items:
            async for _ in items:
                if all_done():
                    return
    raise StorageBusy(f"The process that holds {session_id} does not answer. Try again later.")


def _is_done(command: Command, state: SessionState) -> bool:
    match command:
        case Rename():
            return state.title == command.title
        case SetStatus():
            return state.status == command.status
        case ChangeLabels():
            return {*command.add} <= {*state.labels} and not {*command.remove} & {*state.labels}
        case Delete() | Restore():
            return state.deleted == isinstance(command, Delete)
        case SetMode():
            return state.mode == command.mode
        case SetModel():
            return state.models.get(command.role) == command.model
        case SetRoute():
            return state.routes.chosen == command.route
        case SelectIntent():
            return state.intent == command.intent_id
        case CompleteTodo():
            return all(todo.done for todo in state.todos if todo.id == command.todo_id)
        case _:
            raise TypeError(f"{command.type} has no effect that could be waited for")


def conversation_start(app: "App", session_id: str, before: int, turns: int) -> int:
    """The sequence number before the last `turns` turns that began up to an event; 0: the beginning."""
    return start_of_turns(app.log, session_stream(session_id), before, turns)


def exported_events(lines: Iterable[str]) -> list[Recorded]:
    """The events of an exported session, without importing it; raises UsageProblem if it is not whole."""
    from handrail.sessions.export_import import read_export

    return read_export(lines).events


def stage_names(app: "App", pipeline: str) -> tuple[str, ...]:
    """The stages of a pipeline in order; none where it is no longer known."""
    try:
        return tuple(stage.name for stage in app.turn_factory.catalogue.find(pipeline).stages)
    except (UsageProblem, ConfigProblem):
        return ()


def chosen_route(app: "App", session_id: str) -> str:
    """Where the session's messages go; the default route where the user chose none."""
    chosen = app.state(session_id).routes.chosen if session_id else ""
    return chosen or app.turn_factory.router.default


async def suggested_commands(answer: str) -> tuple[str, ...]:
    """The shell commands in an answer's code blocks."""
    from handrail.tools.commands.parse import has_shell_block, suggested_commands

    if not has_shell_block(answer):
        return ()
    return await anyio.to_thread.run_sync(suggested_commands, answer)


class FoundText(NamedTuple):
    seq: int
    at: float
    type: str
    excerpt: str


def search_text(app: "App", session_id: str, text: str, *, most: int) -> list[FoundText]:
    """Where messages, answers and tools' output of a session have this text, the latest first."""
    wanted, found = text.casefold(), list[FoundText]()
    upto = app.last_seq(session_id)
    while upto > 0 and len(found) < most:
        after = max(0, upto - SEARCH_PAGE)
        for one in reversed(app.read_events(session_id, after, upto - after)):
            parts = [str(getattr(one.event, name, "")) for name in SEARCHED.get(one.event.type, ())]
            part = next((part for part in parts if wanted in part.casefold()), None)
            if part is not None:
                at = max(0, part.casefold().find(wanted) - EXCERPT_CHARS // 2)
                found.append(FoundText(one.seq, one.at, one.event.type, part[at : at + EXCERPT_CHARS]))
        upto = after
    return found[:most]


def routing_counts(app: "App") -> "list[OutcomeCount]":
    """How often each route was taken, who decided, and what came of it; the most frequent first."""
    from handrail.engine.router.confidence import count_outcomes, route_outcomes

    return count_outcomes(route_outcomes(app.log))
