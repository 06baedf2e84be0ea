"""Titles by the fast model: beside the conversation, and only where one is set."""

from pathlib import Path

import pytest

from handrail.engine.host.session_title import read_title
from handrail.protocol.commands import Rename
from handrail.protocol.events import SessionRenamed, SessionTitled, SideAnswered, SideAsked, TurnFinished
from tests.engine.conversation import Held, conversation, eventually, script_file, words

pytestmark = pytest.mark.anyio

ANSWERS = [{"text": "The discount comes first."}, {"text": "Because tax is on the rest."}]
MESSAGE = "why does the total differ from what the test expects?"


def fast(folder: Path, *answers: dict[str, object]) -> str:
    return f'[models]\nfast = "{script_file(folder, answers, "fast.json")}"\n'


@pytest.mark.promise("SESS-60")
async def test_the_fast_model_names_the_session_and_the_conversation_does_not_show_it(tmp_path: Path) -> None:
    settings = fast(tmp_path, {"when": "Assistant:\nThe discount", "text": '"Discount before tax."\n'})
    async with conversation(tmp_path, ANSWERS, settings=settings) as talk:
        await talk.turn(MESSAGE)
        assert talk.app.sessions()[0].title == MESSAGE
        titled = await talk.until(SessionTitled)
        assert titled.title == talk.app.sessions()[0].title == "Discount before tax"
        (asked,) = talk.all(SideAsked)
        assert (asked.purpose, asked.role, asked.model) == ("title", "fast", titled.model)
        await talk.turn("why?")
        assert len(talk.requests) == 2
        assert not any("Discount before tax" in words(request) for request in talk.requests)
        assert len(talk.all(SideAsked)) == 1


@pytest.mark.promise("SESS-60")
async def test_a_message_and_a_title_by_the_user_go_before_the_models(tmp_path: Path) -> None:
    settings = fast(tmp_path, {"text": "Slow title"})
    async with conversation(tmp_path, ANSWERS, settings=settings) as talk:
        held = Held()
        held.hold(0, 0)
        model = await talk.app.model_pool.named(talk.app.settings.models.fast)
        model._before_chunk = held.before_chunk  # type: ignore[attr-defined]
        await talk.turn(MESSAGE)
        await held.reached(0, 0)
        await talk.say("why?")  # ends the request for the title
        ended = await talk.until(SideAnswered)
        assert ended.problem == "It was cancelled."
        await talk.until(TurnFinished)
        await held.reached(0, 0)
        await talk.send(Rename(title="Mine"))
        await talk.until(SessionRenamed)
        held.let_go(0, 0)
        await talk.until(SideAnswered, lambda each: each.text == "Slow title")
        await eventually(lambda: not talk.app.state(talk.id).side)
        assert talk.app.sessions()[0].title == "Mine"
        assert not talk.all(SessionTitled)


@pytest.mark.promise("SESS-60")
async def test_without_a_fast_model_or_with_one_that_fails_the_first_words_are_the_title(
    tmp_path: Path,
) -> None:
    async with conversation(tmp_path, ANSWERS) as talk:
        await talk.turn(MESSAGE)
        await talk.turn("why?")
        assert not talk.all(SideAsked)
        assert talk.app.sessions()[0].title == MESSAGE
    settings = fast(tmp_path, {"error": {"kind": "give_up"}})
    async with conversation(tmp_path, ANSWERS, settings=settings) as talk:
        await talk.turn(MESSAGE)
        assert (await talk.until(SideAnswered)).problem
        assert talk.app.sessions()[0].title == MESSAGE
        await talk.turn("why?")
    async with conversation(tmp_path, ANSWERS, settings=settings, answerable=False) as talk:
        await talk.turn(MESSAGE)
        await talk.turn("why?")
        assert not talk.all(SideAsked)


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Discount before tax", "Discount before tax"),
        ("<think>short, they said</think>\n**Discount before tax**", "Discount before tax"),
        ("\n\nTitle: „Rabatt vor Steuer“\nmore", "Rabatt vor Steuer"),
        ("a\x1b[2Jb\N{RIGHT-TO-LEFT OVERRIDE}c", "a [2Jb c"),
        ("word " * 20, f"{('word ' * 20)[:59]}…".replace(" …", "…")),
        ("x" * 500, ""),
        ("<think>never ends", ""),
        ("", ""),
    ],
)
async def test_a_title_is_one_short_line(answer: str, title: str) -> None:
    assert read_title(answer) == title
