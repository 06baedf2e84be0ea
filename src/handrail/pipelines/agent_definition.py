"""An agent's files as a pipeline, or all mistakes in them, each with its line."""

import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from msgspec import ValidationError, convert
from msgspec.structs import asdict

from handrail.engine.limits import NO_BUDGET, Budget
from handrail.engine.pipeline import (
    Check,
    Functions,
    Gate,
    Keep,
    Option,
    Outputs,
    Pause,
    Pipeline,
    Repair,
    Stage,
    Step,
    Words,
)
from handrail.engine.run_record import listed
from handrail.pipelines.agent_file import (
    ROLES,
    SECTIONS,
    WORKSPACE,
    AgentFile,
    DefinitionProblems,
    Location,
    PauseEntry,
    RegisteredFunction,
    ResultEntry,
    StageEntry,
    references_in,
    unknown_name,
)
from handrail.pipelines.agent_folder import PROMPT_PATH, AgentFiles
from handrail.pipelines.agent_validation import check_agreement
from handrail.pipelines.library import CHECKS, STEPS
from handrail.protocol.errors import ConfigProblem
from handrail.protocol.problems import problems_in
from handrail.protocol.values import Value

DEFAULT_OPTIONS = Pause("").options
RESULT_NAME = "result"


class Agent(NamedTuple):
    files: AgentFiles
    definition: AgentFile
    pipeline: Pipeline

    @property
    def slug(self) -> str:
        return self.files.found.slug


class BuiltStage(NamedTuple):
    stage: Stage
    checks: Mapping[str, Check]
    steps: Mapping[str, Step]


def define_agent(files: AgentFiles) -> Agent:
    """The agent; raises ConfigProblem with everything that is wrong, one line each."""
    problems = DefinitionProblems(files.toml)
    try:
        definition = convert(files.toml.data, AgentFile)
    except ValidationError:
        every = {key for section in SECTIONS for key in section.__struct_fields__}
        for each in problems_in(files.toml.data, AgentFile):
            of_stage = each.path[:1] == ("stages",) and len(each.path) == 3
            problems.add_all([each], known=sorted(StageEntry.__struct_fields__ if of_stage else every))
        raise ConfigProblem("\n".join(problems.found)) from None
    made = [_stage(at, entry, files, problems) for at, entry in enumerate(definition.stages)]
    check_agreement(definition, [each.stage for each in made], problems)
    if problems.found:
        raise ConfigProblem("\n".join(problems.found))
    return Agent(files, definition, _pipeline(files, definition, made))


def _stage(at: int, entry: StageEntry, files: AgentFiles, problems: DefinitionProblems) -> BuiltStage:
    place: Location = ("stages", at)
    takes = list(entry.takes)
    checks: dict[str, Check] = {}
    gates = []
    for number, written in enumerate(entry.gates):
        at_gate = (*place, "gates", number)
        name, fails = str(written.get("check", "")), written.get("fails", "end")
        if fails not in ("end", "repair"):
            problems.add(at_gate, "fails should be 'end' or 'repair'")
        rest = {key: value for key, value in written.items() if key not in ("check", "fails")}
        known = _find_registered(CHECKS, "check", name, (*at_gate, "check"), problems)
        if known and (options := _options(known, rest, at_gate, problems)):
            key = f"{name} {entry.name}.{rest.get('field', '')}"
            if key in checks:
                problems.add(at_gate, f"{name} checks {rest.get('field', '')} twice; remove one")
            checks[key] = partial(known.function, options)
            gates.append(Gate(key, "repair" if fails == "repair" else "end"))
    unless = _unless(at, entry, checks, problems) if entry.unless else ""
    steps: dict[str, Step] = {}
    if entry.kind == "code":
        known = _find_registered(STEPS, "step", entry.step, (*place, "step"), problems)
        if known and (options := _options(known, entry.options, (*place, "options"), problems)):
            steps[entry.name] = partial(known.function, options)
            takes += [each.text.split(".")[0] for each in references_in(type(options), asdict(options))]
    stage = Stage(
        name=entry.name,
        kind=entry.kind,
        prompt=_prompt(entry, files, place, problems),
        takes=tuple(dict.fromkeys(takes)),
        schema=entry.output,
        step=entry.name if entry.kind == "code" else "",
        role="fast" if entry.model == "fast" else "main",
        model="" if entry.model in ROLES else entry.model,
        effort=entry.effort,
        max_output=entry.max_output,
        tools=entry.tools,
        gates=tuple(gates),
        unless=unless,
        budget=Budget(entry.budget.tokens, entry.budget.usd) if entry.budget else NO_BUDGET,
    )
    return BuiltStage(stage, checks, steps)


