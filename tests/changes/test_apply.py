import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handrail.changes.apply import apply, recover
from handrail.changes.matching import Edit
from handrail.changes.proposal import Proposal, Replace, Whole, propose
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import ChangeAbandoned, ChangeApplied, ChangePrepared, ToolFinished
from handrail.protocol.values import FileChange, FileSeen
from handrail.sessions.files_seen import FilesSeen
from handrail.sessions.handle import Session
from handrail.workspace.files import Workspace
from tests.tools.calls import Bench, open_bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = open_bench(tmp_path)
    yield bench
    bench.close()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def show(bench: Bench, path: str, *, whole: bool = True) -> str:
    """Record that the model has seen a file as it is now."""
    sha256 = bench.workspace.sha256(path) or ""
    seen = FileSeen(path=path, sha256=sha256, how="agent", whole=whole)
    bench.session.append(ToolFinished(turn_id="t_1", call_id="c", tool="read", status="ok", files=(seen,)))
    return sha256


def proposed(bench: Bench, form: Replace | Whole) -> Proposal:
    return propose(bench.workspace, bench.session.state.files, form)


def refused(bench: Bench, form: Replace | Whole) -> PathProblem:
    """The refusal, after a look that no file was touched."""
    before = {name: picture(bench.root / name) for name in os.listdir(bench.root)}
    with pytest.raises(PathProblem) as caught:
        proposed(bench, form)
    assert {name: picture(bench.root / name) for name in os.listdir(bench.root)} == before
    return caught.value


def picture(path: Path) -> tuple[bytes, int, int, int]:
    found = path.stat()
    return path.read_bytes(), found.st_mode, found.st_mtime_ns, found.st_ino


def edit(search: str, replace: str, base_hash: str = "", path: str = "f") -> Replace:
    return Replace(path, (Edit(search, replace),), base_hash)


# The hash rule


@pytest.mark.promise("CHG-2")
def test_a_file_the_model_has_not_seen_cannot_be_changed(bench: Bench) -> None:
    (bench.root / "f").write_text("old\n")
    for form in (edit("old", "new"), Whole("f", "new\n")):
        problem = refused(bench, form)
        assert problem.reason == "no_hash"
        assert "Read it" in str(problem)


@pytest.mark.promise("CHG-3")
def test_a_file_that_changed_since_it_was_seen_is_stale(bench: Bench) -> None:
    (bench.root / "f").write_text("old\n")
    shown = show(bench, "f")
    (bench.root / "f").write_text("old and new\n")
    for form in (edit("old", "new"), edit("old", "new", shown[:12]), Whole("f", "new\n")):
        problem = refused(bench, form)
        assert problem.reason == "stale_file"
        assert shown[:12] in str(problem)
        assert "Read it again" in str(problem)


@pytest.mark.promise("CHG-2")
def test_a_hash_that_was_never_shown_is_no_leave_to_change(bench: Bench) -> None:
    """As from a command that computes it."""
    (bench.root / "f").write_text("old\n")
    for form in (edit("old", "new", digest(b"old\n")[:12]), Whole("f", "new\n", digest(b"old\n"))):
        assert refused(bench, form).reason == "no_hash"


def test_the_hash_of_what_was_shown_may_be_given(bench: Bench) -> None:
    (bench.root / "f").write_text("old\n")
    shown = show(bench, "f")
    assert proposed(bench, edit("old", "new", shown[:12])).new == b"new\n"
    assert proposed(bench, Whole("f", "new\n", shown)).new == b"new\n"
    assert refused(bench, edit("old", "new", "0" * 12)).reason == "stale_file"


@pytest.mark.parametrize("given", ["abc", "not hex at all", "0" * 11])
def test_a_hash_that_is_none_is_refused(bench: Bench, given: str) -> None:
    (bench.root / "f").write_text("old\n")
    assert refused(bench, edit("old", "new", given)).reason == "no_hash"


