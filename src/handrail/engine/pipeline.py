"""Pipelines as data: stages, gates, pauses, repairs and budgets; and the catalogue of all pipelines."""

import traceback
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from handrail.engine.limits import NO_BUDGET, Budget
from handrail.protocol.errors import GiveUp, HandrailError, UsageProblem
from handrail.protocol.events.runs import StageKind
from handrail.protocol.values import ChecklistItem, Effort, Mode, TaskFilter, Todo
from handrail.sessions.projections import PlanState
from handrail.workspace.files import Workspace

if TYPE_CHECKING:
    from handrail.engine.search.search import Found
    from handrail.tasks.task_list import TaskList
    from handrail.verification.workspace_checks import WorkspaceChecks
    from handrail.workspace.scratch_copy.copy import ShownCopy

Output = dict[str, Any]
IN_CONVERSATION: tuple[StageKind, ...] = ("work", "answer")


class Gate(NamedTuple):
    """A check of a stage's output, by name; on failure the run ends, or the repair unit is repeated."""

    check: str
    fails: Literal["end", "repair"] = "end"
    ends: Literal["failed", "unverified", "escalated"] = "failed"
    """How the run ends where it is not repaired, or the repairs are used up."""


class Stage(NamedTuple):
    name: str
    kind: StageKind
    prompt: str = ""  # `ask`: the system prompt. `work`: a message at its start, if any.
    takes: tuple[str, ...] = ()  # stages whose outputs it gets; `stage.field`: one field of one
    schema: Mapping[str, Any] | None = None  # JSON Schema of the output; an `ask` always has one
    step: str = ""  # `code`: the name of its function
    small: str = ""  # `ask`: the name of a function that takes its place where the model is small
    says: str = ""  # `answer`: the name of a function that turns the outputs into a message for the model
    role: Literal["main", "fast", "audit"] = "main"
    model: str = ""  # `ask`: the model as `connection/name`, instead of the role's; there is no fallback
    effort: Effort | None = None  # `ask` and `work`: how much the model thinks; None: the user's setting
    sampled_by: str = ""
    """`ask`: the stage whose output may have a `temperature`: then it is asked as if for the first time. Its
    `role` may be the one whose model is asked."""
    max_output: int = 4_096
    otherwise: Mapping[str, Any] | None = None
    """`ask`: the output where there is no usable answer; None: the run ends."""
    gates: tuple[Gate, ...] = ()
    budget: Budget = NO_BUDGET
    tools: tuple[str, ...] = ()  # `work`: the only tools it can use; empty: all of the run
    unless: str = ""  # the name of a check: the stage is left out where the output before it passes

    @property
    def inputs(self) -> tuple[str, ...]:
        """The stages that it takes something of."""
        return tuple(dict.fromkeys(each.split(".")[0] for each in self.takes))


class Repair(NamedTuple):
    """Stages that are repeated with the failures as feedback; a single stage corrects itself."""

    first: str
    last: str
    times: int = 1


class Rounds(NamedTuple):
    """Stages that are repeated for each step of a request, if the user has set `auto_continue`."""

    first: str
    last: str
    check: str  # the name of a check that the last output passes as long as steps are left
    most: int
    always: bool = False  # they are repeated unless the user has said no to it in the session


class Option(NamedTuple):
    """A line of the menu: go on with the next stage, or repeat the last one."""

    text: str
    then: Literal["go_on", "again"]


class Pause(NamedTuple):
    """A stop after a stage, where the user is asked; an option to leave the run is added."""

    after: str
    says: str = ""  # the name of a function that describes the output; empty: its fields are listed
    options: tuple[Option, ...] = (Option("Go on", "go_on"), Option("Do this step again", "again"))
    when: str = ""  # the name of a check: the run goes on where the output passes it
    picks: str = ""  # the name of a function: labels in the text, of which the user may name several


KEPT = "kept"  # values kept by earlier runs, as the output of a stage before the first


class Keep(NamedTuple):
    """A field of a stage's output that later runs of the pipeline get, under a name."""

    name: str
    stage: str
    field: str


class Functions(NamedTuple):
    """Functions of one pipeline alone, by name; they go before those of the catalogue."""

    checks: "Mapping[str, Check]" = MappingProxyType({})
    steps: "Mapping[str, Step]" = MappingProxyType({})
    words: "Mapping[str, Words]" = MappingProxyType({})
    skips: "Mapping[str, Skips]" = MappingProxyType({})


