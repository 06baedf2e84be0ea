"""`/init`: the draft is refined, shown as a diff, asked about, and written as one change set."""

import json
from pathlib import Path
from typing import Any

import pytest

from handrail.app.history.changes import undo_of
from handrail.protocol.commands import AnswerApproval, SendMessage
from handrail.protocol.events import (
    ApprovalAsked,
    ChangeApplied,
    RequestStarted,
    Rewound,
    RunCompleted,
    ToolFinished,
    TurnFinished,
)
from tests.engine.conversation import Conversation, call, conversation, words

pytestmark = pytest.mark.anyio

INIT = SendMessage(text="Write a first AGENTS.md.", route="init")
REFINED = "# shop\n\nA cart.\n\n## Commands\n- `make test`: all tests\n"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "cart.py").write_text("x = 1\n")
    (folder / "Makefile").write_text("test:\n\tpytest\n")
    return folder


def refines(text: str) -> dict[str, Any]:
    return {"when": "Output of look", "text": json.dumps({"text": text})}


async def decide(talk: Conversation, decision: Any) -> str:
    """Answer the question about the edit; the text at the end of the run."""
    await talk.send(INIT)
    asked = await talk.until(ApprovalAsked)
    assert asked.preview.count("AGENTS.md") >= 1
    await talk.send(AnswerApproval(approval_id=asked.approval_id, decision=decision))
    await talk.until(TurnFinished)
    return talk.all(RunCompleted)[-1].text


@pytest.mark.promise("TERM-63")
async def test_a_refined_draft_is_asked_about_and_can_be_undone(shop: Path) -> None:
    async with conversation(shop, [refines(REFINED)]) as talk:
        assert (await decide(talk, "reject")).startswith("AGENTS.md was not changed:")
        assert not (shop / "AGENTS.md").exists()
        assert (await decide(talk, "once")).startswith("AGENTS.md is written.")
        assert (shop / "AGENTS.md").read_text() == REFINED
        assert len(talk.all(ChangeApplied)) == 1
        await talk.send(undo_of(talk.app, talk.id))
        await talk.until(Rewound)
        assert not (shop / "AGENTS.md").exists()


@pytest.mark.promise("TERM-63")
async def test_without_a_useful_answer_the_draft_of_the_code_is_written(shop: Path) -> None:
    async with conversation(shop, [{"error": {"kind": "give_up"}}], mode="edit") as talk:
        await talk.send(INIT)
        await talk.until(TurnFinished)
        assert "- `make test`: test (Makefile)" in (shop / "AGENTS.md").read_text()


@pytest.mark.promise("TERM-63")
async def test_a_model_without_tools_is_not_asked(shop: Path, tmp_path: Path) -> None:
    script = tmp_path / "plain.json"
    script.write_text(json.dumps({"native_tools": False, "answers": []}))
    async with conversation(shop, None, model=f"scripted/{script}", mode="edit") as talk:
        await talk.send(INIT)
        await talk.until(TurnFinished)
        assert not talk.all(RequestStarted)
        assert "# shop\n" in (shop / "AGENTS.md").read_text()


@pytest.mark.promise("TERM-63")
async def test_existing_notes_are_only_added_to(shop: Path) -> None:
    notes = "# Ours\r\n\r\nBe kind.\r\n"
    (shop / "AGENTS.md").write_bytes(notes.encode())
    async with conversation(shop, [refines("## Commands\n- `make test`: all tests")], mode="edit") as talk:
        await talk.send(INIT)
        await talk.until(TurnFinished)
        added = "\r\n## Commands\r\n- `make test`: all tests\r\n"
        assert (shop / "AGENTS.md").read_bytes().decode() == notes + added
        assert talk.all(RunCompleted)[-1].text.startswith("AGENTS.md now has what was missing.")


async def test_notes_that_say_it_all_stay_as_they_are(shop: Path) -> None:
    notes = "# Ours\n\n`make test`\n\n## Layout\n\nsrc\n\n## Style\n"
    (shop / "AGENTS.md").write_text(notes)
    async with conversation(shop, [refines("")], mode="edit") as talk:
        await talk.send(INIT)
        await talk.until(TurnFinished)
        assert talk.all(RunCompleted)[-1].text.endswith("Nothing was changed.")
    assert (shop / "AGENTS.md").read_text() == notes


@pytest.mark.promise("TERM-63")
async def test_notes_that_somebody_writes_meanwhile_are_not_overwritten(shop: Path) -> None:
    async with conversation(shop, [refines(REFINED)]) as talk:
        await talk.send(INIT)
        asked = await talk.until(ApprovalAsked)
        (shop / "AGENTS.md").write_text("Mine.\n")
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
        await talk.until(TurnFinished)
        assert "was not changed" in talk.all(RunCompleted)[-1].text
    assert (shop / "AGENTS.md").read_text() == "Mine.\n"


async def test_a_model_cannot_use_the_tools_of_init(shop: Path) -> None:
    answers = [call("write_notes", path="AGENTS.md", text="x"), call("survey"), {"text": "No."}]
    async with conversation(shop, answers, mode="edit") as talk:
        await talk.turn("write it")
        assert [each.status for each in talk.all(ToolFinished)] == ["refused", "refused"]
        assert not any(tool.name in ("survey", "write_notes") for tool in talk.requests[0].tools)
    assert not (shop / "AGENTS.md").exists()


@pytest.mark.promise("TERM-63")
@pytest.mark.parametrize("target", [".env", "../key.txt", "nowhere"])
async def test_a_notes_file_that_is_a_link_is_not_shown_to_the_model(shop: Path, target: str) -> None:
    for file in (shop / ".env", shop.parent / "key.txt"):
        file.write_text("the private key\n")
    (shop / "AGENTS.md").symlink_to(target)
    async with conversation(shop, [refines(REFINED)], mode="edit") as talk:
        await talk.send(INIT)
        await talk.until(TurnFinished)
        assert "AGENTS.md is a link" in talk.all(RunCompleted)[-1].text
        assert "the private key" not in "".join(words(request) for request in talk.requests)
        assert not talk.all(ChangeApplied)
