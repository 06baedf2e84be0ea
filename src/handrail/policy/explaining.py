"""Why a call would be allowed, asked about or denied: the rule that decides, and what would change it."""

from typing import Literal

from handrail.policy import intents, paths, rules
from handrail.policy.decide import ORDER, Rule
from handrail.policy.decision import Allow, Ask, Decision, Deny
from handrail.policy.facts import Facts
from handrail.protocol.record import Record

NOTHING = "nothing: no mode and no approval allows it"
WAYS: dict[Rule, str] = {
    intents.intent: "an active intent that is not done, in a file of intents that can be read",
    intents.ignored: "taking the intent out of .intentignore",
    intents.scope: "an intent whose owned_scope covers it",
    paths.denied: NOTHING,
    paths.asked: "the user's word, once or always for this file",
    rules.somebody_there: "a conversation, where somebody can be asked",
    rules.mode: "another mode (--mode), or the user's word",
    rules.confirmation: "the user's word, each time",
}


class ExplainedPath(Record):
    """A verdict, for people and programs."""

    verdict: Literal["allow", "ask", "deny"]
    rule: str
    """The rule that decided, with the row of its table where it has one."""
    reason: str
    way: str
    """What would change it."""


def explain(facts: Facts) -> ExplainedPath:
    """What `decide` says to it, and why."""
    said = [(rule, rule(facts)) for rule in ORDER]
    denied = next((each for each in said if isinstance(each[1], Deny)), None)
    asked = next((each for each in reversed(said) if isinstance(each[1], Ask)), None)
    rule, decision = denied or asked or (None, Allow())
    if rule is None:
        return ExplainedPath(verdict="allow", rule="none", reason="no rule minds it", way=_narrower(facts))
    return ExplainedPath(
        verdict="deny" if isinstance(decision, Deny) else "ask",
        rule=_name(rule, facts),
        reason=_reason(decision),
        way=_way(rule, facts),
    )


def _reason(decision: Decision) -> str:
    match decision:
        case Deny(error):
            return f"{error.reason}: {error.message}"
        case Ask(reason):
            return reason
        case _:
            return ""


def _name(rule: Rule, facts: Facts) -> str:
    if rule is rules.command and facts.command:
        return f"commands: {facts.command.judged.decided}".rstrip(": ")
    if rule in (paths.denied, paths.asked):
        row = paths.first_row(facts, "deny" if rule is paths.denied else "ask")
        return f"paths: {row.name}" if row else "paths"
    return rule.__name__


def _way(rule: Rule, facts: Facts) -> str:
    if rule is rules.command and facts.command:
        return facts.command.judged.way or "the user's word"
    return WAYS[rule]


def _narrower(facts: Facts) -> str:
    return "a narrower mode" if facts.action in ("write", "run", "fetch") else "nothing"
