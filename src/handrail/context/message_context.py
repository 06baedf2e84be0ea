"""What goes with a user message: date, mode, todos, finished runs, files known and changed."""

import time
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from handrail.context.token_budget import fragment_cap
from handrail.protocol.errors import PathProblem
from handrail.protocol.values import HASH_DIGITS, FileSeen
from handrail.sessions.files_seen import FilesSeen, Operation, SeenFile
from handrail.sessions.run_state import EndedRun
from handrail.sessions.session_state import CompactionCut, SessionState
from handrail.workspace.files import TOO_LARGE, Workspace

SHOWN_TODOS = 20
TODO_CAP = 100


MODE_RULES = {
    "sandbox": "any shell command runs unasked; only the workspace and $TMPDIR can be written, not .git;"
    " no network; what you change can be undone"
}


def _mode(state: SessionState) -> str:
    rules = MODE_RULES.get(state.mode)
    return f"{state.mode} ({rules})" if rules else state.mode


def status_block(state: SessionState, now: float, *, dated: bool, done: Sequence[str] = ()) -> str:
    """Date and mode if they are new (and `dated`), open todos, recent changes, background commands."""
    lines = []
    if state.turns == 0 and dated:
        lines.append(f"Date: {time.strftime('%Y-%m-%d', time.localtime(now))}. Mode: {_mode(state)}.")
    elif dated and state.mode_said != state.mode:
        lines.append(f"Mode is now: {_mode(state)}.")
    todos = [todo for todo in state.todos if not todo.done]
    if todos:
        listed = "; ".join(f"{todo.id}: {_short(todo.text)}" for todo in todos[:SHOWN_TODOS])
        more = f"; and {len(todos) - SHOWN_TODOS} more" if len(todos) > SHOWN_TODOS else ""
        lines.append(f"Open todos: {listed}{more}.")
    if done:
        lines.append(f"Changed last for {state.intent}: {'; '.join(done)}.")
    running = state.background.running.values()
    lines += [f"Background command {each.id} runs: {_short(each.command)}" for each in running]
    for ended in state.background.ended:
        what = f"Background command {ended.background_id} has ended, {ended.summary}"
        lines.append(f"{what}: {_short(ended.command)}")
    return "[" + "\n".join(lines) + "]" if lines else ""


def _short(text: str) -> str:
    return text if len(text) <= TODO_CAP else f"{text[: TODO_CAP - 1]}…"


class RunSummaries(NamedTuple):
    text: str = ""
    runs: tuple[str, ...] = ()


def untold_run_summaries(state: SessionState, window: int) -> RunSummaries:
    """Summaries of runs that the model has not been shown yet; those that do not fit come later."""
    found = [run for run in state.runs.ended if run.seq > state.cut.upto and not run.told]
    if not found:
        return RunSummaries()
    kept = _runs_that_fit(found, window)
    return RunSummaries(_runs_block(kept, len(found)), tuple(run.run_id for run in kept))


def with_run_summaries(state: SessionState, window: int) -> CompactionCut:
    """The compaction cut with the summaries of runs that ended before it."""
    older = [run for run in state.runs.ended if run.seq <= state.cut.upto]
    if not older:
        return state.cut
    summary = f"{state.cut.summary}\n\n{_runs_block(_runs_that_fit(older, window), len(older))}"
    return replace(state.cut, summary=summary)


def _runs_that_fit(runs: Sequence[EndedRun], window: int) -> list[EndedRun]:
    room = fragment_cap(window, most=7_500, share=10)
    kept: list[EndedRun] = []
    for run in reversed(runs):
        room -= len(run.summary)
        if room < 0 and kept:
            break
        kept.insert(0, run)
    return kept


def _runs_block(kept: Sequence[EndedRun], of: int) -> str:
    more = f"\n[{of - len(kept)} earlier left out.]" if of > len(kept) else ""
    header = f"[Runs in this session that are over, summarised by Handrail:]{more}"
    return "\n\n".join([header, *(run.summary for run in kept)])


MAX_FILES = 20
MAX_OPERATIONS = 10
FILES_HEAD = "KNOWN FILES (hash, turn you saw it; * modified since you saw it: read it again before editing)"


def known_files_table(
    state: SessionState, shown: Sequence[FileSeen], gone: Sequence[str] = (), stale: Collection[str] = ()
) -> str:
    """The tables of known files and recent operations; empty unless something changed since the last ones."""
    before = state.files
    happened = bool(before.history) and before.history[-1].turn >= state.turns
    if not before.files or not (happened or shown or gone or stale):
        return ""
    now = FilesSeen(files=dict(before.files), history=list(before.history))
    now.record_seen(tuple(shown), state.turns + 1)
    now.record_deleted(tuple(gone), state.turns + 1)
    return "\n".join([*_files(now.files, stale), *_operations(now.history)])


def _files(files: dict[str, SeenFile], stale: Collection[str]) -> list[str]:
    latest = list(reversed(files.items()))
    rows = [
        f"{path} {seen.sha256[:HASH_DIGITS]} {seen.turn}{' *' if path in stale else ''}"
        for path, seen in latest[:MAX_FILES]
    ]
    more = len(latest) - MAX_FILES
    return [FILES_HEAD, *rows, *([f"({more} more, seen earlier)"] if more > 0 else [])] if rows else []


