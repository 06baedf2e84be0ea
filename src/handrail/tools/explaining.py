"""What would be said to a call, without making it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from handrail.policy.explaining import Explained, explain
from handrail.policy.facts import Facts
from handrail.policy.paths import LOOKING
from handrail.protocol.errors import PathProblem
from handrail.protocol.values import Mode
from handrail.tools.path_facts import path_facts
from handrail.workspace.files import Workspace


class Explainer:
    """Explains cases in one folder and mode."""

    def __init__(self, workspace: Path, state_folders: Sequence[Path], mode: Mode) -> None:
        self._workspace = Workspace(workspace, tuple(state_folders))
        self._mode: Mode = mode

    def explain(self, case: dict[str, Any]) -> Explained:
        """The verdict about what a case names: a `path` and an `op`, and the `owned_scope` where there is one."""
        return self._path(str(case["path"]), str(case.get("op", "write")), case.get("owned_scope"))

    def _path(self, given: str, op: str, scope: Sequence[str] | None) -> Explained:
        looks = op in LOOKING
        try:
            place = self._workspace.resolve(given)
        except PathProblem as problem:
            reason = f"{problem.reason}: {problem}"
            return Explained(verdict="deny", rule="paths: no path", reason=reason, way="another path")
        facts = Facts(
            tool=op,
            action="look" if looks else "write",
            mode=self._mode,
            path=path_facts(self._workspace.root, place, to_change=not looks),
            scope=None if scope is None else tuple(scope),
        )
        return explain(facts)
