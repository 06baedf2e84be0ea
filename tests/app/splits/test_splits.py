"""Splits end to end: the sequential result, conflicts, kills, budgets, what a subtask may not do."""

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from handrail.app.splits.plans import (
    SplitOptions,
    change_plan,
    keep_plan,
    known_plan,
    plan_checklist,
    plan_task,
)
from handrail.app.splits.run import read_split, run_split, tell_split
from handrail.app.splits.settle import settle_conflict
from handrail.interfaces.cli.render.split_lines import CHECKING, progress_lines, report_lines
from handrail.interfaces.cli.render.styles import plain
from handrail.protocol.errors import StorageFull, UsageProblem
from handrail.protocol.events import ChangeApplied, SideAnswered, SideAsked, SubtaskDone, SubtaskStarted
from handrail.protocol.subtask import Settlement, SplitCommand, SplitLimits
from tests.app.splits.splitting import (
    CHECKS,
    ENDS,
    answer,
    contents,
    edited,
    events_of,
    kinds,
    module,
    plan_of,
    project,
    resumed,
    split,
    subtask,
)
from tests.engine.commits import Commits
from tests.engine.conversation import DEADLINE, call, conversation, script_file
from tests.pipelines.build.builds import COPIES
from tests.storage.backends import sqlite_of
from tests.verification.projects import write

pytestmark = [pytest.mark.anyio]
SIXTY = [
    answer(f"### m{number:02}.py", edited(f"m{number:02}.py", "TEXT = 'same'", f"TEXT = 'new {number}'"))
    for number in range(60)
]


@pytest.mark.promise("SPLIT-1")
async def test_map_over_60_files_equals_the_sequential_result(tmp_path: Path) -> None:
    results = {}
    for strategy in ("sequential", "graph"):
        root = project(tmp_path / strategy, 60)
        async with conversation(root, SIXTY, settings=CHECKS) as talk:
            limits = SplitLimits(parallel=1 if strategy == "sequential" else 8)
            options = SplitOptions(("*.py",), "fine", strategy, limits)
            session_id = await plan_task(talk.app, "Change TEXT.", options)
            report = await run_split(talk.app, session_id)
            assert (report.status, report.counts["done"]) == (ENDS, 60)
            if not COPIES:
                report = await resumed(talk.app, session_id, "accept")
            assert report.tokens == 60 * 120
            asked = [each.key for each in kinds(events_of(talk.app, session_id), SideAsked)]
            assert len(asked) == len(set(asked)) == 60
            applied = kinds(events_of(talk.app, session_id), ChangeApplied)
            assert len(applied) == 1
        results[strategy] = contents(root)
    assert results["graph"] == results["sequential"]
    assert all(b"new" in data for data in results["graph"].values())


OVERLAPS = [
    part
    for number in range(6)
    for part in (
        answer(f"Do a{number}.", edited(f"m{number:02}.py", f"ONE = {number}", "ONE = 'a'")),
        answer(
            f"Do b{number}.",
            {
                "path": f"m{number:02}.py",
                "edits": [
                    {"search": f"ONE = {number}", "replace": "ONE = 'b'"},
                    {"search": f"TWO = {number}", "replace": "TWO = 'b'"},
                ],
            },
        ),
    )
]


