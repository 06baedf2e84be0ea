"""A research run is killed after each of its commits: the report is that of an undisturbed run."""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from handrail.app.app import App
from handrail.engine.run_record import kept_before
from handrail.protocol.commands import AnswerApproval
from handrail.protocol.events import ChangeApplied, GateFailed, RunCompleted, StageCompleted
from handrail.protocol.ids import session_stream
from handrail.sessions.session import event_from_row
from tests.engine.commits import Commits, is_idle
from tests.engine.conversation import Conversation, conversation, eventually
from tests.pipelines.research.questions import BAD, GOOD, NIGHT, QUESTION, answers, collection, web_search

pytestmark = pytest.mark.anyio
FOLLOW_UP = "What do night crossings of a ferry cost, and how is a goat counted?"
GOAT = "A goat counts as half a passenger on every ferry."
BOTH = {
    "evidence": [{"source": "P2", "quote": NIGHT}, {"source": "W1", "quote": GOAT}],
    "answer": f"{NIGHT[:-1]} [P2]. {GOAT} [W1]",
}


class Outcome(NamedTuple):
    """What the runs of a session have left behind."""

    shown: list[str]
    files: dict[str, str]
    changes: int
    stages: Counter[str]
    repairs: int
    kept: dict[str, Any]


def outcome(app: App, session_id: str, workspace: Path) -> Outcome:
    found = [event_from_row(row).event for row in app.log.read(session_stream(session_id))]
    reports = workspace / "reports"
    return Outcome(
        shown=[event.text for event in found if isinstance(event, RunCompleted)],
        files={str(path.relative_to(reports)): path.read_text() for path in reports.glob("*/*")},
        changes=sum(isinstance(event, ChangeApplied) for event in found),
        stages=Counter(event.stage for event in found if isinstance(event, StageCompleted)),
        repairs=sum(isinstance(event, GateFailed) for event in found),
        kept=dict(kept_before(app.log, app.turn_factory.catalogue.find("research"))),
    )


async def finish(talk: Conversation) -> None:
    """Allow the web search, go on at each pause, until the run has ended."""
    app = talk.app
    while True:
        await eventually(lambda: is_idle(app, talk.id) or bool(app.state(talk.id).approvals))
        state = app.state(talk.id)
        if state.approvals:
            [asked] = state.approvals
            await talk.send(AnswerApproval(approval_id=asked, decision="once"))
            await eventually(lambda asked=asked: asked not in app.state(talk.id).approvals)  # type: ignore[misc]
        elif state.paused:
            await talk.say("1")
        else:
            return


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
            await talk.say(f"@research {QUESTION}")
            await finish(talk)
        undisturbed, session_id = outcome(talk.app, talk.id, workspace), talk.id
    assert NIGHT in undisturbed.shown[0]
    assert undisturbed.stages["synthesise"] == undisturbed.stages["verify"] == 2
    assert (undisturbed.changes, undisturbed.repairs, len(undisturbed.shown)) == (1, 1, 1)
    assert commits.count > 20
    for number in commits.restored():
        async with conversation(workspace, script, session=session_id, mode="edit") as talk:
            await finish(talk)
            assert outcome(talk.app, session_id, workspace) == undisturbed, number


@pytest.mark.promise("RESEARCH-5")
async def test_a_follow_up_with_a_web_search_is_the_same_after_a_kill(tmp_path: Path, home: Path) -> None:
    """Catches: a web search that is lost or makes the run fail, an earlier answer that is no longer found."""
    workspace = await collection(tmp_path / "work")
    commits = Commits(tmp_path / "kept", home, workspace)
    with web_search([{"url": "https://example.com/goats", "title": "Goats", "content": GOAT}]) as url:
        settings = f'[knowledge]\nweb_search = "{url}?q={{query}}"\n'
        async with conversation(workspace, answers(), mode="auto", settings=settings) as talk:
            await talk.say(f"@research quick: {QUESTION}")
            await finish(talk)
            session_id = talk.id
        script = answers(BAD, BOTH)
        async with conversation(
            workspace, script, session=session_id, mode="auto", settings=settings
        ) as talk:
            with commits.watching(talk.app):
                await talk.say(f"@research {FOLLOW_UP}")
                await finish(talk)
            undisturbed = outcome(talk.app, session_id, workspace)
        assert f"{NIGHT[:-1]} [P2]." in undisturbed.shown[1]
        assert "as half a passenger on every ferry [W1]." in undisturbed.shown[1]
        assert undisturbed.stages["search_web"] == undisturbed.stages["calibrate"] + 1 == 2
        assert len(undisturbed.kept["answers"]) == len(undisturbed.files) / 2 == undisturbed.changes == 2
        assert commits.count > 25
        for number in commits.restored():
            async with conversation(
                workspace, script, session=session_id, mode="auto", settings=settings
            ) as talk:
                await finish(talk)
                assert outcome(talk.app, session_id, workspace) == undisturbed, number
