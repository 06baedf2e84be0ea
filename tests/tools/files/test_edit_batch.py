"""The edits of one answer: one change set, all or none, asked about once."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.changes.apply import apply
from handrail.changes.undo import plan_undo, undo_change_set
from handrail.protocol.events import Answered, ChangeApplied, ChangePrepared, TodosChanged, ToolFinished
from handrail.protocol.ids import new_id
from handrail.protocol.values import Mode, Todo, ToolCall
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


async def test_a_refusal_is_told_to_the_call_that_it_is_about(bench: Bench) -> None:
    """Both calls are refused, for reasons that come up at different moments."""
    await read(bench, "a", "".join(f"line {number}\n" for number in range(9)))
    rest = ("write", {"path": "a", "text": "line 0\n# ... existing code ...\nline 8\n"})
    first, second = await answer(bench, rest, edit("b", "absent", "new"))
    assert first.error
    assert (first.error.reason, first.error.file) == ("elision", "a")
    assert second.error
    assert "write a was refused (elision)" in second.error.message


async def test_a_refused_batch_is_one_commit(bench: Bench) -> None:
    commits: list[int] = []
    bench.session.log.listeners.append(lambda: commits.append(1))
    done = await answer(bench, edit("a", "absent", "x"), ("write", {"path": "c", "text": "c\n"}))
    assert [each.status for each in done] == ["refused", "refused"]
    assert len(commits) == 2, "the answer, and the ends of its calls"


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


async def test_a_cancelled_batch_has_the_ends_of_its_calls_in_the_log(bench: Bench) -> None:
    """It is cancelled while a program checks the declared refactor, before anything is written."""
    await read(bench, "a.py", "x = 1\n")
    given = [{"path": path, "text": "x = 2\n", "mutation_class": "AST_REFACTOR"} for path in ("a.py", "b.py")]
    calls = [ToolCall(id=new_id("call"), name="write", arguments=each) for each in given]
    for call in calls:
        bench.wanted(call)
    with anyio.fail_after(50), anyio.CancelScope() as scope:

        def cancel() -> None:
            if bench.types(1) == ["tool_started"]:
                scope.cancel()

        bench.session.log.listeners.append(cancel)
        await bench.gate.run_all(calls, bench.turn_id)
    assert [bench.finished(call.id).status for call in calls] == ["cancelled", "cancelled"]
    assert (bench.root / "a.py").read_text() == "x = 1\n"


# Moving and editing one file


@pytest.mark.promise("CHG-62")
@pytest.mark.parametrize("edit_first", [True, False])
async def test_a_file_is_moved_and_edited_as_one_change_that_can_be_undone(
    bench: Bench, edit_first: bool
) -> None:
    await read(bench, "a", "old\n")
    (bench.root / "a").chmod(0o750)
    move = ("move", {"path": "a", "to": "d/b"})
    calls = [edit("a", "old", "new"), move] if edit_first else [move, edit("d/b", "old", "new")]
    done = await answer(bench, *calls)
    assert [each.status for each in done] == ["ok", "ok"]
    (prepared,) = sets(bench)
    assert [(file.op, file.path, file.destination) for file in prepared.files] == [("move", "a", "d/b")]
    moved = bench.root / "d" / "b"
    assert (moved.read_text(), moved.stat().st_mode & 0o777) == ("new\n", 0o750)
    assert not (bench.root / "a").exists()
    undo(bench, prepared)
    assert ((bench.root / "a").read_text(), (bench.root / "a").stat().st_mode & 0o777) == ("old\n", 0o750)
    assert not moved.exists()


@pytest.mark.promise("CHG-62")
async def test_the_user_sees_the_rename_with_what_changes_in_it(tmp_path: Path) -> None:
    bench = open_bench(tmp_path, mode="ask")
    await read(bench, "a", "old\nsame\n")
    await answer(bench, ("move", {"path": "a", "to": "b"}), edit("b", "old", "new"))
    (asked,) = bench.user.asked
    assert asked.preview.startswith("move a to b\n--- a\n+++ b\n")
    assert "-old\n+new\n same" in asked.preview
    bench.close()


@pytest.mark.promise("CHG-62")
async def test_neither_is_done_if_the_other_is_refused_or_the_file_has_changed(bench: Bench) -> None:
    await read(bench, "a", "old\n")
    move = ("move", {"path": "a", "to": "b"})
    for calls in ([move, edit("b", "absent", "new")], [edit("a", "absent", "new"), move]):
        done = await answer(bench, *calls)
        assert all(each.error for each in done)
    (bench.root / "a").write_text("theirs\n")
    done = await answer(bench, move, edit("b", "theirs", "new"))
    assert {each.error.reason for each in done if each.error} >= {"stale_file"}
    assert ((bench.root / "a").read_text(), (bench.root / "b").exists()) == ("theirs\n", False)
    assert not sets(bench)


def undo(bench: Bench, change: ChangePrepared) -> None:
    plan = plan_undo(bench.session.log, bench.workspace, [change])
    change_set = undo_change_set(plan)
    assert change_set
    apply(bench.session, bench.workspace, change_set)


# Names that differ only in case


@pytest.mark.promise("CHG-63")
@pytest.mark.parametrize("mode", ["ask", "edit", "auto"])
@pytest.mark.parametrize(
    ("there", "new"),
    [
        ("Readme.md", "README.md"),
        ("src/a.py", "src/A.py"),
        ("src/a.py", "SRC/b.py"),
        ("src/deep/a.py", "src/Deep/er/b.py"),
        ("stra\u00dfe", "STRASSE"),
        ("\u00e9t\u00e9", "\u00c9t\u00e9"),
        ("\u00e9t\u00e9", "E\u0301te\u0301"),
    ],
)
async def test_no_file_is_created_that_differs_only_in_case(
    tmp_path: Path, mode: Mode, there: str, new: str
) -> None:
    bench = open_bench(tmp_path, mode=mode)
    (bench.root / there).parent.mkdir(parents=True, exist_ok=True)
    (bench.root / there).write_text("there\n")
    await read(bench, "other", "other\n")
    wanted: list[tuple[str, dict[str, Any]]] = [
        ("write", {"path": new, "text": "new\n"}),
        ("edit", {"path": new, "edits": [{"search": "", "replace": "new\n"}]}),
        ("apply_diff", {"path": new, "diff": f"--- /dev/null\n+++ b/{new}\n@@ -0,0 +1 @@\n+new\n"}),
        ("move", {"path": "other", "to": new}),
    ]
    for call in wanted:
        (done,) = await answer(bench, call)
        assert done.error
        assert (done.error.reason, (bench.root / new).exists()) == ("invalid_path", False), call
    assert not bench.user.asked
    bench.close()


@pytest.mark.promise("CHG-63")
async def test_a_file_can_be_renamed_to_another_case_and_edited_with_it(bench: Bench) -> None:
    await read(bench, "Readme.md", "old\n")
    move = ("move", {"path": "Readme.md", "to": "README.md"})
    done = await answer(bench, move, edit("README.md", "old", "new"))
    assert [each.status for each in done] == ["ok", "ok"], done
    assert (os.listdir(bench.root), (bench.root / "README.md").read_text()) == (["README.md"], "new\n")
    (change,) = sets(bench)
    undo(bench, change)
    assert (os.listdir(bench.root), (bench.root / "Readme.md").read_text()) == (["Readme.md"], "old\n")


@pytest.mark.promise("CHG-63")
async def test_a_rename_excuses_only_the_name_that_goes(bench: Bench) -> None:
    (bench.root / "README.MD").write_text("a third\n")
    await read(bench, "Readme.md", "old\n")
    (done,) = await answer(bench, ("move", {"path": "Readme.md", "to": "README.md"}))
    assert done.error
    (bench.root / "README.MD").unlink()
    move = ("move", {"path": "Readme.md", "to": "docs.md"})
    done = (await answer(bench, ("write", {"path": "readme.md", "text": "x\n"}), move))[0]
    assert done.status == "ok"
    assert sorted(os.listdir(bench.root)) == ["docs.md", "readme.md"]


# replace_all and empty files through the gate


@pytest.mark.promise("CHG-60")
async def test_how_many_places_are_replaced_is_shown(tmp_path: Path) -> None:
    bench = open_bench(tmp_path, mode="ask")
    await read(bench, "a", "x = 1\ny\nx = 1\n")
    edits = [{"search": "x = 1", "replace": "x = 2", "replace_all": True}]
    (done,) = await answer(bench, ("edit", {"path": "a", "edits": edits}))
    assert bench.user.asked[0].preview.startswith("2 places replaced\n--- a")
    assert done.summary.startswith("+2 -2, 2 places")
    assert (bench.root / "a").read_text() == "x = 2\ny\nx = 2\n"
    bench.close()


@pytest.mark.promise("CHG-61")
async def test_an_empty_search_creates_a_missing_file_and_fills_an_empty_one(bench: Bench) -> None:
    for name in ("missing", "empty"):
        if name == "empty":
            await read(bench, name, "")
        (done,) = await answer(bench, edit(name, "", "new\n"))
        assert done.status == "ok", done.content
        assert (bench.root / name).read_text() == "new\n"
    (done,) = await answer(bench, edit("empty", "", "more\n"))
    assert done.error
    assert (done.error.reason, (bench.root / "empty").read_text()) == ("file_exists", "new\n")
    (bench.root / "unseen").write_text("")
    (done,) = await answer(bench, edit("unseen", "", "new\n"))
    assert done.error
    assert done.error.reason == "no_hash"
