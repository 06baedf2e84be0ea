"""Decide a call: every rule in one fixed order, deny over ask over allow; explain the decision."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from handrail.policy import intent_rules, paths
from handrail.policy.call_facts import ALLOW, Allow, Ask, CommandFacts, Decision, Deny, Facts, deny, tool_kind
from handrail.policy.sandbox_mode import check_in_sandbox, sandbox_needs
from handrail.protocol.values import Value

ACTION_NOUNS = {
    "write": "edit",
    "run": "command",
    "fetch": "address you did not write",
    "call": "call of a source's tool",
}


def check_command(facts: Facts) -> Decision:
    """Ask about commands that are not known to be harmless; deny those on the user's deny list."""
    if facts.command is None:
        return ALLOW
    judged = facts.command.judged
    if judged.denied:
        message = f"`{judged.denied}` is on the list of denied commands (commands.deny). Find another way."
        return deny(facts.tool, "command_not_allowed", message)
    if facts.mode == "sandbox":
        return check_in_sandbox(facts)
    if facts.network and not judged.network:
        return Ask("the command needs the network")
    if judged.problem:
        return Ask(judged.problem)
    if reason := command_place(facts.command):
        return Ask(reason)
    if judged.runs_code and not facts.confined:
        return Ask("it runs code of the workspace without a full sandbox (see commands.without_sandbox)")
    return ALLOW


def check_secrets(facts: Facts) -> Decision:
    """Ask about a command that gets credentials, whatever the mode: it can do anything with them."""
    if not facts.secrets:
        return ALLOW
    return Ask(f"the command gets what you stored as {', '.join(facts.secrets)}")


def command_place(command: CommandFacts) -> str:
    """Which path of a command is asked about, and why; empty if none is."""
    for place in command.places:
        if not place.inside:
            return f"{place.path} is outside the workspace"
        if place.in_git or place.in_state:
            return f"{place.path} belongs to {'git' if place.in_git else 'Handrail'}"
        if place.secret:
            return f"{place.path} may hold a secret"
    if ours := next((place.path for place in command.changes if place.in_program), ""):
        return f"{ours} is part of the Handrail that is running"
    autorun = next((place.path for place in command.changes if paths.is_autorun_file(place)), "")
    return f"{autorun} can make other programs run something" if autorun else ""


def check_answerable(facts: Facts) -> Decision:
    """Deny a question when nobody can answer it."""
    if facts.action != "ask" or facts.answerable:
        return ALLOW
    message = "Nobody can be asked in this run. Go on with what you know, and say what you assumed."
    return deny(facts.tool, "nobody_to_ask", message)


def check_reads_only(facts: Facts) -> Decision:
    """Deny changes and commands for a message that only asks, whatever the mode."""
    if not facts.reads_only or facts.action not in ("write", "run", "call") or tool_kind(facts) == "safe":
        return ALLOW
    message = "The user only asked, so nothing is written or run. Answer, and say what could be done."
    return deny(facts.tool, "mode_forbids", message, facts.path.path if facts.path else "")


def check_mode(facts: Facts) -> Decision:
    if tool_kind(facts) == "safe":
        return ALLOW
    noun = ACTION_NOUNS.get(facts.action, "call")
    match facts.mode:
        case "explore" | "plan" if facts.command and facts.command.judged.reads_only and not facts.network:
            return ALLOW
        case "explore" | "plan":
            message = f"Mode {facts.mode} is read-only. Say what you would do; the user can switch the mode."
            return deny(facts.tool, "mode_forbids", message, facts.path.path if facts.path else "")
        case "ask":
            return Ask(f"mode ask: every {noun} needs approval")
        case "edit":
            return ALLOW if facts.action == "write" else Ask(f"mode edit: every {noun} needs approval")
        case "auto" | "sandbox" if facts.action == "call":
            unasked = bool(facts.source and facts.source.unasked)
            return (
                ALLOW
                if unasked
                else Ask("the tool is not among those that run without asking (tools.unasked)")
            )
        case "auto" | "sandbox":
            return Ask("you did not write this address") if facts.action == "fetch" else ALLOW


class Rule(NamedTuple):
    name: str
    """As `policy explain` shows it."""
    check: Callable[[Facts], Decision]
    way: str


USER_APPROVAL = "the user's approval"
COMMAND_RULE = Rule("commands", check_command, USER_APPROVAL)
DENIED_PATHS = Rule("paths", paths.check_denied, "nothing: no mode and no approval allows it")
ASKED_PATHS = Rule("paths", paths.check_asked, f"{USER_APPROVAL}, once or always for this file")

