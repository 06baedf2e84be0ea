"""Subtasks that need a whole tree: an agent works in a scratch copy, and its changes become proposals."""

import os
import stat
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync

from handrail.app.app import Options, open_app
from handrail.config.files import try_lock
from handrail.config.remove_tree import remove_tree
from handrail.engine.durable.jobs import Job, JobResult, NewFile
from handrail.engine.split.conductor import Conductor
from handrail.engine.split.subtask_work import task_words
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import BudgetReached, HandrailError, PathProblem
from handrail.protocol.events import Answered, Recorded, TurnFinished, UserMessage
from handrail.protocol.values import Mode
from handrail.verification.base_tree import PLAIN, Base, FileBefore
from handrail.verification.trees import taken_copy
from handrail.workspace.files import Workspace, decode
from handrail.workspace.scratch_copy.copies import ScratchCopies
from handrail.workspace.scratch_copy.copy import ScratchCopy

if TYPE_CHECKING:
    from handrail.app.app import App

MAX_SUMMARY = 300
PREFIX, FRESH_SECONDS = "handrail-tree-", 60.0
"""Of a copy's folder; one that is so new may not be locked yet."""
WORKING_MODES: tuple[Mode, ...] = ("edit", "auto", "sandbox")


async def perform_in_tree(app: "App", job: Job, conductor: Conductor) -> JobResult:
    """What an agent makes of the subtask in a copy of its own, within the budgets of the split."""
    began = time.monotonic()
    try:
        with conductor.ledger.reserve(job) as afford:
            async with _copy(app, job) as copy:
                reference = (await app.chosen_model()).reference
                mode = app.settings.mode if app.settings.mode in WORKING_MODES else "edit"
                allow = app.options.allow
                options = Options(
                    copy.root,
                    model=reference,
                    mode=mode,
                    allow=allow,
                    answerable=False,
                    database="",  # in a shared log its cost would count twice
                    afford=afford,
                )

                def follow(one: Recorded) -> None:
                    conductor.record_of_agent(job.key, one.event)

                async with open_app(options) as agent:
                    # The copy has no `.env` that git ignores, but files may have what is in it.
                    agent.model_pool.secrets().learn_all(app.model_pool.secrets())
                    session_id = agent.new_session("", follow)
                    ended, words = await _turn(agent, session_id, task_words(job))
                if ended.reason != "answered":
                    why = f"The agent did not finish ({ended.reason}): {ended.detail}"
                    over_budget = ended.reason == "budget"
                    return JobResult(job.key, problem=why, again=not over_budget, over_budget=over_budget)
                files = await run_sync(_changed, app.workspace, copy, job)
    except BudgetReached as reached:
        return JobResult(job.key, problem=str(reached), over_budget=True)
    except HandrailError as problem:
        return JobResult(job.key, problem=str(problem), again=True)
    summary = " ".join(words.split())[:MAX_SUMMARY]
    return JobResult(job.key, files=files, summary=summary, seconds=round(time.monotonic() - began, 3))


@asynccontextmanager
async def _copy(app: "App", job: Job) -> AsyncIterator[ScratchCopy]:
    """A copy outside of Handrail's own folders, with the files as the subtask is given them."""
    contents = {
        file.path: FileBefore(file.text.encode(), PLAIN) if file.text is not None else None
        for file in job.files
    }
    await run_sync(_remove_leftovers)
    folder = Path(await run_sync(lambda: tempfile.mkdtemp(prefix=PREFIX)))
    lock = try_lock(folder)
    try:
        async with taken_copy(ScratchCopies(app.workspace, folder), Base("subtask", contents)) as copy:
            yield copy
    finally:
        remove_tree(folder)
        if lock:
            lock.release()


def _remove_leftovers() -> None:
    """Remove copies of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            found = folder.lstat()
            mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
            if mine and time.time() - found.st_mtime > FRESH_SECONDS and (lock := try_lock(folder)):
                with lock:
                    remove_tree(folder)


async def _turn(app: "App", session_id: str, text: str) -> tuple[TurnFinished, str]:
    """The end of the agent's turn, and its last words."""
    message = SendMessage(text=text, route="agent")
    await app.send(session_id, message)
    turn_id, words = "", ""
    async for item in app.follow(session_id, 0):
        match item.event if isinstance(item, Recorded) else None:
            case UserMessage(message_id=message.message_id) as event:
                turn_id = event.turn_id
            case Answered(text=said) if said:
                words = said
            case TurnFinished() as event if event.turn_id == turn_id:
                return event, words
    raise AssertionError("a session is followed until its turn has ended")


def _changed(workspace: Workspace, copy: ScratchCopy, job: Job) -> tuple[NewFile, ...]:
    """What the agent changed; raises PathProblem where it wrote what the subtask may not write."""
    given = {file.path: file.text for file in job.files}
    found, tree = copy.differences(), Workspace(copy.root)
    changed: list[NewFile] = []
    for path in dict.fromkeys((*found.added, *found.changed, *found.removed, *given)):
        place = tree.resolve(path)
        if not place.inside:
            raise PathProblem(f"{path} leads out of the tree. Make it a file.", "outside_workspace", path)
        data = tree.read(place).data if tree.exists(place) else None
        before = _before(workspace, path) if path not in given else given[path]
        if sha256(data or b"").digest() == sha256((before or "").encode()).digest() and (
            (data is None) == (before is None)
        ):
            continue
        if not job.subtask.may_write(path):
            allowed = ", ".join(job.subtask.writes or job.subtask.files)
            message = f"The agent changed {path}, which this subtask may not write; it may write {allowed}."
            raise PathProblem(message, "outside_workspace", path)
        changed.append(NewFile(path, decode(data).text if data is not None else None))
    return tuple(changed)


def _before(workspace: Workspace, path: str) -> str | None:
    return workspace.read(path).data.decode(errors="surrogateescape") if workspace.exists(path) else None
