"""The child process: one for all sessions of a user, and gone when the last of them is."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from handrail.models.embedded.model_files import SMOLLM2
from handrail.models.embedded.server_files import RunningServer, ServerFiles
from handrail.models.embedded.server_process import ServerProcess, child_environment, thread_count
from handrail.protocol.errors import GiveUp
from tests.interfaces.cli.program import environment
from tests.project.source import ROOT

pytestmark = pytest.mark.anyio
DEADLINE = 60.0
SOON = 0.5
"""A grace for tests: seconds."""
LONG = 600.0
CLIENT = [sys.executable, str(ROOT / "tests" / "models" / "embedded" / "client.py")]


class Client(NamedTuple):
    process: Process
    child: int
    text: str


@asynccontextmanager
async def client(models: Path, grace: float, words: str = "-") -> AsyncIterator[Client]:
    """A process that uses the child for as long as the block lasts."""
    async with await anyio.open_process(
        [*CLIENT, str(models), str(grace), words],
        env=environment() | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        stderr=None,
    ) as process:
        assert process.stdout is not None
        with anyio.fail_after(DEADLINE):
            answer = json.loads(await TextReceiveStream(process.stdout).receive())
        yield Client(process, answer["child"], answer["text"])
        assert process.stdin is not None
        await process.stdin.aclose()
        await process.wait()


def notices(models: Path) -> ServerFiles:
    return ServerFiles(models / "run" / SMOLLM2.model)


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(DEADLINE):
        while not holds():
            await anyio.sleep(0.02)


@asynccontextmanager
async def attached(models: Path, grace: float = LONG) -> AsyncIterator[ServerProcess]:
    """This process's own use of a child, which is stopped at the end."""
    child = ServerProcess(SMOLLM2, models / SMOLLM2.name, models, grace)
    try:
        with anyio.fail_after(DEADLINE):
            async for _ in child.connect():
                pass
        yield child
    finally:
        child.release()
        await child.stop()


@pytest.mark.promise("EMB-5")
async def test_two_that_start_at_once_share_one_child_and_both_get_answers(models: Path) -> None:
    found: list[Client] = []

    async def one(stack: AsyncExitStack) -> None:
        found.append(await stack.enter_async_context(client(models, SOON, "Say hello.")))

    async with AsyncExitStack() as stack:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, stack)
            tasks.start_soon(one, stack)
        assert found[0].child == found[1].child
        assert all(each.text for each in found)
    await until(lambda: not notices(models).is_running())


@pytest.mark.promise("EMB-6")
async def test_the_child_is_gone_when_all_its_clients_were_killed(models: Path) -> None:
    async with client(models, SOON) as first, client(models, SOON) as second:
        assert first.child == second.child
        first.process.kill()
        second.process.kill()
    await until(lambda: not notices(models).is_running())
    assert not notices(models).server.exists()


@pytest.mark.promise("EMB-6")
async def test_the_child_stays_while_one_client_does_and_for_the_grace(models: Path) -> None:
    async with client(models, LONG) as first:
        pass
    async with client(models, LONG) as second:
        assert second.child == first.child
    assert notices(models).is_running()
    await ServerProcess(SMOLLM2, models / SMOLLM2.name, models).stop()
    assert not notices(models).is_running()


@pytest.mark.promise("EMB-6")
async def test_a_child_that_nobody_can_find_ends(models: Path) -> None:
    async with attached(models):
        notices(models).server.unlink()
        await until(lambda: not notices(models).is_running())


@pytest.mark.promise("EMB-6")
async def test_a_starter_killed_while_the_child_loads_leaves_none_behind(models: Path) -> None:
    process = await anyio.open_process([*CLIENT, str(models), str(SOON), "-"], env=environment())
    async with process:
        await until(notices(models).is_running)
        process.kill()
    await until(lambda: not notices(models).is_running())


@pytest.mark.promise("EMB-7")
async def test_the_notice_of_a_dead_child_is_not_believed(models: Path) -> None:
    async with attached(models) as child:
        before = child.running()
        assert before is not None
        os.kill(before.pid, signal.SIGKILL)
        await until(lambda: not notices(models).is_running())
        assert notices(models).server.exists()
        assert child.running() is None
        async for _ in child.connect():
            pass
        after = child.running()
        assert after is not None
        assert after.pid != before.pid


@pytest.mark.promise("EMB-8")
async def test_only_who_has_the_key_gets_an_answer(models: Path) -> None:
    import httpx2

    async with attached(models) as child, httpx2.AsyncClient() as http:
        running = child.running()
        assert isinstance(running, RunningServer)
        assert running.url.startswith("http://127.0.0.1:")
        assert notices(models).server.stat().st_mode & 0o077 == 0
        url = f"{running.url}/v1/chat/completions"
        body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
        for headers in ({}, {"authorization": "Bearer guess"}):
            assert (await http.post(url, json=body, headers=headers, timeout=DEADLINE)).status_code == 401
        key = {"authorization": f"Bearer {running.key}"}
        assert (await http.post(url, json=body, headers=key, timeout=DEADLINE)).status_code == 200


@pytest.mark.promise("EMB-14")
async def test_memory_priority_and_log_of_the_child_are_limited(models: Path) -> None:
    async with attached(models) as child:
        running = child.running()
        assert running is not None
        limits = Path(f"/proc/{running.pid}/limits").read_text().splitlines()
        data = next(line for line in limits if line.startswith("Max data size")).split()
        assert SMOLLM2.size < int(data[3]) == running.memory_limit < SMOLLM2.size + 3_000_000_000
        assert running.threads == thread_count() <= len(os.sched_getaffinity(0))
        assert f"n_threads = {running.threads}\n" in notices(models).log.read_text()
        assert os.getpriority(os.PRIO_PROCESS, running.pid) > os.getpriority(os.PRIO_PROCESS, 0)
        with notices(models).log.open("ab") as log:
            log.write(bytes(2_000_000))
        await until(lambda: notices(models).log.stat().st_size < 1_000_000)


def test_the_child_is_told_no_secret() -> None:
    given = child_environment({"OPENAI_API_KEY": "k", "HTTPS_PROXY": "p", "PATH": "/bin", "PYTHONPATH": "x"})
    assert set(given) == {"PATH", "PYTHONPATH", "OMP_WAIT_POLICY"}
    assert str(Path("x").absolute()) in given["PYTHONPATH"].split(os.pathsep)


@pytest.mark.promise("EMB-2")
async def test_the_child_itself_refuses_a_file_with_one_wrong_byte(models: Path, smollm2: Path) -> None:
    damaged = models / "damaged.gguf"
    data = bytearray(smollm2.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    child = ServerProcess(SMOLLM2, damaged, models, SOON)
    with pytest.raises(GiveUp, match=r"ended while it was loading.*SHA-256 differs"):
        async for _ in child.connect():
            pass
    child.release()
    assert not notices(models).server.exists()
    assert "load_model" not in notices(models).log.read_text()


async def test_a_second_child_leaves_at_once(models: Path) -> None:
    async with attached(models) as child:
        before = child.running()
        words = ["--model", SMOLLM2.model, "--file", str(models / SMOLLM2.name), "--stamps", str(models)]
        words += ["--folder", str(notices(models).folder)]
        words += ["--window", "512", "--threads", "1", "--grace", "0"]
        module = [sys.executable, "-m", "handrail.models.embedded.server"]
        done = await anyio.run_process(
            [*module, *words], env=environment(), check=False, stderr=subprocess.DEVNULL
        )
        assert done.returncode == 3
        assert child.running() == before
