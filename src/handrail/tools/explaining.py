"""What would become of a command, without running it."""

from typing import Literal

from handrail.policy.commands.judge import Lists
from handrail.policy.decide import decide
from handrail.policy.decision import Allow, Ask, Deny
from handrail.policy.facts import Facts
from handrail.protocol.record import Record
from handrail.protocol.values import Mode
from handrail.tools.command_facts import command_facts
from handrail.tools.intent_facts import NO_INTENT, ActiveIntent
from handrail.tools.unasked import unasked
from handrail.workspace.files import Workspace

OTHER_INTENT = "Another intent, or this one as the user changes it."
INTENT_WAYS = {
    "scope_violation": "An intent whose owned_scope covers it.",
    "missing_intent_id": OTHER_INTENT,
    "unknown_intent": OTHER_INTENT,
    "intent_done": OTHER_INTENT,
    "intent_ignored": OTHER_INTENT,
    "intents_unreadable": "A file of intents that can be read.",
}


class Explained(Record):
    """A verdict with what decided it."""

    verdict: Literal["auto", "ask", "deny"]
    rule: str
    reason: str = ""
    way: str = ""
    """What would change the verdict."""
    runs: str = ""
    """The text that would run, where that is not the command as it was given."""


def explain_command(
    text: str,
    lists: Lists,
    workspace: Workspace,
    mode: Mode,
    *,
    confined: bool,
    intent: ActiveIntent = NO_INTENT,
) -> Explained:
    """What the gate would say to the command in a mode, with an intent active or none."""
    known = command_facts(text, lists, workspace)
    facts = Facts(
        "run", "run", mode, command=known, confined=confined, intent=intent.facts, scope=intent.scope
    )
    judged = known.judged
    match decide(facts):
        case Allow():
            runs = unasked(facts)
            shown = runs.text if runs and runs.text != text else ""
            return Explained(
                "auto", judged.decided, way="An entry of commands.deny would forbid it.", runs=shown
            )
        case Ask(reason):
            return Explained("ask", judged.decided or "shell grammar", reason, _way(facts))
        case Deny(error) if error.reason == "mode_forbids":
            return Explained(
                "deny", f"mode {mode}", error.message, "Another mode; `explore` and `plan` only read."
            )
        case Deny(error) if error.reason in INTENT_WAYS:
            return Explained("deny", error.reason, error.message, INTENT_WAYS[error.reason])
        case Deny(error):
            return Explained("deny", judged.decided, error.message, "An entry of commands.deny forbids it.")


def _way(facts: Facts) -> str:
    """What would let the command run without asking."""
    if facts.mode in ("ask", "edit"):
        return f"Mode {facts.mode} asks about every command; mode auto runs those that are allowed."
    if facts.command and facts.command.judged.way:
        return facts.command.judged.way
    if facts.command and facts.command.judged.runs_code and not facts.confined:
        return "A sandbox (`handrail doctor`), or commands.without_sandbox = true."
    return "Paths of the workspace that are neither git's, Handrail's nor secret need no asking."
