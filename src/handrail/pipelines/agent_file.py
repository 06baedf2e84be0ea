"""What `agent.toml` says: its keys and their limits."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from handrail.models.connections import SCRIPTED
from handrail.pipelines.registered import NAME
from handrail.protocol.values import Effort, Value

Name = Annotated[str, Field(pattern=rf"^{NAME}$")]
Line = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Tokens = Annotated[int, Field(ge=100, le=5_000_000)]
Usd = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
ROLES = ("main", "fast")
REFERENCE = re.compile(r"[^\s/]{1,60}/\S{1,120}")


def _model(text: str) -> str:
    if text not in ROLES and not (text.isprintable() and REFERENCE.fullmatch(text)):
        raise ValueError("should be 'main', 'fast', or a model by name as 'CONNECTION/NAME'")
    if text.startswith(f"{SCRIPTED}/"):
        raise ValueError("should be a model of one of your connections; a script is for --model alone")
    return text


WhichModel = Annotated[str, AfterValidator(_model)]


class BudgetEntry(Value):
    tokens: Tokens | None = None
    usd: Usd | None = None


class RunBudget(Value):
    """Of the whole run; a definition without an end to what it spends is none."""

    tokens: Tokens
    usd: Usd | None = None


class StageEntry(Value):
    name: Name
    kind: Literal["ask", "work", "code"]
    prompt: Annotated[str, Field(max_length=200)] = ""
    """`ask` and `work`: a file in `prompts/`."""
    model: WhichModel = "main"
    """`ask`: the role of the model that answers, or the model itself."""
    effort: Effort | None = None
    """`ask` and `work`: how much it is to think."""
    takes: Annotated[tuple[Name, ...], Field(max_length=30)] = ()
    """Earlier stages, or `kept`, whose outputs it is told."""
    output: dict[str, Any] | None = None
    """`ask`: the JSON Schema of the answer."""
    max_output: Annotated[int, Field(ge=32, le=32_000)] = 4_096
    """`ask`: tokens of the answer."""
    step: str = ""
    """`code`: the name of a registered step."""
    options: dict[str, Any] = Field(default_factory=dict)
    """`code`: what the step is told."""
    gates: Annotated[tuple[dict[str, Any], ...], Field(max_length=16)] = ()
    """`{ check = "not_empty", field = "questions", fails = "repair" }`"""
    budget: BudgetEntry | None = None


class OptionEntry(Value):
    text: Line
    then: Literal["go_on", "again"] = "go_on"


class PauseEntry(Value):
    after: Name
    text: Annotated[str, Field(max_length=500)] = ""
    """Said before what the stage found."""
    options: Annotated[tuple[OptionEntry, ...], Field(max_length=8)] = ()


class RepairEntry(Value):
    first: Name
    last: Name
    times: Annotated[int, Field(ge=1, le=10)] = 1


class KeepEntry(Value):
    name: Name
    stage: Name
    field: Name


class ResultEntry(Value):
    """What the user is shown at the end."""

    format: Literal["list", "text", "json"] = "list"
    stage: str = ""
    """The last one where nothing is said."""
    field: str = ""
    """`text`: the field that is the text."""


class AgentFile(Value):
    name: Line
    description: Line
    needs: tuple[Literal["workspace"], ...] = ("workspace",)
    """Sources that are switched on for it."""
    budget: RunBudget
    result: ResultEntry = ResultEntry()
    stages: Annotated[tuple[StageEntry, ...], Field(min_length=1, max_length=30)]
    pauses: Annotated[tuple[PauseEntry, ...], Field(max_length=30)] = ()
    repairs: Annotated[tuple[RepairEntry, ...], Field(max_length=10)] = ()
    keeps: Annotated[tuple[KeepEntry, ...], Field(max_length=20)] = ()


SECTIONS = (AgentFile, StageEntry, PauseEntry, OptionEntry, RepairEntry, KeepEntry, ResultEntry, RunBudget)
"""All that keys can belong to."""
