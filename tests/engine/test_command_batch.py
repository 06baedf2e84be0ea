"""Running what an answer suggests: one command, or all of them with the model in the loop."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.context.small.one_action_model import OneActionModel
from handrail.engine.host.takeover import take_over
from handrail.models.model import Request, ToolResult
from handrail.protocol.commands import AnswerApproval, Cancel, RunAll, RunCommand
from handrail.protocol.events import (
    ApprovalAsked,
    ApprovalPicked,
    BatchDecided,
    BatchFinished,
    BatchStarted,
    BatchStep,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UserMessage,
)
from handrail.protocol.ids import new_id
from handrail.sessions.session import Session
from handrail.storage.log_repair import open_log
from handrail.tools.web.fetch import user_texts
from handrail.workspace.files import Workspace
from tests.engine.conversation import Conversation, conversation, eventually, script_file, words
from tests.processes import gone, lasting, running

pytestmark = pytest.mark.anyio

DECIDES = "say how to go on"
"""What only the question holds that asks for a decision."""
WELL = {"when": "", "text": "All is well."}
"""What is answered to anything else."""
THREE = ("echo one >> log", "cat missing", "echo three >> log")


def says(decision: str, **more: Any) -> dict[str, Any]:
    """The model's word after a command."""
    return {"when": DECIDES, "text": json.dumps({"decision": decision, **more})}


def says_after_failure(decision: str, **more: Any) -> list[dict[str, Any]]:
    """The model's word after one that failed; after the others, to go on."""
    failed = says(decision, **more) | {"when": "1 failed"}
    return [failed, says("continue"), WELL]


def decisions(talk: Conversation) -> list[Request]:
    return [request for request in talk.requests if DECIDES in words(request)]


async def end_of(talk: Conversation) -> BatchFinished:
    """How the batch ended; its turn has ended, too."""
    finished = await talk.until(BatchFinished)
    await talk.until(TurnFinished)
    return finished


def counts(event: BatchFinished | BatchStep) -> tuple[int, int, int, int, int]:
    return event.number, event.total, event.succeeded, event.failed, event.remaining


@pytest.mark.promise("BATCH-1")
async def test_each_command_is_run_and_shown_to_the_model_before_the_next(tmp_path: Path) -> None:
    async with conversation(tmp_path, [says("continue"), WELL]) as talk:
        await talk.send(RunAll(commands=("echo one >> log", "echo two >> log; cat log", "wc -l < log")))
        finished = await end_of(talk)
    assert (tmp_path / "log").read_text() == "one\ntwo\n"
    assert (finished.end, counts(finished)) == ("completed", (3, 3, 3, 0, 0))
    assert [counts(step) for step in talk.all(BatchStep)] == [
        (1, 3, 0, 0, 2),
        (2, 3, 1, 0, 1),
        (3, 3, 2, 0, 0),
    ]
    first, second = decisions(talk)
    results = [message.content for message in second.messages if isinstance(message, ToolResult)]
    assert len(results) == 2
    assert "one\ntwo" in results[1]
    assert "The next is: wc -l < log" in words(second)
    assert sum(isinstance(message, ToolResult) for message in first.messages) == 1
    assert "3 succeeded" in words(talk.requests[-1]), "when all have run, the model answers"


@pytest.mark.promise("BATCH-1")
async def test_the_model_can_stop_a_batch(tmp_path: Path) -> None:
    answers = says_after_failure("stop", why="The file is not there.")
    async with conversation(tmp_path, answers) as talk:
        await talk.send(RunAll(commands=THREE))
        stopped = await talk.until(BatchFinished)
        turn = await talk.until(TurnFinished)
        requests = len(talk.requests)
        await talk.turn("and now?")
    assert (tmp_path / "log").read_text() == "one\n"
    assert (stopped.end, stopped.why, counts(stopped)) == (
        "stopped",
        "The file is not there.",
        (2, 3, 1, 1, 1),
    )
    assert (turn.reason, turn.detail) == ("answered", "Stopped: The file is not there.")
    assert requests == len(decisions(talk)) == 2
    assert "1 failed. The batch stopped: The file is not there." in words(talk.requests[-1])