def test_a_file_seen_in_part_can_be_edited_and_not_rewritten(bench: Bench) -> None:
    (bench.root / "f").write_text("old\nmore\n")
    show(bench, "f", whole=False)
    assert proposed(bench, edit("old", "new")).new == b"new\nmore\n"
    assert refused(bench, Whole("f", "new\n")).reason == "no_hash"
    assert refused(bench, Whole("f", "new\n", digest(b"old\nmore\n")[:12])).reason == "no_hash"


def test_editing_a_part_does_not_make_the_rest_seen(bench: Bench) -> None:
    (bench.root / "f").write_text("old\nmore\n")
    show(bench, "f", whole=False)
    applied(bench, edit("old", "new"))
    assert refused(bench, Whole("f", "gone\n")).reason == "no_hash"
    show(bench, "f", whole=True)
    show(bench, "f", whole=False)
    applied(bench, Whole("f", "all of it\n"))
    assert (bench.root / "f").read_text() == "all of it\n"


# Other refusals


def test_emptying_a_file_is_refused(bench: Bench) -> None:
    (bench.root / "f").write_text("old\n")
    show(bench, "f")
    assert refused(bench, edit("old\n", "")).reason == "invalid_arguments"
    assert refused(bench, Whole("f", " \n")).reason == "invalid_arguments"


def test_writing_what_is_there_is_no_change(bench: Bench) -> None:
    (bench.root / "f").write_text("old\n")
    show(bench, "f")
    assert refused(bench, Whole("f", "old\n")).reason == "no_change"


def test_editing_a_missing_file_is_refused(bench: Bench) -> None:
    assert refused(bench, edit("old", "new")).reason == "file_missing"
    assert refused(bench, Whole("f", "new", "0" * 12)).reason == "file_missing"


def test_a_path_outside_is_refused_here_too(bench: Bench) -> None:
    assert refused(bench, Whole("../f", "new")).reason == "outside_workspace"


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_no_editor_could_save_is_refused(bench: Bench, text: str) -> None:
    assert refused(bench, Whole("f", text)).reason == "invalid_arguments"


def test_a_text_over_the_limit_is_refused(bench: Bench) -> None:
    assert refused(bench, Whole("f", "x" * 1_000_001)).reason == "too_large"


# What survives


@pytest.mark.promise("CHG-4")
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_line_endings_bom_and_mode_survive_every_form(bench: Bench, bom: bytes) -> None:
    file = bench.root / "f"
    for form, result in (
        (edit("b\nc", "B\nC"), b"a\r\nB\r\nC\r\n"),
        (Whole("f", "x\ny"), b"x\r\ny\r\n"),
    ):
        file.write_bytes(bom + b"a\r\nb\r\nc\r\n")
        file.chmod(0o640)
        show(bench, "f")
        applied(bench, form)
        assert file.read_bytes() == bom + result
        assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_missing_final_line_break_stays_missing_after_an_edit(bench: Bench) -> None:
    (bench.root / "f").write_text("a\nb")
    show(bench, "f")
    applied(bench, edit("a", "c"))
    assert (bench.root / "f").read_bytes() == b"c\nb"


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.text(alphabet="ab\n", min_size=1, max_size=20), new=st.text(alphabet="ab\n", max_size=20))
def test_whatever_is_accepted_is_on_disk_and_whatever_is_refused_is_not(
    bench: Bench, data: str, new: str
) -> None:
    file = bench.root / "f"
    file.write_text(data)
    show(bench, "f")
    before = picture(file)
    try:
        applied(bench, Whole("f", new))
    except PathProblem:
        assert picture(file) == before
    else:
        assert file.read_text() in (new, new + "\n")


def applied(bench: Bench, form: Replace | Whole) -> None:
    proposal = proposed(bench, form)
    bench.session.append(apply(bench.session, bench.workspace, proposal, turn_id="t_1", call_id="c_1"))


# Applying and recovering


