import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from handrail.protocol.events import ModeSet, TodosChanged, ToolFinished, ToolStarted, UserMessage
from handrail.protocol.ids import new_id
from handrail.protocol.values import FileSeen, Todo, ToolCall, to_json
from tests.tools.calls import Bench

MakeBench = Callable[..., Bench]
pytestmark = pytest.mark.anyio


def refusal(finished: ToolFinished) -> str:
    """The reason of a refusal, after a look that model, log and screen see the same."""
    assert finished.error is not None
    assert finished.status == "refused"
    told = json.loads(finished.content)
    assert told["type"] == "tool_error"
    assert told["reason"] == finished.error.reason
    assert told["message"] == finished.error.message
    return str(finished.error.reason)


# Arguments


async def test_an_unknown_tool_is_refused_naming_those_there_are(bench: Bench) -> None:
    finished = await bench.call("delete_everything", path="x")
    assert refusal(finished) == "unknown_tool"
    assert "read, list, glob" in finished.content


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "`path` is missing"),
        ({"path": "a", "colour": "red"}, "`colour` is not an argument; the arguments are: path, start, end"),
        ({"path": "a", "start": "first"}, "`start`"),
        ({"path": "a\0b"}, "NUL"),
        ({"path": 7}, "`path`"),
    ],
)
async def test_wrong_arguments_are_refused_saying_what_is_wrong(
    bench: Bench, arguments: dict[str, object], words: str
) -> None:
    finished = await bench.call("read", **arguments)
    assert refusal(finished) == "invalid_arguments"
    assert words in finished.content


async def test_arguments_that_could_not_be_read_are_never_run(bench: Bench) -> None:
    (bench.root / "a").write_text("x")
    finished = await bench.run(
        ToolCall(id="c_1", name="read", arguments={"path": "a"}, problem="JSON ends in the middle")
    )
    assert refusal(finished) == "invalid_arguments"
    assert "JSON ends in the middle" in finished.content


async def test_a_null_is_an_argument_left_out(bench: Bench) -> None:
    (bench.root / "a").write_text("x\n")
    assert (await bench.call("read", path="a", start=None, end="1")).status == "ok"


# The order


@pytest.mark.promise("TOOL-1")
async def test_the_start_is_committed_before_the_effect_and_the_end_with_its_facts(bench: Bench) -> None:
    finished = await bench.call("write", path="a.txt", text="one\n")
    assert finished.status == "ok"
    assert bench.types(4) == ["tool_started", "change_prepared", "change_applied", "tool_finished"]
    rows = bench.session.log.read(bench.session.stream)
    assert rows[-1].at == rows[-2].at


async def test_what_was_started_is_known_when_the_command_runs(bench: Bench) -> None:
    """The command waits for somebody who looked into the log, as another process would."""
    command = "touch begun; until [ -e seen ]; do sleep 0.01; done"
    call = bench.wanted(ToolCall(id="c_1", name="run", arguments={"command": command}))
    with anyio.fail_after(50):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.gate.run, call, bench.turn_id)
            while not (bench.root / "begun").exists():
                await anyio.sleep(0.01)
            with closing(sqlite3.connect(bench.session.log.folder / "log.db")) as other:
                types = [name for (name,) in other.execute("select type from events")]
            (bench.root / "seen").touch()
    assert types[-1] == "tool_started"
    assert bench.finished("c_1").status == "ok"


async def test_a_refusal_is_recorded_without_a_start(make_bench: MakeBench) -> None:
    bench = make_bench("explore")
    finished = await bench.call("write", path="a", text="x")
    assert refusal(finished) == "mode_forbids"
    assert bench.types(2) == ["answered", "tool_finished"]
    assert not (bench.root / "a").exists()


async def test_a_refused_edit_is_refused_before_it_starts(bench: Bench) -> None:
    (bench.root / "a").write_text("x")
    assert refusal(await bench.call("edit", path="a", edits=[{"search": "x", "replace": "y"}])) == "no_hash"
    assert bench.types(2) == ["answered", "tool_finished"]


