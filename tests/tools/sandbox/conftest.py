"""Every sandbox that works on this machine, found as the program finds it."""

import anyio
import pytest

from handrail.tools.sandbox.probe import probe_bubblewrap, probe_landlock
from handrail.tools.sandbox.protection import Protection

_found: list[Protection] = []


def probed() -> list[Protection]:
    """Both as found, once: where tests run side by side, before they begin, so that all workers agree."""

    async def both() -> list[Protection]:
        return [await probe_bubblewrap(), await probe_landlock()]

    if not _found:
        _found.extend(anyio.run(both))
    return _found


def working() -> tuple[Protection, ...]:
    return tuple(found for found in probed() if found.active)


def pytest_configure(config: pytest.Config) -> None:
    given = getattr(config, "workerinput", {}).get("sandboxes", ())
    _found.extend(map(Protection.model_validate_json, given))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "protection" in metafunc.fixturenames:
        metafunc.parametrize("protection", working(), ids=lambda found: found.name)


@pytest.fixture(autouse=True, scope="session")
def looked() -> None:
    """Look before the loop of the first test runs, also where only one file is run."""
    working()