def test_both_contents_are_in_the_log_before_the_file_is_touched(bench: Bench) -> None:
    (bench.root / "f").write_text("old\n")
    show(bench, "f")
    applied(bench, edit("old", "new"))
    prepared, done = bench.events()[-2:]
    assert isinstance(prepared, ChangePrepared)
    assert isinstance(done, ChangeApplied)
    (change,) = prepared.files
    assert bench.session.log.blob(change.old_sha256) == b"old\n"
    assert bench.session.log.blob(change.new_sha256) == b"new\n"
    assert (change.added, change.removed) == (1, 1)


def test_a_changed_file_can_be_changed_again_without_reading(bench: Bench) -> None:
    applied(bench, Whole("f", "one\n"))
    applied(bench, edit("one", "two"))
    applied(bench, Whole("f", "three\n"))
    assert (bench.root / "f").read_text() == "three\n"


def test_a_file_changed_after_the_proposal_is_not_overwritten(bench: Bench) -> None:
    (bench.root / "f").write_text("old\n")
    show(bench, "f")
    proposal = proposed(bench, edit("old", "new"))
    (bench.root / "f").write_text("somebody else's\n")
    with pytest.raises(PathProblem) as caught:
        apply(bench.session, bench.workspace, proposal, turn_id="t_1", call_id="c_1")
    assert caught.value.reason == "stale_file"
    assert (bench.root / "f").read_text() == "somebody else's\n"
    assert not bench.session.state.files.prepared


def test_a_file_created_after_the_proposal_is_not_overwritten(bench: Bench) -> None:
    proposal = proposed(bench, Whole("f", "new\n"))
    (bench.root / "f").write_text("somebody else's\n")
    with pytest.raises(PathProblem):
        apply(bench.session, bench.workspace, proposal, turn_id="t_1", call_id="c_1")
    assert (bench.root / "f").read_text() == "somebody else's\n"


def test_a_write_that_fails_is_recorded_as_not_made(bench: Bench) -> None:
    (bench.root / "file").write_text("in the way")
    proposal = proposed(bench, Whole("file/below", "new\n"))
    with pytest.raises(OSError, match="Not a directory"):
        apply(bench.session, bench.workspace, proposal, turn_id="t_1", call_id="c_1")
    assert isinstance(bench.events()[-1], ChangeAbandoned)


@pytest.mark.promise("CHG-5")
@pytest.mark.parametrize(
    ("on_disk", "kind", "word"),
    [
        (b"new", ChangeApplied, ""),
        (b"old", ChangeAbandoned, "not made"),
        (b"other", ChangeAbandoned, "Conflict"),
        (None, ChangeAbandoned, "Conflict"),
    ],
)
def test_recovery_says_what_the_disk_says(bench: Bench, on_disk: bytes | None, kind: type, word: str) -> None:
    if on_disk is not None:
        (bench.root / "f").write_bytes(on_disk)
    leftover = bench.root / ".c_1.handrail-tmp"
    leftover.write_bytes(b"ne")
    old, new = digest(b"old"), digest(b"new")
    prepare(bench.session, FileChange(path="f", op="update", old_sha256=old, new_sha256=new))
    (outcome,) = recover(bench.session, bench.workspace)
    assert isinstance(outcome, kind)
    assert not isinstance(outcome, ChangeAbandoned) or word in outcome.why
    assert not leftover.exists()
    bench.session.append(outcome)
    assert recover(bench.session, bench.workspace) == []


def test_recovery_of_a_creation_that_did_not_happen(bench: Bench) -> None:
    prepare(bench.session, FileChange(path="f", op="create", new_sha256=digest(b"new")))
    (outcome,) = recover(bench.session, bench.workspace)
    assert isinstance(outcome, ChangeAbandoned)
    assert "not made" in outcome.why


def prepare(session: Session, change: FileChange) -> None:
    session.append(ChangePrepared(turn_id="t_1", change_id="c_1", call_id="c", files=(change,)))


def test_the_registry_alone_decides_what_was_seen(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    with pytest.raises(PathProblem) as caught:
        propose(Workspace(tmp_path), FilesSeen(), edit("old", "new"))
    assert caught.value.reason == "no_hash"
