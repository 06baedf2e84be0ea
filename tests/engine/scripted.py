"""A pipeline for tests: plan, pause, gather into files, draft with a gate and a repair, write the report."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from handrail.engine.limits import NO_BUDGET, Budget
from handrail.engine.pipeline import (
    Catalogue,
    Failed,
    Gate,
    Output,
    Outputs,
    Passed,
    Pause,
    Pipeline,
    Repair,
    Stage,
    StepContext,
    Verdict,
)
from handrail.pipelines.load import AGENT

PLAN = {"type": "object", "properties": {"topics": {"type": "array", "items": {"type": "string"}}}}
DRAFT = {
    "type": "object",
    "properties": {"findings": {"type": "array", "items": {"type": "string"}}, "score": {"type": "number"}},
    "required": ["findings", "score"],
}
QUESTION = "What do the notes say about costs?"


async def gather(work: StepContext) -> Output:
    """Two files for each round."""
    rounds = 1 + bool(work.issues)
    written = []
    for name in ("first", "second"):
        path = f"{name}-{rounds}.txt"
        end = await work.call("write", {"path": path, "text": f"{work.outputs['plan']['topics']}\n"})
        written.append(f"{path}: {'ok' if end.ok else end.content}")
    return {"files": written}


async def publish(work: StepContext) -> Output:
    text = "\n".join(work.outputs["draft"]["findings"])
    end = await work.call("write", {"path": "report.md", "text": f"{text}\n"})
    return {"conclusions": "The report is written." if end.ok else end.content}


def well_scored(output: Output, outputs: Outputs) -> Verdict:
    return Passed() if output["score"] >= 0.5 else Failed((f"A score of {output['score']} is too low.",))


def report(run: Budget = NO_BUDGET, draft: Budget = NO_BUDGET, times: int = 1) -> Pipeline:
    return Pipeline(
        "report",
        stages=(
            Stage("plan", "ask", prompt="Name the topics.", schema=PLAN),
            Stage("gather", "code", step="gather", takes=("plan",)),
            Stage(
                "draft",
                "ask",
                prompt="Write the findings.",
                schema=DRAFT,
                takes=("plan", "gather"),
                gates=(Gate("well_scored", "repair"),),
                budget=draft,
                max_output=1_000,
            ),
            Stage("publish", "code", step="publish", takes=("draft",)),
        ),
        pauses=(Pause("plan"),),
        repairs=(Repair("gather", "draft", times),),
        budget=run,
    )


def catalogue(*pipelines: Pipeline) -> Catalogue:
    known = {each.name: each for each in (AGENT, *(pipelines or (report(),)))}
    return Catalogue(known, checks={"well_scored": well_scored}, steps={"gather": gather, "publish": publish})


def as_json(when: str, value: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"when": when, "text": json.dumps(value), **more}


def answers(*others: Mapping[str, Any], means: str = "pipeline_response", sure: float = 0.9) -> Sequence[Any]:
    """What the model says to each stage: the first draft is too bad, the second good enough."""
    return [
        as_json("The user's message:", {"means": means, "confidence": sure}),
        as_json("have to be corrected", {"findings": ["Costs rose by 3 %."], "score": 0.9}),
        as_json("Output of gather", {"findings": ["Costs rose."], "score": 0.2}),
        as_json(f"Question:\n{QUESTION}", {"topics": ["costs"]}),
        *others,
    ]
