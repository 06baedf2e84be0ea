"""What later turns are told of a run: made by code from the typed outputs, never more than a paragraph."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from handrail.engine.pipeline.definition import Outputs
from handrail.sessions.run_state import RunState

MOST, QUESTION, FIELD, USER = 1_500, 300, 500, 200
"""Characters: of all, of the question, of one field, of the user's words."""
ABOUT = {
    "Findings": re.compile(r"finding|fact|evidence|answer|result|quote", re.IGNORECASE),
    "Conclusions": re.compile(r"conclu|summar|recommend|verdict|decision", re.IGNORECASE),
    "Scores": re.compile(r"score|confidence|rating|coverage|grade", re.IGNORECASE),
}


def summary(run: RunState, outputs: Outputs, how: str) -> str:
    """The run in a few lines; `how` says how it ended. What does not fit is left out from the end."""
    fields = list(_fields(outputs))
    lines = [f"Run of {run.pipeline}: {how}.", f"Question: {_short(run.question, QUESTION)}"]
    lines.append(f"Stages done: {', '.join(run.stages) or 'none'}.")
    for title, names in ABOUT.items():
        if found := [(name, value) for name, value in fields if names.search(name)]:
            told = "; ".join(_short(value, FIELD) for _, value in found)
            lines.append(f"{title}: {_short(told, FIELD)}")
    lines += [f"The user said: {_short(said, USER)}" for said in run.feedback]
    lines += [
        f"{name}: {_short(value, FIELD)}"
        for name, value in fields
        if not any(names.search(name) for names in ABOUT.values())
    ]
    return _short("\n".join(lines), MOST, one_line=False)


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


def _short(text: str, most: int, *, one_line: bool = True) -> str:
    text = " ".join(text.split()) if one_line else text
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
