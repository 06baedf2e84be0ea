"""The decision about a call: every rule is heard, in this order; deny wins over ask, ask over allow."""

from collections.abc import Callable

from handrail.policy import intents, paths, rules
from handrail.policy.decision import ALLOW, Ask, Decision, Deny, deny
from handrail.policy.facts import Facts

Rule = Callable[[Facts], Decision]

ORDER: tuple[Rule, ...] = (
    intents.intent,
    intents.ignored,
    intents.scope,
    paths.denied,
    rules.command,
    rules.somebody_there,
    rules.only_asked,
    rules.mode,
    paths.asked,
    rules.confirmation,
)


def decide(facts: Facts) -> Decision:
    """Allow, ask, or deny. With nobody to ask, what would be asked is denied."""
    said = [rule(facts) for rule in ORDER]
    for decision in said:
        if isinstance(decision, Deny):
            return decision
    # The last to ask gives the reason: what an earlier rule minds is moot while the mode asks anyway.
    asked = next((decision for decision in reversed(said) if isinstance(decision, Ask)), None)
    if asked is None or (facts.always and not facts.confirm):
        return ALLOW
    return asked if facts.answerable else nobody_to_ask(facts, asked)


def nobody_to_ask(facts: Facts, asked: Ask) -> Deny:
    """The refusal where a user would have been asked, with what would have made asking unnecessary."""
    message = f"This needs the user's word ({asked.reason}), and nobody can be asked. {_way(facts)}"
    return deny(facts.tool, "nobody_to_ask", message, facts.path.path if facts.path else "")


def _way(facts: Facts) -> str:
    match facts.action:
        case "write" if facts.confirm:
            return "Change less at once, or leave it to the user."
        case "write" if facts.mode in ("edit", "auto"):
            return "Leave it to the user, and say what to change."
        case "write":
            return "Mode edit or auto (--mode edit) would allow it."
        case "run" if facts.network:
            return "A command without network may be allowed."
        case "run" if facts.mode != "auto":
            return "Mode auto (--mode auto) runs commands that are on the list of allowed ones."
        case "run" if facts.command and facts.command.judged.way:
            return facts.command.judged.way
        case "run":
            return "A command about files of the workspace, in a sandbox, may be allowed."
        case "fetch":
            return "An address that stands in the user's own message needs no asking."
        case _:
            return "It can be allowed only in the conversation, where the user is asked."
