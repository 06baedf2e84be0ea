"""What would be said to reading or changing a path, without doing it."""

from collections.abc import Sequence

from handrail.policy.explaining import ExplainedPath, explain
from handrail.policy.facts import Facts
from handrail.policy.paths import LOOKING
from handrail.protocol.errors import PathProblem
from handrail.protocol.values import Mode
from handrail.tools.intent_facts import NO_INTENT, ActiveIntent
from handrail.tools.path_facts import path_facts
from handrail.workspace.files import Workspace


def explain_path(
    given: str,
    op: str,
    workspace: Workspace,
    mode: Mode,
    scope: Sequence[str] | None = None,
    *,
    intent: ActiveIntent = NO_INTENT,
) -> ExplainedPath:
    """What the gate would say in a mode; `scope` is what an active intent owns, or all about it is given."""
    looks = op in LOOKING
    try:
        place = workspace.resolve(given)
    except PathProblem as problem:
        reason = f"{problem.reason}: {problem}"
        return ExplainedPath("deny", "paths: no path", reason, "another path")
    return explain(
        Facts(
            tool=op,
            action="look" if looks else "write",
            mode=mode,
            path=path_facts(workspace.root, place, to_change=not looks),
            scope=intent.scope if scope is None else tuple(scope),
            intent=intent.facts,
        )
    )
