"""Commands that start through the fork server are as separate from it and each other as all others."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

from handrail.tools.process import ProcessResult, run_process
from handrail.tools.sandbox.launcher_program import launcher_program
from handrail.tools.sandbox.protected_paths import SandboxSetup, sandbox_environment
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from handrail.tools.sandbox.warm_launcher import ForkedProcess, Launch, WarmLauncher
from handrail.tools.secrets import without_secrets
from tests.processes import gone, lasting, running
from tests.tools.sandbox.machine import working
from tests.tools.sandbox.room import TRY, Room, furnished

pytestmark = pytest.mark.anyio

SECONDS = 60.0
MANY = 1000


class Started(NamedTuple):
    """A sandbox whose fork server runs, and commands in it."""

    room: Room
    sandbox: Sandbox

    @property
    def server(self) -> int:
        server = self.sandbox._warm._server
        assert server
        return server.pid

    async def waiting(self) -> int:
        """The process that waits for the next command."""
        server = self.sandbox._warm._server
        assert server
        process = server.waiting[0].process
        await process.started()
        return process.pid

    async def run(self, *words: str, environ: Mapping[str, str] | None = None) -> tuple[ProcessResult, str]:
        output, used = bytearray(), list[object]()

        def take(chunk: bytes) -> bool:
            output.extend(chunk)
            return True

        given = dict(environ or without_secrets(os.environ))
        setup = SandboxSetup(self.room.workspace, (self.room.state,), given)
        async with self.sandbox.confine(words, setup) as confined:

            async def start(*arguments: object, **named: object) -> object:
                used.append(await confined.start(*arguments, **named))
                return used[0]

            ended = await run_process(
                confined.words,
                folder=self.room.workspace,
                environment=confined.environ,
                timeout=SECONDS,
                on_output=take,
                limits=confined.limits,
                start=start,  # type: ignore[arg-type]
            )
        assert isinstance(used[0], ForkedProcess)
        return ended, output.decode()


@pytest.fixture(params=(*working(), Protection()), ids=lambda found: found.name)
async def started(home: Path, request: pytest.FixtureRequest) -> AsyncIterator[Started]:
    sandbox = Sandbox(found=request.param)
    try:
        await sandbox.warm_up()
        yield Started(furnished(home, request.param), sandbox)
    finally:
        sandbox.close()


@pytest.mark.promise("SAND-29")
async def test_nothing_of_a_command_or_of_handrail_reaches_the_next(started: Started) -> None:
    await started.run("bash", "-c", "exec 7</dev/null; true", environ=os.environ | {"FIRST": "secret"})
    show = "import json, os; print(json.dumps([os.listdir('/proc/self/fd'), dict(os.environ)]))"
    given = {"SECOND": "1", "PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    ended, output = await started.run(sys.executable, "-I", "-S", "-c", show, environ=given)
    assert ended.code == 0, output
    files, environ = json.loads(output)
    assert len(files) == 4, "stdin, stdout, stderr and the list itself"
    own = ("PWD", "SHLVL", "_", "LC_CTYPE", *sandbox_environment({}, "/tmp"))
    assert {name: value for name, value in environ.items() if name not in own} == given
    assert Path(f"/proc/{started.server}/environ").read_bytes() == b""


REACH = """
import ctypes, signal
libc = ctypes.CDLL(None, use_errno=True)
def reach(pid):
    tries = {
        "kill": lambda: os.kill(pid, signal.SIGTERM),
        "stop": lambda: os.kill(pid, signal.SIGSTOP),
        "memory": lambda: open(f"/proc/{pid}/mem", "rb"),
        "environment": lambda: open(f"/proc/{pid}/environ", "rb").read(),
        "files": lambda: [os.readlink(f"/proc/{pid}/fd/{each}") for each in range(8)],
    }
    found = {name: type(tried(action)).__name__ == "str" for name, action in tries.items()}
    found["trace"] = libc.ptrace(16, pid, 0, 0) != 0
    found["descriptor"] = libc.syscall(438, libc.syscall(434, pid, 0), 3, 0) < 0
    return found
