"""Sub-agents in conversations: context, rights, budget, report, cancellation, resumption."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.protocol.commands import (
    AnswerApproval,
    AnswerQuestion,
    Cancel,
    CancelSubagent,
    Rewind,
    SendMessage,
    SetMode,
)
from handrail.protocol.events import (
    ApprovalAsked,
    ChangeApplied,
    ChangePrepared,
    QuestionAsked,
    Rewound,
    RunStarted,
    SubagentEvent,
    SubagentFinished,
    SubagentStarted,
    ToolFinished,
    TurnFinished,
)
from handrail.protocol.events.requests import RequestStarted
from tests.engine.conversation import call, conversation, eventually, run, words
from tests.engine.killed_subagent import last_session
from tests.pipelines.agents import EXAMPLES

pytestmark = pytest.mark.anyio

LOOK = "Find the answer in notes.txt"
DEEPER = "Ask somebody else"
DEEPEST = "Write deep.txt"


def when(text: str, answer: dict[str, Any]) -> dict[str, Any]:
    return answer | {"when": text}


@pytest.mark.promise("SUB-1")
async def test_a_subagent_has_its_own_context_and_returns_a_typed_report(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("The answer is 42.\n")
    answers = [
        when(LOOK, call("read", path="notes.txt")),
        when("The answer is 42", {"text": "It is 42."}),
        when('"reason":"answered"', {"text": "42, says the sub-agent."}),
        call("subagent", task=LOOK, mode="explore"),
    ]
    async with conversation(tmp_path, answers, mode="edit") as talk:
        end = await talk.turn("Keep my secret plan in mind, and find the answer")
    (started,), (finished,) = talk.all(SubagentStarted), talk.all(SubagentFinished)
    assert (started.mode, started.depth, started.task) == ("explore", 1, LOOK)
    report = finished.report
    assert (report.reason, report.text, report.steps, report.refused) == ("answered", "It is 42.", 2, 0)
    (called,) = talk.all(ToolFinished)
    assert json.loads(called.content)["text"] == "It is 42."
    inside, outside = talk.requests[1], talk.requests[-1]
    assert "secret plan" not in words(inside)
    assert "The answer is 42." not in words(outside)
    assert "write" not in [tool.name for tool in inside.tools]
    assert end.reason == "answered"
    assert end.usage.input_tokens == 10 * len(talk.requests)


@pytest.mark.promise("SUB-2")
async def test_a_subagent_never_gets_more_rights_than_its_parent(tmp_path: Path) -> None:
    answers = [
        call("subagent", task=LOOK, mode="auto"),
        call("subagent", task=LOOK, tools=["read", "launch"]),
        call("subagent", task=LOOK, tools=["read", "subagent"], mode="explore"),
        {"text": "done"},
        when(LOOK, call("subagent", task=DEEPER, tools=["write"])),
        when("You do not have the tools write", call("write", path="a.txt", text="x\n")),
        when("There is no tool write", run("touch b.txt")),
        when("There is no tool run", {"text": "I may do nothing."}),
    ]
    async with conversation(tmp_path, answers, mode="edit") as talk:
        await talk.turn("Delegate it")
    first, second, third = talk.all(ToolFinished)
    assert first.error
    assert first.error.reason == "mode_forbids"
    assert second.error
    assert "launch" in second.error.message
    assert "I may do nothing." in third.content
    assert json.loads(third.content)["refused"] == 3
    assert sorted(each.name for each in tmp_path.iterdir()) == []


@pytest.mark.promise("SUB-2")
async def test_a_narrower_mode_counts_for_a_running_subagent_at_once(
    tmp_path: Path,
) -> None:
    answers = [
        call("subagent", task=DEEPEST, mode="edit"),
        when(
            DEEPEST,
            {
                "text": ["working"],
                "calls": [{"name": "write", "arguments": {"path": "deep.txt", "text": "x"}}],
            },
        ),
        when("mode_forbids", {"text": "I could not."}),
        {"text": "done"},
    ]
    async with conversation(tmp_path, answers, mode="edit") as talk:
        talk.held.hold(0, 1)
        await talk.say("Write it")
        await talk.held.reached(0, 1)
        await talk.send(SetMode(mode="explore"))
        with anyio.fail_after(60):
            while talk.app.state(talk.id).mode != "explore":
                await anyio.sleep(0.01)
        talk.held.let_go(0, 1)
        await talk.until(TurnFinished)
    assert talk.all(SubagentFinished)[0].report.refused == 1
    assert not (tmp_path / "deep.txt").exists()


@pytest.mark.promise("SUB-3")
async def test_depth_and_number_are_limited_with_an_error_that_says_so(tmp_path: Path) -> None:
    settings = "[limits]\nsubagents = 2\nsubagent_depth = 2\n"
    answers = [
        call("subagent", task="level 1"),
        when("level 1", call("subagent", task="level 2")),
        when("level 2", call("subagent", task="level 3")),
        when("subagent_depth", {"text": "too deep"}),
        when("too deep", {"text": "passed on"}),
        call("subagent", task="one more"),
        {"text": "done"},
    ]
    answers[4] = when('"text":"too deep"', {"text": "passed on"})
    async with conversation(tmp_path, answers, mode="edit", settings=settings) as talk:
        end = await talk.turn("Delegate it")
    assert end.reason == "answered"
    assert [each.depth for each in talk.all(SubagentStarted)] == [1, 2]
    *_, refused = talk.all(ToolFinished)
    assert refused.error
    assert refused.error.reason == "budget_exhausted"
    assert "limits.subagents" in refused.error.message


@pytest.mark.promise("SUB-4")
async def test_a_budget_of_a_subagent_stops_it_and_the_turn_goes_on(tmp_path: Path) -> None:
    answers = [
        call("subagent", task=LOOK, tokens=200),
        {"text": "It had too little."},
    ]
    async with conversation(tmp_path, answers, mode="edit") as talk:
        end = await talk.turn("Delegate it")
    (finished,) = talk.all(SubagentFinished)
    assert finished.report.reason == "budget"
    assert "the sub-agent" in finished.report.detail
    assert end.reason == "answered"
    assert len(talk.requests) == 2


@pytest.mark.promise("SUB-5")
async def test_changes_of_a_deep_subagent_are_in_the_parents_history_and_undone_with_it(
    tmp_path: Path,
) -> None:
    answers = [
        call("subagent", task="level 1"),
        when("level 1", call("subagent", task="level 2")),
        when("level 2", call("subagent", task=DEEPEST)),
        when(DEEPEST, call("write", path="deep.txt", text="deep\n")),
        when("deep.txt", {"text": "Written."}),
        {"text": "done"},
    ]
    answers[4] = when("Created", {"text": "Written."})
    answers[5:5] = [when('"text":"Written."', {"text": "Written."})]
    async with conversation(tmp_path, answers, mode="edit") as talk:
        end = await talk.turn("Delegate it")
        assert (tmp_path / "deep.txt").read_text() == "deep\n"
        (change,) = talk.all(ChangePrepared)
        deepest = talk.all(SubagentStarted)[-1]
        assert (change.subagent, deepest.depth) == (deepest.subagent_id, 3)
        assert change.turn_id == end.turn_id
        assert [each.report.files for each in talk.all(SubagentFinished)] == [("deep.txt",)] * 3
        assert talk.all(ChangeApplied)[0].change_id == change.change_id
        await talk.send(Rewind(to=change.change_id))
        await talk.until(Rewound)
    assert not (tmp_path / "deep.txt").exists()
    requests = sum(each.event["type"] == "request_started" for each in talk.all(SubagentEvent))
    assert end.usage.input_tokens == 10 * (requests + len(talk.all(RequestStarted)))


async def test_an_approval_of_a_subagent_is_asked_through_the_parent(tmp_path: Path) -> None:
    answers = [
        call("subagent", task=DEEPEST),
        when(DEEPEST, call("write", path="deep.txt", text="deep\n")),
        when("Created", {"text": "Written."}),
        {"text": "done"},
    ]
    async with conversation(tmp_path, answers, mode="ask") as talk:
        await talk.say("Write it")
        asked = await talk.until(ApprovalAsked)
        assert asked.call_id.startswith(talk.all(SubagentStarted)[0].subagent_id)
        assert not (tmp_path / "deep.txt").exists()
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
        await talk.until(TurnFinished)
        assert talk.app.state(talk.id).approvals == {}
        assert talk.app.state(talk.id).decided == {}
    assert (tmp_path / "deep.txt").read_text() == "deep\n"


TREE = [
    call("subagent", task="level 1"),
    when("level 1", call("subagent", task="level 2")),
    when("level 2", call("subagent", task="level 3")),
    when("level 3", run("sleep 600")),
    when('"reason":"cancelled"', {"text": "It was stopped."}),
    {"text": "done"},
]


@pytest.mark.promise("SUB-6")
async def test_a_tree_three_deep_is_cancelled_as_a_whole(tmp_path: Path) -> None:
    async with conversation(
        tmp_path, TREE, mode="auto", settings='[commands]\nallow = ["sleep"]\nwithout_sandbox = true\n'
    ) as talk:
        await talk.say("Delegate it")
        await talk.until(
            SubagentEvent,
            lambda each: each.event.get("tool") == "run" and each.event["type"] == "tool_started",
        )
        with anyio.fail_after(60):
            await talk.send(Cancel())
            end = await talk.until(TurnFinished)
        assert talk.app.state(talk.id).subagents == {}
    assert end.reason == "cancelled"
    assert [each.report.reason for each in talk.all(SubagentFinished)] == ["cancelled"] * 3
    assert end.usage.input_tokens == 10 * len(talk.requests)


@pytest.mark.promise("SUB-6")
async def test_one_subagent_is_cancelled_and_its_parent_goes_on(tmp_path: Path) -> None:
    async with conversation(
        tmp_path, TREE, mode="auto", settings='[commands]\nallow = ["sleep"]\nwithout_sandbox = true\n'
    ) as talk:
        await talk.say("Delegate it")
        await talk.until(
            SubagentEvent,
            lambda each: each.event.get("tool") == "run" and each.event["type"] == "tool_started",
        )
        second = talk.all(SubagentStarted)[1].subagent_id
        await talk.send(CancelSubagent(subagent_id=second))
        end = await talk.until(TurnFinished)
    assert [each.report.reason for each in talk.all(SubagentFinished)] == [
        "cancelled",
        "cancelled",
        "answered",
    ]
    assert talk.all(SubagentFinished)[2].report.text == "It was stopped."
    assert end.reason == "answered"


@pytest.mark.promise("SUB-7")
@pytest.mark.parametrize(
    ("when_killed", "told"), [("answer", "Answer again"), ("command", "may have happened")]
)
async def test_a_tree_that_was_killed_goes_on_and_does_nothing_twice(
    tmp_path: Path, when_killed: str, told: str
) -> None:
    command = [sys.executable, "-m", "tests.engine.killed_subagent", str(tmp_path), when_killed]
    async with await anyio.open_process(command, stdout=None, stderr=None) as process:
        await eventually((tmp_path / "asked").exists)
        process.kill()
    async with conversation(tmp_path, [], session=last_session(tmp_path)) as talk:
        end = await talk.until(TurnFinished)
        # Of an interrupted request it is unknown.
        assert talk.app.state(talk.id).cost_known is (when_killed == "command")
    assert end.reason == "interrupted"
    names = [each.subagent_id for each in talk.all(SubagentStarted)]
    assert [each.report.reason for each in talk.all(SubagentFinished)] == ["interrupted"] * 3
    assert len(talk.all(ChangePrepared)) == (when_killed == "answer")
    steps = [
        when("Assume that it is wrong", call("subagent", resume=names[0])),
        when("Start a new one", {"text": "It has tools that I do not have."}),
        when("Go on", call("subagent", resume=names[0])),
        when(f'resume=\\"{names[1]}\\"', call("subagent", resume=names[1])),
        when(f'resume=\\"{names[2]}\\"', call("subagent", resume=names[2])),
        when(told, {"text": "It is done."}),
        when("It is done.", {"text": "It is done."}),
    ]
    copied(tmp_path)
    async with conversation(tmp_path, steps, session=talk.id, after=talk.seen[-1].seq, trust=True) as again:
        await again.turn("@review let it go on")
        assert again.all(SubagentStarted) == []
        assert "which you do not have" in again.all(ToolFinished)[0].content
        end = await again.turn("Go on")
        assert again.app.state(again.id).subagents == {}
    assert end.reason == "answered"
    assert [each.resumed for each in again.all(SubagentStarted)] == [True] * 3
    assert [each.report.text for each in again.all(SubagentFinished)] == ["It is done."] * 3
    assert again.all(SubagentFinished)[0].report.files == (("log.txt",) if when_killed == "answer" else ())
    assert again.all(ChangePrepared) == []
    assert (tmp_path / "log.txt").read_text() == "once\n"


@pytest.mark.promise("SUB-2")
async def test_a_subagent_that_goes_on_below_a_question_only_reads(tmp_path: Path) -> None:
    """It began as work in mode auto. Mode plan lets it run commands that read; a question does not."""
    command = [sys.executable, "-m", "tests.engine.killed_subagent", str(tmp_path), "answer"]
    async with await anyio.open_process(command, stdout=None, stderr=None) as process:
        await eventually((tmp_path / "asked").exists)
        process.kill()
    async with conversation(tmp_path, [], session=last_session(tmp_path)) as talk:
        await talk.until(TurnFinished)
    name = talk.all(SubagentStarted)[0].subagent_id
    steps = [
        when("Handrail: mode plan", call("subagent", resume=name)),
        when("resume=", run("cat log.txt")),
        when("The user only asked", {"text": "I may only read."}),
        {"text": "{}"},
    ]
    async with conversation(tmp_path, steps, session=talk.id, after=talk.seen[-1].seq) as again:
        await again.send(SendMessage(text="Go on", route="plan-mode"))
        report = (await again.until(SubagentFinished)).report
        await again.send(Cancel())
        await again.until(TurnFinished)
    assert (report.text, report.refused) == ("I may only read.", 1)


@pytest.mark.promise("SUB-7")
async def test_a_subagent_that_waits_for_approval_still_waits_after_a_restart(tmp_path: Path) -> None:
    answers = [
        call("subagent", task=DEEPEST),
        when(DEEPEST, call("write", path="deep.txt", text="deep\n")),
        when("Created", {"text": "Written."}),
        {"text": "done"},
    ]
    async with conversation(tmp_path, answers, mode="ask") as talk:
        await talk.say("Write it")
        await talk.until(ApprovalAsked)
    async with conversation(tmp_path, answers, session=talk.id) as again:
        asked = await again.until(ApprovalAsked)
        await again.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
        end = await again.until(TurnFinished)
    assert end.reason == "answered"
    assert [each.resumed for each in again.all(SubagentStarted)] == [False, True]
    assert len(again.all(ApprovalAsked)) == 1
    assert (tmp_path / "deep.txt").read_text() == "deep\n"
    assert len(again.requests) == 2  # the sub-agent's answer was not asked for again


@pytest.mark.promise("SUB-8")
async def test_agents_in_folders_are_called_by_name_and_keep_to_their_mode_and_tools(tmp_path: Path) -> None:
    copied(tmp_path)
    answers = [
        call("subagent", agent="nobody", task="look"),
        call("subagent", agent="review", task="look"),
        {"text": "done"},
        when("look", call("write", path="a.txt", text="x")),
        when("There is no tool write", run("touch a.txt")),
        when("mode_forbids", {"text": "Line 1 is wrong."}),
    ]
    async with conversation(tmp_path, answers, mode="edit", trust=True) as talk:
        await talk.turn("Let it be reviewed")
        assert "review: Looks for" in next(
            each.description for each in talk.requests[0].tools if each.name == "subagent"
        )
        unknown, called = talk.all(ToolFinished)
        assert unknown.error
        assert json.loads(called.content)["text"] == "Line 1 is wrong."
        assert talk.all(SubagentFinished)[0].report.refused == 2
        assert "Assume that it is wrong" in words(talk.requests[2])
    async with conversation(tmp_path, answers[3:], mode="edit", trust=True) as direct:
        await direct.turn("@review look")
    assert [each.status for each in direct.all(ToolFinished)] == ["refused", "refused"]
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.promise("SUB-8")
async def test_a_pause_of_an_agent_is_a_question_to_the_user(tmp_path: Path) -> None:
    copied(tmp_path)
    definition = tmp_path / "agents" / "implement" / "agent.toml"
    definition.write_text(definition.read_text() + PAUSE)
    answers = [
        call("subagent", agent="implement", task="change it"),
        {"text": "done"},
        when("change it", {"text": "I would do this."}),
        when("The user was asked", {"text": "Done as agreed."}),
    ]
    async with conversation(tmp_path, answers, mode="edit", trust=True) as talk:
        await talk.say("Let it be done")
        asked = await talk.until(QuestionAsked)
        assert "Is this right?" in asked.question
        await talk.send(AnswerQuestion(question_id=asked.question_id, answer="1"))
        await talk.until(TurnFinished)
    (finished,) = talk.all(SubagentFinished)
    assert finished.report.reason == "answered"
    assert "Done as agreed." in finished.report.text


@pytest.mark.promise("SUB-2")
async def test_a_subagent_that_no_tool_is_left_for_does_not_get_all_of_them(tmp_path: Path) -> None:
    copied(tmp_path)
    answers = [
        call("subagent", agent="review", task="look", tools=["write"]),
        {"text": "done"},
        when("look", call("write", path="a.txt", text="x")),
    ]
    async with conversation(tmp_path, answers, mode="edit", trust=True) as talk:
        await talk.turn("Let it be reviewed")
    (refused,) = talk.all(ToolFinished)
    assert refused.error
    assert "Nothing is left for the agent review" in refused.error.message
    assert talk.all(SubagentStarted) == []


@pytest.mark.promise("SUB-8")
@pytest.mark.parametrize(
    ("slug", "told"),  # plan: tests/pipelines/test_plan_agent.py
    [("implement", "Do the task"), ("review", "Assume that it is wrong"), ("test", "as a user would")],
)
async def test_the_example_agents_run_by_name_and_by_mention(tmp_path: Path, slug: str, told: str) -> None:
    copied(tmp_path)
    answers = [
        when(told, {"text": "I see."}),
        when('"text":"I see."', {"text": "It saw."}),
        when("another one", call("subagent", agent=slug, task="do it")),
    ]
    async with conversation(tmp_path, answers, mode="edit", trust=True) as talk:
        end = await talk.turn(f"@{slug} do it")
        (started,) = talk.all(RunStarted)
        assert (end.reason, started.pipeline) == ("answered", slug)
        known = [tool.name for tool in talk.requests[0].tools]
        assert [name for name in started.tools if name not in known] == []
        assert (await talk.turn("Let another one see")).reason == "answered"
        (finished,) = talk.all(SubagentFinished)
    assert (finished.report.reason, finished.report.text) == ("answered", "I see.")


PAUSE = """
[[stages]]
name = "finish"
kind = "work"
prompt = "prompts/work.md"
takes = ["work"]

[[pauses]]
after = "work"
text = "Is this right?"
"""


def copied(workspace: Path) -> None:
    for slug in ("plan", "implement", "review", "test"):
        shutil.copytree(EXAMPLES / "agents" / slug, workspace / "agents" / slug)
