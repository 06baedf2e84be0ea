"""Questions that a line answers: the terminal's own, and those of the model."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from handrail.protocol.events import QuestionAsked

ANSWERS = ("files", "conversation", "both", "yes", "no", "diffs")
"""What may be typed in full instead of its first letter."""


def key_of(text: str, keys: str) -> str:
    """The key that was typed, or whose word was; `n` for nothing at all, empty for anything else."""
    word = text.strip().lower()
    if not word:
        return "n"
    return word[0] if word[0] in keys and word in (word[0], *ANSWERS) else ""


def meaning(keys: str) -> str:
    """What each key stands for, for whoever has typed something else."""
    return ", ".join(f"{key} {next(word for word in ANSWERS if word[0] == key)}" for key in keys)


class Choice(NamedTuple):
    """A question of the terminal's own, answered by a letter and Enter."""

    label: str
    keys: str
    answered: Callable[[str], Awaitable[None]]


def chosen_option(question: QuestionAsked, text: str) -> str | None:
    """The option whose number was typed, else the text; None for the number of no option."""
    number = text.strip()
    if not question.options or not number.isdecimal():
        return text
    return question.options[int(number) - 1] if 0 < int(number) <= len(question.options) else None
