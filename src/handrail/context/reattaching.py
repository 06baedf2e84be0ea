"""Files that changed since the model saw them go with the next message as they are now, unasked."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from handrail.protocol.errors import PathProblem
from handrail.protocol.values import SHOWN_DIGITS, FileSeen
from handrail.sessions.files_seen import SeenFile
from handrail.sessions.state import State
from handrail.workspace.files import TOO_LARGE, TextFile, Workspace

AGAIN_CAP = 24_000
"""Bytes of all of them together."""
MOST_CHECKED = 50
"""Of the files that the model saw last; changing an older one is refused if it is not what it was."""
MOST_TOLD = 20
HEAD = "[Changed by {who} since you saw it; as it is now, and edits are to be based on this version:]"
OWN_HEAD = "[Changed by {who}; as it is now:]"
WHO = {"command": "a command that you ran", "rollback": "the user, who took changes back"}


class Reattached(NamedTuple):
    """What goes with a message, and which versions of which files it shows."""

    text: str = ""
    files: tuple[FileSeen, ...] = ()
    gone: tuple[str, ...] = ()
    """Files that the model is told have been deleted."""
    stale: tuple[str, ...] = ()
    """Files that changed and are not shown: nothing can be edited in them before they are read."""


class Changed(NamedTuple):
    """A file that is to be shown again."""

    path: str
    seen: SeenFile
    now: str | None
    """The hash of what is there; None where there is no file."""

    @property
    def by_others(self) -> bool:
        return self.now != self.seen.sha256

    @property
    def who(self) -> str:
        """Who changed it, as far as is known."""
        if not self.by_others:
            return "you in the last turn"
        told = self.seen.modified_by if self.seen.current == (self.now or "") else None
        return WHO.get(told or "", "somebody else")


def reattach(
    state: State, workspace: Workspace, cap: int, shown: Collection[str], *, own: bool
) -> Reattached:
    """Files that others changed since the model saw them and, where `own`, those it changed last turn.

    What is `shown` anyway is left out.
    """
    wanted = [each for each in changed_files(state, workspace, own=own) if each.path not in shown]
    parts: list[Reattached] = []
    left = cap
    for changed in wanted[:MOST_TOLD]:
        part = _again(changed, workspace, left)
        left -= len(part.text.encode(errors="replace")) if part.files else 0
        parts.append(part)
    if untold := wanted[MOST_TOLD:]:
        text = f"[{len(untold)} more files changed since you saw them: read a file before editing it.]"
        parts.append(Reattached(text, stale=tuple(each.path for each in untold if each.by_others)))
    return Reattached(
        "\n\n".join(part.text for part in parts),
        tuple(seen for part in parts for seen in part.files),
        tuple(path for part in parts for path in part.gone),
        tuple(path for part in parts for path in part.stale),
    )


def changed_files(state: State, workspace: Workspace, *, own: bool) -> Iterator[Changed]:
    """What others changed first, then what the model itself changed last; each the latest seen first."""
    ours = []
    for path, seen in reversed(list(state.files.files.items())[-MOST_CHECKED:]):
        changed = Changed(path, seen, workspace.sha256(path))
        if changed.now == TOO_LARGE and not seen.whole:
            continue  # it was large when a part of it was read, and nothing can be edited in it
        if changed.by_others:
            yield changed
        elif own and seen.modified_by == "agent" and seen.modified == state.turns:
            ours.append(changed)
    yield from ours


def _again(changed: Changed, workspace: Workspace, left: int) -> Reattached:
    path = changed.path
    place = workspace.resolve(path)
    if changed.now is None and not workspace.exists(place):
        text = (
            f"[{path} was deleted by {changed.who} since you saw it. Do not guess its content, and do not"
            " bring it back unasked.]"
        )
        return Reattached(text, gone=(path,))
    if place.path != path or not place.inside or place.secret:
        return _left_out(changed, "it may hold secrets" if place.secret else "it leads somewhere else")
    try:
        file = workspace.read(place)
    except PathProblem as problem:
        return _left_out(changed, str(problem).rstrip("."))
    if len(file.data) > left:
        return _left_out(changed, f"its {len(file.data):,} bytes are too many here")
    return Reattached(_shown(changed, file), files=(_seen(file),))


def _shown(changed: Changed, file: TextFile) -> str:
    head = (HEAD if changed.by_others else OWN_HEAD).format(who=changed.who)
    return f"{head}\n### {file.path} [hash: {file.sha256[:SHOWN_DIGITS]}]\n{file.text}"


def _seen(file: TextFile) -> FileSeen:
    return FileSeen(path=file.path, sha256=file.sha256, how="auto", size=len(file.data))


def _left_out(changed: Changed, why: str) -> Reattached:
    path = changed.path
    if not changed.by_others:
        hash_now = changed.seen.sha256[:SHOWN_DIGITS]
        return Reattached(
            f"[{path}, changed by you in the last turn [hash: {hash_now}], is not shown: {why}.]"
        )
    text = (
        f"[{path} was changed by {changed.who} since you saw it, and is not shown: {why}."
        " Read it before editing.]"
    )
    return Reattached(text, stale=(path,))
