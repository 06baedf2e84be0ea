"""Base of all events, and the envelope they are stored in."""

from typing import TYPE_CHECKING, NamedTuple

from handrail.protocol.values import Tagged

if TYPE_CHECKING:
    from handrail.protocol.events import Event


class EventBase(Tagged):
    """A fact: something that happened."""


class Recorded(NamedTuple):
    """An event with its place in the log. Order is by `seq`, never by `at`."""

    stream: str
    seq: int
    at: float
    event: "Event"


class Delta(NamedTuple):
    """Streaming text: displayed at once, without a sequence number, never the cause of an effect."""

    stream: str
    message_id: str
    kind: str
    """`text`, `thinking`, `output` (of a command), or `progress`: the latest status line."""
    offset: int
    text: str
