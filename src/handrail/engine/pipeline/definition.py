"""What a pipeline is: data that code walks. Nothing here runs."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

from handrail.engine.limits import NO_BUDGET, Budget
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events.runs import StageKind
from handrail.protocol.values import Effort

Output = dict[str, Any]
TALKS: tuple[StageKind, ...] = ("work", "answer")
"""Kinds of stages that happen in the session's conversation."""


class Gate(NamedTuple):
    """A check of a stage's output, by the name of its function."""

    check: str
    fails: Literal["end", "repair"] = "end"
    """End the run, or do the repair unit that the stage belongs to again."""


class Stage(NamedTuple):
    """One focused piece of work."""

    name: str
    kind: StageKind
    prompt: str = ""
    """`ask`: the system prompt. `work`: what the conversation is told at its start, if anything."""
    takes: tuple[str, ...] = ()
    """Stages whose outputs it is given."""
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the output; an `ask` always has one."""
    step: str = ""
    """`code`: the name of its function."""
    says: str = ""
    """`answer`: the name of a function that words what the conversation is told first, from the outputs."""
    role: Literal["main", "fast"] = "main"
    """Which model an `ask` goes to."""
    model: str = ""
    """`ask`: the model as `connection/name`; it goes before the role, and no other stands in for it."""
    effort: Effort | None = None
    """`ask` and `work`: how much the model is to think; None: as the user has set it."""
    max_output: int = 4_096
    otherwise: Mapping[str, Any] | None = None
    """`ask`: the output where no model answers as it should; None: the run ends there."""
    gates: tuple[Gate, ...] = ()
    budget: Budget = NO_BUDGET


class Repair(NamedTuple):
    """Stages that are done again with the failures as feedback; one stage alone corrects itself."""

    first: str
    last: str
    times: int = 1


class Again(NamedTuple):
    """Stages that are done once for each step of a request, where the user lets them go on by themselves."""

    first: str
    last: str
    check: str
    """The name of a check: as long as the output of the last one passes it, there are steps left."""
    most: int


class Option(NamedTuple):
    """A line of the menu."""

    text: str
    then: Literal["go_on", "again"]
    """Go on with the next stage, or do the last one again."""


class Pause(NamedTuple):
    """A stop after a stage, at which the user is asked."""

    after: str
    says: str = ""
    """The name of a function that words the output for the user; empty: it is listed as it is."""
    options: tuple[Option, ...] = (Option("Go on", "go_on"), Option("Do this step again", "again"))
    """Leaving the run comes last by itself."""


KEPT = "kept"
"""What earlier runs kept, as if it were the output of a stage before the first."""


class Keep(NamedTuple):
    """A named value that later runs of the pipeline are given: a field of a stage's output."""

    name: str
    stage: str
    field: str


class Functions(NamedTuple):
    """Functions of one pipeline alone, by the names that it calls them; they go before those of all."""

    checks: "Mapping[str, Check]" = MappingProxyType({})
    steps: "Mapping[str, Step]" = MappingProxyType({})
    words: "Mapping[str, Words]" = MappingProxyType({})


NO_FUNCTIONS = Functions()


class Pipeline(NamedTuple):
    name: str
    stages: tuple[Stage, ...]
    pauses: tuple[Pause, ...] = ()
    repairs: tuple[Repair, ...] = ()
    budget: Budget = NO_BUDGET
    ends: str = ""
    """The name of a function that words the end for the user; empty: the last output as it is."""
    keeps: tuple[Keep, ...] = ()
    functions: Functions = NO_FUNCTIONS
    sha256: str = ""
    """Of the files that define it; empty: it comes with Handrail."""
    skips: str = ""
    """The name of a function that says which stages a message does not need."""
    again: Again | None = None
    tells: str = ""
    """The name of a function that words what later turns are told, where the conversation has the answer."""

    def conversational(self, skips: Collection[str] = ()) -> bool:
        """Whether all of it that is not skipped happens in the session's conversation."""
        return all(stage.kind in TALKS for stage in self.stages if stage.name not in skips)

    @property
    def works(self) -> bool:
        """Whether the model works at files in one of its stages."""
        return any(stage.kind == "work" for stage in self.stages)

    def first(self, skips: Collection[str] = ()) -> Stage:
        return next(stage for stage in self.stages if stage.name not in skips)

    def last(self, skips: Collection[str] = ()) -> Stage:
        return [stage for stage in self.stages if stage.name not in skips][-1]

    def stage(self, name: str) -> Stage:
        if found := next((stage for stage in self.stages if stage.name == name), None):
            return found
        raise UsageProblem(f"The pipeline {self.name} has no stage {name!r} any more. Begin the run anew.")

    def after(self, name: str, skips: Collection[str] = ()) -> Stage | None:
        """The stage that follows one; None behind the last."""
        index = self.stages.index(self.stage(name)) + 1
        return next((stage for stage in self.stages[index:] if stage.name not in skips), None)

    def pause_after(self, name: str) -> Pause | None:
        return next((pause for pause in self.pauses if pause.after == name), None)

    def repair_of(self, name: str) -> Repair | None:
        """The shortest range of stages to be done again where this one fails."""
        names = [stage.name for stage in self.stages]
        at = names.index(name)
        around = [unit for unit in self.repairs if names.index(unit.first) <= at <= names.index(unit.last)]
        return min(around, key=lambda unit: names.index(unit.last) - names.index(unit.first), default=None)