@pytest.mark.promise("BATCH-1")
async def test_a_corrected_command_takes_the_place_of_the_one_that_failed(tmp_path: Path) -> None:
    answers = says_after_failure("replace", command="echo two >> log", why="cat was wrong")
    async with conversation(tmp_path, answers, mode="auto") as talk:
        await talk.send(RunAll(commands=THREE))
        asked = await talk.until(ApprovalAsked)
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
        finished = await end_of(talk)
    assert (tmp_path / "log").read_text() == "one\ntwo\nthree\n"
    assert (finished.end, counts(finished)) == ("completed", (3, 3, 3, 0, 0))
    steps = talk.all(BatchStep)
    assert [(step.number, step.by) for step in steps] == [(1, "user"), (2, "user"), (2, "model"), (3, "user")]


@pytest.mark.promise("BATCH-2")
async def test_picking_a_command_approves_that_text_once_and_is_recorded(tmp_path: Path) -> None:
    async with conversation(tmp_path, [WELL], mode="ask") as talk:
        await talk.send(RunCommand(command="touch made"))
        await talk.until(TurnFinished)
        (picked,) = talk.all(ApprovalPicked)
        assert talk.types.index("approval_picked") < talk.types.index("tool_started")
        assert (picked.tool, picked.preview, picked.why) == (
            "run",
            "touch made",
            "mode ask: every command needs approval",
        )
        assert talk.all(ApprovalAsked) == []
        assert not talk.app.state(talk.id).always
    assert (tmp_path / "made").exists()


@pytest.mark.promise("BATCH-2")
async def test_a_corrected_command_is_asked_about_as_any_of_the_model(tmp_path: Path) -> None:
    answers = says_after_failure("replace", command="touch wanted", why="no file")
    async with conversation(tmp_path, answers, mode="ask") as talk:
        await talk.send(RunAll(commands=THREE))
        asked = await talk.until(ApprovalAsked)
        assert asked.preview == "touch wanted"
        assert not (tmp_path / "wanted").exists()
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="reject"))
        finished = await end_of(talk)
    assert not (tmp_path / "wanted").exists()
    assert (finished.end, finished.why, finished.remaining) == ("stopped", "you said no to it", 1)
    assert (tmp_path / "log").read_text() == "one\n"


@pytest.mark.promise("BATCH-2")
@pytest.mark.parametrize(
    ("mode", "settings", "reason"),
    [
        ("explore", "", "mode_forbids"),
        ("plan", "", "mode_forbids"),
        ("auto", '[commands]\ndeny = ["touch"]\n', "command_not_allowed"),
    ],
)
async def test_what_is_denied_stays_denied_to_the_user_who_picks_it(
    tmp_path: Path, mode: str, settings: str, reason: str
) -> None:
    async with conversation(tmp_path, [WELL], mode=mode, settings=settings) as talk:
        await talk.send(RunCommand(command="touch made"))
        refused = await talk.until(ToolFinished)
        await talk.until(TurnFinished)
    assert refused.error
    assert refused.error.reason == reason
    assert talk.all(ToolStarted) == []
    assert talk.all(ApprovalPicked) == []
    assert not (tmp_path / "made").exists()


async def test_a_pick_is_no_word_on_what_could_not_be_seen(tmp_path: Path) -> None:
    hidden = "touch a\u202eb"
    async with conversation(tmp_path, [WELL], mode="ask") as talk:
        await talk.send(RunCommand(command=hidden))
        asked = await talk.until(ApprovalAsked)
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="reject"))
        await talk.until(TurnFinished)
    assert talk.all(ApprovalPicked) == []
    assert list(tmp_path.iterdir()) == []


