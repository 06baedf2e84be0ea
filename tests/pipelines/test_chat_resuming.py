"""A chat is killed after each of its commits: it goes on, and asks and changes nothing twice."""

import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from handrail.app.app import App
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import (
    Answered,
    ChangeApplied,
    Nudged,
    RunCompleted,
    StageCompleted,
    TurnFinished,
)
from handrail.protocol.ids import session_stream
from handrail.sessions.session import event_from_row
from tests.engine.commits import Commits, is_idle
from tests.engine.conversation import conversation, eventually, words

pytestmark = pytest.mark.anyio
PLAN = {"patterns": ["notes.txt"], "urls": [], "mentions": [], "todos": []}
ANSWER = {
    "summary": "Two files.",
    "todos": [{"text": "write a"}, {"text": "write b"}, {"text": "write c"}],
    "changes": [
        {"form": "create", "path": "a.txt", "text": "a\n", "todo": "write a"},
        {"form": "create", "path": "b.txt", "text": "b\n", "todo": "write b"},
    ],
}
SCRIPT: list[dict[str, Any]] = [
    {"when": "Output of look", "text": json.dumps(PLAN)},
    {"when": "", "text": json.dumps(ANSWER)},
]


class Outcome(NamedTuple):
    """What a chat has left behind."""

    files: dict[str, str]
    changes: int
    stages: Counter[str]
    read: int
    """Answers that could be read."""
    ends: int
    todos: list[bool]


def outcome(app: App, session_id: str, workspace: Path) -> Outcome:
    found = [event_from_row(row).event for row in app.log.read(session_stream(session_id))]
    return Outcome(
        files={path.name: path.read_text() for path in workspace.iterdir()},
        changes=sum(isinstance(event, ChangeApplied) for event in found),
        stages=Counter(event.stage for event in found if isinstance(event, StageCompleted)),
        read=sum(isinstance(event, Answered) and event.structured is not None for event in found),
        ends=sum(isinstance(event, RunCompleted) for event in found),
        todos=[todo.done for todo in app.state(session_id).todos],
    )


@pytest.mark.promise("CHAT-6")
async def test_a_chat_killed_after_any_commit_ends_as_if_nothing_had_been(tmp_path: Path, home: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    commits = Commits(tmp_path / "kept", home, workspace)
    (workspace / "notes.txt").write_text("notes\n")
    async with conversation(workspace, SCRIPT, mode="edit") as talk:
        with commits.watching(talk.app):
            await talk.send(SendMessage(text="Write a and b.", route="chat"))
            await talk.until(TurnFinished)
        undisturbed, session_id = outcome(talk.app, talk.id, workspace), talk.id
    assert (undisturbed.changes, undisturbed.read, undisturbed.ends) == (1, 1, 1)
    assert undisturbed.todos == [True, True, False]
    assert undisturbed.files == {"notes.txt": "notes\n", "a.txt": "a\n", "b.txt": "b\n"}
    assert commits.count > 15
    for number in commits.restored():
        async with conversation(workspace, SCRIPT, session=session_id, mode="edit") as talk:
            await eventually(lambda app=talk.app: is_idle(app, session_id))  # type: ignore[misc]
            assert outcome(talk.app, session_id, workspace) == undisturbed, number


@pytest.mark.promise("CHAT-6")
async def test_an_answer_that_was_cut_off_by_a_restart_is_asked_for_from_its_start(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("notes\n")

    async with conversation(tmp_path, SCRIPT, mode="edit") as talk:
        talk.held.hold(0, 20)
        await talk.send(SendMessage(text="Write a and b.", route="chat"))
        await talk.held.reached(0, 20)
        session_id = talk.id
    async with conversation(tmp_path, SCRIPT, session=session_id, mode="edit") as talk:
        assert (await talk.until(TurnFinished)).reason == "answered"
        assert [event.text for event in talk.all(Nudged)] == [
            "[Handrail was closed while you answered. Answer again, from the start.]"
        ]
        asked = words(talk.requests[-1])
        assert asked.count("notes.txt [hash:") == 1
    assert (tmp_path / "b.txt").read_text() == "b\n"


@pytest.mark.promise("CHAT-6")
async def test_a_greeting_killed_after_any_commit_is_answered(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDRAIL_AUTO_ROUTE", "on")
    workspace = tmp_path / "work"
    workspace.mkdir()
    commits, script = Commits(tmp_path / "kept", home, workspace), [{"text": "Hello!"}, {"text": "Hello!"}]
    async with conversation(workspace, script) as talk:
        with commits.watching(talk.app):
            await talk.turn("hi")
        session_id = talk.id
    assert commits.count > 3
    for number in commits.restored():
        async with conversation(workspace, script, session=session_id) as talk:
            await eventually(lambda app=talk.app: is_idle(app, session_id))  # type: ignore[misc]
            rows = talk.app.log.read(session_stream(session_id))
            (end,) = [row.event for row in map(event_from_row, rows) if isinstance(row.event, TurnFinished)]
            assert end.reason == "answered", number
