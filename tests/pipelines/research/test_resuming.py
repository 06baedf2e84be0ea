"""A research run is killed after each of its commits: the report is that of an undisturbed run."""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from handrail.app.app import App
from handrail.engine.run_record import kept_before
from handrail.protocol.events import ChangeApplied, GateFailed, RunCompleted, StageCompleted
from handrail.protocol.ids import session_stream
from handrail.sessions.session import event_from_row
from tests.engine.commits import Commits, is_idle
from tests.engine.conversation import conversation, eventually
from tests.pipelines.research.questions import BAD, GOOD, NIGHT, QUESTION, answers, collection

pytestmark = pytest.mark.anyio


class Outcome(NamedTuple):
    """What a run has left behind."""

    shown: list[str]
    report: str
    answer: str
    changes: int
    stages: Counter[str]
    repairs: int
    kept: dict[str, Any]


def outcome(app: App, session_id: str, workspace: Path) -> Outcome:
    found = [event_from_row(row).event for row in app.log.read(session_stream(session_id))]
    [folder] = (workspace / "reports").iterdir()
    return Outcome(
        shown=[event.text for event in found if isinstance(event, RunCompleted)],
        report=(folder / "report.md").read_text(),
        answer=(folder / "answer.json").read_text(),
        changes=sum(isinstance(event, ChangeApplied) for event in found),
        stages=Counter(event.stage for event in found if isinstance(event, StageCompleted)),
        repairs=sum(isinstance(event, GateFailed) for event in found),
        kept=dict(kept_before(app.log, app.turn_factory.catalogue.find("research"))),
    )


@pytest.mark.promise("RESEARCH-5")
async def test_a_run_killed_after_any_commit_delivers_the_report_of_an_undisturbed_one(
    tmp_path: Path, home: Path
) -> None:
    """Catches: labels that change with a second search, files written twice, a repair that is lost."""
    workspace = await collection(tmp_path / "work")
    commits = Commits(tmp_path / "kept", home, workspace)
    script = answers(BAD, GOOD)
    async with conversation(workspace, script, mode="edit") as talk:
        with commits.watching(talk.app):
            await talk.turn(f"@research {QUESTION}")
            await talk.turn("1")
        undisturbed, session_id = outcome(talk.app, talk.id, workspace), talk.id
    assert NIGHT in undisturbed.report
    assert undisturbed.stages["synthesise"] == undisturbed.stages["verify"] == 2
    assert (undisturbed.changes, undisturbed.repairs, len(undisturbed.shown)) == (1, 1, 1)
    assert commits.count > 20
    for number in commits.restored():
        async with conversation(workspace, script, session=session_id, mode="edit") as talk:
            await eventually(lambda app=talk.app: is_idle(app, session_id))  # type: ignore[misc]
            if talk.app.state(session_id).paused:
                await talk.say("1")
                await eventually(lambda app=talk.app: is_idle(app, session_id))  # type: ignore[misc]
            assert outcome(talk.app, session_id, workspace) == undisturbed, number
