"""Events about the session's plan."""

from typing import Literal

from handrail.protocol.events.base import EventBase
from handrail.protocol.plan import Plan


class PlanChanged(EventBase, tag="plan_changed"):
    """The session has another plan, which the user has not approved yet."""

    plan_id: str
    plan: Plan
    by: Literal["model", "user"]


class PlanApproved(EventBase, tag="plan_approved"):
    """The user approved the plan: its steps are todos from now on."""

    plan_id: str
    todos: tuple[str, ...]
    """The todo of each step."""


PlanEvent = PlanChanged | PlanApproved
