"""What the prompt says of intents: which there are, and all about the one that is active.

The same bytes until the file of intents or the session's choice changes; what was done last for the intent is
told with each message instead.
"""

from collections.abc import Sequence

from handrail.protocol.intent import Intent
from handrail.tools.intent_block import intent_block
from handrail.workspace.intents.intent_file import Intents

FIRST = (
    "Every change and command here belongs to an intent: call select_active_intent before the first one, with"
    " the id of the one that the user's request is part of: {ids}."
)
NONE = (
    "Every change and command here belongs to an intent, and there is none to select: only answer, and tell"
    " the user that `handrail intents new` makes one."
)
UNREADABLE = "Nothing can be changed or run here, because the intents cannot be read. {problem}"
LISTED, CHARACTERS = 100, 4_000
"""Of the list of ids."""
NAME = 60
ACTIVE = "The active intent; stay in its scope, or ask for more with request_scope:"
SHORT_LIST = 12


def intent_words(intents: Intents, active: str) -> str:
    """A sentence with the ids, and the block of the active intent."""
    if intents.problem:
        return UNREADABLE.format(problem=intents.problem)
    first = FIRST.format(ids=listed(intents.selectable)) if intents.selectable else NONE
    intent = intents.find(active) if active else None
    return f"{first}\n\n{ACTIVE}\n{intent_block(intent)}" if intent else first


def short_words(intents: Intents, active: str) -> str:
    """The same for a small model."""
    if intents.problem:
        return UNREADABLE.format(problem=intents.problem)
    intent = intents.find(active) if active else None
    if intent:
        rules = "".join(f"\n- {each}" for each in intent.constraints)
        owned = ", ".join(intent.scope)
        return f"You work at the intent {intent.id} ({_name(intent)}), which owns: {owned}.{rules}"
    ids = ", ".join(f"{each.id} ({_name(each)})" for each in intents.selectable[:SHORT_LIST])
    return f"Every change belongs to an intent, which is selected first: {ids}."


def listed(intents: Sequence[Intent]) -> str:
    """The ids with their names as far as there is room, then without, then how many are left out."""
    shown = [f"{each.id} ({_name(each)})" if each.name else each.id for each in intents[:LISTED]]
    if sum(map(len, shown)) > CHARACTERS:
        shown = [each.id for each in intents[:LISTED]]
    while shown and sum(map(len, shown)) > CHARACTERS:
        shown.pop()
    left = len(intents) - len(shown)
    more = f", and {left} more in .orchestration/active_intents.yaml" if left else ""
    return ", ".join(shown) + more


def _name(intent: Intent) -> str:
    name = " ".join(intent.name.split())
    return name if len(name) <= NAME else f"{name[: NAME - 1]}…"
