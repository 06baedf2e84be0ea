"""What intents ask of a call: that there is one, that it counts, and that the call stays in its scope."""

from collections.abc import Iterator

from handrail.policy.decision import ALLOW, Decision, deny
from handrail.policy.facts import Facts, IntentFacts, PathFacts, kind_of
from handrail.policy.scope import in_scope

NAMED = 12
PROPOSAL = "proposal"
"""The tool by which a person hands in changes, who is told what a person can do."""
INSIDE = "\ue000"
"""A name that no pattern has by itself: what covers it covers whatever there is."""


def intent(facts: Facts) -> Decision:
    """In a workspace with intents, what writes, runs or sends needs an active one that is not done."""
    found = facts.intent
    if found is None or kind_of(facts) == "safe":
        return ALLOW
    if found.problem:
        message = (
            f"Nothing is written or run while the intents cannot be read. {found.problem} Tell the user."
        )
        return deny(facts.tool, "intents_unreadable", message)
    if not found.id:
        way = f"{_select(facts)} {_choices(found)}"
        return deny(facts.tool, "missing_intent_id", f"Here every change belongs to an intent. {way}")
    if not found.known:
        message = f"There is no intent {found.id} any more. {_select(facts)} {_choices(found)}"
        return deny(facts.tool, "unknown_intent", message)
    if found.done:
        message = f"{found.id} is done. Select another, or ask the user to open it again. {_choices(found)}"
        return deny(facts.tool, "intent_done", message)
    return ALLOW


def ignored(facts: Facts) -> Decision:
    """Nothing is done for an intent that `.intentignore` names."""
    found = facts.intent
    if found is None or not found.ignored or kind_of(facts) == "safe":
        return ALLOW
    message = f"{found.id} is in .intentignore: nothing is done for it. Select another, or ask the user."
    return deny(facts.tool, "intent_ignored", message)


def scope(facts: Facts) -> Decision:
    """What an intent owns: its scope can only narrow what the rest of the rules allow."""
    if facts.scope is None:
        return ALLOW
    for path, inside in _written(facts):
        if not _owned(path, facts.scope, inside=inside):
            name = facts.intent.id if facts.intent and facts.intent.id else "the active intent"
            shown = ", ".join(facts.scope[:NAMED]) + ", and more" * (len(facts.scope) > NAMED)
            message = (
                f"{path.path} is not in the scope of {name}, which owns: {shown or 'nothing'}."
                f" {_more_scope(facts, name)}"
            )
            return deny(facts.tool, "scope_violation", message, path.path)
    return ALLOW


def _written(facts: Facts) -> Iterator[tuple[PathFacts, bool]]:
    """What the call is known to write, and whether folders count for what may be in them."""
    if facts.action == "write" and facts.path:
        yield facts.path, False
    if facts.action == "run" and facts.command:
        yield from ((path, True) for path in (*facts.command.changes, *facts.command.writes))


def _owned(path: PathFacts, owned: tuple[str, ...], *, inside: bool) -> bool:
    if not path.inside:
        return not inside  # of a tool that writes files, the paths decide; a command has no business there
    if in_scope(path.path, owned):
        return True
    if not inside or not in_scope(f"{path.path}/{INSIDE}", owned):
        return False
    from handrail.policy.overlap import overlap

    left_out = [pattern for pattern in owned if pattern.strip().startswith("!")]
    return not any(overlap([pattern.strip()[1:]], [f"{path.path}/**"]) for pattern in left_out)


def _more_scope(facts: Facts, name: str) -> str:
    if facts.tool == PROPOSAL:
        return f"`handrail intents edit {name} --add-scope PATTERN` lets it own more."
    return "Stay inside of it, or ask the user for more with request_scope."


def _select(facts: Facts) -> str:
    if facts.tool == PROPOSAL:
        return "Name it with --intent."
    return "Call select_active_intent first."


def _choices(found: IntentFacts) -> str:
    if not found.ids:
        return "There is none to select: ask the user to make one (`handrail intents new`)."
    more = f" and {len(found.ids) - NAMED} more" if len(found.ids) > NAMED else ""
    return f"There are: {', '.join(found.ids[:NAMED])}{more}."