@pytest.mark.promise("SPLIT-2")
async def test_six_overlaps_are_six_conflicts_none_lost_and_none_applied(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 10)
    before = contents(root)
    both = [subtask(f"{side}{number}", f"m{number:02}.py") for number in range(6) for side in "ab"]
    alone = [subtask(f"c{number}", f"m{number:02}.py") for number in range(6, 10)]
    simple = [answer(f"Do c{n}.", edited(f"m{n:02}.py", "END = 0", "END = 1")) for n in range(6, 10)]
    async with conversation(root, [*OVERLAPS, *simple], settings=CHECKS) as talk:
        report = await split(talk.app, plan_of(*both, *alone))
        assert (report.status, report.exit_status) == ("paused: conflicts", 6)
        assert report.detail.startswith("6 conflicts in m00.py, ")
        assert contents(root) == before
        assert sorted(each.path for each in report.conflicts) == [f"m{number:02}.py" for number in range(6)]
        for number, each in enumerate(sorted(report.conflicts, key=lambda each: each.path)):
            assert (each.base, each.ours, each.theirs) == (f"ONE = {number}\n", "ONE = 'a'\n", "ONE = 'b'\n")
            assert (each.ours_by, each.theirs_by) == ((f"a{number}",), f"b{number}")
        hows: tuple[Settlement, ...] = ("ours", "theirs", "both", "text", "ours", "ours")
        for each, how in zip(report.conflicts, hows, strict=True):
            text = "ONE = 'text'\n" if how == "text" else None
            report = await settle_conflict(talk.app, report.session_id, each.id, how, text)
        assert report.conflicts == ()
        said = "\n".join(plain(row) for row in report_lines(report, 79))
        assert "All conflicts are settled." in said
        assert "Nothing was applied" not in said
        for status, told in (("running", True), ("paused: conflicts", False)):
            rows = progress_lines(replace(report, status=status, held=True), 79, 20)
            assert (CHECKING in [plain(row) for row in rows]) == told
        report = await resumed(talk.app, report.session_id)
        if not COPIES:
            report = await resumed(talk.app, report.session_id, "accept")
        assert report.status == "complete"
    merged = {path: data.decode() for path, data in contents(root).items()}
    lines = [merged[f"m{number:02}.py"].split("\n\n")[1] for number in range(6)]
    assert lines == [
        "ONE = 'a'",
        "ONE = 'b'",
        "ONE = 'a'\nONE = 'b'",
        "ONE = 'text'",
        "ONE = 'a'",
        "ONE = 'a'",
    ]
    assert all("TWO = 'b'" in merged[f"m{number:02}.py"] for number in range(6))  # not overlapping: kept
    assert all("END = 1" in merged[f"m{number:02}.py"] for number in range(6, 10))


@pytest.mark.promise("SPLIT-2")
async def test_what_the_user_changed_meanwhile_is_merged_or_a_conflict(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 2)
    script = [answer(f"Do a{n}.", edited(f"m{n:02}.py", f"ONE = {n}", "ONE = 'a'")) for n in range(2)]
    async with conversation(root, script, settings=CHECKS) as talk:
        app = talk.app
        session_id = keep_plan(app, plan_of(subtask("a0", "m00.py"), subtask("a1", "m01.py")))

        def meddle(recorded: object) -> None:
            if isinstance(getattr(recorded, "event", None), SubtaskStarted):
                (root / "m00.py").write_text(module(0).replace("END = 0", "END = 'mine'"))
                (root / "m01.py").write_text(module(1).replace("ONE = 1", "ONE = 'mine'"))

        report = await run_split(app, session_id, saw=meddle)
        (conflict,) = report.conflicts
        assert (conflict.path, conflict.ours_by, conflict.ours) == ("m01.py", (), "ONE = 'mine'\n")
        await settle_conflict(app, session_id, conflict.id, "ours")
        report = await resumed(app, session_id)
        if not COPIES:
            await resumed(app, session_id, "accept")
    assert "END = 'mine'" in (root / "m00.py").read_text()
    assert "ONE = 'a'" in (root / "m00.py").read_text()
    assert (root / "m01.py").read_text() == module(1).replace("ONE = 1", "ONE = 'mine'")


@pytest.mark.promise("SPLIT-2")
@pytest.mark.parametrize("path", ["m00.py", "plan.md"])
async def test_what_the_user_saves_while_results_are_merged_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Files that are read again after the merge would take the user's text for the base of the change."""
    root = project(tmp_path / "work", 1)
    (root / "plan.md").write_text("- [ ] End m00.py\n")
    mine = "# mine\n" + (root / path).read_text()
    script = [answer("End m00.py", edited("m00.py", "END = 0", "END = 1"))]
    async with conversation(root, script, settings=CHECKS) as talk:
        session_id, stored = plan_checklist(talk.app, "plan.md", SplitOptions()), type(talk.app.log).blob

        def saves(log: object, sha256: str) -> bytes | None:
            if read_split(talk.app, session_id).counts["done"]:  # so it is merged now
                (root / path).write_text(mine)
            return stored(talk.app.log, sha256)

        monkeypatch.setattr(type(talk.app.log), "blob", saves)
        report = await run_split(talk.app, session_id)
        assert (root / path).read_text() == mine
        assert report.status == ("failed" if COPIES else "unverified")
        monkeypatch.undo()
        report = await resumed(talk.app, session_id, "resume" if COPIES else "accept")
        assert report.status == "complete", report.detail
    assert "mine" in (root / path).read_text()
    assert "END = 1" in (root / "m00.py").read_text()
    assert "[x]" in (root / "plan.md").read_text()


