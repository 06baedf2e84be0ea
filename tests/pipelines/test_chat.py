"""Chat: what a message needs is planned, loaded and answered once; who only asks changes nothing."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from handrail.models.model import Capabilities, Request, UserTurn
from handrail.models.scripted_model import ScriptedModel
from handrail.protocol.commands import AnswerApproval, SendMessage
from handrail.protocol.events import (
    Answered,
    ApprovalAsked,
    ChangeApplied,
    Nudged,
    RunCompleted,
    RunContinued,
    RunStarted,
    StageStarted,
    ToolFinished,
    TurnFinished,
)
from tests.engine.conversation import call, conversation, run, words
from tests.file_server import serving
from tests.models.fake_server import FakeServer, Recorded, Reply, Said, body_for
from tests.pictures import png
from tests.tools.hook_programs import program, section

pytestmark = pytest.mark.anyio
QUESTION = "what does total() in cart.py do?"
CART = "def total(items):\n    return sum(items)\n"
FIX = "Fix total in cart.py: it should add tax."


@pytest.fixture(autouse=True)
def routed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_AUTO_ROUTE", "on")


@pytest.fixture
def cart(tmp_path: Path) -> Path:
    (tmp_path / "cart.py").write_text(CART)
    return tmp_path


def said(when: str, value: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"when": when, "text": json.dumps(value), **more}


def plan(*patterns: str, **others: Sequence[str]) -> dict[str, Any]:
    """The answer to the plan pass: its message begins with the question."""
    return said("Output of look", {"patterns": patterns, "urls": [], "mentions": [], "todos": []} | others)


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@pytest.mark.promise("CHAT-1")
async def test_a_greeting_costs_one_request(cart: Path) -> None:
    async with conversation(cart, [{"text": "Hello!"}]) as talk:
        assert (await talk.turn("hi")).reason == "answered"
        assert len(talk.requests) == 1
        assert not talk.requests[0].tools
        assert [event.pipeline for event in talk.all(RunStarted)] == ["chat"]
        assert [event.text for event in talk.all(Answered)] == ["Hello!"]


@pytest.mark.promise("CHAT-1")
async def test_a_question_about_code_is_planned_loaded_and_answered_in_two_requests(cart: Path) -> None:
    script = [plan("cart.py", "src/**/*.rs", "gone.py"), said("", {"summary": "It adds."})]
    async with conversation(cart, script) as talk:
        assert (await talk.turn(QUESTION)).reason == "answered"
        assert len(talk.requests) == 2
        stages = [event.stage for event in talk.all(StageStarted)]
        assert stages == ["look", "plan", "load", "answer"]
        # Nothing is to be applied, so that stage is not counted.
        assert [(event.number, event.of) for event in talk.all(StageStarted)] == [
            (1, 4),
            (2, 4),
            (3, 4),
            (4, 4),
        ]
        asked = words(talk.requests[1])
        assert f"### cart.py [hash: {hash_of(CART)}" in asked
        assert "return sum(items)" in asked
        assert "src/**/*.rs: no file matches" in asked
        assert "gone.py: " in asked
        assert talk.app.state(talk.id).files.files["cart.py"].whole
        assert talk.all(RunCompleted)[0].summary == ""


@pytest.mark.promise("CHAT-1")
async def test_what_is_sent_to_a_server_has_the_files_and_no_tools(cart: Path) -> None:
    def answer(request: Recorded) -> Reply:
        told = request.json["messages"][-1]["content"]
        planned = {"patterns": ["cart.py"], "urls": [], "mentions": [], "todos": []}
        text = json.dumps(planned if "Output of look" in told else {"summary": "It adds."})
        return Reply(body_for(request.path, Said(text=tuple(text))))

    with FakeServer(answer) as server:
        settings = f'[connections.mine]\nbase_url = "{server.url}/v1"\n'
        async with conversation(cart, None, settings=settings, model="mine/m") as talk:
            await talk.turn("hi")
            assert len(chats(server)) == 1
            assert (await talk.turn(QUESTION)).reason == "answered"
            assert talk.all(Answered)[-1].text == "It adds."
        greeted, planned, answered = chats(server)
        assert all("tools" not in request.json for request in (greeted, planned, answered))
        assert f"cart.py [hash: {hash_of(CART)}" in json.dumps(answered.json)
        assert "return sum(items)" not in json.dumps(planned.json)


def chats(server: FakeServer) -> list[Recorded]:
    return [request for request in server.requests if request.path.endswith("/chat/completions")]


async def test_a_name_is_searched_for_and_its_file_read(cart: Path) -> None:
    script = [plan(mentions=["total", "nowhere_at_all"]), said("", {"summary": "It adds."})]
    async with conversation(cart, script) as talk:
        await talk.turn("how is total computed?")
        asked = words(talk.requests[1])
        assert "Where total is:\ncart.py:1:def total(items):" in asked
        assert "return sum(items)" in asked
        assert "nowhere_at_all: no match" in asked


async def test_an_address_of_the_user_is_fetched_and_one_of_the_models_is_not_without_asking(
    cart: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pages = tmp_path_factory.mktemp("pages")
    for name in ("rates.html", "other.html"):
        (pages / name).write_text(f"<p>{name} says 19 %.</p>")
    with serving(pages) as url:
        yours, other = f"{url}/rates.html", f"{url}/other.html"
        script = [plan(urls=[yours, other], todos=["look it up"]), said("", {"summary": "19 %."})]
        async with conversation(cart, script, answerable=False) as talk:
            assert (await talk.turn(f"what does {yours} say?")).reason == "answered"
            asked = words(talk.requests[1])
            assert "rates.html says 19 %." in asked
            assert "other.html says" not in asked
            assert f"[Not found: {other}: This needs the user's approval" in asked
            assert "[Planned steps: look it up]" in asked


async def test_a_plan_that_cannot_be_read_costs_no_answer(cart: Path) -> None:
    script = [{"when": "Question:", "text": "no"}, {"when": "not what was asked", "text": "no"}]
    async with conversation(cart, [*script, said("", {"summary": "It adds."})]) as talk:
        assert (await talk.turn(QUESTION)).reason == "answered"
        assert talk.all(Answered)[-1].text == "It adds."


@pytest.mark.promise("CHAT-2")
async def test_an_answer_is_words_while_it_streams_and_has_its_parts_at_the_end(cart: Path) -> None:
    whole = {
        "summary": 'It "adds"\nall.',
        "sections": [{"title": "How", "text": "By sum()."}],
        "commands": ["pytest -q"],
        "next_steps": [{"label": "Add tax", "input": "Add tax to total."}],
    }
    text = json.dumps(whole)
    pieces = [text[at : at + 5] for at in range(0, len(text), 5)]
    async with conversation(cart, [plan(), {"text": pieces}]) as talk:
        await talk.turn(QUESTION)
        answered = talk.all(Answered)[-1]
        live = "".join(each.text for each in talk.deltas if each.message_id == answered.message_id)
        assert live.startswith('It "adds"\nall.\n\n### How\n\nBy sum().')
        assert answered.text.startswith(live)
        assert answered.text.endswith("```sh\npytest -q\n```\n\n**Next**\n\n1. Add tax: `Add tax to total.`")
        assert answered.structured
        assert answered.structured.next_steps[0].input == "Add tax to total."
        assert [json.loads(line) for line in raw(talk, answered).splitlines()[:-1]] == pieces


def raw(talk: Any, answered: Answered) -> str:
    """The bytes of the answer as they came."""
    return str((talk.app.log.blob(answered.raw) or b"").decode())


@pytest.mark.promise("CHAT-3")
async def test_an_answer_that_cannot_be_read_is_asked_for_once_more_and_then_only_its_words_count(
    cart: Path,
) -> None:
    broken = '{"summary": "It adds.", "sections": [{"text": 3}], "commands": "rm"'
    good = said("cannot be read", {"summary": "It adds."})
    async with conversation(cart, [plan(), {"text": broken}, good]) as talk:
        assert (await talk.turn(QUESTION)).reason == "answered"
        assert "cut" in talk.all(Nudged)[0].text
        assert talk.all(Answered)[-1].structured
    async with conversation(cart, [plan(), {"text": broken}, {"text": broken}]) as talk:
        finished = await talk.turn(QUESTION)
        assert finished.reason == "answered"
        last = talk.all(Answered)[-1]
        assert (last.structured, last.text) == (None, "It adds.")
        assert "only its text is used" in finished.detail
        assert len(talk.requests) == 3


@pytest.mark.promise("CHAT-3")
async def test_changes_of_an_answer_that_breaks_off_are_not_made_and_this_is_said(cart: Path) -> None:
    text = json.dumps({"summary": "Done.", "changes": [{"form": "create", "path": "new.py", "text": "x"}]})
    cut = {"text": text[:-2], "finish": "length"}
    async with conversation(cart, [plan(), cut], mode="auto") as talk:
        await talk.send(SendMessage(text=FIX, route="chat"))
        finished = await talk.until(TurnFinished)
        assert "Recovered: 1 change, of which no change is made" in finished.detail
        assert "/retry" in finished.detail
        assert talk.all(Answered)[-1].text.startswith("Done.\n\n**Changes, not made")
    assert not (cart / "new.py").exists()


@pytest.mark.promise("CHAT-4")
async def test_nothing_is_changed_for_a_question_in_mode_auto_but_offered(cart: Path) -> None:
    change = {"form": "create", "path": "new.py", "text": "x = 1\n"}
    answer = said("", {"summary": "Yes.", "changes": [change], "todos": [{"text": "x", "done": True}]})
    answer["calls"] = [{"name": "write", "arguments": {"path": "new.py", "text": "x = 1\n"}}]
    async with conversation(cart, [plan(), answer], mode="auto") as talk:
        assert (await talk.turn("should there be a new.py?")).reason == "answered"
        answered = talk.all(Answered)[-1]
        assert answered.structured
        assert not answered.structured.changes
        assert not answered.calls
        assert answered.structured.next_steps[-1].input == "Make the change that you described: new.py"
        assert not talk.all(ChangeApplied)
        assert not talk.app.state(talk.id).todos
    assert [path.name for path in cart.iterdir()] == ["cart.py"]


@pytest.mark.promise("CHAT-4")
async def test_going_on_after_a_question_is_no_leave_to_change_something(cart: Path) -> None:
    async with conversation(cart, [plan(), said("", fixed())], mode="auto") as talk:
        for text in (QUESTION, "Go on from where you stopped.", "weiter bitte"):
            await talk.send(SendMessage(text=text, route="chat"))
            assert (await talk.until(TurnFinished)).reason == "answered"
        assert [event.reads_only for event in talk.all(RunStarted)] == [True] * 3
    assert (cart / "cart.py").read_text() == CART


async def test_pictures_alone_are_answered_without_a_plan_and_with_words_the_plan_sees_only_these(
    cart: Path,
) -> None:
    (cart / "a.png").write_bytes(png())
    script = [plan(), said("", {"summary": "A square."})]
    async with conversation(cart, script, images=True) as talk:
        for text, planned in (("", 0), ("what is in this picture?", 1)):
            before = len(talk.requests)
            shown = talk.app.images.named(cart / "a.png")
            await talk.send(SendMessage(text=text, images=(shown,), route="chat"))
            await talk.until(TurnFinished)
            asked = talk.requests[before:]
            assert len(asked) == planned + 1
            assert [bool(pictures(request)) for request in asked] == [False] * planned + [True]


def pictures(request: Request) -> int:
    return sum(len(each.images) for each in request.messages if isinstance(each, UserTurn))


async def test_hooks_of_the_user_have_their_word_before_an_answer_ends(cart: Path) -> None:
    home = Path(os.environ["HANDRAIL_HOME"])
    home.mkdir(exist_ok=True)
    body = "if 'please' not in asked['answer']: say(demand='Say it politely.')"
    script = [plan(), said("politely", {"summary": "It adds, please."}), said("", {"summary": "It adds."})]
    async with conversation(
        cart, script, settings=section("before_end", program(home, body, "hook.py"))
    ) as talk:
        assert (await talk.turn(QUESTION)).reason == "answered"
        assert [event.text for event in talk.all(Answered)][1:] == ["It adds.", "It adds, please."]


async def test_the_plan_knows_what_was_said_before(cart: Path) -> None:
    script = [plan("cart.py"), said("", {"summary": "It adds the items."})]
    async with conversation(cart, script) as talk:
        await talk.turn(QUESTION)
        before = len(talk.requests)
        await talk.turn("and why does it do that?")
        planned = words(talk.requests[before])
        assert QUESTION in planned
        assert "It adds the items." in planned


@pytest.mark.promise("HOOK-4")
async def test_hooks_hear_of_changes_that_were_made_after_the_answer(cart: Path) -> None:
    home = Path(os.environ["HANDRAIL_HOME"])
    home.mkdir(exist_ok=True)
    body = "if asked['files']: say(demand='cart.py is frozen.')"
    settings = section("before_end", program(home, body, "hook.py"))
    async with conversation(
        cart, [plan("cart.py"), said("", fixed())], settings=settings, mode="edit"
    ) as talk:
        await talk.send(SendMessage(text=FIX, route="chat"))
        done = await talk.until(TurnFinished)
        assert done.reason == "unverified"
        assert "cart.py is frozen." in done.detail
        assert len(talk.all(RunCompleted)) == 1


class Small(ScriptedModel):
    """A scripted model that is taken for a small one."""

    @property
    def capabilities(self) -> Capabilities:
        return super().capabilities._replace(one_action=True)


@pytest.mark.promise("CHAT-4")
@pytest.mark.parametrize("route", ["", "chat"])
async def test_a_small_model_reads_and_answers_in_a_chat_and_can_do_nothing_else(
    cart: Path, route: str
) -> None:
    script = [
        call("write", path="new.py", text="x = 1\n"),
        run("touch b"),
        call("read", path="cart.py"),
        {"text": "It adds."},
    ]
    async with conversation(cart, [], mode="auto", allow=("touch",)) as talk:
        small = Small(script, "scripted/test")
        talk.app.model_pool._models["scripted/test"] = small
        text = QUESTION if not route else "create new.py"
        await talk.send(SendMessage(text=text, route=route))
        assert (await talk.until(TurnFinished)).reason == "answered"
        assert [event.status for event in talk.all(ToolFinished)] == ["refused", "refused", "ok"]
        assert [(event.stage, event.number, event.of) for event in talk.all(StageStarted)] == [
            ("answer", 1, 1)
        ]
        choices = small.requests[0].choices
        assert choices
        assert set(choices.actions or ()) <= {"read"}
        assert not talk.all(ChangeApplied)
    assert [path.name for path in cart.iterdir()] == ["cart.py"]


@pytest.mark.promise("CHAT-4")
@pytest.mark.parametrize("kind", [ScriptedModel, Small])
async def test_no_message_that_only_asks_changes_anything_in_mode_auto(
    cart: Path, kind: type[ScriptedModel]
) -> None:
    lines = Path("bench/router/messages.txt").read_text().splitlines()
    asked = [line.partition("|")[2].strip() for line in lines if line.partition("|")[0].strip() == "chat"]
    assert len(asked) > 20
    change = {"form": "rewrite", "path": "cart.py", "base_hash": hash_of(CART), "text": "gone\n"}
    tries = said("", {"summary": "Done.", "changes": [change], "commands": ["rm cart.py"]})
    tries["calls"] = [
        {"name": "write", "arguments": {"path": "cart.py", "text": "gone\n"}},
        {"name": "run", "arguments": {"command": "rm cart.py"}},
    ]
    script = [plan("cart.py"), {"when": "only asked", "text": "Well."}, tries]
    async with conversation(cart, [], mode="auto", allow=("rm",)) as talk:
        talk.app.model_pool._models["scripted/test"] = kind(script, "scripted/test")
        for text in asked:
            assert (await talk.turn(text)).reason == "answered", text
        assert [event.reads_only for event in talk.all(RunStarted)] == [True] * len(asked)
        assert not talk.all(ChangeApplied)
    assert [path.name for path in cart.iterdir()] == ["cart.py"]
    assert (cart / "cart.py").read_text() == CART


@pytest.mark.promise("CHAT-1")
async def test_a_small_model_cannot_read_for_a_greeting_or_the_same_file_twice_or_without_end(
    cart: Path,
) -> None:
    for name in "abcd":
        (cart / f"{name}.py").write_text("x = 1\n")
    script = [call("read", path=f"{name}.py") for name in "abc"]
    async with conversation(cart, []) as talk:
        small = Small([{"text": "Hello!"}, *script, {"text": "So."}], "scripted/test")
        talk.app.model_pool._models["scripted/test"] = small
        await talk.turn("hi")
        await talk.turn("what do these files have in common?")
        choices = [request.choices for request in small.requests if request.choices]
        assert [each.actions for each in choices] == [(), ("read",), ("read",), ("read",), ()]
        assert "a.py" not in choices[2].paths


def fixed(**more: Any) -> dict[str, Any]:
    edit = {"search": "sum(items)", "replace": "sum(items) * 1.2"}
    change = {"form": "replace", "path": "cart.py", "base_hash": hash_of(CART), "edits": [edit], "text": ""}
    return {"summary": "Tax is added.", "changes": [change]} | more


@pytest.mark.promise("CHAT-4")
async def test_work_that_the_user_sends_to_chat_is_applied_through_the_gate(cart: Path) -> None:
    script = [plan("cart.py"), said("", fixed()), {"text": '{"summary": "Yes."}'}]
    async with conversation(cart, script, mode="ask") as talk:
        await talk.send(SendMessage(text=FIX, route="chat"))
        asked = await talk.until(ApprovalAsked)
        assert "+    return sum(items) * 1.2" in asked.preview
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
        assert (await talk.until(TurnFinished)).reason == "answered"
        assert "sum(items) * 1.2" in (cart / "cart.py").read_text()
        assert len(talk.all(ChangeApplied)) == 1
        await talk.turn("thanks")
        assert "The changes of the last answer were made: cart.py." in words(talk.requests[-1])


def step(number: int, of: int = 3) -> dict[str, Any]:
    """The answer that writes one file of several, as all of them were planned."""
    todos = [{"text": f"write {each}.txt"} for each in range(1, of + 1)]
    name = f"{number}.txt"
    change = {"form": "create", "path": name, "text": f"{number}\n", "todo": f"write {name}"}
    return {"summary": f"Wrote {number}.", "todos": todos, "changes": [change]}


def steps(count: int) -> list[dict[str, Any]]:
    later = [said(f"made: {number}.txt", step(number + 1, count)) for number in range(1, count)]
    return [plan(), *later, said("", step(1, count))]


@pytest.mark.promise("CHAT-5")
async def test_a_request_of_several_steps_is_answered_step_by_step(cart: Path) -> None:
    async with conversation(cart, steps(3), mode="edit") as talk:
        await talk.send(SendMessage(text="Write three files.", route="chat"))
        assert (await talk.until(TurnFinished)).reason == "answered"
        assert not talk.all(RunContinued)
        structured = talk.all(Answered)[-1].structured
        assert structured
        assert structured.next_steps[0].label == "Continue"
        assert [todo.done for todo in talk.app.state(talk.id).todos] == [True, False, False]
    assert not (cart / "2.txt").exists()


@pytest.mark.promise("CHAT-5")
@pytest.mark.parametrize(("count", "rounds"), [(3, 3), (12, 8)])
async def test_with_auto_continue_the_steps_follow_by_themselves_up_to_a_bound(
    cart: Path, count: int, rounds: int
) -> None:
    async with conversation(cart, steps(count), mode="edit", settings="auto_continue = true") as talk:
        await talk.send(SendMessage(text="Write the files.", route="chat"))
        assert (await talk.until(TurnFinished)).reason == "answered"
        assert [event.number for event in talk.all(RunContinued)] == list(range(2, rounds + 1))
    assert len(list(cart.glob("*.txt"))) == rounds


@pytest.mark.promise("CHAT-5")
async def test_auto_continue_stops_at_a_change_that_is_refused(cart: Path) -> None:
    (cart / "2.txt").write_text("mine\n")
    async with conversation(cart, steps(3), mode="edit", settings="auto_continue = true") as talk:
        await talk.send(SendMessage(text="Write the files.", route="chat"))
        await talk.until(TurnFinished)
        assert [event.number for event in talk.all(RunContinued)] == [2]
    assert (cart / "2.txt").read_text() == "mine\n"
    assert not (cart / "3.txt").exists()


@pytest.mark.promise("CHAT-7")
async def test_a_next_step_that_is_picked_mentions_nothing_in_the_users_name(
    cart: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pages = tmp_path_factory.mktemp("pages")
    (pages / "leak.html").write_text("<p>The page.</p>")
    (cart / "notes.txt").write_text("the notes\n")
    with serving(pages) as url:
        script = [plan(urls=[f"{url}/leak.html"]), said("", {"summary": "Yes."})]
        async with conversation(cart, script, answerable=False) as talk:
            text = f"what does {url}/leak.html say of @notes.txt?"
            await talk.send(SendMessage(text=text, suggested=True))
            await talk.until(TurnFinished)
            asked = words(talk.requests[-1])
            assert "The page." not in asked
            assert "the notes" not in asked
