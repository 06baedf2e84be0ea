"""Events of a turn: the user's message, its route, its end."""

from typing import Any, Literal

from handrail.protocol.events.base import EventBase
from handrail.protocol.values import (
    AttachedImage,
    FileSeen,
    FinishReason,
    Mode,
    NextStep,
    RouterDecision,
    Usage,
)


class UserMessage(EventBase, tag="user_message"):
    message_id: str
    turn_id: str
    text: str
    attached: str = ""
    """Content of mentioned files, as the model sees it."""
    files: tuple[FileSeen, ...] = ()
    gone: tuple[str, ...] = ()
    """Files the model knew that somebody else deleted; it is told so."""
    images: tuple[AttachedImage, ...] = ()
    unattached: tuple[str, ...] = ()
    """For the user: mentions that are not attached, and why."""
    mapped: tuple[str, ...] = ()
    steering: bool = False
    """Sent while the turn was running."""
    runs: tuple[str, ...] = ()
    """Ended runs whose summaries are attached."""
    suggested: bool = False
    """A model's suggestion that the user picked."""
    run_id: str = ""
    """The paused run that it is for; it is then not part of the session's conversation."""
    early: bool = False
    """Sent before the run asked, so it was not taken as the answer."""
    route: str = ""
    """The route the user chose, for a message that a paused run got."""
    accepts: int = 0
    """The event whose recovered parts the user accepts; the model is asked for the rest."""
    keep: int | None = None
    """The last request is repeated: the model sees all up to this event, and not this message."""
    proposes: bool = False
    """The turn ends with a proposal, and changes no file and no task."""
    earlier: str = ""
    """What was said before, as the sender told it."""


class TurnStarted(EventBase, tag="turn_started"):
    turn_id: str
    number: int
    """1 for the first turn of the session."""
    model: str
    mode: Mode
    check: str = ""
    """The command that must pass before the turn counts as done."""
    attempts: int = 1
    """How many fresh answers may be tried against the check."""
    run_id: str = ""
    """The paused run that the message is for."""
    unrouted: bool = False
    """The rules do not say where the message goes: a model is asked first."""
    repeats: int = 0
    """The message that is answered again; 0: the one before this event."""


class Nudged(EventBase, tag="nudged"):
    """Handrail told the model what it is doing, for instance the same call three times."""

    turn_id: str
    text: str


class OutputRequested(EventBase, tag="output_requested"):
    """The last answer of the turn has to be a JSON value by this JSON Schema."""

    turn_id: str
    schema: dict[str, Any]


class OutputAccepted(EventBase, tag="output_accepted"):
    """The last answer fits the schema."""

    turn_id: str
    output: str
    """The value as JSON, as it was read from the answer."""


class TurnFinished(EventBase, tag="turn_finished"):
    turn_id: str
    reason: FinishReason
    detail: str = ""
    """For the user: why, and what to do."""
    usage: Usage = Usage()
    cost_usd: float | None = None
    """None if the price of a request is not known."""
    seconds: float = 0.0
    steps: int = 0
    next_steps: tuple[NextStep, ...] = ()
    """What the user may want next; those of a structured answer are in that answer."""
    offered_by: Literal["", "model", "handrail"] = ""
    """Who offers the next steps. Only Handrail's own may be slash commands."""


class NextStepsOffered(EventBase, tag="next_steps_offered"):
    """The model ended its work with next steps."""

    turn_id: str
    steps: tuple[NextStep, ...]


class RouteSet(EventBase, tag="route_set"):
    """From now on the session's messages take this route, unless a message names another."""

    route: str


class AutoContinueSet(EventBase, tag="auto_continue_set"):
    """From now on, requests of several steps continue by themselves in this session, or do not."""

    on: bool


class Routed(EventBase, tag="routed", kw_only=True):
    """Where the message of a turn goes."""

    turn_id: str
    message: str
    route: str = ""
    """The pipeline; empty: the user is asked first."""
    by: Literal["rules", "model", "fallback", "answer"]
    """Fallback: the model's decision could not be read. Answer: the user answered a question."""
    why: str = ""
    decision: RouterDecision


OutputEvent = OutputRequested | OutputAccepted
RouteEvent = RouteSet | AutoContinueSet | Routed
MessageEvent = UserMessage | TurnStarted | Nudged | OutputEvent | NextStepsOffered | TurnFinished
ConversationEvent = MessageEvent | RouteEvent
