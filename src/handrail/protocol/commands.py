"""Commands: what an interface asks of a session. They wait in the inbox until the holder takes them."""

from typing import Annotated, Literal

from pydantic import Field

from handrail.protocol.family import Family
from handrail.protocol.ids import new_id
from handrail.protocol.routing import Where
from handrail.protocol.values import AttachedImage, Mode, Role, Value

LONGEST_COMMAND = 16_000
MOST_COMMANDS = 50


class SendMessage(Value):
    """Start a turn, or steer the one that is running."""

    type: Literal["send_message"] = "send_message"
    text: str
    message_id: str = Field(default_factory=lambda: new_id("m"))
    """The id that the message will have in the log, so that its sender can find it there."""
    images: tuple[AttachedImage, ...] = ()
    """Pictures that the user named or pasted, their bytes already kept as blobs."""
    check: str = ""
    """A command of the user's: the turn counts as done only when it passes."""
    attempts: int = Field(default=1, ge=1, le=20)
    """How many fresh answers may be tried against the check, each from the same starting files."""
    route: str = ""
    """The pipeline that it runs through, or `auto`; empty: the session's.

    A paused run gets every message; by another route than its own it asks whether to leave.
    """
    suggested: bool = False
    """The words are the model's, and the user picked them: they mention nothing in the user's name."""
    selection: Where | None = None
    """What the user picked of the options that a question offered them."""
    seen: int | None = None
    """The last event that its sender was shown; None: all that there were when it was sent.

    A number or a yes counts only as the answer to what was asked up to there.
    """


class Cancel(Value):
    """Stop the running turn; what was done stays done."""

    type: Literal["cancel"] = "cancel"
    by: Literal["user", "signal"] = "user"
    withdraw: tuple[str, ...] = ()
    """Ids of messages that the user takes back, where they still wait."""


class AnswerApproval(Value):
    """The user's word on one call; `always` holds for the same call until the session ends.

    `allow` also writes the entry that was asked about into the user's list of allowed commands.
    """

    type: Literal["answer_approval"] = "answer_approval"
    approval_id: str
    decision: Literal["once", "always", "allow", "reject"]
    note: str = ""


class AnswerQuestion(Value):
    """The user's answer to a question of the model's."""

    type: Literal["answer_question"] = "answer_question"
    question_id: str
    answer: str


class RunCommand(Value):
    """Run a command that the user picked by their own hand, most often one that an answer suggests.

    To pick it is the user's word on exactly this text, once; what is denied stays denied.
    """

    type: Literal["run_command"] = "run_command"
    command: Annotated[str, Field(min_length=1, max_length=LONGEST_COMMAND)]
    network: bool = False
    """Let it use the network."""
    message_id: str = Field(default_factory=lambda: new_id("m"))
    """The id that its message will have in the log."""


class RunAll(Value):
    """Run commands one by one; after each the model sees the output and says how to go on."""

    type: Literal["run_all"] = "run_all"
    commands: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=LONGEST_COMMAND)], ...],
        Field(min_length=1, max_length=MOST_COMMANDS),
    ]
    network: bool = False
    message_id: str = Field(default_factory=lambda: new_id("m"))


class SetMode(Value):
    type: Literal["set_mode"] = "set_mode"
    mode: Mode


class SetRoute(Value):
    """Send the session's messages to this pipeline; `auto`: to the one that fits."""

    type: Literal["set_route"] = "set_route"
    route: str


class SetModel(Value):
    type: Literal["set_model"] = "set_model"
    model: str
    role: Role = "main"


class SelectIntent(Value):
    """Make an intent the active one of the session; empty: none."""

    type: Literal["select_intent"] = "select_intent"
    intent_id: str


class Rename(Value):
    type: Literal["rename"] = "rename"
    title: str


class Delete(Value):
    """Hide the session from lists; `Restore` brings it back."""

    type: Literal["delete"] = "delete"


class Restore(Value):
    type: Literal["restore"] = "restore"


class Compact(Value):
    """Summarise older turns now."""

    type: Literal["compact"] = "compact"


class UndoCompaction(Value):
    """Show the model the full older turns again."""

    type: Literal["undo_compaction"] = "undo_compaction"


class CompleteTodo(Value):
    type: Literal["complete_todo"] = "complete_todo"
    todo_id: str


class Rewind(Value):
    """Go back to before a change set, or before a message: its files, the conversation, or both."""

    type: Literal["rewind"] = "rewind"
    request_id: str = Field(default_factory=lambda: new_id("r"))
    """The id that the outcome will name."""
    to: str
    """Id of a change set, or the end of one, or id of a message."""
    only: bool = False
    """Take back this one change set and none of the later ones."""
    files: bool = True
    conversation: bool = False
    accept: tuple[str, ...] = ()
    """Files that somebody else changed since, of which the merge is to be taken."""
    leave: tuple[str, ...] = ()
    """Files that are to stay as they are."""


class Redo(Value):
    """Take back the last rewind."""

    type: Literal["redo"] = "redo"
    request_id: str = Field(default_factory=lambda: new_id("r"))
    accept: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()


class CommitChanges(Value):
    """Commit to git what this session has changed since it last did."""

    type: Literal["commit_changes"] = "commit_changes"
    request_id: str = Field(default_factory=lambda: new_id("g"))
    """The id that the outcome will name."""
    message: str = ""
    """Empty: Handrail writes one."""


class StopBackground(Value):
    """Stop a command that runs in the background."""

    type: Literal["stop_background"] = "stop_background"
    background_id: str


Command = Annotated[
    SendMessage
    | Cancel
    | AnswerApproval
    | AnswerQuestion
    | RunCommand
    | RunAll
    | SetMode
    | SetModel
    | SetRoute
    | SelectIntent
    | Rename
    | Delete
    | Restore
    | Compact
    | UndoCompaction
    | CompleteTodo
    | CommitChanges
    | StopBackground
    | Rewind
    | Redo,
    Field(discriminator="type"),
]

COMMAND: Family[Command] = Family(Command)


def as_sent(command: Command, last: int) -> Command:
    """The command as it is left for the holder, when the session has so many events."""
    if isinstance(command, SendMessage) and command.seen is None:
        return command.model_copy(update={"seen": last})
    return command
