"""The task assistant: what is proposed, shown, agreed to, applied, and what never is."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from handrail.engine.router.confidence import route_outcomes
from handrail.engine.router.model_classifier import JUST_PICKED
from handrail.models.model import Capabilities
from handrail.models.scripted_model import ScriptedModel
from handrail.pipelines.tasks import MANY_ALIKE
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import (
    GateFailed,
    Recorded,
    Routed,
    RunCompleted,
    RunPaused,
    RunStarted,
    StageStarted,
    TurnFinished,
    UserMessage,
)
from handrail.protocol.values import RouterDecision, TaskFilter
from handrail.sessions.projections import RouteState
from tests.engine.conversation import Conversation, conversation, words

pytestmark = pytest.mark.anyio
SETTINGS = '[tasks]\ntime_zone = "UTC"\n'
SEED = [
    {"title": "Buy milk"},
    {"title": "Call Zoë", "date": "2031-05-02", "priority": "high"},
    {"title": "Water the plants", "date": "2026-01-05", "recurrence": "weekly", "until": "2031-12-31"},
]


@pytest.fixture(autouse=True)
def routed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_AUTO_ROUTE", "on")


def proposed(
    *operations: Any, answer: str = "", question: str = "", when: str | None = None
) -> dict[str, Any]:
    text = json.dumps({"answer": answer, "operations": operations, "question": question})
    return {"text": text} if when is None else {"when": when, "text": text}


def summarised(text: str = "") -> dict[str, Any]:
    return {"when": "Output of check", "text": json.dumps({"text": text})}


@asynccontextmanager
async def talking(
    folder: Path, *answers: dict[str, Any], seed: Any = SEED, **more: Any
) -> AsyncIterator[Conversation]:
    async with conversation(folder, answers, settings=SETTINGS, **more) as talk:
        if not talk.app.tasks.all():
            talk.app.tasks.apply(seed)
        yield talk


def titles(talk: Conversation) -> list[str]:
    return [task.title for task in talk.app.tasks.all()]


def asked(talk: Conversation) -> str:
    return talk.all(RunPaused)[-1].text


def ended(talk: Conversation) -> str:
    return talk.all(RunCompleted)[-1].text


ADD = {"op": "create", "title": "Pay rent", "scheduled_for": "2031-12-01", "time": "9am"}


@pytest.mark.promise("TASK-1")
async def test_a_request_is_shown_in_words_and_applied_on_the_users_word(tmp_path: Path) -> None:
    move = {"op": "update", "id": "2", "scheduled_for": "2031-05-09"}
    async with talking(tmp_path, proposed(ADD, move), summarised("Adds rent and moves the call.")) as talk:
        before = talk.app.tasks.as_bytes()
        turn = await talk.turn("Remind me to pay the rent on 1 december 2031, and call Zoë a week later")
        assert turn.reason == "waiting"
        assert talk.app.tasks.as_bytes() == before
        text = asked(talk)
        assert text.startswith("Adds rent and moves the call.\n")
        assert '  a  add "Pay rent" on Mon 2031-12-01 at 09:00 (event)' in text
        assert '  b  change 2 "Call Zoë": date Fri 2031-05-02 → Fri 2031-05-09' in text
        assert "1. Apply all\n2. Change nothing\n3. Leave this run" in text
        await talk.turn("1")
        assert (
            ended(talk)
            == "Added 1 task and changed 1 task. `handrail tasks undo` or `/tasks undo` undoes it."
        )
        assert titles(talk)[-1] == "Pay rent"
        assert "Call Zoë" in words(talk.requests[0])
        assert [each.applied for each in route_outcomes(talk.app.log)] == [True]
        talk.app.tasks.undo()
        assert talk.app.tasks.as_bytes() == before


@pytest.mark.promise("TASK-1")
@pytest.mark.parametrize("said", ["2", "never mind", "exit pipeline"])
async def test_without_the_users_yes_nothing_is_applied(tmp_path: Path, said: str) -> None:
    async with talking(tmp_path, proposed(ADD), summarised()) as talk:
        before = talk.app.tasks.as_bytes()
        await talk.turn("add a task to pay the rent")
        assert 'add "Pay rent"' in asked(talk)
        await talk.turn(said)
        if said != "2":
            await talk.turn("1")
        assert talk.app.tasks.as_bytes() == before
        assert talk.app.state(talk.id).paused is None


@pytest.mark.promise("TASK-1")
async def test_letters_choose_some_operations_and_no_model_reads_them(tmp_path: Path) -> None:
    others = [{"op": "complete", "id": "1"}, {"op": "delete", "id": "2"}]
    async with talking(tmp_path, proposed(ADD, *others), summarised()) as talk:
        await talk.turn("add a task for the rent, mark milk as done and delete Zoë")
        assert "This would add 1 task, complete 1 task and delete 1 task." in asked(talk)
        asks = len(talk.requests)
        await talk.turn("a and b")
        assert titles(talk) == ["Buy milk", "Call Zoë", "Water the plants", "Pay rent"]
        assert talk.app.tasks.all()[0].completed
        assert len(talk.requests) == asks


async def test_other_words_make_a_new_proposal(tmp_path: Path) -> None:
    friday = proposed({**ADD, "scheduled_for": "2031-12-05"}, when="make it friday")
    response = {"when": "It asked:", "text": '{"means": "pipeline_response", "confidence": 0.9}'}
    async with talking(tmp_path, response, friday, summarised(), proposed(ADD)) as talk:
        await talk.turn("add a task for the rent")
        assert "Mon 2031-12-01" in asked(talk)
        await talk.turn("make it friday")
        assert "Fri 2031-12-05" in asked(talk)
        await talk.turn("1")
        assert talk.app.tasks.all()[-1].scheduled_for == "2031-12-05"


@pytest.mark.promise("TASK-10")
async def test_an_invalid_operation_is_repaired_once_with_hints_then_shown_and_never_applied(
    tmp_path: Path,
) -> None:
    wrong = {"op": "complete", "id": "3"}
    again = proposed(
        {"op": "complete_occurrence", "id": "3", "date": "2031-05-05"},
        {"op": "delete", "id": "77"},
        when="use complete_occurrence",
    )
    async with talking(tmp_path, again, summarised(), proposed(wrong, {"op": "delete", "id": "77"})) as talk:
        await talk.turn("mark the plants of 5 may as done and delete task 77")
        (failed,) = talk.all(GateFailed)
        assert "use complete_occurrence" in failed.issues[0]
        text = asked(talk)
        assert '  a  complete 3 "Water the plants" for Mon 2031-05-05' in text
        assert "  -  delete: There is no task 77." in text
        await talk.turn("1")
        assert talk.app.tasks.all()[2].completed_occurrences == ("2031-05-05",)
        assert len(talk.app.tasks.all()) == 3


@pytest.mark.promise("TASK-10")
async def test_more_than_five_tasks_are_changed_by_one_bulk_operation(tmp_path: Path) -> None:
    chores = [{"title": f"Chore {number}"} for number in range(1, 7)]
    single = [{"op": "complete", "id": str(number)} for number in range(1, 7)]
    bulk = {"op": "bulk_complete", "where": {"ids": [str(number) for number in range(1, 7)]}}
    script = (proposed(*single), proposed(bulk, when=MANY_ALIKE), summarised())
    async with talking(tmp_path, *script, seed=chores) as talk:
        await talk.turn("mark all chores as done on my list")
        assert "a  complete 6 tasks: Chore 1, Chore 2" in asked(talk)
    different = [{"op": "update", "id": str(n), "title": f"Task {n}"} for n in range(1, 7)]
    (tmp_path / "other").mkdir()
    async with talking(tmp_path / "other", proposed(*different), summarised(), seed=chores) as talk:
        await talk.turn("rename all chores to tasks on my list")
        assert "f  change 6" in asked(talk)


@pytest.mark.promise("TASK-10")
async def test_of_too_many_operations_the_first_are_proposed_and_the_rest_is_told(tmp_path: Path) -> None:
    twelve = [{"op": "create", "title": f"Guest {number}"} for number in range(12)]
    async with talking(tmp_path, proposed(*twelve), summarised()) as talk:
        await talk.turn("add a task for each of the twelve guests")
        assert asked(talk).startswith("This would add 8 tasks. 4 more would be too many at once")
        await talk.turn("1")
        assert len(titles(talk)) == 3 + 8


async def test_long_notes_are_shown_in_short(tmp_path: Path) -> None:
    long = {"op": "update", "id": "1", "notes": "long " * 3_000}
    async with talking(tmp_path, proposed(long), summarised()) as talk:
        await talk.turn("add notes to my milk task")
        assert len(asked(talk)) < 600
        await talk.turn("1")
        assert len(talk.app.tasks.all()[0].notes) == 5 * 3_000 - 1


@pytest.mark.promise("TASK-10")
async def test_a_question_is_answered_and_proposes_nothing_even_if_the_model_does(tmp_path: Path) -> None:
    async with talking(tmp_path, proposed({"op": "delete", "id": "1"}, answer="Milk and Zoë.")) as talk:
        turn = await talk.turn("What is on my list?")
        assert turn.reason == "answered"
        assert ended(talk) == "Milk and Zoë."
        assert talk.all(RunPaused) == []
        assert [event.stage for event in talk.all(StageStarted)] == [
            "look",
            "propose",
            "check",
            "offer",
            "decide",
            "apply",
        ]
        assert len(talk.requests) == 1
        assert len(titles(talk)) == 3


@pytest.mark.promise("TASK-10")
@pytest.mark.parametrize(
    "message",
    ["When do I call Zoë? And add a task for the rent.", "when do i call Zoë, and add a task for the rent"],
)
async def test_a_mixed_message_gets_its_answer_and_its_proposal_in_sections(
    tmp_path: Path, message: str
) -> None:
    async with talking(tmp_path, proposed(ADD, answer="Zoë is on 2 May 2031."), summarised()) as talk:
        await talk.turn(message)
        text = asked(talk)
        assert text.startswith(
            "**Answer**\n\nZoë is on 2 May 2031.\n\n**Proposed changes**\n\nThis would add 1 task."
        )


@pytest.mark.promise("TASK-10")
async def test_a_new_task_says_what_it_is_and_what_is_missing(tmp_path: Path) -> None:
    kinds = [
        {"op": "create", "title": "Dinner", "kind": "event", "scheduled_for": "2031-01-01"},
        {"op": "create", "title": "Run", "kind": "habit"},
        {"op": "create", "title": "Learn to sail", "kind": "goal"},
        {"op": "create", "title": "Stretch", "scheduled_for": "2031-01-01", "recurrence": "daily"},
    ]
    async with talking(tmp_path, proposed(*kinds), summarised("Adds 99 things.")) as talk:
        await talk.turn("add these tasks to my list")
        text = asked(talk)
        assert text.startswith("This would add 4 tasks.")  # 99 is not proposed, so the summary is counted
        assert "(event; still missing: a time)" in text
        assert "(habit; still missing: how often it repeats)" in text
        assert "(goal; still missing: a date by which)" in text
        assert "daily until 2031-12-31 (habit)" in text


@pytest.mark.promise("TASK-10")
async def test_a_small_model_is_not_needed_for_a_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Capabilities(context_window=8_192, native_tools=False, schema_output=True, one_action=True)
    monkeypatch.setattr(ScriptedModel, "capabilities", small)
    one = {"op": "create", "id": "9", "title": "Pay rent", "scheduled_for": "", "time": "", "recurrence": " "}
    async with talking(tmp_path, {"text": json.dumps(one)}) as talk:
        await talk.turn("which high priority tasks are there?")
        assert ended(talk) == "1 task:\n\n- Call Zoë, Fri 2 May 2031, high priority (#2)"
        await talk.turn("when is the milk due?")
        assert ended(talk) == "1 task:\n\n- Buy milk (#1)"
        await talk.turn("what is on my list?")
        lines = ended(talk).splitlines()
        assert lines[0] == "3 tasks:"
        assert [line.partition(",")[0] for line in lines[2:]] == [
            "- Water the plants",
            "- Call Zoë",
            "- Buy milk (#1)",
        ]
        assert talk.requests == []
        await talk.turn('remind me of "the rent", I have to pay it')
        assert asked(talk).startswith("This would add 1 task.")
        assert len(talk.requests) == 1
        assert "Call Zoë" not in words(talk.requests[0])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    abilities = Capabilities(context_window=8_192, native_tools=False, schema_output=True, one_action=True)
    monkeypatch.setattr(ScriptedModel, "capabilities", abilities)


@pytest.mark.promise("TASK-21")
@pytest.mark.usefixtures("small")
async def test_what_the_words_say_needs_no_small_model_and_can_be_corrected(tmp_path: Path) -> None:
    many = [{"title": f"Old idea {number}"} for number in range(25)]
    async with talking(tmp_path, seed=[*SEED, *many]) as talk:
        await talk.turn("remind me to call mum on 2 may 2031 at 10")
        assert '  a  add "Call mum" on Fri 2031-05-02 at 10:00 (event)' in asked(talk)
        await talk.turn("make it 3 may 2031")
        assert '  a  add "Call mum" on Sat 2031-05-03 at 10:00 (event)' in asked(talk)
        await talk.turn("1")
        await talk.turn("mark the plants of 2031-05-05 as done on my list")
        assert '  a  complete 3 "Water the plants" for Mon 2031-05-05' in asked(talk)
        await talk.turn("1")
        assert talk.app.tasks.all()[2].completed_occurrences == ("2031-05-05",)
        await talk.turn("delete all old ideas from my list")
        assert "a  delete 25 tasks: Old idea 0, Old idea 1" in asked(talk)
        await talk.turn("1")
        assert asked(talk).startswith("This deletes 25 tasks.")
        await talk.turn("1")
        assert titles(talk) == ["Buy milk", "Call Zoë", "Water the plants", "Call mum"]
        await talk.turn("remove the yacht from my list")
        assert ended(talk) == "- delete: There is no task yacht. Use a number of the list."
        assert not any("Output of look" in words(each) for each in talk.requests)


@pytest.mark.promise("TASK-21")
@pytest.mark.usefixtures("small")
async def test_what_a_small_model_invents_is_left_out(tmp_path: Path) -> None:
    invented = {"id": "2", "title": "x", "scheduled_for": "friday", "time": "16:00", "recurrence": "weekly"}
    script = [{"text": json.dumps({"op": op, **invented})} for op in ("update", "create")]
    async with talking(tmp_path, *script) as talk:
        await talk.turn("I have talked to Zoë, mark that task as done")
        assert asked(talk).splitlines()[1].strip() == 'a  complete 2 "Call Zoë"'
        await talk.turn("2")
        await talk.turn('remind me of "the rent" tomorrow at 9:30')
        (operation,) = [line for line in asked(talk).splitlines() if line.startswith("  a")]
        assert "weekly" not in operation
        assert "16:00" not in operation


@pytest.mark.promise("TASK-10")
async def test_what_is_overdue_is_what_was_not_done_when_its_day_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Capabilities(context_window=8_192, native_tools=False, schema_output=True, one_action=True)
    monkeypatch.setattr(ScriptedModel, "capabilities", small)
    always = {"until": "2099-12-31"}
    seed = [
        {"title": "Vitamins", "date": "2020-01-01", "recurrence": "daily", **always},
        {"title": "Census", "date": "2020-01-01", "recurrence": "every 3650 days", **always},
        {"title": "Letter", "date": "2021-03-01"},
        {"title": "Sent already", "date": "2021-03-01", "completed": True},
        {"title": "Next century", "date": "2099-03-01"},
    ]
    async with talking(tmp_path, seed=seed) as talk:
        await talk.turn("what is overdue?")
        assert ended(talk) == "1 task:\n\n- Letter, Mon 1 Mar 2021 (#3)"


@pytest.mark.promise("TASK-10")
@pytest.mark.usefixtures("small")
async def test_an_occurrence_that_is_done_is_no_longer_due(tmp_path: Path) -> None:
    daily = {"title": "Stretch", "date": "2031-05-01", "recurrence": "daily", "until": "2031-05-03"}
    done = [{"op": "complete_occurrence", "id": "1", "date": f"2031-05-0{day}"} for day in (1, 3)]
    async with talking(tmp_path, seed=[daily, *done]) as talk:
        for day, answer in (
            ("01", "No task matches."),
            ("02", "1 task:\n\n- Stretch, Fri 2 May 2031, daily (#1)"),
        ):
            await talk.turn(f"which tasks are due on 2031-05-{day}?")
            assert ended(talk) == answer


@pytest.mark.promise("TASK-10")
async def test_a_request_without_an_operation_goes_back_once(tmp_path: Path) -> None:
    again = proposed(ADD, when="`operations` is empty")
    async with talking(tmp_path, again, summarised(), proposed(answer="I will remind you.")) as talk:
        await talk.turn("remind me to pay the rent")
        assert 'add "Pay rent"' in asked(talk)


@pytest.mark.promise("TASK-10")
async def test_a_model_that_claims_to_have_done_something_is_not_quoted(tmp_path: Path) -> None:
    claim = proposed({"op": "delete", "id": "77"}, answer="Deleted it for you.")
    async with talking(tmp_path, claim, {**claim, "when": "There is no task 77"}) as talk:
        await talk.turn("delete my task 77")
        assert ended(talk) == "- delete: There is no task 77. Use a number of the list."


@pytest.mark.promise("TASK-10")
async def test_who_asks_for_undo_is_told_what_it_undoes_and_how(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        await talk.turn("undo the last change of my task list")
        assert ended(talk).startswith("The last change added 3 tasks. `handrail tasks undo` or `/tasks undo`")
        assert len(titles(talk)) == 3
        assert talk.requests == []


async def test_what_the_model_cannot_tell_it_asks(tmp_path: Path) -> None:
    async with talking(tmp_path, proposed(question="Which dentist?")) as talk:
        await talk.turn("move my task for the dentist")
        assert ended(talk) == "Which dentist?"


@pytest.mark.promise("TASK-1")
async def test_many_need_a_second_word(tmp_path: Path) -> None:
    many = [{"title": f"Chore {number}"} for number in range(25)]
    wipe = proposed({"op": "bulk_delete", "where": {"text": "chore"}})
    async with talking(tmp_path, wipe, summarised(), seed=many) as talk:
        await talk.turn("delete all chores from my list")
        assert "delete 25 tasks: Chore 0, Chore 1" in asked(talk)
        await talk.turn("1")
        assert asked(talk).startswith("This deletes 25 tasks.")
        assert len(titles(talk)) == 25
        await talk.turn("1")
        assert titles(talk) == []


@pytest.mark.promise("TASK-1")
async def test_what_was_agreed_to_is_not_applied_to_a_list_that_has_changed(tmp_path: Path) -> None:
    wipe = proposed({"op": "bulk_delete", "where": {"text": "call"}})
    async with talking(tmp_path, wipe, summarised()) as talk:
        await talk.turn("delete all calls from my list")
        talk.app.tasks.apply([{"title": "Call home"}])
        await talk.turn("1")
        assert ended(talk).startswith("The task list has changed since you were asked. Nothing was applied.")
        assert len(titles(talk)) == 4


@pytest.mark.promise("TASK-6")
async def test_a_run_that_is_answered_after_a_restart_applies_once(tmp_path: Path) -> None:
    async with talking(tmp_path, proposed(ADD), summarised()) as talk:
        await talk.turn("add a task for the rent")
    last = talk.seen[-1].seq
    async with talking(tmp_path, session=talk.id, after=last) as again:
        await again.turn("1")
        assert titles(again).count("Pay rent") == 1


@pytest.mark.promise("TASK-10")
async def test_a_selection_seeds_the_filter_and_the_model_is_shown_only_that(tmp_path: Path) -> None:
    async with talking(tmp_path, proposed({"op": "complete", "id": "1"}), summarised()) as talk:
        await talk.send(SendMessage(text="these are done", selection=TaskFilter(ids=("1",))))
        await talk.until(TurnFinished)
        (routed,) = talk.all(Routed)
        assert routed.decision.where == TaskFilter(ids=("1",))
        assert [event.pipeline for event in talk.all(RunStarted)] == ["tasks"]
        shown = words(talk.requests[0])
        assert "Buy milk" in shown
        assert "Zoë" not in shown


@pytest.mark.promise("TASK-18")
async def test_tasks_that_were_just_picked_are_what_a_short_message_means(tmp_path: Path) -> None:
    unsure = {"when": JUST_PICKED, "text": json.dumps({"decision": "chat", "confidence": 0.9})}
    done = proposed({"op": "complete", "id": "1"})
    script = (done, summarised(), unsure, {"text": "Hm."}, done, summarised(), done, summarised())
    async with talking(tmp_path, *script) as talk:

        async def say(text: str, selection: TaskFilter | None = None) -> str:
            """What the first request about the message shows to a model."""
            before = len(talk.requests)
            await talk.send(SendMessage(text=text, selection=selection, proposes=True))
            await talk.until(TurnFinished)
            return words(talk.requests[before])

        await say("these are done", TaskFilter(ids=("1",)))
        shown = await say("the cart class, perhaps")
        assert f"{JUST_PICKED}\n1 Buy milk\n" in shown
        shown = await say("move them to friday")
        assert "Buy milk" in shown
        assert "Zoë" not in shown
        assert "Zoë" in await say('move "Do it now" to friday')


@pytest.mark.promise("TASK-18")
@pytest.mark.parametrize(("seconds", "known"), [(599.0, True), (601.0, False)])
def test_what_was_picked_is_remembered_for_ten_minutes(seconds: float, *, known: bool) -> None:
    state, where = RouteState(), TaskFilter(ids=("1",))
    decision = RouterDecision(decision="tasks", confidence=1.0, where=where)
    routed = Routed(turn_id="t_1", message="done", route="tasks", by="answer", decision=decision)
    message = UserMessage(message_id="m_1", turn_id="t_2", text="move them to friday")
    state.apply(Recorded("s_1", seq=1, at=1_000.0, event=routed))
    state.apply(Recorded("s_1", seq=2, at=1_000.0 + seconds, event=message))
    assert state.confirmed == (where if known else None)


@pytest.mark.promise("TASK-10")
async def test_the_router_sees_the_list_and_its_filter_is_used_also_after_a_revision(tmp_path: Path) -> None:
    decision = {"decision": "tasks", "confidence": 0.9, "where": {"title": "milk", "status": "open"}}
    routes = {"when": "The user's message:\nthe milk", "text": json.dumps(decision)}
    answer = {"when": "It asked:", "text": '{"means": "pipeline_response", "confidence": 0.9}'}
    async with talking(tmp_path, routes, answer, summarised(), proposed({"op": "complete", "id": 1})) as talk:
        await talk.turn("the milk, it is here")
        assert "Call Zoë" in words(talk.requests[0])
        assert talk.all(Routed)[0].decision.where == TaskFilter(text="milk", completed=False)
        await talk.turn("no, the other one")
        proposals = [words(each) for each in talk.requests if "Output of look" in words(each)]
        assert len(proposals) == 2
        assert not any("Zoë" in each for each in proposals)


async def test_where_nobody_can_be_asked_nothing_is_applied(tmp_path: Path) -> None:
    async with talking(tmp_path, proposed(ADD), summarised(), answerable=False) as talk:
        await talk.turn("add a task for the rent")
        assert len(titles(talk)) == 3
