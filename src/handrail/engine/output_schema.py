"""The last answer of a turn as JSON by a schema of the user's: checked, and asked for once more."""

import json
from functools import partial
from typing import Any

from msgspec.structs import replace

from handrail.engine.context import TurnContext
from handrail.engine.requests.model_requests import ModelChain
from handrail.engine.stages.work import ask_conversation, conversation_request
from handrail.engine.turn_end import Ending
from handrail.models.model import Model, Request
from handrail.models.reading.output_schema import read_output
from handrail.protocol.events import Nudged, OutputAccepted
from handrail.sessions.session import Session
from handrail.sessions.transcript import AssistantEntry, UserEntry

FORM = """\
[A program reads your last answer to this message: one JSON value by this JSON Schema, and nothing else.
{schema}]"""
REFUSED = "[Handrail: your answer does not fit the JSON Schema of this message: "
ASK_AGAIN = REFUSED + "{problems}. Give all of it again, as the JSON value alone:\n{schema}]"
DOES_NOT_FIT = "The answer does not fit the schema, after it was asked for again: {problems}."


def schema_text(schema: dict[str, Any]) -> str:
    """What the model is told with the message."""
    return FORM.format(schema=json.dumps(schema))


async def fit_answer(context: TurnContext, chain: ModelChain) -> Ending:
    """The ending with the last answer; where it does not fit, it is asked for once more, without tools."""
    session, schema = context.session, context.turn.output_schema or {}
    while True:
        last = _last_entry(session, context.turn.message_seq)
        answer = last.text if isinstance(last, AssistantEntry) else ""
        output, problems = read_output(answer, schema)
        if output:
            session.append(OutputAccepted(turn_id=context.turn.turn_id, output=output))
            return Ending("answered")
        if isinstance(last, AssistantEntry):
            if _asked_again(session, context.turn.message_seq):
                return Ending("failed", DOES_NOT_FIT.format(problems="; ".join(problems)))
            text = ASK_AGAIN.format(problems="; ".join(problems), schema=json.dumps(schema))
            session.append(Nudged(turn_id=context.turn.turn_id, text=text))
        if reached := context.limit_reached:
            return Ending("budget", reached)
        await ask_conversation(context, chain, partial(_request, context, schema))


def _last_entry(session: Session, after: int) -> AssistantEntry | UserEntry | None:
    """The answer, unless the model was told something since; a result of a tool is no answer either."""
    last = session.transcript[-1] if session.transcript else None
    return last if isinstance(last, AssistantEntry | UserEntry) and last.seq > after else None


def _asked_again(session: Session, after: int) -> bool:
    told = [each for each in session.transcript if isinstance(each, UserEntry) and each.by == "handrail"]
    return any(each.seq > after and each.text.startswith(REFUSED) for each in told)


def _request(context: TurnContext, schema: dict[str, Any], model: Model) -> Request:
    constrained = model.capabilities.schema_output and schema.get("type") == "object"
    request = replace(conversation_request(context, model), tools=(), choices=None)
    return replace(request, output_schema=schema if constrained else None)