@pytest.mark.promise("SPLIT-3")
async def test_run_killed_after_any_commit_goes_on_and_does_nothing_twice(tmp_path: Path, home: Path) -> None:
    root = project(tmp_path / "work", 2)
    script = [answer(f"Do a{n}.", edited(f"m{n:02}.py", f"ONE = {n}", "ONE = 'a'")) for n in range(2)]
    plan = plan_of(subtask("a0", "m00.py"), subtask("a1", "m01.py"))
    commits = Commits(tmp_path / "commits", home, root)
    async with conversation(root, script, settings=CHECKS) as talk:
        session_id = keep_plan(talk.app, plan)
        with commits.watching(talk.app):
            await run_split(talk.app, session_id)
    for number in commits.restored():
        if number % 2:
            continue
        async with conversation(root, script, settings=CHECKS) as talk:
            if read_split(talk.app, session_id).status != "complete":
                report = await run_split(talk.app, session_id)
                if not COPIES and report.status != "complete":
                    report = await resumed(talk.app, session_id, "accept")
            events = events_of(talk.app, session_id)
            report = read_split(talk.app, session_id)
            assert report.status == "complete", number
            assert sorted(each.subtask_id for each in kinds(events, SubtaskDone)) == ["a0", "a1"], number
            assert len(kinds(events, ChangeApplied)) == 1, number
            answered = [each for each in kinds(events, SideAnswered) if not each.problem]
            assert len(answered) == 2, number  # no answer that came is asked for again
            assert report.tokens == 2 * 120, number
            asked = {each.request_id for each in kinds(events, SideAsked)}
            assert asked == {each.request_id for each in kinds(events, SideAnswered)}, number
            assert all("ONE = 'a'" in (root / f"m{n:02}.py").read_text() for n in range(2)), number


@pytest.mark.promise("SPLIT-4")
async def test_whole_budget_pauses_the_split_and_more_of_it_goes_on(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 6)
    large = [each | {"usage": {"input_tokens": 600, "output_tokens": 400}} for each in SIXTY[:6]]
    async with conversation(root, large, settings=CHECKS) as talk:
        plan = plan_of(*(subtask(f"a{n}", f"m{n:02}.py") for n in range(6)), tokens=3_500)
        report = await split(talk.app, plan)
        assert (report.status, report.exit_status) == ("paused: budget", 4)
        assert "the whole split" in report.detail
        assert 0 < report.counts["done"] < 6
        assert report.tokens <= 3_500
        more = await resumed(talk.app, report.session_id, limits=SplitLimits(tokens=100_000))
        assert (more.status, more.tokens) == (ENDS, 6 * 1_000)


@pytest.mark.promise("SPLIT-4")
async def test_subtask_over_its_own_budget_fails_alone(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 2)
    (root / "m01.py").write_text("# long\n" * 4_000)
    async with conversation(root, SIXTY, settings=CHECKS) as talk:
        plan = plan_of(subtask("a0", "m00.py"), subtask("a1", "m01.py"), subtask_tokens=5_000)
        report = await split(talk.app, plan)
    by_id = {row.id: row for row in report.subtasks}
    assert (by_id["a0"].status, by_id["a1"].status) == ("done", "failed")
    assert "the subtask a1" in by_id["a1"].detail
    assert report.status == "paused: failed"


