"""The agent `report` on its documents, with a scripted model: pause, breakout, repair, budget."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from handrail.protocol.commands import SendMessage
from handrail.protocol.events import (
    BreakoutPending,
    GateFailed,
    RunBrokenOff,
    RunCompleted,
    RunFailed,
    RunPaused,
    RunResumed,
    RunStarted,
    StageCompleted,
    ToolStarted,
    TurnFinished,
)
from tests.engine.conversation import Conversation, conversation, words
from tests.pipelines.agents import GOOD, QUESTION, QUOTE, WRONG, agent, answers, as_json, demo
from tests.project.source import ROOT

pytestmark = pytest.mark.anyio


def outputs(talk: Conversation, stage: str) -> list[dict[str, Any]]:
    return [event.output or {} for event in talk.all(StageCompleted) if event.stage == stage]


@pytest.mark.promise("AGENT-1")
async def test_a_question_becomes_a_report_whose_every_quote_stands_in_a_document(tmp_path: Path) -> None:
    demo(tmp_path)
    async with conversation(tmp_path, answers(), mode="edit", trust=True) as talk:
        paused = await talk.turn(f"@report {QUESTION}")
        assert paused.reason == "waiting"
        (started,) = talk.all(RunStarted)
        assert started.question == QUESTION
        (menu,) = talk.all(RunPaused)
        assert "Are passengers refunded when a crossing is cancelled?" in menu.text
        assert menu.text.endswith(
            "1. Look it up\n2. Ask other questions\n3. Leave this run, and do something else"
        )
        done = await talk.turn("1")
        assert done.reason == "answered", done.detail
        (flaw,) = talk.all(GateFailed)
        assert "Quote 1 is in no passage" in flaw.issues[0]
        assert QUOTE in flaw.issues[0]
        (completed,) = talk.all(RunCompleted)
    report = (tmp_path / "report.md").read_text()
    assert report == completed.text
    assert report.startswith(f"# {QUESTION}")
    assert f'> "{QUOTE}"' in report
    assert WRONG["quote"] not in report
    assert "1. documents/refunds.md, lines 3-4" in report
    assert (tmp_path / "documents/refunds.md").read_text().splitlines()[2] == QUOTE


async def test_what_is_said_at_the_pause_is_looked_up_and_told_to_the_model(tmp_path: Path) -> None:
    demo(tmp_path)
    async with conversation(tmp_path, answers(first=GOOD), mode="edit", trust=True) as talk:
        await talk.turn(f"@report {QUESTION}")
        done = await talk.turn("Look at bicycles and their battery, too.")
        assert done.reason == "answered", done.detail
        (resumed,) = talk.all(RunResumed)
        assert "battery" in resumed.feedback
        (gathered,) = outputs(talk, "gather")
        assert "documents/bicycles.md" in {passage["path"] for passage in gathered["passages"]}
        drafting = next(words(each) for each in talk.requests if "Output of gather" in words(each))
        assert "Look at bicycles and their battery, too." in drafting


async def test_other_questions_are_asked_for_by_the_number_that_was_printed(tmp_path: Path) -> None:
    demo(tmp_path)
    async with conversation(tmp_path, answers(), mode="edit", trust=True) as talk:
        await talk.turn(f"@report {QUESTION}")
        assert (await talk.turn("2")).reason == "waiting"
        assert len(talk.all(RunPaused)) == 2
        assert not outputs(talk, "gather")


@pytest.mark.promise("AGENT-1")
async def test_leaving_is_asked_about_and_the_other_question_is_answered(tmp_path: Path) -> None:
    demo(tmp_path)
    other = {"when": "capital of France", "text": "Paris."}
    async with conversation(tmp_path, answers(other), mode="edit", trust=True) as talk:
        await talk.turn(f"@report {QUESTION}")
        asked = await talk.turn("Never mind, explain to me what the capital of France is.")
        assert asked.reason == "waiting"
        assert talk.all(BreakoutPending)
        left = await talk.turn("yes")
        assert left.reason == "answered"
        (end,) = talk.all(RunBrokenOff)
        assert "Are passengers refunded" in end.summary
        assert not (tmp_path / "report.md").exists()
        assert any("capital of France" in words(each) for each in talk.requests)


async def test_a_question_that_a_run_is_left_for_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDRAIL_AUTO_ROUTE", "on")
    demo(tmp_path)
    other = {"when": "capital of France", "text": '{"summary": "Paris."}'}
    async with conversation(tmp_path, answers(other), mode="edit", trust=True) as talk:
        await talk.turn(f"@report {QUESTION}")
        await talk.turn("Something else: what is the capital of France?")
        assert (await talk.turn("yes")).reason == "answered"
        assert [(event.pipeline, event.reads_only) for event in talk.all(RunStarted)] == [
            ("report", False),
            ("chat", True),
        ]


async def test_a_run_can_be_left_for_another_run(tmp_path: Path) -> None:
    demo(tmp_path)
    async with conversation(tmp_path, answers(), mode="edit", trust=True) as talk:
        await talk.turn(f"@report {QUESTION}")
        await talk.turn("something else")
        assert (await talk.turn(f"@report {QUESTION}")).reason == "waiting"
        assert [event.pipeline for event in talk.all(RunStarted)] == ["report", "report"]
        assert len(talk.all(RunBrokenOff)) == 1


async def test_a_run_is_left_for_the_task_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_AUTO_ROUTE", "on")
    demo(tmp_path)
    listed = {"when": "Output of look", "text": '{"answer": "", "operations": [], "question": "When?"}'}
    async with conversation(tmp_path, [listed, *answers()], mode="edit", trust=True) as talk:
        await talk.turn(f"@report {QUESTION}")
        await talk.turn("Never mind. Remind me to call the harbour tomorrow.")
        await talk.turn("yes")
        assert len(talk.all(RunBrokenOff)) == 1
        assert [event.pipeline for event in talk.all(RunStarted)] == ["report", "tasks"]
        assert talk.app.state(talk.id).paused is None


@pytest.mark.promise("AGENT-1")
async def test_without_a_source_nothing_is_answered(tmp_path: Path) -> None:
    demo(tmp_path)
    asked = as_json("Question:\n", {"questions": ["Which spaceships fly to Jupiter?"]})
    async with conversation(tmp_path, [asked], mode="edit", trust=True) as talk:
        await talk.turn("@report Which spaceships fly to Jupiter?")
        done = await talk.turn("1")
        assert done.reason == "failed"
        assert "Nothing was found for: Which spaceships fly to Jupiter? Without" in done.detail
        (looked,) = [event.summary for event in talk.all(ToolStarted) if event.tool == "search"]
        assert looked == "spaceships, fly, jupiter in documents/**/*.md"
        assert len(talk.requests) == 1
        assert not (tmp_path / "report.md").exists()


async def test_quotes_that_stay_wrong_end_the_run_and_write_nothing(tmp_path: Path) -> None:
    demo(tmp_path)
    wrong = as_json("Output of gather", {"findings": [WRONG]})
    async with conversation(tmp_path, [wrong, *answers()[-1:]], mode="edit", trust=True) as talk:
        await talk.turn(f"@report {QUESTION}")
        done = await talk.turn("1")
        assert done.reason == "failed"
        assert "after 2 of 2 repairs" in done.detail
        assert len(outputs(talk, "draft")) == 3
        assert not (tmp_path / "report.md").exists()


@pytest.mark.promise("AGENT-1")
@pytest.mark.parametrize(
    ("tokens", "lower", "of", "more"),
    [
        (
            "6_000",
            "300",
            "the stage draft",
            "raise tokens of the budget of draft in the agent.toml of report.",
        ),
        ("12_000", "700", "the run of report", "raise tokens of [budget] in the agent.toml of report."),
    ],
)
async def test_a_budget_that_is_reached_keeps_what_was_done_and_says_what_to_raise(
    tmp_path: Path, tokens: str, lower: str, of: str, more: str
) -> None:
    """That of a stage may be above that of the run: the smaller one counts."""
    file = demo(tmp_path) / "agents/report/agent.toml"
    file.write_text(file.read_text().replace(f"tokens = {tokens}", f"tokens = {lower}"))
    async with conversation(tmp_path, answers(), mode="edit", trust=True) as talk:
        await talk.turn(f"@report {QUESTION}")
        done = await talk.turn("1")
        assert done.reason == "budget"
        assert f"budget of {of}" in done.detail
        assert done.detail.endswith(more)
        assert len(talk.requests) == 1
        (failed,) = talk.all(RunFailed)
        assert "When a crossing is cancelled by us" in failed.summary


async def test_a_report_that_the_user_does_not_want_is_not_written(tmp_path: Path) -> None:
    demo(tmp_path)
    async with conversation(tmp_path, answers(first=GOOD), mode="ask", trust=True, answerable=False) as talk:
        await talk.send(SendMessage(text=QUESTION, route="report"))
        await talk.until(TurnFinished)
        done = await talk.turn("1")
        assert done.reason == "failed"
        assert "written is not true" in done.detail
        assert not (tmp_path / "report.md").exists()


async def test_a_second_report_takes_the_place_of_the_first(tmp_path: Path) -> None:
    demo(tmp_path)
    (tmp_path / "report.md").write_text("An older report.\n")
    async with conversation(tmp_path, answers(first=GOOD), mode="edit", trust=True) as talk:
        for _ in range(2):
            await talk.turn(f"@report {QUESTION}")
            done = await talk.turn("1")
            assert done.reason == "answered", done.detail
            assert QUOTE in (tmp_path / "report.md").read_text()


@pytest.mark.promise("AGENT-1")
async def test_a_run_goes_on_in_another_process_from_its_pause(tmp_path: Path) -> None:
    demo(tmp_path)
    async with conversation(tmp_path, answers(first=GOOD), mode="edit", trust=True) as talk:
        await talk.turn(f"@report {QUESTION}")
        session, after = talk.id, talk.app.last_seq(talk.id)
    async with conversation(
        tmp_path, answers(first=GOOD), mode="edit", trust=True, session=session, after=after
    ) as talk:
        done = await talk.turn("1")
        assert done.reason == "answered", done.detail
        assert len(talk.requests) == 1
    assert QUOTE in (tmp_path / "report.md").read_text()


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".handrail/config.toml", ".env"])
async def test_what_is_closed_to_the_model_is_closed_to_an_agent(tmp_path: Path, path: str) -> None:
    file = demo(tmp_path) / "agents/report/agent.toml"
    file.write_text(file.read_text().replace('path = "report.md"', f'path = "{path}"'))
    async with conversation(tmp_path, answers(first=GOOD), mode="auto", trust=True, answerable=False) as talk:
        await talk.turn(f"@report {QUESTION}")
        done = await talk.turn("1")
        assert done.reason == "failed"
        assert "written is not true" in done.detail
        assert not (tmp_path / path).exists()


async def test_a_paused_run_whose_agent_is_gone_can_be_left(tmp_path: Path) -> None:
    demo(tmp_path)
    async with conversation(tmp_path, answers(), mode="edit", trust=True) as talk:
        await talk.turn(f"@report {QUESTION}")
        shutil.rmtree(tmp_path / "agents")
        assert (await talk.turn("3")).reason == "waiting"
        assert (await talk.turn("1")).reason == "answered"
        assert talk.all(RunBrokenOff)
        assert talk.app.state(talk.id).paused is None


@pytest.mark.promise("AGENT-1")
async def test_the_small_agent_of_the_docs_answers_in_quotes_that_are_in_the_documents(
    tmp_path: Path,
) -> None:
    """Catches: a tutorial that the program refuses, or whose gate lets an altered quote pass."""
    blocks = re.findall(r"```\w+\n(.*?)```", (ROOT / "docs/agents.md").read_text(), re.DOTALL)
    definition, prompt = blocks[:2]
    folder = agent(demo(tmp_path), "quotes", definition)
    (folder / "prompts/answer.md").write_text(prompt)
    wrong, right = {"quotes": [WRONG["quote"]]}, {"quotes": [QUOTE]}
    for answered, reason in ((right, "answered"), (wrong, "failed")):
        script = [as_json("have to be corrected", answered), as_json("Output of gather", wrong)]
        async with conversation(tmp_path, script, trust=True) as talk:
            done = await talk.turn(f"@quotes {QUESTION}")
            assert done.reason == reason, done.detail
            assert QUOTE in talk.all(GateFailed)[0].issues[0]
            if reason == "answered":
                assert QUOTE in talk.all(RunCompleted)[0].text
