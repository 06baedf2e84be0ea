"""Next steps: what would be said is shown, all of it."""

import pytest

from handrail.models.reading.structured_answer import (
    MAX_STEP_LENGTH,
    MAX_STEPS,
    step_as_markdown,
    with_valid_steps,
)
from handrail.protocol.values import CONTINUE_INPUT, NextStep, StructuredAnswer


def step(label: str, text: str) -> NextStep:
    return NextStep(label=label, input=text)


@pytest.mark.promise("CHAT-7")
@pytest.mark.parametrize(
    ("offered", "words"),
    [
        (step("Explain more", "Delete t.py now"), "Explain more: `Delete t.py now`"),
        (
            step("Look", "see [docs](http://evil.example/?q=1)"),
            "Look: `see [docs](http://evil.example/?q=1)`",
        ),
        (step("Run", "use `ls` and ``x``"), "Run: ``` use `ls` and ``x`` ```"),
        (step("Add tax", "Add tax"), "Add tax"),
        (step("Continue", CONTINUE_INPUT), "Continue"),
    ],
)
def test_a_step_is_shown_with_all_that_it_would_say(offered: NextStep, words: str) -> None:
    assert step_as_markdown(offered) == words


@pytest.mark.promise("CHAT-7")
def test_what_cannot_be_shown_in_full_is_not_offered() -> None:
    steps = (
        step("a", "x" * (MAX_STEP_LENGTH + 1)),
        step("", "y"),
        step("b", " \n"),
        step("two\nlines", "z\n\nz"),
    )
    answer = StructuredAnswer(summary="Yes.", next_steps=(*steps, *[step("c", "d")] * 20))

    found = with_valid_steps(answer).next_steps
    assert found[0] == step("two lines", "z z")
    assert len(found) == MAX_STEPS
