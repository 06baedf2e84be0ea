"""What a line of the trace says, who has lines, and that chains do not mix."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.changes.apply import apply
from handrail.changes.change_set import ChangeSet, FileEdit, Origin
from handrail.changes.rewind import plan_rewind
from handrail.changes.trace.integrity import verify
from handrail.changes.trace.line_blocks import block_hash, line_keys
from handrail.changes.trace.logged_changes import logged_lines
from handrail.changes.trace.trace_file import PATH, line_hash
from handrail.changes.undo import undo_change_set
from handrail.protocol.events import ChangeApplied, ChangePrepared, IntentSelected, RequestStarted
from handrail.sessions.export_import import fork
from handrail.sessions.session import Session
from handrail.storage.log_repair import open_log
from tests.changes.trace.traces import bind, lines_in
from tests.tools.calls import Bench, open_bench

CHILD = Path(__file__).with_name("tracing_child.py")
PROCESSES, TIMES = 8, 12


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = open_bench(tmp_path, mode="auto")
    bind(bench.root)
    bench.session.append(
        IntentSelected(intent_id="INT-1"),
        RequestStarted(turn_id=bench.turn_id, request_id="r_7", message_id="m_2", model="scripted/one"),
    )
    yield bench
    bench.close()


def write(bench: Bench, path: str, text: str) -> ChangeApplied:
    file = bench.root / path
    old = file.read_bytes() if file.exists() else None
    edit = FileEdit(path, "update" if old else "create", old, text.encode())
    return apply(bench.session, bench.workspace, ChangeSet((edit,), Origin(turn_id=bench.turn_id)))


def is_right(bench: Bench) -> bool:
    found = verify((bench.root / PATH).read_bytes(), logged_lines(bench.session.log))
    return not found.findings and not found.gaps and found.own == found.lines


@pytest.mark.promise("TRACE-1")
def test_a_line_says_who_wrote_what_for_which_intent(bench: Bench) -> None:
    (bench.root / "cart.py").write_text("a = 1\nb = 2\nc = 3\n")
    applied = write(bench, "cart.py", "a = 1\nb  =  20\nc = 3\nd = 4\n")
    (said,) = lines_in(bench.root)
    new = (bench.root / "cart.py").read_bytes()
    assert said.pop("at").endswith("Z")
    assert said.pop("writer").startswith("w_")
    assert said == {
        "v": 1,
        "number": 1,
        "before": "",
        "request_id": "r_7",
        "intent_id": "INT-1",
        "file": "cart.py",
        "op": "update",
        "to": "",
        "mutation_class": "INTENT_EVOLUTION",
        "by": "agent",
        "model": "",
        "sha256": hashlib.sha256(new).hexdigest(),
        "base_sha256": hashlib.sha256(b"a = 1\nb = 2\nc = 3\n").hexdigest(),
        "related": {
            "session": bench.session.id,
            "turn": bench.turn_id,
            "call": "",
            "change": applied.change_id,
        },
        "ranges": [
            {"start": 2, "end": 2, "sha256": block_hash([b"b = 20"])},
            {"start": 4, "end": 4, "sha256": block_hash([b"d = 4"])},
        ],
    }


@pytest.mark.promise("TRACE-1")
def test_lines_of_one_writer_are_chained_and_their_head_is_in_the_log(bench: Bench) -> None:
    for number in range(4):
        write(bench, "a.py", f"x = {number}\n")
    lines = (bench.root / PATH).read_bytes().splitlines()
    said = [json.loads(line) for line in lines]
    assert [each["number"] for each in said] == [1, 2, 3, 4]
    assert [each["before"] for each in said] == ["", *map(line_hash, lines[:-1])]
    assert bench.session.state.trace.head == line_hash(lines[-1])
    reopened = Session(bench.session.log, bench.session.id).load()
    assert reopened.state.trace.head == line_hash(lines[-1])


@pytest.mark.promise("TRACE-1")
def test_the_log_has_the_line_before_the_file_and_tracing_costs_no_commit(bench: Bench) -> None:
    commits: list[int] = []
    bench.session.log.listeners.append(lambda: commits.append(bench.session.seq))
    write(bench, "a.py", "x = 1\n")
    traced = len(commits)
    prepared = [event for event in bench.events() if isinstance(event, ChangePrepared)]
    assert prepared[-1].trace
    (bench.root / ".orchestration/active_intents.yaml").unlink()
    bench.session.append(IntentSelected(intent_id=""))
    commits.clear()
    write(bench, "a.py", "x = 2\n")
    assert len(commits) == traced == 2
    assert len(lines_in(bench.root)) == 1


def test_a_workspace_without_intents_has_no_trace_but_the_log_has_its_facts(tmp_path: Path) -> None:
    bench = open_bench(tmp_path)
    write(bench, "a.py", "x = 1\n")
    assert not (bench.root / ".orchestration").exists()
    prepared = [event for event in bench.events() if isinstance(event, ChangePrepared)]
    assert prepared[-1].files[0].ranges[0].sha256 == block_hash(line_keys(b"x = 1\n"))
    bench.close()


@pytest.mark.anyio
@pytest.mark.promise("TRACE-1")
async def test_edits_of_users_rewinds_and_what_commands_change_are_lines_too(bench: Bench) -> None:
    write(bench, "a.py", "x = 1\n")
    done = await bench.call("run", command="touch made.txt")
    assert done.status == "ok", done
    going = plan_rewind(bench.session.log, bench.workspace, bench.session.id, "1")
    planned = undo_change_set(going.plan)
    assert planned
    apply(bench.session, bench.workspace, planned)
    bench.session.append(IntentSelected(intent_id=""))
    by_user = FileEdit("note.md", "create", None, b"by hand\n")
    apply(bench.session, bench.workspace, ChangeSet((by_user,), Origin(by="user")))
    told = {(said["by"], said["op"], said["file"], said["intent_id"]) for said in lines_in(bench.root)}
    assert told == {
        ("agent", "create", "a.py", "INT-1"),
        ("command", "create", "made.txt", "INT-1"),
        ("rollback", "delete", "a.py", "INT-1"),
        ("rollback", "delete", "made.txt", "INT-1"),
        ("user", "create", "note.md", ""),
    }
    assert is_right(bench)


@pytest.mark.anyio
@pytest.mark.promise("TRACE-6")
async def test_a_model_cannot_write_move_or_delete_the_trace(bench: Bench) -> None:
    write(bench, "a.py", "x = 1\n")
    before = (bench.root / PATH).read_bytes()
    for call in (
        bench.call("write", path=PATH, text="{}\n"),
        bench.call("delete", path=PATH),
        bench.call("move", path=PATH, to="elsewhere"),
        bench.call("move", path="a.py", to=".orchestration/b"),
    ):
        done = await call
        assert done.error
        assert done.error.reason == "protected_path"
    assert (bench.root / PATH).read_bytes() == before


def test_a_forked_session_begins_a_chain_of_its_own(bench: Bench) -> None:
    write(bench, "a.py", "x = 1\n")
    other = Session(bench.session.log, fork(bench.session.log, bench.session.id, turn=None)).load()
    other.try_hold()
    edit = FileEdit("b.py", "create", None, b"y = 1\n")
    apply(other, bench.workspace, ChangeSet((edit,), Origin()))
    other.release()
    write(bench, "a.py", "x = 2\n")
    assert [said["number"] for said in lines_in(bench.root)] == [1, 1, 2]
    assert is_right(bench)


def test_where_the_file_has_gone_back_a_new_chain_begins(bench: Bench) -> None:
    write(bench, "a.py", "x = 1\n")
    kept = (bench.root / PATH).read_bytes()
    write(bench, "a.py", "x = 2\n")
    (bench.root / PATH).write_bytes(kept)
    write(bench, "a.py", "x = 3\n")
    said = lines_in(bench.root)
    assert [each["number"] for each in said] == [1, 1]
    assert said[0]["writer"] != said[1]["writer"]
    found = verify((bench.root / PATH).read_bytes(), logged_lines(bench.session.log))
    assert not found.findings
    (gap,) = found.gaps
    assert [line.number for line in gap.lines] == [2]
    assert gap.at_end


def test_finding_the_head_reads_the_end_of_a_long_trace_only(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(bench, "a.py", "x = 1\n")
    line = (bench.root / PATH).read_bytes()
    other = line.replace(lines_in(bench.root)[0]["writer"].encode(), b"w_0000000000000000")
    (bench.root / PATH).write_bytes(other * 20_000 + line)
    read = []
    real = os.pread

    def counting(descriptor: int, count: int, at: int) -> bytes:
        read.append(count)
        return real(descriptor, count, at)

    monkeypatch.setattr(os, "pread", counting)
    write(bench, "a.py", "x = 2\n")
    assert sum(read) < 300_000 < (bench.root / PATH).stat().st_size


@pytest.mark.promise("TRACE-5")
def test_eight_processes_lose_no_line_and_mix_none(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    bind(root)
    folder = tmp_path / "state"
    log = open_log(folder)
    started = [
        subprocess.Popen([sys.executable, str(CHILD), str(folder), str(root), f"s_{number}", str(TIMES)])
        for number in range(PROCESSES)
    ]
    assert [process.wait(120) for process in started] == [0] * PROCESSES
    found = verify((root / PATH).read_bytes(), logged_lines(log))
    assert (found.findings, found.gaps) == ((), ())
    assert found.lines == found.own == PROCESSES * TIMES
    assert {(said["related"]["session"], said["number"]) for said in lines_in(root)} == {
        (f"s_{number}", time) for number in range(PROCESSES) for time in range(1, TIMES + 1)
    }
    log.close()
