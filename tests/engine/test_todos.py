"""A todo is completed by the change that names it, with it and never without it."""

from pathlib import Path

import pytest

from handrail.changes.apply import applying
from handrail.changes.change_set import ChangeSet, FileEdit, Origin
from handrail.engine.host.takeover import take_over
from handrail.protocol.commands import AnswerApproval, Redo, Rewind
from handrail.protocol.events import (
    ApprovalAsked,
    ChangeApplied,
    Redone,
    Rewound,
    TodoCompleted,
    TodosChanged,
    ToolFinished,
    TurnFinished,
)
from handrail.protocol.values import Todo, tag_of
from handrail.sessions.session import Session
from handrail.workspace.files import Workspace
from tests.engine.conversation import Conversation, call, calls, conversation

pytestmark = [pytest.mark.anyio, pytest.mark.promise("ENG-28")]


def done(talk: Conversation) -> list[bool]:
    loaded = Session(talk.app.log, talk.id).load().state.todos
    assert loaded == talk.app.state(talk.id).todos, "the list does not follow from the log"
    return [todo.done for todo in loaded]


async def test_a_change_completes_its_todo_a_rewind_opens_it_and_a_redo_completes_it(tmp_path: Path) -> None:
    answers = [
        call("todos", todos=[{"text": "make it"}, {"text": "and more"}]),
        call("write", path="a", text="x\n", todo="t1"),
        call("todos", todos=[{"id": "t1", "text": "made"}, {"text": "later"}]),
        {"text": "ok"},
    ]
    async with conversation(tmp_path, answers, mode="edit") as talk:
        await talk.turn("go")
        assert done(talk) == [True, False, False], "rewording changes no state"
        (change,) = talk.all(ChangeApplied)
        types = talk.types
        assert types[types.index("change_applied") + 1] == "todo_completed"
        await talk.send(Rewind(to=change.change_id))
        await talk.until(Rewound)
        assert done(talk) == [False, False, False]
        await talk.send(Redo())
        await talk.until(Redone)
        assert done(talk) == [True, False, False]


async def test_a_refused_change_completes_nothing(tmp_path: Path) -> None:
    answers = [
        call("todos", todos=[{"text": "make it"}]),
        call("edit", path="missing", edits=[{"search": "a", "replace": "b"}], todo="t1"),
        {"text": "ok"},
    ]
    async with conversation(tmp_path, answers, mode="edit") as talk:
        await talk.turn("go")
        assert done(talk) == [False]


async def test_a_change_that_recovery_finds_made_completes_its_todo(tmp_path: Path) -> None:
    async with conversation(tmp_path, [{"text": "ok"}], mode="edit") as talk:
        log, session_id, workspace = talk.app.log, talk.id, Workspace(tmp_path)
        talk.app.detach(session_id)
        session = Session(log, "s_other")
        assert session.try_hold()
        session.append(TodosChanged(todos=(Todo(id="t1", text="one"), Todo(id="t2", text="two"))))
        edits = (FileEdit("a", "create", None, b"x\n"),)
        with pytest.raises(KeyError), applying(session, workspace, ChangeSet(edits, Origin(todos=("t1",)))):
            raise KeyError("the process ends before the outcome is in the log")
        session.release()
        again = Session(log, "s_other").load()
        assert again.try_hold()
        take_over(again, workspace)
        assert (tmp_path / "a").read_text() == "x\n"
        assert [todo.done for todo in again.state.todos] == [True, False]
        types = [row.type for row in log.read(again.stream)]
        assert types[-2:] == ["change_applied", tag_of(TodoCompleted)]
        again.release()


async def test_a_command_that_was_only_started_completes_nothing(tmp_path: Path) -> None:
    answers = [
        call("todos", todos=[{"text": "serve it"}, {"text": "write it"}]),
        call("run", command="sleep 60", background=True, todo="t1"),
        calls(*(call("write", path=name, text="x\n", todo="t2") for name in "ab")),
        {"text": "ok"},
    ]
    async with conversation(tmp_path, answers, mode="edit") as talk:
        await talk.say("go")
        asked = await talk.until(ApprovalAsked)
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
        await talk.until(TurnFinished)
        assert done(talk) == [False, True]
        started = next(end for end in talk.all(ToolFinished) if end.tool == "run")
        assert "a command completes no todo before it has ended" in started.content
        assert len(talk.all(TodoCompleted)) == 1, "two changes of one answer name it"