print(json.dumps([reach(int(pid)) for pid in sys.argv[1:]]))
"""


@pytest.mark.promise("SAND-29")
async def test_a_command_reaches_neither_the_server_nor_the_waiting_process(started: Started) -> None:
    if not started.room.protection.others:
        return  # without a sandbox, or before ABI 6 of Landlock, all of the user's processes can be reached
    await started.run("true")
    pids = started.server, await started.waiting()
    ended, output = await started.run(sys.executable, "-I", "-S", "-c", TRY + REACH, *map(str, pids))
    assert ended.code == 0, output
    reached = [[name for name, refused in each.items() if not refused] for each in json.loads(output)]
    assert reached == [[], []]
    assert os.path.exists(f"/proc/{pids[0]}")


@pytest.mark.promise("SAND-30")
async def test_if_the_server_is_killed_its_commands_end_and_the_next_one_runs(started: Started) -> None:
    child, ends = lasting(), list[ProcessResult]()

    async def run() -> None:
        away = f"setsid bash -c \"trap '' TERM; sleep {child}\" & sleep {child}"
        ends.append((await started.run("bash", "-c", away))[0])

    server = started.server
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            while len(running(child)) < 2:
                await anyio.sleep(0.01)
            os.kill(server, signal.SIGKILL)
        assert ends[0].code == -signal.SIGKILL
        assert await gone(child)
        await started.sandbox.warm_up()
        assert started.server != server
        assert (await started.run("echo", "again"))[1] == "again\n"


@pytest.mark.promise("SAND-30")
async def test_a_dead_server_is_found_before_the_command_is_given_to_it(started: Started) -> None:
    server = Path(f"/proc/{started.server}/stat")
    os.kill(started.server, signal.SIGKILL)
    with anyio.fail_after(SECONDS):
        while " Z " not in server.read_text():
            await anyio.sleep(0.01)
    output = bytearray()

    def take(chunk: bytes) -> bool:
        output.extend(chunk)
        return True

    setup = SandboxSetup(started.room.workspace, (started.room.state,), without_secrets(os.environ))
    async with started.sandbox.confine(["echo", "runs"], setup) as confined:
        ended = await run_process(
            confined.words,
            folder=started.room.workspace,
            environment=confined.environ,
            timeout=SECONDS,
            on_output=take,
            start=confined.start,
        )
    assert (ended.code, bytes(output)) == (0, b"runs\n")


@pytest.mark.promise("SAND-30")
async def test_commands_at_the_same_time_keep_apart(started: Started) -> None:
    outputs: dict[int, str] = {}

    async def run(number: int) -> None:
        wait = "while [ $(ls ready.* | wc -l) -lt 4 ]; do sleep 0.02; done"
        command = f"touch ready.{number}; {wait}; echo {number} $MINE"
        environ = os.environ | {"MINE": f"mine{number}"}
        outputs[number] = (await started.run("bash", "-c", command, environ=environ))[1]

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(run, number)
    assert outputs == {number: f"{number} mine{number}\n" for number in range(4)}


@pytest.mark.promise("SAND-30")
async def test_a_command_gets_a_huge_environment(started: Started) -> None:
    environ = os.environ | {f"PART_{number}": "x" * 100_000 for number in range(12)}
    ended, output = await started.run("bash", "-c", "echo ${#PART_0} ${#PART_11}", environ=environ)
    assert (ended.code, output) == (0, "100000 100000\n")


@pytest.mark.promise("SAND-30")
async def test_a_command_whose_environment_is_too_large_is_not_run(started: Started) -> None:
    environ = os.environ | {f"PART_{number}": "x" * 100_000 for number in range(90)}
    ended, output = await started.run("bash", "-c", "echo ran", environ=environ)
    assert ended.code
    assert "too long" in output
    assert (await started.run("echo", "next"))[1] == "next\n"


def files_of(pid: int | str) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.promise("SAND-30")
async def test_a_thousand_commands_leave_no_file_and_no_process() -> None:
    launcher = WarmLauncher(lambda: (*launcher_program(), "--serve"))
    launcher.start_server(lambda: None)
    server = launcher._server
    assert server

    async def run() -> None:
        waiting = launcher.take_waiting()
        files = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        launch = Launch((), ["/bin/true"])
        process = await launcher.start(launch, waiting, None, [], folder=Path("/"), environment={}, **files)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(process.aclose)
            assert await process.wait() == 0
        launcher.command_ended(lambda: None)

    with anyio.fail_after(SECONDS):
        await run()
        while len(children_of(server.pid)) != 1:
            await anyio.sleep(0.01)
        before = files_of("self"), files_of(server.pid)
        for _ in range(MANY):
            await run()
        # One waits for the next command; the server may not have heard of the last end yet.
        while len(children_of(server.pid)) > 1 or files_of(server.pid) > before[1]:
            await anyio.sleep(0.01)
    assert files_of("self") <= before[0]
    launcher.close()
    assert not os.path.exists(f"/proc/{server.pid}")
    assert files_of("self") < before[0]