# Asking


async def test_an_approval_shows_the_diff_and_why(make_bench: MakeBench) -> None:
    bench = make_bench("ask")
    (bench.root / "a").write_text("old\n")
    await bench.call("read", path="a")
    finished = await bench.call("edit", path="./a", edits=[{"search": "old", "replace": "new"}])
    (asked,) = bench.user.asked
    assert finished.status == "ok"
    assert (asked.tool, asked.summary) == ("edit", "a")
    assert "-old\n+new" in asked.preview
    assert "mode ask" in asked.why
    assert bench.session.state.always == []


@pytest.mark.promise("TOOL-2")
async def test_a_rejected_edit_leaves_the_file_untouched_and_tells_the_model_why(
    make_bench: MakeBench,
) -> None:
    bench = make_bench("ask")
    bench.user.says, bench.user.note = "reject", "use the other file"
    file = bench.root / "a"
    file.write_text("old\n")
    before = file.stat()
    await bench.call("read", path="a")
    finished = await bench.call("edit", path="a", edits=[{"search": "old", "replace": "new"}])
    assert refusal(finished) == "user_rejected"
    assert "use the other file" in finished.content
    assert file.read_text() == "old\n"
    after = file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize(("says", "reason"), [("nobody", "nobody_to_ask"), ("cancelled", "cancelled")])
async def test_no_answer_is_no_permission(make_bench: MakeBench, says: str, reason: str) -> None:
    bench = make_bench("ask")
    bench.user.says = says  # type: ignore[assignment]
    assert refusal(await bench.call("run", command="touch x")) == reason
    assert not (bench.root / "x").exists()


async def test_always_holds_for_the_same_thing_only(make_bench: MakeBench) -> None:
    bench = make_bench("ask")
    bench.user.says = "always"
    await bench.call("run", command="touch a")
    await bench.call("run", command="touch a")
    await bench.call("run", command="touch b")
    assert [asked.summary for asked in bench.user.asked] == ["touch a", "touch b"]
    bench.session.append(ModeSet(mode="explore"))
    assert refusal(await bench.call("run", command="touch a")) == "mode_forbids"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("echo " + "x" * 300, "echo " + "x" * 301),
        ("echo a\necho b", "echo a echo b"),
        ("echo  a", "echo a"),
        ("echo \x1b[1m", "echo"),
    ],
)
async def test_always_for_a_command_that_is_shown_shortened_holds_for_all_of_it(
    make_bench: MakeBench, one: str, other: str
) -> None:
    bench = make_bench("ask")
    bench.user.says = "always"
    for command in (one, other, one, other):
        await bench.call("run", command=command)
    assert len(bench.user.asked) == 2
    assert "\n" not in bench.user.asked[0].summary


async def test_always_for_a_command_holds_for_no_other_that_looks_the_same_in_a_line(
    make_bench: MakeBench,
) -> None:
    """Both are shown as the same line: the eight digits of their hashes at its end are equal."""
    long = "pytest -q " + "x" * 150 + "\n"
    one, other = f"{long}# run 152048", f"{long}# also 17802"
    bench = make_bench("ask")
    bench.user.says = "always"
    for command in (one, other, one):
        await bench.call("run", command=command)
    first, second = bench.user.asked
    assert first.summary == second.summary
    assert first.key != second.key
    assert bench.session.state.always == [first.key, second.key]


async def test_always_for_a_command_does_not_bring_the_network(make_bench: MakeBench) -> None:
    bench = make_bench("ask")
    bench.user.says = "always"
    await bench.call("run", command="with network: true")
    await bench.call("run", command="true", network=True)
    assert len(bench.user.asked) == 2