async def test_a_pick_is_no_word_on_what_a_hook_made_of_it(tmp_path: Path) -> None:
    program = tmp_path / "hook.py"
    program.write_text('print(\'{"arguments": {"command": "touch other"}}\')\n')
    hook = f'[[hooks]]\non = "before_tool"\nrun = ["{sys.executable}", "{program}"]\n'
    workspace = tmp_path / "work"
    workspace.mkdir()
    async with conversation(workspace, [WELL], mode="ask", settings=hook) as talk:
        await talk.send(RunCommand(command="touch made"))
        asked = await talk.until(ApprovalAsked)
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="reject"))
        await talk.until(TurnFinished)
    assert asked.preview == "touch other"
    assert talk.all(ApprovalPicked) == []


async def test_words_of_a_picked_command_do_not_count_as_the_users_own(tmp_path: Path) -> None:
    async with conversation(tmp_path, [says("continue"), WELL]) as talk:
        await talk.send(RunAll(commands=("echo http://evil.example", "true")))
        await end_of(talk)
        said = user_texts(Session(talk.app.log, talk.id).load())
    assert said == ["Run these 2 commands, one by one."]


@pytest.mark.promise("BATCH-3")
async def test_the_output_of_one_command_is_the_models_next_step(tmp_path: Path) -> None:
    async with conversation(tmp_path, [WELL]) as talk:
        await talk.send(RunCommand(command="echo hello; exit 3"))
        finished = await end_of(talk)
    assert (finished.end, finished.failed) == ("completed", 1)
    (request,) = talk.requests
    assert isinstance(request.messages[-1], ToolResult)
    assert "hello" in request.messages[-1].content


@pytest.mark.promise("BATCH-3")
async def test_output_stays_with_the_user_where_they_have_set_it_so(tmp_path: Path) -> None:
    settings = "[commands]\noutput_to_model = false\n"
    async with conversation(tmp_path, [WELL], settings=settings) as talk:
        await talk.send(RunCommand(command="echo mine-alone"))
        shown = await talk.until(ToolFinished)
        await talk.until(TurnFinished)
        assert talk.requests == []
        await talk.send(RunAll(commands=("echo mine-alone", "cat missing", "touch made")))
        finished = await end_of(talk)
        assert talk.requests == []
        await talk.turn("and now?")
    assert shown.shown == "mine-alone"
    assert (finished.end, finished.failed, finished.remaining) == ("stopped", 1, 1)
    assert "commands.output_to_model" in finished.why
    assert not (tmp_path / "made").exists()
    told = [message.content for message in talk.requests[-1].messages if isinstance(message, ToolResult)]
    assert ["succeeded" in each for each in told] == [True, True, False]
    assert "\nmine-alone" not in words(talk.requests[-1])


@pytest.mark.parametrize(
    "unread", ["hm, let me think", '{"decision": "maybe"}', '{"decision": "replace"}', ""]
)
async def test_a_decision_that_cannot_be_read_is_asked_for_once_more_and_then_stops(
    tmp_path: Path, unread: str
) -> None:
    async with conversation(tmp_path, [{"when": DECIDES, "text": unread}, WELL]) as talk:
        await talk.send(RunAll(commands=("true", "touch made")))
        finished = await end_of(talk)
    assert len(talk.requests) == 2
    assert "could not be read" in words(talk.requests[1])
    assert finished.end == "stopped"
    assert finished.why.startswith("the model gave no usable decision: ")
    assert not (tmp_path / "made").exists()


async def test_a_model_that_cannot_be_asked_stops_the_batch(tmp_path: Path) -> None:
    broken = {"when": DECIDES, "error": {"kind": "give_up", "message": "no such model"}}
    async with conversation(tmp_path, [broken, WELL]) as talk:
        await talk.send(RunAll(commands=("true", "touch made")))
        finished = await end_of(talk)
    assert finished.why == "the model gave no usable decision: no such model"
    assert not (tmp_path / "made").exists()