RULE_ORDER = (
    Rule("intent", intent_rules.check_active_intent, "an active intent that is not done, in a readable file"),
    Rule("intentignore", intent_rules.check_ignored, "removing the intent from .intentignore"),
    Rule("scope", intent_rules.check_scope, "an intent whose owned_scope covers it"),
    DENIED_PATHS,
    COMMAND_RULE,
    Rule("credentials", check_secrets, USER_APPROVAL),
    Rule("nobody to ask", check_answerable, "a conversation, where somebody can be asked"),
    Rule("question", check_reads_only, "a message that asks for a change"),
    Rule("mode", check_mode, f"another mode (--mode), or {USER_APPROVAL}"),
    ASKED_PATHS,
    Rule(
        "confirmation",
        lambda facts: Ask(facts.confirm) if facts.confirm else ALLOW,
        f"{USER_APPROVAL}, each time",
    ),
)


def decide(facts: Facts) -> Decision:
    """Allow, ask, or deny. If nobody can be asked, what would be asked is denied."""
    _, decision = _deciding_rule(facts)
    if not isinstance(decision, Ask):
        return decision
    if facts.always and not facts.confirm:
        return ALLOW
    return decision if facts.answerable else deny_unanswerable(facts, decision)


def _deciding_rule(facts: Facts) -> tuple[Rule | None, Decision]:
    decisions = [(rule, rule.check(facts)) for rule in RULE_ORDER]
    for rule, decision in decisions:
        if isinstance(decision, Deny):
            return rule, decision
    # The last rule that asks gives the reason: while the mode asks anyway, earlier reasons do not matter.
    for rule, decision in reversed(decisions):
        if isinstance(decision, Ask):
            return rule, decision
    return None, ALLOW


def deny_unanswerable(facts: Facts, asked: Ask) -> Deny:
    """The refusal when nobody can be asked; it says what would have been allowed without asking."""
    message = f"This needs {USER_APPROVAL} ({asked.reason}), and nobody can be asked. {_advice(facts)}"
    return deny(facts.tool, "nobody_to_ask", message, facts.path.path if facts.path else "")


def _advice(facts: Facts) -> str:
    match facts.action:
        case "write" if facts.confirm:
            return "Make a smaller change, or leave it to the user."
        case "write" if facts.mode in ("edit", "auto", "sandbox"):
            return "Leave it to the user, and say what to change."
        case "write":
            return "Mode edit or auto (--mode edit) would allow it."
        case "run" if facts.mode == "sandbox" and (needs := sandbox_needs(facts)):
            return " ".join(dict.fromkeys(need.advice for need in needs))
        case "run" if facts.network:
            return "A command that needs no network may be allowed."
        case "run" if facts.mode != "auto":
            return (
                "Mode auto (--mode auto) runs the commands on the list of allowed commands, mode sandbox all"
                " that a full sandbox confines."
            )
        case "run" if facts.command and facts.command.judged.way:
            return facts.command.judged.way
        case "run":
            return "A command on files of the workspace, in a sandbox, may be allowed."
        case "call":
            return "A tool in the source's `tools.unasked` runs without asking in mode auto."
        case "fetch":
            return "An address from the user's own message needs no approval."
        case _:
            return "It can be allowed only in a conversation, where the user is asked."


class Explanation(Value):
    verdict: Literal["allow", "ask", "deny"]
    rule: str
    """The rule that decided, with the row of its table where it has one."""
    reason: str
    way: str
    """What would change it."""


def explain(facts: Facts) -> Explanation:
    """What the rules decide about the call, and why; like `decide` with somebody to ask."""
    rule, decision = _deciding_rule(facts)
    if rule is None or isinstance(decision, Allow):
        way = "a narrower mode" if facts.action in ("write", "run", "fetch") else "nothing"
        return Explanation("allow", "none", "no rule objects", way)
    verdict: Literal["ask", "deny"] = "deny"
    if isinstance(decision, Ask):
        verdict, reason = "ask", decision.reason
    else:
        reason = f"{decision.error.reason}: {decision.error.message}"
    name, way = rule.name, rule.way
    if rule is COMMAND_RULE and facts.command:
        judged = facts.command.judged
        name, way = f"{name}: {judged.decided}".rstrip(": "), judged.way or way
    elif rule in (DENIED_PATHS, ASKED_PATHS) and (row := paths.first_row(facts, verdict)):
        name = f"{name}: {row.name}"
    return Explanation(verdict, name, reason, way)
