"""Where messages go: what the router decides, whether rules or a model said it."""

from typing import Annotated, Any, Literal

from pydantic import Field

from handrail.protocol.values import Value

Decided = Literal["clarify", "chat", "tasks", "agent"]
MOST_OPTIONS = 7
AUTO = "auto"
"""The route of messages that find their way by themselves."""


class Option(Value):
    """One answer to the question that a clarify asks."""

    id: str
    title: str
    scheduled_for: str = ""


class Where(Value):
    """A normalised filter on the task list; what is left out does not narrow."""

    ids: tuple[str, ...] = ()
    text: str = ""
    scheduled_range: tuple[str, str] | None = None
    priority: str = ""
    completed: bool | None = None
    repeating: bool | None = None


class RouterDecision(Value):
    """Where a message goes, and how sure that is."""

    decision: Decided
    confidence: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    question: str = ""
    """One short question, where it has to be clarified."""
    options: Annotated[tuple[Option, ...], Field(max_length=MOST_OPTIONS)] = ()
    entities: dict[str, Any] = Field(default_factory=dict)
    """What the message names: files, people, dates."""
    where: Where | None = None

    @property
    def strong(self) -> bool:
        """Whether it names what it is about."""
        return any(self.entities.values()) or self.where not in (None, Where())
