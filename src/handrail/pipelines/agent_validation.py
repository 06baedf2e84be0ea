"""Whether the parts of an agent's definition agree: names, ranges, references, schemas."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from handrail.engine.pipeline import KEPT, Stage
from handrail.pipelines.agent_file import (
    AgentFile,
    DefinitionProblems,
    Location,
    ReferenceMark,
    RegisteredFunction,
    StageEntry,
    UsedReference,
    references_in,
    unknown_name,
)
from handrail.pipelines.library import CHECKS, STEPS

TYPES = ("object", "array", "string", "number", "integer", "boolean")
NUMBERS = ("minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum")
KEYS = ("type", "description", "properties", "required", "items", "enum", "additionalProperties", *NUMBERS)
MAX_LEVELS, MAX_PARTS = 6, 200  # levels and parts of a schema
Schema = Mapping[str, Any]
TEXT = {"type": "string"}


class SchemaProblem(NamedTuple):
    path: tuple[str, ...]
    problem: str


def schema_problems(schema: Schema) -> Iterator[SchemaProblem]:
    """What is wrong with the schema of an answer, or not supported."""
    if schema.get("type") != "object":
        yield SchemaProblem(("type",), 'should be "object", since an answer is one')
    yield from _problems_in(schema, (), [MAX_PARTS])


def _problems_in(schema: Any, path: tuple[str, ...], left: list[int]) -> Iterator[SchemaProblem]:
    left[0] -= 1
    if left[0] < 0:
        if left[0] == -1:
            yield SchemaProblem(path, f"has more than {MAX_PARTS} parts; make it smaller")
        return
    if not isinstance(schema, Mapping):
        yield SchemaProblem(path, "should be a table with a type")
        return
    if len(path) > MAX_LEVELS * 2:
        yield SchemaProblem(path, f"is nested deeper than {MAX_LEVELS} levels; make it flatter")
        return
    if schema.get("type") not in TYPES:
        yield SchemaProblem((*path, "type"), f"should be one of: {', '.join(TYPES)}")
    for key, value in schema.items():
        if key not in KEYS:
            yield SchemaProblem((*path, key), f"unknown; the known keys are: {', '.join(KEYS)}")
        if key in NUMBERS and (isinstance(value, bool) or not isinstance(value, int | float)):
            yield SchemaProblem((*path, key), "should be a number")
        if key == "enum" and (not isinstance(value, list) or not value):
            yield SchemaProblem((*path, key), "should be a list that is not empty")
    yield from _inner_problems(schema, path, left)


def _inner_problems(schema: Schema, path: tuple[str, ...], left: list[int]) -> Iterator[SchemaProblem]:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        yield SchemaProblem(path, "properties should be a table, and required a list of their names")
        return
    for name in required:
        if name not in properties:
            yield SchemaProblem((*path, "required"), f"{name!r} is not one of the properties")
    if schema.get("type") == "object" and not properties:
        yield SchemaProblem(path, "should have properties")
    if schema.get("type") == "array" and "items" not in schema:
        yield SchemaProblem(path, "should have items")
    for name, inner in properties.items():
        yield from _problems_in(inner, (*path, "properties", str(name)), left)
    if "items" in schema:
        yield from _problems_in(schema["items"], (*path, "items"), left)


class PathTarget(NamedTuple):
    """Where a path leads: the schema of each value there, or the problem."""

    schema: Schema
    name: str
    problem: str = ""


def check_references(at: int, agent: AgentFile, problems: DefinitionProblems) -> None:
    """Add what is wrong with the references in the options of a stage and of its gates."""
    entry = agent.stages[at]
    before = {each.name: stage_output_schema(each) for each in agent.stages[:at]}
    for path, (option, text, mark) in _stage_references(entry):
        itself = agent.stages[at - 1] if path == ("unless",) else entry
        stage, *names = text.split(".") if mark.elsewhere else (itself.name, *text.split("."))
        own = {stage: stage_output_schema(itself)}
        outputs = {**before, KEPT: _kept_schema(agent)} if mark.elsewhere else own
        if stage not in outputs:
            problem = unknown_name("stage before this one called", before, stage)
        else:
            target = _follow_path(outputs[stage], names, stage)
            problem = target.problem or _type_mismatch(target, mark)
        if problem:
            problems.add(("stages", at, *path, option), problem)


def stage_output_schema(entry: StageEntry) -> Schema:
    """The JSON Schema of a stage's output; without properties where they are unknown."""
    if entry.kind == "ask":
        return entry.output or {}
    if entry.kind == "work":
        return {"properties": {"answer": TEXT}}
    return {"properties": STEPS[entry.step].gives} if entry.step in STEPS else {}