async def test_always_for_an_edit_holds_for_the_file_and_for_a_command_however_long_it_may_take(
    make_bench: MakeBench,
) -> None:
    bench = make_bench("ask")
    bench.user.says = "always"
    await bench.call("write", path="a", text="one\n")
    await bench.call("write", path="./a", text="two\n")
    await bench.call("run", command="true")
    await bench.call("run", command="true", timeout=5, todo="t1")
    assert [asked.tool for asked in bench.user.asked] == ["write", "run"]
    await bench.call("write", path="b", text="one\n")
    assert len(bench.user.asked) == 3


@pytest.mark.promise("TOOL-3")
async def test_a_file_that_changes_while_the_user_thinks_is_not_overwritten(make_bench: MakeBench) -> None:
    bench = make_bench("ask")
    file = bench.root / "a"
    file.write_text("old\n")
    await bench.call("read", path="a")
    bench.user.while_thinking = lambda: file.write_text("mine\n")
    finished = await bench.call("edit", path="a", edits=[{"search": "old", "replace": "new"}])
    assert refusal(finished) == "stale_file"
    assert file.read_text() == "mine\n"


@pytest.mark.promise("TOOL-3")
async def test_an_edit_that_would_now_do_something_else_than_was_shown_is_not_done(
    make_bench: MakeBench,
) -> None:
    """The file changes and the model is shown it again, so that nothing but the preview is out of date."""
    bench = make_bench("ask")
    file = bench.root / "a"
    file.write_text("old\n")
    await bench.call("read", path="a")

    def change() -> None:
        file.write_text("old\nmine\n")
        sha256 = bench.workspace.sha256("a") or ""
        seen = FileSeen(path="a", sha256=sha256, how="user")
        bench.session.append(UserMessage(message_id="m", turn_id="t_1", text="see @a", files=(seen,)))

    bench.user.while_thinking = change
    finished = await bench.call("edit", path="a", edits=[{"search": "old", "replace": "new"}])
    assert refusal(finished) == "stale_file"
    assert file.read_text() == "old\nmine\n"


@pytest.mark.promise("TOOL-3")
async def test_a_link_that_leads_to_another_folder_after_the_question_is_not_used(
    make_bench: MakeBench,
) -> None:
    bench = make_bench("ask")
    folders = [bench.root / "one", bench.root / "two"]
    for folder in folders:
        folder.mkdir()
    door = bench.root / "door"
    door.symlink_to("one")
    bench.user.while_thinking = lambda: turn(door, "two")
    assert refusal(await bench.call("write", path="door/file", text="x")) == "stale_file"
    assert [list(folder.iterdir()) for folder in folders] == [[], []]


def turn(link: Path, target: str) -> None:
    link.unlink()
    link.symlink_to(target)


@pytest.mark.promise("TOOL-3")
async def test_what_was_decided_about_is_what_is_used_when_a_link_turns_in_between(
    bench: Bench, tmp_path: Path
) -> None:
    """The links turn when the start of a call is in the log, the last moment before its effect."""
    (bench.root / "src").mkdir()
    (bench.root / ".git").mkdir()
    (bench.root / "harmless").write_text("harmless\n")
    (tmp_path / "secret").write_text("secret\n")
    links: dict[str, tuple[str, str]] = {
        "door": ("src", ".git"),
        "note": ("harmless", str(tmp_path / "secret")),
    }
    for name, (before, _) in links.items():
        (bench.root / name).symlink_to(before)
    now = ""

    def turn_links() -> None:
        if bench.types(1) == ["tool_started"]:
            turn(bench.root / now, links[now][1])

    bench.session.log.listeners.append(turn_links)
    now = "door"
    assert (await bench.call("write", path="door/hook", text="x")).status == "ok"
    now = "note"
    assert (await bench.call("read", path="note")).content.endswith("1\tharmless")
    assert list((bench.root / ".git").iterdir()) == []
    assert (bench.root / "src" / "hook").exists()


