"""The intents of a workspace as a user has them: how they stand to one another, and what was decided."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.engine.admin.workspace_intents import WorkspaceIntents
from handrail.protocol.errors import IntentsProblem, PathProblem, UsageProblem
from handrail.protocol.events import OverlapSettled
from handrail.sessions.workspace_events import read_workspace
from handrail.storage.event_log import Log
from handrail.storage.log_repair import open_log
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import INTENTS_FILE, IntentFile

TWO = "- id: ONE\n  owned_scope: [src/**]\n- id: TWO\n  owned_scope: [src/a*]\n"


class Room:
    def __init__(self, root: Path, log: Log) -> None:
        self.root = root
        self.log = log
        workspace = Workspace(root)
        self.book = WorkspaceIntents(log, workspace, IntentFile(workspace))

    def write(self, text: str) -> None:
        (self.root / ".orchestration").mkdir(exist_ok=True)
        (self.root / INTENTS_FILE).write_text(text)

    @property
    def settled(self) -> list[OverlapSettled]:
        return [each.event for each in read_workspace(self.log) if isinstance(each.event, OverlapSettled)]


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    (tmp_path / "work").mkdir()
    log = open_log(tmp_path / "log")
    yield Room(tmp_path / "work", log)
    log.close()


@pytest.mark.promise("INTENT-6")
@pytest.mark.parametrize("way", ["narrowed", "ordered", "accepted"])
def test_an_overlap_is_settled_in_one_of_three_ways_and_the_choice_is_kept(room: Room, way: str) -> None:
    room.write(TWO)
    (conflict,) = room.book.problems().conflicts
    assert conflict.message == "ONE and TWO both own files such as src/a."
    match way:
        case "narrowed":
            room.book.set_value("TWO", "owned_scope", "docs/**")
        case "ordered":
            room.book.set_value("TWO", "depends_on", "ONE")
        case "accepted":
            room.book.accept("ONE", "TWO")
    assert room.book.problems().conflicts == ()
    assert [each.choice for each in room.settled] == [way]


def test_a_word_to_one_overlap_is_none_to_another(room: Room) -> None:
    room.write(TWO)
    room.book.accept("TWO", "ONE")
    room.book.add_scope("TWO", ["src/b*"])
    assert room.book.problems().conflicts
    with pytest.raises(UsageProblem, match="do not own the same"):
        room.write(TWO.replace("src/a*", "docs"))
        room.book.accept("ONE", "TWO")


def test_what_is_done_or_ignored_conflicts_with_nothing(room: Room) -> None:
    room.write(TWO + "  status: done\n")
    assert not room.book.problems().conflicts
    room.write(TWO)
    (room.root / ".intentignore").write_text("TWO")
    assert not room.book.problems().conflicts


def test_what_is_wrong_with_dependencies_and_scopes_is_found(room: Room) -> None:
    room.write(
        "A: {depends_on: [B], owned_scope: [a]}\nB: {depends_on: [A, C], owned_scope: [../b, /x]}\nD: {}"
    )
    (room.root / ".intentignore").write_text("GHOST\n")
    assert room.book.problems().wrong == (
        "A depends on itself, directly or through others.",
        "B depends on itself, directly or through others.",
        "B depends on C, which does not exist.",
        "B owns `../b`, which is not a path inside the workspace.",
        "B owns `/x`: paths are relative to the workspace, without a leading / or ~.",
        "D owns no files, so nothing can be written for it.",
        "GHOST is ignored, and there is no such intent.",
    )


def test_the_map_tells_which_files_an_intent_has_touched(room: Room) -> None:
    room.write("- id: INT-1\n  name: Totals\n  status: active\n")
    (room.root / ".orchestration/agent_trace.jsonl").write_text(
        '{"intent_id": "INT-1", "file": "src/a|b.py", "to": "", "at": "2026-01-02T03:04:05Z"}\n'
        '{"intent_id": "INT-1", "file": "src/a|b.py", "to": "src/c.py", "at": "2026-01-03T03:04:05Z"}\n'
        '{"intent_id": "GONE", "file": "x", "at": ""}\nbroken'
    )
    assert room.book.write_map(0.0) == 3
    text = (room.root / ".orchestration/intent_map.md").read_text()
    assert "## INT-1: Totals (active)" in text
    assert "| src/a\\|b.py | 2 | 2026-01-03 |" in text
    assert "## GONE (not in the file of intents)" in text
    assert room.book.write_map(0.0) == 3


def test_nothing_is_written_through_a_link(room: Room, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/active_intents.yaml").write_text(TWO)
    (room.root / ".orchestration").symlink_to(tmp_path / "elsewhere")
    with pytest.raises((IntentsProblem, PathProblem)):
        room.book.set_value("ONE", "status", "done")
    assert (tmp_path / "elsewhere/active_intents.yaml").read_text() == TWO