@pytest.mark.promise("SPLIT-5")
@pytest.mark.parametrize(
    "path", ["m01.py", "../outside.py", "/tmp/outside.py", ".git/hooks/x", "sub/../m01.py"]
)
async def test_subtask_that_writes_outside_its_paths_is_refused(tmp_path: Path, path: str) -> None:
    root = project(tmp_path / "work", 2)
    before = contents(root)
    hostile = [answer("Do evil.", {"path": path, "text": "WRITTEN = 1\n"})]
    async with conversation(root, hostile, settings=CHECKS) as talk:
        report = await split(talk.app, plan_of(subtask("evil", "m00.py")))
        assert report.status == "paused: failed"
        assert "may not write" in report.subtasks[0].detail
        assert report.subtasks[0].attempt == 2
        with pytest.raises(UsageProblem, match="not"):
            keep_plan(talk.app, plan_of(subtask("bad", "../outside.py")))
    assert contents(root) == before
    assert not (tmp_path / "outside.py").exists()


@pytest.mark.promise("SPLIT-3")
async def test_full_disk_is_said_and_the_split_goes_on_when_there_is_room(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 6)
    async with conversation(root, SIXTY, settings=CHECKS) as talk:
        session_id = keep_plan(talk.app, plan_of(*(subtask(f"a{n}", f"m{n:02}.py") for n in range(6))))
        database = sqlite_of(talk.app.log)
        pages = database.execute("PRAGMA page_count").fetchone()[0]
        database.execute(f"PRAGMA max_page_count = {pages + 3}")
        with pytest.raises(StorageFull, match="Free some disk space"):
            await run_split(talk.app, session_id)
        database.execute("PRAGMA max_page_count = 1000000")
        assert contents(root) == {f"m{n:02}.py": module(n).encode() for n in range(6)}
    async with conversation(root, SIXTY, settings=CHECKS) as talk:
        report = await run_split(talk.app, session_id)
        assert (report.status, report.counts["done"]) == (ENDS, 6)


@pytest.mark.promise("SPLIT-6")
async def test_result_that_breaks_the_checks_is_not_applied(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 2)
    before = contents(root)
    script = [answer("### m00.py", edited("m00.py", "END = 0", "WRONG = 0")), SIXTY[1]]
    async with conversation(root, script, settings=CHECKS) as talk:
        report = await split(talk.app, plan_of(subtask("a0", "m00.py"), subtask("a1", "m01.py")))
        assert report.status == ("failed" if COPIES else "unverified")
        assert "Nothing was applied" in report.detail
        assert contents(root) == before
        accepted = await resumed(talk.app, report.session_id, "accept")
        assert accepted.status == "complete"
    assert contents(root) != before


@pytest.mark.promise("SPLIT-6")
async def test_checks_that_failed_before_do_not_count_and_are_told_as_such(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 2)
    (root / "old.py").write_text("WRONG = 1\n")
    async with conversation(root, SIXTY[:1], settings=CHECKS) as talk:
        report = await split(talk.app, plan_of(subtask("a0", "m00.py")))
    assert report.status == ENDS
    assert report.checks == (("tests: failed, as before",) if COPIES else ())


@pytest.mark.promise("SPLIT-6")
async def test_subtask_that_changed_nothing_is_named_although_the_checks_pass(tmp_path: Path) -> None:
    """A small model said that it was done, the project's tests passed, and the split was just complete."""
    root = project(tmp_path / "work", 3)
    script = [
        SIXTY[0],
        answer("### m01.py"),
        answer("### m02.py", edited("m02.py", "END = 0", "END  =  0")),
    ]
    async with conversation(root, script, settings=CHECKS) as talk:
        report = await split(talk.app, plan_of(*(subtask(f"a{n}", f"m{n:02}.py") for n in range(3))))
        if not COPIES:
            report = await resumed(talk.app, report.session_id, "accept")
        assert report.status == "complete"
        assert "Changed nothing: a1." in report.detail
        assert [row.detail for row in report.subtasks] == [
            "It is done",
            "changed nothing: It is done",
            "changed only blank space: It is done",
        ]
        assert [row.files for row in report.subtasks] == [("m00.py",), (), ("m02.py",)]


