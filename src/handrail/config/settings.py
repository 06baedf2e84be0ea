"""Every setting with its type and default: models, connections, limits, commands, checks, hooks."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import unquote

from msgspec import UNSET, Meta, UnsetType, field
from msgspec.structs import asdict, fields

from handrail.config.toml_file import parse_toml
from handrail.protocol.errors import ConfigProblem
from handrail.protocol.problems import WrongField
from handrail.protocol.values import AllowedCommand, HookPoint, Mode, Value

Wire = Literal["openai", "anthropic"]
SdkProvider = Literal["bedrock", "cohere", "google", "groq", "mistral", "vertex"]
"""Providers whose own client library is used, by the extra `providers`."""
Usd = Annotated[float, Meta(ge=0)]
TOOL_POINTS = ("before_tool", "after_tool")
Argument = Annotated[str, Meta(pattern=r"^[^\x00]+$")]
FINITE = sys.float_info.max
WrittenEntry = Annotated[str, Meta(min_length=1, pattern=r"\S")] | AllowedCommand
Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0, le=FINITE)]
Fraction = Annotated[float, Meta(ge=0, le=1)]


class PriceSettings(Value):
    """USD per million tokens; overrides the bundled price list."""

    input: Usd
    output: Usd
    cache_read: Usd | None = None
    cache_write: Usd | None = None


class ConnectionSettings(Value):
    """One connection. With the name of a built-in one, it changes only the fields that are set."""

    protocol: Wire | UnsetType = UNSET
    provider: SdkProvider | UnsetType = UNSET
    """Use this provider's own protocol, by its client library, in place of `protocol`."""
    region: Annotated[str, Meta(pattern=r"^[a-z0-9-]+$")] | UnsetType = UNSET
    """Where Amazon Bedrock or Google Vertex AI runs the model, such as `eu-central-1`."""
    project: str | UnsetType = UNSET
    """The project of Google Vertex AI."""
    cloud_login: bool | UnsetType = UNSET
    """Without a key, use the login of the `aws` or `gcloud` program (bedrock and vertex)."""
    base_url: str | UnsetType = UNSET
    """Everything before `/chat/completions` or `/v1/messages`, such as `https://host/v1`."""
    key_env: tuple[str, ...] | UnsetType = UNSET
    """Environment variables that may hold the key, first match wins. The key itself is never a setting."""
    key_header: str | UnsetType = UNSET
    """The header that carries the key; empty: what the protocol uses (Azure wants `api-key`)."""
    headers: dict[str, str] | UnsetType = UNSET
    query: dict[str, str] | UnsetType = UNSET
    """Added to every address, such as Azure's `api-version`."""
    context_window: Annotated[int, Meta(ge=1024)] | UnsetType = UNSET
    price: PriceSettings | UnsetType = UNSET
    native_tools: bool | UnsetType = UNSET
    """False: tools are described in the prompt and calls are read from the text."""
    images: bool | UnsetType = UNSET
    schema_output: bool | UnsetType = UNSET
    effort: bool | UnsetType = UNSET
    """Whether this server's models accept an effort; it is sent only if that is known or set here."""
    output_limit: Literal["max_tokens", "max_completion_tokens"] | UnsetType = UNSET
    """This server's name for the limit on output tokens."""
    stream_usage: bool | UnsetType = UNSET
    """False for a server that refuses `stream_options`; it then reports no token counts."""

    @property
    def set_fields(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not UNSET}


class HookSettings(Value):
    on: HookPoint
    run: Annotated[tuple[Argument, ...], Meta(min_length=1)]
    """The program and its arguments."""
    match: tuple[Argument, ...] = ()
    """The tools it applies to; empty: all."""
    seconds: Annotated[float, Meta(gt=0, le=600)] = 30.0

    def __post_init__(self) -> None:
        if self.match and self.on not in TOOL_POINTS:
            raise WrongField("match", "is only for before_tool and after_tool: leave it out")


