"""The run tool and its sandbox."""

import socket
import subprocess
from collections.abc import Callable

import pytest

from handrail.protocol.values import AllowedCommand
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from tests.tools.calls import Bench
from tests.tools.sandbox.machine import working

pytestmark = pytest.mark.anyio
MakeBench = Callable[..., Bench]


@pytest.mark.promise("SAND-10")
async def test_a_command_says_how_it_was_confined(bench: Bench) -> None:
    finished = await bench.call("run", command="true")
    assert finished.summary.endswith(f", {working()[0].title()}")


async def test_a_command_is_confined(bench: Bench) -> None:
    log = bench.session.log.folder / "log.db"
    finished = await bench.call("run", command=f"cat {log}; touch {bench.root.parent}/out; touch in")
    assert "SQLite" not in finished.content
    assert not (bench.root.parent / "out").exists()
    assert (bench.root / "in").exists()


async def test_a_command_that_the_sandbox_stopped_tells_the_model_the_rules(bench: Bench) -> None:
    stopped = await bench.call("run", command="touch /usr/new")
    assert stopped.content.endswith(working()[0].model_note())
    assert "[sandbox" not in (await bench.call("run", command="echo Permission denied")).content
    assert "[sandbox" not in (await bench.call("run", command="false")).content


@pytest.mark.promise("SAND-5")
async def test_the_network_is_asked_for_even_where_the_command_is_allowed(make_bench: MakeBench) -> None:
    bench = make_bench("auto", allow=("true",))
    await bench.call("run", command="true")
    assert not bench.user.asked
    finished = await bench.call("run", command="true", network=True)
    assert [asked.summary for asked in bench.user.asked] == ["with network: true"]
    assert finished.summary.endswith("with network")


@pytest.mark.promise("SAND-5")
async def test_always_for_a_command_does_not_give_it_the_network(make_bench: MakeBench) -> None:
    bench = make_bench("ask")
    bench.user.says = "always"
    for network in (False, True, False, True):
        await bench.call("run", command="true", network=network)
    assert [asked.summary for asked in bench.user.asked] == ["true", "with network: true"]


@pytest.mark.promise("SAND-14")
@pytest.mark.parametrize("found", working(), ids=lambda found: found.name)
async def test_an_entry_that_carries_the_network_opens_it_for_its_command_alone(
    make_bench: MakeBench, found: Protection
) -> None:
    allow = (AllowedCommand(command="python3 fetch.py", network=True), "python3 other.py")
    bench = make_bench("auto", allow=allow, answerable=False, sandbox=Sandbox(found=found))
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        for name in ("fetch.py", "other.py"):
            program = f"import socket\nsocket.create_connection({address}, timeout=5)\n"
            (bench.root / name).write_text(program)
        fetched = await bench.call("run", command="python3 fetch.py")
        other = await bench.call("run", command="python3 other.py")
        both = await bench.call("run", command="python3 fetch.py && python3 other.py")
    assert (fetched.status, other.status, both.status) == ("ok", "failed", "failed")
    assert fetched.summary.endswith(f"sandbox {found.name}, with network")
    assert other.summary.endswith(f"sandbox {found.name}, no network")


def repository(bench: Bench) -> None:
    """A repository with a hook that leaves a trace."""
    git = ["git", "-C", str(bench.root)]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True, timeout=60)
    for name, value in {"user.name": "Ada", "user.email": "ada@example.org"}.items():
        subprocess.run([*git, "config", name, value], check=True, timeout=60)
    hook = bench.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch hooked\n")
    hook.chmod(0o755)
    (bench.root / "a.txt").write_text("one\n")


def subjects(bench: Bench) -> bytes:
    """What the commits are about."""
    words = ["git", "-C", str(bench.root), "log", "--format=%s"]
    return subprocess.run(words, check=True, capture_output=True, timeout=60).stdout


@pytest.mark.promise("SAND-11")
async def test_git_can_commit_and_runs_no_hooks(bench: Bench) -> None:
    repository(bench)
    before = (bench.root / ".git" / "config").read_bytes()
    finished = await bench.call("run", command='git add a.txt && git commit -qm "The first"')
    assert finished.status == "ok", finished.content
    assert "the repository's hooks were not run" in finished.content
    assert subjects(bench) == b"The first\n"
    assert not (bench.root / "hooked").exists()
    assert (bench.root / ".git" / "config").read_bytes() == before


@pytest.mark.promise("SAND-11")
@pytest.mark.parametrize(
    "command",
    [
        "git config core.pager evil",
        "git add a.txt && echo evil > .git/hooks/pre-push",
        "echo evil > .git/config",
        "mv .git/config x",
        "rm -r .git/hooks",
    ],
)
async def test_what_makes_git_run_programs_is_not_changed_by_a_command(bench: Bench, command: str) -> None:
    if not working()[0].git:
        assert (
            "git's settings and Handrail's files are restored after a command, not closed"
            in working()[0].missing
        )
        return
    repository(bench)
    config, hooks = bench.root / ".git" / "config", bench.root / ".git" / "hooks"
    before = (config.read_bytes(), sorted(hooks.iterdir()))
    finished = await bench.call("run", command=command)
    assert finished.status == "failed"
    assert (config.read_bytes(), sorted(hooks.iterdir())) == before


@pytest.mark.promise("SAND-12")
async def test_where_files_cannot_be_closed_a_change_of_them_is_told(make_bench: MakeBench) -> None:
    bench = make_bench(sandbox=Sandbox(found=Protection()))
    repository(bench)
    quiet = await bench.call("run", command="echo x > new && git add new")
    assert "CHANGED" not in quiet.summary
    told = await bench.call("run", command="echo evil > .git/hooks/pre-push; chmod -x .git/hooks/pre-commit")
    assert "CHANGED .git/hooks/pre-commit, .git/hooks/pre-push" in told.summary
    assert "which no command should" in told.content
    made = await bench.call("run", command="mkdir .handrail; echo x > .handrail/config.toml")
    assert "CHANGED .handrail" in made.summary
