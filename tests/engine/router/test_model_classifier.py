"""The question to the router's model: what it is shown, and what the user's settings make of the answer."""

from pathlib import Path

import pytest

from handrail.protocol.commands import SendMessage
from handrail.protocol.events import Routed, RunStarted, TurnFinished
from tests.engine.conversation import call, conversation, words
from tests.engine.router.test_router import DONE, TWO, said

pytestmark = pytest.mark.anyio
UNCLEAR = "cart.py, the rounding"


@pytest.fixture(autouse=True)
def auto_route(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("HANDRAIL_AUTO_ROUTE", "on")


@pytest.mark.promise("ROUTE-3")
@pytest.mark.parametrize(
    ("clarify_below", "act_above", "confidence", "goes"),
    [
        (0.45, 0.70, 0.60, "chat"),
        (0.10, 0.15, 0.20, "agent"),
        (0.10, 0.90, 0.50, "chat"),
        (0.10, 0.90, 0.89, "chat"),
        (0.10, 0.90, 0.95, "agent"),
        (0.90, 0.95, 0.89, ""),
    ],
)
async def test_how_sure_a_model_has_to_be_is_the_users_to_set(
    tmp_path: Path, clarify_below: float, act_above: float, confidence: float, goes: str
) -> None:
    settings = f"[router]\nclarify_below = {clarify_below}\nact_above = {act_above}\n"
    script = [said(decision="agent", confidence=confidence), DONE]
    async with conversation(tmp_path, script, catalogue=TWO, settings=settings) as talk:
        finished = await talk.turn(UNCLEAR)

    (routed,) = talk.all(Routed)
    assert (routed.by, routed.route) == ("model", goes)
    assert finished.reason == ("answered" if goes else "waiting")
    assert [started.pipeline for started in talk.all(RunStarted)] == [goes] * bool(goes)


async def test_the_model_is_shown_the_last_three_turns_and_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "sk-0123456789")
    (tmp_path / "AGENTS.md").write_text("All about the project.\n")
    (tmp_path / "notes.txt").write_text("What the notes say.\n")
    script = [
        said(decision="chat", confidence=0.9),
        {"text": "Answer 1."},
        {"text": "Answer 2."},
        call("read", path="notes.txt") | {"text": "I look."},
        {"text": "Answer 3."},
        {"text": "Answer 4, with sk-0123456789."},
        DONE,
    ]
    async with conversation(tmp_path, script, catalogue=TWO) as talk:
        for number in range(1, 5):
            await talk.send(SendMessage(text=f"Question {number} of @notes.txt", route="agent"))
            await talk.until(TurnFinished)
        before = len(talk.requests)
        await talk.turn(UNCLEAR)
        asked = talk.requests[before]

    assert words(asked) == (
        "Earlier:\n"
        "user: Question 2 of @notes.txt\nassistant: Answer 2.\n"
        "user: Question 3 of @notes.txt\nassistant: I look.\nassistant: Answer 3.\n"
        "user: Question 4 of @notes.txt\nassistant: Answer 4, with [secret SHOP_TOKEN].\n\n"
        f"The user's message:\n{UNCLEAR}"
    )
    assert "project" not in asked.system.replace("the files of a project", "")
    assert (asked.tools, len(asked.messages)) == ((), 1)


@pytest.mark.promise("ROUTE-3")
async def test_a_question_has_no_more_than_seven_options(tmp_path: Path) -> None:
    options = [{"id": f"o{number}", "title": f"File {number}"} for number in range(1, 12)]
    script = [said(decision="clarify", confidence=0.9, question="Which file?", options=options), DONE]
    async with conversation(tmp_path, script, catalogue=TWO) as talk:
        await talk.turn(UNCLEAR)

    (routed,) = talk.all(Routed)
    offered = [option.title for option in routed.decision.options]
    assert routed.by == "model"
    assert offered == [f"File {number}" for number in range(1, 8)]
