"""What is known of a command: read by a shell grammar, judged by the rules, its paths looked up."""

from collections.abc import Iterator
from glob import iglob
from itertools import islice

from handrail.policy.commands.judge import Judged, Lists, judge
from handrail.policy.commands.rule import NamedPath
from handrail.policy.commands.script import Script
from handrail.policy.facts import CommandFacts
from handrail.protocol.errors import PathProblem
from handrail.tools.path_facts import path_facts
from handrail.tools.shell_parsing import parse
from handrail.workspace.files import Workspace
from handrail.workspace.places import Place

MOST_FILES = 2_000
"""File names in the place of a pattern, each of which is looked up."""


def command_facts(text: str, lists: Lists, workspace: Workspace) -> CommandFacts:
    """All that a decision about a command depends on; waits some milliseconds for the shell grammar."""
    script = parse(text)
    judged = judge(script, lists)
    try:
        places = [
            (path_facts(workspace.root, place, to_change=False), path.made)
            for path, place in _places(judged, workspace)
        ]
        changes = tuple(place for place, made in places if made)
        writes = tuple(
            path_facts(workspace.root, place, to_change=False) for place in _writes(script, workspace)
        )
        return CommandFacts(judged, tuple(place for place, _ in places), changes, writes)
    except PathProblem as problem:
        return CommandFacts(judged.changed(problem=str(problem), reads_only=False, runs=""))


def _writes(script: Script, workspace: Workspace) -> Iterator[Place]:
    for target in script.writes:
        place = workspace.resolve(target.text)
        if target.names and (target.text.endswith("/") or place.absolute.is_dir()):
            yield from (workspace.resolve(str(place.absolute / name)) for name in target.names)
        elif target.pattern:
            found = islice(iglob(target.text, root_dir=workspace.root), MOST_FILES)
            yield from map(workspace.resolve, [*found] or [target.text])
        else:
            yield place


def _places(judged: Judged, workspace: Workspace) -> Iterator[tuple[NamedPath, Place]]:
    for path in judged.paths:
        # The pattern's own text counts too: what it may match is not there yet, perhaps.
        yield path, workspace.resolve(path.text)
        if path.pattern:
            yield from ((path, workspace.resolve(each)) for each in _matches(path, workspace))


def _matches(path: NamedPath, workspace: Workspace) -> list[str]:
    """The names that the shell puts in the pattern's place."""
    if any(part.startswith(".") and part not in (".", "..") for part in path.text.split("/")):
        raise PathProblem(f"the pattern `{path.text}` is about hidden files", "protected_path")
    if ".." in path.text.split("/"):
        raise PathProblem(f"the pattern `{path.text}` leads upwards", "outside_workspace")
    found = list(islice(iglob(path.text, root_dir=workspace.root), MOST_FILES + 1))
    if len(found) > MOST_FILES:
        raise PathProblem(f"the pattern `{path.text}` has too many matches", "invalid_arguments")
    if odd := next((name for name in found if name.startswith("-")), ""):
        raise PathProblem(
            f"the pattern `{path.text}` has a match `{odd}`, which is an option", "invalid_arguments"
        )
    return found
