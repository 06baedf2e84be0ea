"""From what rules and a model said about a message to where it goes: pure, in this order.

a selection that answers a clarify      -> tasks, the filter seeded from it
rules that are sure                     -> as they say
no answer of the model, or unreadable   -> tasks for task requests, chat otherwise; no gate is asked
clarify                                 -> clarify
confidence below `clarify_below`        -> clarify
a question that names nothing           -> chat, however sure the model is
up to `act_above`, naming nothing       -> chat
else                                    -> as decided
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from handrail.engine.routing.rules import Sign
from handrail.protocol.routing import Option, RouterDecision, Where

SURE = 1.0
ASK_BACK = "Do you want an answer, or something done?"
WAYS = (
    Option(id="chat", title="an answer; nothing is changed"),
    Option(id="agent", title="do it in the files"),
)
TITLES = {option.id: option for option in WAYS}
OURS: Mapping[str, Any] = {"question": ASK_BACK, "options": WAYS}


class Thresholds(NamedTuple):
    clarify_below: float = 0.45
    act_above: float = 0.70


def by_selection(where: Where) -> RouterDecision:
    """The user picked what they meant."""
    return RouterDecision(decision="tasks", confidence=SURE, where=where)


def by_rules(sign: Sign) -> RouterDecision | None:
    """What the words alone decide; None where they are not sure."""
    if not sign.sure:
        return None
    decisions = {"greet": "chat", "ask": "chat", "work": "agent", "tasks": "tasks"}
    return RouterDecision.model_validate({"decision": decisions[sign.wish], "confidence": SURE})


def without_answer(sign: Sign) -> RouterDecision:
    """What holds where the model's decision did not come or cannot be read."""
    return RouterDecision(decision="tasks" if sign.wish == "tasks" else "chat", confidence=0.0)


def gated(said: RouterDecision, *, question: bool, thresholds: Thresholds) -> RouterDecision:
    """The model's decision as far as its confidence carries; `question`: the message is put as one."""
    if said.decision == "clarify" or said.confidence < thresholds.clarify_below:
        return _clarify(said)
    if said.strong or said.decision == "chat":
        return said
    if question or said.confidence <= thresholds.act_above:
        return said.model_copy(update={"decision": "chat"})
    return said


def _clarify(said: RouterDecision) -> RouterDecision:
    """The question of the model, or ours; an option that is a way is called what the way does."""
    options = tuple(TITLES.get(option.id, option) for option in said.options)
    asked: Mapping[str, Any] = {"options": options} if said.question else OURS
    return said.model_copy(update={"decision": "clarify", **asked})
