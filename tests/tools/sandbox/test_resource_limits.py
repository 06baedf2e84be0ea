"""What takes more and more ends at its limit: the kernel's where it keeps one, else when it is looked at."""

import os
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from handrail.tools.process import ResourceLimits
from handrail.tools.sandbox.sandbox import Protection
from tests.processes import gone, lasting
from tests.tools.sandbox.machine import working
from tests.tools.sandbox.room import Room, furnished

pytestmark = pytest.mark.anyio

LIMITS = ResourceLimits(memory=200_000_000, processes=150)
WATCHED = [replace(found, walled=False, memory=False, processes=False) for found in working()]
"""The same as if the kernel gave no limits."""
WAYS = [*working(), *WATCHED, Protection()]


def named(found: Protection) -> str:
    return f"{found.name}-{'walled' if found.walled else 'watched'}"


@pytest.fixture(params=WAYS, ids=named)
def room(home: Path, request: pytest.FixtureRequest) -> Room:
    return furnished(home, request.param)


MANY = """
import os, sys, time
for _ in range(400):
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", sys.argv[1]])
    time.sleep(0.002)
time.sleep(60)
"""
"""More than is allowed, and never more than that: where nothing but looking holds it, a bomb is no test."""


@pytest.mark.promise("SAND-7")
async def test_too_many_processes_end_and_nothing_is_left(room: Room) -> None:
    child = lasting()
    with anyio.fail_after(50):
        ended, output = await room.run("python3", "-c", MANY, child, timeout=40, limits=LIMITS)
    assert ended.over == "processes" or "number of processes" in output or "BlockingIOError" in output
    assert not ended.timed_out
    assert await gone(child)


@pytest.mark.promise("SAND-7")
async def test_a_bomb_without_pause_ends_where_the_kernel_keeps_the_limit(home: Path) -> None:
    for found in (each for each in working() if each.processes and each.walled):
        room = furnished(home / named(found), found)
        child = lasting()
        with anyio.fail_after(50):
            await room.run(
                "bash", "-c", f"sleep {child} & :(){{ :|:& }};:; wait; wait", timeout=1, limits=LIMITS
            )
        assert await gone(child)


@pytest.mark.promise("SAND-13")
async def test_a_program_that_takes_all_memory_is_ended(room: Room) -> None:
    program = "import time\nkept = []\nwhile True:\n    kept.append(b'x' * 4_000_000); time.sleep(0.01)"
    with anyio.fail_after(50):
        ended, output = await room.run("python3", "-c", program, timeout=40, limits=LIMITS)
    assert not ended.timed_out
    assert ended.over == "memory" or "memory" in output


@pytest.mark.promise("SAND-13")
async def test_memory_that_processes_share_is_counted_once(room: Room) -> None:
    program = (
        "import os, time\nkept = b'x' * 60_000_000\n"
        "for _ in range(6):\n    os.fork() or (time.sleep(1), os._exit(0))\nfor _ in range(6):\n    os.wait()"
    )
    ended, output = await room.run("python3", "-c", program, limits=LIMITS)
    assert (ended.code, ended.over) == (0, None), output


async def test_no_control_group_is_left(home: Path) -> None:
    for found in working():
        await furnished(home / named(found), found).run("true", limits=LIMITS)
    groups = Path("/sys/fs/cgroup").glob(f"**/handrail-{os.getpid()}-*")
    assert not list(groups)
