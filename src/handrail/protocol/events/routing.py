"""Events of finding out where a message goes."""

from typing import Literal

from handrail.protocol.events.base import EventBase
from handrail.protocol.routing import RouterDecision


class RouteSet(EventBase):
    """From now on the session's messages take this route, unless one says otherwise."""

    type: Literal["route_set"] = "route_set"
    route: str


class Routed(EventBase):
    """Where the message of a turn goes."""

    type: Literal["routed"] = "routed"
    turn_id: str
    message: str
    """What was to be understood."""
    route: str = ""
    """The pipeline; empty: the user is asked first."""
    by: Literal["rules", "model", "fallback", "answer"]
    """Fallback: the model did not say it in a way that can be read. Answer: the user's, to a question."""
    why: str = ""
    decision: RouterDecision