class Passed(NamedTuple):
    pass


class Failed(NamedTuple):
    issues: tuple[str, ...]


Verdict = Passed | Failed
Outputs = Mapping[str, Output]
"""Of the stages that were completed, by name."""
Check = Callable[[Output, Outputs], Verdict]
"""Pure: the output of the stage, and those of the stages before it."""


class CallEnd(NamedTuple):
    """How a tool call of a stage ended."""

    ok: bool
    content: str


class Change(NamedTuple):
    """A call of a tool that changes a file."""

    tool: str
    arguments: Mapping[str, Any]


class Work(Protocol):
    """What a step of code has at hand."""

    @property
    def question(self) -> str: ...

    @property
    def outputs(self) -> Outputs:
        """Of the stages that it takes."""

    @property
    def earlier(self) -> str:
        """What was said in the last turns before the question, in short."""

    @property
    def room(self) -> int:
        """Characters that a model may be told of what it finds."""

    @property
    def issues(self) -> tuple[str, ...]:
        """What a gate found wanting, where the stage is done again."""

    @property
    def feedback(self) -> tuple[str, ...]:
        """What the user said at pauses."""

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallEnd:
        """Use a tool, through the gate. A call that was made before a restart is not made again."""

    async def change_together(self, changes: Sequence[Change]) -> list[CallEnd]:
        """Change files, all or none, through the gate as one."""


Step = Callable[[Work], Awaitable[Output]]
"""May be run again from its start after a restart: every effect of it is a call, in the same order."""
Words = Callable[[Outputs], str]


class Asked(NamedTuple):
    """What is known of a message before its run begins."""

    question: str
    small: bool = False
    """A small model answers."""
    reads_only: bool = False


Skips = Callable[[Asked], tuple[str, ...]]
"""Pure: the names of the stages that a message does not need."""


DIFFERS = (
    "The agent {name} is not what it was when this run began: its files have changed, or another agent of "
    "that name is used now. `handrail agents show {name}` shows it; a new run would use it."
)


def no_folders(_name: str) -> Pipeline | None:
    return None


class Catalogue(NamedTuple):
    """The pipelines there are, and the functions that they name."""

    pipelines: Mapping[str, Pipeline]
    checks: Mapping[str, Check] = {}
    steps: Mapping[str, Step] = {}
    words: Mapping[str, Words] = {}
    skips: Mapping[str, Skips] = {}
    usual: str = "agent"
    """The pipeline of a message that names none."""
    folders: "Callable[[str], Pipeline | None]" = no_folders
    """Finds what is defined in a folder; raises where it may not be used."""

    def find(self, name: str) -> Pipeline:
        """The pipeline of this name, of none the usual one; raises UsageProblem where there is none."""
        found = self.pipelines.get(name or self.usual) or self.folders(name)
        if found is None:
            names = ", ".join(sorted(self.pipelines))
            raise UsageProblem(
                f"There is no route {name!r}: there are auto, {names}, and what `handrail agents` lists."
            )
        return found

    def same(self, name: str, sha256: str) -> Pipeline:
        """The pipeline of a run that has begun; raises UsageProblem where it is another by now."""
        found = self.find(name)
        if found.sha256 != sha256:
            raise UsageProblem(DIFFERS.format(name=name))
        return found

    def skipped(self, pipeline: Pipeline, asked: Asked) -> tuple[str, ...]:
        """The stages that a message does not need."""
        return self.skips[pipeline.skips](asked) if pipeline.skips else ()

    def of(self, pipeline: Pipeline) -> "Catalogue":
        """The same with the functions of a pipeline before those of all."""
        if pipeline.functions == NO_FUNCTIONS:
            return self
        own = pipeline.functions
        return self._replace(
            checks={**self.checks, **own.checks},
            steps={**self.steps, **own.steps},
            words={**self.words, **own.words},
        )
