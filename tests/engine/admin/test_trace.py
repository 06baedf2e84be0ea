"""The trace where git is: branches that merge, files that go back, lines that are gone for good."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.changes.apply import apply, applying
from handrail.changes.change_set import ChangeSet, FileEdit, Origin
from handrail.changes.trace.trace_file import ATTRIBUTES, FOLDER, PATH
from handrail.engine.admin.trace import TraceCheck, TraceQueries
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import SessionStarted
from handrail.sessions.session import Session
from handrail.storage.event_log import Log
from handrail.storage.log_repair import open_log
from handrail.workspace.files import Workspace
from tests.changes.trace.traces import bind, lines_in

pytestmark = pytest.mark.anyio
WHO = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")


class Desk:
    """A repository with intents, and one session that writes to it."""

    def __init__(self, root: Path, log: Log, session_id: str) -> None:
        self.root = root
        self.workspace = Workspace(root)
        self.session = Session(log, session_id)
        self.session.try_hold()
        self.session.append(SessionStarted(session_id=session_id, workspace=str(root), version="0"))
        self.tracing = TraceQueries(log, self.workspace)

    def write(self, path: str, text: str, intent: str = "INT-1") -> None:
        file = self.root / path
        old = file.read_bytes() if file.exists() else None
        edit = FileEdit(path, "update" if old else "create", old, text.encode())
        origin = Origin(turn_id="t_1", intent_id=intent, model="m/1")
        apply(self.session, self.workspace, ChangeSet((edit,), origin))

    def git(self, *words: str, ends: int = 0) -> str:
        done = subprocess.run(
            ["git", *WHO, *words], cwd=self.root, capture_output=True, text=True, check=False
        )
        assert done.returncode == ends, done.stdout + done.stderr
        return done.stdout

    def commit(self, message: str = "more") -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", message)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = open_log(tmp_path / "state")
    yield log
    log.close()


@pytest.fixture
def desk(tmp_path: Path, log: Log) -> Desk:
    root = tmp_path / "work"
    root.mkdir()
    bind(root)
    desk = Desk(root, log, "s_1")
    desk.git("init", "-qb", "main")
    desk.write("a.py", "x = 1\n")
    desk.commit()
    return desk


def is_right(found: TraceCheck) -> bool:
    return not found.findings and not found.elsewhere


@pytest.mark.promise("TRACE-5")
async def test_two_branches_with_lines_of_their_own_merge_and_still_verify(
    desk: Desk, tmp_path: Path
) -> None:
    desk.git("checkout", "-qb", "topic")
    desk.write("b.py", "y = 1\n")
    desk.write("b.py", "y = 2\n")
    desk.commit()
    desk.git("checkout", "-q", "main")
    desk.write("c.py", "z = 1\n")
    desk.write("c.py", "z = 2\n")
    desk.commit()
    apart = await desk.tracing.verify()
    assert not apart.findings
    assert apart.elsewhere == ("2 lines of the log are not in this file: topic has them.",)
    desk.git("merge", "-q", "--no-edit", "topic")
    assert is_right(await desk.tracing.verify())
    assert len(lines_in(desk.root)) == 5
    desk.write("d.py", "and it goes on = 1\n")
    assert is_right(await desk.tracing.verify())


@pytest.mark.promise("TRACE-5")
async def test_what_somebody_else_wrote_in_a_clone_merges_and_verifies_in_both(
    desk: Desk, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    desk.git("clone", "-q", ".", str(clone))
    other_log = open_log(tmp_path / "another state")
    other = Desk(clone, other_log, "s_other")
    other.write("theirs.py", "total = computed_by_them(1)\n", "INT-2")
    other.write("theirs.py", "total = computed_by_them(1)\nu = 2\n", "INT-3")
    other.commit()
    desk.write("a.py", "x = 2\n")
    desk.commit()
    desk.git("fetch", "-q", str(clone), "main:theirs")
    desk.git("merge", "-q", "--no-edit", "theirs")
    for each in (desk, other):
        found = await each.tracing.verify()
        assert is_right(found)
        assert len(found.verified.others) == 1
    # Whose lines theirs are is told by the ranges in the trace, which came with them.
    assert [line.author and line.author.intent_id for line in desk.tracing.blame("theirs.py")] == [
        "INT-2",
        "INT-3",
    ]
    other_log.close()


async def test_where_both_sides_were_kept_by_hand_the_trace_verifies(desk: Desk) -> None:
    (desk.root / FOLDER / ATTRIBUTES).unlink()
    desk.commit("no union")
    desk.git("checkout", "-qb", "topic")
    desk.write("b.py", "y = 1\n")
    desk.commit()
    desk.git("checkout", "-q", "main")
    desk.write("c.py", "z = 1\n")
    desk.commit()
    desk.git("merge", "-q", "--no-edit", "topic", ends=1)
    trace = desk.root / PATH
    kept = [line for line in trace.read_bytes().splitlines(keepends=True) if line.startswith(b"{")]
    assert len(kept) == 3
    found = await desk.tracing.verify()
    assert {finding.kind for finding in found.findings} == {"unreadable"}  # the marks of the conflict
    trace.write_bytes(b"".join(kept))
    assert is_right(await desk.tracing.verify())


async def test_lines_that_were_never_committed_and_went_are_told_and_can_be_written_again(desk: Desk) -> None:
    desk.write("a.py", "x = 2\n")
    desk.write("a.py", "x = 3\n")
    desk.git("checkout", "-q", "--", ".")
    (finding,) = (await desk.tracing.verify()).findings
    assert (finding.line, finding.kind) == (1, "cut off")
    assert "numbers 2 (a.py, change c_" in finding.what
    restored = await desk.tracing.verify(restore=True)
    assert restored.restored == 2
    assert is_right(restored)


async def test_lines_cut_off_what_is_checked_out_are_no_matter_of_branches(desk: Desk) -> None:
    desk.write("a.py", "x = 2\n")
    desk.commit()
    desk.git("branch", "copy")
    trace = desk.root / PATH
    trace.write_bytes(trace.read_bytes().splitlines(keepends=True)[0])
    (finding,) = (await desk.tracing.verify()).findings
    assert finding.kind == "cut off"
    assert finding.what.endswith("HEAD has it")


async def test_a_change_that_is_not_settled_is_told_until_the_next_one_settles_it(desk: Desk) -> None:
    edit = FileEdit("b.py", "create", None, b"y = 1\n")
    with applying(desk.session, desk.workspace, ChangeSet((edit,), Origin(turn_id="t_1", intent_id="INT-1"))):
        pass  # the end of the change is never committed
    found = await desk.tracing.verify()
    assert is_right(found)
    assert (found.undecided, len(lines_in(desk.root))) == (1, 1)
    later = Desk(desk.root, desk.session.log, "s_2")
    later.write("c.py", "z = 1\n")
    found = await later.tracing.verify()
    assert is_right(found)
    assert (found.undecided, len(lines_in(desk.root))) == (0, 3)


async def test_a_trace_that_is_gone_is_found(desk: Desk) -> None:
    desk.write("a.py", "x = 2\n")
    (desk.root / PATH).unlink()
    (finding,) = (await desk.tracing.verify()).findings
    assert (finding.line, finding.kind) == (0, "cut off")


async def test_without_git_and_without_a_trace_all_is_said_to_be_right(tmp_path: Path, log: Log) -> None:
    found = await TraceQueries(log, Workspace(tmp_path)).verify()
    assert is_right(found)
    assert not (tmp_path / FOLDER).exists()


async def test_an_unbound_workspace_has_blame_and_report_from_the_log(tmp_path: Path, log: Log) -> None:
    desk = Desk(tmp_path, log, "s_1")
    desk.write("a.py", "x = computed(1)\ny = 2\n", intent="")
    desk.write("a.py", "x = computed(2)\ny = 2\n", intent="")
    (tmp_path / "a.py").write_text("x = computed(2)\ny = 2\nz = 3\n")
    assert not (tmp_path / PATH).exists()
    lines = desk.tracing.blame("a.py")
    assert [bool(line.author) for line in lines] == [True, True, False]
    assert lines[0].author
    assert (lines[0].author.intent_id, lines[0].author.model) == ("", "m/1")
    found = desk.tracing.report()
    assert (len(found.total.changes), found.total.lines, found.total.rewritten) == (2, 3, 1)
    assert found.intents[""].lines == 3


async def test_the_report_counts_by_intent_and_tells_rework_from_what_was_taken_back(desk: Desk) -> None:
    desk.write("b.py", "first = 1\nsecond = 2\n", "INT-2")
    desk.write("b.py", "first = 1\nsecond = 22\n", "INT-3")
    found = desk.tracing.report()
    assert {
        name: (len(each.changes), each.lines, each.rewritten) for name, each in found.intents.items()
    } == {
        "INT-1": (1, 1, 0),
        "INT-2": (1, 2, 1),
        "INT-3": (1, 1, 0),
    }
    assert found.classes["INTENT_EVOLUTION"].lines == 4
    assert found.models["m/1"].files == {"a.py", "b.py"}


async def test_a_file_that_is_no_text_has_no_blame(desk: Desk) -> None:
    (desk.root / "picture").write_bytes(b"\x00\x01")
    with pytest.raises(PathProblem):
        desk.tracing.blame("picture")
    with pytest.raises(PathProblem):
        desk.tracing.blame("missing.py")


async def test_what_is_outside_of_the_workspace_has_no_blame(desk: Desk) -> None:
    (desk.root.parent / "mine.py").write_text("x = 1\n")
    with pytest.raises(PathProblem, match="not in this workspace"):
        desk.tracing.blame("../mine.py")


async def test_a_huge_file_in_place_of_the_trace_is_refused(desk: Desk) -> None:
    with (desk.root / PATH).open("ab") as file:
        file.truncate(300_000_000)
    with pytest.raises(PathProblem, match="more than 256 MB"):
        await desk.tracing.verify()


def test_lines_are_json_that_git_does_not_convert(desk: Desk) -> None:
    assert (desk.root / FOLDER / ATTRIBUTES).read_text() == "agent_trace.jsonl -text merge=union\n"
    assert all(json.loads(line)["v"] == 1 for line in (desk.root / PATH).read_bytes().splitlines())
