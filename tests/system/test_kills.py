"""Pulling the plug: real processes killed at random moments, then the session goes on."""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from handrail.__main__ import main
from handrail.config.layers import load_settings
from handrail.config.places import find_places, workspace_folder
from handrail.config.settings import DatabaseSettings
from handrail.protocol.events import (
    Answered,
    ChangeAbandoned,
    ChangeApplied,
    ChangePrepared,
    Recorded,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from handrail.protocol.values import to_json
from handrail.sessions.session import Session
from handrail.storage.log_repair import open_log, verify
from tests.forks import Forks, forks
from tests.interfaces.cli.program import command, environment, run, script

KILLS = 200
KILLS_ON_A_SERVER = 60
IN_THE_START = 15
"""So many more come while the program starts."""
MOST_LINES = 20
AHEAD = ("anyio._backends._asyncio", "handrail.app.app", "handrail.interfaces.cli.commands.run")
"""What the program imports when it is called so."""
DEADLINE = 60.0
SPOKEN = "Working on it, slowly, one word after the other, so that it can be cut off anywhere."


def answers(number: int) -> list[dict[str, Any]]:
    """A turn with text that streams for a while and three side effects, each leaving its own mark."""

    def effect(mark: str) -> dict[str, Any]:
        return {"name": "run", "arguments": {"command": f"sh mark.sh {mark}"}}

    write = {"name": "write", "arguments": {"path": f"file_{number}.txt", "text": f"{number}\n"}}
    return [
        {"when": f"task {number}.", "text": SPOKEN, "chunk_delay_ms": 4, "calls": [effect(f"{number}a")]},
        {"when": f"ran:{number}a:", "text": SPOKEN, "chunk_delay_ms": 2, "calls": [write]},
        {"when": f"file_{number}.txt", "calls": [effect(f"{number}b")]},
        {"when": f"ran:{number}b:", "text": f"finished {number}", "chunk_delay_ms": 2},
    ]


def words(model: str, session: str, number: int) -> list[str]:
    """How the program is called to take the next message of the session."""
    how = ["--json", "--model", model, "--mode", "auto", "--allow", "sh mark.sh"]
    return ["run", f"task {number}.", *how, "--session", session]


def forked(words: list[str]) -> None:
    """The program, called so."""
    sys.argv = ["handrail", *words]
    main()


def kill_in_the_start(words: list[str], workspace: Path, moment: float) -> bytes:
    """What the program itself has written within so many seconds."""
    process = subprocess.Popen(
        command(*words), cwd=workspace, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=moment)
    process.kill()
    said, complaints = process.communicate(timeout=DEADLINE)
    assert b"Traceback" not in complaints, complaints.decode()
    return said


def kill_at_work(words: list[str], children: Forks, chance: random.Random) -> bytes:
    """What a process has written that is killed some lines, and then some time, after it began."""
    children.start(*words)
    children.read(DEADLINE, lines=chance.randint(0, MOST_LINES))
    children.read(chance.expovariate(1 / 0.03))
    return children.kill()


def whole(said: bytes) -> list[dict[str, Any]]:
    """The whole lines of what was written."""
    return [json.loads(line) for line in said.decode().splitlines(keepends=True) if line.endswith("\n")]


def events_of(workspace: Path, session_id: str) -> list[Recorded]:
    database = load_settings(find_places(os.environ), workspace, environ=os.environ).settings.database
    log = open_log(workspace_folder(find_places(os.environ), workspace), database, workspace)
    try:
        assert log.notices == []
        assert verify(log) == []
        return Session(log, session_id).read_after(0, 1_000_000)
    finally:
        log.close()


@pytest.mark.promise("ENG-1")
def test_nothing_acknowledged_is_lost_and_nothing_happens_twice(
    tmp_path: Path, database: DatabaseSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDRAIL_DATABASE", database.url)
    monkeypatch.setenv("HANDRAIL_DATABASE_WORKSPACE", database.workspace)
    kills = KILLS_ON_A_SERVER if database.url else KILLS
    ahead = (*AHEAD, "handrail.storage.postgres.database") if database.url else AHEAD
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "mark.sh").write_text('echo "$1" >> effects.txt\necho "ran:$1:"\n')
    chance = random.Random()
    first = run("run", "hello", "--json", "--model", script(tmp_path, {"text": "hi"}), cwd=workspace)
    session_id = json.loads(first.stdout.splitlines()[0])["session_id"]

    acknowledged: list[dict[str, Any]] = []
    complaints = tmp_path / "complaints"
    with forks(__name__, *ahead, folder=workspace, complaints=complaints) as children:
        for number in range(IN_THE_START + kills):
            how = words(script(tmp_path, *answers(number)), session_id, number)
            if number < IN_THE_START:
                acknowledged += whole(kill_in_the_start(how, workspace, chance.uniform(0, 0.6)))
            else:
                acknowledged += whole(kill_at_work(how, children, chance))
    assert not complaints.read_text()

    last = script(tmp_path, {"when": "and now?", "text": "all is well"})
    resumed = run("resume", session_id, "--message", "and now?", "--model", last, cwd=workspace)
    assert (resumed.returncode, resumed.stdout) == (0, "all is well\n")

    recorded = events_of(workspace, session_id)
    assert len(acknowledged) > kills
    everything_acknowledged_is_there(acknowledged, recorded)
    every_effect_happened_as_the_log_says(workspace, recorded)
    every_change_is_whole_or_absent(workspace, recorded)
    every_turn_has_one_end_and_cut_answers_are_marked(recorded)


def everything_acknowledged_is_there(acknowledged: list[dict[str, Any]], recorded: list[Recorded]) -> None:
    stored = {one.seq: one for one in recorded}
    for line in acknowledged:
        one = stored[line["seq"]]
        fields = {key: value for key, value in line.items() if key not in ("seq", "at")}
        assert json.loads(to_json(one.event)) == fields


def every_effect_happened_as_the_log_says(workspace: Path, recorded: list[Recorded]) -> None:
    done = Counter((workspace / "effects.txt").read_text().split())
    assert set(done.values()) == {1}, "a side effect happened twice"
    events = [one.event for one in recorded]
    begun = {
        event.call_id: event.arguments["command"].split()[-1]
        for event in events
        if isinstance(event, ToolStarted) and event.tool == "run"
    }
    ended = {event.call_id: event.status for event in events if isinstance(event, ToolFinished)}
    assert set(begun) <= set(ended)
    assert {begun[call] for call, status in ended.items() if call in begun and status == "ok"} <= set(done)
    assert set(done) <= set(begun.values()), "an effect without its record"
    assert {"ok", "interrupted"} <= set(ended.values()), "the kills hit too few moments to prove anything"


def every_change_is_whole_or_absent(workspace: Path, recorded: list[Recorded]) -> None:
    events = [one.event for one in recorded]
    prepared = {event.change_id: event for event in events if isinstance(event, ChangePrepared)}
    applied = {event.change_id for event in events if isinstance(event, ChangeApplied)}
    abandoned = {event.change_id for event in events if isinstance(event, ChangeAbandoned)}
    assert set(prepared) == applied | abandoned
    assert not applied & abandoned
    by_model = [prepared[change] for change in applied if prepared[change].by == "agent"]
    made = {file.path for change in by_model for file in change.files}
    assert made, "no change was ever made"
    assert {path.name for path in workspace.iterdir()} == made | {"mark.sh", "effects.txt"}
    for path in made:
        assert (workspace / path).read_text() == path.removeprefix("file_").removesuffix(".txt") + "\n"


def every_turn_has_one_end_and_cut_answers_are_marked(recorded: list[Recorded]) -> None:
    open_turn = ""
    for one in recorded:
        match one.event:
            case TurnStarted(turn_id=turn_id):
                assert not open_turn
                open_turn = turn_id
            case TurnFinished(turn_id=turn_id):
                assert turn_id == open_turn
                open_turn = ""
            case Answered(text=text, end="interrupted"):
                assert SPOKEN.startswith(text) or text.startswith("finished")
    assert not open_turn
    cut = [
        one.event.text
        for one in recorded
        if isinstance(one.event, Answered) and one.event.end == "interrupted"
    ]
    assert cut, "no answer was ever cut"
