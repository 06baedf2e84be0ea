"""What can be set, and what holds where nothing is set."""

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from handrail.config.command_entries import WrittenEntry
from handrail.config.connections import ConnectionSettings
from handrail.config.hooks import HookSettings
from handrail.protocol.values import Mode, Value

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def section() -> Any:
    """A section at its defaults, made by the model around it: for one made by itself pydantic builds more."""
    return Field(default_factory=dict, validate_default=True)


class FallbackSettings(Value):
    """For each role, the models to go on with when its own does not answer, in order."""

    main: tuple[str, ...] = ()
    fast: tuple[str, ...] = ()
    audit: tuple[str, ...] = ()
    image: tuple[str, ...] = ()


class EffortSettings(Value):
    """How much the model of a role is to think; empty: as its provider has it."""

    main: Literal["", "low", "medium", "high"] = ""
    fast: Literal["", "low", "medium", "high"] = ""


class ModelSettings(Value):
    """The model for each role as `connection/name`; empty: Handrail looks for one."""

    main: str = ""
    fast: str = ""
    audit: str = ""
    image: str = ""
    fallback: FallbackSettings = section()
    effort: EffortSettings = section()


class LimitSettings(Value):
    steps: Count = 50
    """Requests in one turn."""
    max_output_tokens: Count = 16_384
    """Tokens of one answer."""
    answer_seconds: Seconds = 300.0
    """Time for one whole answer."""
    usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 2.0
    """Cost of one run."""
    turn_tokens: Count = 2_000_000
    """Tokens of one turn, in and out."""
    turn_seconds: Seconds = 3600.0
    """Time for one turn."""


class RetrySettings(Value):
    count: Annotated[int, Field(ge=0, le=20)] = 4
    """How often a failed request is tried again."""
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 120.0
    """Time for all tries together."""


class CommandSettings(Value):
    allow: tuple[WrittenEntry, ...] = ()
    """Commands, by their first words, that need no asking in mode `auto`; lists of all layers add up."""
    deny: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Commands, by their first words, that never run, whatever allows them; lists of all layers add up."""
    without_sandbox: bool = False
    """Commands that run code of the workspace need no asking in mode `auto` where nothing confines them."""
    output_to_model: bool = True
    """What a command that you run from an answer writes goes to the model, which answers to it."""


Share = Annotated[float, Field(ge=0, le=1)]


class RouterSettings(Value):
    """How sure a model must be of where a message goes."""

    clarify_below: Share = 0.45
    """Below this, you are asked."""
    act_above: Share = 0.70
    """Up to this, a message that names nothing gets an answer, and nothing is done."""

    @model_validator(mode="after")
    def _asks_before_it_acts(self) -> Self:
        if self.act_above < self.clarify_below:
            raise PydanticCustomError("router", "act_above must not be below clarify_below")
        return self


class ContextSettings(Value):
    notes_chars: Annotated[int, Field(ge=0)] = 16_000
    """How much of AGENTS.md and the like the model is shown."""
    map_tokens: Annotated[int, Field(ge=0)] = 1_000
    """How much of the repository map the model is shown; 0: there is none."""


class StorageSettings(Value):
    megabytes: Count = 2_000
    """What is kept of file versions, raw answers and outputs of a workspace; the oldest goes first."""


class GitSettings(Value):
    commit: Literal["off", "per_change_set"] = "off"
    """Whether every change set becomes a commit of its own; `/commit` makes one whenever you like."""


class IntentSettings(Value):
    required: bool = False
    """Whether nothing is written or run without an intent, even where the workspace has no file of them."""


class DisplaySettings(Value):
    theme: Literal["auto", "dark", "light"] = "auto"
    color: Literal["auto", "always", "never"] = "auto"


class Settings(Value):
    """All settings, after every layer has spoken."""

    mode: Mode = "ask"
    auto_route: bool = True
    """Whether a message that only asks is answered without touching anything; off: all of them are work."""
    auto_continue: bool = False
    """Whether a request of several steps that chat answers goes on by itself, step by step."""
    models: ModelSettings = section()
    limits: LimitSettings = section()
    retries: RetrySettings = section()
    commands: CommandSettings = section()
    router: RouterSettings = section()
    context: ContextSettings = section()
    storage: StorageSettings = section()
    git: GitSettings = section()
    intents: IntentSettings = section()
    display: DisplaySettings = section()
    hooks: tuple[HookSettings, ...] = ()
    """Programs of the user's around calls, turns and sessions; those of all files add up."""
    connections: dict[str, ConnectionSettings] = Field(default_factory=dict)


def keys(model: type[Value] = Settings, prefix: str = "") -> tuple[str, ...]:
    """Every key that holds a value, such as `limits.usd`; connections, which the user names, left out."""
    found: list[str] = []
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Value):
            found += keys(field.annotation, f"{prefix}{name}.")
        elif ConnectionSettings not in get_args(field.annotation):
            found.append(f"{prefix}{name}")
    return tuple(found)
