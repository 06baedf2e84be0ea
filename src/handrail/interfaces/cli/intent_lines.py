"""Intents as lines: lists, one of them, its versions, and what a new one begins with."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handrail.protocol.events import IntentEdited, Recorded
from handrail.protocol.intent import Intent

if TYPE_CHECKING:
    from handrail.engine.intents import Problems
    from handrail.workspace.intents.intent_file import Intents

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
        "constraints": ("The smallest change that mends it", "Public names and formats stay as they are"),
        "acceptance_criteria": (
            "A test fails without the change and passes with it",
            "All other tests pass as before",
        ),
    },
    "feature": {
        "constraints": ("What exists keeps its behaviour", "No new dependency without asking"),
        "acceptance_criteria": ("Tests show the new behaviour", "The documentation tells of it"),
    },
    "refactor": {
        "constraints": ("Behaviour stays the same", "Public signatures stay the same"),
        "acceptance_criteria": ("All tests pass unchanged", "Changes are declared as AST_REFACTOR"),
    },
}
OWNED = 60


def listed(found: "Intents") -> list[str]:
    """One intent a line: id, status, name, scope."""
    ids = max((len(each.id) for each in found.intents), default=0)
    words = max((len(_status(each, found.ignored)) for each in found.intents), default=0)
    lines = []
    for each in found.intents:
        owned = ", ".join(each.scope) or "nothing"
        owned = owned if len(owned) <= OWNED else f"{owned[: OWNED - 1]}…"
        name = f"{each.name}  " if each.name else ""
        lines.append(f"{each.id:<{ids}}  {_status(each, found.ignored):<{words}}  {name}[{owned}]")
    return lines


def _status(intent: Intent, ignored: frozenset[str]) -> str:
    return "ignored" if intent.id in ignored else intent.status or "active"


def as_json(intent: Intent, *, ignored: bool) -> dict[str, Any]:
    return {
        "id": intent.id,
        "name": intent.name,
        "status": intent.status,
        "done": intent.done,
        "ignored": ignored,
        "owned_scope": list(intent.scope),
        "constraints": list(intent.constraints),
        "acceptance_criteria": list(intent.criteria),
        "depends_on": list(intent.depends_on),
        "version": intent.sha256,
    }


def shown(intent: Intent, problems: "Problems", *, ignored: bool) -> list[str]:
    """The intent as it is written, then what is to be known of it."""
    told = ["In .intentignore: nothing is done for it."] if ignored else []
    told += [each for each in (*problems.wrong, *problems.waiting) if each.startswith(f"{intent.id} ")]
    told += [each.told for each in problems.conflicts if intent.id in (each.one, each.other)]
    return [*intent.text.rstrip("\n").split("\n"), *([""] if told else []), *told]


def version_lines(edits: Sequence[Recorded]) -> list[str]:
    """How an intent was edited, each time with what it was before."""
    lines = []
    for one in edits:
        if isinstance(one.event, IntentEdited):
            at = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.at))
            why = f": {one.event.why}" if one.event.why else ""
            lines += ["", f"{at} by {one.event.by}{why}"]
            lines += [f"    {text}" for text in one.event.old.rstrip("\n").split("\n") if one.event.old]
    return lines
