"""Applying a change set: all or none, nothing of anybody else's lost, and the log says what the disk says."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import combinations_with_replacement
from pathlib import Path

import anyio
import pytest

from handrail.changes.apply import apply, apply_when_free, applying
from handrail.changes.change_set import ChangeSet, FileEdit, Origin, sha256
from handrail.changes.crash_recovery import recover
from handrail.protocol.errors import PathProblem, StorageBusy
from handrail.protocol.events import ChangeAbandoned, ChangeApplied, ChangePrepared, CopyKept
from handrail.protocol.upcast import pack_event
from handrail.protocol.values import FileChange
from handrail.storage.locks import workspace_lock
from handrail.workspace.disk import Disk, NotSupported
from tests.changes.faults import Fate, FaultyDisk, temporaries
from tests.tools.calls import Bench, open_bench, open_session


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = open_bench(tmp_path)
    yield bench
    bench.close()


def update(path: str, old: bytes, new: bytes) -> FileEdit:
    return FileEdit(path, "update", old, new)


def create(path: str, new: bytes) -> FileEdit:
    return FileEdit(path, "create", None, new)


def delete(path: str, old: bytes) -> FileEdit:
    return FileEdit(path, "delete", old, None)


def move(path: str, to: str, old: bytes, new: bytes | None = None) -> FileEdit:
    return FileEdit(path, "move", old, old if new is None else new, destination=to)


def run(bench: Bench, *edits: FileEdit, hard_links_agreed: bool = False) -> ChangeApplied:
    origin = Origin(turn_id="t_1", call_id="c_1")
    change_set = ChangeSet(edits, origin, hard_links_agreed=hard_links_agreed)
    return apply(bench.session, bench.workspace, change_set)


def names(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_all_kinds_of_change_are_made_together_and_leave_nothing_else(bench: Bench) -> None:
    for name in ("changed", "gone", "here"):
        (bench.root / name).write_bytes(name.encode())
    (bench.root / "changed").chmod(0o640)
    (bench.root / "here").chmod(0o750)
    run(
        bench,
        update("changed", b"changed", b"new"),
        create("deep/er/made", b"made"),
        delete("gone", b"gone"),
        move("here", "there/now", b"here"),
    )
    files = {name: (bench.root / name).read_bytes() for name in ("changed", "deep/er/made", "there/now")}
    assert files == {"changed": b"new", "deep/er/made": b"made", "there/now": b"here"}
    assert names(bench.root) == ["changed", "deep", "deep/er", "deep/er/made", "there", "there/now"]
    assert stat.S_IMODE((bench.root / "changed").stat().st_mode) == 0o640
    assert stat.S_IMODE((bench.root / "there/now").stat().st_mode) == 0o750


@pytest.mark.promise("CHG-4")
def test_mode_and_extended_attributes_survive(bench: Bench) -> None:
    file = bench.root / "f"
    file.write_bytes(b"old")
    file.chmod(0o2640)
    os.setxattr(file, "user.mark", b"1")
    run(bench, update("f", b"old", b"new"))
    assert stat.S_IMODE(file.stat().st_mode) == 0o2640
    assert os.getxattr(file, "user.mark") == b"1"


def test_a_new_file_has_the_usual_permissions(bench: Bench) -> None:
    run(bench, create("f", b"new"))
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((bench.root / "f").stat().st_mode) == 0o666 & ~umask


def test_both_contents_are_in_the_log_before_the_file_is_touched(bench: Bench) -> None:
    (bench.root / "f").write_bytes(b"old")
    run(bench, update("f", b"old", b"new"))
    prepared, done = bench.events()[-2:]
    assert isinstance(prepared, ChangePrepared)
    assert isinstance(done, ChangeApplied)
    (change,) = prepared.files
    assert bench.session.log.blob(change.old_sha256) == b"old"
    assert bench.session.log.blob(change.new_sha256) == b"new"
    assert (change.old_mode, change.new_mode) == (0o644, 0o644)


def test_one_change_takes_two_commits(bench: Bench) -> None:
    (bench.root / "f").write_bytes(b"0")
    run(bench, update("f", b"0", b"1"))
    commits: list[None] = []
    bench.session.log.listeners.append(lambda: commits.append(None))
    run(bench, update("f", b"1", b"2"))
    assert len(commits) == 2


@pytest.mark.parametrize(
    "edits",
    [
        (update("a", b"a", b"A"), update("stale", b"expected", b"new")),
        (create("new/a", b"A"), create("stale", b"new")),
        (delete("a", b"a"), delete("stale", b"expected")),
        (move("a", "b", b"a"), move("stale", "c", b"expected")),
        (update("a", b"a", b"A"), move("b", "stale", b"b")),
    ],
)
@pytest.mark.promise("CHG-3")
def test_a_set_with_one_stale_file_changes_no_file(bench: Bench, edits: tuple[FileEdit, ...]) -> None:
    (bench.root / "a").write_bytes(b"a")
    (bench.root / "stale").write_bytes(b"somebody else's")
    before = picture(bench.root)
    with pytest.raises(PathProblem) as caught:
        run(bench, *edits)
    assert caught.value.reason in ("stale_file", "file_exists")
    assert picture(bench.root) == before
    assert not bench.session.state.files.prepared


def test_a_path_can_be_changed_once_in_a_set(bench: Bench) -> None:
    (bench.root / "a").write_bytes(b"a")
    with pytest.raises(PathProblem, match="2 times"):
        run(bench, update("a", b"a", b"b"), delete("a", b"a"))
    assert (bench.root / "a").read_bytes() == b"a"


@pytest.mark.parametrize("path", ["../f", "a/../../f", "/tmp/f"])
def test_a_path_outside_is_not_written(bench: Bench, path: str) -> None:
    with pytest.raises(PathProblem) as caught:
        run(bench, create(path, b"new"))
    assert caught.value.reason == "outside_workspace"
    assert names(bench.root.parent) == sorted(
        ["log", "work", *(f"log/{name}" for name in names(bench.root.parent / "log"))]
    )


@pytest.mark.promise("CHG-23")
def test_a_file_with_several_names_is_changed_only_when_that_was_agreed(bench: Bench) -> None:
    (bench.root / "f").write_bytes(b"old")
    os.link(bench.root / "f", bench.root / "g")
    with pytest.raises(PathProblem) as caught:
        run(bench, update("f", b"old", b"new"))
    assert caught.value.reason == "hard_link"
    run(bench, update("f", b"old", b"new"), hard_links_agreed=True)
    assert (bench.root / "f").read_bytes() == b"new"
    assert (bench.root / "g").read_bytes() == b"old"


def test_a_write_that_fails_leaves_nothing(bench: Bench) -> None:
    (bench.root / "file").write_text("in the way")
    with pytest.raises(OSError, match="Not a directory"):
        run(bench, create("made/x", b"new"), create("file/below", b"new"))
    assert names(bench.root) == ["file"]
    assert not bench.session.state.files.prepared


@pytest.mark.promise("WORK-4")
def test_a_folder_that_became_a_link_is_not_followed(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_bytes(b"old")
    (bench.root / "src").symlink_to(outside)
    for edit in (update("src/a", b"old", b"new"), create("src/b", b"new"), delete("src/a", b"old")):
        with pytest.raises((OSError, PathProblem)):
            run(bench, edit)
    assert (outside / "a").read_bytes() == b"old"
    assert os.listdir(outside) == ["a"]


def test_a_file_that_became_a_link_is_not_followed(bench: Bench) -> None:
    (bench.root / "real").write_bytes(b"old")
    (bench.root / "a").symlink_to("real")
    with pytest.raises(PathProblem):
        run(bench, update("a", b"old", b"new"))
    assert (bench.root / "real").read_bytes() == b"old"
    assert (bench.root / "a").is_symlink()


def picture(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(root)): (path.read_bytes() if path.is_file() else b"", path.stat().st_mode)
        for path in root.rglob("*")
    }


# Others who write at the same moment

MOMENTS = 9


class Meddling(Disk):
    """A disk on which somebody else does something right before a call of ours."""

    def __init__(self, before: str, act: Callable[[], object], *, offered: bool = True) -> None:
        self.before = before
        self.act = act
        self.offered = offered

    def _meddle(self, call: str) -> None:
        if call == self.before:
            self.before = ""
            self.act()

    def create(self, folder: int, name: str, mode: int) -> int:
        self._meddle("create")
        return super().create(folder, name, mode)

    def exchange(self, folder: int, one: str, other: str) -> None:
        if not self.offered:
            raise NotSupported
        self._meddle("exchange")
        super().exchange(folder, one, other)

    def move(self, folder: int, name: str, to: str) -> None:
        if not self.offered:
            raise NotSupported
        self._meddle("move")
        super().move(folder, name, to)

    def link(self, folder: int, name: str, to: str) -> None:
        self._meddle("link")
        super().link(folder, name, to)


def meddled(bench: Bench, disk: Disk, *edits: FileEdit) -> PathProblem:
    with pytest.raises(PathProblem) as caught:
        apply(bench.session, bench.workspace, ChangeSet(edits), disk=disk)
    return caught.value


def conflict_copies(root: Path) -> list[bytes]:
    return [copy.read_bytes() for copy in root.rglob("*.conflict-*")]


def replaced_by_rename(file: Path, data: bytes) -> None:
    other = file.with_name("theirs")
    other.write_bytes(data)
    other.rename(file)


@pytest.mark.promise("CHG-20")
@pytest.mark.parametrize("how", ["in place", "by rename"])
@pytest.mark.parametrize("offered", [True, False])
def test_what_somebody_writes_right_before_the_exchange_stays(bench: Bench, how: str, offered: bool) -> None:
    (bench.root / "a").write_bytes(b"a")
    file = bench.root / "f"
    file.write_bytes(b"old")

    def act() -> None:
        if how == "in place":
            file.write_bytes(b"theirs")
        else:
            replaced_by_rename(file, b"theirs")

    moment = "exchange" if offered else "link"
    problem = meddled(
        bench, Meddling(moment, act, offered=offered), update("f", b"old", b"new"), update("a", b"a", b"A")
    )
    assert problem.reason == "stale_file"
    assert file.read_bytes() == b"theirs"
    assert (bench.root / "a").read_bytes() == b"a"
    assert conflict_copies(bench.root) == [b"theirs"]
    assert len(names(bench.root)) == 3
    assert isinstance(abandoned := bench.events()[-1], ChangeAbandoned)
    assert "f.conflict-" in abandoned.why


@pytest.mark.promise("CHG-20")
def test_what_somebody_writes_right_before_a_deletion_stays(bench: Bench) -> None:
    file = bench.root / "f"
    file.write_bytes(b"old")
    disk = Meddling("move", lambda: file.write_bytes(b"theirs"))
    assert meddled(bench, disk, delete("f", b"old")).reason == "stale_file"
    assert file.read_bytes() == b"theirs"
    assert conflict_copies(bench.root) == [b"theirs"]
    assert len(names(bench.root)) == 2


@pytest.mark.promise("CHG-20")
def test_what_somebody_writes_before_the_last_look_needs_no_copy(bench: Bench) -> None:
    file = bench.root / "f"
    file.write_bytes(b"old")
    disk = Meddling("create", lambda: file.write_bytes(b"theirs"))
    assert meddled(bench, disk, update("f", b"old", b"new")).reason == "stale_file"
    assert file.read_bytes() == b"theirs"
    assert names(bench.root) == ["f"]


class Saving(FaultyDisk):
    """A disk on which a user saves `f`, reads it, and saves what they read with a line more.

    Each at a moment of its own. Moments are counted from our first renaming on, before and after our calls;
    at the first one, the user saves another file of the set too.
    """

    def __init__(self, root: Path, moments: tuple[int, ...], *, by_rename: bool) -> None:
        super().__init__(root, Fate())
        self.file = root / "f"
        self.saved, self.read, self.saved_again = moments
        self.by_rename = by_rename
        self.moment = 0
        self.seen = b""

    def exchange(self, folder: int, one: str, other: str) -> None:
        self.watch = self.act
        super().exchange(folder, one, other)

    def move(self, folder: int, name: str, to: str) -> None:
        self.watch = self.act
        super().move(folder, name, to)

    def act(self) -> None:
        if self.moment == 0:
            (self.root / "other").write_bytes(b"theirs")
        if self.moment == self.saved:
            self.save(self.content() + b"first\n")
        if self.moment == self.read:
            self.seen = self.content()
        if self.moment == self.saved_again:
            self.save(self.seen + b"second\n")
        self.moment += 1

    def content(self) -> bytes:
        return self.file.read_bytes() if self.file.exists() else b""

    def save(self, data: bytes) -> None:
        if self.by_rename:
            replaced_by_rename(self.file, data)
        else:
            self.file.write_bytes(data)


@pytest.mark.promise("CHG-20")
@pytest.mark.parametrize("by_rename", [True, False])
@pytest.mark.parametrize(
    "edit",
    [update("f", b"old\n", b"new\n"), delete("f", b"old\n"), create("f", b"new\n")],
    ids=lambda edit: edit.op,
)
def test_a_save_based_on_what_a_change_showed_for_a_moment_loses_no_earlier_save(
    in_memory: Path, edit: FileEdit, by_rename: bool
) -> None:
    bench = open_bench(in_memory)
    for moments in combinations_with_replacement(range(MOMENTS), 3):
        for path in bench.root.iterdir():
            path.unlink()
        (bench.root / "other").write_bytes(b"other")
        if edit.old is not None:
            (bench.root / "f").write_bytes(edit.old)
        disk = Saving(bench.root, moments, by_rename=by_rename)
        meddled(bench, disk, edit, update("other", b"other", b"new"))
        while disk.moment < MOMENTS:
            disk.act()
        disk.close()
        kept = b"".join(path.read_bytes() for path in bench.root.iterdir())
        assert b"first\n" in kept, moments
        assert not temporaries(bench.root)
    bench.close()


@pytest.mark.promise("CHG-20")
@pytest.mark.parametrize("offered", [True, False])
def test_what_somebody_creates_right_before_us_stays(bench: Bench, offered: bool) -> None:
    file = bench.root / "deep" / "f"
    disk = Meddling("move" if offered else "link", lambda: file.write_bytes(b"theirs"), offered=offered)
    assert meddled(bench, disk, create("deep/f", b"new")).reason == "file_exists"
    assert file.read_bytes() == b"theirs"
    assert names(bench.root) == ["deep", "deep/f"]


@pytest.mark.promise("CHG-20")
def test_permissions_set_in_the_last_moment_stay(bench: Bench) -> None:
    file = bench.root / "f"
    file.write_bytes(b"old")
    problem = meddled(bench, Meddling("exchange", lambda: file.chmod(0o755)), update("f", b"old", b"new"))
    assert problem.reason == "stale_file"
    assert stat.S_IMODE(file.stat().st_mode) == 0o755
    assert file.read_bytes() == b"old"


@pytest.mark.promise("CHG-21")
def test_a_late_write_through_an_open_handle_is_kept_as_a_copy(bench: Bench) -> None:
    file = bench.root / "f"
    file.write_bytes(b"old")
    with file.open("ab") as handle:
        change_set = ChangeSet((update("f", b"old", b"new"),))
        with applying(bench.session, bench.workspace, change_set) as applied:
            handle.write(b" and more")
            handle.flush()
            bench.session.append(applied)
    assert file.read_bytes() == b"new"
    kept = bench.events()[-1]
    assert isinstance(kept, CopyKept)
    assert (bench.root / kept.copy_path).read_bytes() == b"old and more"
    assert names(bench.root) == sorted(["f", kept.copy_path])


@pytest.mark.parametrize("offered", [True, False])
def test_without_an_atomic_exchange_changes_are_made_too(bench: Bench, offered: bool) -> None:
    (bench.root / "f").write_bytes(b"old")
    (bench.root / "g").write_bytes(b"g")
    edits = (update("f", b"old", b"new"), create("h", b"h"), delete("g", b"g"))
    disk = Meddling("", lambda: None, offered=offered)
    apply(bench.session, bench.workspace, ChangeSet(edits), disk=disk)
    assert (bench.root / "f").read_bytes() == b"new"
    assert names(bench.root) == ["f", "h"]


# The lock


def test_who_holds_the_lock_is_named(bench: Bench) -> None:
    folder = bench.session.log.folder
    with workspace_lock(folder, "session s_other") as held:
        held.note({})
        with (
            pytest.raises(StorageBusy, match=rf"session s_other, process {os.getpid()}"),
            workspace_lock(folder, "us", seconds=0.02),
        ):
            pass
    run(bench, create("f", b"new"))


HOLDER = """
import sys
from pathlib import Path
from handrail.storage.locks import workspace_lock
with workspace_lock(Path(sys.argv[1]), "another"):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_elsewhere(folder: Path) -> Iterator[None]:
    """Another process has the lock."""
    words = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin
        assert other.stdout
        assert other.stdout.readline() == b"held\n"
        yield
        other.stdin.close()


