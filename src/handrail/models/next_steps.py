"""What a user could say next, as a model proposes it: nothing is said for them that they have not seen."""

import re

from handrail.protocol.structured import CONTINUE, NextStep, StructuredAnswer

MOST, LONGEST = 7, 300
"""Steps of an answer, and characters of what one of them would say."""


def with_sayable_steps(answer: StructuredAnswer) -> StructuredAnswer:
    """The answer with the steps that can be shown in full, each a line."""
    steps = (NextStep(label=_line(step.label), input=_line(step.input)) for step in answer.next_steps)
    sayable = [step for step in steps if step.label and 0 < len(step.input) <= LONGEST]
    return answer.model_copy(update={"next_steps": tuple(sayable[:MOST])})


def shown(step: NextStep) -> str:
    """A step with all that it would say, in markdown that hides nothing: a label can promise anything."""
    if step.input in (CONTINUE, step.label):
        return step.label
    longest = max((len(run) for run in re.findall("`+", step.input)), default=0)
    fence = "`" * (longest + 1)
    inner = f" {step.input} " if longest else step.input
    return f"{step.label}: {fence}{inner}{fence}"


def _line(text: str) -> str:
    return " ".join(text.split())
