"""Mentions that are no paths: names of documents, intents, tasks, symbols, `@diff`, `@problems`, addresses.

Resolved by code to exact content. A word that names nothing is prose.
"""

import os
import re
from collections.abc import Awaitable, Callable, Iterator
from difflib import SequenceMatcher, get_close_matches
from typing import TYPE_CHECKING

import anyio
from anyio.to_thread import run_sync
from msgspec.structs import replace

from handrail.config.open_file import read_file
from handrail.context.map.symbols import MAX_FILE_BYTES, definition_texts, language_of
from handrail.context.mentions import DIFF, INTENT, PROBLEMS, TASK, LookedUp, mentioned_names
from handrail.context.named_documents import CONTEXT_FILE, named_documents
from handrail.protocol.errors import ConfigProblem, HandrailError, PathProblem
from handrail.tools.safe_git import try_git
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import IntentFile
from handrail.workspace.stat_index import snapshot

if TYPE_CHECKING:
    from handrail.tasks.task_list import TaskList
    from handrail.verification.workspace_checks import WorkspaceChecks

SYMBOL = re.compile(r"(?:([A-Za-z_]\w*)\.)?([A-Za-z_]\w{2,})")
MAX_SOURCE_FILES, MAX_PLACES, MAX_ISSUES, MAX_DIFF, MAX_NEAR = 5_000, 3, 50, 400_000, 5
SECONDS = 60.0
"""For all that takes time: an address, the checks."""
QUICK_CHECKS = ("types", "lint", "build")


def look_up_names(
    message: str, workspace: Workspace, intents: IntentFile, tasks: "Callable[[], TaskList]"
) -> dict[str, LookedUp]:
    """What needs no program and no network: names of documents, intents, tasks, symbols."""
    found: dict[str, LookedUp] = {}
    mentioned = mentioned_names(message)
    if not mentioned:
        return found
    try:
        documents = named_documents(workspace)
    except ConfigProblem as problem:
        documents = {}
        if any(name.isidentifier() for name in mentioned):
            found[CONTEXT_FILE] = LookedUp(problem=str(problem))
    for name in mentioned:
        if name.startswith(INTENT):
            found[name] = _intent(name.removeprefix(INTENT), intents)
        elif name.startswith(TASK):
            found[name] = _task(name.removeprefix(TASK), tasks())
        elif name in documents:
            found[name] = LookedUp(paths=documents[name])
        elif name not in (DIFF, PROBLEMS) and not _exists(workspace, name):
            parts = list(_definitions(workspace, name))
            if parts:
                more = f"\n[{len(parts) - MAX_PLACES} more places.]" if len(parts) > MAX_PLACES else ""
                found[name] = LookedUp(text="\n\n".join(parts[:MAX_PLACES]) + more)
    return found


async def look_up_slow(
    message: str, workspace: Workspace, checks: "Callable[[], WorkspaceChecks]"
) -> dict[str, LookedUp]:
    """What needs a program or the network: the diff, the problems, addresses."""
    found: dict[str, LookedUp] = {}

    async def keep(name: str, looking: Awaitable[LookedUp]) -> None:
        try:
            found[name] = await looking
        except HandrailError as problem:
            found[name] = LookedUp(problem=str(problem))

    with anyio.move_on_after(SECONDS):
        for name in mentioned_names(message):
            if name == DIFF:
                await keep(name, _diff(workspace))
            elif name == PROBLEMS:
                await keep(name, _problems(checks()))
            elif name.startswith(("http://", "https://")):
                await keep(name, _page(name))
    slow = [name for name in mentioned_names(message) if name in (DIFF, PROBLEMS) or "://" in name]
    late = LookedUp(problem=f"it took longer than {SECONDS:.0f} s")
    return {name: found.get(name, late) for name in slow}


def _exists(workspace: Workspace, name: str) -> bool:
    try:
        return workspace.exists(name)
    except PathProblem:
        return True  # a path, though not one that can be shown: reported as such


def _intent(intent_id: str, intents: IntentFile) -> LookedUp:
    listed = intents.now()
    if listed is None or listed.problem:
        return LookedUp(problem=listed.problem if listed else "this workspace has no intents")
    if found := listed.find(intent_id):
        return LookedUp(text=f"### Intent {intent_id}\n{found.text}")
    names = [each.id for each in listed.intents]
    near = get_close_matches(intent_id, names, cutoff=0.4) or names[:5]
    return LookedUp(problem=f"there is no such intent. Did you mean {' or '.join(near) or 'none'}?")