@pytest.mark.promise("SPLIT-7")
async def test_dependents_get_exports_and_files_of_what_they_depend_on(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 2)
    exported = [{"name": "helper", "kind": "function", "detail": "takes a number"}]
    script = [
        answer("Do first.", {"path": "new.py", "text": "def helper(n):\n    return n\n"}, exports=exported),
        answer("Do second.", edited("new.py", "return n\n", "return n + 1\n")),
    ]
    plan = plan_of(
        subtask("second", "m00.py", writes=("new.py",), depends_on=("first",)),
        subtask("first", writes=("new.py",)),
    )
    async with conversation(root, script, settings=CHECKS) as talk:
        report = await split(talk.app, plan)
        asked = [request.messages[-1].text for request in talk.requests]  # type: ignore[union-attr]
        assert "function helper: takes a number" in asked[1]
        assert "def helper(n)" in asked[1]
        assert "there is no such file yet" not in asked[1]
        if not COPIES:
            await resumed(talk.app, report.session_id, "accept")
    assert (root / "new.py").read_text() == "def helper(n):\n    return n + 1\n"


@pytest.mark.promise("SPLIT-8")
async def test_pause_cancel_and_retry_of_one(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 4)
    bad = answer("### m01.py", {"path": "m01.py"})
    script = [SIXTY[0], bad, *SIXTY[2:4]]
    plan = plan_of(
        *(subtask(f"a{n}", f"m{n:02}.py") for n in range(3)), subtask("after", "m03.py", depends_on=("a1",))
    )
    async with conversation(root, script, settings=CHECKS) as talk:
        app = talk.app
        session_id = keep_plan(app, plan)

        def pauses(recorded: object) -> None:
            if isinstance(getattr(recorded, "event", None), SubtaskDone):
                app.log.put(f"split:{session_id}", '{"action":"pause"}')

        report = await run_split(app, session_id, saw=pauses)
        assert report.status == "paused: user"
        report = await resumed(app, session_id)
        assert report.status == "paused: failed"
        waits = {row.id: row.waiting_on for row in report.subtasks}
        assert waits["after"] == ("a1",)
        report = await tell_split(app, session_id, SplitCommand("retry", ("a1",)))
        assert {row.id: row.status for row in report.subtasks}["a1"] == "waiting"
        report = await resumed(app, session_id)
        assert report.status == "paused: failed"
        assert (
            len(
                [
                    each
                    for each in kinds(events_of(app, session_id), SubtaskStarted)
                    if each.subtask_id == "a1"
                ]
            )
            == 4
        )
        report = await tell_split(app, session_id, SplitCommand("cancel", ("a1",)))
        assert {row.id: row.status for row in report.subtasks}["after"] == "cancelled"
        report = await resumed(app, session_id)
        assert (report.status, report.counts["done"]) == (ENDS, 2)
        with pytest.raises(UsageProblem, match="no subtask"):
            await tell_split(app, session_id, SplitCommand("cancel", ("none",)))


@pytest.mark.promise("SPLIT-8")
async def test_cancelled_split_applies_nothing(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 2)
    before = contents(root)
    async with conversation(root, SIXTY, settings=CHECKS) as talk:
        session_id = keep_plan(talk.app, plan_of(subtask("a0", "m00.py"), subtask("a1", "m01.py")))

        def cancels(recorded: object) -> None:
            if isinstance(getattr(recorded, "event", None), SubtaskDone):
                talk.app.log.put(f"split:{session_id}", '{"action":"cancel"}')

        report = await run_split(talk.app, session_id, saw=cancels)
        assert (report.status, report.exit_status) == ("cancelled", 130)
    assert contents(root) == before


@pytest.mark.promise("SPLIT-9")
async def test_busy_provider_slows_all_subtasks_down_and_fails_none(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 8)
    busy = [{"kind": "retry_later", "message": f"slow down {n}", "delay": 0.01, "times": 1} for n in range(4)]
    script = [each | {"error": error} for each, error in zip(SIXTY, busy, strict=False)] + SIXTY[4:8]
    async with conversation(root, script, settings=CHECKS) as talk:
        plan = plan_of(*(subtask(f"a{n}", f"m{n:02}.py") for n in range(8)), parallel=4)
        report = await split(talk.app, plan)
        assert (report.status, report.counts["done"]) == (ENDS, 8)
        assert {row.attempt for row in report.subtasks} == {1}
        found = kinds(events_of(talk.app, report.session_id), SideAsked, SideAnswered)
    assert [isinstance(each, SideAsked) for each in found[:8]] == [True] * 4 + [False] * 4
    assert all("slow down" in each.problem for each in found[4:8])
    at_once, done = 0, 0
    for each in found[8:]:
        asks = isinstance(each, SideAsked)
        at_once, done = at_once + (1 if asks else -1), done + (not asks)
        assert at_once <= 1 + done, "each success adds one again"