def schema_fields(schema: Schema) -> Schema:
    """The properties of a schema, if they are valid."""
    fields = schema.get("properties", {})
    return fields if isinstance(fields, Mapping) else {}


def no_such_field(stage: str, fields: Iterable[str], name: str) -> str:
    return f"{stage} gives {', '.join(fields)}, and no {name}"


def _stage_references(entry: StageEntry) -> Iterator[tuple[tuple[str, ...], UsedReference]]:
    written: list[tuple[tuple[str, ...], RegisteredFunction | None, Mapping[str, Any]]] = []
    if entry.kind == "code":
        written.append((("options",), STEPS.get(entry.step), entry.options))
    for number, gate in enumerate(entry.gates):
        rest = {key: value for key, value in gate.items() if key not in ("check", "fails")}
        written.append((("gates", str(number)), CHECKS.get(str(gate.get("check"))), rest))
    rest = {key: value for key, value in entry.unless.items() if key != "check"}
    written.append((("unless",), CHECKS.get(str(entry.unless.get("check"))), rest))
    for path, known, given in written:
        if known and set(given) <= set(known.options.__struct_fields__):
            for each in references_in(known.options, given):
                yield path, each._replace(text=str(each.text))


def _kept_schema(agent: AgentFile) -> Schema:
    """What earlier runs kept, as the output of a stage."""
    outputs = {each.name: schema_fields(stage_output_schema(each)) for each in agent.stages}
    return {
        "properties": {keep.name: outputs.get(keep.stage, {}).get(keep.field, {}) for keep in agent.keeps}
    }


def _follow_path(schema: Schema, path: Sequence[str], place: str) -> PathTarget:
    """What a path leads to; of a list, its items."""
    for name in path:
        fields = schema_fields(schema)
        if name not in fields:
            known = fields or place == KEPT or "type" in schema
            return PathTarget({}, place, no_such_field(place, fields or ["nothing"], name) if known else "")
        inner = fields[name]
        if isinstance(inner, Mapping) and inner.get("type") == "array":
            inner = inner.get("items")
        # What is not a schema at all is reported elsewhere.
        schema, place = inner if isinstance(inner, Mapping) else {}, f"{place}.{name}"
    return PathTarget(schema, place)


def _type_mismatch(target: PathTarget, mark: ReferenceMark) -> str:
    kind, fields = target.schema.get("type"), schema_fields(target.schema)
    texts = {
        name for name, each in fields.items() if isinstance(each, Mapping) and each.get("type") == "string"
    }
    fits = kind in mark.types or (mark.fields and texts.issuperset(mark.fields))
    if kind is None or not mark.needs or fits:
        return ""
    having = f" with {', '.join(fields)}" if fields else ""
    return f"{target.name} has to be {mark.needs}, and each there is of the type {kind}{having}"


KEYS_OF_KIND = {
    "ask": ("prompt", "model", "effort", "output", "max_output"),
    "work": ("prompt", "effort", "tools"),
    "code": ("step", "options"),
}
KIND_OF_KEY = {name: kind for kind, names in KEYS_OF_KIND.items() for name in names}


def check_agreement(agent: AgentFile, stages: Sequence[Stage], problems: DefinitionProblems) -> None:
    """Add what does not fit together."""
    names = [entry.name for entry in agent.stages]
    for at, entry in enumerate(agent.stages):
        _check_stage(at, entry, agent, problems)
        _check_inputs(at, stages[at].takes, names, problems)
        _check_taken_fields(at, agent, problems)
    _check_pauses(agent, names, problems)
    _check_repairs(agent, names, problems)
    _check_keeps(agent, names, problems)
    _check_result(agent, names, problems)


def _check_taken_fields(at: int, agent: AgentFile, problems: DefinitionProblems) -> None:
    outputs = {each.name: stage_output_schema(each) for each in agent.stages[:at]} | {
        KEPT: _kept_schema(agent)
    }
    for each in agent.stages[at].takes:
        stage, _, field = each.partition(".")
        if field and stage in outputs and (problem := _follow_path(outputs[stage], [field], stage).problem):
            problems.add(("stages", at, "takes"), problem)