@pytest.mark.anyio
async def test_waiting_for_another_process_can_be_cancelled(bench: Bench) -> None:
    folder = bench.session.log.folder
    change_set = ChangeSet((create("f", b"new"),), Origin(turn_id="t_1", call_id="c_1"))
    with held_elsewhere(folder):
        with ExitStack() as held, anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(apply_when_free, held, bench.session, bench.workspace, change_set)
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()
        with pytest.raises(StorageBusy), workspace_lock(folder, "us", seconds=0):
            pass
    assert names(bench.root) == []
    with ExitStack() as held:
        bench.session.append(await apply_when_free(held, bench.session, bench.workspace, change_set))
    assert names(bench.root) == ["f"]


# Recovery


@pytest.mark.promise("CHG-5")
@pytest.mark.parametrize(
    ("on_disk", "beside", "word", "left"),
    [
        (b"new", None, "applied", {"f": b"new"}),
        (b"new", b"old", "applied", {"f": b"new"}),
        (b"old", None, "not made", {"f": b"old"}),
        (b"old", b"new", "applied", {"f": b"new"}),
        (b"other", b"new", "Conflict", {"f": b"other"}),
        (b"new", b"other", "Conflict", {"f": b"other", "f.conflict-c_1": b"other"}),
        (None, b"new", "Conflict", {}),
    ],
)
def test_recovery_goes_by_what_the_disk_says(
    bench: Bench, on_disk: bytes | None, beside: bytes | None, word: str, left: dict[str, bytes]
) -> None:
    if on_disk is not None:
        (bench.root / "f").write_bytes(on_disk)
    if beside is not None:
        (bench.root / ".c_1-0.handrail-tmp").write_bytes(beside)
    change = FileChange(path="f", op="update", old_sha256=sha256(b"old"), new_sha256=sha256(b"new"))
    prepare(bench, change, b"old", b"new")
    (outcome,) = recover(bench.session, bench.workspace)
    assert word in (outcome.why if isinstance(outcome, ChangeAbandoned) else outcome.type)
    assert {name: (bench.root / name).read_bytes() for name in names(bench.root)} == left
    bench.session.append(outcome)
    assert recover(bench.session, bench.workspace) == []


