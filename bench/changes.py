"""Changes: what applying, taking back and noticing cost, beside git doing the like in the same run."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.agents import BEFORE, EDITED
from bench.repository import repository, restore
from bench.timing import Measured, median_ms
from handrail.changes.apply import apply
from handrail.changes.change_set import ChangeSet, FileEdit
from handrail.changes.rewind import plan_rewind
from handrail.changes.trace.trace_file import PATH as TRACE
from handrail.changes.undo import plan_undo, undo_change_set
from handrail.protocol.events import SessionStarted
from handrail.sessions.change_history import session_changes
from handrail.sessions.session import Session
from handrail.storage.log_repair import open_log
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import INTENTS_FILE as INTENTS
from handrail.workspace.stat_index import differences, snapshot
from handrail.workspace.watched_index import WatchedIndex

LARGE, MANY_FILES, MANY_SETS = 20_000, 2_000, 1_000
LONG_TRACE = 10_000
RUNS = 9
OLD, NEW = f"{BEFORE}\n".encode(), b"x = 2\n"
GIT = ("-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "user.name=b", "-c", "user.email=b@example.com")


def measure() -> Iterator[Measured]:
    """Each figure with a primitive that does the same, or less."""
    folder = repository(LARGE)
    restore(folder)
    with session_in(folder) as session:
        yield from one_change(session, Workspace(folder))
    yield from noticing(folder)
    with tempfile.TemporaryDirectory() as empty, session_in(Path(empty)) as session:
        yield from many_files(session, Workspace(Path(empty)))
    with tempfile.TemporaryDirectory() as empty, session_in(Path(empty)) as session:
        yield many_sets(session, Workspace(Path(empty)))
    with tempfile.TemporaryDirectory() as empty, session_in(Path(empty)) as session:
        yield tracing(session, Workspace(Path(empty)))


@contextmanager
def session_in(folder: Path) -> Iterator[Session]:
    """A session with a log of its own, outside the workspace."""
    with tempfile.TemporaryDirectory() as home:
        log = open_log(Path(home))
        session = Session(log, "s_bench")
        session.try_hold()
        started = SessionStarted(session_id=session.id, workspace=str(folder), version="0", mode="auto")
        session.append(started)
        try:
            yield session
        finally:
            session.release()
            log.close()


def one_change(session: Session, workspace: Workspace) -> Iterator[Measured]:
    """One file of 20,000, against a checkpoint in a shadow repository."""

    def change() -> None:
        apply(session, workspace, ChangeSet((FileEdit(EDITED, "update", OLD, NEW),)))

    def take_back() -> None:
        last = session_changes(session.log, session.id)[-1]
        if change_set := undo_change_set(plan_undo(session.log, workspace, [last.prepared])):
            apply(session, workspace, change_set)

    applied, taken = [], []
    for _ in range(RUNS):
        applied.append(median_ms(change, 1))
        taken.append(median_ms(take_back, 1))
    with shadow(workspace.root) as checkpoint:
        checkpoint(b"x = 0\n")
        git = median_ms(alternating(checkpoint), RUNS)
    restore(workspace.root)
    what = f"git add -A && git commit, {LARGE:,} files"
    for name, times in (("apply one change", applied), ("take one change back", taken)):
        spent = sorted(times)[RUNS // 2]
        yield Measured(f"{name}, {LARGE:,} files", spent, what, spent / git)


def tracing(session: Session, workspace: Workspace) -> Measured:
    """A change whose line goes to the end of a long trace, against the same change without one."""
    root = workspace.root
    texts = [NEW, OLD]
    (root / "a.py").write_bytes(OLD)

    def change() -> None:
        apply(session, workspace, ChangeSet((FileEdit("a.py", "update", texts[1], texts[0]),)))
        texts.reverse()

    plain = median_ms(change, RUNS)
    (root / TRACE).parent.mkdir()
    (root / INTENTS).write_text("intents: []\n")
    change()
    first = (root / TRACE).read_bytes()
    (root / TRACE).write_bytes(b'{"writer":"w_0","number":1}\n' * LONG_TRACE + first)
    spent = median_ms(change, RUNS)
    return Measured(
        f"apply one change, with a line in a trace of {LONG_TRACE:,}",
        spent,
        "the same without",
        spent / plain,
    )


@contextmanager
def shadow(root: Path) -> Iterator[Callable[[bytes], None]]:
    """A repository beside the user's own, as agents keep them for checkpoints."""
    with tempfile.TemporaryDirectory() as place:
        git = ["git", *GIT, f"--git-dir={place}/shadow", f"--work-tree={root}"]
        environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

        def run(*words: str) -> None:
            subprocess.run([*git, *words], cwd=root, check=True, env=environ, stdout=subprocess.DEVNULL)

        def checkpoint(text: bytes) -> None:
            (root / EDITED).write_bytes(text)
            run("add", "-A")
            run("commit", "-q", "-m", "checkpoint")

        run("init", "-q")
        yield checkpoint
        (root / EDITED).write_bytes(OLD)