NO_FUNCTIONS = Functions()


class Pipeline(NamedTuple):
    name: str
    stages: tuple[Stage, ...]
    pauses: tuple[Pause, ...] = ()
    repairs: tuple[Repair, ...] = ()
    budget: Budget = NO_BUDGET
    ends: str = ""  # the name of a function that describes the result; empty: the last output is listed
    keeps: tuple[Keep, ...] = ()
    functions: Functions = NO_FUNCTIONS
    sha256: str = ""  # hash of the files that define it; empty: it comes with Handrail
    skips: str = ""  # the name of a function that returns the stages that a message does not need
    again: Rounds | None = None
    tells: str = ""  # names a function: what later turns are told, in place of a summary
    mode: Mode | None = None  # its runs are allowed no more than this mode allows
    tools: tuple[str, ...] = ()  # the only tools of its runs; empty: all
    sources: tuple[str, ...] = ()  # those that are switched on for its runs

    def conversational(self, skips: Collection[str] = ()) -> bool:
        """Whether all stages that are not skipped are part of the session's conversation."""
        return all(stage.kind in IN_CONVERSATION for stage in self.stages if stage.name not in skips)

    def for_small_models(self) -> "Pipeline":
        """The pipeline with the functions that take the place of questions to a small model."""
        names = tuple(stage.name for stage in self.stages)
        stages = (
            stage._replace(kind="code", step=stage.small, takes=names) if stage.small else stage
            for stage in self.stages
        )
        return self._replace(stages=tuple(stages))

    @property
    def works(self) -> bool:
        return any(stage.kind == "work" for stage in self.stages)

    def first(self, skips: Collection[str] = ()) -> Stage:
        return next(stage for stage in self.stages if stage.name not in skips)

    def last(self, skips: Collection[str] = ()) -> Stage:
        return [stage for stage in self.stages if stage.name not in skips][-1]

    def stage(self, name: str) -> Stage:
        if found := next((stage for stage in self.stages if stage.name == name), None):
            return found
        raise UsageProblem(f"The pipeline {self.name} no longer has a stage {name!r}. Start a new run.")

    def after(self, name: str, skips: Collection[str] = ()) -> Stage | None:
        index = self.stages.index(self.stage(name)) + 1
        return next((stage for stage in self.stages[index:] if stage.name not in skips), None)

    def pause_after(self, name: str) -> Pause | None:
        return next((pause for pause in self.pauses if pause.after == name), None)

    def repair_of(self, name: str) -> Repair | None:
        """The shortest range of stages that is repeated if this one fails."""
        names = [stage.name for stage in self.stages]
        at = names.index(name)
        around = [unit for unit in self.repairs if names.index(unit.first) <= at <= names.index(unit.last)]
        return min(around, key=lambda unit: names.index(unit.last) - names.index(unit.first), default=None)


class Passed(NamedTuple):
    pass


class Failed(NamedTuple):
    issues: tuple[str, ...]


Verdict = Passed | Failed
Outputs = Mapping[str, Output]  # outputs of completed stages, by name
Check = Callable[[Output, Outputs], Verdict]  # pure: judges a stage's output, given all outputs so far


class CallResult(NamedTuple):
    ok: bool
    content: str


class Change(NamedTuple):
    tool: str
    arguments: Mapping[str, Any]


