"""What commands change becomes a change set that can be taken back, or says why not."""

import os
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest

from handrail.changes.apply import apply
from handrail.changes.change_set import ChangeSet, FileEdit
from handrail.changes.undo import Plan, plan_undo, undo_change_set
from handrail.protocol.events import ChangePrepared
from handrail.protocol.ids import new_id
from handrail.protocol.values import FileChange, ToolCall
from handrail.tools.commands import file_changes as watching
from handrail.tools.tool import CallContext
from handrail.workspace.stat_index import snapshot
from handrail.workspace.watched_index import MIN_FILES
from tests.tools.calls import Bench, open_session
from tests.workspace.test_watched_index import SECOND_NAMES

pytestmark = pytest.mark.anyio


def git(root: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True)


def commit(root: Path, *, age: int = 3600) -> None:
    """Everything in a commit, in files that are older than git's index."""
    git(root, "init", "-q")
    for path in root.rglob("*"):
        if path.is_file() and ".git" not in path.parts:
            found = path.stat()
            os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns - age * 10**9))
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "x")


def sets(bench: Bench) -> list[ChangePrepared]:
    return [event for event in bench.events() if isinstance(event, ChangePrepared) and event.by == "command"]


def last(bench: Bench) -> dict[str, FileChange]:
    return {file.path: file for file in sets(bench)[-1].files}


def take_back(bench: Bench, *, leave_lost: bool = False) -> Plan:
    """Take back what commands changed, as a rewind does."""
    plan = plan_undo(bench.session.log, bench.workspace, sets(bench))
    leave = [conflict.path for conflict in plan.conflicts] if leave_lost else []
    change_set = undo_change_set(plan, leave=leave)
    if change_set:
        apply(bench.session, bench.workspace, change_set, emptied=plan.emptied)
    return plan


def tree(root: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode) for path in files}


@pytest.fixture(params=["git", "no git"])
def project(request: pytest.FixtureRequest, bench: Bench) -> Bench:
    """Some files, committed or not."""
    (bench.root / "src").mkdir()
    (bench.root / "src/a.py").write_bytes(b"one\ntwo\n")
    (bench.root / "src/b.py").write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    (bench.root / "run.sh").write_text("echo\n")
    (bench.root / "run.sh").chmod(0o754)
    (bench.root / "data.bin").write_bytes(bytes(range(256)))
    if request.param == "git":
        commit(bench.root)
    return bench


@pytest.mark.promise("CMD-1")
@pytest.mark.parametrize(
    "command",
    [
        "sed -i s/one/1/ src/a.py src/b.py",
        "printf 3 >> src/a.py",
        "rm -r src data.bin",
        "mv src/a.py src/c.py",
        "mv src lib",
        "chmod 600 run.sh",
        "chmod 600 run.sh; echo more >> run.sh",
        "mkdir -p new/deep/er; echo x > new/deep/er/file; echo y > new/other",
        "rm data.bin; mkdir data; echo x > data/file",
        "cp src/a.py src/b.py; printf '' > run.sh",
    ],
)
async def test_what_a_command_changed_is_taken_back_to_the_byte(project: Bench, command: str) -> None:
    before = tree(project.root)
    await project.call("run", command=command)
    assert tree(project.root) != before
    assert all(file.restorable for file in last(project).values())
    take_back(project)
    assert tree(project.root) == before
    assert not (project.root / "new").exists()


@pytest.mark.promise("CMD-1")
async def test_a_change_set_names_what_came_went_and_changed(project: Bench) -> None:
    finished = await project.call(
        "run", command="echo three >> src/a.py; rm run.sh; echo x > new; chmod 600 data.bin"
    )
    files = last(project)
    assert {path: file.op for path, file in files.items()} == {
        "src/a.py": "update",
        "run.sh": "delete",
        "new": "create",
        "data.bin": "update",
    }
    assert (files["src/a.py"].added, files["src/a.py"].removed) == (1, 0)
    assert (files["data.bin"].old_mode, files["data.bin"].new_mode) == (0o644, 0o600)
    assert "4 files changed" in finished.summary
    assert "M src/a.py" in finished.content
    assert "D run.sh" in finished.content
    assert project.types(3) == ["change_prepared", "change_applied", "tool_finished"]
    assert project.session.log.begun() == []


async def test_a_command_that_changes_nothing_leaves_no_change_set(project: Bench) -> None:
    finished = await project.call("run", command="cat src/a.py; touch src/b.py; echo x > y; rm y")
    assert sets(project) == []
    assert "changed" not in finished.content


@pytest.mark.promise("CMD-2")
async def test_a_file_that_a_command_changed_cannot_be_edited_on_the_old_version(project: Bench) -> None:
    await project.call("read", path="src/a.py")
    await project.call("run", command="echo three >> src/a.py")
    finished = await project.call("edit", path="src/a.py", edits=[{"search": "one", "replace": "1"}])
    assert finished.error is not None
    assert finished.error.reason == "stale_file"


