"""Slash commands about changes: list, show, undo, redo and rewind them."""

from typing import TYPE_CHECKING

from handrail.app.editor import look_at_changed_files
from handrail.app.history.changes import PastChange, net_changes, preview_rewind, undo_of
from handrail.interfaces.acp.tool_calls import fenced
from handrail.protocol import commands
from handrail.protocol.errors import UsageProblem

if TYPE_CHECKING:
    from handrail.app.history.changes import RewindPreview
    from handrail.interfaces.acp.open_session import OpenSession

MAX_LISTED, MAX_DIFF = 30, 40_000


async def changes(session: "OpenSession", argument: str) -> str:
    history = session.app.history
    if argument:
        shown = history.show(session.id, argument.removeprefix("show").strip())
        return "\n\n".join(_diff(file.diff.text if file.diff else "no longer stored") for file in shown.files)
    rows = [_change_row(change) for change in history.changes(session.id)]
    return "\n".join(rows[-MAX_LISTED:]) or "No file was changed in this session."


def _change_row(change: PastChange) -> str:
    names = ", ".join(file.destination or file.path for file in change.prepared.files[:5])
    added = sum(file.added for file in change.prepared.files)
    removed = sum(file.removed for file in change.prepared.files)
    return f"{change.number}. {names} +{added} -{removed} ({change.status})"


async def diff(session: "OpenSession", argument: str) -> str:
    files = net_changes(session.app, session.id, argument)
    shown = [_diff(each.diff.text if each.diff else each.why) for each in files]
    return "\n\n".join(shown) or "Nothing that this session changed is still in place."


def _diff(text: str) -> str:
    more = f"\n[{len(text) - MAX_DIFF:,} characters left out]" if len(text) > MAX_DIFF else ""
    return fenced(f"{text[:MAX_DIFF].rstrip()}{more}", "diff")


async def undo(session: "OpenSession", argument: str) -> str:
    await _ready_to_go_back(session)
    return await _confirm(
        session, preview_rewind(session.app, session.id, undo_of(session.app, session.id, argument))
    )


async def redo(session: "OpenSession", _argument: str) -> str:
    await _ready_to_go_back(session)
    return await _confirm(session, preview_rewind(session.app, session.id, commands.Redo()))


async def rewind(session: "OpenSession", argument: str) -> str:
    await _ready_to_go_back(session)
    history, words = session.app.history, argument.split()
    if words[:1] == ["turn"] and len(words) == 2 and words[1].isdecimal() and len(words[1]) < 7:
        command = history.before_turn(session.id, int(words[1]))
    elif len(words) == 1:
        command = commands.Rewind(to=history.find(session.id, argument).id, conversation=True)
    else:
        raise UsageProblem("Say /rewind N, to before change N (/changes lists them), or /rewind turn N.")
    return await _confirm(session, preview_rewind(session.app, session.id, command), always=True)


async def _ready_to_go_back(session: "OpenSession") -> None:
    require_idle(session)
    if problem := await look_at_changed_files(session.app, session.id):
        raise UsageProblem(problem)


async def _confirm(session: "OpenSession", found: "RewindPreview", *, always: bool = False) -> str:
    """Undo at once what is plain; ask where a merge, a conflict or a choice is in it."""
    command = found.command
    nothing = not found.files and not isinstance(command, commands.Redo)
    if not (always or nothing or found.of_kind("merge", "conflict", "lost")):
        await session.send(command)
        return ""
    rows = [
        f"- {file.path}: {file.why or ('restored' if file.then is not None else 'deleted')}"
        for file in found.files
    ]
    if not found.ways:
        return "\n".join([*rows, "There is nothing that could be undone."])
    if isinstance(command, commands.Redo) or command.only or len(found.ways) == 1:
        ways = {"y": "Do it"}
    else:
        ways = {"f": "Files", "c": "Conversation", "b": "Both"}
    text = "\n".join([*rows, found.not_undone]).strip()
    if not (key := await session.choose("Go back?", text, ways)):
        return "Nothing was changed."
    if key == "y" and not (isinstance(command, commands.Redo) or command.only):
        key = found.ways
    await session.send(found.confirmed(command, key))
    return ""


async def accept(session: "OpenSession", argument: str) -> str:
    """Show the proposal of a build that is not complete, and apply it if the user says so."""
    from handrail.app.builds.build import accept_proposal, find_proposal

    require_idle(session)
    found = session.app.find_session(argument) if argument else session.id
    proposal = find_proposal(session.app, found)
    title = f"Apply these files? The build is {proposal.result.state}."
    if not await session.choose(title, _diff(proposal.diff), {"y": "Apply them"}):
        return "Nothing was changed."
    accepted = await accept_proposal(session.app, proposal)
    return f"Applied: {', '.join(accepted.files)}. `{accepted.undo}` takes it back."


def require_idle(session: "OpenSession") -> None:
    if session.app.state(session.id).turn:
        raise UsageProblem("A turn is running. Let it end, or stop it; then try again.")