def _check_stage(at: int, entry: StageEntry, agent: AgentFile, problems: DefinitionProblems) -> None:
    place: Location = ("stages", at)
    names = [each.name for each in agent.stages]
    if names.index(entry.name) != at:
        problems.add((*place, "name"), f"two stages are called {entry.name}; give one another name")
    if entry.name == KEPT:
        problems.add((*place, "name"), f"{KEPT} is what earlier runs kept; give the stage another name")
    for key in problems.file.data["stages"][at].keys() & KIND_OF_KEY:
        if key not in KEYS_OF_KIND[entry.kind]:
            problems.add(
                (*place, key), f"{key} does not belong to a stage of the kind {entry.kind}; remove it"
            )
    if entry.kind == "ask" and not entry.prompt:
        problems.add(place, f"{entry.name} has no prompt; write one and name it: prompt = 'prompts/NAME.md'")
    if entry.kind == "ask" and entry.output is None:
        problems.add(
            place, f"{entry.name} has no output, the JSON Schema of its answer; write [stages.output]"
        )
    for path, problem in schema_problems(entry.output) if entry.output else ():
        problems.add((*place, "output", *path), f"{'.'.join(('output', *path))} {problem}")
    if foreign := [name for name in entry.tools if agent.tools and name not in agent.tools]:
        problems.add((*place, "tools"), f"{foreign[0]} is not one of the agent's tools; add it there")
    check_references(at, agent, problems)


def _check_inputs(at: int, takes: Sequence[str], names: Sequence[str], problems: DefinitionProblems) -> None:
    for each in takes:
        if (stage := each.split(".")[0]) in names[at:]:
            why = "itself" if stage == names[at] else f"{stage}, which comes after it"
            problems.add(
                ("stages", at, "takes"), f"{names[at]} takes {why}; a stage takes only what is done before"
            )
        elif stage not in (*names[:at], KEPT):
            problems.add(("stages", at, "takes"), unknown_name("stage", names[:at], stage))


def _check_pauses(agent: AgentFile, names: Sequence[str], problems: DefinitionProblems) -> None:
    paused = [pause.after for pause in agent.pauses]
    for at, after in enumerate(paused):
        if after not in names:
            problems.add(("pauses", at, "after"), unknown_name("stage", names, after))
        if paused.index(after) != at:
            problems.add(("pauses", at, "after"), f"there are two pauses after {after}; remove one")


def _check_repairs(agent: AgentFile, names: Sequence[str], problems: DefinitionProblems) -> None:
    for at, unit in enumerate(agent.repairs):
        unknown = [name for name in (unit.first, unit.last) if name not in names]
        for name in unknown:
            problems.add(("repairs", at), unknown_name("stage", names, name))
        if not unknown and names.index(unit.first) > names.index(unit.last):
            problems.add(("repairs", at), f"{unit.first} comes after {unit.last}; swap them")
    repaired = [
        (names.index(unit.first), names.index(unit.last))
        for unit in agent.repairs
        if unit.first in names and unit.last in names
    ]
    for at, entry in enumerate(agent.stages):
        for number, gate in enumerate(entry.gates):
            if gate.get("fails") == "repair" and not any(first <= at <= last for first, last in repaired):
                problems.add(
                    ("stages", at, "gates", number),
                    f"nothing repairs {entry.name}: write [[repairs]] with first and last, or fails = 'end'",
                )


def _check_keeps(agent: AgentFile, names: Sequence[str], problems: DefinitionProblems) -> None:
    for at, keep in enumerate(agent.keeps):
        entry = next((each for each in agent.stages if each.name == keep.stage), None)
        if entry is None:
            problems.add(("keeps", at, "stage"), unknown_name("stage", names, keep.stage))
        elif keep.field not in (known := schema_fields(stage_output_schema(entry))):
            problems.add(("keeps", at, "field"), no_such_field(entry.name, known, keep.field))
        if [each.name for each in agent.keeps].index(keep.name) != at:
            problems.add(("keeps", at, "name"), f"{keep.name} is kept twice; remove one")


def _check_result(agent: AgentFile, names: Sequence[str], problems: DefinitionProblems) -> None:
    stage, field = agent.result.stage or names[-1], agent.result.field
    if stage not in names:
        problems.add(("result", "stage"), unknown_name("stage", names, stage))
        return
    fields = schema_fields(stage_output_schema(agent.stages[names.index(stage)]))
    if agent.result.format == "text" and field not in fields:
        problems.add(("result",), f"text needs a field of {stage}: {', '.join(fields)}")
