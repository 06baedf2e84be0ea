"""What later turns are told of a run: made by code from the typed outputs, never more than a paragraph."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from handrail.engine.pipeline.definition import Outputs
from handrail.sessions.run_state import RunState

MOST, HOW, QUESTION, USER = 1_500, 300, 300, 200
"""Characters: of all, of how it ended, of the question, of the user's words."""
FIELDS = (1_200, 800, 500)
"""Characters of one field: as many as there is room for."""
ABOUT = {
    "Findings": re.compile(r"finding|fact|evidence|answer|result|quote", re.IGNORECASE),
    "Conclusions": re.compile(r"conclu|summar|recommend|verdict|decision", re.IGNORECASE),
    "Scores": re.compile(r"score|confidence|rating|coverage|grade", re.IGNORECASE),
}


def summary(run: RunState, outputs: Outputs, how: str) -> str:
    """The run in a few lines; `how` says how it ended. What does not fit is left out from the end."""
    fields = list(_fields(outputs))
    told = ["\n".join(_lines(run, fields, how, most)) for most in FIELDS]
    whole = next((text for text in told if len(text) <= MOST), told[-1])
    return whole if len(whole) <= MOST else f"{whole[: MOST - 1].rstrip()}…"


def _lines(run: RunState, fields: Sequence[tuple[str, str]], how: str, most: int) -> Iterator[str]:
    said = _short(how, HOW)
    yield f"Run of {run.pipeline}: {said}{'' if said.endswith(('?', '!', '…')) else '.'}"
    yield f"Question: {_short(run.question, QUESTION)}"
    yield f"Stages done: {', '.join(run.stages) or 'none'}."
    for title, names in ABOUT.items():
        if found := [value for name, value in fields if names.search(name)]:
            yield f"{title}: {_short('; '.join(found), most)}"
    yield from (f"The user said: {_short(said, USER)}" for said in run.feedback)
    for name, value in fields:
        if not any(names.search(name) for names in ABOUT.values()):
            yield _short(f"{name}: {value}", most)


def _fields(outputs: Outputs) -> Iterator[tuple[str, str]]:
    """The last stages first: what they found counts most."""
    for stage, output in reversed(list(outputs.items())):
        for name, value in output.items():
            yield f"{stage}.{name}", _words(value)


def _words(value: Any) -> str:
    match value:
        case str():
            return value
        case bool() | int() | float() | None:
            return json.dumps(value)
        case list():
            return "; ".join(map(_words, value))
        case Mapping():
            return ", ".join(f"{name}: {_words(each)}" for name, each in value.items())
        case _:
            return str(value)


def _short(text: str, most: int) -> str:
    """On one line, so that nothing in it can look like a line of Handrail's own."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
