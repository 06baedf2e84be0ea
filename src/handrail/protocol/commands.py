"""Commands: what an interface asks of a session; they wait in the inbox for the session's holder."""

from typing import Annotated, Any, Literal

from msgspec import Meta, field
from msgspec.json import Decoder
from msgspec.structs import replace

from handrail.protocol.ids import new_id
from handrail.protocol.plan import Plan
from handrail.protocol.values import (
    AttachedImage,
    ChecklistItem,
    LabelName,
    Mode,
    Role,
    SessionStatus,
    Tagged,
    TaskFilter,
)

MAX_COMMAND_CHARS = 16_000
MAX_COMMANDS = 50


class SendMessage(Tagged, tag="send_message"):
    """Start a turn, or steer the one that is running."""

    text: str
    message_id: str = field(default_factory=lambda: new_id("m"))
    """The message's id in the log, so that the sender can find it there."""
    images: tuple[AttachedImage, ...] = ()
    """Pictures that the user named or pasted; their bytes are already stored as blobs."""
    check: str = ""
    """The user's command that must pass before the turn counts as done."""
    attempts: Annotated[int, Meta(ge=1, le=20)] = 1
    """How many fresh answers may be tried against the check, each starting from the same files."""
    route: str = ""
    """The pipeline to use, or `auto`; empty: the session's.

    A paused run gets every message; if the route is not its own, it asks whether to leave the run.
    """
    suggested: bool = False
    """The text is a suggestion of the model that the user picked; mentions in it are not expanded."""
    chosen: tuple[str, ...] = ()
    """Mentions, without `@`, that were chosen from a completion: an error where they name nothing now."""
    selection: TaskFilter | None = None
    """The option of a question that the user picked."""
    seen: int | None = None
    """The last event that the sender had been shown; None: all events so far.

    A number or a yes answers only what was asked up to this event.
    """
    output_schema: dict[str, Any] | None = None
    """The JSON Schema that the turn's last answer has to fit."""
    item: ChecklistItem | None = None
    """The item of a checklist that a build is for; it is ticked with the verified files."""
    proposes: bool = False
    """The turn ends with a proposal, which the sender applies; it changes no file and no task."""
    earlier: str = ""
    """What was said before, where the sender knows more than the session."""
    attached: str = ""
    """A text for the model that came with the message, such as a selection in an editor."""
    resume: Literal["", "retry", "continue"] = ""
    """Repeat the last request, without this text; or accept what was recovered of its answer, and go on."""


class Cancel(Tagged, tag="cancel"):
    """Stop the running turn; what was done stays done."""

    by: Literal["user", "signal"] = "user"
    withdraw: tuple[str, ...] = ()


class CancelSubagent(Tagged, tag="cancel_subagent"):
    """Stop one sub-agent and those below it; the turn goes on with its report."""

    subagent_id: str


class AnswerApproval(Tagged, tag="answer_approval"):
    """The user's decision on one call; `always` covers the same call until the session ends.

    `allow` also adds the proposed entry to the user's list of allowed commands.
    """

    approval_id: str
    decision: Literal["once", "always", "allow", "reject"]
    note: str = ""


class AnswerQuestion(Tagged, tag="answer_question"):
    question_id: str
    answer: str


class RunCommand(Tagged, tag="run_command"):
    """Run a command that the user picked, most often one that an answer suggests.

    Picking it approves exactly this text, once; a denied command stays denied.
    """

    command: Annotated[str, Meta(min_length=1, max_length=MAX_COMMAND_CHARS)]
    network: bool = False
    message_id: str = field(default_factory=lambda: new_id("m"))


class RunAll(Tagged, tag="run_all"):
    """Run commands one by one; after each, the model sees the output and decides how to continue."""

    commands: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=MAX_COMMAND_CHARS)], ...],
        Meta(min_length=1, max_length=MAX_COMMANDS),
    ]
    network: bool = False
    message_id: str = field(default_factory=lambda: new_id("m"))


class SetMode(Tagged, tag="set_mode"):
    mode: Mode


class SetRoute(Tagged, tag="set_route"):
    """Send the session's messages to this pipeline; `auto`: the router chooses."""

    route: str


class SetAutoContinue(Tagged, tag="set_auto_continue"):
    """Let requests of several steps continue by themselves in this session, or not."""

    on: bool


class SetPlan(Tagged, tag="set_plan"):
    """Replace the session's plan by the user's."""

    plan: Plan


class ApprovePlan(Tagged, tag="approve_plan"):
    """Make the steps of this plan todos, and go from mode `plan` to `edit`."""

    plan_id: str


class SetModel(Tagged, tag="set_model"):
    model: str
    role: Role = "main"


class SelectIntent(Tagged, tag="select_intent"):
    """Set the session's active intent; empty: none."""

    intent_id: str


class Rename(Tagged, tag="rename"):
    title: str


class SetStatus(Tagged, tag="set_status"):
    status: SessionStatus


class ChangeLabels(Tagged, tag="change_labels"):
    add: tuple[LabelName, ...] = ()
    remove: tuple[str, ...] = ()


class Delete(Tagged, tag="delete"):
    """Hide the session from lists; `Restore` shows it again."""


class Restore(Tagged, tag="restore"): ...


class Compact(Tagged, tag="compact"):
    """Summarise older turns now."""


class UndoCompaction(Tagged, tag="undo_compaction"):
    """Show the model the full older turns again."""


class CompleteTodo(Tagged, tag="complete_todo"):
    todo_id: str


class Rewind(Tagged, tag="rewind", kw_only=True):
    """Go back to before a change set, or before a message: its files, the conversation, or both."""

    request_id: str = field(default_factory=lambda: new_id("r"))
    to: str
    """Id of a change set, or the end of that id, or id of a message."""
    only: bool = False
    """Undo this one change set and none of the later ones."""
    files: bool = True
    conversation: bool = False
    accept: tuple[str, ...] = ()
    """Files changed by others since then, for which the user accepts the merge."""
    leave: tuple[str, ...] = ()


class Redo(Tagged, tag="redo"):
    """Undo the last rewind."""

    request_id: str = field(default_factory=lambda: new_id("r"))
    accept: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()


class CommitChanges(Tagged, tag="commit_changes"):
    """Commit to git what this session changed since its last commit."""

    request_id: str = field(default_factory=lambda: new_id("g"))
    message: str = ""
    """Empty: Handrail writes one."""


class StopBackground(Tagged, tag="stop_background"):
    background_id: str


TurnCommand = (
    SendMessage
    | Cancel
    | CancelSubagent
    | AnswerApproval
    | AnswerQuestion
    | RunCommand
    | RunAll
    | StopBackground
)
ListCommand = Rename | SetStatus | ChangeLabels | Delete | Restore
SessionCommand = SetMode | SetModel | SetRoute | SelectIntent | ListCommand | CompleteTodo
PlanCommand = SetPlan | ApprovePlan | SetAutoContinue
HistoryCommand = Compact | UndoCompaction | CommitChanges | Rewind | Redo
Command = TurnCommand | SessionCommand | PlanCommand | HistoryCommand

COMMAND: Decoder[Command] = Decoder(Command)


def with_seen(command: Command, last: int) -> Command:
    """The command with `seen` set to the last event, if its sender did not set it."""
    if isinstance(command, SendMessage) and command.seen is None:
        return replace(command, seen=last)
    return command
