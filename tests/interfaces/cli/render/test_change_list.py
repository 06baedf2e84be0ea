"""Change sets as lines: what has become of each, and what cannot be restored."""

import pytest
from msgspec import convert

from handrail.app.history.changes import last_applied
from handrail.changes.diff import Diff
from handrail.engine.admin.history import NetChange, ShownFile
from handrail.interfaces.cli.conversation.questions import choice_key
from handrail.interfaces.cli.render.change_list import change_lines, file_diff_lines, net_diff_lines
from handrail.interfaces.cli.render.styles import columns, plain
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import ChangePrepared
from handrail.protocol.values import FileChange, Todo
from handrail.sessions.change_history import ChangeStatus, PastChange

NOW = 1_000_000.0


def change(number: int, status: ChangeStatus = "applied", why: str = "", **fields: object) -> PastChange:
    file = FileChange(path=f"src/{number}.py", op="update", added=2, removed=1)
    given = {"turn_id": "t_1", "change_id": f"c_{number}", "call_id": "k_1", "files": (file,)} | fields
    return PastChange(convert(given, ChangePrepared), number, NOW - 60, 1, number, status, why)


def shown(*changes: PastChange, width: int = 79) -> list[str]:
    return [plain(row) for row in change_lines(changes, [Todo(id="1", text="fix it")], NOW, width)]


@pytest.mark.promise("BACK-4")
def test_what_was_never_applied_is_said_to_be_so() -> None:
    never = change(1, "not applied", "src/1.py was changed meanwhile.")
    rows = shown(never)
    assert rows[1] == "     1    1 min ago  agent     never applied       src/1.py +2 -1"
    assert rows[2].strip() == "why not: src/1.py was changed meanwhile."
    with pytest.raises(UsageProblem, match="the last, 1, was never applied"):
        last_applied([never])
    assert last_applied([change(1), change(2, "not applied"), change(3, by="rollback")]).number == 1


def test_what_cannot_be_brought_back_is_named() -> None:
    lost = FileChange(path="data.db", op="update", restorable=False)
    made = change(2, by="command", files=(lost,), unlisted=3, intent="changed while this ran: make")
    rows = shown(change(1, todos=("1",)), made)
    assert rows[1].endswith("command   applied             data.db, 3 more files")
    assert [row.strip() for row in rows[2:4]] == [
        "changed while this ran: make",
        "4 files not kept, cannot be restored",
    ]
    assert rows[-1].strip() == "todo: fix it"
    (name, note, gone) = [plain(row) for row in file_diff_lines([ShownFile(lost, None)], 79)][1:]
    assert name == "data.db"
    assert "its previous version is not kept" in note
    assert "no longer kept" in gone


@pytest.mark.promise("TERM-1")
def test_names_of_files_cannot_steer_the_terminal() -> None:
    file = FileChange(path="a\x1b[2J\n.py", op="create", added=1)
    rows = shown(change(1, files=(file,)))
    assert not any("\x1b" in row for row in rows)
    net = [plain(row) for row in net_diff_lines([NetChange(file.path, Diff("", 1, 0), "")], 79)]
    assert not any("\x1b" in row for row in net)


@pytest.mark.parametrize("width", [79, 60, 45])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    long = FileChange(path="src/" + "very_long_name_" * 8 + ".py", op="create", added=1000)
    rows = shown(change(1, "taken back"), change(2, files=(long, long), why="why " * 60), width=width)
    assert max(map(columns, rows)) <= width


@pytest.mark.parametrize(
    ("typed", "key"),
    [("f", "f"), ("Files", "f"), ("", "n"), ("no", "n"), ("fix it", ""), ("x", ""), ("y", "")],
)
def test_only_a_letter_or_its_word_is_an_answer(typed: str, key: str) -> None:
    assert choice_key(typed, "fcbnd") == key
