"""Tests with a `protection` run in every sandbox that works on this machine."""

import pytest

from tests.tools.sandbox.machine import working


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "protection" in metafunc.fixturenames:
        metafunc.parametrize("protection", working(), ids=lambda found: found.name)


@pytest.fixture(autouse=True, scope="session")
def looked() -> None:
    """Look before the loop of the first test runs, also where only one file is run."""
    working()
