"""What the user is shown at a pause: made by code from the stage's output, with numbered choices."""

import json

from handrail.engine.pipeline.definition import Catalogue, Output, Outputs, Pause
from handrail.protocol.events import RunPaused
from handrail.protocol.events.runs import Choice
from handrail.sessions.run_state import RunState
from handrail.tools.clip import head

SHOWN = 4_000
EXIT = "Leave this run, and do something else"
ASKED = "Choose a number, or say what should be different:"


def paused(pause: Pause, run: RunState, outputs: Outputs, catalogue: Catalogue) -> RunPaused:
    """The event that stops the run; leaving it is always the last choice."""
    choices = [Choice(text=option.text, then=option.then) for option in pause.options]
    choices.append(Choice(text=EXIT, then="leave"))
    menu = "\n".join(f"{number}. {choice.text}" for number, choice in enumerate(choices, 1))
    found = catalogue.words[pause.says](outputs) if pause.says else listed(outputs[run.last])
    shown = head(found, SHOWN, "The log has it all.")
    return RunPaused(
        run_id=run.run_id,
        stage=run.last,
        text=f"{shown}\n\n{ASKED}\n{menu}".strip(),
        choices=tuple(choices),
        exit=len(choices),
    )


def listed(output: Output) -> str:
    """An output as a person can read it."""
    lines = []
    for name, value in output.items():
        if isinstance(value, list):
            lines += [f"{name}:", *(f"- {_plain(each)}" for each in value)]
        else:
            lines.append(f"{name}: {_plain(value)}")
    return "\n".join(lines)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