@pytest.mark.promise("CHG-5")
def test_a_set_of_which_one_file_is_somebody_elses_goes_back(bench: Bench) -> None:
    (bench.root / "a").write_bytes(b"A")
    (bench.root / "b").write_bytes(b"theirs")
    prepare(
        bench,
        FileChange(path="a", op="update", old_sha256=sha256(b"a"), new_sha256=sha256(b"A")),
        FileChange(path="b", op="update", old_sha256=sha256(b"b"), new_sha256=sha256(b"B")),
        FileChange(path="gone", op="delete", old_sha256=sha256(b"g"), old_mode=0o600),
        b"a", b"b", b"g",
    )  # fmt: skip
    (outcome,) = recover(bench.session, bench.workspace)
    assert isinstance(outcome, ChangeAbandoned)
    assert "b" in outcome.why
    assert (bench.root / "a").read_bytes() == b"a"
    assert (bench.root / "b").read_bytes() == b"theirs"
    assert (bench.root / "gone").read_bytes() == b"g"
    assert stat.S_IMODE((bench.root / "gone").stat().st_mode) == 0o600


@pytest.mark.promise("CHG-5")
def test_recovery_without_the_old_content_ends_and_says_what_is_lost(bench: Bench) -> None:
    """As after a repair of the log: the session opens, and no content is invented."""
    (bench.root / "a").write_bytes(b"A")
    (bench.root / "b").write_bytes(b"theirs")
    prepare(
        bench,
        FileChange(path="a", op="update", old_sha256=sha256(b"a"), new_sha256=sha256(b"A")),
        FileChange(path="b", op="update", old_sha256=sha256(b"b"), new_sha256=sha256(b"B")),
    )
    (outcome,) = recover(bench.session, bench.workspace)
    assert isinstance(outcome, ChangeAbandoned)
    assert "The earlier content of a is no longer stored" in outcome.why
    assert (bench.root / "a").read_bytes() == b"A"
    bench.session.append(outcome)
    run(bench, create("new", b"new"))