@pytest.mark.promise("SPLIT-10")
async def test_plan_of_a_model_is_shown_edited_and_only_then_started(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 2)
    wrong = {"subtasks": [{"id": "a", "instruction": "Do a.", "files": ["none.py"]}]}
    found = {"id": "a", "instruction": "Do a.", "files": ["m00.py"], "model_class": "fast"}
    right = {"subtasks": [found, found | {"id": "again", "depends_on": ["a"]}]}
    script = [
        {"when": "cannot be used", "text": [json.dumps(right)]},
        {"when": "The request: ", "text": [json.dumps(wrong)]},
        answer("Do a.", edited("m00.py", "END = 0", "END = 1")),
        answer("Do b.", edited("m01.py", "END = 0", "END = 1")),
    ]
    async with conversation(root, script, settings=CHECKS) as talk:
        session_id = await plan_task(talk.app, "Improve both.", SplitOptions())
        plan = known_plan(talk.app, session_id)
        assert [(each.id, each.files) for each in plan.subtasks] == [("a", ("m00.py",))]
        assert read_split(talk.app, session_id).status == "planned"
        edited_plan = plan_of(subtask("b", "m01.py"))
        await change_plan(talk.app, session_id, edited_plan)
        report = await run_split(talk.app, session_id)
        assert [row.id for row in report.subtasks] == ["b"]
        assert report.status == ENDS
        with pytest.raises(UsageProblem, match="has been started"):
            await change_plan(talk.app, session_id, edited_plan)


@pytest.mark.promise("SPLIT-11")
async def test_items_of_a_checklist_run_by_phases_and_are_ticked_with_their_files(tmp_path: Path) -> None:
    items = (
        "## One\n- [ ] End m00.py\n- [ ] End m01.py\n- [x] Old\n- [ ] Check m01.py\n"
        "## Two\n- [ ] Then new.py, from m00.py\n"
    )
    root = project(tmp_path / "work", 2)
    (root / "plan.md").write_text(items)
    script = [
        answer("Then new.py", {"path": "new.py", "text": "NEW = 1\n"}),
        *(answer(f"End m0{n}.py", edited(f"m0{n}.py", "END = 0", "END = 1")) for n in range(2)),
        answer("Check m01.py"),
    ]
    async with conversation(root, script, settings=CHECKS) as talk:
        session_id = plan_checklist(talk.app, "plan.md", SplitOptions())
        depends = {each.id: each.depends_on for each in known_plan(talk.app, session_id).subtasks}
        assert depends == {"item-1": (), "item-2": (), "item-4": (), "item-5": ("item-1", "item-2", "item-4")}
        await run_split(talk.app, session_id)
        if not COPIES:
            await resumed(talk.app, session_id, "accept")
        assert len(kinds(events_of(talk.app, session_id), ChangeApplied)) == 1
    ticked = items.replace("[ ]", "[x]").replace("[x] Check", "[ ] Check")  # that one changed nothing
    assert (root / "plan.md").read_text() == ticked
    assert (root / "new.py").read_text() == "NEW = 1\n"
    (root / "vague.md").write_text("- [ ] Make it better\n")
    async with conversation(root, script, settings=CHECKS) as talk:
        with pytest.raises(UsageProblem, match="names no file"):
            plan_checklist(talk.app, "vague.md", SplitOptions())


@pytest.fixture
def short() -> Iterator[str]:
    """A folder with a path that is short enough for sockets."""
    with tempfile.TemporaryDirectory() as folder:
        yield folder


