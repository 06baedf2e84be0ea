from collections.abc import Callable

import pytest

from handrail.protocol.events import TodoCompleted
from tests.tools.calls import Bench

pytestmark = pytest.mark.anyio


async def test_todos_get_ids_and_are_kept(bench: Bench) -> None:
    finished = await bench.call("todos", todos=[{"text": "one"}, {"text": "two", "id": "second"}])
    assert finished.content == "t1: one\nsecond: two"
    assert [todo.id for todo in bench.session.state.todos] == ["t1", "second"]


@pytest.mark.promise("TOOL-10")
async def test_the_model_can_neither_tick_nor_drop_nor_reopen_a_todo(bench: Bench) -> None:
    await bench.call("todos", todos=[{"text": "one"}, {"text": "two"}])
    bench.session.append(TodoCompleted(todo_id="t1", by="user"))
    assert (await bench.call("todos", todos=[{"text": "x", "done": True}])).status == "refused"
    await bench.call("todos", todos=[{"id": "t1", "text": "one, reworded"}, {"text": "three"}])
    told = [(todo.id, todo.text, todo.done) for todo in bench.session.state.todos]
    assert told == [("t1", "one, reworded", True), ("t2", "two", False), ("t3", "three", False)]


async def test_the_same_list_given_twice_is_the_same_list(bench: Bench) -> None:
    for _ in range(2):
        await bench.call("todos", todos=[{"text": "one"}, {"text": "two"}])
    assert [todo.text for todo in bench.session.state.todos] == ["one", "two"]


async def test_too_many_todos_are_refused(bench: Bench) -> None:
    finished = await bench.call("todos", todos=[{"text": f"step {n}"} for n in range(51)])
    assert finished.status == "refused"
    assert bench.session.state.todos == []


async def test_a_question_brings_back_the_users_answer(bench: Bench) -> None:
    finished = await bench.call("ask_user", question="Which colour?", options=["blue", "red"])
    assert finished.content == "blue"
    assert bench.user.questions[0].options == ("blue", "red")
    assert bench.types(4) == ["question_asked", "question_answered", "tool_started", "tool_finished"]


async def test_with_nobody_there_a_question_is_refused(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench("auto", answerable=False)
    finished = await bench.call("ask_user", question="Which colour?")
    assert finished.error is not None
    assert finished.error.reason == "nobody_to_ask"
    assert bench.user.questions == []
