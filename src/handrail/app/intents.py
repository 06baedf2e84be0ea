"""Intents of a workspace: the file that `init` writes, templates for new ones, how to end a conflict."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from handrail.changes.trace.logged_changes import AppliedChange, applied_changes
from handrail.engine.admin.workspace_intents import IntentProblems, WorkspaceIntents
from handrail.policy.intent_conflicts import ordering_command
from handrail.workspace.intents_file import IntentList

if TYPE_CHECKING:
    from handrail.app.app import App

__all__ = ["IntentList", "IntentProblems", "WorkspaceIntents", "ordering_command"]

EXAMPLE = """\
# Intents: the pieces of work that changes in this workspace belong to.
# While this file is here, nothing is changed or run without one, and an intent changes only what it owns.
#
#  - id: INT-1
#    name: Totals of the cart are right
#    status: active                 # done: nothing is written for it any more
#    owned_scope:
#      - src/cart/**                # * stays within one name, ** spans folders
#      - tests/test_cart.py
#      - "!src/cart/legacy.py"      # left out, wherever it stands
#    constraints:
#      - Public names stay as they are
#    acceptance_criteria:
#      - pytest tests/test_cart.py passes
#    depends_on: []                 # ids of intents that are to be done before
intents:
"""
TEMPLATES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "bugfix": {
        "constraints": ("The smallest change that fixes it", "Public names and formats stay as they are"),
        "acceptance_criteria": (
            "A test fails without the change and passes with it",
            "All other tests pass as before",
        ),
    },
    "feature": {
        "constraints": ("What exists keeps its behaviour", "No new dependency without asking"),
        "acceptance_criteria": ("Tests show the new behaviour", "The documentation describes it"),
    },
    "refactor": {
        "constraints": ("Behaviour stays the same", "Public signatures stay the same"),
        "acceptance_criteria": ("All tests pass unchanged", "Changes are declared as AST_REFACTOR"),
    },
}


def add_intent(
    book: WorkspaceIntents,
    intent_id: str,
    *,
    template: str | None,
    name: str,
    scope: Sequence[str],
    constraint: Sequence[str],
    criterion: Sequence[str],
    depends_on: Sequence[str],
) -> None:
    """Add an active intent that starts with what the template has; keys without a value are left out."""
    start = TEMPLATES[template] if template else {"constraints": (), "acceptance_criteria": ()}
    values: dict[str, str | Sequence[str]] = {
        "name": name,
        "status": "active",
        "owned_scope": scope,
        "constraints": (*start["constraints"], *constraint),
        "acceptance_criteria": (*start["acceptance_criteria"], *criterion),
        "depends_on": depends_on,
    }
    book.new(intent_id, {key: value for key, value in values.items() if value or key == "owned_scope"})


def intent_changes(app: "App", intent_id: str) -> list[AppliedChange]:
    """The change sets of all sessions that were made for an intent, oldest first."""
    return [each for each in applied_changes(app.log) if each.change.intent_id == intent_id]
