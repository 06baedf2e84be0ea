"""A structured answer that was cut: what is kept, `/continue` and `/retry`."""

import json
from pathlib import Path
from typing import Any

import pytest

from handrail.protocol.commands import SendMessage
from handrail.protocol.events import (
    Answered,
    ChangeApplied,
    ChangePrepared,
    RequestFailed,
    RequestStarted,
    ToolFinished,
    TurnFinished,
    UserMessage,
)
from tests.engine.conversation import Conversation, conversation, words
from tests.pipelines.test_chat import FIX, QUESTION, hash_of, plan

pytestmark = pytest.mark.anyio
CART = "def total(items):\n    return sum(items)\n"
KEPT: dict[str, Any] = {
    "summary": "I add tax.",
    "todos": [{"text": "write tax.py"}, {"text": "use it"}],
    "changes": [{"form": "create", "path": "tax.py", "text": "TAX = 0.2\n", "todo": "write tax.py"}],
}
REST: dict[str, Any] = {
    "summary": "And use it.",
    "changes": [
        {
            "form": "replace",
            "path": "cart.py",
            "todo": "use it",
            "base_hash": hash_of(CART),
            "edits": [{"search": "sum(items)", "replace": "sum(items) * 1.2"}],
        }
    ],
    "commands": ["pytest -q"],
}
CUT_TEXT = json.dumps(KEPT)[:-2] + ', {"form": "replace", "path": "cart.py", "edits": [{"sea'
CONTINUE = SendMessage(text="Go on from where you stopped.", route="chat", resume="continue")
RETRY = SendMessage(text="Answer again, from the start.", route="chat", resume="retry")


@pytest.fixture(autouse=True)
def routed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_AUTO_ROUTE", "on")


@pytest.fixture
def cart(tmp_path: Path) -> Path:
    (tmp_path / "cart.py").write_text(CART)
    return tmp_path


def bodies(talk: Conversation) -> list[bytes | None]:
    return [talk.app.log.request(event.body) for event in talk.all(RequestStarted) if not event.apart]


async def send(talk: Conversation, command: SendMessage) -> TurnFinished:
    await talk.send(command)
    return await talk.until(TurnFinished)


def asking(text: str = FIX) -> SendMessage:
    return SendMessage(text=text, route="chat")


@pytest.mark.promise("CHAT-41")
@pytest.mark.parametrize("finish", ["length", "cut", "filtered", "stop"])
async def test_cut_answer_changes_nothing_and_continuing_makes_all_of_it_at_once(
    cart: Path, finish: str
) -> None:
    script = [
        plan("cart.py"),
        {"when": "was cut. The user accepts", "text": json.dumps(REST)},
        {"when": "", "text": CUT_TEXT, "finish": finish},
    ]
    async with conversation(cart, script, mode="edit") as talk:
        finished = await send(talk, asking())
        cut = talk.all(Answered)[-1]
        assert cut.structured is None
        assert cut.recovered
        assert [todo.text for todo in cut.recovered.todos] == ["write tax.py", "use it"]
        assert cut.recovered.changes == tuple(KEPT["changes"])
        assert "2 todos, 1 change, of which no change is made" in finished.detail
        assert "/continue" in finished.detail
        assert "/retry" in finished.detail
        assert not talk.all(ChangePrepared)
        assert not (cart / "tax.py").exists()
        await send(talk, CONTINUE)
        told = words(talk.requests[-1])
        assert "TAX = 0.2" in told
        assert "write tax.py" in told
        (change,) = talk.all(ChangePrepared)
        assert [file.path for file in change.files] == ["tax.py", "cart.py"]
        assert len(talk.all(ChangeApplied)) == 1
        assert {todo.text: todo.done for todo in talk.app.state(talk.id).todos} == {
            "write tax.py": True,
            "use it": True,
        }
        last = talk.all(Answered)[-1]
        assert last.structured
        assert last.structured.commands == ("pytest -q",)
    assert (cart / "tax.py").read_text() == "TAX = 0.2\n"
    assert "1.2" in (cart / "cart.py").read_text()


@pytest.mark.promise("CHAT-41")
async def test_kept_and_new_changes_are_refused_together(cart: Path) -> None:
    stale = {**REST, "changes": [{**REST["changes"][0], "base_hash": "0" * 12}]}
    script = [
        plan("cart.py"),
        {"when": "was cut. The user accepts", "text": json.dumps(stale)},
        {"when": "", "text": CUT_TEXT, "finish": "length"},
    ]
    async with conversation(cart, script, mode="edit") as talk:
        await send(talk, asking())
        await send(talk, CONTINUE)
        assert any(end.status == "refused" for end in talk.all(ToolFinished))
        assert not talk.all(ChangeApplied)
    assert not (cart / "tax.py").exists()
    assert (cart / "cart.py").read_text() == CART


