"""Whether the outputs that options name are there by then, and are what the step or check needs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from handrail.engine.pipeline.definition import KEPT
from handrail.pipelines.agent_file import AgentFile, StageEntry
from handrail.pipelines.checks import CHECKS
from handrail.pipelines.registered import Referred, Refers, Registered, references
from handrail.pipelines.steps import STEPS
from handrail.pipelines.wording import Named, Problems

Schema = Mapping[str, Any]
TEXT = {"type": "string"}


class Led(NamedTuple):
    """Where a path leads: to what each value there is, or to nothing, and why."""

    schema: Schema
    called: str
    problem: str = ""


def refer(at: int, said: AgentFile, problems: Problems) -> None:
    """Note what is wrong with the outputs that the options of a stage and of its gates name."""
    entry = said.stages[at]
    before = {each.name: output_of(each) for each in said.stages[:at]}
    for path, (option, text, mark) in _referred(entry):
        stage, *names = text.split(".") if mark.elsewhere else (entry.name, *text.split("."))
        outputs = {**before, KEPT: _kept(said)} if mark.elsewhere else {stage: output_of(entry)}
        if stage not in outputs:
            problem = Named("stage before this one called", before).unknown(stage)
        else:
            led = _led(outputs[stage], names, stage)
            problem = led.problem or _unfit(led, mark)
        if problem:
            problems.add(("stages", at, *path, option), problem)


def output_of(entry: StageEntry) -> Schema:
    """The JSON Schema of a stage's output; without fields where they are not known."""
    if entry.kind == "ask":
        return entry.output or {}
    if entry.kind == "work":
        return {"properties": {"answer": TEXT}}
    return {"properties": STEPS[entry.step].gives} if entry.step in STEPS else {}


def fields_of(schema: Schema) -> Schema:
    """What an object of the schema holds."""
    fields = schema.get("properties", {})
    return fields if isinstance(fields, Mapping) else {}


def not_given(called: str, fields: Iterable[str], name: str) -> str:
    """That there is no such field, and which there are."""
    return f"{called} gives {', '.join(fields)}, and no {name}"


def _referred(entry: StageEntry) -> Iterator[tuple[tuple[str, ...], Referred]]:
    """Each reference, and where it stands."""
    written: list[tuple[tuple[str, ...], Registered[Any] | None, Mapping[str, Any]]] = []
    if entry.kind == "code":
        written.append((("options",), STEPS.get(entry.step), entry.options))
    for number, gate in enumerate(entry.gates):
        rest = {key: value for key, value in gate.items() if key not in ("check", "fails")}
        written.append((("gates", str(number)), CHECKS.get(str(gate.get("check"))), rest))
    for path, known, given in written:
        if known and set(given) <= set(known.options.model_fields):
            for each in references(known.options.model_construct(**given)):
                yield path, each._replace(text=str(each.text))


def _kept(said: AgentFile) -> Schema:
    """What earlier runs kept, as the output of a stage."""
    outputs = {each.name: fields_of(output_of(each)) for each in said.stages}
    return {"properties": {keep.name: outputs.get(keep.stage, {}).get(keep.field, {}) for keep in said.keeps}}


def _led(schema: Schema, names: Sequence[str], called: str) -> Led:
    """What a path leads to, lists on the way taken apart."""
    for name in names:
        fields = fields_of(schema)
        if name not in fields:
            known = fields or called == KEPT or "type" in schema
            return Led({}, called, not_given(called, fields or ["nothing"], name) if known else "")
        schema, called = _item(fields[name]), f"{called}.{name}"
    return Led(schema, called)


def _item(schema: Any) -> Schema:
    """Of each value there; of what is no schema, which is told elsewhere, nothing is known."""
    if isinstance(schema, Mapping) and schema.get("type") == "array":
        schema = schema.get("items")
    return schema if isinstance(schema, Mapping) else {}


def _unfit(led: Led, mark: Refers) -> str:
    """Why the step or check can do nothing with it."""
    kind, fields = led.schema.get("type"), fields_of(led.schema)
    texts = {
        name for name, each in fields.items() if isinstance(each, Mapping) and each.get("type") == "string"
    }
    if kind is None or not mark.told or kind in mark.types or (mark.fields and texts.issuperset(mark.fields)):
        return ""
    holds = f" with {', '.join(fields)}" if fields else ""
    return f"{led.called} has to be {mark.told}, and each there is of the type {kind}{holds}"
