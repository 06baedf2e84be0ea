"""Change sets by real processes: killed at random moments, racing each other, beside a user's own git."""

import hashlib
import os
import random
import selectors
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.changes.apply import apply
from handrail.changes.change_set import ChangeSet, FileEdit
from handrail.changes.rewind import plan_rewind
from handrail.changes.undo import undo_change_set
from handrail.sessions.change_history import session_changes
from handrail.storage.log_repair import open_log
from handrail.workspace.files import Workspace
from tests.changes import applying_child
from tests.changes.applying_child import FILES, MADE, RACED, number_in, opened, text_of
from tests.changes.faults import temporaries
from tests.forks import forks

KILLS = 200
TIMES = 500
"""How often each of two processes applies."""
DEADLINE = 120.0


def kills(folder: Path) -> Iterator[list[str]]:
    """The words of each of many processes that change files, up to where it is killed."""
    chance = random.Random()
    complaints = folder / "complaints"
    with forks(applying_child.__name__, folder=folder, complaints=complaints) as children:
        for _ in range(KILLS):
            children.start(str(folder / "log"), str(folder / "work"), "s_1")
            children.read(DEADLINE, lines=1 + chance.randrange(3))
            children.read(chance.expovariate(1 / 0.04))
            yield [line for line in children.kill().decode().split("\n")[:-1] if line != "ready"]
    assert not complaints.read_text(), "it ended by itself"


@pytest.mark.promise("CHG-24")
def test_sets_that_are_killed_at_any_moment_are_all_old_or_all_new(in_memory: Path) -> None:
    root = in_memory / "work"
    (root / "deep").mkdir(parents=True)
    for path in FILES:
        (root / path).write_bytes(text_of(0, path))
    acknowledged = halfway = 0
    for told in kills(in_memory):
        acknowledged = int(told[-1]) if told else acknowledged
        each_file_is_whole(root)
        halfway += is_halfway(in_memory / "log")
        session = opened(in_memory / "log", root, "s_1")
        number = number_in(root)
        for path in FILES:
            assert (root / path).read_bytes() == text_of(number, path), "a set was applied in part"
        assert (root / MADE).exists() == bool(number % 2)
        assert number >= acknowledged, "what was acknowledged is gone"
        assert not temporaries(root)
        assert not session.state.files.prepared
        acknowledged = number
        session.save_snapshot()
        session.release()
        session.log.close()
    assert acknowledged > KILLS / 4, "too little was done to prove anything"
    assert halfway > KILLS / 10, "the kills hit too few moments that matter"
    session = opened(in_memory / "log", root, "s_1")
    statuses = Counter(change.status for change in session_changes(session.log, "s_1"))
    session.release()
    session.log.close()
    assert set(statuses) <= {"applied", "not applied"}
    assert statuses["applied"] == acknowledged


def is_halfway(folder: Path) -> bool:
    """Whether a change set was begun and not ended."""
    log = open_log(folder)
    try:
        return bool(log.begun())
    finally:
        log.close()


def each_file_is_whole(root: Path) -> None:
    for path in FILES:
        lines = (root / path).read_bytes().splitlines()
        assert len(lines) == 50
        assert len(set(lines)) == 1


@pytest.mark.promise("CHG-20")
def test_no_update_of_two_racing_processes_and_of_a_user_is_lost(in_memory: Path) -> None:
    root = in_memory / "work"
    root.mkdir()
    for path in RACED:
        (root / path).write_bytes(b"")
    processes = [racing(in_memory, session) for session in ("s_1", "s_2")]
    outcomes, by_hand = user_beside(processes, root)
    assert set(outcomes) == {"applied", "stale_file"}, outcomes
    assert outcomes["applied"] == 2 * TIMES
    session = opened(in_memory / "log", root, "s_1")
    made = [
        change for each in ("s_1", "s_2") for change in session_changes(session.log, each) if change.in_place
    ]
    session.release()
    session.log.close()
    for path in RACED:
        bases = Counter(
            file.old_sha256 for change in made for file in change.prepared.files if file.path == path
        )
        assert set(bases.values()) == {1}, "two updates were made of one version: one of them is lost"
        kept = [each.read_text() for each in root.glob(f"{path}*")]
        lines = {line for text in kept for line in text.splitlines()}
        assert set(by_hand[path]) <= lines, "what the user wrote is lost"
    assert not temporaries(root)


def racing(folder: Path, session: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [
            sys.executable,
            applying_child.__file__,
            str(folder / "log"),
            str(folder / "work"),
            session,
            str(TIMES),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def user_beside(
    processes: "list[subprocess.Popen[str]]", root: Path
) -> tuple[Counter[str], dict[str, list[str]]]:
    """The outcomes that the processes tell; at each, a user saves one of the files with a line more."""
    outcomes: Counter[str] = Counter()
    by_hand: dict[str, list[str]] = {path: [] for path in RACED}
    with selectors.DefaultSelector() as waiting:
        for process in processes:
            assert process.stdout
            waiting.register(process.stdout, selectors.EVENT_READ, process)
        while waiting.get_map():
            ready = waiting.select(DEADLINE)
            assert ready, "nobody says anything any more"
            for key, _ in ready:
                line = key.data.stdout.readline().strip()
                if not line:
                    waiting.unregister(key.fileobj)
                    _, complaints = key.data.communicate(timeout=DEADLINE)
                    assert key.data.returncode == 0, complaints
                    continue
                outcomes[line] += 1
                path = RACED[outcomes.total() % 2]
                by_hand[path].append(f"user {outcomes.total()}")
                beside = root / "saving"
                beside.write_text((root / path).read_text() + by_hand[path][-1] + "\n")
                beside.rename(root / path)
    return outcomes, by_hand


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.promise("CHG-38")
def test_the_users_git_is_the_same_bytes_before_and_after(in_memory: Path) -> None:
    root = in_memory / "work"
    root.mkdir()
    git(root, "init", "-q")
    git(root, "config", "user.email", "someone@example.com")
    git(root, "config", "user.name", "Someone")
    for name in ("tracked", "staged", "stashed"):
        (root / name).write_text("first\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    (root / "stashed").write_text("put aside\n")
    git(root, "stash", "-q")
    (root / "staged").write_text("staged\n")
    git(root, "add", "staged")
    before = picture_of_git(root)
    session = opened(in_memory / "log", root, "s_1")
    workspace = Workspace(root)
    first = apply(
        session,
        workspace,
        ChangeSet(
            (
                FileEdit("tracked", "update", b"first\n", b"changed\n"),
                FileEdit("staged", "update", b"staged\n", b"changed\n"),
                FileEdit("new/file", "create", None, b"new\n"),
                FileEdit("stashed", "move", b"first\n", b"first\n", destination="moved"),
            )
        ),
    )
    assert picture_of_git(root) == before
    plan = plan_rewind(session.log, workspace, "s_1", first.change_id).plan
    change_set = undo_change_set(plan)
    assert change_set
    apply(session, workspace, change_set, emptied=plan.emptied)
    session.release()
    session.log.close()
    assert picture_of_git(root) == before
    assert git(root, "status", "--porcelain") == "M  staged\n"


def picture_of_git(root: Path) -> dict[str, str]:
    files = [path for path in (root / ".git").rglob("*") if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
