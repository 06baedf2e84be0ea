"""The end of a split: its results merged, verified as one in a copy, and applied as one change set."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from hashlib import sha256

from anyio.to_thread import run_sync

from handrail.changes.forms.document import CreateChange, DeleteChange, Document, RewriteChange
from handrail.engine.split.conductor import SplitSession, plan_of
from handrail.engine.split.graph import ordered
from handrail.engine.split.merging import MergedFiles, merge_results
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import ConflictsFound, SplitEnded, SplitPaused, SplitVerified, ToolFinished
from handrail.protocol.subtask import SplitEnd
from handrail.protocol.values import ChecklistItem
from handrail.sessions.split_state import SplitState
from handrail.tools.reports.issue import CheckResult
from handrail.verification.documents.checklist import complete_item
from handrail.verification.proposed import NoCopy, ProposalChecks, ProposedFile, Quiet
from handrail.verification.verdict import broken_by_change
from handrail.verification.workspace_checks import WorkspaceChecks
from handrail.workspace.files import Workspace, decode

MAX_NAMED, MAX_SUMMARY = 5, 500
Apply = Callable[[Document], Awaitable[ToolFinished]]


async def finish(
    split: SplitSession, workspace: Workspace, checks: WorkspaceChecks, apply: Apply, *, accept: bool = False
) -> None:
    """Merge, verify and apply what the subtasks made; nothing is applied unless all of it is right.

    `accept`: the user wants the result although the checks do not agree, or cannot say.
    """
    session, state = split
    if state.applied:  # a killed process had come so far
        session.append(SplitEnded(state="complete", files=touched_paths(state)))
        return
    now = await run_sync(_read_once, state, workspace)
    merged = await run_sync(_merged, state, now, session.log.blob)
    if merged.conflicts:
        where = Counter(each.path for each in merged.conflicts)
        found = "1 conflict" if len(merged.conflicts) == 1 else f"{len(merged.conflicts)} conflicts"
        detail = f"{found} in {_named(list(where))}. Nothing was applied."
        session.append(ConflictsFound(merged.conflicts), SplitPaused(why="conflicts", detail=detail))
        return
    files = await run_sync(_proposed, now, merged.files, state)
    if not files:
        session.append(
            SplitEnded(state="complete", detail="Nothing is different: there was nothing to apply.")
        )
        return
    try:
        verified = await _verified(checks, files)
    except PathProblem as problem:
        if problem.reason != "stale_file":
            raise
        detail = (
            f"{problem.path} was saved meanwhile. Nothing was applied. Resume the split to merge that too."
        )
        session.append(SplitEnded(state="failed", detail=detail))
        return
    session.append(verified)
    if verified.status != "passed" and not accept:
        ended: SplitEnd = "failed" if verified.status == "failed" else "unverified"
        session.append(SplitEnded(state=ended, detail=f"{verified.detail} Nothing was applied."))
        return
    finished = await apply(_document(state, files))
    if finished.status == "ok":
        paths = tuple(file.path for file in files)
        detail = " ".join(filter(None, (verified.detail if accept else "", _idle(state))))
        session.append(SplitEnded(state="complete", detail=detail, files=paths))
    else:
        why = finished.error.message if finished.error else finished.summary
        session.append(SplitEnded(state="failed", detail=f"{why} Nothing was applied."))


def touched_paths(state: SplitState) -> tuple[str, ...]:
    done = (one.done for one in state.subtasks.values() if one.done)
    return tuple(dict.fromkeys(file.path for each in done for file in each.files))


def _idle(state: SplitState) -> str:
    """The subtasks that are done and changed nothing: checks that pass say nothing about their work."""
    names = [name for name, one in state.subtasks.items() if one.done and not one.done.files]
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"Changed nothing: {', '.join(names[:MAX_NAMED])}{more}." if names else ""


def _read_once(state: SplitState, workspace: Workspace) -> dict[str, bytes | None]:
    """The files that will be changed, as they are; the end refuses to replace what is saved after this."""
    checklists = (item.path for item in _to_tick(state))
    return {
        path: workspace.read(path).data if workspace.exists(path) else None
        for path in (*touched_paths(state), *checklists)
    }


def _to_tick(state: SplitState) -> list[ChecklistItem]:
    """The items whose subtasks are done and changed something."""
    finished = {name: one.done for name, one in state.subtasks.items()}
    return [item for name, item in plan_of(state).items.items() if (done := finished[name]) and done.files]


def _merged(
    state: SplitState, now: Mapping[str, bytes | None], blob: Callable[[str], bytes | None]
) -> MergedFiles:
    """All results merged into the files as they were read."""
    results = [done for name in ordered(plan_of(state)) if (done := state.subtasks[name].done)]
    return merge_results(now, results, blob, state.settled)


def _proposed(
    now: Mapping[str, bytes | None], merged: Mapping[str, bytes | None], state: SplitState
) -> list[ProposedFile]:
    """The files that become different, and the checklist with its items ticked."""
    wanted = dict(merged)
    for item in _to_tick(state):
        old = wanted.get(item.path) or now[item.path]
        if old is None:
            raise PathProblem(f"The checklist {item.path} is gone.", "file_missing", item.path)
        wanted[item.path] = complete_item(old, item)
    found = []
    for path, data in wanted.items():
        before = now[path]
        if before != data:
            text = decode(data).text if data is not None else None
            found.append(ProposedFile(path, text, sha256(before).hexdigest() if before is not None else ""))
    return found


async def _verified(checks: WorkspaceChecks, files: Sequence[ProposedFile]) -> SplitVerified:
    """What the project's checks say about the merged tree, compared with the tree as it is."""
    proposal = ProposalChecks(checks)
    if reason := await proposal.why_in_workspace():
        return SplitVerified("unverified", detail=f"There is no copy to check it in: {reason}")
    try:
        before = await proposal.verify((), (), Quiet())
        verdict = await proposal.verify(files, before.checks, Quiet())
    except NoCopy as problem:
        return SplitVerified("unverified", detail=f"{str(problem).capitalize()}.")
    ran = tuple(_told(check) for check in verdict.checks)
    if verdict.status == "passed":
        return SplitVerified("passed", ran)
    broken = [check for check in verdict.checks if broken_by_change(check)]
    issues = [issue for check in broken for issue in check.issues]
    told = [f"{each.path}:{each.line}: {each.message}" if each.path else each.message for each in issues]
    reasons = told or [f"{each.name}: {each.reason or each.detail}" for each in verdict.checks if each.reason]
    named = "; ".join(" ".join(each.split()) for each in reasons[:MAX_NAMED])
    said = "The checks fail with it" if verdict.status == "failed" else "No check could verify it"
    return SplitVerified(verdict.status, ran, f"{said}{f': {named}' if named else ''}.")


def _told(check: CheckResult) -> str:
    old = check.status == "failed" and not broken_by_change(check)
    return f"{check.name}: {check.status}{', as before' if old else ''}"


def _document(state: SplitState, files: Iterable[ProposedFile]) -> Document:
    changes = tuple(
        DeleteChange(file.path, file.base)
        if file.text is None
        else RewriteChange(file.path, file.text, file.base)
        if file.base
        else CreateChange(file.path, file.text)
        for file in files
    )
    return Document(changes, summary=plan_of(state).task[:MAX_SUMMARY])


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MAX_NAMED} more files" if len(paths) > MAX_NAMED else ""
    return f"{', '.join(paths[:MAX_NAMED])}{more}"
