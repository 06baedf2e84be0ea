"""All events: one file a family. `EVENT` reads any of them by its `type`."""

from typing import Annotated

from pydantic import Field

from handrail.protocol.events.agents import ValueKept
from handrail.protocol.events.answers import Answered, AnswerEnd, FailureKind, RequestFailed, RequestStarted
from handrail.protocol.events.approvals import (
    ApprovalAnswered,
    ApprovalAsked,
    ApprovalPicked,
    QuestionAnswered,
    QuestionAsked,
)
from handrail.protocol.events.background import BackgroundEnd, BackgroundEnded, BackgroundStarted
from handrail.protocol.events.base import Delta, EventBase, Recorded
from handrail.protocol.events.batches import BatchDecided, BatchFinished, BatchStarted, BatchStep
from handrail.protocol.events.changes import (
    ChangeAbandoned,
    ChangeApplied,
    ChangePrepared,
    CopyKept,
    Redone,
    RewindRefused,
    Rewound,
)
from handrail.protocol.events.checks import AttemptStarted, CheckFinished, CheckStarted
from handrail.protocol.events.commits import CommitRefused, Committed
from handrail.protocol.events.context import Compacted, CompactionUndone, SideAnswered, SideAsked
from handrail.protocol.events.conversation import Nudged, TurnFinished, TurnStarted, UserMessage
from handrail.protocol.events.hooks import HookSpoke, SessionHooked
from handrail.protocol.events.intents import IntentEdited, IntentSelected, OverlapSettled
from handrail.protocol.events.routing import Routed, RouteSet
from handrail.protocol.events.runs import (
    BreakoutPending,
    GateFailed,
    RunBrokenOff,
    RunCompleted,
    RunContinued,
    RunFailed,
    RunPaused,
    RunRepaired,
    RunResumed,
    RunStarted,
    StageCompleted,
    StageStarted,
)
from handrail.protocol.events.session import (
    ModelSet,
    ModeSet,
    SessionCopied,
    SessionDeleted,
    SessionRenamed,
    SessionRestored,
    SessionStarted,
)
from handrail.protocol.events.todos import TodoCompleted, TodosChanged
from handrail.protocol.events.tools import CallStatus, ToolFinished, ToolStarted
from handrail.protocol.family import Family

Event = Annotated[
    SessionStarted
    | SessionCopied
    | SessionRenamed
    | SessionDeleted
    | SessionRestored
    | ModeSet
    | RouteSet
    | Routed
    | ModelSet
    | UserMessage
    | TurnStarted
    | Nudged
    | TurnFinished
    | RunStarted
    | StageStarted
    | StageCompleted
    | GateFailed
    | RunRepaired
    | RunPaused
    | RunResumed
    | BreakoutPending
    | RunBrokenOff
    | RunCompleted
    | RunContinued
    | RunFailed
    | RequestStarted
    | RequestFailed
    | Answered
    | ToolStarted
    | ToolFinished
    | BackgroundStarted
    | BackgroundEnded
    | ApprovalAsked
    | ApprovalAnswered
    | ApprovalPicked
    | BatchStarted
    | BatchStep
    | BatchDecided
    | BatchFinished
    | QuestionAsked
    | QuestionAnswered
    | ChangePrepared
    | ChangeApplied
    | ChangeAbandoned
    | CopyKept
    | Rewound
    | Redone
    | RewindRefused
    | Committed
    | CommitRefused
    | CheckStarted
    | CheckFinished
    | AttemptStarted
    | TodosChanged
    | TodoCompleted
    | Compacted
    | CompactionUndone
    | SideAsked
    | SideAnswered
    | IntentSelected
    | IntentEdited
    | OverlapSettled
    | HookSpoke
    | SessionHooked
    | ValueKept,
    Field(discriminator="type"),
]

EVENT: Family[Event] = Family(Event)

__all__ = [
    "EVENT",
    "AnswerEnd",
    "Answered",
    "ApprovalAnswered",
    "ApprovalAsked",
    "ApprovalPicked",
    "AttemptStarted",
    "BackgroundEnd",
    "BackgroundEnded",
    "BackgroundStarted",
    "BatchDecided",
    "BatchFinished",
    "BatchStarted",
    "BatchStep",
    "BreakoutPending",
    "CallStatus",
    "ChangeAbandoned",
    "ChangeApplied",
    "ChangePrepared",
    "CheckFinished",
    "CheckStarted",
    "CommitRefused",
    "Committed",
    "Compacted",
    "CompactionUndone",
    "CopyKept",
    "Delta",
    "Event",
    "EventBase",
    "FailureKind",
    "GateFailed",
    "HookSpoke",
    "IntentEdited",
    "IntentSelected",
    "ModeSet",
    "ModelSet",
    "Nudged",
    "OverlapSettled",
    "QuestionAnswered",
    "QuestionAsked",
    "Recorded",
    "Redone",
    "RequestFailed",
    "RequestStarted",
    "RewindRefused",
    "Rewound",
    "RouteSet",
    "Routed",
    "RunBrokenOff",
    "RunCompleted",
    "RunContinued",
    "RunFailed",
    "RunPaused",
    "RunRepaired",
    "RunResumed",
    "RunStarted",
    "SessionCopied",
    "SessionDeleted",
    "SessionHooked",
    "SessionRenamed",
    "SessionRestored",
    "SessionStarted",
    "SideAnswered",
    "SideAsked",
    "StageCompleted",
    "StageStarted",
    "TodoCompleted",
    "TodosChanged",
    "ToolFinished",
    "ToolStarted",
    "TurnFinished",
    "TurnStarted",
    "UserMessage",
    "ValueKept",
]
