"""What chat makes of an answer's changes and todos, and of names that look like something else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from handrail.protocol.commands import CompleteTodo, RunCommand, SendMessage
from handrail.protocol.events import Answered, TodoCompleted, ToolFinished, TurnFinished
from tests.engine.conversation import Conversation, conversation, words
from tests.pipelines.test_chat import hash_of, plan, said

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def routed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_AUTO_ROUTE", "on")


def answer(*changes: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return said("", {"summary": "Done.", "changes": changes, **more})


async def work(talk: Conversation, text: str = "Write what is missing.") -> list[ToolFinished]:
    """The calls that changed files, or did not."""
    await talk.send(SendMessage(text=text, route="chat"))
    await talk.until(TurnFinished)
    return [end for end in talk.all(ToolFinished) if end.tool in ("write", "edit", "delete")]


@pytest.mark.promise("CHAT-1")
async def test_create_writes_over_no_file_also_one_that_was_shown(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text("mine = 1\n")
    created = {"form": "create", "path": "cart.py", "text": "gone\n", "base_hash": hash_of("mine = 1\n")}
    async with conversation(tmp_path, [plan("cart.py"), answer(created)], mode="edit") as talk:
        (end,) = await work(talk)
        assert end.error
        assert end.error.reason == "file_exists"
    assert (tmp_path / "cart.py").read_text() == "mine = 1\n"


async def test_rewrite_makes_no_new_file(tmp_path: Path) -> None:
    rewritten = {"form": "rewrite", "path": "cart.py", "text": "a = 1\n"}
    async with conversation(tmp_path, [plan(), answer(rewritten)], mode="edit") as talk:
        (end,) = await work(talk)
        assert end.error
        assert end.error.reason == "file_missing"


async def test_an_empty_file_can_be_created_among_others(tmp_path: Path) -> None:
    empty = {"form": "create", "path": "pkg/__init__.py", "text": "", "base_hash": "", "edits": []}
    other = {"form": "create", "path": "pkg/cart.py", "text": "a = 1\n"}
    async with conversation(tmp_path, [plan(), answer(empty, other)], mode="edit") as talk:
        assert [end.status for end in await work(talk)] == ["ok", "ok"]
    assert (tmp_path / "pkg" / "__init__.py").read_bytes() == b""
    assert (tmp_path / "pkg" / "cart.py").read_text() == "a = 1\n"


@pytest.mark.promise("CHAT-50")
async def test_each_change_completes_the_todo_that_it_names_and_no_word_of_the_model_does(
    tmp_path: Path,
) -> None:
    todos = [{"text": text, "done": True} for text in ("one", "two", "three")]
    first = {"form": "create", "path": "a.txt", "text": "a\n", "todo": " one "}
    others = [{"form": "create", "path": f"{name}.txt", "text": f"{name}\n"} for name in "bc"]
    changes = (first, {**others[0], "todo": "no such todo"}, others[1])
    async with conversation(tmp_path, [plan(), answer(*changes, todos=todos)], mode="edit") as talk:
        await work(talk)
        assert done_todos(talk) == {"one": True, "two": False, "three": False}
        assert [event.todo_id for event in talk.all(TodoCompleted)] == ["t1"]
        structured = talk.all(Answered)[-1].structured
        assert structured
        assert structured.next_steps[0].label == "Continue"
        await talk.send(CompleteTodo(todo_id="t3"))
        await talk.until(TodoCompleted)
        assert done_todos(talk) == {"one": True, "two": False, "three": True}


@pytest.mark.promise("CHAT-50")
async def test_changes_that_are_refused_complete_no_todo(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("mine\n")
    changes = [{"form": "create", "path": f"{name}.txt", "text": "x\n", "todo": name} for name in "ab"]
    script = [plan(), answer(*changes, todos=[{"text": "a"}, {"text": "b"}])]
    async with conversation(tmp_path, script, mode="edit") as talk:
        await work(talk)
        assert done_todos(talk) == {"a": False, "b": False}


@pytest.mark.promise("CHAT-50")
async def test_a_todo_with_a_command_is_completed_by_its_success_alone(tmp_path: Path) -> None:
    todos = [{"text": "write it"}, {"text": "see that it is there", "command": "cat a.txt"}]
    change = {"form": "create", "path": "a.txt", "text": "a\n", "todo": "see that it is there"}
    script = [plan(), answer(change, todos=todos), {"text": "It is there."}]
    async with conversation(tmp_path, script, mode="auto") as talk:
        (end,) = await work(talk)
        assert "t2 is completed by this command alone: cat a.txt" in end.content
        assert done_todos(talk) == {"write it": False, "see that it is there": False}
        for command, ended in (("cat b.txt", False), ("cat a.txt", True)):
            await talk.send(RunCommand(command=command))
            await talk.until(TurnFinished)
            assert done_todos(talk) == {"write it": False, "see that it is there": ended}


def done_todos(talk: Conversation) -> dict[str, bool]:
    return {todo.text: todo.done for todo in talk.app.state(talk.id).todos}


async def test_a_name_with_brackets_is_a_name_first(tmp_path: Path) -> None:
    folder = tmp_path / "app" / "[id]"
    folder.mkdir(parents=True)
    (folder / "page.tsx").write_text("the page of one\n")
    (tmp_path / "[slug].tsx").write_text("the page of all\n")
    (tmp_path / "a.ts").write_text("only a\n")
    script = [plan("app/[id]/page.tsx", "*.tsx", "[ab].ts", "[c].ts"), said("", {"summary": "Pages."})]
    async with conversation(tmp_path, script) as talk:
        await talk.turn("what do these pages do?")
        told = words(talk.requests[1])
        assert all(text in told for text in ("the page of one", "the page of all", "only a"))
        assert "[Not found: [c].ts: no file matches]" in told


async def test_a_name_with_colons_or_line_ends_leads_to_no_other_file(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("private.txt\n")
    (tmp_path / "private.txt").write_text("the salary is 5\n")
    (tmp_path / "private.txt:1:a.md").write_text("total, here\n")
    (tmp_path / "b\nprivate.txt").write_text("total, there\n")
    script = [plan("*private.txt", mentions=["total"]), said("", {"summary": "It adds."})]
    async with conversation(tmp_path, script) as talk:
        await talk.turn("what does total do?")
        told = words(talk.requests[1])
        assert "### private.txt:1:a.md" in told
        assert "salary" not in told
