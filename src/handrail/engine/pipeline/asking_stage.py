"""A stage that asks a model: its own question, its own context, an answer of its schema."""

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from handrail.context.budget import output_tokens, shown_characters
from handrail.engine.asking import Asking, ask
from handrail.engine.pipeline.definition import Output, Outputs, Stage
from handrail.engine.pipeline.telling import told
from handrail.models.base import AssistantTurn, Deadlines, Message, Model, Request, UserTurn
from handrail.models.reading import shaped
from handrail.protocol.errors import GiveUp
from handrail.protocol.values import ReadAs
from handrail.sessions.run_state import RunState
from handrail.tools.clip import head_and_tail
from handrail.tools.secrets import Secrets

TRIES = 2
"""How often an answer may be asked for that can be read."""
MOST_SHOWN = 60_000
FORM = "Answer with one JSON object and nothing else. Its JSON Schema:\n{schema}"
UNREAD = "[Handrail: this is not what was asked for: {problems}. Answer again, with the JSON object alone.]"


class Understood(NamedTuple):
    """What an answer means, and how it was read."""

    output: Output
    read: tuple[ReadAs, ...]


async def ask_stage(
    stage: Stage,
    run: RunState,
    outputs: Outputs,
    *,
    asking: Asking,
    turn_id: str,
    deadlines: Deadlines,
    secrets: Secrets,
) -> Understood:
    """What the model answered, as the schema says; raises GiveUp where it cannot be read."""
    schema = stage.schema or {"type": "object"}
    said: list[Message] = []
    problems: Sequence[str] = ()
    for _ in range(TRIES):
        request_for = _request_for(stage, run, outputs, said, deadlines=deadlines, secrets=secrets)
        answered = await ask(asking, turn_id, request_for)
        value, problems, read = shaped(answered.text, schema)
        if value is not None:
            return Understood(value, read)
        said += [AssistantTurn(answered.text), UserTurn(UNREAD.format(problems="; ".join(problems)))]
    raise GiveUp(f"The answer of the stage {stage.name} cannot be used: {'; '.join(problems)}. Ask again.")


def _request_for(
    stage: Stage,
    run: RunState,
    outputs: Outputs,
    said: Sequence[Message],
    *,
    deadlines: Deadlines,
    secrets: Secrets,
) -> Callable[[Model], Request]:
    schema = dict(stage.schema or {"type": "object"})
    system = f"{stage.prompt}\n\n{FORM.format(schema=json.dumps(schema))}".strip()

    def request_for(model: Model) -> Request:
        window = model.capabilities.context_window
        room = shown_characters(window, most=MOST_SHOWN, share=2)
        return Request(
            system=secrets.hide(system),
            messages=(UserTurn(secrets.hide(shaped_input(stage, run, outputs, room))), *said),
            output_schema=schema if model.capabilities.schema_output else None,
            max_output_tokens=output_tokens(window, stage.max_output),
            deadlines=deadlines,
        )

    return request_for


def shaped_input(stage: Stage, run: RunState, outputs: Outputs, room: int) -> str:
    """What the stage is told: the question, outputs of others, what is to be mended, the user's word."""
    share = room // (len(stage.takes) + 2)
    question = f"Question:\n{head_and_tail(run.question, share)}"
    return "\n\n".join([question, *told(stage, run, outputs, share)])
