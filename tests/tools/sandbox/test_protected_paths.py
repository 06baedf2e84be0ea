"""What a command finds closed in the workspace itself, unasked and asked."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from handrail.config.files import FileLock
from handrail.protocol.events import ToolFinished
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from tests.tools.calls import Bench

pytestmark = pytest.mark.anyio
MakeBench = Callable[..., Bench]
WRITES = """
for path in {names}:
    try:
        with open(path, "a") as file:
            file.write("evil")
        print("wrote", path)
    except OSError as error:
        print(type(error).__name__, path)
"""


def bench_of(make_bench: MakeBench, protection: Protection, **options: object) -> Bench:
    """A bench in mode auto, where nobody is asked."""
    return make_bench("auto", sandbox=Sandbox(found=protection), answerable=False, **options)


async def writing(bench: Bench, *names: str) -> ToolFinished:
    """What comes of a program that writes to these files."""
    (bench.root / "writes.py").write_text(WRITES.replace("{names}", repr(names)))
    return await bench.call("run", command="python3 writes.py")


@pytest.mark.promise("SAND-3")
async def test_repositories_below_the_workspace_are_closed_or_a_change_of_them_is_told(
    make_bench: MakeBench, protection: Protection
) -> None:
    bench = bench_of(make_bench, protection)
    init(bench.root / "sub" / "deep")
    finished = await writing(bench, "sub/deep/.git/config", "sub/deep/a")
    assert "wrote sub/deep/a" in finished.content
    changed = "wrote sub/deep/.git/config" in finished.content
    assert changed != protection.git
    assert ("CHANGED sub/deep/.git/config" in finished.summary) == changed


@pytest.mark.promise("SAND-12")
async def test_a_repository_that_a_command_makes_unasked_is_told(
    make_bench: MakeBench, protection: Protection
) -> None:
    bench = bench_of(make_bench, protection)
    (bench.root / "makes.py").write_text("import os\nos.makedirs('sub/.git/hooks')\n")
    finished = await bench.call("run", command="python3 makes.py")
    assert "CHANGED sub/.git" in finished.summary


@pytest.mark.promise("SAND-12")
@pytest.mark.parametrize("then", ["", "import time; time.sleep(600)\n"], ids=["ends", "is stopped"])
async def test_a_repository_that_a_command_in_the_background_makes_is_told(
    make_bench: MakeBench, protection: Protection, then: str
) -> None:
    bench = bench_of(make_bench, protection)
    (bench.root / "makes.py").write_text(
        f"import os\nos.makedirs('sub/.git/hooks')\nprint('made', flush=True)\n{then}"
    )
    async with bench.tools.background.open_for(bench.session):
        begun = await bench.call("run", command="python3 makes.py", background=True)
        if then:
            with anyio.fail_after(50):
                while "made" not in bench.session.live.text("b1", "background"):
                    await anyio.sleep(0.01)
        how = {"stop": True} if then else {"wait": 20}
        ended = await bench.call("background", id="b1", **how)
    assert "CHANGED sub/.git" in f"{begun.summary} {ended.summary}"


@pytest.mark.promise("SAND-3")
async def test_what_is_handrails_is_not_made_by_a_command_or_it_is_told(
    make_bench: MakeBench, protection: Protection
) -> None:
    bench = bench_of(make_bench, protection)
    names = (".orchestration/active_intents.yaml", ".handrail/config.toml", ".intentignore")
    finished = await writing(bench, *names)
    made = [name for name in names if (bench.root / name).exists()]
    if protection.git:
        assert made == []
        # Nor is anything left of what kept it from that.
        assert not [path.name for path in bench.root.iterdir() if path.name.startswith(".")]
    assert not made or "CHANGED " in finished.summary


@pytest.mark.promise("POL-32")
async def test_secret_files_are_read_by_commands_that_the_user_said_yes_to(
    make_bench: MakeBench, protection: Protection
) -> None:
    bench = bench_of(make_bench, protection)
    (bench.root / "sub").mkdir()
    for name in (".env", "sub/.env.local"):
        (bench.root / name).write_text("plain-value")
    (bench.root / ".gitignore").write_text(".env\n")
    if not protection.git:
        return  # said in docs/commands.md: only bubblewrap can
    for name in (".env", "sub/.env.local"):
        (bench.root / "reads.py").write_text(f"print(open({name!r}).read())\n")
        assert "plain-value" not in (await bench.call("run", command="python3 reads.py")).content
    asked = bench_of(make_bench, protection, allow=("python3",))
    asked.root.joinpath("reads.py").write_text("print(open('.env').read())\n")
    assert "plain-value" in (await asked.call("run", command="python3 reads.py")).content


@pytest.mark.promise("SAND-2")
async def test_a_file_that_has_a_name_outside_too_is_not_written_unasked(
    make_bench: MakeBench, protection: Protection
) -> None:
    bench = bench_of(make_bench, protection)
    outside = bench.root.parent / "outside.txt"
    outside.write_text("kept")
    os.link(outside, bench.root / "inside.txt")
    (bench.root / "one.txt").write_text("two names, both here")
    os.link(bench.root / "one.txt", bench.root / "two.txt")
    finished = await writing(bench, "inside.txt", "one.txt")
    assert "wrote one.txt" in finished.content
    assert (outside.read_text() == "kept") == protection.git


@pytest.mark.promise("POL-33")
@pytest.mark.parametrize("folder", [".", "", "bin", "{root}/bin", "{root}/sub/../bin"])
async def test_no_program_of_the_workspace_is_what_a_reading_command_runs(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    bench = make_bench("explore", answerable=False)
    shadow(bench.root)
    (bench.root / "sub").mkdir()
    monkeypatch.setenv("PATH", f"{folder.replace('{root}', str(bench.root))}:{os.environ['PATH']}")
    for command in ("git status", "ls", "grep -r x .", "echo hi | cat"):
        finished = await bench.call("run", command=command)
        assert "shadow" not in finished.content, command


@pytest.mark.promise("POL-33")
async def test_no_program_of_the_workspace_is_what_handrail_itself_runs(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from handrail.tools.git import git_state
    from handrail.tools.sandbox.bubblewrap import find_bubblewrap

    bench = make_bench("explore")
    init(bench.root)
    shadow(bench.root)
    before = find_bubblewrap()
    monkeypatch.chdir(bench.root)
    monkeypatch.setenv("PATH", f".:bin:{bench.root}/bin:{os.environ['PATH']}")
    assert await git_state(bench.root) is not None
    assert find_bubblewrap() == before
    assert not (bench.root / "ran").exists()


def shadow(root: Path) -> None:
    """Programs in the workspace with the names of others."""
    for folder in (root, root / "bin"):
        folder.mkdir(exist_ok=True)
        for name in ("git", "ls", "grep", "cat", "bash", "bwrap", "rg"):
            (folder / name).write_text(f"#!/bin/sh\ntouch {root}/ran\necho shadow\n")
            (folder / name).chmod(0o755)


def init(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "-C", str(folder), "init", "-q", "-b", "main"], check=True, timeout=60)


async def test_what_a_killed_command_left_to_be_mounted_on_is_removed_when_nobody_uses_it(
    tmp_path: Path,
) -> None:
    workspace, data = tmp_path / "shop", tmp_path / "data"
    (workspace / ".handrail").mkdir(parents=True)
    (workspace / ".orchestration").mkdir()
    (workspace / ".orchestration" / "active_intents.yaml").write_text("intents:\n")
    (workspace / ".intentignore").touch(0o444)
    data.mkdir()
    sandbox = Sandbox(data)

    with FileLock(data / "sandbox.lock") as used:
        assert used.try_lock(shared=True)
        sandbox.remove_leftovers(workspace)
        assert (workspace / ".handrail").is_dir()
    sandbox.remove_leftovers(workspace)

    assert sorted(os.listdir(workspace)) == [".orchestration"]


async def test_an_empty_file_of_the_users_stays(tmp_path: Path) -> None:
    (tmp_path / ".intentignore").touch(0o644)

    Sandbox(tmp_path).remove_leftovers(tmp_path)

    assert (tmp_path / ".intentignore").exists()