@pytest.mark.parametrize("tool", ["list", "glob", "search"])
async def test_a_folder_that_turns_into_a_link_after_the_decision_is_not_looked_into(
    bench: Bench, tmp_path: Path, tool: str
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "name").write_text("needle")
    (bench.root / "src").mkdir()

    def swap() -> None:
        if bench.types(1) == ["tool_started"]:
            (bench.root / "src").rmdir()
            (bench.root / "src").symlink_to(tmp_path / "outside")

    bench.session.log.listeners.append(swap)
    arguments = {} if tool == "list" else {"pattern": "*" if tool == "glob" else "needle"}
    finished = await bench.call(tool, path="src", **arguments)
    assert refusal(finished) == "stale_file"
    assert "name" not in finished.content


async def test_a_path_that_leads_elsewhere_after_the_question_is_not_used(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    bench = make_bench("ask")
    outside = tmp_path / "outside"
    outside.mkdir()

    def swap() -> None:
        (bench.root / "new").symlink_to(outside)

    bench.user.while_thinking = swap
    finished = await bench.call("write", path="new/file", text="x")
    assert refusal(finished) == "outside_workspace"
    assert list(outside.iterdir()) == []


async def test_a_mode_switched_while_the_user_thinks_counts(make_bench: MakeBench) -> None:
    bench = make_bench("ask")
    bench.user.while_thinking = lambda: bench.session.append(ModeSet(mode="explore"))
    assert refusal(await bench.call("run", command="touch x")) == "mode_forbids"


async def test_a_mode_switched_while_a_change_is_checked_counts(bench: Bench) -> None:
    """A declared refactor is checked by a program, after the start of the call is in the log."""
    (bench.root / "a.py").write_text("x = 1\n")
    await bench.call("read", path="a.py")
    arguments = {"path": "a.py", "text": "x = 2\n", "mutation_class": "AST_REFACTOR"}
    call = bench.wanted(ToolCall(id=new_id("call"), name="write", arguments=arguments))
    begun = anyio.Event()

    def look() -> None:
        if bench.types(1) == ["tool_started"]:
            begun.set()

    bench.session.log.listeners.append(look)

    async def switch() -> None:
        await begun.wait()
        bench.session.append(ModeSet(mode="explore"))

    with anyio.fail_after(50):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(switch)
            tasks.start_soon(bench.gate.run, call, bench.turn_id)
    assert refusal(bench.finished(call.id)) == "mode_forbids"
    assert (bench.root / "a.py").read_text() == "x = 1\n"


async def test_with_nobody_to_ask_the_refusal_names_the_flag(make_bench: MakeBench) -> None:
    bench = make_bench("ask", answerable=False)
    finished = await bench.call("write", path="a", text="x")
    assert refusal(finished) == "nobody_to_ask"
    assert "--mode edit" in finished.content
    assert bench.user.asked == []


async def test_allowed_commands_run_unasked_in_auto(make_bench: MakeBench) -> None:
    bench = make_bench("auto", allow=("echo",))
    assert (await bench.call("run", command="echo hi")).status == "ok"
    assert bench.user.asked == []
    assert (await bench.call("run", command="echo hi; echo ho")).content.endswith("hi\nho")
    assert bench.user.asked == []
    await bench.call("run", command="echo hi; echo $(echo ho)")
    assert [asked.why for asked in bench.user.asked] == ["the command has a command substitution"]


@pytest.mark.promise("CHG-23")
async def test_an_edit_of_a_file_with_several_names_is_asked_about_in_every_mode(
    make_bench: MakeBench,
) -> None:
    bench = make_bench("auto")
    (bench.root / "f").write_text("old\n")
    (bench.root / "g").hardlink_to(bench.root / "f")
    await bench.call("read", path="f")
    finished = await bench.call("edit", path="f", edits=[{"search": "old", "replace": "new"}])
    assert finished.status == "ok"
    assert "2 names" in bench.user.asked[-1].why
    assert (bench.root / "f").read_text() == "new\n"
    assert (bench.root / "g").read_text() == "old\n"


@pytest.mark.parametrize("path", ["../out", ".git/config", ".handrail/config.toml", ".env", "door/x"])
async def test_protected_places_are_not_written_whatever_the_mode(
    bench: Bench, tmp_path: Path, path: str
) -> None:
    (bench.root / "door").symlink_to(tmp_path)
    assert refusal(await bench.call("write", path=path, text="x")) in ("outside_workspace", "protected_path")
    assert bench.user.asked == []
    assert not (bench.root / path).exists()


async def test_a_refused_edit_of_a_secret_says_nothing_of_its_content(bench: Bench) -> None:
    (bench.root / ".env").write_text("KEY=hunter2\n")
    finished = await bench.call("edit", path=".env", edits=[{"search": "KEY=hunter3", "replace": "x"}])
    assert "hunter2" not in to_json(finished)


# Ends


async def test_an_error_of_the_system_is_told_in_words(bench: Bench) -> None:
    bench.root.rmdir()
    finished = await bench.call("write", path="file", text="x")
    assert finished.status == "failed"
    assert finished.content == "write failed: No such file or directory."
    assert "change_prepared" not in bench.types(3)


async def test_a_cancelled_call_has_its_end_in_the_log(bench: Bench) -> None:
    arguments = {"command": "echo begun; sleep 60"}
    call = bench.wanted(ToolCall(id=new_id("call"), name="run", arguments=arguments))
    with anyio.fail_after(50):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.gate.run, call, bench.turn_id)
            while "begun" not in bench.session.live.text(call.id, "output"):
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    finished = bench.finished(call.id)
    assert finished.status == "cancelled"
    assert "begun" in finished.content
    assert bench.session.live.text(call.id, "output") == ""