def _task(task_id: str, tasks: "TaskList") -> LookedUp:
    """The task, with its notes as they are written."""
    from handrail.tasks.describe import task_line

    if task := tasks.get(task_id):
        line = task_line(replace(task, notes=""), tasks.clock.today)
        return LookedUp(text="\n".join(filter(None, [f"### Task {line}", task.notes])))
    left = [each for each in tasks.all() if not each.completed]
    left.sort(key=lambda each: -max(_likeness(task_id, each.id), _likeness(task_id, each.title)))
    near = [f"{each.id} ({each.title})" for each in left[:MAX_NEAR]]
    return LookedUp(problem=f"there is no such task. Open ones: {', '.join(near) or 'none'}.")


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one.casefold(), other.casefold()).ratio()


def _definitions(workspace: Workspace, name: str) -> Iterator[str]:
    """The text of each definition of the symbol, with its place."""
    asked = SYMBOL.fullmatch(name)
    if asked is None:
        return
    owner, symbol = asked[1] or "", asked[2]
    paths = [path for path in snapshot(workspace.root).files if language_of(path)]
    for path in sorted(paths)[:MAX_SOURCE_FILES]:
        language, place = language_of(path), workspace.resolve(path)
        if language is None or place.secret or not place.inside:
            continue
        try:
            data = read_file(workspace.root / path, MAX_FILE_BYTES, follow=False)
        except OSError:
            continue  # gone, too large, or no file
        if symbol.encode() in data:
            for line, text in definition_texts(data, language, symbol, owner):
                yield f"### {path}:{line}\n{text}"


async def _diff(workspace: Workspace) -> LookedUp:
    """What differs from the last commit, without files that may hold secrets."""
    git = await try_git(workspace.root)
    listed = await git.output("diff", "--name-only", "--relative", "-z", "HEAD") if git else None
    if git is None or listed is None:
        return LookedUp(problem="there is no commit of git here to compare with")
    names = [os.fsdecode(each) for each in listed.split(b"\0") if each]
    shown = [name for name in names if not workspace.resolve(name).secret]
    words = ("diff", "--relative", "--no-color", "--no-ext-diff", "--no-textconv", "HEAD", "--")
    literal = [f":(literal){name}" for name in shown]
    text = await git.output(*words, *literal, limit=MAX_DIFF) if shown else b""
    if text is None:
        return LookedUp(problem="the diff is too large to attach")
    new = await git.output("ls-files", "--others", "--exclude-standard", "-z")
    added = [os.fsdecode(each) for each in (new or b"").split(b"\0") if each]
    parts = [text.decode(errors="replace").rstrip()] if text else []
    parts += [f"New files: {', '.join(added[:100])}"] if added else []
    return LookedUp(text="### Changes since the last commit\n" + ("\n".join(parts) or "None."))


async def _problems(checks: "WorkspaceChecks") -> LookedUp:
    """What the quick checks of the project find now: types, lint, build."""
    from handrail.verification.proposed import Quiet
    from handrail.verification.workspace_checks import VerifyOptions

    names = tuple(check.name for check in await checks.find() if check.kind in QUICK_CHECKS)
    if not names:
        return LookedUp(problem="no linter or type checker was found. `handrail verify` runs all checks")
    verdict = await checks.verify(VerifyOptions(only=names), Quiet())
    rows = [
        f"{issue.path}:{issue.line}: {issue.message.strip()}{f' [{issue.rule}]' if issue.rule else ''}"
        for issue in verdict.issues[:MAX_ISSUES]
    ]
    rows += [f"... {len(verdict.issues) - MAX_ISSUES} more"] if len(verdict.issues) > MAX_ISSUES else []
    ran = ", ".join(f"{check.name} {check.status}" for check in verdict.checks if check.name in names)
    return LookedUp(text="\n".join([f"### Problems ({ran})", *(rows or ["None."])]))


async def _page(url: str) -> LookedUp:
    """A page that the user named, as the tool `fetch` shows it."""
    from handrail.tools.web.fetch import FetchError, address_of, fetch_page, page_outcome

    try:
        outcome = page_outcome(await fetch_page(url, address_of(url)))
    except FetchError as problem:
        return LookedUp(problem=str(problem))
    return LookedUp(problem=outcome.error.message) if outcome.error else LookedUp(text=outcome.content)


async def look_up(
    message: str,
    workspace: Workspace,
    intents: IntentFile,
    tasks: "Callable[[], TaskList]",
    checks: "Callable[[], WorkspaceChecks]",
) -> dict[str, LookedUp]:
    """All mentions of a message that are no paths, with what they stand for."""
    if not mentioned_names(message):
        return {}
    named = await run_sync(look_up_names, message, workspace, intents, tasks)
    return {**named, **await look_up_slow(message, workspace, checks)}
