"""The rules: each a pure function of the facts, knowing nothing of the others."""

from handrail.policy.commands import is_allowed
from handrail.policy.decision import ALLOW, Ask, Decision, deny
from handrail.policy.facts import Facts, kind_of


def command(facts: Facts) -> Decision:
    """Which commands may run unasked, as far as a mode lets any."""
    if facts.network:
        return Ask("the command wants the network")
    if facts.command is None or is_allowed(facts.command, facts.allowed):
        return ALLOW
    if not facts.command.plain:
        return Ask("the command has parts that a shell interprets")
    return Ask(f"`{facts.command.words[0]}` is not on the list of allowed commands")


def somebody_there(facts: Facts) -> Decision:
    """A question needs somebody to answer it."""
    if facts.action != "ask" or facts.answerable:
        return ALLOW
    message = "Nobody can be asked in this run: go on with what is known, and say what was assumed."
    return deny(facts.tool, "nobody_to_ask", message)


def mode(facts: Facts) -> Decision:
    """What the mode leaves to the model."""
    if kind_of(facts) == "safe":
        return ALLOW
    match facts.mode:
        case "explore" | "plan":
            message = f"Mode {facts.mode} only reads: say what would be done; the user can switch the mode."
            return deny(facts.tool, "mode_forbids", message, facts.path.path if facts.path else "")
        case "ask":
            return Ask(f"mode ask: every {_noun(facts)} is asked")
        case "edit":
            return ALLOW if facts.action == "write" else Ask(f"mode edit: every {_noun(facts)} is asked")
        case "auto":
            return Ask("the address is not one you wrote") if facts.action == "fetch" else ALLOW


def confirmation(facts: Facts) -> Decision:
    """What only the user can say yes to, each time."""
    return Ask(facts.confirm) if facts.confirm else ALLOW


def _noun(facts: Facts) -> str:
    nouns = {"write": "edit", "run": "command", "fetch": "address you did not write"}
    return nouns.get(facts.action, "call")
