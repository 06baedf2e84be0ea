"""Two runs at once, stage by stage beside each other: nothing of one is in the other."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from handrail.app.app import App
from handrail.protocol.events import (
    Answered,
    Recorded,
    RunCompleted,
    RunStarted,
    StageCompleted,
    StageStarted,
    ToolFinished,
)
from handrail.protocol.ids import session_stream
from handrail.protocol.values import to_json
from handrail.sessions.session import event_from_row
from tests.engine.breakout.two_runs import NAMES, Meeting, Meetings, meeting, named, other_of, whole
from tests.engine.conversation import Conversation, Held, conversation, words
from tests.project.source import ROOT

pytestmark = pytest.mark.anyio
STAGES = ["plan", "gather", "draft", "gather", "draft", "publish"]
MEETINGS = 10
"""Five requests, two files of each of two gatherings, and the report."""


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """The workspace, and where runs meet."""
    work, meetings = tmp_path / "work", tmp_path / "meetings"
    work.mkdir()
    meetings.mkdir()
    return work, meetings


def events(app: App, session_id: str) -> list[Recorded]:
    return [event_from_row(row) for row in app.log.read(session_stream(session_id))]


def check(found: list[Recorded], workspace: Path, name: str) -> None:
    """The session has its own run from beginning to end, and nothing with another name."""
    for one in found:
        assert other_of(name) not in to_json(one.event), one.event.type
    known = [one.event for one in found]
    started = next(event for event in known if isinstance(event, RunStarted))
    run_ids = {getattr(event, "run_id", "") for event in known if isinstance(event, StageStarted)}
    stages = [event for event in known if isinstance(event, StageStarted) and event.run_id == started.run_id]
    assert len(run_ids) == 2, "the run, and that of the turn after it"
    assert [event.stage for event in stages] == STAGES
    written = [event.call_id for event in known if isinstance(event, ToolFinished)]
    assert len(written) == len(set(written)) == 5
    assert all(call_id.split(".")[0] in {event.stage_id for event in stages} for call_id in written)
    outputs = {event.stage: event.output for event in known if isinstance(event, StageCompleted)}
    assert outputs["plan"] == {"topics": [name]}
    assert outputs["gather"] == {"files": f"of {name}", "feedback": [f"also look at {name}'s dates"]}
    (completed,) = [event for event in known if isinstance(event, RunCompleted) and event.text]
    assert f"{name} rose by 3 %." in completed.summary
    assert [event.text for event in known if isinstance(event, Answered)][-1] == f"Nothing more of {name}."
    assert (workspace / f"{name}.md").read_text() == f"{name} rose by 3 %.\n"
    assert len(list(workspace.glob(f"{name}-*.txt"))) == 4


@pytest.mark.promise("RUN-6")
async def test_two_runs_of_one_process_never_mix(folders: tuple[Path, Path]) -> None:
    workspace, meetings = folders[0], Meetings(folders[1])
    async with conversation(workspace, [], mode="edit", catalogue=meeting(meetings)) as first:
        model = Meeting(meetings)
        first.app.model_pool._models["scripted/test"] = model
        second = Conversation(first.app, first.app.new_session(), None, Held(), 0)
        async with anyio.create_task_group() as tasks:
            for talk, name in zip((first, second), NAMES, strict=True):
                tasks.start_soon(whole, talk, name)
        await second.aclose()
        for talk, name in zip((first, second), NAMES, strict=True):
            check(events(first.app, talk.id), workspace, name)
            assert talk.seen == events(first.app, talk.id)
            assert not [delta for delta in talk.deltas if other_of(name) in delta.text]
            assert meetings.count(name) == MEETINGS
    told = [words(request) for request in model.requests]
    assert [each for each in told if all(name in each for name in NAMES)] == []
    assert len(told) == 10


@contextmanager
def beside(workspace: Path, meetings: Path, name: str) -> Iterator["subprocess.Popen[bytes]"]:
    """The run of this name in a process of its own."""
    words_of_it = ["-m", "tests.engine.breakout.two_runs", str(workspace), str(meetings), name]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    with subprocess.Popen([sys.executable, *words_of_it], cwd=ROOT, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.promise("RUN-6")
async def test_two_runs_of_two_processes_never_mix(folders: tuple[Path, Path]) -> None:
    workspace, meetings = folders[0], Meetings(folders[1])
    with beside(*folders, NAMES[1]) as other:
        async with conversation(workspace, [], mode="edit", catalogue=meeting(meetings)) as talk:
            model = Meeting(meetings)
            talk.app.model_pool._models["scripted/test"] = model
            await whole(talk, NAMES[0])
            assert other.wait(60) == 0
            sessions = {named(info.title): info.id for info in talk.app.sessions()}
            for name in NAMES:
                check(events(talk.app, sessions[name]), workspace, name)
                assert meetings.count(name) == MEETINGS
    assert {named(words(request)) for request in model.requests} == {NAMES[0]}
