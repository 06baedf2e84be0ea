"""Nothing of a command is left when it has ended, in every sandbox that works here and in none."""

import os
import sys
from pathlib import Path

import anyio
import pytest

from handrail.protocol.values import to_json
from handrail.tools.sandbox.sandbox import Protection
from tests.processes import gone, lasting, running
from tests.tools.sandbox.machine import working
from tests.tools.sandbox.room import Room, furnished

pytestmark = pytest.mark.anyio

WAYS = (*working(), Protection())
"""Also without a sandbox there is a guardian."""


@pytest.fixture(params=WAYS, ids=lambda found: found.name)
def room(home: Path, request: pytest.FixtureRequest) -> Room:
    return furnished(home, request.param)


@pytest.mark.promise("SAND-6")
async def test_children_that_left_the_group_end_with_the_command(room: Room) -> None:
    child, stubborn = lasting(), lasting()
    away = f"setsid sleep {child} & setsid bash -c \"trap '' TERM; sleep {stubborn}\" &"
    with anyio.fail_after(50):
        ended, output = await room.run("bash", "-c", f"{away} echo started; exit 3")
    assert ended.code == 3
    assert "started" in output
    assert "background were stopped" in output
    assert not running(child)
    assert not running(stubborn)


@pytest.mark.promise("SAND-6")
async def test_a_time_limit_reaches_children_that_left_the_group(room: Room) -> None:
    child, stubborn = lasting(), lasting()
    away = f"setsid sleep {child} & setsid bash -c \"trap '' TERM; sleep {stubborn}\" &"
    ended, _ = await room.run("bash", "-c", f"{away} sleep {child}", timeout=0.5)
    assert ended.timed_out
    assert await gone(child)
    assert await gone(stubborn)


@pytest.mark.promise("SAND-6")
async def test_cancelling_reaches_children_that_left_the_group(room: Room) -> None:
    child, stubborn = lasting(), lasting()
    away = f"setsid bash -c \"trap '' TERM; sleep {stubborn}\" & setsid sleep {child} & wait"
    with anyio.fail_after(50):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(room.run, "bash", "-c", away)
            while not (running(child) and running(stubborn)):
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    assert await gone(child)
    assert await gone(stubborn)


HANDRAIL = """
import asyncio, os, sys
from pathlib import Path
from msgspec.json import decode
from handrail.tools.sandbox.sandbox import Protection
from tests.tools.sandbox.room import Room

async def main():
    found, home, child = sys.argv[1:]
    home = Path(home)
    room = Room(decode(found, type=Protection), home, home / "code/shop", home / "handrail")
    away = f"setsid bash -c \\"trap '' TERM; sleep {child}; true\\" &"
    await room.run("bash", "-c", f"{away} setsid sleep {child} & sleep {child}")

asyncio.run(main())
"""


@pytest.mark.promise("SAND-6")
async def test_nothing_outlives_handrail_when_it_is_killed(room: Room) -> None:
    child = lasting()
    words = [sys.executable, "-c", HANDRAIL, to_json(room.protection), str(room.home), child]
    # The first to have the word in its command line is Handrail itself.
    async with await anyio.open_process(words, env=os.environ | {"PYTHONPATH": "src:."}) as handrail:
        with anyio.fail_after(50):
            while len(running(child)) < 4:
                await anyio.sleep(0.01)
        handrail.kill()
    assert await gone(child)