@pytest.mark.promise("CHG-22")
def test_another_session_finishes_the_files_and_the_first_is_told(bench: Bench, tmp_path: Path) -> None:
    (bench.root / "f").write_bytes(b"old")
    (bench.root / ".c_1-0.handrail-tmp").write_bytes(b"new")
    change = FileChange(path="f", op="update", old_sha256=sha256(b"old"), new_sha256=sha256(b"new"))
    prepare(bench, change, b"old", b"new")
    other = open_session(tmp_path / "log", bench.root, "auto", "hello")
    apply(other, bench.workspace, ChangeSet((update("f", b"new", b"newer"),)))
    assert (bench.root / "f").read_bytes() == b"newer"
    other.release()
    other.log.close()
    (outcome,) = recover(bench.session, bench.workspace)
    assert outcome == ChangeApplied(change_id="c_1")


def test_what_a_process_left_that_died_before_its_intention_was_written_is_removed(bench: Bench) -> None:
    (bench.root / "made").mkdir()
    (bench.root / "made" / ".c_1-0.handrail-tmp").write_bytes(b"ne")
    prepared = ChangePrepared(
        turn_id="t_1",
        change_id="c_1",
        call_id="c",
        files=(FileChange(path="made/f", op="create", new_sha256=sha256(b"new")),),
        folders=("made",),
    )
    with (
        pytest.raises(KeyboardInterrupt),
        workspace_lock(bench.session.log.folder, "the dead") as held,
    ):
        held.note({"change": pack_event(prepared)})
        raise KeyboardInterrupt
    assert recover(bench.session, bench.workspace) == []
    assert names(bench.root) == []


