"""What a stage is told besides the question: outputs of others, what is to be mended, the user's word."""

import json
from collections.abc import Sequence

from handrail.engine.pipeline.definition import Outputs, Stage, Words
from handrail.sessions.run_state import RunState
from handrail.tools.clip import head_and_tail

SHARE = 8_000
"""Characters of each output that the conversation is told."""


def told(stage: Stage, run: RunState, outputs: Outputs, share: int) -> list[str]:
    """Parts of at most so many characters."""
    parts = [
        f"Output of {name}:\n{head_and_tail(json.dumps(outputs[name], ensure_ascii=False), share)}"
        for name in stage.takes
        if name in outputs
    ]
    if run.issues:
        if before := outputs.get(stage.name):
            parts.append(f"Your last answer:\n{head_and_tail(json.dumps(before, ensure_ascii=False), share)}")
        parts.append("What was found wanting, and has to be mended:\n" + _listed(run.issues))
    if run.chosen:
        parts.append(f"The user was asked how to go on, and chose: {run.chosen}")
    if run.feedback:
        parts.append("The user says:\n" + _listed(run.feedback))
    return parts


def told_to_conversation(stage: Stage, run: RunState, outputs: Outputs, says: Words | None = None) -> str:
    """The same for a stage that works in the conversation, with its prompt; empty where there is nothing.

    `says` words the outputs of a stage that has a function for that.
    """
    if says:
        return says(outputs)
    return "\n\n".join(filter(None, [stage.prompt, *told(stage, run, outputs, SHARE)]))


def _listed(items: Sequence[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
