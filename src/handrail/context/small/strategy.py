"""The strategy for small models: one action at a time, short prompts, and few calls."""

import time
from collections.abc import Collection, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from handrail.context.message_context import status_block
from handrail.context.prompt import Prompt
from handrail.context.small.one_action_model import OneActionModel, as_whole_file
from handrail.context.small.prompt import (
    answer_refusal,
    file_list,
    files_to_show,
    only_reading,
    short_intent_prompt,
    small_prompt,
)
from handrail.context.strategy import PromptFacts, Strategy
from handrail.models.batch_decision import DECISION_SCHEMA
from handrail.models.model import Model, Request, UserTurn
from handrail.protocol.values import FileSeen
from handrail.sessions.session import Session
from handrail.sessions.session_state import SessionState
from handrail.sessions.transcript import AssistantEntry
from handrail.sessions.turn_state import TurnState
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import IntentList

ROUTE_SCHEMA = {
    "type": "object",
    "properties": {
        "decision": {"type": "string", "enum": ["chat", "agent", "tasks", "clarify"]},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    },
    "required": ["decision", "confidence"],
    "additionalProperties": False,
}
SHORT_QUESTIONS: dict[str, dict[str, Any]] = {
    "route": {
        "system": "Say where the user's message to a coding assistant goes. chat: it wants an answer, and"
        " nothing changed; agent: it wants something done to the files of a project; tasks: it is about the"
        " user's own list of things to do; clarify: it could be several of these. Answer in JSON.",
        "output_schema": ROUTE_SCHEMA,
        "max_output_tokens": 40,
    },
    "batch": {
        "system": "A command failed. Answer in JSON. decision is continue (it does not matter), stop, or"
        " replace (with the corrected command).",
        "output_schema": DECISION_SCHEMA,
        "max_output_tokens": 160,
    },
}


class OneAction(Strategy):
    """Small models choose badly and answer slowly, so code decides as much as it can for them."""

    answers_directly = True
    side_work = False
    shows_map = False
    reads_stored_answers = False  # some answers take two exchanges, and the second was not sent
    searches = True
    warms_up = True

    def adapt(self, model: Model) -> Model:
        return OneActionModel(model)

    def build_prompt(self, facts: PromptFacts) -> Prompt:
        latest = list(facts.seen.items())[-60:]
        prompt = small_prompt(
            facts.workspace,
            facts.tools,
            facts.message,
            [path for path, seen in latest if facts.workspace.sha256(path) == seen.sha256],
            checked=facts.checked,
            intents=facts.intents,
            active=facts.active,
        )
        if facts.greets and not facts.checked and prompt.choices:
            # A greeting needs nothing looked up, and the model would do so all the same.
            return prompt._replace(choices=prompt.choices._replace(actions=()))
        return prompt

    def intents_prompt(self, intents: IntentList | None, active: str) -> str:
        return short_intent_prompt(intents, active) if intents else ""

    def prompt_for_request(self, prompt: Prompt, session: Session) -> Prompt:
        """One thing at a time: the way out of a refusal, or a file to read."""
        turn, run = session.turn, session.state.run
        prompt = answer_refusal(prompt, turn.refusal)
        if not run or not run.reads_only:
            return prompt
        answers = [each for each in session.transcript if isinstance(each, AssistantEntry)]
        calls = [call for each in answers if each.seq > turn.message_seq for call in each.calls]
        return only_reading(prompt, [str(call.arguments.get("path")) for call in calls])

    def turn_is_done(self, turn: TurnState) -> bool:
        """The check, or the change itself, says more than another answer would."""
        return bool(turn.calls) and bool(turn.check or turn.made)

    def side_request(self, kind: Literal["route", "batch"], full: Request, short: str) -> Request:
        alone = replace(full, messages=(UserTurn(short),), tools=(), choices=None, temperature=0.0)
        return replace(alone, **SHORT_QUESTIONS[kind])

    def whole_file_request(self, request: Request, path: str) -> Request:
        return as_whole_file(request, path)

    def files_to_attach(self, message: str, seen: Collection[str], workspace: Workspace) -> Sequence[str]:
        return files_to_show(message, seen, workspace)

    def known_files(
        self, _state: SessionState, _shown: Sequence[FileSeen], _gone: Sequence[str], _stale: Collection[str]
    ) -> str:
        return ""

    def status(self, state: SessionState, workspace: Workspace) -> str:
        """The files there are, since it cannot list them; it has no use for the date."""
        now = status_block(state, time.time(), dated=False)
        return "\n".join(part for part in (file_list(workspace), now) if part)


SMALL = OneAction()