def test_a_log_of_before_the_crash_does_not_cost_the_old_contents(bench: Bench) -> None:
    changes = (
        FileChange(path="a", op="update", old_sha256=sha256(b"old"), new_sha256=sha256(b"new")),
        FileChange(path="b", op="delete", old_sha256=sha256(b"old")),
        FileChange(path="c", op="update", old_sha256=sha256(b"old"), new_sha256=sha256(b"new")),
    )
    on_disk = {"a": b"new", ".c_1-0.handrail-tmp": b"old", ".c_1-1.handrail-tmp": b"old"}
    for name, data in (on_disk | {"c": b"old", ".c_1-2.handrail-tmp": b"new"}).items():
        (bench.root / name).write_bytes(data)
    prepared = ChangePrepared(turn_id="t_1", change_id="c_1", call_id="c", files=changes)
    with (
        pytest.raises(KeyboardInterrupt),
        workspace_lock(bench.session.log.folder, "the dead") as held,
    ):
        held.note({"change": pack_event(prepared)})
        raise KeyboardInterrupt
    assert recover(bench.session, bench.workspace) == []
    assert {name: (bench.root / name).read_bytes() for name in names(bench.root)} == dict.fromkeys(
        "abc", b"old"
    )


def test_recovery_removes_the_folders_that_a_set_emptied(bench: Bench) -> None:
    run(bench, create("deep/er/f", b"new"))
    change_set = ChangeSet((delete("deep/er/f", b"new"),))
    with (
        pytest.raises(KeyboardInterrupt),
        applying(bench.session, bench.workspace, change_set, emptied=("deep/er", "deep")),
    ):
        raise KeyboardInterrupt
    (outcome,) = recover(bench.session, bench.workspace)
    assert isinstance(outcome, ChangeApplied)
    assert names(bench.root) == []


