"""Requests for a structured answer in the conversation."""

import json
from functools import partial
from typing import Any

from msgspec.structs import replace

from handrail.engine.context import StageResult, TurnContext
from handrail.engine.pipeline import Outputs, Stage
from handrail.engine.requests.resume_answer import accepted_parts
from handrail.engine.stages import work
from handrail.engine.stages.work import CUT_OFF, ask_conversation, conversation_request
from handrail.engine.turn_end import Ending, cut_short, end_by_hooks, recovered_note
from handrail.engine.user_input import turn_message
from handrail.models.model import Model, Request
from handrail.models.reading.structured_answer import StructuredModel, answer_schema
from handrail.protocol.errors import BudgetReached, ModelProblem
from handrail.protocol.events import Answered, Nudged, RequestFailed
from handrail.protocol.values import to_dict
from handrail.sessions.run_state import RunState
from handrail.sessions.transcript import AssistantEntry

TRIES = 2
UNREAD = "[Handrail: your answer cannot be read: {problems}. Give it again, as the JSON object alone.]"
WORDS_ALONE = "The answer does not have the requested form; only its text is used."
ANSWER_FORM = """\
Answer this message at once: you have no tools for it, and what could be found for it is in the \
conversation. Say so if something is missing; never guess the content of a file. Answer with one JSON \
object of the schema below, and nothing else: first `summary`, the answer itself in a few sentences of \
markdown, then `sections` with what takes more room, `commands` that the user may want to run, one shell \
line each, and `next_steps`: up to three things that the user could say next, a short label with the whole \
message."""
WITHOUT_CHANGES = """\
Nothing is changed for this message. If you notice a change worth making, the last next step asks for it."""
WITH_CHANGES = """\
`changes` are made to the files, all or none: `create` and `rewrite` with `text`, `replace` with `edits`, \
each `search` standing once in the file unless `replace_all` is true, `delete`; all but `create` with the \
`base_hash` that the file was shown with. `todos` are all steps of the request. The change that completes a \
step names it in `todo`, by its text or id; nothing else completes one, except that a step for which a \
command has to succeed has it as `command`. If the request takes three or more steps or files, do only the \
next one or two of them in this answer, and leave the others for the next."""


async def run(context: TurnContext, stage: Stage, state: RunState, outputs: Outputs) -> StageResult:
    """The model's answer, once the user's hooks accept it."""
    result = StageResult(Ending("answered"))
    while True:
        if reached := context.limit_reached:
            return StageResult(Ending("budget", reached), result.output)
        if context.turn.output_schema is not None:
            from handrail.engine.output_schema import fit_answer

            result = StageResult(await fit_answer(context, context.main))
        elif context.strategy.answers_directly:  # in the tool loop, where it can read files if it has to
            return await work.run(context, stage, state, outputs)
        else:
            result = await _until_readable(context, reads_only=state.reads_only)
        if ending := await end_by_hooks(context.hooks, context.session, result.ending):
            return StageResult(ending, result.output)


async def _until_readable(context: TurnContext, *, reads_only: bool) -> StageResult:
    """The first readable answer, or the last try; an answer in the log counts."""
    session, schema = context.session, answer_schema(changing=not reads_only)
    kept = accepted_parts(session, turn_message(session))
    models = [StructuredModel(model, schema, kept, session.state.todos) for model in context.main.models]
    chain = context.main._replace(models=models)
    while True:
        seq = session.stage.answer
        last = session.read_after(seq - 1, 1)[0].event if seq else None
        answered = last if isinstance(last, Answered) else None
        if answered and (result := _result(answered, session.stage.unread)):
            return result
        if session.transcript and isinstance(session.transcript[-1], AssistantEntry):
            text = UNREAD.format(problems="; ".join(answered.unread)) if answered else CUT_OFF
            session.append(Nudged(turn_id=context.turn.turn_id, text=text))
        try:
            await ask_conversation(context, chain, partial(_request, context, schema))
        except BudgetReached:
            raise
        except ModelProblem as problem:
            failed = session.read_after(session.seq - 1, 1)[0].event
            if not isinstance(failed, RequestFailed) or failed.recovered is None:
                raise
            return StageResult(Ending("failed", f"{problem} {recovered_note(failed.recovered)}"))


def _result(answered: Answered, unread: int) -> StageResult | None:
    """The result of the stage; None where the answer is asked for again."""
    if answered.structured:
        output = to_dict(answered.structured)
        return StageResult(Ending("answered"), output, answered.read)
    if answered.end == "stop" and unread < TRIES:
        return None
    words = "" if answered.recovered else WORDS_ALONE
    detail = " ".join(filter(None, (words, cut_short(answered))))
    output = {"summary": answered.text, "unread": list(answered.unread)}
    return StageResult(Ending("answered", detail), output)


def _request(context: TurnContext, schema: dict[str, Any], model: Model) -> Request:
    """The conversation without tools, with the form of the answer."""
    request = conversation_request(context, model)
    more = WITH_CHANGES if "changes" in schema["properties"] else WITHOUT_CHANGES
    return replace(
        request,
        system=f"{request.system}\n\n{ANSWER_FORM}\n{more}\n{json.dumps(schema)}",
        tools=(),
        output_schema=schema if model.capabilities.schema_output else None,
    )
