"""An agent's files as a pipeline, or all that is wrong with them, each with its line."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from handrail.config.toml_file import TomlFile
from handrail.config.validation import frozen
from handrail.engine.limits import NO_BUDGET, Budget
from handrail.engine.pipeline.definition import (
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
from handrail.engine.pipeline.pausing import listed
from handrail.pipelines.agent_agreement import agree
from handrail.pipelines.agent_file import (
    ROLES,
    SECTIONS,
    AgentFile,
    BudgetEntry,
    PauseEntry,
    ResultEntry,
    StageEntry,
)
from handrail.pipelines.agent_folder import PROMPT, AgentFiles
from handrail.pipelines.checks import CHECKS
from handrail.pipelines.registered import Registered, references
from handrail.pipelines.steps import STEPS
from handrail.pipelines.wording import Location, Named, Problems
from handrail.protocol.errors import ConfigProblem
from handrail.protocol.values import Value

USUAL = Pause("").options
RESULT = "result"


class Agent(NamedTuple):
    """An agent that can be run."""

    files: AgentFiles
    said: AgentFile
    pipeline: Pipeline

    @property
    def slug(self) -> str:
        return self.files.found.slug


class Made(NamedTuple):
    """A stage, and the functions that were made for it."""

    stage: Stage
    checks: Mapping[str, Check]
    steps: Mapping[str, Step]


def defined(files: AgentFiles) -> Agent:
    """The agent; raises ConfigProblem with all that is wrong, a line each."""
    problems = Problems(files.toml)
    said = _said(files.toml, problems)
    made = [_stage(at, entry, files, problems) for at, entry in enumerate(said.stages)] if said else []
    if said:
        agree(said, [each.stage for each in made], problems)
    if said is None or problems.found:
        raise ConfigProblem("\n".join(problems.found))
    return Agent(files, said, _pipeline(files, said, made))


def _said(file: TomlFile, problems: Problems) -> AgentFile | None:
    try:
        return AgentFile.model_validate({**frozen(file.data), **_stages(file.data)}, strict=True)
    except ValidationError as error:
        problems.add_all(error, known=sorted({key for model in SECTIONS for key in model.model_fields}))
        return None


def _stages(data: Mapping[str, Any]) -> dict[str, Any]:
    """The stages with lists as tuples, the form that values have; JSON Schemas stay as they are written."""
    written = data.get("stages")
    if not isinstance(written, list) or not all(isinstance(each, dict) for each in written):
        return {}
    schemas = [{"output": each["output"]} if "output" in each else {} for each in written]
    return {"stages": tuple({**frozen(each), **own} for each, own in zip(written, schemas, strict=True))}


def _stage(at: int, entry: StageEntry, files: AgentFiles, problems: Problems) -> Made:
    place: Location = ("stages", at)
    takes = list(entry.takes)
    checks: dict[str, Check] = {}
    gates = []
    for number, written in enumerate(entry.gates):
        spot = (*place, "gates", number)
        name, fails = str(written.get("check", "")), written.get("fails", "end")
        if fails not in ("end", "repair"):
            problems.add(spot, "fails should be 'end' or 'repair'")
        rest = {key: value for key, value in written.items() if key not in ("check", "fails")}
        known = _known(CHECKS, "check", name, (*spot, "check"), problems)
        options = _options(known, rest, spot, problems)
        if known and options is not None:
            called = f"{name} {entry.name}.{rest.get('field', '')}"
            if called in checks:
                problems.add(spot, f"{name} looks at {rest.get('field', '')} twice; leave one out")
            checks[called] = known.make(options)
            gates.append(Gate(called, "repair" if fails == "repair" else "end"))
    steps: dict[str, Step] = {}
    if entry.kind == "code":
        known_step = _known(STEPS, "step", entry.step, (*place, "step"), problems)
        options = _options(known_step, entry.options, (*place, "options"), problems)
        if known_step and options is not None:
            steps[entry.name] = known_step.make(options)
            takes += [each.text.split(".")[0] for each in references(options)]
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
        gates=tuple(gates),
        budget=_budget(entry.budget),
    )
    return Made(stage, checks, steps)


def _known(
    registered: Mapping[str, Registered[Any]], what: str, name: str, at: Location, problems: Problems
) -> Registered[Any] | None:
    if name not in registered:
        problems.add(at, Named(what, registered).unknown(name) if name else f"{what} is missing; name one")
    return registered.get(name)


def _options(
    known: Registered[Any] | None, given: Mapping[str, Any], at: Location, problems: Problems
) -> Value | None:
    if known is None:
        return None
    try:
        return known.options.model_validate(frozen(given), strict=True)
    except ValidationError as error:
        problems.add_all(error, at, known.options.model_fields)
        return None


def _prompt(entry: StageEntry, files: AgentFiles, place: Location, problems: Problems) -> str:
    if not entry.prompt:
        return ""
    data = files.files.get(entry.prompt)
    at = (*place, "prompt")
    if data is None:
        fine = PROMPT.fullmatch(entry.prompt)
        said = "does not exist; write it" if fine else "should be a file of the folder, as prompts/NAME.md"
        problems.add(at, f"{entry.prompt[:80]!r} {said}")
        return ""
    try:
        text = data.decode().strip()
    except UnicodeDecodeError:
        problems.add(at, f"{entry.prompt} is not valid UTF-8; save it as UTF-8")
        return ""
    if not text:
        problems.add(at, f"{entry.prompt} is empty; say what the model is to do")
    return text


def _budget(entry: BudgetEntry | None) -> Budget:
    return Budget(entry.tokens, entry.usd) if entry else NO_BUDGET


def _pipeline(files: AgentFiles, said: AgentFile, made: Iterable[Made]) -> Pipeline:
    stages = tuple(each.stage for each in made)
    words: dict[str, Words] = {RESULT: _result(said.result, stages[-1].name)}
    pauses = []
    for number, entry in enumerate(said.pauses):
        name = f"pause {number}"
        words[name] = _words_of(entry)
        options = tuple(Option(each.text, each.then) for each in entry.options) or USUAL
        pauses.append(Pause(entry.after, name, options))
    return Pipeline(
        files.found.slug,
        stages,
        tuple(pauses),
        tuple(Repair(each.first, each.last, each.times) for each in said.repairs),
        Budget(said.budget.tokens, said.budget.usd),
        RESULT,
        tuple(Keep(each.name, each.stage, each.field) for each in said.keeps),
        Functions(
            {name: check for each in made for name, check in each.checks.items()},
            {name: step for each in made for name, step in each.steps.items()},
            words,
        ),
        files.sha256,
    )


def _words_of(entry: PauseEntry) -> Words:
    def words(outputs: Outputs) -> str:
        return "\n".join(filter(None, [entry.text, listed(outputs[entry.after])]))

    return words


def _result(entry: ResultEntry, last: str) -> Words:
    def words(outputs: Outputs) -> str:
        output = outputs[entry.stage or last]
        if entry.format == "json":
            return json.dumps(output, ensure_ascii=False, indent=2)
        return str(output.get(entry.field, "")) if entry.format == "text" else listed(output)

    return words