class Hook(Value):
    settings: HookSettings
    folder: Path
    """Where it runs: the folder of the file that names it."""
    place: str
    files: Mapping[str, str]
    """{trusted file of the workspace: hash of its content}"""


def workspace_file(word: str, folder: Path, workspace: Path) -> Path | None:
    """The file inside the workspace that an argument of a hook names, if it names one."""
    if "\0" in word:
        return None
    path = Path(os.path.realpath(folder / os.path.expanduser(word)))
    return path if path.is_relative_to(os.path.realpath(workspace)) and os.path.isfile(path) else None


def hook_files(data: bytes, folder: Path, workspace: Path) -> list[Path]:
    """The workspace files that hooks in its settings name; none if the settings cannot be read."""
    try:
        hooks = parse_toml(folder, data).data.get("hooks")
    except ConfigProblem:
        return []  # reported when the settings are loaded
    found: dict[Path, None] = {}
    for hook in hooks if isinstance(hooks, list) else ():
        words = hook.get("run") if isinstance(hook, dict) else ()
        for word in words if isinstance(words, list) else ():
            if isinstance(word, str) and (file := workspace_file(word, folder, workspace)):
                found[file] = None
    return list(found)


class FallbackSettings(Value):
    main: tuple[str, ...] = ()
    """The models to try, in order, when `main` does not answer."""


class EffortSettings(Value):
    """How much the model of a role thinks; empty: the provider's default."""

    main: Literal["", "low", "medium", "high"] = ""
    fast: Literal["", "low", "medium", "high"] = ""


class ModelSettings(Value):
    """The model for each role as `connection/name`; empty: Handrail looks for one."""

    main: str = ""
    fast: str = ""
    audit: str = ""
    """Reviews the plan of a build; empty: `main`, in a conversation of its own."""
    fallback: FallbackSettings = FallbackSettings()
    effort: EffortSettings = EffortSettings()


class LimitSettings(Value):
    steps: Count = 50
    """Requests in one turn."""
    max_output_tokens: Count = 16_384
    """Tokens of one answer."""
    answer_seconds: Seconds = 300.0
    """Time for one whole answer."""
    usd: Annotated[float, Meta(ge=0, le=FINITE)] = 2.0
    """Cost of one run."""
    turn_tokens: Count = 2_000_000
    """Tokens of one turn, in and out."""
    turn_seconds: Seconds = 3600.0
    subagents: Annotated[int, Meta(ge=0, le=100)] = 20
    """Sub-agents of one turn, at all depths together; 0: none."""
    subagent_depth: Annotated[int, Meta(ge=1, le=5)] = 3
    """How deep sub-agents can start sub-agents of their own."""


class RetrySettings(Value):
    count: Annotated[int, Meta(ge=0, le=20)] = 4
    """How often a failed request is retried."""
    seconds: Annotated[float, Meta(ge=0, le=FINITE)] = 120.0
    """Time for all retries together."""


class CommandSettings(Value):
    allow: tuple[WrittenEntry, ...] = ()
    """Commands, by their first words, that run unasked in mode `auto`; lists of all layers add up."""
    deny: tuple[Annotated[str, Meta(min_length=1)], ...] = ()
    """Commands, by their first words, that never run; lists of all layers add up."""
    readable_secrets: tuple[Annotated[str, Meta(min_length=1)], ...] = ()
    """Files of the workspace that look like secrets, and that commands may read in mode `sandbox`."""
    without_sandbox: bool = False
    """In mode `auto`, commands that run code of the workspace run unasked even without a sandbox."""
    output_to_model: bool = True
    """The output of a command that you run from an answer goes to the model, which reacts to it."""


class RouterSettings(Value):
    """How sure a model must be about where a message goes."""

    clarify_below: Fraction = 0.45
    """Below this, you are asked."""
    act_above: Fraction = 0.70
    """Up to this, a message that names nothing is only answered."""

    def __post_init__(self) -> None:
        if self.act_above < self.clarify_below:
            raise WrongField("act_above", "must not be below clarify_below")


