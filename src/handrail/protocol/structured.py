"""The structured answer: what a model says in parts that code can use."""

from typing import Any

from handrail.protocol.values import Value

CONTINUE = "Continue with the next open todos."
"""The input of the next step that goes on with a request of several steps."""


class Section(Value):
    title: str = ""
    text: str


class AnswerTodo(Value):
    """A step of the request."""

    text: str
    done: bool = False
    """The changes of this answer do it."""


class NextStep(Value):
    """What the user could say next."""

    label: str
    input: str
    """The message that it would be."""


class StructuredAnswer(Value):
    """An answer that was read as a whole."""

    summary: str
    sections: tuple[Section, ...] = ()
    todos: tuple[AnswerTodo, ...] = ()
    changes: tuple[dict[str, Any], ...] = ()
    """As docs/proposals.md says; whether they are applied is said elsewhere."""
    commands: tuple[str, ...] = ()
    """For the user to run; none is run by itself."""
    next_steps: tuple[NextStep, ...] = ()
