"""The stage `ask`: one question to a model, with its own prompt and an answer by its schema."""

import json
from collections.abc import Sequence

from handrail.context.token_budget import input_share, output_tokens
from handrail.engine.context import StageResult, TurnContext
from handrail.engine.pipeline import Outputs, Stage
from handrail.engine.requests.model_requests import ModelChain, ask_model
from handrail.engine.run_record import sampling_temperature, stage_input
from handrail.engine.turn_end import Ending
from handrail.models.model import AssistantTurn, Message, Model, Request, UserTurn
from handrail.models.reading.json_reader import parse_answer
from handrail.protocol.errors import BudgetReached, GiveUp, ModelProblem
from handrail.sessions.run_state import RunState
from handrail.tools.tool import head_and_tail

TRIES = 2
FORM = "Answer with one JSON object and nothing else. Its JSON Schema:\n{schema}"
UNREAD = "[Handrail: your answer cannot be used: {problems}. Answer again, with the JSON object alone.]"


async def run(context: TurnContext, stage: Stage, state: RunState, outputs: Outputs) -> StageResult:
    """The model's answer by the schema, or the default of the stage."""
    if reached := context.limit_reached:
        return StageResult(Ending("budget", reached))
    chain = context.fast if stage.role == "fast" else context.main
    role = outputs.get(stage.sampled_by, {}).get("role") or stage.role
    if role == "audit" and (auditor := await context.pool.configured_audit()):
        chain = chain._replace(models=[auditor, *chain.models], effort=None)
    if stage.model:
        chain = chain._replace(models=[await context.pool.named(stage.model)], effort=None)
    chain = chain._replace(effort=stage.effort or chain.effort)
    try:
        return await _ask(context, chain, stage, state, outputs)
    except BudgetReached:
        raise
    except ModelProblem:
        if stage.otherwise is None:
            raise
        return StageResult(Ending("answered"), dict(stage.otherwise))  # each failed request is in the log


async def _ask(
    context: TurnContext, chain: ModelChain, stage: Stage, state: RunState, outputs: Outputs
) -> StageResult:
    """Raises GiveUp where no answer can be read."""
    schema = dict(stage.schema or {"type": "object"})
    system = f"{stage.prompt}\n\n{FORM.format(schema=json.dumps(schema))}".strip()
    retries: list[Message] = []
    problems: Sequence[str] = ()

    def request_for(model: Model) -> Request:
        window = model.capabilities.context_window
        share = input_share(window, len(stage.takes))
        question = f"Question:\n{head_and_tail(state.question, share)}"
        text = "\n\n".join([question, *stage_input(stage, state, outputs, share)])
        return Request(
            system=context.secrets.hide(system),
            messages=(UserTurn(context.secrets.hide(text)), *retries),
            output_schema=schema if model.capabilities.schema_output else None,
            max_output_tokens=output_tokens(window, stage.max_output),
            temperature=sampling_temperature(stage, outputs),
            deadlines=context.deadlines,
        )

    for _ in range(TRIES):
        answered = await ask_model(chain, context.turn.turn_id, request_for)
        value, problems, read = parse_answer(answered.text, schema)
        if value is not None:
            return StageResult(Ending("answered"), value, read)
        retries += [AssistantTurn(answered.text), UserTurn(UNREAD.format(problems="; ".join(problems)))]
    raise GiveUp(f"The answer of the stage {stage.name} cannot be used: {'; '.join(problems)}. Ask again.")