@pytest.mark.promise("CMD-1")
async def test_the_session_s_own_edits_are_what_is_gone_back_to(project: Bench) -> None:
    await project.call("read", path="src/a.py")
    await project.call("edit", path="src/a.py", edits=[{"search": "one", "replace": "mine"}])
    await project.call("run", command="echo three >> src/a.py")
    take_back(project)
    assert (project.root / "src/a.py").read_bytes() == b"mine\ntwo\n"


@pytest.mark.promise("CMD-1")
async def test_two_commands_are_taken_back_one_after_the_other(project: Bench) -> None:
    before = tree(project.root)
    await project.call("run", command="echo three >> src/a.py")
    await project.call("run", command="echo four >> src/a.py; echo five > five")
    assert len(sets(project)) == 2
    take_back(project)
    assert tree(project.root) == before


async def test_what_somebody_else_wrote_after_the_command_is_not_overwritten(project: Bench) -> None:
    await project.call("run", command="echo three >> src/a.py")
    (project.root / "src/a.py").write_text("by hand\n")
    assert [conflict.path for conflict in take_back(project, leave_lost=True).conflicts] == ["src/a.py"]
    assert (project.root / "src/a.py").read_text() == "by hand\n"


# What git has converted


@pytest.mark.promise("CMD-3")
async def test_line_endings_that_git_converts_come_back_as_they_were(bench: Bench) -> None:
    (bench.root / ".gitattributes").write_text("*.txt text eol=crlf\n")
    (bench.root / "all.txt").write_bytes(b"one\r\ntwo\r\n")
    (bench.root / "none.txt").write_bytes(b"one\ntwo\n")
    (bench.root / "mixed.txt").write_bytes(b"one\r\ntwo\n")
    commit(bench.root)
    before = tree(bench.root)
    await bench.call("run", command="for f in *.txt; do echo x > $f; done")
    assert {path: file.restorable for path, file in last(bench).items()} == {
        "all.txt": True,
        "mixed.txt": False,
        "none.txt": True,
    }
    take_back(bench, leave_lost=True)
    assert tree(bench.root) | {"mixed.txt": before["mixed.txt"]} == before


@pytest.mark.promise("CMD-3")
async def test_a_file_that_a_filter_rewrites_is_never_given_git_s_version(
    bench: Bench, tmp_path: Path
) -> None:
    (bench.root / ".gitattributes").write_text("*.secret filter=rot\n")
    (bench.root / "a.secret").write_text("uryyb\n")
    git(bench.root, "init", "-q")
    ran = tmp_path / "ran"
    git(bench.root, "config", "filter.rot.clean", "tr a-z n-za-m")
    commit(bench.root)
    git(bench.root, "config", "filter.rot.clean", f"touch {ran}; cat")
    git(bench.root, "config", "filter.rot.smudge", f"touch {ran}; cat")
    await bench.call("run", command="echo x > a.secret")
    assert not last(bench)["a.secret"].restorable
    assert not ran.exists()


async def test_a_file_written_in_the_instant_of_the_commit_is_not_taken_from_git(bench: Bench) -> None:
    (bench.root / "a.txt").write_text("one\n")
    git(bench.root, "init", "-q")
    git(bench.root, "add", "-A")
    (bench.root / "a.txt").write_text("two\n")
    await bench.call("run", command="echo x > a.txt")
    take_back(bench)
    assert (bench.root / "a.txt").read_text() == "two\n"


