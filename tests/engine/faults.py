"""What could be wrong with a pipeline that is written in code; agents are checked when they are read."""

from handrail.engine.pipeline import KEPT, Catalogue, Pipeline


def faults(pipeline: Pipeline, catalogue: Catalogue) -> list[str]:
    """What is wrong with a definition, in words for whoever wrote it; nothing when it can be walked."""
    names = [stage.name for stage in pipeline.stages]
    found = [] if names else ["it has no stage"]
    found += [f"two stages are called {name}" for name in dict.fromkeys(names) if names.count(name) > 1]
    for at, stage in enumerate(pipeline.stages):
        found += [
            f"{stage.name} takes {each}, which is no stage before it"
            for each in stage.takes
            if each not in (*names[:at], KEPT)
        ]
        if stage.kind == "ask" and stage.schema is None:
            found.append(f"{stage.name} has no schema for the answer")
        if stage.kind == "code" and stage.step not in catalogue.steps:
            found.append(f"{stage.name} names the step {stage.step!r}, which there is not")
        for gate in stage.gates:
            if gate.check not in catalogue.checks:
                found.append(f"{stage.name} names the check {gate.check!r}, which there is not")
    for unit in pipeline.repairs:
        if not {unit.first, unit.last} <= set(names) or names.index(unit.first) > names.index(unit.last):
            found.append(f"{unit.first} to {unit.last} is no range of stages")
    found += [
        f"it pauses after {pause.after}, which is no stage"
        for pause in pipeline.pauses
        if pause.after not in names
    ]
    words = {pipeline.ends, pipeline.tells, *(stage.says for stage in pipeline.stages)}
    words |= {pause.says for pause in pipeline.pauses}
    words -= {"", *catalogue.words}
    return found + [f"there are no words called {name}" for name in sorted(words)]