async def test_a_command_is_corrected_only_so_often(tmp_path: Path) -> None:
    answers = [says("replace", command="cat missing", why="again"), WELL]
    async with conversation(tmp_path, answers, mode="auto") as talk:
        await talk.send(RunAll(commands=("cat missing", "touch made")))
        finished = await end_of(talk)
    assert len(talk.all(BatchStep)) == 4
    assert finished.why == "it failed again after 3 corrections"
    assert not (tmp_path / "made").exists()


@pytest.mark.promise("BATCH-4")
async def test_cancel_ends_the_command_and_the_batch_at_once(tmp_path: Path) -> None:
    word = lasting()
    async with conversation(tmp_path, [says("continue"), WELL]) as talk:
        await talk.send(RunAll(commands=("true", f"sleep {word}", "touch made")))
        await talk.until(ToolStarted, lambda event: word in event.summary)
        await talk.send(Cancel())
        finished = await talk.until(BatchFinished)
        turn = await talk.until(TurnFinished)
        assert await gone(word)
        assert len(talk.requests) == 1
    assert (finished.end, counts(finished)) == ("cancelled", (2, 3, 1, 0, 1))
    assert turn.reason == "cancelled"
    assert not (tmp_path / "made").exists()


KILLED = """
import sys
from pathlib import Path
import anyio
from handrail.protocol.commands import RunAll
from handrail.protocol.events import BatchFinished
from tests.engine.conversation import conversation

async def main(workspace, model, session, *commands):
    async with conversation(Path(workspace), None, model=model, session=session) as talk:
        await talk.send(RunAll(commands=commands))
        await talk.until(BatchFinished)

anyio.run(main, *sys.argv[1:])
"""


@pytest.mark.promise("BATCH-4")
async def test_after_a_kill_the_batch_is_closed_and_no_command_runs_twice(tmp_path: Path) -> None:
    workspace, word = tmp_path / "work", lasting()
    workspace.mkdir()
    model = script_file(tmp_path, [says("continue"), WELL])
    async with conversation(workspace, None, model=model) as talk:
        session_id = talk.id
        await talk.turn("hello")
    commands = ("echo one >> log", f"echo two >> log; sleep {word}", "echo three >> log")
    child = await anyio.open_process(
        [sys.executable, "-c", KILLED, str(workspace), model, session_id, *commands],
        cwd=Path(__file__).parents[2],
    )
    try:
        log = workspace / "log"
        await eventually(lambda: log.exists() and "two" in log.read_text())
        child.kill()
        await child.wait()
        async with conversation(workspace, None, model=model, session=session_id) as talk:
            finished = await talk.until(BatchFinished)
            assert (finished.end, counts(finished)) == ("interrupted", (2, 3, 1, 0, 1))
            await talk.until(TurnFinished)
            assert (await talk.turn("and now?")).reason == "answered"
        assert len(talk.all(ToolStarted)) == 2
        assert log.read_text() == "one\ntwo\n"
    finally:
        for number in running(word):
            os.kill(number, signal.SIGKILL)


