"""The edits of one answer: one change set, all or none, asked about once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.protocol.events import Answered, ChangeApplied, ChangePrepared, TodosChanged, ToolFinished
from handrail.protocol.ids import new_id
from handrail.protocol.values import Todo, ToolCall
from tests.tools.calls import Bench, open_bench

pytestmark = pytest.mark.anyio


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = open_bench(tmp_path)
    yield bench
    bench.close()


async def answer(bench: Bench, *wanted: tuple[str, dict[str, Any]]) -> list[ToolFinished]:
    """How the calls of one answer ended."""
    calls = tuple(ToolCall(id=new_id("call"), name=name, arguments=given) for name, given in wanted)
    bench.session.append(
        Answered(
            turn_id=bench.turn_id,
            request_id=new_id("r"),
            message_id=new_id("m"),
            model="scripted/one",
            text="",
            calls=calls,
            end="tool_calls",
        )
    )
    await bench.gate.run_all(calls, bench.turn_id)
    return [bench.finished(call.id) for call in calls]


async def read(bench: Bench, path: str, text: str) -> str:
    (bench.root / path).write_text(text)
    shown = (await bench.call("read", path=path)).content
    return shown.split("[hash: ")[1][:12]


def edit(path: str, search: str, replace: str, base_hash: str = "") -> tuple[str, dict[str, Any]]:
    given = {"path": path, "edits": [{"search": search, "replace": replace}], "base_hash": base_hash}
    return "edit", given


def sets(bench: Bench) -> list[ChangePrepared]:
    return [event for event in bench.events() if isinstance(event, ChangePrepared)]


@pytest.mark.promise("CHG-37")
async def test_edits_of_one_answer_are_one_change_set(bench: Bench) -> None:
    for name in ("a", "b"):
        await read(bench, name, "old\n")
    done = await answer(
        bench, edit("a", "old", "new"), edit("b", "old", "new"), ("write", {"path": "c", "text": "c\n"})
    )
    assert [each.status for each in done] == ["ok"] * 3
    (prepared,) = sets(bench)
    assert [file.path for file in prepared.files] == ["a", "b", "c"]
    assert [(bench.root / name).read_text() for name in "abc"] == ["new\n", "new\n", "c\n"]
    assert bench.types(7) == [
        "tool_started",
        "tool_started",
        "change_prepared",
        "change_applied",
        "tool_finished",
        "tool_finished",
        "tool_finished",
    ]


@pytest.mark.promise("CHG-37")
async def test_one_refused_edit_refuses_all_of_its_answer(bench: Bench) -> None:
    for name in ("a", "b"):
        await read(bench, name, "old\n")
    first, second, third = await answer(
        bench, edit("a", "old", "new"), edit("b", "absent", "new"), ("write", {"path": "c", "text": "c\n"})
    )
    assert second.error
    assert second.error.reason == "no_match"
    for other in (first, third):
        assert other.error
        assert other.error.reason == "other_refused"
        assert "edit b was refused (no_match)" in other.error.message
    assert [(bench.root / name).read_text() for name in "ab"] == ["old\n", "old\n"]
    assert not (bench.root / "c").exists()
    assert sets(bench) == []


async def test_edits_of_one_file_build_on_each_other_with_the_hash_that_was_shown(bench: Bench) -> None:
    shown = await read(bench, "a", "one\ntwo\n")
    done = await answer(bench, edit("a", "one", "1", shown), edit("a", "two", "2", shown))
    assert [each.status for each in done] == ["ok", "ok"]
    assert (bench.root / "a").read_text() == "1\n2\n"
    assert [bool(each.shown) for each in done] == [True, False]


async def test_what_cannot_be_read_or_is_denied_refuses_the_others_too(bench: Bench) -> None:
    for bad in (("edit", {"path": "a"}), ("write", {"path": ".env", "text": "x"}), ("write", {"text": "x"})):
        first, second = await answer(bench, ("write", {"path": "c", "text": "c\n"}), bad)
        assert first.error
        assert first.error.reason == "other_refused"
        assert second.status == "refused"
        assert not (bench.root / "c").exists()


async def test_a_call_in_between_parts_the_sets(bench: Bench) -> None:
    new = [("write", {"path": name, "text": "x\n"}) for name in "abc"]
    done = await answer(bench, new[0], ("read", {"path": "a"}), new[1], new[2])
    assert [each.status for each in done] == ["ok"] * 4
    assert [[file.path for file in each.files] for each in sets(bench)] == [["a"], ["b", "c"]]


async def test_the_user_is_asked_once_and_sees_all_of_it(tmp_path: Path) -> None:
    bench = open_bench(tmp_path, "ask")
    new = [("write", {"path": name, "text": f"text of {name}\n"}) for name in "ab"]
    bench.user.says, bench.user.note = "reject", "not now"
    for refused in await answer(bench, *new):
        assert refused.error
        assert refused.error.reason == "user_rejected"
        assert "not now" in refused.error.message
    assert not (bench.root / "a").exists()
    bench.user.says = "once"
    assert [each.status for each in await answer(bench, *new)] == ["ok", "ok"]
    assert len(bench.user.asked) == 2
    assert all("+text of a" in asked.preview and "+text of b" in asked.preview for asked in bench.user.asked)
    bench.close()


async def test_each_call_completes_its_todo(bench: Bench) -> None:
    bench.session.append(TodosChanged(todos=tuple(Todo(id=name, text=name) for name in ("t1", "t2", "t3"))))
    await answer(
        bench,
        ("write", {"path": "a", "text": "x\n", "todo": "t1"}),
        ("write", {"path": "b", "text": "x\n", "todo": "t2"}),
    )
    assert [todo.done for todo in bench.session.state.todos] == [True, True, False]


async def test_a_file_changed_meanwhile_stops_the_whole_set(tmp_path: Path) -> None:
    bench = open_bench(tmp_path, "ask")
    await read(bench, "a", "old\n")
    bench.user.while_thinking = lambda: (bench.root / "a").write_text("somebody else's\n")
    done = await answer(bench, edit("a", "old", "new"), ("write", {"path": "c", "text": "c\n"}))
    assert [each.status for each in done] == ["refused", "refused"]
    assert (bench.root / "a").read_text() == "somebody else's\n"
    assert not any(isinstance(event, ChangeApplied) for event in bench.events())
    bench.close()
