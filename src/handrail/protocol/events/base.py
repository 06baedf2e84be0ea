"""What all events share, and the envelope they are stored in."""

from typing import TYPE_CHECKING, NamedTuple

from handrail.protocol.values import Value

if TYPE_CHECKING:
    from handrail.protocol.events import Event


class EventBase(Value):
    """Something that has happened. Every family derives from this and sets a `type`."""


class Recorded(NamedTuple):
    """An event with its place in the log. Order is by `seq`, never by `at`."""

    stream: str
    seq: int
    at: float
    event: "Event"


class Delta(NamedTuple):
    """Text as it streams: displayed at once, has no sequence number, never causes an effect."""

    stream: str
    message_id: str
    kind: str
    """`text`, `thinking`, `output` (of a command), or `progress`: the last line on how far it is."""
    offset: int
    text: str
