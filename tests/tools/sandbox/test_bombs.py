"""What takes more and more ends at its limit: the kernel's where it keeps one, else when it is looked at."""

import os
from pathlib import Path

import anyio
import pytest

from handrail.tools.sandbox.cgroup import Wall
from handrail.tools.sandbox.protection import Protection
from tests.processes import gone, lasting
from tests.tools.sandbox.conftest import working
from tests.tools.sandbox.room import Room, furnished

pytestmark = pytest.mark.anyio

WALL = Wall(memory=200_000_000, processes=150)
WATCHED = [
    found.model_copy(update={"walled": False, "memory": False, "processes": False}) for found in working()
]
"""The same as if the kernel gave no limits."""
WAYS = [*working(), *WATCHED, Protection()]


def named(found: Protection) -> str:
    return f"{found.name}-{'walled' if found.walled else 'watched'}"


@pytest.fixture(params=WAYS, ids=named)
def room(home: Path, request: pytest.FixtureRequest) -> Room:
    return furnished(home, request.param)


@pytest.mark.promise("SAND-7")
async def test_a_fork_bomb_ends_and_leaves_nothing(room: Room) -> None:
    child = lasting()
    # Each waits a little, so that looking now and then is enough; the walls hold without that too.
    bomb = f"bomb() {{ sleep 0.05; bomb $1 | bomb $1 & }}; sleep {child} & bomb; wait"
    with anyio.fail_after(30):
        ended, output = await room.run("bash", "-c", bomb, timeout=1.5, wall=WALL)
    assert ended.over == "processes" or "number of processes" in output or "Resource temporarily" in output
    assert await gone(child)


@pytest.mark.promise("SAND-7")
async def test_a_bomb_without_pause_ends_where_the_kernel_keeps_the_limit(home: Path) -> None:
    for found in (each for each in working() if each.processes):
        room = furnished(home / named(found), found)
        child = lasting()
        with anyio.fail_after(30):
            await room.run("bash", "-c", f"sleep {child} & :(){{ :|:& }};:; wait; wait", timeout=1, wall=WALL)
        assert await gone(child)


@pytest.mark.promise("SAND-13")
async def test_a_program_that_takes_all_memory_is_ended(room: Room) -> None:
    program = "import time\nkept = []\nwhile True:\n    kept.append(b'x' * 4_000_000); time.sleep(0.01)"
    with anyio.fail_after(30):
        ended, output = await room.run("python3", "-c", program, timeout=20, wall=WALL)
    assert not ended.timed_out
    assert ended.over == "memory" or "memory" in output


@pytest.mark.promise("SAND-13")
async def test_memory_that_processes_share_is_counted_once(room: Room) -> None:
    program = (
        "import os, time\nkept = b'x' * 60_000_000\n"
        "for _ in range(6):\n    os.fork() or (time.sleep(1), os._exit(0))\nfor _ in range(6):\n    os.wait()"
    )
    ended, output = await room.run("python3", "-c", program, wall=WALL)
    assert (ended.code, ended.over) == (0, None), output


async def test_no_control_group_is_left(home: Path) -> None:
    for found in working():
        await furnished(home / named(found), found).run("true", wall=WALL)
    groups = Path("/sys/fs/cgroup").glob(f"**/handrail-{os.getpid()}-*")
    assert not list(groups)