async def test_cancelling_while_the_user_is_asked_leaves_the_call_open(make_bench: MakeBench) -> None:
    bench = make_bench("ask")
    asking = anyio.Event()

    async def never(asked: object) -> None:
        asking.set()
        await anyio.sleep_forever()

    bench.user.approval = never  # type: ignore[method-assign, assignment]
    call = bench.wanted(ToolCall(id=new_id("call"), name="run", arguments={"command": "true"}))
    with anyio.fail_after(50):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.gate.run, call, bench.turn_id)
            await asking.wait()
            tasks.cancel_scope.cancel()
    assert bench.types(1) == ["answered"]


async def test_the_whole_output_is_kept_where_the_model_sees_a_part(bench: Bench) -> None:
    finished = await bench.call("run", command="seq 1 5000")
    whole = "".join(f"{n}\n" for n in range(1, 5001)).encode()
    assert finished.output == hashlib.sha256(whole).hexdigest()
    assert bench.session.log.blob(finished.output) == whole
    assert len(finished.content) < 3_300
    assert "left out" in finished.content
    assert finished.content.endswith("5000")


# Todos


async def test_a_todo_is_completed_by_the_success_of_the_call_that_names_it(bench: Bench) -> None:
    bench.session.append(TodosChanged(todos=(Todo(id="t1", text="a"), Todo(id="t2", text="b"))))
    await bench.call("run", command="false", todo="t1")
    assert not any(todo.done for todo in bench.session.state.todos)
    await bench.call("run", command="true", todo="t1")
    await bench.call("write", path="a", text="x", todo="t2")
    assert all(todo.done for todo in bench.session.state.todos)
    assert bench.types(3) == ["change_applied", "todo_completed", "tool_finished"]


async def test_a_todo_that_is_not_there_is_said_and_changes_nothing(bench: Bench) -> None:
    finished = await bench.call("run", command="true", todo="t9")
    assert finished.status == "ok"
    assert "no open todo has the id t9" in finished.content


async def test_what_the_call_is_about_is_in_its_start(bench: Bench) -> None:
    (bench.root / "src").mkdir()
    (bench.root / "src" / "a.py").write_text("x = 1\n")
    await bench.call("read", path="src/../src/a.py")
    started = next(event for event in bench.events() if isinstance(event, ToolStarted))
    assert (started.summary, started.kind) == ("src/a.py", "safe")
