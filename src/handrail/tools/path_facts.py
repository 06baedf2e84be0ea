"""What a decision needs to know of a place: gathered from the disk, once."""

import os
from pathlib import Path

from handrail.policy.facts import PathFacts
from handrail.workspace.places import Place
from handrail.workspace.surroundings import look_around


def path_facts(root: Path, place: Place, *, to_change: bool) -> PathFacts:
    """The facts of a place; what only a change depends on is looked up for one."""
    facts = PathFacts(
        place.path, place.inside, place.in_git, place.in_state, place.secret, place.links, _given(root, place)
    )
    if not to_change or not place.inside:
        return facts
    around = look_around(place.absolute)
    return facts.changed(
        found=around.found,
        missing=around.missing,
        through_file=around.through_file,
        twin=around.twin,
        twin_by=around.twin_by,
    )


def _given(root: Path, place: Place) -> str:
    """The path as it was written, without the way to the workspace, which is the user's own."""
    start = f"{root}{os.sep}"
    if not place.given.startswith("/"):
        return place.given
    if place.given.startswith(start):
        return place.given.removeprefix(start)
    return place.path + "/" * place.given.endswith(("/", "/.", "/.."))
