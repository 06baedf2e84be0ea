"""The rules: each a pure function of the facts, knowing nothing of the others."""

from handrail.policy.commands import is_allowed
from handrail.policy.decision import ALLOW, Ask, Decision, deny
from handrail.policy.facts import Facts, kind_of


def paths(facts: Facts) -> Decision:
    """Where a call may read and write."""
    path = facts.path
    if path is None:
        return ALLOW
    if facts.action != "write":
        if path.secret:
            return Ask(f"{path.path} may hold a secret, which the model would be shown")
        return ALLOW if path.inside else Ask(f"{path.path} is outside the workspace")
    if not path.inside:
        message = f"{path.path} is outside the workspace. Only files of the workspace can be written."
        return deny(facts.tool, "outside_workspace", message, path.path)
    if path.in_git:
        message = f"{path.path} belongs to git, and is changed by git commands only."
        return deny(facts.tool, "protected_path", message, path.path)
    if path.in_state:
        message = f"{path.path} belongs to Handrail, and is changed by the user only."
        return deny(facts.tool, "protected_path", message, path.path)
    if path.secret:
        message = f"{path.path} may hold a secret, and is written by the user only: say what to put there."
        return deny(facts.tool, "protected_path", message, path.path)
    return ALLOW


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


def hard_links(facts: Facts) -> Decision:
    """A file with several names loses what its other names share with it."""
    path = facts.path
    if facts.action != "write" or path is None or path.links < 2:
        return ALLOW
    return Ask(f"{path.path} has {path.links} names (hard links), and only this one would be changed")


def confirmation(facts: Facts) -> Decision:
    """What only the user can say yes to, each time."""
    return Ask(facts.confirm) if facts.confirm else ALLOW


def _noun(facts: Facts) -> str:
    nouns = {"write": "edit", "run": "command", "fetch": "address you did not write"}
    return nouns.get(facts.action, "call")