class ContextSettings(Value):
    notes_chars: Annotated[int, Meta(ge=0)] = 16_000
    """Limit for AGENTS.md and the like in the prompt."""
    map_tokens: Annotated[int, Meta(ge=0)] = 1_000
    """Limit for the repository map in the prompt; 0: no map."""


class StorageSettings(Value):
    megabytes: Count = 2_000
    """Limit for a workspace's file versions, requests, raw answers and outputs; the oldest go first."""


class DatabaseSettings(Value):
    """Where sessions are kept: in a file on this machine, or in PostgreSQL."""

    url: str = ""
    """`postgresql://USER@HOST/DATABASE`; empty: the file. The password may be in it, or in `~/.pgpass`."""
    workspace: str = ""
    """The workspace's name in the database; empty: the name of its folder."""

    def __post_init__(self) -> None:
        if self.url and not DATABASE_URL.match(self.url):
            form = "postgresql://USER@HOST/DATABASE, with no password behind a ?"
            raise WrongField("url", f"should be {form}; write / @ : in a password as %2F %40 %3A")
        if f":{HIDDEN}@" in self.url:
            raise WrongField("url", f"has {HIDDEN} where the password should be")
        if len(self.workspace.encode(errors="replace")) > MAX_WORKSPACE_BYTES or "\0" in self.workspace:
            raise WrongField("workspace", f"should be a name of at most {MAX_WORKSPACE_BYTES} bytes")

    def name_of(self, root: Path) -> str:
        """The name of the workspace `root` in the database."""
        name = self.workspace or root.name or "root"
        return name.encode("utf-8", "replace")[:MAX_WORKSPACE_BYTES].decode("utf-8", "ignore")


DATABASE_URL = re.compile(
    r"(?!.*[?&]([^=&]*%|\w*password=))postgres(ql)?://([^@/?#\s]*@)?[^@/?#\s]*([/?][^@\s]*)?$", re.IGNORECASE
)
"""So strict that libpq, whose errors name hosts and ports, never takes part of a password for one."""
HIDDEN = "***"
MAX_WORKSPACE_BYTES = 48  # PostgreSQL's names have 63


def without_password(url: str) -> str:
    """A database's URL as it may be shown, also one that is wrong."""
    return re.sub(r"(//[^/:@]*):.*@", rf"\1:{HIDDEN}@", url, flags=re.DOTALL)


def password_in(url: str) -> str:
    """The password in a database's URL; empty if it has none."""
    found = re.search(r"//[^/:@]*:([^@]*)@", url)
    return unquote(found[1]) if found else ""


class SplitSettings(Value):
    """Where the subtasks of a split ask their models."""

    run_on: Literal["here", "workers"] = "here"
    """In the process that runs the split, or on workers that share `database.url` with it."""
    worker_seconds: Annotated[float, Meta(ge=1, le=3600)] = 30.0
    """Of a worker: when it is silent so long, it is taken for dead, and its jobs go to others."""


class GitSettings(Value):
    commit: Literal["off", "per_change_set"] = "off"
    """Whether every change set becomes its own commit; `/commit` makes one at any time."""


class CheckCommand(Value):
    """A check of your own; with the name of one that was found, it replaces that one."""

    name: Annotated[str, Meta(pattern=r"^[\w./-]+$")]
    run: Annotated[str, Meta(min_length=1)]
    """A shell command."""
    kind: Literal["types", "lint", "tests", "build"] = "tests"
    folder: str = ""
    """Where it runs, relative to the workspace."""
    format: Literal["text", "junit", "sarif", "ruff", "mypy", "pyright", "eslint", "tsc", "jest"] = "text"
    """What it writes to the file `$REPORT/report`, or prints where there is no such file."""
    seconds: Annotated[float, Meta(gt=0, le=86_400)] = 600.0


