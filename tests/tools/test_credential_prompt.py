"""credential_prompt: the user types a secret, and the model learns only whether it is stored."""

from pathlib import Path

import pytest

from handrail.app.command_checks import answer_with_secret
from handrail.protocol.commands import AnswerQuestion
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import QuestionAsked, ToolFinished, TurnFinished
from tests.engine.conversation import call, conversation, run

pytestmark = pytest.mark.anyio
ASKS = call("credential_prompt", name="SHOP_TOKEN", why="to list the orders")


@pytest.mark.promise("CRED-8")
async def test_a_user_who_declines_stores_nothing_and_the_model_is_told(tmp_path: Path) -> None:
    async with conversation(tmp_path, [ASKS, {"text": "Then not."}]) as talk:
        await talk.say("go")
        asked = await talk.until(QuestionAsked)
        await answer_with_secret(talk.app, talk.id, asked.question_id, "")
        await talk.until(TurnFinished)
        (finished,) = talk.all(ToolFinished)
        assert finished.content.startswith("declined")
        assert talk.app.model_pool.credentials.names() == []
        with pytest.raises(UsageProblem, match="nothing was stored"):
            await answer_with_secret(talk.app, talk.id, asked.question_id, "too-late-1234")
        assert talk.app.model_pool.credentials.names() == []


async def test_an_answer_that_only_claims_to_be_stored_is_not_believed(tmp_path: Path) -> None:
    async with conversation(tmp_path, [ASKS, {"text": "Then not."}]) as talk:
        await talk.say("go")
        asked = await talk.until(QuestionAsked)
        await talk.send(AnswerQuestion(question_id=asked.question_id, answer="stored"))
        await talk.until(TurnFinished)
        (finished,) = talk.all(ToolFinished)
        assert finished.content.startswith("declined")


@pytest.mark.promise("CRED-8")
@pytest.mark.parametrize("name", ["model/openai", "PATH", "LD_PRELOAD", "lower_token", "A TOKEN", "../TOKEN"])
async def test_only_the_name_of_a_secret_can_be_asked_for(name: str, tmp_path: Path) -> None:
    asks = call("credential_prompt", name=name, why="because")
    async with conversation(
        tmp_path, [asks, run("true", secrets=[name]), {"text": "no"}], mode="auto"
    ) as talk:
        await talk.turn("go")
        asked, ran = talk.all(ToolFinished)
        assert asked.error is not None
        assert asked.error.reason == "invalid_arguments"
        assert ran.status == "refused"
        assert not talk.all(QuestionAsked)


async def test_with_nobody_to_ask_it_is_refused_at_once(tmp_path: Path) -> None:
    answers = [ASKS, run("true", secrets=["SHOP_TOKEN"]), {"text": "no"}]
    async with conversation(tmp_path, answers, mode="auto", answerable=False) as talk:
        await talk.turn("go")
        assert [each.error and each.error.reason for each in talk.all(ToolFinished)] == ["nobody_to_ask"] * 2
