"""Every sandbox that works on this machine, found as the program finds it."""

import functools

import anyio
import pytest

from handrail.tools.sandbox.probe import probe_bubblewrap, probe_landlock
from handrail.tools.sandbox.protection import Protection


@functools.cache
def working() -> tuple[Protection, ...]:
    async def both() -> tuple[Protection, ...]:
        return (await probe_bubblewrap(), await probe_landlock())

    return tuple(found for found in anyio.run(both) if found.active)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "protection" in metafunc.fixturenames:
        metafunc.parametrize("protection", working(), ids=lambda found: found.name)


@pytest.fixture(autouse=True, scope="session")
def looked() -> None:
    """Look before the loop of the first test runs, also where only one file is run."""
    working()
