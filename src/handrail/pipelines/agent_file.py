"""The keys of `agent.toml`, references between stages, and messages about mistakes in it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, get_args

from msgspec import Meta, field
from msgspec.structs import fields

from handrail.config.toml_file import TomlFile
from handrail.engine.pipeline import Output, Outputs
from handrail.models.providers import SCRIPTED
from handrail.protocol.problems import Problem, WrongField
from handrail.protocol.values import Effort, Mode, Value


class ReferenceMark(NamedTuple):
    """Marks an option that names an output: of another stage (`elsewhere`), or of the stage itself.

    The output has to hold values of one of the `types`, or objects with these `fields`, which are texts;
    where neither is set, anything will do. `needs` says that in words.
    """

    needs: str = ""
    types: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    elsewhere: bool = True


NAME = r"[A-Za-z_][A-Za-z0-9_]{0,39}"
Reference = Annotated[str, Meta(pattern=rf"^{NAME}(\.{NAME}){{1,3}}$")]
"""`stage.field`: the output of an earlier stage; of each item where it is a list."""
Taken = Annotated[str, Meta(pattern=rf"^{NAME}(\.{NAME})?$")]  # a stage, or one field of its output
FieldPath = Annotated[str, Meta(pattern=rf"^{NAME}(\.{NAME}){{0,2}}$")]  # a field of the stage's own output
TEXTS = ReferenceMark("texts", types=("string",))
CLAIMS = ReferenceMark("items with the texts claim and quote", fields=("claim", "quote"))
PASSAGES = ReferenceMark("texts, or items with a text", types=("string",), fields=("text",))
SOURCES = ReferenceMark("items with the texts path, lines and text", fields=("path", "lines", "text"))
AnyOutput = Annotated[Reference, ReferenceMark()]
Texts = Annotated[Reference, TEXTS]
Findings = Annotated[Reference, CLAIMS]
Passages = Annotated[Reference, PASSAGES]
Sources = Annotated[Reference, SOURCES]
OwnField = Annotated[FieldPath, ReferenceMark(elsewhere=False)]
OwnTexts = Annotated[FieldPath, TEXTS._replace(elsewhere=False)]
OwnFindings = Annotated[FieldPath, CLAIMS._replace(elsewhere=False)]
OwnFlag = Annotated[FieldPath, ReferenceMark("true or false", types=("boolean",), elsewhere=False)]


class RegisteredFunction(NamedTuple):
    """A step or check that a definition can name; the function gets the options first."""

    options: type[Value]
    function: Callable[..., Any]
    gives: Mapping[str, Any] = MappingProxyType({})  # JSON Schemas of a step's output, by field


class UsedReference(NamedTuple):
    option: str
    text: str
    mark: ReferenceMark


def references_in(kind: type[Value], given: Mapping[str, Any]) -> Iterator[UsedReference]:
    """The outputs that options of a step or check refer to."""
    for each in fields(kind):
        text = given.get(each.name)
        for mark in get_args(each.type)[1:]:
            if isinstance(mark, ReferenceMark) and text:
                yield UsedReference(each.name, text, mark)


def look_up(outputs: Outputs, reference: str) -> list[Any]:
    """The values that a reference leads to: the items of a list, or the one value."""
    stage, *path = reference.split(".")
    return values_at(outputs.get(stage, {}), path)


def values_at(output: Output, path: list[str]) -> list[Any]:
    """The values at the end of a path; lists on the way are flattened."""
    found: list[Any] = [output]
    for name in path:
        found = [each[name] for each in found if isinstance(each, dict) and name in each]
        found = [item for each in found for item in (each if isinstance(each, list) else [each])]
    return found


def check_below_workspace(name: str, path: str) -> None:
    """Raises WrongField for an option that is no path below the workspace."""
    outside = path.startswith(("/", "~")) or "\\" in path or "\0" in path
    if outside or not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise WrongField(name, "should be a path below the workspace, such as reports/report.md")


Location = Sequence[int | str]
MAX_SHOWN, MAX_PROBLEMS, MAX_PROBLEM_LENGTH = 60, 20, 400


class DefinitionProblems:
    """Collects what is wrong with one file, up to a limit."""

    def __init__(self, file: TomlFile) -> None:
        self.file = file
        self.found: list[str] = []

    def add(self, at: Location, problem: str) -> None:
        """Add a problem at a place of the file; on one line, whatever names the file contains."""
        if len(self.found) >= MAX_PROBLEMS:
            return
        problem = " ".join(problem.split()).rstrip(".")[:MAX_PROBLEM_LENGTH]
        text = f"{self.file.place(tuple(map(str, at)))}: {problem}."
        if text not in self.found:
            self.found.append(text)
        if len(self.found) >= MAX_PROBLEMS:
            self.found[-1] += " There may be more; correct these first."

    def add_all(self, found: Iterable[Problem], at: Location = (), known: Iterable[str] = ()) -> None:
        """Add all problems of a value; `known` are the possible keys."""
        for each in found:
            self.add((*at, *each.path), _describe_error(each, [*known]))


def unknown_name(what: str, known: Iterable[str], name: str) -> str:
    """The message about a name that does not exist, with the one that was probably meant."""
    return f"there is no {what} {name[:MAX_SHOWN]!r}; {_suggestion(name, [*known])}"


def _describe_error(problem: Problem, known: Sequence[str]) -> str:
    names = [part for part in problem.path if isinstance(part, str)]
    name = names[-1] if names else "it"
    match problem.kind:
        case "unknown":
            return f"unknown key {name[:MAX_SHOWN]!r}; {_suggestion(name, known)}"
        case "missing" if name == "budget" and len(names) == 1:
            return "budget is missing: write [budget] and below it tokens = 50_000, the limit of a run"
        case "missing":
            return f"{name} is missing; add it"
        case "object":
            return f"{name} should be a table of keys"
    return f"{name} {problem.should}{_shown_value(problem.given)}"


def _suggestion(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name[:MAX_SHOWN], known, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(sorted(known)) or 'none'}"


def _shown_value(value: Any) -> str:
    if isinstance(value, dict | list | tuple):
        return ""
    text = repr(value)
    return f"; it is {text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + '...'}"


Name = Annotated[str, Meta(pattern=rf"^{NAME}$")]
Line = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Tokens = Annotated[int, Meta(ge=100, le=5_000_000)]
Usd = Annotated[float, Meta(gt=0, le=100)]
ROLES = ("main", "fast")
MODEL_REFERENCE = re.compile(r"[^\s/]{1,60}/\S{1,120}")


class BudgetEntry(Value):
    tokens: Tokens | None = None
    usd: Usd | None = None


class RunBudget(Value):
    """The limit of the whole run; every agent has one."""

    tokens: Tokens
    usd: Usd | None = None


class StageEntry(Value):
    name: Name
    kind: Literal["ask", "work", "code"]
    prompt: Annotated[str, Meta(max_length=200)] = ""  # `ask` and `work`: a file in `prompts/`
    model: str = "main"  # `ask`: a role, or a model by name
    effort: Effort | None = None  # `ask` and `work`: how much the model thinks
    takes: Annotated[tuple[Taken, ...], Meta(max_length=30)] = ()  # earlier stages, or `kept`
    tools: Annotated[tuple[Name, ...], Meta(max_length=40)] = ()  # `work`: the only ones it can use
    output: dict[str, Any] | None = None  # `ask`: the JSON Schema of the answer
    max_output: Annotated[int, Meta(ge=32, le=32_000)] = 4_096  # `ask`: tokens of the answer
    step: str = ""  # `code`: the name of a registered step
    options: dict[str, Any] = field(default_factory=dict)
    gates: Annotated[tuple[dict[str, Any], ...], Meta(max_length=16)] = ()
    """`{ check = "not_empty", field = "questions", fails = "repair" }`"""
    unless: dict[str, Any] = field(default_factory=dict)
    """`{ check = "empty", field = "results" }`: left out where the output of the stage before it passes."""
    budget: BudgetEntry | None = None

    def __post_init__(self) -> None:
        named = self.model.isprintable() and MODEL_REFERENCE.fullmatch(self.model)
        if self.model not in ROLES and not named:
            raise WrongField("model", "should be 'main', 'fast', or a model by name as 'CONNECTION/NAME'")
        if self.model.startswith(f"{SCRIPTED}/"):
            raise WrongField("model", "should be a model of one of your connections; scripts need --model")


class OptionEntry(Value):
    text: Line
    then: Literal["go_on", "again"] = "go_on"


class PauseEntry(Value):
    after: Name
    text: Annotated[str, Meta(max_length=500)] = ""  # shown before the stage's output
    options: Annotated[tuple[OptionEntry, ...], Meta(max_length=8)] = ()


class RepairEntry(Value):
    first: Name
    last: Name
    times: Annotated[int, Meta(ge=1, le=10)] = 1


class KeepEntry(Value):
    name: Name
    stage: Name
    field: Name


class ResultEntry(Value):
    format: Literal["list", "text", "json"] = "list"
    stage: str = ""  # empty: the last stage
    field: str = ""  # `text`: the field to show


WORKSPACE = "workspace"
SourceName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$")]


class AgentFile(Value, kw_only=True):
    name: Line
    description: Line
    needs: Annotated[tuple[SourceName, ...], Meta(max_length=20)] = (WORKSPACE,)
    """`workspace`, and sources (MCP servers) that are switched on for the agent."""
    mode: Mode | None = None  # the agent is allowed no more than this mode allows
    tools: Annotated[tuple[Name, ...], Meta(max_length=40)] = ()  # the only tools it can use; empty: all
    budget: RunBudget
    result: ResultEntry = ResultEntry()
    stages: Annotated[tuple[StageEntry, ...], Meta(min_length=1, max_length=30)]
    pauses: Annotated[tuple[PauseEntry, ...], Meta(max_length=30)] = ()
    repairs: Annotated[tuple[RepairEntry, ...], Meta(max_length=10)] = ()
    keeps: Annotated[tuple[KeepEntry, ...], Meta(max_length=20)] = ()


SECTIONS = (AgentFile, StageEntry, PauseEntry, OptionEntry, RepairEntry, KeepEntry, ResultEntry, RunBudget)
