"""Whether the parts of a definition agree with one another: names, ranges, references."""

from collections.abc import Sequence

from handrail.engine.pipeline.definition import KEPT, Stage
from handrail.pipelines.agent_file import AgentFile, StageEntry
from handrail.pipelines.agent_references import fields_of, not_given, output_of, refer
from handrail.pipelines.schemas import wrong_in
from handrail.pipelines.wording import Location, Named, Problems

KEYS_OF = {
    "ask": ("prompt", "model", "effort", "output", "max_output"),
    "work": ("prompt", "effort"),
    "code": ("step", "options"),
}
"""Keys that a stage of this kind has, besides those of all."""
KINDS = {name: kind for kind, names in KEYS_OF.items() for name in names}


def agree(said: AgentFile, stages: Sequence[Stage], problems: Problems) -> None:
    """Note what does not fit together."""
    names = [entry.name for entry in said.stages]
    for at, entry in enumerate(said.stages):
        _stage(at, entry, said, problems)
        _taken(at, stages[at].takes, names, problems)
    _pauses(said, names, problems)
    _repairs(said, names, problems)
    _keeps(said, names, problems)
    _result(said, names, problems)


def _stage(at: int, entry: StageEntry, said: AgentFile, problems: Problems) -> None:
    place: Location = ("stages", at)
    names = [each.name for each in said.stages]
    if names.index(entry.name) != at:
        problems.add((*place, "name"), f"two stages are called {entry.name}; give one another name")
    if entry.name == KEPT:
        problems.add((*place, "name"), f"{KEPT} is what earlier runs kept; give the stage another name")
    for key in entry.model_fields_set & set(KINDS):
        if key not in KEYS_OF[entry.kind]:
            problems.add(
                (*place, key), f"{key} is nothing for a stage of the kind {entry.kind}; leave it out"
            )
    if entry.kind == "ask" and not entry.prompt:
        problems.add(place, f"{entry.name} has no prompt; write one and name it: prompt = 'prompts/NAME.md'")
    if entry.kind == "ask" and entry.output is None:
        problems.add(
            place, f"{entry.name} has no output, the JSON Schema of its answer; write [stages.output]"
        )
    for path, words in wrong_in(
        entry.output or {"type": "object", "properties": {"any": {"type": "string"}}}
    ):
        problems.add((*place, "output", *path), f"{'.'.join(('output', *path))} {words}")
    refer(at, said, problems)


def _taken(at: int, takes: Sequence[str], names: Sequence[str], problems: Problems) -> None:
    for each in takes:
        if each in names[at:]:
            why = "itself" if each == names[at] else f"{each}, which comes after it"
            problems.add(
                ("stages", at, "takes"), f"{names[at]} takes {why}; a stage takes only what is done before"
            )
        elif each not in (*names[:at], KEPT):
            problems.add(("stages", at, "takes"), Named("stage", names[:at]).unknown(each))


def _pauses(said: AgentFile, names: Sequence[str], problems: Problems) -> None:
    paused = [pause.after for pause in said.pauses]
    for at, after in enumerate(paused):
        if after not in names:
            problems.add(("pauses", at, "after"), Named("stage", names).unknown(after))
        if paused.index(after) != at:
            problems.add(("pauses", at, "after"), f"there are two pauses after {after}; leave one out")


def _repairs(said: AgentFile, names: Sequence[str], problems: Problems) -> None:
    for at, unit in enumerate(said.repairs):
        unknown = [name for name in (unit.first, unit.last) if name not in names]
        for name in unknown:
            problems.add(("repairs", at), Named("stage", names).unknown(name))
        if not unknown and names.index(unit.first) > names.index(unit.last):
            problems.add(("repairs", at), f"{unit.first} comes after {unit.last}; turn them round")
    mended = [
        (names.index(unit.first), names.index(unit.last))
        for unit in said.repairs
        if unit.first in names and unit.last in names
    ]
    for at, entry in enumerate(said.stages):
        for number, gate in enumerate(entry.gates):
            if gate.get("fails") == "repair" and not any(first <= at <= last for first, last in mended):
                problems.add(
                    ("stages", at, "gates", number),
                    f"nothing repairs {entry.name}: write [[repairs]] with first and last, or fails = 'end'",
                )


def _keeps(said: AgentFile, names: Sequence[str], problems: Problems) -> None:
    for at, keep in enumerate(said.keeps):
        entry = next((each for each in said.stages if each.name == keep.stage), None)
        if entry is None:
            problems.add(("keeps", at, "stage"), Named("stage", names).unknown(keep.stage))
        elif keep.field not in (known := fields_of(output_of(entry))):
            problems.add(("keeps", at, "field"), not_given(entry.name, known, keep.field))
        if [each.name for each in said.keeps].index(keep.name) != at:
            problems.add(("keeps", at, "name"), f"{keep.name} is kept twice; leave one out")


def _result(said: AgentFile, names: Sequence[str], problems: Problems) -> None:
    stage, field = said.result.stage or names[-1], said.result.field
    if stage not in names:
        problems.add(("result", "stage"), Named("stage", names).unknown(stage))
        return
    fields = fields_of(output_of(said.stages[names.index(stage)]))
    if said.result.format == "text" and field not in fields:
        problems.add(("result",), f"text needs a field of {stage}: {', '.join(fields)}")
