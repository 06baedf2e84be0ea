"""The registry of files and their history: folds of events."""

import pytest
from msgspec.json import decode

from handrail.protocol.events import ChangeApplied, ChangePrepared
from handrail.protocol.values import FileChange, FileSeen, to_json
from handrail.sessions.files_seen import REMEMBERED_FILES, REMEMBERED_OPERATIONS, ChangedBy, FilesSeen

pytestmark = pytest.mark.promise("SESS-9")
A, B, C = "a" * 64, "b" * 64, "c" * 64


def change(files: FilesSeen, turn: int, by: ChangedBy, *parts: FileChange) -> None:
    prepared = ChangePrepared(turn_id="t", change_id=f"c{turn}{by}", call_id="k", files=parts, by=by)
    files.apply(prepared, turn)
    files.apply(ChangeApplied(change_id=prepared.change_id), turn)


def update(path: str, old: str, new: str) -> FileChange:
    return FileChange(path=path, op="update", old_sha256=old, new_sha256=new, size=9)


def operations(files: FilesSeen) -> list[tuple[int, str, str, str, str]]:
    return [(done.turn, done.op, done.before[:1], done.after[:1], done.by) for done in files.history]


def test_an_entry_says_what_was_seen_when_and_how_and_who_changed_it_last() -> None:
    files = FilesSeen()
    files.record_seen((FileSeen(path="a.py", sha256=A, how="user", size=7),), 1)
    change(files, 2, "agent", update("a.py", A, B))
    entry = files.files["a.py"]
    assert (entry.sha256, entry.turn, entry.how, entry.size, entry.language) == (B, 2, "user", 9, "Python")
    assert (entry.modified, entry.modified_by) == (2, "agent")
    assert operations(files) == [(1, "read", "a", "a", "user"), (2, "update", "a", "b", "agent")]


@pytest.mark.parametrize("by", ["rollback", "command", "user"])
def test_what_others_change_the_model_has_not_seen(by: ChangedBy) -> None:
    files = FilesSeen()
    files.record_seen((FileSeen(path="a.py", sha256=A, how="agent"),), 1)
    change(files, 1, by, update("a.py", A, B))
    entry = files.files["a.py"]
    assert (entry.sha256, entry.current, entry.modified_by) == (A, B, by)
    files.record_seen((FileSeen(path="a.py", sha256=B, how="auto"),), 2)
    assert operations(files)[1:] == [(1, "update", "a", "b", by)]
    assert files.files["a.py"].modified_by == by


def test_a_version_that_no_event_tells_of_was_made_by_somebody_else() -> None:
    files = FilesSeen()
    files.record_seen((FileSeen(path="a.py", sha256=A, how="agent"),), 1)
    files.record_seen((FileSeen(path="a.py", sha256=C, how="auto"),), 3)
    assert operations(files)[1:] == [(3, "update", "a", "c", "user")]
    assert (files.files["a.py"].modified, files.files["a.py"].modified_by) == (3, "user")
    files.record_deleted(("a.py",), 4)
    assert files.files == {}
    assert operations(files)[-1] == (4, "delete", "c", "", "user")


def test_a_moved_file_is_known_by_its_new_name() -> None:
    files = FilesSeen()
    files.record_seen((FileSeen(path="a.py", sha256=A, how="agent"),), 1)
    moved = FileChange(path="a.py", op="move", destination="b.py", old_sha256=A, new_sha256=A)
    change(files, 1, "agent", moved)
    assert list(files.files) == ["b.py"]
    assert files.history[-1].destination == "b.py"


def test_reading_on_in_a_file_is_one_operation() -> None:
    files = FilesSeen()
    for _ in range(5):
        files.record_seen((FileSeen(path="a.py", sha256=A, how="agent", whole=False),), 1)
    assert len(files.history) == 1


def test_what_is_kept_does_not_grow_with_the_session_and_comes_back_from_a_snapshot() -> None:
    files = FilesSeen()
    for number in range(REMEMBERED_FILES + 500):
        files.record_seen((FileSeen(path=f"f{number}", sha256=A, how="agent"),), number)
        change(files, number, "agent", update(f"f{number}", A, B))
    assert len(files.files) == REMEMBERED_FILES
    assert len(files.history) == REMEMBERED_OPERATIONS
    assert files.history[-1].turn == REMEMBERED_FILES + 499
    assert decode(to_json(files), type=FilesSeen) == files
