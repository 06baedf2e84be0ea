"""The embedded model as the engine sees it: progress, answers, crashes, cancelling."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import anyio
import httpx2
import pytest

from handrail.models.embedded.embedded_model import EmbeddedModel, embedded_model
from handrail.models.embedded.model_files import QWEN, SMOLLM2
from handrail.models.embedded.server_files import RunningServer
from handrail.models.model import Finished, Part, Progress, Request, Text, UserTurn
from handrail.models.prices import cost
from handrail.models.reading.collector import AnswerCollector, collect_answer
from handrail.protocol.errors import GiveUp, NoModel, RetryLater, UsageProblem
from handrail.protocol.values import Usage

pytestmark = pytest.mark.anyio
DEADLINE = 60.0
SOON = 0.5


@pytest.fixture
async def model(models: Path) -> AsyncIterator[EmbeddedModel]:
    embedded = EmbeddedModel(SMOLLM2, models / SMOLLM2.name, models, SOON)
    yield embedded
    await embedded.aclose()
    await embedded.child.stop()


def asked(words: str, tokens: int = 4, system: str = "You help.") -> Request:
    return Request(system, (UserTurn(words),), max_output_tokens=tokens, temperature=0.0)


def running(model: EmbeddedModel) -> RunningServer:
    found = model.child.running()
    assert found is not None
    return found


async def first_words(model: EmbeddedModel, request: Request) -> list[Part]:
    """Ask, and kill the child at the first word; what came before the error."""
    parts: list[Part] = []
    async with aclosing(model.stream(request)) as stream:
        async for part in stream:
            parts.append(part)
            if isinstance(part, Text) and sum(isinstance(each, Text) for each in parts) == 1:
                os.kill(running(model).pid, signal.SIGKILL)
    return parts


@pytest.mark.promise("EMB-9")
async def test_an_answer_comes_after_progress_that_says_what_is_going_on(model: EmbeddedModel) -> None:
    parts = [part async for part in model.stream(asked("Say hello. " * 100))]
    kinds = [part.what for part in parts if isinstance(part, Progress)]
    assert kinds == sorted(kinds, key=["checking", "loading", "reading"].index)
    assert {"loading", "reading"} <= set(kinds)
    reading = [part for part in parts if isinstance(part, Progress) and part.what == "reading"]
    assert reading[-1].done == reading[-1].total > 256
    assert len(reading) > 2
    collector = AnswerCollector()
    for part in parts:
        collector.add(part)
    answer = collector.answer()
    assert answer.text
    assert (answer.usage.output_tokens, answer.finish) == (4, "length")
    assert b'"content"' in answer.raw
    assert cost(answer.usage, model) == 0.0
    assert model.capabilities.context_window == running(model).context_window


async def test_two_that_ask_at_once_are_both_told_of_the_load_and_both_get_answers(
    model: EmbeddedModel,
) -> None:
    told: list[list[Part]] = [[], []]

    async def ask(parts: list[Part]) -> None:
        parts.extend([part async for part in model.stream(asked("Say hello."))])

    async with anyio.create_task_group() as tasks:
        for parts in told:
            tasks.start_soon(ask, parts)
    for parts in told:
        assert any(isinstance(part, Progress) and part.what == "loading" for part in parts)
        assert any(isinstance(part, Text) for part in parts)


async def test_a_check_that_was_begun_is_not_begun_again(model: EmbeddedModel) -> None:
    async with aclosing(model.stream(asked("Say hello."))) as stream:
        first = await anext(stream)
    parts = [part async for part in model.stream(asked("Say hello."))]
    assert isinstance(first, Progress)
    assert isinstance(parts[0], Progress)
    assert (first.what, parts[0].what) == ("checking", "checking")
    assert parts[0].done > first.done
    assert isinstance(parts[-1], Finished)


async def test_an_answer_fits_the_schema_that_was_asked_for(model: EmbeddedModel) -> None:
    schema = {"type": "object", "properties": {"path": {"enum": ["a.py", "b.py"]}}, "required": ["path"]}
    request = Request("", (UserTurn("Which file?"),), output_schema=schema, max_output_tokens=40)
    answer = await collect_answer(model.stream(request))
    assert "".join(answer.text.split()) in {'{"path":"a.py"}', '{"path":"b.py"}'}


@pytest.mark.promise("EMB-10")
async def test_killed_in_the_middle_of_an_answer_the_next_one_works(model: EmbeddedModel) -> None:
    with pytest.raises(RetryLater, match="started again") as caught:
        await first_words(model, asked("Count to a thousand.", tokens=400))
    assert caught.value.delay == 0.0
    assert (await collect_answer(model.stream(asked("Say hello.")))).text


@pytest.mark.promise("EMB-10")
async def test_killed_between_two_answers_it_is_started_again_unseen(model: EmbeddedModel) -> None:
    await collect_answer(model.stream(asked("Say hello.")))
    before = running(model).pid
    os.kill(before, signal.SIGKILL)
    answer = await collect_answer(model.stream(asked("Say hello.")))
    assert answer.text
    assert running(model).pid != before


@pytest.mark.promise("EMB-10")
async def test_killed_in_every_answer_it_is_given_up_with_the_place_of_the_log(model: EmbeddedModel) -> None:
    request = asked("Count to a thousand.", tokens=400)
    with pytest.raises(RetryLater):
        await first_words(model, request)
    with pytest.raises(GiveUp, match=r"server\.log"):
        await first_words(model, request)


@pytest.mark.promise("EMB-11")
async def test_closing_the_stream_stops_the_work(model: EmbeddedModel) -> None:
    async with aclosing(model.stream(asked("Count to a thousand.", tokens=4000))) as stream:
        async for part in stream:
            if isinstance(part, Text):
                break
    at = running(model)
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {at.key}"}) as http:
        with anyio.fail_after(DEADLINE):
            while (await http.get(f"{at.url}/slots", timeout=DEADLINE)).json()[0]["is_processing"]:
                await anyio.sleep(0.02)
    answer = [part async for part in model.stream(asked("Say hello."))]
    assert isinstance(answer[-1], Finished)


@pytest.mark.promise("EMB-2")
async def test_a_file_with_one_wrong_byte_is_never_loaded(models: Path, smollm2: Path) -> None:
    data = bytearray(smollm2.read_bytes())
    data[-1] ^= 1
    path = models / smollm2.name
    path.unlink()
    path.write_bytes(data)
    embedded = EmbeddedModel(SMOLLM2, path, models, SOON)
    with pytest.raises(GiveUp, match=r"SHA-256 differs.*model fetch"):
        await collect_answer(embedded.stream(asked("Say hello.")))
    assert not embedded.child.files.is_running()
    await embedded.aclose()


async def test_a_model_that_is_not_here_says_how_to_get_it() -> None:
    with pytest.raises(NoModel, match="handrail model fetch"):
        embedded_model(f"embedded/{QWEN.model}", os.environ)
    with pytest.raises(UsageProblem, match=QWEN.model):
        embedded_model("embedded/gpt", os.environ)


async def test_the_same_words_cost_nothing(models: Path) -> None:
    embedded = embedded_model("embedded/smollm2", os.environ)
    assert embedded.name == "embedded/smollm2"
    assert cost(Usage(input_tokens=1000, output_tokens=1000), embedded) == 0.0