@pytest.mark.promise("CHAT-41")
async def test_answer_cut_twice_keeps_the_parts_of_both(cart: Path) -> None:
    more = {"summary": "More.", "commands": ["one"], "todos": [{"text": "third"}]}
    second = json.dumps(more)[:-1] + ', "changes": [{"fo'
    script = [
        plan("cart.py"),
        {"when": '"third"', "text": json.dumps(REST)},
        {"when": "was cut. The user accepts", "text": second, "finish": "length"},
        {"when": "", "text": CUT_TEXT, "finish": "length"},
    ]
    async with conversation(cart, script, mode="edit") as talk:
        await send(talk, asking())
        await send(talk, CONTINUE)
        again = talk.all(Answered)[-1].recovered
        assert again
        assert [todo.text for todo in again.todos] == ["write tax.py", "use it", "third"]
        assert again.commands == ("one",)
        await send(talk, CONTINUE)
        last = talk.all(Answered)[-1].structured
        assert last
        assert last.commands == ("one", "pytest -q")
    assert (cart / "tax.py").exists()


@pytest.mark.promise("CHAT-40")
async def test_stream_that_breaks_off_keeps_its_complete_parts(cart: Path) -> None:
    """The last attempt counts; until the user continues, no request has anything of it."""
    pieces = [CUT_TEXT[at : at + 20] for at in range(0, len(CUT_TEXT), 20)]
    broken = {"kind": "give_up", "message": "The line went dead.", "after_chunks": len(pieces)}
    script = [
        plan("cart.py"),
        {"when": "was cut. The user accepts", "text": json.dumps(REST)},
        {"when": "", "text": pieces, "error": broken},
    ]
    async with conversation(cart, script, mode="edit") as talk:
        finished = await send(talk, asking())
        assert finished.reason == "failed"
        assert "The line went dead." in finished.detail
        assert "Recovered: 2 todos, 1 change" in finished.detail
        assert talk.all(RequestFailed)[-1].recovered
        assert not talk.all(Answered)[1:]
        await send(talk, CONTINUE)
    assert (cart / "tax.py").exists()
    assert "1.2" in (cart / "cart.py").read_text()


@pytest.mark.promise("CHAT-42")
@pytest.mark.parametrize("question", [FIX, QUESTION])
async def test_retry_repeats_the_request_to_the_byte_and_forgets_the_answer(
    cart: Path, question: str
) -> None:
    script = [plan("cart.py"), {"when": "", "text": CUT_TEXT, "finish": "length"}]
    async with conversation(cart, script, mode="edit") as talk:
        await send(talk, asking(question))
        for _ in range(2):
            await send(talk, RETRY)
        first, *others = bodies(talk)
        assert first
        assert others == [first, first]
        assert len(talk.requests) == 4  # one plan
        assert [message.keep is None for message in talk.all(UserMessage)] == [True, False, False]


@pytest.mark.promise("CHAT-42")
async def test_retry_of_work_keeps_what_was_done_and_repeats_only_the_last_request(tmp_path: Path) -> None:
    script: list[dict[str, Any]] = [
        {"calls": [{"name": "write", "arguments": {"path": "a.txt", "text": "a"}}]},
        {"text": "It is wri", "finish": "length"},
    ]
    async with conversation(tmp_path, script, mode="edit") as talk:
        await send(talk, SendMessage(text="write a.txt", route="agent"))
        await send(talk, SendMessage(text="again", route="agent", resume="retry"))
        _, second, third = bodies(talk)
        assert second == third
        assert len(talk.all(ChangeApplied)) == 1
        assert "It is wri" not in words(talk.requests[-1])


@pytest.mark.promise("CHAT-42")
async def test_retry_after_a_failed_request_sends_it_again(cart: Path) -> None:
    error = {"kind": "give_up", "message": "Busy.", "times": 1}
    script = [{"text": "Hello.", "error": error}]
    async with conversation(cart, script) as talk:
        assert (await send(talk, asking("hi"))).reason == "failed"
        assert (await send(talk, RETRY)).reason == "answered"
        first, second = bodies(talk)
        assert first == second


async def test_continue_after_a_complete_answer_is_a_message_like_others(cart: Path) -> None:
    async with conversation(cart, [{"text": "Hello."}, {"text": "What else?"}]) as talk:
        await send(talk, asking("hi"))
        finished = await send(talk, CONTINUE)
        assert finished.reason == "answered"
        assert "accepts" not in words(talk.requests[-1])
        assert "Go on from where you stopped." in words(talk.requests[-1])