class StepContext(Protocol):
    """What the function of a code stage works with."""

    question: str
    outputs: Outputs  # of the stages that it takes
    room: int  # characters of output that a model can be shown
    input_room: int  # characters of its output that a question which takes nothing else is shown
    repaired: int  # how often stages of the run were repeated to repair something
    issues: tuple[str, ...]  # of a gate, if the stage is repeated
    feedback: tuple[str, ...]  # what the user said at pauses
    chosen: str  # the line of the menu with which the user ended the last pause
    said: str  # their words, where they chose none
    key: str  # the same if the stage runs again after a restart
    item: ChecklistItem | None  # of a checklist, if the run is for one

    @property
    def attached(self) -> str:
        """What the turn's message came with, if it mentions anything."""

    @property
    def earlier(self) -> str:
        """The last turns before the question, in short."""

    @property
    def todos(self) -> Sequence[Todo]:
        """The session's todos as they are now."""

    @property
    def plan(self) -> PlanState | None:
        """The session's plan as it is now."""

    def other_intents(self, path: str) -> Sequence[str]:
        """The intents that own a file which the active intent does not own; none without an active one."""

    @property
    def workspace(self) -> Workspace:
        """To look at files without showing them to a model; what a model is shown comes from calls."""

    @property
    def checks(self) -> "WorkspaceChecks":
        """The checks of the project, also on a copy with other files."""

    @property
    def tasks(self) -> "TaskList":
        """The user's task list; what changes it must be applied with `key`."""

    @property
    def where(self) -> TaskFilter | None:
        """The tasks that the message is about, where the router knows."""

    async def search(
        self, targets: Sequence[str], start: Mapping[str, str], about: Collection[str]
    ) -> "Found":
        """Let a small model search for files with which the tests pass, in a copy; raises NoCopy, GiveUp.

        `about`: the failing tests that have to pass; others may go on failing.
        """

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallResult:
        """Call a tool through the gate. A call made before a restart is not repeated."""

    async def run_in_copy(self, copy: "ShownCopy", command: str, *, network: bool) -> CallResult:
        """Run a command in a scratch copy, through the gate; after a restart it runs again."""

    async def change_together(self, changes: Sequence[Change]) -> list[CallResult]:
        """Change files through the gate, all or none."""


Step = Callable[[StepContext], Awaitable[Output]]
"""After a restart it runs again from the start, so every effect must be a call, in the same order."""
Words = Callable[[Outputs], str]


class MessageFacts(NamedTuple):
    """What is known about a message before its run starts."""

    question: str
    directly: bool = False  # the model answers without looking or planning first
    native_tools: bool = True
    reads_only: bool = False
    proposes: bool = False  # the sender applies what is proposed


Skips = Callable[[MessageFacts], tuple[str, ...]]  # pure: the stages that a message does not need


DIFFERS = (
    "The agent {name} has changed since this run began, or another agent of that name is used now. "
    "`handrail agents show {name}` shows it; a new run would use it."
)


class Catalogue(NamedTuple):
    """All pipelines, and the functions that they name."""

    pipelines: Mapping[str, Pipeline]
    checks: Mapping[str, Check] = {}
    steps: Mapping[str, Step] = {}
    words: Mapping[str, Words] = {}
    skips: Mapping[str, Skips] = {}
    loaded: Mapping[str, Callable[[], Pipeline]] = {}
    """Pipelines that are imported when they are needed."""
    usual: str = "agent"  # the pipeline of a message without a route
    folders: "Callable[[str], Pipeline | None]" = lambda _name: None

    def find(self, name: str) -> Pipeline:
        """The pipeline of this name; raises UsageProblem where there is none."""
        load = self.loaded.get(name)
        found = load() if load else self.pipelines.get(name or self.usual) or self.folders(name)
        if found is None:
            names = ", ".join(sorted([*self.pipelines, *self.loaded]))
            known = f"auto, {names}, and the agents that `handrail agents` lists"
            raise UsageProblem(f"There is no route {name!r}: there are {known}.")
        return found

    def find_unchanged(self, name: str, sha256: str) -> Pipeline:
        """The pipeline of a run; raises UsageProblem where it has changed since the run started."""
        found = self.find(name)
        if found.sha256 != sha256:
            raise UsageProblem(DIFFERS.format(name=name))
        return found

    def skipped(self, pipeline: Pipeline, asked: MessageFacts) -> tuple[str, ...]:
        named = {**self.skips, **pipeline.functions.skips}
        return named[pipeline.skips](asked) if pipeline.skips else ()

    def for_pipeline(self, pipeline: Pipeline) -> "Catalogue":
        """The catalogue with the pipeline's own functions first."""
        own = pipeline.functions
        return self._replace(
            checks={**self.checks, **own.checks},
            steps={**self.steps, **own.steps},
            words={**self.words, **own.words},
        )


ERROR_CHARACTERS = 200


@contextmanager
def definition_errors(what: str) -> Iterator[None]:
    """Raises GiveUp where a function that a definition names fails with an unexpected error."""
    try:
        yield
    except HandrailError:
        raise
    # A definition is user input, and says which function is given what. A run that crashed Handrail would
    # be resumed when the session is opened again, and crash it again.
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        text = " ".join(f"{type(error).__name__} {error}".split())[:ERROR_CHARACTERS]
        raise GiveUp(
            f"{what} failed with its input: {text} ({Path(last.filename).name}:{last.lineno}). "
            "What was done before is kept."
        ) from error
