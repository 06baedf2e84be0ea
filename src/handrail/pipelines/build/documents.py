"""The documents of a build, with gate G4: code adds an entry to the changelog and ticks the checklist."""

import os
from datetime import UTC, datetime

from anyio.to_thread import run_sync
from msgspec import convert

from handrail.engine.pipeline import Failed, Output, Outputs, Passed, StepContext, Verdict
from handrail.pipelines.build.states import ASSEMBLE, DOCUMENT, EXECUTE, PLAN
from handrail.protocol.errors import PathProblem
from handrail.protocol.values import ChecklistItem, to_dict
from handrail.verification.documents.changelog import EntryRefused, NewEntry, add_entry, is_changelog
from handrail.verification.documents.checklist import ChecklistProblem, complete_item
from handrail.verification.documents.integrity import bytes_to_restore
from handrail.verification.proposed import ProposedFile
from handrail.workspace.files import TextFile, Workspace, decode

MAX_TITLE = 100


async def document(work: StepContext) -> Output:
    """The files with an entry in the changelog and a tick in the checklist, both by code."""
    files = convert(work.outputs[ASSEMBLE]["files"], tuple[ProposedFile, ...])
    path = work.checks.settings.build.changelog or await run_sync(_changelog, work.workspace)
    if path and not work.workspace.exists(path):
        missing = f"build.changelog names {path}, which is not there: make the file, or correct the setting"
        return {"files": [], "old": {}, "changelog": path, "problem": missing}
    problem = ""
    written: list[ProposedFile] = []
    if path:
        old = work.workspace.read(path)
        new, problem = _with_entry(old, _entry(work, files))
        written += [ProposedFile(path, decode(new).text, old.sha256)] if not problem else []
    if work.item:
        ticked, wrong = await run_sync(_ticked, work.workspace, work.item)
        written += ticked
        problem = problem or wrong
    proposed = (*files, *written)
    return {
        "files": [to_dict(file) for file in proposed],
        "old": {file.path: work.workspace.read(file.path).text for file in proposed if file.base},
        "changelog": path,
        "problem": problem,
    }


def _entry(work: StepContext, files: tuple[ProposedFile, ...]) -> NewEntry:
    return NewEntry(
        datetime.now(UTC).date(),
        " ".join(work.outputs[PLAN]["objective"].split())[:MAX_TITLE],
        created=tuple(file.path for file in files if not file.base),
        changed=tuple(file.path for file in files if file.base and file.text is not None),
        deleted=tuple(file.path for file in files if file.text is None),
        text=str(work.outputs[EXECUTE].get("changelog", "")),
    )


def _with_entry(old: TextFile, entry: NewEntry) -> tuple[bytes, str]:
    """The changelog with the entry, by template if its text does not fit; or what is wrong."""
    problem = ""
    for each in (entry, NewEntry(entry.day, "Changes", entry.created, entry.changed, entry.deleted)):
        try:
            new = add_entry(old.path, old.data, each)
        except EntryRefused as refused:
            problem = str(refused)
            continue
        if not bytes_to_restore({old.path: old.data}, {old.path: new}):
            return new, ""
        problem = f"an entry would change what {old.path} says already"
    return old.data, problem


def _changelog(workspace: Workspace) -> str:
    """The changelog at the root of the project, if there is one that can be read."""
    with os.scandir(workspace.root) as entries:
        names = sorted(
            entry.name
            for entry in entries
            if is_changelog(entry.name) and entry.is_file(follow_symlinks=False)
        )
    for name in names:
        try:
            workspace.read(name)
        except PathProblem:
            continue
        return name
    return ""


def _ticked(workspace: Workspace, item: ChecklistItem) -> tuple[list[ProposedFile], str]:
    """The checklist with its item ticked, none where the user has done that; or what is wrong."""
    try:
        old = workspace.read(item.path)
        new = complete_item(old.data, item)
    except (PathProblem, ChecklistProblem) as problem:
        return [], f"{item.path} cannot be ticked: {problem}"
    if bytes_to_restore({item.path: old.data}, {item.path: new}, checklists=(item.path,)):
        return [], f"a tick would change what {item.path} says already"
    return ([ProposedFile(item.path, decode(new).text, old.sha256)] if new != old.data else []), ""


def documents_are_intact(output: Output, _outputs: Outputs) -> Verdict:
    """G4: the changelog only grew, and the checklist lost neither an item nor a tick."""
    return Failed((output["problem"],)) if output["problem"] else Passed()


def proposed_files(outputs: Outputs) -> tuple[ProposedFile, ...]:
    return convert(outputs[DOCUMENT]["files"], tuple[ProposedFile, ...])
