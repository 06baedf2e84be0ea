"""Rules for intents: one must be active, must not be ignored, and must own what the call writes."""

from collections.abc import Iterable, Iterator

from handrail.policy.call_facts import ALLOW, Decision, Facts, IntentFacts, PathFacts, deny, tool_kind
from handrail.protocol.globs import covers, parse_pattern

MAX_NAMED = 12
PROPOSAL = "proposal"
"""The tool with which a person submits changes: its refusals say what a person can do."""
ANY_NAME = "\ue000"
"""A name that no pattern spells out: a pattern that covers it covers every name."""


def in_scope(path: str, scope: Iterable[str]) -> bool:
    """Whether a path is owned: a pattern covers it, and no pattern with `!` does, whatever their order."""
    patterns = [pattern.strip() for pattern in scope]
    denied = [pattern[1:].lstrip() for pattern in patterns if pattern.startswith("!")]
    owned = [pattern for pattern in patterns if not pattern.startswith("!")]
    if any(parse_pattern(each) is None for each in denied):
        return False
    return any(covers(each, path) for each in owned) and not any(covers(each, path) for each in denied)


def check_active_intent(facts: Facts) -> Decision:
    """In a workspace with intents, what writes, runs or sends needs an active one that is not done."""
    found = facts.intent
    if found is None or tool_kind(facts) == "safe":
        return ALLOW
    by_person = facts.tool == PROPOSAL
    select = "Name it with --intent." if by_person else "Call select_active_intent first."
    if found.problem:
        message = f"The intents cannot be read, so nothing is written or run. {found.problem} Tell the user."
        return deny(facts.tool, "intents_unreadable", message)
    if not found.id:
        message = f"Every change here belongs to an intent. {select} {_choices(found)}"
        return deny(facts.tool, "missing_intent_id", message)
    if not found.known:
        message = f"Intent {found.id} no longer exists. {select} {_choices(found)}"
        return deny(facts.tool, "unknown_intent", message)
    if found.done:
        message = f"{found.id} is done. Select another, or ask the user to open it again. {_choices(found)}"
        return deny(facts.tool, "intent_done", message)
    return ALLOW


def check_ignored(facts: Facts) -> Decision:
    found = facts.intent
    if found is None or not found.ignored or tool_kind(facts) == "safe":
        return ALLOW
    message = f"{found.id} is in .intentignore, so nothing is done for it. Select another, or ask the user."
    return deny(facts.tool, "intent_ignored", message)


def check_scope(facts: Facts) -> Decision:
    """Deny writes outside the intent's scope; a scope never allows what another rule denies."""
    if facts.scope is None:
        return ALLOW
    for path, is_folder in _written_paths(facts):
        if not _is_owned(path, facts.scope, is_folder=is_folder):
            name = facts.intent.id if facts.intent and facts.intent.id else "the active intent"
            shown = ", ".join(facts.scope[:MAX_NAMED]) + ", and more" * (len(facts.scope) > MAX_NAMED)
            way = "Stay inside it, or ask the user for more with request_scope."
            if facts.tool == PROPOSAL:
                way = f"`handrail intents edit {name} --add-scope PATTERN` lets it own more."
            message = f"{path.path} is not in the scope of {name}, which owns: {shown or 'nothing'}. {way}"
            return deny(facts.tool, "scope_violation", message, path.path)
    return ALLOW


def _written_paths(facts: Facts) -> Iterator[tuple[PathFacts, bool]]:
    """What the call is known to write, and whether it may be a folder that stands for its files."""
    if facts.action == "write" and facts.path:
        yield facts.path, False
    if facts.action == "run" and facts.command:
        yield from ((path, True) for path in (*facts.command.changes, *facts.command.writes))


def _is_owned(path: PathFacts, scope: tuple[str, ...], *, is_folder: bool) -> bool:
    if not path.inside:
        # The rules for paths decide about a tool that writes files; a command must not write there at all.
        return not is_folder
    if in_scope(path.path, scope):
        return True
    if not is_folder or not in_scope(f"{path.path}/{ANY_NAME}", scope):
        return False
    from handrail.policy.intent_conflicts import overlap

    excluded = [pattern.strip()[1:] for pattern in scope if pattern.strip().startswith("!")]
    return not any(overlap([pattern], [f"{path.path}/**"]) for pattern in excluded)


def _choices(found: IntentFacts) -> str:
    if not found.ids:
        return "There is none to select: ask the user to create one (`handrail intents new`)."
    more = f" and {len(found.ids) - MAX_NAMED} more" if len(found.ids) > MAX_NAMED else ""
    return f"There are: {', '.join(found.ids[:MAX_NAMED])}{more}."
