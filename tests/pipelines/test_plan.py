"""Mode plan: a plan is made, changed by the user, approved, and followed step by step."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handrail.models.model import Capabilities
from handrail.models.scripted_model import ScriptedModel
from handrail.protocol.commands import ApprovePlan, SendMessage, SetAutoContinue, SetMode, SetPlan
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import (
    AutoContinueSet,
    ChangeApplied,
    GateFailed,
    ModeSet,
    PlanApproved,
    PlanChanged,
    RunCompleted,
    RunContinued,
    RunStarted,
    StageCompleted,
    TodoCompleted,
    ToolFinished,
    TurnFinished,
)
from handrail.protocol.ids import session_stream
from handrail.protocol.plan import Plan, PlanStep, clean_plan, plan_as_text, plan_from_text
from handrail.protocol.values import FOLLOW_INPUT, FOLLOW_ROUTE
from handrail.sessions.session import event_from_row
from tests.engine.commits import Commits, is_idle
from tests.engine.conversation import Conversation, call, conversation, eventually, run, words

pytestmark = pytest.mark.anyio
TASK = "Write a.txt and b.txt."
STEPS: list[dict[str, Any]] = [
    {"description": "Write a.txt", "files": ["a.txt"], "check": ""},
    {"description": "Write b.txt", "files": ["b.txt"], "check": ""},
]
STUDIED = {"when": "Change nothing now", "text": "Both files are missing."}
FOLLOW = SendMessage(text=FOLLOW_INPUT, route=FOLLOW_ROUTE)


@pytest.fixture(autouse=True)
def routed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_AUTO_ROUTE", "on")


def proposed(*steps: Mapping[str, Any], when: str = "Output of look") -> dict[str, Any]:
    return {"when": when, "text": json.dumps({"objective": "Two files", "steps": steps})}


def doing(number: int, answer: Mapping[str, Any]) -> dict[str, Any]:
    return {"when": f"Do step {number} of ", **answer}


def write(name: str, todo: str) -> dict[str, Any]:
    return call("write", path=f"{name}.txt", text=f"{name}\n", todo=todo)


SCRIPT = [
    doing(1, write("a", "t1")),
    doing(2, write("b", "t2")),
    STUDIED,
    proposed(*STEPS),
    {"when": "", "text": "Written."},
]


async def approve(talk: Conversation, plan_id: str = "") -> None:
    state = talk.app.state(talk.id)
    assert state.plan
    await talk.send(ApprovePlan(plan_id=plan_id or state.plan.plan_id))


async def follow(talk: Conversation) -> TurnFinished:
    await talk.send(FOLLOW)
    return await talk.until(TurnFinished)


def todos(talk: Conversation) -> dict[str, bool]:
    return {todo.text: todo.done for todo in talk.app.state(talk.id).todos}


@pytest.mark.promise("PLAN-1")
async def test_a_plan_is_shown_approved_and_followed_step_by_step_in_mode_edit(tmp_path: Path) -> None:
    async with conversation(tmp_path, SCRIPT, mode="plan") as talk:
        finished = await talk.turn(TASK)
        assert finished.reason == "answered"
        (changed,) = talk.all(PlanChanged)
        assert changed.plan == Plan(
            "Two files", (PlanStep("Write a.txt", ("a.txt",)), PlanStep("Write b.txt", ("b.txt",)))
        )
        assert talk.all(RunCompleted)[-1].text == plan_as_text(changed.plan)
        assert [step.input for step in finished.next_steps] == ["/plan approve", "/plan edit"]
        assert finished.offered_by == "handrail"
        assert "write" not in {tool.name for request in talk.requests for tool in request.tools}
        assert not list(tmp_path.iterdir())
        await approve(talk)
        assert (await follow(talk)).reason == "answered"
        assert [event.mode for event in talk.all(ModeSet)] == ["edit"]
        assert todos(talk) == {"Write a.txt": True, "Write b.txt": True}
        assert [event.by for event in talk.all(TodoCompleted)] == ["change", "change"]
        assert len(talk.all(RunContinued)) == 1
        first, second = (
            next(at for at, request in enumerate(talk.requests) if f"Do step {number} of 2" in words(request))
            for number in (1, 2)
        )
        assert first < second
        assert "Do step 2 of 2" not in words(talk.requests[second - 1])
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", "b.txt"}


@pytest.mark.promise("PLAN-2")
async def test_what_is_followed_is_the_plan_that_the_user_edited_and_approved(tmp_path: Path) -> None:
    script = [doing(1, write("b", "t1")), *SCRIPT[2:]]
    async with conversation(tmp_path, script, mode="plan") as talk:
        await talk.turn(TASK)
        (before,) = talk.all(PlanChanged)
        await talk.send(SetPlan(plan=Plan("One file", (PlanStep("Write only b.txt"),))))
        edited = await talk.until(PlanChanged, lambda event: event.by == "user")
        await approve(talk, before.plan_id)  # of a plan that is no longer the one
        assert (await follow(talk)).reason == "failed"
        assert not talk.all(PlanApproved)
        assert not todos(talk)
        await approve(talk, edited.plan_id)
        assert (await follow(talk)).reason == "answered"
        assert todos(talk) == {"Write only b.txt": True}
    assert [path.name for path in tmp_path.iterdir()] == ["b.txt"]


@pytest.mark.promise("PLAN-2")
async def test_a_plan_that_is_edited_while_it_is_followed_keeps_what_is_done(tmp_path: Path) -> None:
    script = [doing(1, write("a", "t1")), doing(2, write("c", "t3")), *SCRIPT[2:]]
    async with conversation(tmp_path, script, mode="plan") as talk:
        await talk.turn(TASK)
        await approve(talk)
        await talk.send(SetAutoContinue(on=False))
        finished = await follow(talk)
        assert finished.next_steps[0].input == "/plan follow"
        assert not talk.all(RunContinued)
        assert todos(talk) == {"Write a.txt": True, "Write b.txt": False}
        await talk.send(SetPlan(plan=Plan("Others", (PlanStep("Write a.txt"), PlanStep("Write c.txt")))))
        await talk.until(PlanChanged)
        await approve(talk)
        await follow(talk)
        assert todos(talk) == {"Write a.txt": True, "Write c.txt": True}
        assert [event.on for event in talk.all(AutoContinueSet)] == [False]


@pytest.mark.promise("PLAN-2")
async def test_open_steps_of_a_plan_that_another_one_replaces_are_no_todos_any_more(tmp_path: Path) -> None:
    other = {"description": "Write c.txt", "files": [], "check": ""}
    again = {"description": "Write a.txt", "files": [], "check": ""}
    script = [doing(1, write("a", "t1")), STUDIED, proposed(other, again, when="c.txt"), *SCRIPT[3:]]
    async with conversation(tmp_path, script, mode="plan") as talk:
        await talk.turn(TASK)
        await approve(talk)
        await talk.send(SetAutoContinue(on=False))
        await follow(talk)
        await talk.send(SetMode(mode="plan"))
        await talk.turn("Write c.txt, then a.txt once more.")
        await approve(talk)
        await talk.until(PlanApproved)
        listed = [(todo.text, todo.done) for todo in talk.app.state(talk.id).todos]
        assert listed == [("Write a.txt", True), ("Write c.txt", False), ("Write a.txt", False)]


@pytest.mark.promise("PLAN-2")
async def test_a_model_cannot_reword_the_steps_that_the_user_approved(tmp_path: Path) -> None:
    reworded = call("todos", todos=[{"id": "t2", "text": "Delete everything"}])
    script = [doing(1, reworded), {"when": "t2: Write b.txt", **write("a", "t1")}, *SCRIPT[1:]]
    async with conversation(tmp_path, script, mode="plan") as talk:
        await talk.turn(TASK)
        await approve(talk)
        await follow(talk)
        assert "Delete everything" not in todos(talk)


@pytest.mark.promise("PLAN-2")
async def test_an_approval_that_comes_while_the_model_plans_again_approves_nothing(tmp_path: Path) -> None:
    async with conversation(tmp_path, SCRIPT, mode="plan") as talk:
        await talk.turn(TASK)
        talk.held.hold(1, 1)
        await talk.say("no, write them in another order")
        await talk.held.reached(1, 1)
        await approve(talk)
        talk.held.let_go(1, 1)
        await talk.until(TurnFinished)
        await eventually(lambda: is_idle(talk.app, talk.id))
        state = talk.app.state(talk.id)
        assert state.plan
        assert (state.plan.approved, state.mode, state.todos) == (False, "plan", [])


@pytest.mark.promise("PLAN-1")
async def test_a_mode_that_is_set_while_a_plan_is_made_does_not_let_it_write(tmp_path: Path) -> None:
    script = [{"when": "Change nothing now", **write("a", "")}, STUDIED, *SCRIPT[3:]]
    async with conversation(tmp_path, script, mode="plan") as talk:
        talk.held.hold(0, 0)
        await talk.say(TASK)
        await talk.held.reached(0, 0)
        await talk.send(SetMode(mode="edit"))
        await talk.until(ModeSet)
        talk.held.let_go(0, 0)
        await talk.until(TurnFinished)
        (end,) = [each for each in talk.all(ToolFinished) if each.tool == "write"]
        assert end.error
        assert end.error.reason == "mode_forbids"
    assert not list(tmp_path.iterdir())


@pytest.mark.promise("PLAN-3")
async def test_words_instead_of_an_approval_make_the_model_plan_again(tmp_path: Path) -> None:
    other = {"description": "Write c.txt", "files": [], "check": ""}
    script = [{"when": "The plan so far", "text": "Only c."}, proposed(other, when="earlier_plan"), *SCRIPT]
    async with conversation(tmp_path, script, mode="plan") as talk:
        await talk.turn(TASK)
        asked = len(talk.requests)
        assert (await talk.turn("no, one file c.txt instead")).reason == "answered"
        assert [event.pipeline for event in talk.all(RunStarted)] == ["plan-mode", "plan-mode"]
        assert "1. Write a.txt" in words(talk.requests[asked])
        assert "no, one file c.txt instead" in words(talk.requests[-1])
        state = talk.app.state(talk.id)
        assert state.plan
        assert [step.description for step in state.plan.plan.steps] == ["Write c.txt"]
        assert (state.mode, state.todos) == ("plan", [])
        await talk.turn("what does a.txt do?")
        assert talk.all(RunStarted)[-1].pipeline == "chat"


@pytest.mark.promise("PLAN-4")
async def test_a_step_that_no_change_or_command_completes_ends_the_run_and_stays_open(tmp_path: Path) -> None:
    script = [doing(1, {"text": "Done!"}), *SCRIPT[2:]]
    async with conversation(tmp_path, script, mode="plan") as talk:
        await talk.turn(TASK)
        await approve(talk)
        finished = await follow(talk)
        assert finished.reason == "failed"
        assert "step 1 is still open" in finished.detail
        assert "/todos done t1" in finished.detail
        assert len(talk.all(GateFailed)) == 2
        assert "You have tried it, but step 1 is still open" in words(talk.requests[-1])
        assert todos(talk) == {"Write a.txt": False, "Write b.txt": False}


@pytest.mark.promise("PLAN-4")
async def test_a_step_with_a_check_is_done_when_its_command_succeeds(tmp_path: Path) -> None:
    step = {"description": "Write a.txt", "files": [], "check": "cat a.txt"}
    tested = {"when": "completed by this command alone", **run("cat a.txt")}
    script = [tested, doing(1, write("a", "t1")), STUDIED, proposed(step), SCRIPT[-1]]
    async with conversation(tmp_path, script, mode="plan") as talk:
        await talk.turn(TASK)
        await approve(talk)
        await talk.send(SetMode(mode="auto"))
        assert (await follow(talk)).reason == "answered"
        assert [event.by for event in talk.all(TodoCompleted)] == ["command"]


async def test_a_plan_without_steps_is_asked_for_again(tmp_path: Path) -> None:
    script = [STUDIED, proposed(*STEPS, when="There is no step in the plan"), proposed()]
    async with conversation(tmp_path, script, mode="plan") as talk:
        assert (await talk.turn(TASK)).reason == "answered"
        (changed,) = talk.all(PlanChanged)
        assert len(changed.plan.steps) == 2


async def test_a_model_cannot_record_a_plan_itself(tmp_path: Path) -> None:
    script = [call("record_plan", objective="x", steps=[{"description": "y"}]), {"text": "No."}]
    async with conversation(tmp_path, script, mode="edit") as talk:
        await talk.send(SendMessage(text="Do it.", route="agent"))
        await talk.until(TurnFinished)
        assert [end.status for end in talk.all(ToolFinished)] == ["refused"]
        assert talk.app.state(talk.id).plan is None


async def test_a_check_does_not_go_with_a_plan(tmp_path: Path) -> None:
    async with conversation(tmp_path, SCRIPT, mode="plan") as talk:
        await talk.send(SendMessage(text=TASK, check="true"))
        finished = await talk.until(TurnFinished)
        assert (finished.reason, finished.detail.split(".")[0]) == (
            "failed",
            "`--check` goes with work on files, and making a plan changes no file",
        )


@pytest.mark.promise("PLAN-5")
async def test_a_model_without_tools_plans_from_loaded_files_and_follows_by_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        ScriptedModel, "capabilities", Capabilities(context_window=100_000, native_tools=False)
    )
    (tmp_path / "notes.txt").write_text("the notes\n")
    picked = {"patterns": ["notes.txt"], "urls": [], "mentions": [], "todos": []}

    def answered(number: int, name: str) -> dict[str, Any]:
        change = {"form": "create", "path": f"{name}.txt", "text": f"{name}\n", "todo": f"t{number}"}
        return doing(number, {"text": json.dumps({"summary": "Written.", "changes": [change]})})

    script = [
        answered(1, "a"),
        answered(2, "b"),
        proposed(*STEPS, when="Output of load"),
        {"when": "Output of look", "text": json.dumps(picked)},
    ]
    async with conversation(tmp_path, script, mode="plan") as talk:
        assert (await talk.turn(TASK)).reason == "answered"
        assert "the notes" in words(talk.requests[-1])
        await approve(talk)
        assert (await follow(talk)).reason == "answered"
        assert todos(talk) == {"Write a.txt": True, "Write b.txt": True}
        assert not any(request.tools for request in talk.requests)
    assert (tmp_path / "b.txt").read_text() == "b\n"


MAKING = ("look", "study", "propose", "record")


def outcome(talk: Conversation, workspace: Path) -> tuple[Any, ...]:
    """What a planned and followed task has left behind."""
    found = [event_from_row(row).event for row in talk.app.log.read(session_stream(talk.id))]
    state = talk.app.state(talk.id)
    assert state.plan
    return (
        {path.name: path.read_text() for path in workspace.iterdir()},
        # A step that was interrupted may be tried again; a plan is made once.
        Counter(
            event.stage for event in found if isinstance(event, StageCompleted) and event.stage in MAKING
        ),
        Counter(
            event.type for event in found if isinstance(event, PlanChanged | PlanApproved | ChangeApplied)
        ),
        state.mode,
        state.plan.plan,
        todos(talk),
    )


@pytest.mark.promise("PLAN-6")
async def test_a_plan_killed_after_any_commit_is_made_and_followed_as_if_nothing_had_been(
    tmp_path: Path, home: Path
) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    commits = Commits(tmp_path / "kept", home, workspace)
    async with conversation(workspace, SCRIPT, mode="plan") as talk:
        with commits.watching(talk.app):
            await talk.turn(TASK)
            planned = commits.count
            await approve(talk)
            await follow(talk)
        undisturbed, session_id = outcome(talk, workspace), talk.id
    assert commits.count > 25
    for number in commits.restored():
        async with conversation(workspace, SCRIPT, session=session_id) as talk:
            await eventually(lambda app=talk.app: is_idle(app, session_id))  # type: ignore[misc]
            if number < planned:
                state = talk.app.state(session_id)
                assert state.plan, number
            if not talk.app.state(session_id).plan.approved:  # type: ignore[union-attr]
                await approve(talk)
            if not all(todos(talk).values()) or not todos(talk):
                await talk.send(FOLLOW)
                await eventually(lambda talk=talk: bool(todos(talk)) and all(todos(talk).values()))  # type: ignore[misc]
                await eventually(lambda app=talk.app: is_idle(app, session_id))  # type: ignore[misc]
            assert outcome(talk, workspace) == undisturbed, number


LINES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=60)


@given(
    LINES,
    st.lists(st.tuples(LINES, st.lists(LINES, max_size=3), LINES), min_size=1, max_size=5),
)
@example(objective="", steps=[("", ["a,b", "c"], "")])
def test_a_plan_that_is_shown_and_handed_back_unchanged_is_the_same(
    objective: str, steps: list[tuple[str, list[str], str]]
) -> None:
    data = [{"description": text or "x", "files": files, "check": check} for text, files, check in steps]
    plan = clean_plan({"objective": objective, "steps": data})
    if plan.steps:
        assert plan_from_text(plan_as_text(plan)) == plan


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no step"),
        ("Objective: all", "no step"),
        ("1. a\n  check: b\n  check: c", "Line 3"),
        ("\n".join(f"{number}. x" for number in range(21)), "at most 20"),
        (f"1. {'x' * 501}", "description of step 1"),
    ],
)
def test_a_text_that_is_no_plan_is_refused_with_what_is_wrong(text: str, problem: str) -> None:
    with pytest.raises(UsageProblem, match=problem):
        plan_from_text(text)


def test_a_plan_can_be_written_by_hand() -> None:
    first = "- first,\n  and more\n  files: a.py, b.py"
    text = f"Make it work\n{first}\n* second\n  file: a,b.py\n  check: make test"
    steps = (PlanStep("first, and more", ("a.py", "b.py")), PlanStep("second", ("a,b.py",), "make test"))
    assert plan_from_text(text) == Plan("Make it work", steps)