@pytest.mark.promise("SPLIT-13")
async def test_subtask_that_needs_a_tree_works_in_a_copy_and_changes_only_what_it_may(
    tmp_path: Path, short: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project(tmp_path / "work", 2)
    write(root, {"lib/old.py": "OLD = 1\n"})
    before = contents(root)
    seen: list[dict[str, bytes]] = []
    script = [
        {"when": "Do good.", **call("write", path="lib/new.py", text="NEW = 1\n")},
        {"when": "Do bad.", **call("write", path="evil.py", text="BAD = 1\n")},
        {"text": "It is done."},
        {"text": "It is done."},
    ]
    model = script_file(tmp_path, script)
    monkeypatch.setattr(tempfile, "tempdir", short)
    left = write(Path(short, "handrail-tree-left"), {"0/tree/a.py": ""})
    os.utime(left, (0, 0))
    good = subtask("good", writes=("lib/",), needs="tree")
    bad = subtask("bad", "m01.py", needs="tree")
    async with conversation(root, None, model=model, settings=CHECKS) as talk:
        session_id = keep_plan(talk.app, plan_of(good, bad, tries=1))
        report = await run_split(talk.app, session_id, saw=lambda _: seen.append(contents(root)))
        rows = {row.id: row for row in report.subtasks}
        assert (rows["good"].status, rows["good"].files) == ("done", ("lib/new.py",)), rows["good"].detail
        assert rows["bad"].status == "failed"
        assert "evil.py, which this subtask may not write" in rows["bad"].detail
        assert report.tokens > 0
        assert all(each == before for each in seen)
        await tell_split(talk.app, session_id, SplitCommand("cancel", ("bad",)))
        report = await resumed(talk.app, session_id)
        if not COPIES:
            report = await resumed(talk.app, session_id, "accept")
        assert report.status == "complete", report.detail
    assert contents(root) == before | {"lib/new.py": b"NEW = 1\n"}
    assert list(Path(short).glob("handrail-tree-*")) == []


@pytest.mark.promise("SPLIT-14")
async def test_subtask_of_class_fast_is_done_by_the_fast_model(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 2)
    fast = script_file(tmp_path, [answer("### m01.py", edited("m01.py", "END = 0", "END = 1"))], "fast.json")
    settings = f'{CHECKS}[models]\nfast = "{fast}"\n'
    async with conversation(root, SIXTY, settings=settings) as talk:
        report = await split(
            talk.app, plan_of(subtask("a0", "m00.py"), subtask("a1", "m01.py", model_class="fast"))
        )
        asked = kinds(events_of(talk.app, report.session_id), SideAsked)
        assert {each.key: each.model for each in asked} == {"a0/0/1": "scripted/test", "a1/0/1": fast}
        assert (report.status, report.counts["done"]) == (ENDS, 2)


@pytest.mark.promise("SPLIT-8")
async def test_split_can_be_cancelled_while_its_result_is_checked(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 1)
    before = contents(root)
    endless = CHECKS.replace("! grep -rq WRONG --include=*.py .", "sleep 1000")
    async with conversation(root, SIXTY, settings=endless) as talk:
        session_id = keep_plan(talk.app, plan_of(subtask("a0", "m00.py")))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_split, talk.app, session_id)
            with anyio.fail_after(DEADLINE):
                while read_split(talk.app, session_id).counts["done"] == 0:
                    await talk.app.commits.wait(talk.app.commits.version)
                await tell_split(talk.app, session_id, SplitCommand("cancel"))
        assert read_split(talk.app, session_id).status == ("cancelled" if COPIES else "unverified")
    assert contents(root) == before


async def test_files_are_planned_one_by_one_after_an_answer_of_a_subtask_was_cut_off(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 2)
    async with conversation(root, [SIXTY[0] | {"finish": "length"}], settings=CHECKS) as talk:
        options = SplitOptions(("*.py",))
        before = await plan_task(talk.app, "Change TEXT.", options)
        assert known_plan(talk.app, before).granularity == "coarse"
        await split(talk.app, plan_of(subtask("a0", "m00.py"), tries=1))
        after = await plan_task(talk.app, "Change TEXT.", options)
        assert known_plan(talk.app, after).granularity == "fine"
