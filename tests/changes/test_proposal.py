"""What is proposed, and what is refused before anything is written."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handrail.changes.apply import apply
from handrail.changes.change_set import ChangeSet, FileEdit, Origin
from handrail.changes.forms.edit_forms import Delete, Edit, Form, LineEdit, Lines, Move, Patch, Replace, Whole
from handrail.changes.proposal import Proposal, ShownVersions, propose, refuse_link
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import ToolFinished, TurnStarted
from handrail.protocol.values import FileSeen
from handrail.sessions.files_seen import FilesSeen
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


def together(bench: Bench, *forms: Form) -> Proposal:
    state = bench.session.state
    return propose(bench.workspace, ShownVersions(state.files, state.turns), forms)


def proposed(bench: Bench, form: Form) -> FileEdit:
    (edit,) = together(bench, form).edits
    return edit


def refused(bench: Bench, *forms: Form) -> PathProblem:
    """The refusal, after a look that no file was touched."""
    before = {name: picture(bench.root / name) for name in os.listdir(bench.root)}
    with pytest.raises(PathProblem) as caught:
        together(bench, *forms)
    assert {name: picture(bench.root / name) for name in os.listdir(bench.root)} == before
    return caught.value


def applied(bench: Bench, form: Form) -> None:
    edit = proposed(bench, form)
    apply(bench.session, bench.workspace, ChangeSet((edit,), Origin(turn_id="t_1", call_id="c_1")))


def picture(path: Path) -> tuple[bytes, int, int, int]:
    found = path.stat()
    return path.read_bytes(), found.st_mode, found.st_mtime_ns, found.st_ino


def edit(search: str, replace: str, base_hash: str = "", path: str = "f") -> Replace:
    return Replace(path, (Edit(search, replace),), base_hash)


EVERY_FORM: tuple[Form, ...] = (
    edit("old", "new"),
    Whole("f", "new\n"),
    Lines("f", (LineEdit("replace", 1, 1, ("new",), expected=("old",)),)),
    Patch("f", "@@ -1 +1 @@\n-old\n+new\n"),
    Delete("f"),
    Move("f", "g"),
)


# The hash rule


@pytest.mark.promise("CHG-2")
@pytest.mark.parametrize("form", EVERY_FORM)
def test_a_file_the_model_has_not_seen_cannot_be_changed(bench: Bench, form: Form) -> None:
    (bench.root / "f").write_text("old\n")
    problem = refused(bench, form)
    assert problem.reason == "no_hash"
    assert "Read f" in str(problem)


@pytest.mark.promise("CHG-3")
@pytest.mark.parametrize("form", EVERY_FORM)
def test_a_file_that_changed_since_it_was_seen_is_stale(bench: Bench, form: Form) -> None:
    (bench.root / "f").write_text("old\n")
    shown = show(bench, "f")
    (bench.root / "f").write_text("old\nand new\n")
    for each in (form, form._replace(base_hash=shown[:12])):
        problem = refused(bench, each)
        assert problem.reason == "stale_file"
        assert shown[:12] in str(problem)
        assert "Read it again" in str(problem)


@pytest.mark.promise("CHG-2")
@pytest.mark.parametrize("form", EVERY_FORM)
def test_a_hash_that_was_never_shown_is_no_leave_to_change(bench: Bench, form: Form) -> None:
    """As from a command that computes it."""
    (bench.root / "f").write_text("old\n")
    assert refused(bench, form._replace(base_hash=digest(b"old\n"))).reason == "no_hash"


@pytest.mark.promise("CHG-31")
@pytest.mark.parametrize("form", EVERY_FORM)
def test_a_hash_is_filled_in_only_in_the_turn_that_showed_the_file(bench: Bench, form: Form) -> None:
    (bench.root / "f").write_text("old\n")
    shown = show(bench, "f")
    assert together(bench, form).edits
    bench.session.append(TurnStarted(turn_id="t_2", number=2, model="scripted/one", mode="auto"))
    problem = refused(bench, form)
    assert problem.reason == "no_hash"
    assert "base_hash is missing" in str(problem)
    assert together(bench, form._replace(base_hash=shown[:12])).edits


def test_the_hash_of_what_was_shown_may_be_given(bench: Bench) -> None:
    (bench.root / "f").write_text("old\n")
    shown = show(bench, "f")
    assert proposed(bench, edit("old", "new", shown[:12])).new == b"new\n"
    assert proposed(bench, Whole("f", "new\n", shown.upper())).new == b"new\n"
    assert refused(bench, edit("old", "new", "0" * 12)).reason == "stale_file"


@pytest.mark.parametrize("given", ["abc", "not hex at all", "0" * 11])
def test_a_hash_that_is_none_is_refused(bench: Bench, given: str) -> None:
    (bench.root / "f").write_text("old\n")
    show(bench, "f")
    assert refused(bench, edit("old", "new", given)).reason == "no_hash"


def test_line_numbers_alone_need_a_hash(bench: Bench) -> None:
    (bench.root / "f").write_text("old\n")
    shown = show(bench, "f")
    blind = Lines("f", (LineEdit("replace", 1, 1, ("new",)),))
    assert refused(bench, blind).reason == "no_hash"
    assert proposed(bench, blind._replace(base_hash=shown[:12])).new == b"new\n"


def test_a_persons_proposal_names_its_versions_itself(bench: Bench) -> None:
    (bench.root / "f").write_text("old\n")
    by_hand = ShownVersions(seen=None)
    given = edit("old", "new", digest(b"old\n")[:12])
    assert propose(bench.workspace, by_hand, [given]).edits[0].new == b"new\n"
    for form, reason in ((edit("old", "new"), "no_hash"), (edit("old", "new", "0" * 12), "stale_file")):
        with pytest.raises(PathProblem) as caught:
            propose(bench.workspace, by_hand, [form])
        assert caught.value.reason == reason


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


def test_the_registry_alone_decides_what_was_seen(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    with pytest.raises(PathProblem) as caught:
        propose(Workspace(tmp_path), ShownVersions(FilesSeen(), turn=1), [edit("old", "new")])
    assert caught.value.reason == "no_hash"


# Several forms, one set


def test_edits_of_one_file_build_on_each_other(bench: Bench) -> None:
    (bench.root / "f").write_text("a\nb\n")
    shown = show(bench, "f")
    (only,) = together(bench, edit("a", "c", shown[:12]), edit("c\nb", "d", shown[:12], "./f")).edits
    assert (only.path, only.new) == ("f", b"d\n")


def test_one_refusal_refuses_all(bench: Bench) -> None:
    (bench.root / "f").write_text("old\n")
    show(bench, "f")
    assert refused(bench, edit("old", "new"), Whole("new", "x\n"), Delete("none")).reason == "file_missing"


def test_a_file_is_changed_and_moved_at_once(bench: Bench) -> None:
    (bench.root / "f").write_text("old\n")
    show(bench, "f")
    for forms in ((edit("old", "new"), Move("f", "d/g")), (Move("f", "d/g"), edit("old", "new", path="d/g"))):
        (only,) = together(bench, *forms).edits
        assert (only.op, only.path, only.destination, only.new) == ("move", "f", "d/g", b"new\n")


@pytest.mark.promise("CHG-62")
def test_a_moved_file_can_be_rewritten_or_changed_by_lines_if_all_of_it_was_shown(bench: Bench) -> None:
    (bench.root / "f").write_text("old\n")
    by_lines = Lines("d/g", (LineEdit("replace", 1, 1, ("new",), ("old",)),))
    show(bench, "f")
    for after in (Whole("d/g", "new\n"), by_lines):
        (only,) = together(bench, Move("f", "d/g"), after).edits
        assert (only.op, only.path, only.destination, only.new) == ("move", "f", "d/g", b"new\n")
        assert only.diff.text.startswith("--- f\n+++ d/g\n")
    assert refused(bench, Move("f", "d/g"), Whole("d/g", "new\n", "0" * 12)).reason == "stale_file"
    assert refused(bench, Move("f", "d/g"), Whole("d/g", "new\n", only="create")).reason == "file_exists"
    (bench.root / "h").write_text("shown\nnot shown\n")
    show(bench, "h", whole=False)
    assert refused(bench, Move("h", "d/g"), Whole("d/g", "new\n")).reason == "no_hash"


@pytest.mark.promise("CHG-63")
def test_new_names_of_one_set_that_differ_only_in_case_are_refused(bench: Bench) -> None:
    (bench.root / "f").write_text("old\n")
    show(bench, "f")
    for one, other in (("a.txt", "A.txt"), ("d/x", "D/y"), ("d/e/x", "d/E/y"), ("caf\u00e9", "cafe\u0301")):
        assert refused(bench, Whole(one, "1\n"), Whole(other, "2\n")).reason == "invalid_path"
        assert refused(bench, Whole(one, "1\n"), Move("f", other)).reason == "invalid_path"
    assert len(together(bench, Whole("d/x", "1\n"), Whole("d/y", "2\n")).edits) == 2


@pytest.mark.parametrize(
    "forms",
    [
        (Delete("f"), edit("old", "new")),
        (edit("old", "new"), Delete("f")),
        (edit("old", "new"), Whole("f", "other\n")),
        (Move("f", "g"), edit("old", "new")),
        (Move("f", "g"), Move("g", "h")),
        (Move("f", "g"), Delete("g")),
        (Move("f", "g"), Whole("f", "another\n")),
        (edit("old", "new"), Move("f", "g"), Whole("g", "other\n")),
        (Whole("n", "x\n"), Whole("n", "y\n")),
        (Whole("n", "x\n"), Move("n", "m")),
    ],
)
def test_forms_that_contradict_each_other_are_refused(bench: Bench, forms: tuple[Form, ...]) -> None:
    (bench.root / "f").write_text("old\n")
    show(bench, "f")
    assert refused(bench, *forms).reason == "overlap"


# Other refusals


def test_emptying_a_file_is_refused(bench: Bench) -> None:
    (bench.root / "f").write_text("old\n")
    show(bench, "f")
    assert refused(bench, edit("old\n", "")).reason == "emptied"
    assert refused(bench, Whole("f", " \n")).reason == "emptied"


@pytest.mark.promise("CHG-32")
def test_losing_most_of_a_file_needs_the_users_word(bench: Bench) -> None:
    lines = [f"line {number}\n" for number in range(30)]
    (bench.root / "f").write_text("".join(lines))
    show(bench, "f")
    assert "16 of its 30 lines" in together(bench, Whole("f", "".join(lines[:14]))).confirm
    assert together(bench, Whole("f", "".join(lines[:15]))).confirm == ""
    in_parts = [Edit("".join(lines[at : at + 6]), "") for at in (0, 10, 20)]
    assert "18 of its 30 lines" in together(bench, Replace("f", tuple(in_parts))).confirm


def test_writing_what_is_there_is_no_change(bench: Bench) -> None:
    (bench.root / "f").write_text("old\n")
    show(bench, "f")
    assert refused(bench, Whole("f", "old\n")).reason == "no_change"


def test_editing_a_missing_file_is_refused(bench: Bench) -> None:
    for form in EVERY_FORM:
        if not isinstance(form, Whole):
            assert refused(bench, form).reason == "file_missing"
    assert refused(bench, Whole("f", "new", "0" * 12)).reason == "file_missing"
    assert refused(bench, Whole("f", "new", only="rewrite")).reason == "file_missing"


@pytest.mark.parametrize("path", ["../f", ".git/config", ".env", ".handrail/x"])
def test_protected_places_are_refused_here_too(bench: Bench, path: str) -> None:
    assert refused(bench, Whole(path, "new")).reason in ("outside_workspace", "protected_path")
    (bench.root / "f").write_text("old\n")
    show(bench, "f")
    assert refused(bench, Move("f", path)).reason in ("outside_workspace", "protected_path")


def test_the_name_of_a_link_is_not_deleted_or_moved(bench: Bench) -> None:
    (bench.root / "f").write_text("old\n")
    (bench.root / "link").symlink_to("f")
    with pytest.raises(PathProblem):
        refuse_link(bench.workspace, "link")
    refuse_link(bench.workspace, "f")


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "x\ud800", "a\u202eb", "a\u200bb"])
def test_text_that_no_editor_would_show_is_refused(bench: Bench, text: str) -> None:
    assert refused(bench, Whole("f", text)).reason == "suspicious_text"


def test_a_text_over_the_limit_is_refused(bench: Bench) -> None:
    assert refused(bench, Whole("f", "x" * 1_000_001)).reason == "too_large"


# What survives


@pytest.mark.promise("CHG-4")
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize(
    ("form", "result"),
    [
        (edit("b\nc", "B\nC"), b"a\r\nB\r\nC\r\n"),
        (Whole("f", "x\ny"), b"x\r\ny\r\n"),
        (Lines("f", (LineEdit("insert", 1, lines=("x",), expected=("a",)),)), b"a\r\nx\r\nb\r\nc\r\n"),
        (Patch("f", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n"), b"a\r\nB\r\nc\r\n"),
        (Move("f", "g"), b"a\r\nb\r\nc\r\n"),
    ],
)
def test_line_endings_and_bom_survive_every_form(bench: Bench, bom: bytes, form: Form, result: bytes) -> None:
    (bench.root / "f").write_bytes(bom + b"a\r\nb\r\nc\r\n")
    show(bench, "f")
    assert proposed(bench, form).new == bom + result


def test_a_missing_final_line_break_stays_missing_after_an_edit(bench: Bench) -> None:
    (bench.root / "f").write_text("a\nb")
    show(bench, "f")
    assert proposed(bench, edit("a", "c")).new == b"c\nb"


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
        ended = new.removesuffix("\n") + "\n" * data.endswith("\n")
        assert file.read_text() == (ended if new.strip() else new)