class CheckSettings(Value):
    """What `handrail verify` runs."""

    detect: bool = True
    """Whether checks are found by looking at the project; off: only those of `commands` run."""
    skip: tuple[Annotated[str, Meta(min_length=1)], ...] = ()
    """Names of checks that do not run, such as `web/lint`."""
    seconds: Annotated[float, Meta(gt=0, le=86_400)] = 600.0
    """Time for each check that was found."""
    coverage: Annotated[float, Meta(ge=0, le=100)] = 70.0
    """Percent of the code that tests must run, where the project measures it and names no number itself."""
    localise: bool = True
    """Whether failing tests run once more, to find the lines that are most likely the reason."""
    commands: tuple[CheckCommand, ...] = ()
    """Checks of your own; lists of all layers add up."""


class BuildSettings(Value):
    """How `handrail build` works."""

    verify_in: Literal["copy", "workspace"] = "copy"
    """`workspace`: files are changed in the workspace, checked there, and rolled back if they do not pass."""
    changelog: str = ""
    """Where a build adds its entry; empty: the changelog at the root, if there is one."""
    candidates: Annotated[int, Meta(ge=1, le=8)] = 1
    """Independent answers that are tried before the best one is corrected."""


class IntentSettings(Value):
    required: bool = False
    """Whether an intent is needed to write or run anything, even if the workspace has no file of intents."""


class LessonSettings(Value):
    file: str = ""
    """Where lessons go; empty: AGENTS.md, or CLAUDE.md if the workspace has only that."""
    section: Annotated[str, Meta(pattern=r"\w")] = "Lessons"
    """The heading they stand under."""


class TaskSettings(Value):
    time_zone: str = ""
    """The zone in which dates of the task list are meant, such as `Europe/Berlin`; empty: the system's."""


class TelemetrySettings(Value):
    """Traces for OpenTelemetry; its own variables, such as OTEL_EXPORTER_OTLP_ENDPOINT, turn them on too."""

    endpoint: str = ""
    """The address of a collector that takes OTLP over HTTP, such as `http://127.0.0.1:4318`; empty: off."""
    content: bool = False
    """Whether spans hold messages, arguments and results, without known secrets."""


class KnowledgeSettings(Value):
    embeddings: str = ""
    """CONNECTION/MODEL that makes the vectors of paragraphs and queries; empty: the model on this machine."""
    web_search: str = ""
    """A URL with `{query}` in it that answers a web search with JSON, as SearXNG does; empty: none."""


class DisplaySettings(Value):
    color: Literal["auto", "always", "never"] = "auto"


class Settings(Value):
    mode: Mode = "ask"
    auto_route: bool = True
    """Whether a message that only asks is answered without changing anything; off: all messages are work."""
    auto_continue: bool = False
    """Whether chat continues a request of several steps by itself."""
    models: ModelSettings = ModelSettings()
    limits: LimitSettings = LimitSettings()
    retries: RetrySettings = RetrySettings()
    commands: CommandSettings = CommandSettings()
    router: RouterSettings = RouterSettings()
    context: ContextSettings = ContextSettings()
    storage: StorageSettings = StorageSettings()
    database: DatabaseSettings = DatabaseSettings()
    splits: SplitSettings = SplitSettings()
    git: GitSettings = GitSettings()
    intents: IntentSettings = IntentSettings()
    lessons: LessonSettings = LessonSettings()
    tasks: TaskSettings = TaskSettings()
    knowledge: KnowledgeSettings = KnowledgeSettings()
    display: DisplaySettings = DisplaySettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    checks: CheckSettings = CheckSettings()
    build: BuildSettings = BuildSettings()
    hooks: tuple[HookSettings, ...] = ()
    """The user's programs around calls, turns and sessions; those of all files add up."""
    connections: dict[str, ConnectionSettings] = field(default_factory=dict)


def setting_keys(model: type[Value] = Settings, prefix: str = "") -> tuple[str, ...]:
    """Every key that holds a value, such as `limits.usd`, except connections, whose names are the user's."""
    found: list[str] = []
    for each in fields(model):
        if isinstance(each.type, type) and issubclass(each.type, Value):
            found += setting_keys(each.type, f"{prefix}{each.name}.")
        elif ConnectionSettings not in get_args(each.type):
            found.append(f"{prefix}{each.name}")
    return tuple(found)