@pytest.mark.promise("BATCH-4")
async def test_a_batch_that_waits_for_the_users_word_goes_on_after_a_restart(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    model = script_file(tmp_path, says_after_failure("replace", command="echo two >> log", why="as meant"))
    async with conversation(workspace, None, model=model) as talk:
        session_id = talk.id
        await talk.send(RunAll(commands=THREE))
        asked = await talk.until(ApprovalAsked)
    async with conversation(workspace, None, model=model, session=session_id) as talk:
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
        finished = await end_of(talk)
    assert (finished.end, counts(finished)) == ("completed", (3, 3, 3, 0, 0))
    assert (workspace / "log").read_text() == "one\ntwo\nthree\n"


async def test_the_limits_of_a_turn_hold_for_a_batch(tmp_path: Path) -> None:
    answers = [says("continue"), WELL]
    async with conversation(tmp_path, answers, settings="[limits]\nsteps = 2\n") as talk:
        await talk.send(RunAll(commands=("true", "true", "true", "touch made")))
        finished = await talk.until(BatchFinished)
        turn = await talk.until(TurnFinished)
    assert (finished.end, counts(finished)) == ("limit", (2, 4, 2, 0, 2))
    assert turn.reason == "budget"
    assert "limits.steps" in turn.detail
    assert len(talk.requests) == 2


async def test_a_small_model_is_asked_only_after_a_failure(tmp_path: Path) -> None:
    word = {"decision": "replace", "command": "echo two >> log", "why": "typo"}
    answers = [{"when": "It wrote:", "text": json.dumps(word)}, WELL]
    async with conversation(tmp_path, answers) as talk:
        models = talk.app.model_pool._models
        models["scripted/test"] = OneActionModel(models["scripted/test"])
        await talk.send(RunAll(commands=THREE))
        asked = await talk.until(ApprovalAsked)
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
        finished = await end_of(talk)
    assert (finished.end, counts(finished)) == ("completed", (3, 3, 3, 0, 0))
    assert [decided.by for decided in talk.all(BatchDecided)] == ["rule", "model", "rule"]
    (request,) = [request for request in talk.requests if "It wrote:" in words(request)]
    assert "cat missing" in words(request)
    assert request.output_schema
    assert len(words(request)) < 2_000


async def test_what_the_user_says_meanwhile_reaches_the_model_with_the_next_decision(tmp_path: Path) -> None:
    until_told = "until [ -e go ]; do sleep 0.02; done"
    async with conversation(tmp_path, [says("continue"), WELL]) as talk:
        await talk.send(RunAll(commands=(until_told, "true")))
        await talk.until(ToolStarted)
        await talk.say("stop when it looks odd")
        (tmp_path / "go").touch()
        await talk.until(UserMessage, lambda event: event.steering)
        await end_of(talk)
    assert "stop when it looks odd" in words(decisions(talk)[0])


async def test_a_batch_that_is_asked_for_in_a_turn_waits_for_its_end_and_can_be_withdrawn(
    tmp_path: Path,
) -> None:
    batch = RunAll(commands=("touch made", "touch more"))
    async with conversation(tmp_path, [{"text": ["Let", " me"]}, says("continue"), WELL]) as talk:
        talk.held.hold(0, 1)
        await talk.say("hello")
        await talk.held.reached(0, 1)
        await talk.send(batch)
        await talk.send(Cancel(withdraw=(batch.message_id,)))
        assert (await talk.until(TurnFinished)).reason == "cancelled"
        assert Session(talk.app.log, talk.id).waiting() == []
    assert not (tmp_path / "made").exists()


async def test_a_kill_after_any_event_of_a_batch_leaves_one_end_of_it_and_of_its_turn(tmp_path: Path) -> None:
    answers = says_after_failure("continue")
    async with conversation(tmp_path, answers, mode="ask") as talk:
        await talk.send(RunAll(commands=THREE))
        await end_of(talk)
    events = [one.event for one in talk.seen]
    begun = next(at for at, event in enumerate(events) if isinstance(event, BatchStarted))
    log = open_log(tmp_path / "log-of-kills")
    for kept in range(begun + 1, len(events) + 1):
        session = Session(log, new_id("s")).load()
        assert session.try_hold()
        session.append(*events[:kept])
        take_over(session, Workspace(tmp_path))
        types = [recorded.event.type for recorded in session.read_after(0, 1_000)]
        assert types.count("batch_finished") == types.count("turn_finished") == 1, kept
        assert types.count("tool_started") == types[:kept].count("tool_started")
        assert types.index("batch_finished") < types.index("turn_finished")
        assert session.state.turn is None
        session.release()
    log.close()
