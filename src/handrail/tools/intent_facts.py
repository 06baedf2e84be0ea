"""What a decision needs to know of the session's intent."""

from typing import NamedTuple

from handrail.policy.facts import IntentFacts
from handrail.workspace.intents.intent_file import FILE, IntentFile

GONE = f"There is no {FILE} any more; `/intent none` goes on without intents."


class ActiveIntent(NamedTuple):
    """The facts, and what the intent owns."""

    facts: IntentFacts | None = None
    """None in a workspace without intents."""
    scope: tuple[str, ...] | None = None
    """None where no intent is active."""


NO_INTENT = ActiveIntent()


def active_intent(file: IntentFile, intent_id: str) -> ActiveIntent:
    """How it stands with the intent that is active in a session; empty: none is."""
    found = file.now()
    if found is None:
        return ActiveIntent(IntentFacts(intent_id, problem=GONE) if intent_id else None)
    if found.problem:
        return ActiveIntent(IntentFacts(intent_id, problem=found.problem))
    intent = found.find(intent_id) if intent_id else None
    return ActiveIntent(
        IntentFacts(
            intent_id,
            known=intent is not None,
            done=intent is not None and intent.done,
            ignored=intent_id in found.ignored,
            ids=tuple(each.id for each in found.selectable),
        ),
        intent.scope if intent else None,
    )
