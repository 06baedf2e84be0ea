"""The rules: each a pure function of the facts, knowing nothing of the others."""

from handrail.policy.decision import ALLOW, Ask, Decision, deny
from handrail.policy.facts import CommandFacts, Facts, kind_of
from handrail.policy.running_files import is_running_file


def command(facts: Facts) -> Decision:
    """Which commands may run unasked, as far as a mode lets any."""
    if facts.command is None:
        return ALLOW
    judged = facts.command.judged
    if judged.denied:
        message = f"`{judged.denied}` is on the list of commands that never run here: find another way."
        return deny(facts.tool, "command_not_allowed", message)
    if facts.network and not judged.network:
        return Ask("the command wants the network")
    if judged.problem:
        return Ask(judged.problem)
    if where := command_place(facts.command):
        return Ask(where)
    if judged.runs_code and not facts.confined:
        return Ask("it runs code of the workspace, and no sandbox confines it (commands.without_sandbox)")
    return ALLOW


def command_place(command: CommandFacts) -> str:
    """Which path of a command is asked about, and why; empty where none is."""
    for place in command.places:
        if not place.inside:
            return f"{place.path} is outside the workspace"
        if place.in_git or place.in_state:
            return f"{place.path} belongs to {'git' if place.in_git else 'Handrail'}"
        if place.secret:
            return f"{place.path} may hold a secret"
    running = next((place.path for place in command.changes if is_running_file(place)), "")
    return f"{running} can make other programs run something" if running else ""


def somebody_there(facts: Facts) -> Decision:
    """A question needs somebody to answer it."""
    if facts.action != "ask" or facts.answerable:
        return ALLOW
    message = "Nobody can be asked in this run: go on with what is known, and say what was assumed."
    return deny(facts.tool, "nobody_to_ask", message)


def only_asked(facts: Facts) -> Decision:
    """A message that only asks changes nothing, whatever the mode."""
    if not facts.reads_only or facts.action not in ("write", "run"):
        return ALLOW
    message = "The user only asked: nothing is written or run for that. Answer, and say what could be done."
    return deny(facts.tool, "mode_forbids", message, facts.path.path if facts.path else "")


def mode(facts: Facts) -> Decision:
    """What the mode leaves to the model."""
    if kind_of(facts) == "safe":
        return ALLOW
    match facts.mode:
        case "explore" | "plan" if facts.command and facts.command.judged.reads_only and not facts.network:
            return ALLOW
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
