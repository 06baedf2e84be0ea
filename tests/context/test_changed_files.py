"""Files that changed since the model saw them are shown again, unasked."""

from pathlib import Path

import pytest

from handrail.context.message_context import MAX_LISTED, REATTACH_CAP, ReattachedFiles, reattach_changed_files
from handrail.protocol.events import ChangeApplied, ChangePrepared
from handrail.protocol.values import FileChange, FileSeen
from handrail.sessions.session_state import SessionState
from handrail.workspace.files import Workspace

pytestmark = pytest.mark.promise("CTX-10")


def seen(root: Path, *names: str, whole: bool = True) -> SessionState:
    """A session in whose first turn the model read files."""
    state = SessionState(turns=1)
    for name in names:
        sha256 = Workspace(root).sha256(name) or "0" * 64
        state.files.record_seen((FileSeen(path=name, sha256=sha256, how="agent", whole=whole),), 1)
    return state


def again(state: SessionState, root: Path, cap: int = REATTACH_CAP, *, own: bool = True) -> ReattachedFiles:
    return reattach_changed_files(state, Workspace(root), cap, (), own=own)


def test_a_file_that_nobody_changed_is_not_shown_again(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1\n")
    assert again(seen(tmp_path, "a.py"), tmp_path) == ReattachedFiles()


def test_a_file_that_somebody_else_changed_is_shown_with_its_new_hash(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1\n")
    state = seen(tmp_path, "a.py")
    (tmp_path / "a.py").write_text("2\n")
    found = again(state, tmp_path)
    now = Workspace(tmp_path).sha256("a.py")
    assert now
    assert found.files == (FileSeen(path="a.py", sha256=now, how="auto", size=2),)
    assert f"### a.py [hash: {now[:12]}]\n2\n" in found.text
    assert "somebody else" in found.text
    assert (
        reattach_changed_files(state, Workspace(tmp_path), REATTACH_CAP, ("a.py",), own=True)
        == ReattachedFiles()
    )


def test_what_the_model_changed_is_shown_on_the_next_turn_and_on_no_later_one(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("2\n")
    now = Workspace(tmp_path).sha256("a.py") or ""
    state = SessionState(turns=3)
    change = FileChange(path="a.py", op="update", old_sha256="0" * 64, new_sha256=now, size=2)
    prepared = ChangePrepared(turn_id="t", change_id="c", call_id="k", files=(change,))
    state.files.apply(prepared, 3)
    state.files.apply(ChangeApplied(change_id="c"), 3)
    found = again(state, tmp_path)
    assert [file.sha256 for file in found.files] == [now]
    assert "Changed by you" in found.text
    assert again(state, tmp_path, own=False) == ReattachedFiles()
    state.turns = 4
    assert again(state, tmp_path) == ReattachedFiles()


def test_who_changed_it_is_said_where_it_is_known(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1\n")
    state = seen(tmp_path, "a.py")
    old = Workspace(tmp_path).sha256("a.py") or ""
    (tmp_path / "a.py").write_text("2\n")
    new = Workspace(tmp_path).sha256("a.py") or ""
    change = FileChange(path="a.py", op="update", old_sha256=old, new_sha256=new)
    state.files.apply(
        ChangePrepared(turn_id="t", change_id="c", call_id="k", files=(change,), by="command"), 1
    )
    state.files.apply(ChangeApplied(change_id="c"), 1)
    assert "a command that you ran" in again(state, tmp_path).text
    (tmp_path / "a.py").write_text("3\n")
    assert "somebody else" in again(state, tmp_path).text


def test_a_deleted_file_is_said_to_be_deleted_in_words_that_forbid_guessing(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1\n")
    state = seen(tmp_path, "a.py")
    (tmp_path / "a.py").unlink()
    found = again(state, tmp_path)
    assert found.gone == ("a.py",)
    assert found.files == ()
    assert "deleted" in found.text
    assert "Do not guess" in found.text


def test_what_does_not_fit_is_said_and_counts_as_not_seen(tmp_path: Path) -> None:
    for name in ("large.py", "small.py"):
        (tmp_path / name).write_text("1\n")
    state = seen(tmp_path, "small.py", "large.py")
    (tmp_path / "large.py").write_text("x" * 5_000)
    (tmp_path / "small.py").write_text("2\n")
    found = again(state, tmp_path, cap=1_000)
    assert [file.path for file in found.files] == ["small.py"]
    assert found.stale == ("large.py",)
    assert "5,000 bytes" in found.text
    assert "Read it before editing" in found.text


def test_files_beyond_the_number_that_is_told_do_not_count_as_seen(tmp_path: Path) -> None:
    names = [f"f{number}.py" for number in range(MAX_LISTED + 5)]
    for name in names:
        (tmp_path / name).write_text("1\n")
    state = seen(tmp_path, *names)
    for name in names:
        (tmp_path / name).write_text("2\n")
    found = again(state, tmp_path)
    assert len(found.files) == MAX_LISTED
    assert set(found.stale) == set(names[:5])
    assert all(f"### {file.path} " in found.text for file in found.files)
    assert "5 more files changed" in found.text


def test_secrets_binaries_and_links_are_named_and_never_shown(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    (tmp_path / "outside").write_text("hunter2")
    for name in (".env", "data", "link.py"):
        (root / name).write_text("1\n")
    state = seen(root, ".env", "data", "link.py")
    (root / ".env").write_text("KEY=hunter2")
    (root / "data").write_bytes(b"hunter2\x00")
    (root / "link.py").unlink()
    (root / "link.py").symlink_to(tmp_path / "outside")
    found = again(state, root)
    assert found.files == ()
    assert set(found.stale) == {".env", "data", "link.py"}
    assert "hunter2" not in found.text


def test_a_file_that_grew_beyond_reading_has_changed_and_a_large_one_seen_in_part_has_not(
    tmp_path: Path,
) -> None:
    state = SessionState(turns=1)
    for name, whole in (("grew", True), ("large", False)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(1 << 42)
        state.files.record_seen((FileSeen(path=name, sha256="0" * 64, how="agent", whole=whole),), 1)
    assert again(state, tmp_path).stale == ("grew",)


def test_a_small_file_seen_in_part_is_shown_whole_when_it_changed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    state = SessionState(turns=1)
    state.files.record_seen((FileSeen(path="a", sha256="0" * 64, how="agent", whole=False),), 1)
    assert [file.path for file in again(state, tmp_path).files] == ["a"]