def _unless(at: int, entry: StageEntry, checks: dict[str, Check], problems: DefinitionProblems) -> str:
    """The name of the check that leaves the stage out."""
    place: Location = ("stages", at, "unless")
    if at == 0:
        problems.add(place, "the first stage cannot be left out; remove unless")
    name = str(entry.unless.get("check", ""))
    rest = {key: value for key, value in entry.unless.items() if key != "check"}
    known = _find_registered(CHECKS, "check", name, (*place, "check"), problems)
    if known and (options := _options(known, rest, place, problems)):
        checks[key := f"{name} before {entry.name}"] = partial(known.function, options)
        return key
    return ""


def _find_registered(
    registered: Mapping[str, RegisteredFunction],
    what: str,
    name: str,
    at: Location,
    problems: DefinitionProblems,
) -> RegisteredFunction | None:
    if name not in registered:
        problems.add(at, unknown_name(what, registered, name) if name else f"{what} is missing; name one")
    return registered.get(name)


def _options(
    known: RegisteredFunction, given: Mapping[str, Any], at: Location, problems: DefinitionProblems
) -> Value | None:
    try:
        return convert(given, known.options)
    except ValidationError:
        problems.add_all(problems_in(given, known.options), at, known.options.__struct_fields__)
        return None


def _prompt(entry: StageEntry, files: AgentFiles, place: Location, problems: DefinitionProblems) -> str:
    if not entry.prompt:
        return ""
    data = files.files.get(entry.prompt)
    at = (*place, "prompt")
    if data is None:
        valid = PROMPT_PATH.fullmatch(entry.prompt)
        problem = (
            "does not exist; write it" if valid else "should be a file of the folder, as prompts/NAME.md"
        )
        problems.add(at, f"{entry.prompt[:80]!r} {problem}")
        return ""
    try:
        text = data.decode().strip()
    except UnicodeDecodeError:
        problems.add(at, f"{entry.prompt} is not valid UTF-8; save it as UTF-8")
        return ""
    if not text:
        problems.add(at, f"{entry.prompt} is empty; write what the model has to do")
    return text


def _pipeline(files: AgentFiles, definition: AgentFile, made: Iterable[BuiltStage]) -> Pipeline:
    stages = tuple(each.stage for each in made)
    words: dict[str, Words] = {RESULT_NAME: partial(_result_text, definition.result, stages[-1].name)}
    pauses = []
    for number, entry in enumerate(definition.pauses):
        name = f"pause {number}"
        words[name] = partial(_pause_text, entry)
        options = tuple(Option(each.text, each.then) for each in entry.options) or DEFAULT_OPTIONS
        pauses.append(Pause(entry.after, name, options))
    return Pipeline(
        files.found.slug,
        stages,
        tuple(pauses),
        tuple(Repair(each.first, each.last, each.times) for each in definition.repairs),
        Budget(definition.budget.tokens, definition.budget.usd),
        RESULT_NAME,
        tuple(Keep(each.name, each.stage, each.field) for each in definition.keeps),
        Functions(
            {name: check for each in made for name, check in each.checks.items()},
            {name: step for each in made for name, step in each.steps.items()},
            words,
        ),
        files.sha256,
        mode=definition.mode,
        tools=definition.tools,
        sources=tuple(name for name in definition.needs if name != WORKSPACE),
    )


def _pause_text(entry: PauseEntry, outputs: Outputs) -> str:
    return "\n".join(filter(None, [entry.text, listed(outputs[entry.after])]))


def _result_text(entry: ResultEntry, last: str, outputs: Outputs) -> str:
    output = outputs[entry.stage or last]
    if entry.format == "json":
        return json.dumps(output, ensure_ascii=False, indent=2)
    return str(output.get(entry.field, "")) if entry.format == "text" else listed(output)