def _operations(history: list[Operation]) -> list[str]:
    rows = ["RECENT FILE OPERATIONS (newest first)"] if history else []
    for done in reversed(history[-MAX_OPERATIONS:]):
        to = f" to {done.destination}" if done.destination else ""
        before, after = done.before[:HASH_DIGITS], done.after[:HASH_DIGITS]
        versions = after if before == after else f"{before or 'nothing'} -> {after or 'nothing'}"
        rows.append(f"turn {done.turn}: {done.op} {done.path}{to} {versions} by {done.by}")
    return [*rows, "(older ones left out)"] if len(history) > MAX_OPERATIONS else rows


REATTACH_CAP = 24_000
"""Bytes of all files together."""
MAX_CHECKED = 50
"""Only the files seen last are checked; edits of older ones are refused if they changed."""
MAX_LISTED = 20
CHANGED_BY = {"command": "a command that you ran", "rollback": "the user, who undid changes"}


class ReattachedFiles(NamedTuple):
    """Changed files attached to a message, and the versions it shows."""

    text: str = ""
    files: tuple[FileSeen, ...] = ()
    gone: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    """Changed files that are not shown; the model must read them before editing."""


class ChangedFile(NamedTuple):
    path: str
    seen: SeenFile
    now: str | None
    """The current hash; None if there is no file."""

    @property
    def by_others(self) -> bool:
        return self.now != self.seen.sha256

    @property
    def who(self) -> str:
        if not self.by_others:
            return "you in the last turn"
        by = self.seen.modified_by if self.seen.current == (self.now or "") else None
        return CHANGED_BY.get(by or "", "somebody else")


def reattach_changed_files(
    state: SessionState, workspace: Workspace, cap: int, shown: Collection[str], *, own: bool
) -> ReattachedFiles:
    """Files that others changed since the model saw them and, if `own`, those it changed last turn.

    Files in `shown` are left out.
    """
    wanted = [each for each in changed_files(state, workspace, own=own) if each.path not in shown]
    parts: list[ReattachedFiles] = []
    left = cap
    for changed in wanted[:MAX_LISTED]:
        part = _reattached(changed, workspace, left)
        left -= len(part.text.encode(errors="replace")) if part.files else 0
        parts.append(part)
    if more := wanted[MAX_LISTED:]:
        text = f"[{len(more)} more files changed since you saw them: read a file before editing it.]"
        parts.append(ReattachedFiles(text, stale=tuple(each.path for each in more if each.by_others)))
    return ReattachedFiles(
        "\n\n".join(part.text for part in parts),
        tuple(seen for part in parts for seen in part.files),
        tuple(path for part in parts for path in part.gone),
        tuple(path for part in parts for path in part.stale),
    )


def changed_files(state: SessionState, workspace: Workspace, *, own: bool) -> Iterator[ChangedFile]:
    """Files that others changed, then those the model changed last; each group latest seen first."""
    ours = []
    for path, seen in reversed(list(state.files.files.items())[-MAX_CHECKED:]):
        changed = ChangedFile(path, seen, workspace.sha256(path))
        if changed.now == TOO_LARGE and not seen.whole:
            continue  # only a part of a large file was read, so it cannot be edited anyway
        if changed.by_others:
            yield changed
        elif own and seen.modified_by == "agent" and seen.modified == state.turns:
            ours.append(changed)
    yield from ours


def _reattached(changed: ChangedFile, workspace: Workspace, left: int) -> ReattachedFiles:
    path = changed.path
    place = workspace.resolve(path)
    if changed.now is None and not workspace.exists(place):
        advice = "Do not guess its content, and do not bring it back unasked."
        text = f"[{path} was deleted by {changed.who} since you saw it. {advice}]"
        return ReattachedFiles(text, gone=(path,))
    if place.path != path or not place.inside or place.secret:
        return _omitted_note(changed, "it may hold secrets" if place.secret else "it leads somewhere else")
    try:
        file = workspace.read(place)
    except PathProblem as problem:
        return _omitted_note(changed, str(problem).rstrip("."))
    if len(file.data) > left:
        return _omitted_note(changed, f"its {len(file.data):,} bytes are too many here")
    head = f"[Changed by {changed.who}. The current version:]"
    if changed.by_others:
        head = (
            f"[Changed by {changed.who} since you saw it. The current version, which edits must be based on:]"
        )
    text = f"{head}\n### {file.path} [hash: {file.sha256[:HASH_DIGITS]}]\n{file.text}"
    seen = FileSeen(path=file.path, sha256=file.sha256, how="auto", size=len(file.data))
    return ReattachedFiles(text, files=(seen,))


def _omitted_note(changed: ChangedFile, why: str) -> ReattachedFiles:
    path = changed.path
    if not changed.by_others:
        what = f"{path}, changed by you in the last turn [hash: {changed.seen.sha256[:HASH_DIGITS]}]"
        return ReattachedFiles(f"[{what}, is not shown: {why}.]")
    text = f"[{path} was changed by {changed.who} since you saw it, and is not shown: {why}."
    return ReattachedFiles(f"{text} Read it before editing.]", stale=(path,))
