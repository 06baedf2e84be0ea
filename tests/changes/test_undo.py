"""Taking change sets back: one net change a file, never over what somebody else wrote since."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.changes.apply import apply
from handrail.changes.change_set import ChangeSet, FileEdit, Op, Origin
from handrail.changes.rewind import plan_rewind, plan_rollback
from handrail.changes.undo import Plan, plan_undo, undo_change_set
from handrail.protocol.errors import Undecided, UsageProblem
from handrail.protocol.events import ChangeAbandoned, ChangePrepared, SessionCopied, SessionDeleted
from handrail.protocol.values import FileChange
from handrail.sessions.change_history import PastChange, session_changes
from handrail.sessions.storage_use import needed_hashes, prune
from tests.tools.calls import Bench, open_bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = open_bench(tmp_path)
    yield bench
    bench.close()


def write(bench: Bench, path: str, new: bytes | None) -> str:
    """The id of a change set that makes a file say this, or be gone."""
    file = bench.root / path
    old = file.read_bytes() if file.exists() else None
    op: Op = "create" if old is None else "delete" if new is None else "update"
    return applied(bench, FileEdit(path, op, old, new))


def applied(bench: Bench, *edits: FileEdit) -> str:
    return apply(bench.session, bench.workspace, ChangeSet(edits, Origin(turn_id="t_1"))).change_id


def changes(bench: Bench) -> list[PastChange]:
    return session_changes(bench.session.log, bench.session.id)


def rewind(bench: Bench, to: str) -> Plan:
    return plan_rewind(bench.session.log, bench.workspace, bench.session.id, to).plan


def carry_out(bench: Bench, plan: Plan, *, accept: tuple[str, ...] = (), leave: tuple[str, ...] = ()) -> None:
    change_set = undo_change_set(plan, accept=accept, leave=leave)
    assert change_set
    apply(bench.session, bench.workspace, change_set, emptied=plan.emptied)


@pytest.mark.promise("CHG-29")
def test_a_rewind_over_many_sets_touches_each_file_once(bench: Bench) -> None:
    (bench.root / "f").write_bytes(b"0")
    first = write(bench, "f", b"1")
    for number in range(2, 40):
        write(bench, "f", b"%d" % number)
        write(bench, "g", b"%d" % number)
    plan = rewind(bench, first)
    assert {(file.path, file.then) for file in plan.files} == {("f", b"0"), ("g", None)}
    carry_out(bench, plan)
    assert (bench.root / "f").read_bytes() == b"0"
    assert os.listdir(bench.root) == ["f"]
    assert len(changes(bench)[-1].prepared.files) == 2


@pytest.mark.promise("CHG-25")
def test_bytes_permissions_and_folders_come_back(bench: Bench) -> None:
    script = bench.root / "tool.sh"
    script.write_bytes(b"\xef\xbb\xbfold\r\nlines")
    script.chmod(0o751)
    gone = write(bench, "tool.sh", None)
    write(bench, "new/deep/file", b"made")
    carry_out(bench, rewind(bench, gone))
    assert script.read_bytes() == b"\xef\xbb\xbfold\r\nlines"
    assert script.stat().st_mode & 0o777 == 0o751
    assert os.listdir(bench.root) == ["tool.sh"]
    carry_out(bench, rewind(bench, changes(bench)[-1].id))
    assert (bench.root / "new/deep/file").read_bytes() == b"made"
    assert not script.exists()


@pytest.mark.promise("POL-27")
def test_files_of_the_running_handrail_are_not_taken_back(bench: Bench) -> None:
    made = write(bench, "src/file", b"made")
    write(bench, "other", b"made")
    bench.workspace.program_paths = (bench.root / "src",)  # a Handrail that was put there since
    plan = rewind(bench, made)
    assert [(file.path, file.kind) for file in plan.files] == [("other", "restore"), ("src/file", "conflict")]
    with pytest.raises(Undecided):
        carry_out(bench, plan)
    carry_out(bench, plan, leave=("src/file",))
    assert (bench.root / "src/file").read_bytes() == b"made"
    assert not (bench.root / "other").exists()


def test_a_folder_in_which_something_else_is_stays(bench: Bench) -> None:
    made = write(bench, "new/file", b"made")
    (bench.root / "new" / "theirs").write_bytes(b"x")
    carry_out(bench, rewind(bench, made))
    assert os.listdir(bench.root / "new") == ["theirs"]


def test_a_move_is_taken_back_with_its_permissions(bench: Bench) -> None:
    (bench.root / "a").write_bytes(b"text")
    (bench.root / "a").chmod(0o700)
    moved = applied(bench, FileEdit("a", "move", b"text", b"text", destination="b"))
    carry_out(bench, rewind(bench, moved))
    assert (bench.root / "a").stat().st_mode & 0o777 == 0o700
    assert os.listdir(bench.root) == ["a"]


def test_permissions_that_the_user_set_since_stay(bench: Bench) -> None:
    (bench.root / "f").write_bytes(b"old")
    changed = write(bench, "f", b"new")
    (bench.root / "f").chmod(0o755)
    carry_out(bench, rewind(bench, changed))
    assert (bench.root / "f").read_bytes() == b"old"
    assert (bench.root / "f").stat().st_mode & 0o777 == 0o755


@pytest.mark.promise("CHG-28")
def test_other_lines_that_somebody_changed_since_are_kept_by_a_merge_that_is_accepted(bench: Bench) -> None:
    file = bench.root / "f"
    file.write_bytes(b"one\ntwo\nthree\n")
    changed = write(bench, "f", b"ONE\ntwo\nthree\n")
    file.write_bytes(b"ONE\ntwo\nthree\nby hand\n")
    plan = rewind(bench, changed)
    (found,) = plan.files
    assert (found.kind, found.then) == ("merge", b"one\ntwo\nthree\nby hand\n")
    with pytest.raises(Undecided) as caught:
        undo_change_set(plan)
    assert "-ONE" in caught.value.conflicts[0].diff
    assert file.read_bytes() == b"ONE\ntwo\nthree\nby hand\n"
    carry_out(bench, plan, accept=("f",))
    assert file.read_bytes() == b"one\ntwo\nthree\nby hand\n"
    carry_out(bench, rewind(bench, changes(bench)[-1].id))
    assert file.read_bytes() == b"ONE\ntwo\nthree\nby hand\n", "the merge can be taken back too"


@pytest.mark.promise("CHG-28")
def test_an_edit_of_the_user_between_two_sets_is_not_lost_by_a_rewind_over_both(bench: Bench) -> None:
    file = bench.root / "f"
    file.write_bytes(b"1\n2\n3\n4\n5\n")
    first = write(bench, "f", b"one\n2\n3\n4\n5\n")
    file.write_bytes(b"one\n2\nby hand\n4\n5\n")
    write(bench, "f", b"one\n2\nby hand\n4\nfive\n")
    (found,) = rewind(bench, first).files
    assert (found.kind, found.then) == ("merge", b"1\n2\nby hand\n4\n5\n")


@pytest.mark.promise("CHG-28")
@pytest.mark.parametrize("theirs", [b"two\nby hand\n", b"\0binary", None])
def test_the_same_lines_changed_since_are_a_conflict_and_can_only_be_left(
    bench: Bench, theirs: bytes | None
) -> None:
    file = bench.root / "f"
    file.write_bytes(b"one\n")
    (bench.root / "g").write_bytes(b"g")
    changed = applied(bench, FileEdit("f", "update", b"one\n", b"two\n"), FileEdit("g", "update", b"g", b"G"))
    file.unlink() if theirs is None else file.write_bytes(theirs.replace(b"two", b"TWO"))
    before = file.read_bytes() if theirs else None
    plan = rewind(bench, changed)
    with pytest.raises(Undecided):
        undo_change_set(plan, accept=("f",))
    carry_out(bench, plan, leave=("f",))
    assert (file.read_bytes() if file.exists() else None) == before
    assert (bench.root / "g").read_bytes() == b"g"


@pytest.mark.promise("CHG-28")
def test_what_somebody_has_taken_back_by_hand_is_no_conflict(bench: Bench) -> None:
    for name in ("changed", "deleted", "other"):
        (bench.root / name).write_bytes(b"old")
    edits = (
        FileEdit("made", "create", None, b"new"),
        FileEdit("deleted", "delete", b"old", None),
        FileEdit("changed", "update", b"old", b"new"),
        FileEdit("other", "update", b"old", b"new"),
    )
    apply(bench.session, bench.workspace, ChangeSet(edits))
    (bench.root / "made").unlink()
    (bench.root / "deleted").write_bytes(b"old")
    (bench.root / "changed").write_bytes(b"old")
    (change,) = [event for event in bench.events() if isinstance(event, ChangePrepared)]
    plan = plan_undo(bench.session.log, bench.workspace, [change])
    assert [(file.path, file.kind) for file in plan.files] == [("other", "restore")]


def test_a_created_file_that_somebody_filled_since_is_not_deleted(bench: Bench) -> None:
    made = write(bench, "f", b"made")
    (bench.root / "f").write_bytes(b"theirs")
    (found,) = rewind(bench, made).files
    assert found.kind == "conflict"


def test_a_file_that_became_a_link_is_left_alone(bench: Bench, tmp_path: Path) -> None:
    (bench.root / "f").write_bytes(b"old")
    changed = write(bench, "f", b"new")
    (bench.root / "f").unlink()
    (tmp_path / "outside").write_bytes(b"new")
    (bench.root / "f").symlink_to(tmp_path / "outside")
    (found,) = rewind(bench, changed).files
    assert found.kind == "conflict"
    assert (tmp_path / "outside").read_bytes() == b"new"


@pytest.mark.parametrize("path", ["../outside", "/etc/hostname", ".git/config", "a/../../outside"])
def test_a_log_that_names_files_elsewhere_moves_nothing(bench: Bench, path: str) -> None:
    """As one that somebody made up."""
    hostile = ChangePrepared(
        turn_id="t",
        change_id="c_x",
        call_id="",
        files=(FileChange(path=path, op="delete", old_sha256="0" * 64),),
    )
    (found,) = plan_undo(bench.session.log, bench.workspace, [hostile]).files
    assert found.kind == "conflict"


def test_one_set_of_several_is_rolled_back_alone(bench: Bench) -> None:
    one = write(bench, "f", b"f")
    write(bench, "g", b"g")
    plan = plan_rollback(bench.session.log, bench.workspace, bench.session.id, one).plan
    carry_out(bench, plan)
    assert os.listdir(bench.root) == ["g"]
    assert [change.status for change in changes(bench)] == ["taken back", "applied", "applied"]
    with pytest.raises(UsageProblem, match="already undone"):
        plan_rollback(bench.session.log, bench.workspace, bench.session.id, one)


def test_what_was_never_applied_is_said_to_be_so(bench: Bench) -> None:
    write(bench, "f", b"f")
    never = ChangePrepared(turn_id="t_1", change_id="c_never", call_id="", files=())
    bench.session.append(never, ChangeAbandoned(change_id="c_never", why="The disk was full."))
    with pytest.raises(UsageProblem, match=r"never applied.*disk was full"):
        plan_rollback(bench.session.log, bench.workspace, bench.session.id, "c_never")
    going = plan_rewind(bench.session.log, bench.workspace, bench.session.id, "c_never")
    assert "c_never was never applied" in going.detail


def test_changes_of_an_imported_session_are_not_taken_back_here(bench: Bench) -> None:
    one = write(bench, "f", b"f")
    bench.session.append(SessionCopied(how="import"))
    assert changes(bench)[0].status == "elsewhere"
    assert rewind(bench, one).files == ()


def test_what_is_not_kept_any_more_is_said_to_be_lost(bench: Bench) -> None:
    (bench.root / "f").write_bytes(b"old")
    file = FileChange(path="f", op="update", old_sha256="0" * 64, new_sha256="", restorable=False)
    change = ChangePrepared(turn_id="t", change_id="c_x", call_id="", files=(file,), by="command")
    (bench.root / "f").unlink()
    (found,) = plan_undo(bench.session.log, bench.workspace, [change]).files
    assert (found.kind, found.path) == ("lost", "f")


# Storage


@pytest.mark.promise("STORE-6")
def test_pruning_drops_the_oldest_and_nothing_that_a_rewind_needs(bench: Bench) -> None:
    log = bench.session.log
    (bench.root / "f").write_bytes(b"old")
    first = write(bench, "f", b"new")
    for number in range(20):
        log.keep(os.urandom(1000) + b"raw answer %d" % number)
    later = 10_000_000_000.0
    assert log.contents.room().contents == 22
    dropped = prune(log, limit=10_000, now=later)
    assert dropped.contents >= 11
    assert log.contents.room().size <= 10_000
    prune(log, limit=1, now=later)
    assert log.contents.room().contents == len(needed_hashes(log)) == 2
    carry_out(bench, rewind(bench, first))
    assert (bench.root / "f").read_bytes() == b"old"


def test_what_an_unfinished_change_needs_is_not_pruned(bench: Bench) -> None:
    file = FileChange(path="f", op="update", old_sha256="1" * 64, new_sha256="2" * 64)
    begun = ChangePrepared(turn_id="t_1", change_id="c_1", call_id="x", files=(file,))
    bench.session.append(begun)
    assert {"1" * 64, "2" * 64} <= needed_hashes(bench.session.log)


def test_what_was_stored_a_moment_ago_is_not_pruned(bench: Bench) -> None:
    bench.session.log.keep(b"a commit of this very moment may speak of it")
    assert prune(bench.session.log, limit=1).contents == 0


def test_contents_of_deleted_sessions_can_go(bench: Bench) -> None:
    write(bench, "f", b"f")
    assert needed_hashes(bench.session.log)
    bench.session.append(SessionDeleted())
    assert not needed_hashes(bench.session.log)