def alternating(checkpoint: Callable[[bytes], None]) -> Callable[[], None]:
    texts = [NEW, OLD]

    def again() -> None:
        texts.reverse()
        checkpoint(texts[0])

    return again


def noticing(folder: Path) -> Iterator[Measured]:
    """The comparison around a command, in full and by notices, against `git status`."""
    before = snapshot(folder)
    watched = WatchedIndex(folder)
    watched.look(watched.look())

    def compare() -> None:
        differences(before, snapshot(folder, since=before))

    def compare_by_notices() -> None:
        first = watched.look()
        (folder / EDITED).write_bytes(OLD)
        differences(first, watched.look(first))

    status = ["git", *GIT, "-C", str(folder), "status", "--porcelain"]
    git = median_ms(lambda: subprocess.run(status, check=True, capture_output=True), RUNS)
    for how, action in (("", compare), (", by notices", compare_by_notices)):
        spent = median_ms(action, RUNS)
        yield Measured(f"compare {LARGE:,} files around a command{how}", spent, "git status", spent / git)
    watched.close()


def many_files(session: Session, workspace: Workspace) -> Iterator[Measured]:
    """One set over many files, against writing each with an fsync."""
    names = [f"f{number}" for number in range(MANY_FILES)]

    def plain() -> None:
        for name in names:
            with (workspace.root / name).open("wb") as file:
                file.write(OLD)
                file.flush()
                os.fsync(file.fileno())

    primitive = timed(plain)
    edits = tuple(FileEdit(name, "update", OLD, NEW) for name in names)
    spent = timed(lambda: apply(session, workspace, ChangeSet(edits)))
    against = "writing them with fsync"
    yield Measured(f"one change set over {MANY_FILES:,} files", spent, against, spent / primitive)


def many_sets(session: Session, workspace: Workspace) -> Measured:
    """Back over many sets, against taking back one that changes as many files."""
    names = [f"f{number}" for number in range(50)]
    for name in names:
        (workspace.root / name).write_bytes(b"0\n")
    first = ""
    for number in range(MANY_SETS):
        name, turn = names[number % len(names)], number // len(names)
        edit = FileEdit(name, "update", b"%d\n" % turn, b"%d\n" % (turn + 1))
        applied = apply(session, workspace, ChangeSet((edit,)))
        first = first or applied.change_id

    def rewind() -> None:
        going = plan_rewind(session.log, workspace, session.id, first)
        if change_set := undo_change_set(going.plan):
            apply(session, workspace, change_set, emptied=going.plan.emptied)

    spent = timed(rewind)
    if any((workspace.root / name).read_bytes() != b"0\n" for name in names):
        raise SystemExit("A rewind over many sets did not give back the first contents.")
    edits = tuple(FileEdit(name, "update", b"0\n", b"1\n") for name in names)
    one = timed(lambda: apply(session, workspace, ChangeSet(edits)))
    return Measured(f"rewind over {MANY_SETS:,} sets, 50 files", spent, "one set over 50 files", spent / one)


def timed(action: Callable[[], Any]) -> float:
    """Milliseconds of one run, for what cannot be done twice."""
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1000
