"""Next steps: what would be said is shown, all of it."""

import pytest

from handrail.models.next_steps import LONGEST, MOST, shown, with_sayable_steps
from handrail.protocol.structured import CONTINUE, NextStep, StructuredAnswer


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
        (step("Continue", CONTINUE), "Continue"),
    ],
)
def test_a_step_is_shown_with_all_that_it_would_say(offered: NextStep, words: str) -> None:
    assert shown(offered) == words


@pytest.mark.promise("CHAT-7")
def test_what_cannot_be_shown_in_full_is_not_offered() -> None:
    steps = (step("a", "x" * (LONGEST + 1)), step("", "y"), step("b", " \n"), step("two\nlines", "z\n\nz"))
    answer = StructuredAnswer(summary="Yes.", next_steps=(*steps, *[step("c", "d")] * 20))

    found = with_sayable_steps(answer).next_steps
    assert found[0] == step("two lines", "z z")
    assert len(found) == MOST
