"""Several terminals on one session: all follow live, one holds, and a dead holder is replaced once."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from handrail.config.places import find_places, workspace_folder
from handrail.config.settings import DatabaseSettings
from handrail.storage.log_repair import open_log, verify
from tests.interfaces.cli.program import script, terminal

ENTER = "\r"
SLOW = [f"word{number} " for number in range(400)]


@pytest.mark.promise("ENG-20")
def test_second_terminal_follows_speaks_and_takes_over_once_when_the_holder_is_killed(
    tmp_path: Path, database: DatabaseSettings
) -> None:
    shared = {"HANDRAIL_DATABASE": database.url, "HANDRAIL_DATABASE_WORKSPACE": database.workspace}
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    model = script(
        tmp_path,
        {"when": "one", "text": "First answer."},
        {"when": "two", "text": "Second answer."},
        {"when": "three", "text": SLOW, "chunk_delay_ms": 25},
        {"when": "four", "text": "Fourth answer."},
    )
    with terminal("--model", model, "one", cwd=workspace, **shared) as holder:
        holder.expect("First answer.")
        holder.expect("$0.00")
        with (
            terminal("resume", "--model", model, cwd=workspace, **shared) as second,
            terminal("resume", "--model", model, cwd=workspace, **shared) as third,
        ):
            for follower in (second, third):
                follower.expect("another process runs this session")
            second.type("two" + ENTER)
            for one in (holder, second, third):
                one.expect("Second answer.")
                one.expect("$0.00")
            third.type("three" + ENTER)
            for one in (holder, second, third):
                one.expect("word7 ")  # long before the answer is finished
            holder.process.send_signal(signal.SIGKILL)
            for one in (second, third):
                one.expect("interrupted")
            second.type("four" + ENTER)
            for one in (second, third):
                one.expect("Fourth answer.")
                one.expect("$0.00")
            for one in (second, third):
                one.process.send_signal(signal.SIGKILL)
    log = open_log(workspace_folder(find_places(os.environ), workspace), database, workspace)
    assert verify(log) == []
    stream = log.heads("session:")[0].stream
    rows = log.read(stream)
    log.close()
    assert Counter(row.type for row in rows)["turn_finished"] == 4
    holders = sorted({row.epoch for row in rows})
    assert len(holders) == 2, "the session was held by the first terminal, then by exactly one other"
    taken_over = [row for row in rows if row.epoch == holders[1]]
    ended = [row.type for row in taken_over if not row.type.startswith("run_")]
    assert ended[:2] == ["answered", "turn_finished"]
    assert '"interrupted"' in taken_over[0].data


@pytest.mark.promise("ENG-15")
def test_an_approval_outlives_the_terminal_that_asked_and_is_answered_in_another(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    adds = {"calls": [{"name": "run", "arguments": {"command": "echo x >> made"}}]}
    model = script(tmp_path, adds, {"text": "All done."})
    with terminal("--model", model, "add", cwd=workspace) as holder:
        holder.expect("y yes")
        holder.process.send_signal(signal.SIGKILL)
    assert not (workspace / "made").exists()
    with terminal("resume", "--model", model, cwd=workspace) as second:
        second.expect("y yes")
        second.type("y")
        second.expect("All done.")
        second.expect("$0.00")
        second.process.send_signal(signal.SIGKILL)
    assert (workspace / "made").read_text() == "x\n"
    log = open_log(workspace_folder(find_places(os.environ), workspace))
    rows = Counter(row.type for row in log.read(log.heads("session:")[0].stream))
    log.close()
    assert (rows["approval_asked"], rows["tool_started"], rows["tool_finished"]) == (1, 1, 1)
