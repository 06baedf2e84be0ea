"""The tables of known files and recent operations."""

import pytest

from handrail.context.message_context import MAX_FILES, MAX_OPERATIONS, known_files_table
from handrail.protocol.values import FileSeen
from handrail.sessions.session_state import SessionState

pytestmark = pytest.mark.promise("CTX-11")


def file(path: str, digit: str = "a") -> FileSeen:
    return FileSeen(path=path, sha256=digit * 64, how="agent")


def test_there_is_no_table_before_a_file_is_known_nor_where_nothing_happened() -> None:
    state = SessionState(turns=1)
    assert known_files_table(state, ()) == ""
    assert known_files_table(state, [file("a.py")]) == "", "its hash stands above it"
    state.files.record_seen((file("a.py"),), 1)
    assert known_files_table(state, ()) != ""
    state.turns = 2
    assert known_files_table(state, ()) == "", "the last table still stands in the conversation"
    assert known_files_table(state, (), stale=["a.py"]) != ""


def test_rows_have_hash_turn_and_a_flag_for_what_was_modified_since() -> None:
    state = SessionState(turns=2)
    state.files.record_seen((file("a.py"),), 1)
    state.files.record_seen((file("b.py", "b"),), 2)
    assert known_files_table(state, (), stale=["a.py"]).splitlines()[1:3] == [
        "b.py bbbbbbbbbbbb 2",
        "a.py aaaaaaaaaaaa 1 *",
    ]


def test_a_file_shown_again_stands_there_with_its_new_hash_and_who_changed_it() -> None:
    state = SessionState(turns=2)
    state.files.record_seen((file("a.py"),), 1)
    shown = FileSeen(path="a.py", sha256="c" * 64, how="auto")
    table = known_files_table(state, [shown])
    assert "a.py cccccccccccc 3" in table
    assert "turn 3: update a.py aaaaaaaaaaaa -> cccccccccccc by user" in table
    assert state.files.files["a.py"].sha256 == "a" * 64, "looking changes nothing"


def test_both_tables_are_capped_and_say_what_was_cut() -> None:
    state = SessionState(turns=1)
    for number in range(MAX_FILES + 7):
        state.files.record_seen((file(f"f{number}.py"),), 1)
    rows = known_files_table(state, ()).splitlines()
    assert len(rows) == 1 + MAX_FILES + 1 + 1 + MAX_OPERATIONS + 1
    assert rows[1].startswith(f"f{MAX_FILES + 6}.py ")
    assert "(7 more, seen earlier)" in rows
    assert rows[-1] == "(older ones left out)"