def test_a_file_that_an_editor_has_renamed_to_save_it_is_stale(bench: Bench) -> None:
    class Editor(Disk):
        def create(self, folder: int, name: str, mode: int) -> int:
            if (bench.root / "g").exists():
                (bench.root / "g").rename(bench.root / "g~")
            return super().create(folder, name, mode)

    for name in "fg":
        (bench.root / name).write_bytes(b"old")
    edits = (update("f", b"old", b"new"), update("g", b"old", b"new"))
    with pytest.raises(PathProblem) as refused:
        apply(bench.session, bench.workspace, ChangeSet(edits), disk=Editor())
    assert refused.value.reason == "stale_file"
    assert names(bench.root) == ["f", "g~"]


def test_recovery_of_a_creation_that_did_not_happen(bench: Bench) -> None:
    prepare(bench, FileChange(path="f", op="create", new_sha256=sha256(b"new")), b"new")
    (outcome,) = recover(bench.session, bench.workspace)
    assert isinstance(outcome, ChangeAbandoned)
    assert "not made" in outcome.why


def prepare(bench: Bench, *parts: FileChange | bytes) -> None:
    """A change set that was begun by somebody who is dead."""
    files = tuple(part for part in parts if isinstance(part, FileChange))
    blobs = [part for part in parts if isinstance(part, bytes)]
    prepared = ChangePrepared(turn_id="t_1", change_id="c_1", call_id="c", files=files)
    bench.session.append(prepared, blobs=blobs)