async def test_the_workspace_may_be_a_folder_of_the_repository(
    make_bench: Callable[..., Bench], tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.txt").write_text("one\n" * 200_000)
    commit(tmp_path)
    bench = make_bench()
    await bench.call("run", command="echo x > a.txt")
    assert last(bench)["a.txt"].restorable
    take_back(bench)
    assert (tmp_path / "work/a.txt").read_text() == "one\n" * 200_000


async def test_git_s_own_files_are_left_as_they_are(project: Bench) -> None:
    if not (project.root / ".git").exists():
        git(project.root, "init", "-q")
    index = project.root / ".git/index"
    before = index.read_bytes() if index.exists() else b""
    await project.call("run", command="echo x > src/a.py")
    take_back(project)
    assert (index.read_bytes() if index.exists() else b"") == before


# What cannot be brought back is said


@pytest.mark.promise("CMD-4")
async def test_what_is_too_large_to_be_copied_is_marked_and_stops_a_rewind(bench: Bench) -> None:
    (bench.root / "large.txt").write_bytes(b"x" * 2_000_000)
    (bench.root / "small.txt").write_text("one\n")
    await bench.call("run", command="echo y > large.txt; echo y > small.txt")
    assert {path: file.restorable for path, file in last(bench).items()} == {
        "large.txt": False,
        "small.txt": True,
    }
    plan = take_back(bench, leave_lost=True)
    assert [(each.path, each.kind) for each in plan.conflicts] == [("large.txt", "lost")]
    assert (bench.root / "small.txt").read_text() == "one\n"
    assert (bench.root / "large.txt").read_text() == "y\n"


@pytest.mark.promise("CMD-4")
async def test_links_are_taken_back_and_not_followed(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("mine\n")
    (bench.root / "old").symlink_to(outside)
    (bench.root / "turned").symlink_to("old")
    await bench.call("run", command="rm old; ln -s ../outside.txt new; mkfifo pipe; ln -sfn new turned")
    files = last(bench)
    assert {path: (file.op, file.restorable) for path, file in files.items()} == {
        "old": ("delete", True),
        "turned": ("update", True),
        "new": ("create", True),
        "pipe": ("create", True),
    }
    assert not take_back(bench).conflicts
    assert {each.name: os.readlink(each) for each in bench.root.iterdir()} == {
        "old": str(outside),
        "turned": "old",
    }
    assert outside.read_text() == "mine\n"


@pytest.mark.promise("CMD-5")
async def test_contents_of_files_that_may_hold_secrets_are_not_kept(bench: Bench) -> None:
    (bench.root / ".env").write_text("PASSWORD=hunter2\n")
    await bench.call("run", command="echo PASSWORD=hunter3 > .env; echo hunter4 > id_rsa")
    files = last(bench)
    assert not any(file.restorable for file in files.values())
    assert all(bench.session.log.blob(file.new_sha256) is None for file in files.values())


async def test_a_name_that_is_no_text_does_not_break_the_log(bench: Bench) -> None:
    await bench.call("run", command=r"echo x > $'a\377b'; echo y > plain")
    assert [(file.restorable, file.op) for file in sets(bench)[-1].files] == [
        (True, "create"),
        (True, "create"),
    ]
    assert not take_back(bench).conflicts
    assert os.listdir(bench.root) == []


@pytest.mark.promise("CMD-4")
async def test_of_a_great_many_files_the_rest_is_counted(bench: Bench) -> None:
    await bench.call("run", command="for i in {1..2100}; do : > f$i; done")
    (prepared,) = sets(bench)
    assert (len(prepared.files), prepared.unlisted) == (2_000, 100)


# What is ignored


async def test_ignored_files_and_caches_make_no_change_set(bench: Bench) -> None:
    (bench.root / ".gitignore").write_text("*.log\nbuild/\n")
    command = (
        "mkdir build __pycache__ .pytest_cache; echo x | tee a.log build/x __pycache__/x .pytest_cache/x"
    )
    finished = await bench.call("run", command=command)
    assert sets(bench) == []
    assert "changed" not in finished.content


async def test_ignored_files_are_counted_beside_the_others(bench: Bench) -> None:
    (bench.root / ".gitignore").write_text("*.log\n")
    (bench.root / "old.log").write_text("x")
    finished = await bench.call("run", command="echo x > a.log; rm old.log; echo x > a.txt")
    assert list(last(bench)) == ["a.txt"]
    assert "ignored files: 2" in finished.content


async def test_a_file_that_is_ignored_no_longer_is_not_taken_for_a_new_one(bench: Bench) -> None:
    (bench.root / "data").mkdir()
    (bench.root / "data/mine.txt").write_text("mine\n")
    os.utime(bench.root / "data/mine.txt", (1, 1))
    (bench.root / "beside.log").write_text("mine\n")
    (bench.root / ".gitignore").write_text("data/\n*.log\n")
    await bench.call("run", command="rm .gitignore; echo more >> data/mine.txt; echo more >> beside.log")
    take_back(bench, leave_lost=True)
    assert (bench.root / "data/mine.txt").read_text() == "mine\nmore\n"
    assert (bench.root / "beside.log").read_text() == "mine\nmore\n"


async def test_a_file_that_is_ignored_from_now_on_is_not_taken_for_a_removed_one(bench: Bench) -> None:
    (bench.root / "data").mkdir()
    (bench.root / "data/mine.txt").write_bytes(b"mine\n" * 100_000)
    await bench.call("run", command="echo data/ > .gitignore")
    assert list(last(bench)) == [".gitignore"]


# However it ends


@pytest.mark.promise("CMD-6")
async def test_what_a_command_changed_is_recorded_when_its_time_is_up(bench: Bench) -> None:
    await bench.call("run", command="echo x > made; exec sleep 600", timeout=3)
    assert list(last(bench)) == ["made"]


@pytest.mark.promise("CMD-6")
async def test_what_a_command_changed_is_recorded_when_it_is_cancelled(bench: Bench) -> None:
    arguments = {"command": "echo x > made; echo begun; exec sleep 600"}
    call = bench.wanted(ToolCall(id=new_id("call"), name="run", arguments=arguments))
    with anyio.fail_after(50):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.gate.run, call, bench.turn_id)
            while "begun" not in bench.session.live.text(call.id, "output"):
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    assert list(last(bench)) == ["made"]
    assert bench.types(3) == ["change_prepared", "change_applied", "tool_finished"]


async def test_a_workspace_that_a_command_emptied_is_brought_back(project: Bench) -> None:
    before = tree(project.root)
    await project.call("run", command="find . -mindepth 1 -path ./.git -prune -o -type f -exec rm {} +")
    assert tree(project.root) == {}
    take_back(project)
    assert tree(project.root) == before


# What it costs


async def test_a_second_command_reads_nothing_again(project: Bench) -> None:
    watch = watching.ChangeWatcher(project.workspace)
    with anyio.fail_after(50):
        while snapshot(project.root).sums:  # too new to be told from a later version by its times
            await anyio.sleep(0.01)
    first = watch._before((), in_full=False)
    again = watch._before((), in_full=False)
    assert all(again.copies[path] is copy for path, copy in first.copies.items())
    assert again.objects is first.objects or not again.objects


@pytest.mark.promise("CMD-1")
@pytest.mark.parametrize("place", SECOND_NAMES)
async def test_in_a_large_workspace_too_every_change_comes_back(bench: Bench, place: str) -> None:
    for name in (
        "a",
        "d/x",
        "build/r",
        "node_modules/p/q",
        *(f"many/{number}" for number in range(MIN_FILES)),
    ):
        (bench.root / name).parent.mkdir(parents=True, exist_ok=True)
        (bench.root / name).write_text(f"text of {name}\n")
    (bench.root / ".gitignore").write_text("*.log\nbuild/\n")
    for command in ("true", "true", "echo more >> many/1; sed -i s/text/TEXT/ many/2"):
        await bench.call("run", command=command)
    assert set(last(bench)) == {"many/1", "many/2"}
    before = tree(bench.root)
    await bench.call("run", command=SECOND_NAMES[place])
    assert last(bench)["a"].restorable
    assert tree(bench.root)["a"] != before["a"]
    take_back(bench)
    assert tree(bench.root)["a"] == before["a"]


@pytest.mark.promise("CMD-8")
async def test_what_another_session_did_while_a_command_ran_is_not_taken_back_with_it(
    bench: Bench, tmp_path: Path
) -> None:
    files = {name: bench.root / name for name in ("theirs", "gone", "ours", "both")}
    for file in files.values():
        file.write_bytes(b"old")
    other = open_session(tmp_path / "log", bench.root, "auto", "hello")
    edits = (
        FileEdit("theirs", "update", b"old", b"by the other"),
        FileEdit("gone", "delete", b"old", None),
        FileEdit("made", "create", None, b"by the other"),
        FileEdit("both", "update", b"old", b"by the other"),
    )
    work = CallContext(bench.session, bench.workspace, "t_1", "call_1", ExitStack())
    async with watching.ChangeWatcher(bench.workspace).watch(work, "make"):
        apply(other, bench.workspace, ChangeSet(edits))
        files["ours"].write_bytes(b"by the command")
        files["both"].write_bytes(b"by both")
    assert {path: file.restorable for path, file in last(bench).items()} == {"ours": True, "both": False}
    take_back(bench, leave_lost=True)
    found = {name: data for name, (data, _) in tree(bench.root).items()}
    assert found == {"theirs": b"by the other", "made": b"by the other", "both": b"by both", "ours": b"old"}
    other.release()
    other.log.close()


async def test_files_of_a_folder_that_is_a_file_now_come_back_once_that_is_gone(bench: Bench) -> None:
    (bench.root / "x").mkdir()
    (bench.root / "x" / "y").write_bytes(b"old")
    (bench.root / "swap.sh").write_text("rm -r x; echo file > x\n")
    await bench.call("run", command="sh swap.sh")
    plan = take_back(bench)
    assert [file.path for file in plan.first] == ["x"]
    assert not (bench.root / "x").exists()
    assert not take_back(bench).first
    assert (bench.root / "x" / "y").read_bytes() == b"old"


async def test_a_folder_with_files_of_others_is_in_the_way(bench: Bench) -> None:
    (bench.root / "x").write_bytes(b"old")
    (bench.root / "swap.sh").write_text("rm x; mkdir x; echo file > x/made\n")
    await bench.call("run", command="sh swap.sh")
    (bench.root / "x" / "theirs").write_bytes(b"mine")
    plan = take_back(bench, leave_lost=True)
    assert [(conflict.path, conflict.why[:17]) for conflict in plan.conflicts] == [("x", "x is a folder now")]
    assert (bench.root / "x" / "theirs").read_bytes() == b"mine"
