"""What chat makes of an answer's changes and todos, and of names that look like something else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from handrail.protocol.commands import SendMessage
from handrail.protocol.events import ToolFinished, TurnFinished
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


@pytest.mark.promise("CHAT-5")
async def test_several_todos_can_be_done_by_one_change(tmp_path: Path) -> None:
    todos = [{"text": text, "done": text != "three"} for text in ("one", "two", "three")]
    change = {"form": "create", "path": "a.txt", "text": "a\n"}
    async with conversation(tmp_path, [plan(), answer(change, todos=todos)], mode="edit") as talk:
        await work(talk)
        assert [(todo.text, todo.done) for todo in talk.app.state(talk.id).todos] == [
            ("one", True),
            ("two", True),
            ("three", False),
        ]


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
